"""Learns one host's rules while its pages come: fetch → learn → skip.

`observe` keeps the evidence (`evidence`), `due` says when enough new duplicates have come for another look, `learn`
does these steps on a snapshot of it:

1. Families that always answer with one page (`families`), for the forms of values that were tried (`value_forms`).
2. Edits that pages of one content propose (`candidates`), each judged on top of those accepted before (`contexts`),
   those of the rules in use first; values that mean the same and values that may go (`fixed_values`) apart, at last.
3. Names that pages bear (`names`).
4. The watch: what explored pages say about the live rules (`watch`).

Cost: observing is one parse a page; learning is some sorts of the rows, and is done again only when the duplicates
have grown by `GROWTH`, so that all learning together costs a constant number of passes over the pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

import numpy as np
from clusterd_crawler.errors import NotFound
from clusterd_crawler.rules import Condition, Edit, Identity, Key, Rule, RuleSet, rule_id
from clusterd_crawler.urls import Url, canonical_if_any, parse

from clusterd.learning.candidates import Candidate, proposals
from clusterd.learning.contract import Page
from clusterd.learning.edits.both import alias_of
from clusterd.learning.edits.deep import Cut
from clusterd.learning.edits.edit import CandidateEdit, Replace, movers
from clusterd.learning.edits.fixed_values import BothFixed, DropFixed
from clusterd.learning.edits.references import Reference
from clusterd.learning.evidence.arrays import Flags, as_array
from clusterd.learning.evidence.columns import Evidence, Novelty
from clusterd.learning.evidence.settled import FOLLOWED, Accepted
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.families.exhausted import Exhausted, exhausted
from clusterd.learning.families.one_page import families
from clusterd.learning.families.paths import path_families
from clusterd.learning.families.value_forms import by_form
from clusterd.learning.families.walls import walls
from clusterd.learning.names import NameEvidence
from clusterd.learning.trials.contexts import SHOWN, Proposal, refine, refine_shown
from clusterd.learning.trials.siblings import beyond_luck, beyond_luck_of_values
from clusterd.learning.watch import Watch

#: Learn again when the duplicates have grown by this share, on hosts of fewer pages than stand before it: small hosts
#: often, since a rule that is found after half of their pages saves little …
GROWTH: Final = ((1_000, 0.01), (5_000, 0.05), (20_000, 0.1), (50_000, 0.25), (200_000, 0.5))
LAST_GROWTH: Final = 1.0
#: … and by this many.
FEWEST_NEW: Final = 1
#: How often the edits are gone through: what was judged before another was accepted may hold after it.
PASSES: Final = 2
#: Most parts of a site for which an edit becomes a rule: each takes a pass over all pages to be found, and
#: every URL of the host is compared with each.
PARTS: Final = 64
#: Rows judged value by value (`Snapshot.judged`) after which a lesson looks at no further edit: some seconds of work. A
#: recorded site of 25,000 pages takes an eighth of it; one of as many where a dozen filters stand in any combination,
#: and lists are equal by chance, took twelve times as much. The edits of the rules in use come first.
LESSON: Final = 2_000_000
#: Most of the latest strikes against rules that are forgotten where their crawl takes a page back.
STRUCK: Final = 500
#: Pairs of URLs that a rule carries as evidence.
EVIDENCE_PAIRS: Final = 6


class Learner:
    """The `HostLearner` of the daemon and of the replay."""

    def __init__(self, host: str, *, identity: Identity = "identical") -> None:
        self.host = host
        self.identity = identity
        self.evidence = Evidence()
        self.names = NameEvidence()
        self.watch = Watch()
        self.rules: tuple[Rule, ...] = ()
        self.version = 0
        #: What is new, and which crawl fetched the latest page.
        self._novelty = Novelty()
        self._crawl = ""
        self._duplicates = 0
        self._learned_at = 0
        self._urgent = False
        #: Crawl and URL of pages that contradicted a rule, with that and the page that they were fetched instead of.
        self._struck: dict[tuple[str, str], tuple[str, str]] = {}
        self._retired: set[str] = set()
        self._pinned: dict[str, Rule] = {}

    def observe(self, pages: Iterable[Page]) -> None:
        """Take pages in the order in which they were fetched. A URL seen again replaces what was known of it."""
        for page in pages:
            if not (url := canonical_if_any(page.url)):
                continue
            if page.state == "failed":
                self.evidence.take_back(url, page.crawl)
                self.names.take_back(url, page.crawl)
                self._uncount_strikes(url, page.crawl)
                continue
            taken = parse(url)
            row = self.evidence.add(url, page.content, taken, page.crawl)
            new, self._crawl = self._novelty.add(page.crawl, page.content), page.crawl
            if row >= 0:  # What is left out of the evidence, for its parameters, is remembered by no name either.
                self._observe_names(url, page, taken)
            if not new:
                self._duplicates += 1
            if page.explored:
                self._observe_explored(url, page, new)

    def _observe_explored(self, url: str, page: Page, new: bool) -> None:
        """Tell the watch of a page that was fetched although a rule would have skipped it."""
        agrees = not new or page.repeats or self._shows_what_was_known(page)
        self._urgent |= self.watch.explored(page.explored, agrees) or not agrees
        if not agrees:
            self._struck[page.crawl, url] = page.explored, page.instead_of
            if len(self._struck) > STRUCK:
                del self._struck[next(iter(self._struck))]

    def _uncount_strikes(self, url: str, crawl: str) -> None:
        """Forget the strikes of a page that its crawl takes back, and of those that were judged by it."""
        for at, (rule, instead_of) in tuple(self._struck.items()) if self._struck else ():
            if at[0] == crawl and url in {at[1], instead_of}:
                del self._struck[at]
                self.watch.uncount(rule)
                self._urgent = True

    def _observe_names(self, url: str, page: Page, taken: Url) -> None:
        self.names.observe(url, page.content, page.names, taken, page.crawl)

    def _shows_what_was_known(self, page: Page) -> bool:
        """Whether an explored page shows what the page does that the skip would have rested on, of an earlier crawl.

        (``CLUSTERD_SKIP_WITHIN``: then its own crawl need not have met that content.)
        """
        known = self.evidence.row_of.get(page.instead_of)
        return known is not None and self.evidence.identities[self.evidence.contents[known]] == page.content

    def due(self) -> bool:
        """Whether the evidence changed enough that learning again is worth its cost."""
        growth = next((share for pages, share in GROWTH if len(self.evidence) < pages), LAST_GROWTH)
        return self._urgent or self._duplicates >= self._learned_at * (1 + growth) + FEWEST_NEW

    def learn(self, at: int) -> RuleSet | None:
        """Learn; return the new rule set where it differs from the one before, else None."""
        self._learned_at = self._duplicates
        self._urgent = False
        snapshot = Snapshot(self.evidence)
        found = [self._rule(proposal, at, shows) for proposal, shows in self._accepted(snapshot)]
        found += self.names.rules(self.host, self.identity, at)
        return self._publish(_each_once(found))

    def _accepted(self, snapshot: Snapshot) -> Iterable[tuple[Proposal, int]]:
        """Yield what holds, with the identity that the known page has to show (0: any)."""
        for family in chain(families(snapshot), path_families(snapshot), walls(snapshot)):
            for proposal in by_form(snapshot, family):
                accept(snapshot, proposal)
                yield proposal, 0
        pooled, others = proposals(snapshot)
        offered = pooled + self._ordered(others)
        for found in self._judged(snapshot, offered):
            yield found, 0
        for edit, _ in offered if np.bincount(snapshot.content).max(initial=0) >= SHOWN else ():
            for found, content in refine_shown(snapshot, edit) if snapshot.judged < LESSON else ():
                yield found, self.evidence.identities[content]
        for family in exhausted(snapshot, self._crawl):
            for proposal in by_form(snapshot, family):
                yield proposal, 0

    def _ordered(self, offered: list[Candidate]) -> list[Candidate]:
        """Put the edits of the rules in use first, in their order, so that no rule gives way to another of its kind.

        (What says the same of more parameters comes before all: what it leaves to others is what they say besides.)
        References stay last: one that writes a parameter, and one that drops it, would undo each other for ever. So do
        cuts: a page whose value is cut is not what another one is with a parameter less, where that keeps its value.
        """
        context = [(rule.transformation, frozenset(rule.context)) for rule in self.rules]

        def place(offer: Candidate) -> int:
            said, needs = offer[0].transformation, offer[0].needs
            known = (at for at, rule in enumerate(context) if rule[0] == said and rule[1].issuperset(needs))
            return len(context) if isinstance(offer[0], Reference | Cut) else next(known, len(context))

        return sorted(offered, key=place) if context else offered

    def _judged(self, snapshot: Snapshot, offered: list[Candidate]) -> Iterable[Proposal]:
        """Yield the edits that hold.

        That one value is another, and that values are dropped, is judged apart, each on top of all other edits: either
        would take the other's trials away, and which came first would change with every new page.
        """
        fixed = [(edit, prior) for edit, prior in offered if isinstance(edit, DropFixed | BothFixed)]
        replaced = [(edit, prior) for edit, prior in offered if isinstance(edit, Replace)]
        named = [offer for offer in offered if alias_of(offer[0]) is not None]
        beyond = beyond_luck(snapshot, named)
        apart_from = [*fixed, *replaced, *(offer for offer in named if offer not in beyond)]
        yield from self._refined(snapshot, [offer for offer in offered if offer not in apart_from])
        apart = snapshot.copy() if fixed else snapshot
        yield from self._refined(snapshot, beyond_luck(snapshot, beyond_luck_of_values(snapshot, replaced)))
        for found in self._refined(apart, beyond_luck_of_values(apart, fixed)):
            accept(snapshot, found)
            yield found

    def _refined(self, snapshot: Snapshot, offered: list[Candidate]) -> Iterable[Proposal]:
        """Yield the edits that hold, each for as many parts of the site as it has a record of its own in.

        A context says one thing: what it leaves out is judged by itself, or one part's rule would take the place of
        another's with every few pages. What did not hold is judged once more on top of what did since.
        """
        accepted = 0
        judged: list[tuple[CandidateEdit, int, int, int]] = [(edit, prior, -1, PARTS) for edit, prior in offered]
        for _ in range(PASSES):
            failed = []
            for edit, prior, then, left in judged:
                before = accepted
                is_done = then == accepted or snapshot.judged >= LESSON
                for found in _parts(snapshot, edit, prior, 0 if is_done else left):
                    accepted += 1
                    yield found
                failed.append((edit, prior, accepted, left - (accepted - before)))
            judged = failed

    def _unmoved(self, transformation: tuple[Edit, ...]) -> list[Condition]:
        """Return that no parameter takes the place of a deleted one, where pages have shown such."""
        gone = [
            (edit.key.name, edit.key.occurrence) for edit in transformation if edit.op == "delete" and edit.key.name
        ]
        return [Condition(Key(*key), "absent") for key in movers(gone, self.evidence.columns)]

    def _met_once(self, context: tuple[Condition, ...], proposal: Proposal) -> Iterator[Condition]:
        """Yield that no parameter stands there once more than on the pages of the proposal, where others have shown so.

        A context says which names a URL may have, not how often.
        """
        names = {name for known in context if known.test == "only" for name in known.values}
        columns = self.evidence.columns
        for name, occurrence in [key for key in columns if key[1] > 1 and key[0] in names]:
            met = [proposal.rows[as_array(columns[name, number].rows)].any() for number in (occurrence - 1, occurrence)]
            if not met[1] and (met[0] or occurrence == 2):
                yield Condition(Key(name, occurrence), "absent")

    def _rule(self, proposal: Proposal, at: int, shows: int) -> Rule:
        # In one order, by whichever key the context was narrowed first: another order would be another rule.
        conditions = sorted(proposal.conditions, key=lambda known: (known.test in {"only", "depth"}, known.key))
        transformation = proposal.edit.transformation
        context = (*proposal.edit.needs, *conditions)
        context = tuple(dict.fromkeys((*context, *self._unmoved(transformation), *self._met_once(context, proposal))))
        outcome = proposal.outcome
        crawl = proposal.edit.crawl if isinstance(proposal.edit, Exhausted) else ""
        return Rule(
            id=rule_id(self.host, context, transformation, identity=self.identity, shows=shows, crawl=crawl),
            host=self.host,
            context=context,
            transformation=transformation,
            shows=shows,
            crawl=crawl,
            identity=self.identity,
            support=outcome.agreed,
            coverage=int(np.count_nonzero(proposal.rows)),
            precision=round(outcome.share, 4),
            lower_bound=round(proposal.bound, 4),
            since=at,
            evidence=self._pairs(proposal),
        )

    def _pairs(self, proposal: Proposal) -> tuple[tuple[str, str, bool], ...]:
        """Return pairs of URLs that agreed, and all that the few allow of those that differed."""
        outcome, urls = proposal.outcome, self.evidence.urls
        pairs: list[tuple[str, str, bool]] = []
        pages = list(zip(outcome.rows.tolist(), outcome.group.tolist(), outcome.good.tolist(), strict=True))
        first = {group: row for row, group, good in reversed(pages) if good}
        for row, group, good in pages:
            known = first.get(group)
            if known is not None and known != row and (not good or len(pairs) < EVIDENCE_PAIRS):
                pairs.append((urls[known], urls[row], good))
            if len(pairs) >= 2 * EVIDENCE_PAIRS:
                break
        return tuple(pairs)

    def _publish(self, found: list[Rule]) -> RuleSet | None:
        before = {rule.id: rule for rule in self.rules}
        kept = [
            replace(rule, since=before[rule.id].since, state=before[rule.id].state) if rule.id in before else rule
            for rule in found
            if rule.id not in self._retired and (rule.id in self._pinned or self.watch.admits(rule, len(self.evidence)))
        ]
        ids = {rule.id for rule in kept}
        kept += [rule for rule in self._pinned.values() if rule.id not in ids]
        ids |= set(self._pinned)
        gone = tuple((rule.id, self.watch.reason(rule.id)) for rule in self.rules if rule.id not in ids)
        if ids == set(before):
            self.rules = tuple(kept)
            return None
        return self._set(tuple(kept), gone)

    def _set(self, rules: tuple[Rule, ...], gone: tuple[tuple[str, str], ...]) -> RuleSet:
        self.version += 1
        self.rules = rules
        self.watch.publish(rules)
        return RuleSet(self.host, self.version, rules, gone)

    def retire(self, rule: str, reason: str) -> RuleSet:
        """Retire a rule (by hand); it does not come back from the evidence that made it."""
        if rule not in {known.id for known in self.rules}:
            raise NotFound(f"{self.host} has no live rule {rule}")
        self._retired.add(rule)
        self._pinned.pop(rule, None)
        return self._set(tuple(known for known in self.rules if known.id != rule), ((rule, reason),))

    def pin(self, rule: str, at: int) -> RuleSet:
        """Keep a rule whatever the watch says."""
        for known in self.rules:
            if known.id == rule:
                self._pinned[rule] = replace(known, state="pinned", since=at)
                return self._set(tuple(self._pinned.get(other.id, other) for other in self.rules), ())
        raise NotFound(f"{self.host} has no live rule {rule}")


def _parts(snapshot: Snapshot, edit: CandidateEdit, prior: int, most: int) -> Iterator[Proposal]:
    """Yield where an edit holds, one part of the site after the other, each on top of those before it."""
    for _ in range(most):
        found = refine(snapshot, edit, prior)
        if found is None:
            return
        accept(snapshot, found)
        yield found


def _each_once(found: Iterable[Rule]) -> list[Rule]:
    """Return each rule once, in its first place, with its longest record.

    What other edits have made of some pages may find a rule a second time, in pages of which it did not speak before.
    """
    once: dict[str, Rule] = {}
    for rule in found:
        if rule.id not in once or rule.support > once[rule.id].support:
            once[rule.id] = rule
    return list(once.values())


def accept(snapshot: Snapshot, proposal: Proposal) -> None:
    """Make an edit that holds part of what later ones are judged on, with what earlier ones make of its keys."""
    before = snapshot.key
    _commit(snapshot, proposal.edit, proposal.rows)
    after, edited = snapshot.key, np.flatnonzero(before != snapshot.key)
    for _ in range(FOLLOWED):
        due = list(snapshot.settled.due(snapshot.key[edited]))
        if not due:
            break
        for edit, at in due:
            _commit(snapshot, edit, snapshot.flags(edited[at]))
    snapshot.settled.note(before, after, proposal.edit)


def _commit(snapshot: Snapshot, edit: Accepted, rows: Flags) -> None:
    edit.commit(snapshot, rows)
    snapshot.changed(edit.own)
