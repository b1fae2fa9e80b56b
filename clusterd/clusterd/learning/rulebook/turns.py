"""How a host's rules go from one state to the next: pure functions over `HostRules`. Every change leaves a turn.

The version of a set that crawlers must be told of is the time of the change (Unix milliseconds), or one more than the
version before where the clock is behind it. So it rises even where the store came back from an older state, or from
none, while crawlers hold a set that it no longer knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from clusterd_crawler.errors import WrongInput
from clusterd_crawler.rules import LIVE, Rule, RuleSet, State

from clusterd.learning.rulebook.contract import (
    HISTORY_LIMIT,
    REPLACED,
    RETIRED_LIMIT,
    SET_BYTES,
    UNSKIP_LIMIT,
    By,
    Entry,
    HostRules,
    Turn,
)
from clusterd.learning.rulebook.entries import rules_to_bytes
from clusterd.learning.rulebook.succession import alike, successors
from clusterd.learning.watch import NO_LONGER

#: Why a rule went of which the log does not say it.
LOST: Final = "withdrawn in what the store has lost"
#: Why a rule is retired as soon as it is learned, before the id of the one that an operator has retired.
LIKE: Final = "by hand, with "
#: Who brings rules that the learner knows nothing of.
NOT_LEARNED: Final = frozenset({"import", "hand", "restored"})


def relearned(before: HostRules, learned: RuleSet, at: int, *, spans: bool = False) -> HostRules:
    """Return the state after learning; of the learner of mirrors (``spans``) and of the host's own, each its rules.

    1. What the learner has retired, or no longer says, is retired until it says it again; the reason names the rule
       that has taken its place, where one has. Pinned rules stay, and imported ones, which the learner does not know.
    2. Its other rules are entered, with their new figures, unless they are barred. They come first and in the
       learner's order, which is the order in which they are applied.
    3. What would come into force and does what a rule did that an operator retired is entered as retired: the learner
       says it with other values and folders as the site grows, each time under another id.
    """
    entries = dict(before.entries)
    said = {rule.id: rule for rule in learned.rules if rule.state in LIVE}
    failed = {rule: reason for rule, reason in learned.retired if rule not in said}
    gone = [
        entry
        for known, entry in before.entries.items()
        if entry.rule.state == "live" and entry.rule.spans == spans and known not in said
    ]
    taking = [rule for known, rule in said.items() if known not in before.entries or not barred(before.entries[known])]
    denied = _denied(before, taking, spans)
    replaced = successors((entry.rule for entry in gone), [rule for rule in taking if rule.id not in denied])
    for entry in gone:
        went = entry.rule.id
        if went not in failed and entry.last.by in NOT_LEARNED:
            continue
        reason = failed.get(went, NO_LONGER)
        if reason == NO_LONGER and went in replaced:
            reason = f"{REPLACED}{replaced[went]}"
        entries[went] = _turned(entry, at, "retired", "learner" if went in failed else "relearned", reason)
    for rule in said.values():
        known = entries.get(rule.id)
        if rule.id in denied:
            reason = f"{LIKE}{denied[rule.id]}"
            entries[rule.id] = _turned(_with_past(rule, known), at, "retired", "hand", reason)
        else:
            entries[rule.id] = _entered(known, rule, at)
    return _settled(before, {rule: entries[rule] for rule in (*said, *entries)}, at)


def _denied(before: HostRules, said: Iterable[Rule], spans: bool) -> dict[str, str]:
    """Return which of these rules may not come into force, with the retired rule that each is like."""
    retired = {
        known: entry
        for known, entry in before.entries.items()
        if entry.rule.state == "retired" and entry.last.by in {"hand", "import"} and entry.rule.spans == spans
    }
    # Of what was said since, where the first is no longer retired, more may come.
    forms = [
        (retired[first].rule, entry.rule)
        for known, entry in retired.items()
        if (first := _like(entry) or known) in retired
    ]
    in_force = {known for known, entry in before.entries.items() if entry.rule.state in LIVE}
    return alike(forms, (rule for rule in said if rule.id not in in_force))


def _like(entry: Entry) -> str:
    """Return the rule because of which another was retired that does the same, "" where it was retired itself."""
    reason = entry.last.reason
    return reason.removeprefix(LIKE) if reason.startswith(LIKE) else ""


def turned(before: HostRules, changes: Mapping[str, tuple[State, By, str]], at: int) -> HostRules:
    """Return the state after rules were brought to other states: rule id → (state, by whom, why)."""
    entries = dict(before.entries)
    for rule, (state, by, reason) in changes.items():
        entries[rule] = _turned(entries[rule], at, state, by, reason)
    return _settled(before, entries, at)


def struck(before: HostRules, failing: Mapping[str, str], at: int, *, spans: bool = False) -> HostRules:
    """Return the state after the watch has retired those of these rules that are live (id → why); pinned ones stay.

    The rules of a group stand beside those of the host that bears its name, but each learner answers for its own: what
    a page of that host shows the host's learner cannot have met where a mirror rule speaks of another host's.
    """
    live = {id_: entry.rule for id_, entry in before.entries.items() if entry.rule.state == "live"}
    gone = {id_: reason for id_, reason in failing.items() if id_ in live and live[id_].spans == spans}
    return turned(before, {id_: ("retired", "watch", reason) for id_, reason in gone.items()}, at)


def imported(before: HostRules, rules: Iterable[Rule], at: int) -> HostRules:
    """Return the state with an operator's rules entered in the state that they have, whatever the learner says.

    `WrongInput` where that would be more than crawls can be sent.

    A rule that was changed in the file and kept its id takes the place of the one that it was made from, under an id of
    its own (`entered_as`): crawls tell by the id what a rule has kept out. What is imported already stays as it is.
    """
    entries = dict(before.entries)
    anew = False
    for given in rules:
        rule = replace(given, id=entered_as(before, given))
        stood = _stands_for(given.id, entries)
        if stood not in {"", rule.id}:
            entries[stood] = _turned(entries[stood], at, "retired", "import", f"{REPLACED}{rule.id}")
        known = entries.get(rule.id)
        anew = anew or (known is not None and known.rule.said != rule.said)
        if known is not None and known.last.by == "import" and known.rule.state == rule.state:
            entries[rule.id] = Entry(replace(rule, since=known.rule.since), known.history)
        else:
            entries[rule.id] = _turned(_with_past(rule, known), at, rule.state, "import", "imported")
    return _sendable(_settled(before, entries, at, anew=anew), "import fewer, or such as say less")


def _stands_for(rule: str, entries: Mapping[str, Entry]) -> str:
    """Return the rule in force that a file means by an id: of that id, or what it was last changed to; "" for none."""
    for _ in range(HISTORY_LIMIT):
        entry = entries.get(rule)
        if entry is None or entry.rule.state in LIVE:
            return rule if entry is not None else ""
        if entry.last.by != "import" or not entry.replaced_by:
            return ""
        rule = entry.replaced_by
    return ""


def entered_as(state: HostRules, rule: Rule) -> str:
    """Return under which id a rule of a file is entered: its own, unless the host has a rule of it that says another.

    The same after it was entered as before.
    """
    known = state.entries.get(rule.id)
    return rule.id if known is None or known.rule.said == rule.said else rule.made_id


def restored(before: HostRules, published: RuleSet, at: int) -> HostRules:
    """Return the state with a later rule set that the store has lost: as published, of its version (`restoring`).

    Who has withdrawn what is not in it any more is not known, so that does not come back by itself.
    """
    entries = dict(before.entries)
    for rule in published.rules:
        known = entries.get(rule.id, Entry(rule))
        turn = () if known.history and known.rule.state == rule.state else (Turn(at, rule.state, "restored"),)
        history = (*known.history, *turn)[-HISTORY_LIMIT:]
        entries[rule.id] = Entry(replace(rule, evidence=known.rule.evidence), history)
    reasons = dict(published.retired)
    in_force = dict.fromkeys(rule.id for rule in published.rules)
    for known_id, entry in before.entries.items():
        if entry.rule.state in LIVE and known_id not in in_force:
            entries[known_id] = _turned(entry, at, "retired", "restored", reasons.get(known_id, LOST))
    state = _settled(before, {rule: entries[rule] for rule in (*in_force, *entries)}, at)
    rules = replace(state.rules, version=published.version, retired=published.retired, unskip=published.unskip)
    return HostRules(rules, state.entries)


def unskipped(before: HostRules, urls: Iterable[str], at: int) -> HostRules:
    """Return the state with URLs exempted; `WrongInput` where that would be more than a host may have."""
    instead = "retire the rule instead: clusterd rules retire ID"
    every = tuple(dict.fromkeys((*before.rules.unskip, *urls)))
    if len(every) > UNSKIP_LIMIT:
        raise WrongInput(f"{len(every)} exempted URLs on {before.rules.host} are more than {UNSKIP_LIMIT}; {instead}")
    if every == before.rules.unskip:
        return before
    rules = replace(before.rules, version=max(before.rules.version + 1, at), retired=(), unskip=every)
    return _sendable(HostRules(rules, before.entries), instead)


def _sendable(state: HostRules, instead: str) -> HostRules:
    """Return the state, or raise `WrongInput` where the crawls could not be sent its set."""
    size = len(rules_to_bytes(state.rules))
    if size > SET_BYTES:
        raise WrongInput(
            f"rules and exempted URLs of {state.rules.host} would take {size} bytes, of {SET_BYTES} that crawls can be "
            f"sent; {instead}"
        )
    return state


def barred(entry: Entry) -> bool:
    """Whether the operator or the watch has retired the rule, so that it does not come back by itself."""
    return entry.rule.state == "retired" and entry.last.by in {"hand", "import", "watch", "restored"}


def brought_in(entry: Entry) -> int:
    """Return when (Unix ms) an import put a rule into force that was not; 0 where something else did, or nothing."""
    began = None
    for turn in reversed(entry.history):
        if turn.state not in LIVE:
            break
        began = turn
    return began.at if began is not None and began.by == "import" else 0


def _entered(known: Entry | None, rule: Rule, at: int) -> Entry:
    """Enter what the learner says of a rule: figures are always new, the state only where that is the learner's."""
    if known is None:
        return Entry(replace(rule, since=at), (Turn(at, rule.state, "learner"),))
    if known.rule.state in LIVE or barred(known):
        return Entry(replace(rule, state=known.rule.state, since=known.rule.since), known.history)
    return _turned(Entry(rule, known.history), at, rule.state, "learner", "learned again")


def _with_past(rule: Rule, known: Entry | None) -> Entry:
    """Return the entry of a rule with the history that it has."""
    return Entry(rule, known.history if known else ())


def _turned(entry: Entry, at: int, state: State, by: By, reason: str) -> Entry:
    history = (*entry.history, Turn(at, state, by, reason))[-HISTORY_LIMIT:]
    return Entry(replace(entry.rule, state=state, since=at), history)


def _settled(before: HostRules, entries: dict[str, Entry], at: int, *, anew: bool = False) -> HostRules:
    """Bound the retired rules and make the set to publish, of a later version where the crawlers must be told.

    They must where other rules are in force, or where one of them says something else (``anew``).
    """
    gone = [entry for entry in entries.values() if entry.rule.state == "retired"]
    gone.sort(key=lambda entry: (barred(entry), entry.last.at))
    for entry in gone[: max(0, len(gone) - RETIRED_LIMIT)]:
        del entries[entry.rule.id]
    in_force = tuple(entry.rule for entry in entries.values() if entry.rule.state in LIVE)
    if not anew and [(r.id, r.state) for r in before.rules.rules] == [(r.id, r.state) for r in in_force]:
        return HostRules(replace(before.rules, rules=in_force), entries)
    gone_ids = {rule.id for rule in before.rules.rules} - {rule.id for rule in in_force}
    retired = tuple((rule, entries[rule].last.reason if rule in entries else "retired") for rule in sorted(gone_ids))
    return HostRules(
        replace(before.rules, version=max(before.rules.version + 1, at), rules=in_force, retired=retired), entries
    )
