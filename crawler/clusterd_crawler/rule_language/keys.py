"""Rules → the key of a URL: two URLs of one key show the same content, so the rules say.

A host's rules are compiled once. Each is filed under the rarest thing that it asks of a URL (a query key, a query
pair, a path component from the start or from the end), so that a URL is compared with the few rules that can apply
and its cost does not grow with the rules of other hosts, nor with rules of its own host that ask for something else.

The rules of a set are applied in the set's order, and then again to the result, until nothing changes: the key is a
fixed point, so that key(key(u)) = key(u). Where that takes more than `PASSES` passes the rules contradict each other
for this URL and its key is the URL itself: it is fetched. Work per URL is bounded whatever the rules: at most
`CANDIDATES` rules a pass, `PASSES` passes, and a URL longer than `LONGEST` or with more than `PAIRS` query keys is its
own key.

A family's key is ``family:ID@HOST``, which is no URL of a page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from clusterd_crawler.rule_language.conditions import Check, compile_condition, deep_tokens
from clusterd_crawler.rule_language.edits import Applied, Edited, EditFunction, compile_edit, says_something
from clusterd_crawler.rules import FIRST_COMPONENT, HOST, LIVE, Condition, Rule, RuleSet
from clusterd_crawler.urls import UNNAMED, Url, canonical, canonical_if_any, host_of, in_query, parse, registrable

#: Most passes over the rules before a URL counts as one on which they contradict each other.
PASSES: Final = 6
#: Most rules that one pass looks at.
CANDIDATES: Final = 256
#: Most names that URLs are searched for before they are taken apart.
NAMES: Final = 40
#: Longest URL that rules are applied to (the common limit of servers is 8 KB).
LONGEST: Final = 8192
#: Most query pairs of a URL that rules are applied to.
PAIRS: Final = 256
#: Conditions whose functions are remembered.
CHECKS: Final = 4096
#: Most hosts whose rules are compiled at a time.
COMPILED: Final = 65_536

#: What the key of a family begins with; no URL of a page does.
FAMILY: Final = "family:"

#: What a rule is filed under: ("q", name), ("v", name, value), (number from the start, value), ("", "") for the rest.
Handle = tuple[str, str] | tuple[str, str, str] | tuple[int, str]
REST: Final[Handle] = ("", "")
#: Tests that hold, or may, where their key is not there.
ASK_NO_KEY: Final = frozenset({"absent", "within", "depth", "only"})
_ORDER: Final = attrgetter("order")


class CompiledRule:
    """A rule as functions."""

    __slots__ = ("checks", "edits", "id", "order", "plain")

    def __init__(self, rule: Rule, order: int) -> None:
        self.id = rule.id
        self.order = order
        tokens = {c.key: deep_tokens(c) for c in rule.context if c.test in {"like", "numbered"}}
        sources = [found for edit in rule.transformation if (found := says_something(edit, tokens)) is not None]
        self.checks: tuple[Check, ...] = (*map(_check, rule.context), *sources)
        self.edits: tuple[EditFunction, ...] = tuple(compile_edit(edit, rule, tokens) for edit in rule.transformation)
        #: It only takes query pairs away: what is left of a canonical URL without escapes is canonical.
        self.plain = all(
            edit.op == "delete" and in_query(edit.key.name) and not (edit.key.deep or edit.key.deep_end)
            for edit in rule.transformation
        )

    def apply(self, url: Url) -> Applied:
        """Edit the URL in place where the context holds; say whether anything changed, or name the family."""
        for check in self.checks:
            if not check(url):
                return None
        changed: Applied = None
        for edit in self.edits:
            done = edit(url)
            if done is Edited.FAMILY:
                return done
            changed = done or changed
        return changed


class Filed(NamedTuple):
    """What a rule can be filed under."""

    handles: list[Handle]
    #: Where no single handle is needed: handles of which the rule needs one or another.
    any_of: list[Handle]


@lru_cache(CHECKS)
def _check(condition: Condition) -> Check:
    """Return the function that tells whether a condition holds: rules of a host, and of others, ask for the same."""
    return compile_condition(condition)


def _handles(rule: Rule) -> Iterable[Handle]:
    """Yield everything without which the rule cannot change a URL."""
    for condition in rule.context:
        key = condition.key
        if in_query(key.name) and condition.test not in ASK_NO_KEY:
            yield ("q", key.name)
            if condition.test == "is":
                yield ("v", key.name, condition.values[0])
        elif condition.test == "is" and not key.deep and not key.deep_end:
            if key.start > 2:
                yield (key.start, condition.values[0])
            elif key.end and not key.start:
                yield (-key.end, condition.values[0])
    if len(rule.transformation) == 1 and rule.transformation[0].op == "delete":
        name = rule.transformation[0].key.name
        if in_query(name):
            yield ("q", name)


def _any_of(rule: Rule) -> Iterable[Handle]:
    """Return handles of which a URL must have at least one for the rule to change it; none where there are no such."""
    for condition in rule.context:
        key = condition.key
        if condition.test == "in" and key.start > 2 and not (key.deep or key.deep_end):
            return [(key.start, value) for value in condition.values]
    names = [edit.key.name for edit in rule.transformation if edit.op == "delete" and in_query(edit.key.name)]
    if len(names) == len(rule.transformation):
        return [("q", name) for name in names]
    return []


class HostRules:
    """The compiled rules of one host."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        compiled = [
            (CompiledRule(rule, order), Filed(list(_handles(rule)), list(_any_of(rule))))
            for order, rule in enumerate(rules)
            if rule.kind == "url"
        ]
        sizes = Counter(handle for _, filed in compiled for handle in filed.handles)
        self._rest: list[CompiledRule] = []
        self._names: dict[str, list[CompiledRule]] = {}
        self._pairs: dict[str, dict[str, list[CompiledRule]]] = {}
        places: dict[int, dict[str, list[CompiledRule]]] = {}
        for rule, filed in compiled:
            rarest = min(filed.handles, key=lambda handle: (sizes[handle], str(handle)), default=REST)
            for handle in [rarest] if rarest != REST else filed.any_of or [REST]:
                if handle == REST:
                    self._rest.append(rule)
                elif isinstance(handle[0], int):
                    places.setdefault(handle[0], {}).setdefault(handle[1], []).append(rule)
                elif len(handle) == 3:
                    self._pairs.setdefault(handle[1], {}).setdefault(handle[2], []).append(rule)
                else:
                    self._names.setdefault(handle[1], []).append(rule)
        #: (index of a path component, its value → rules).
        self._places = [(place - FIRST_COMPONENT if place > 0 else place, places[place]) for place in sorted(places)]
        #: Whether no rule can apply.
        self.empty = not compiled
        #: Is found in every URL that a rule may change: each needs one of these query keys. None where some need none.
        self.needed = _needed([filed for _, filed in compiled])

    def candidates(self, url: Url) -> list[CompiledRule]:
        """Return the rules that could apply, in order, or none where they are more than `CANDIDATES`."""
        found = self._rest.copy()
        names, pairs = self._names, self._pairs
        if names or pairs:
            for name, value in url.query:
                if name in names:
                    found += names[name]
                if name in pairs:
                    found += pairs[name].get(value or "", ())
        path = url.path
        depth = len(path)
        for index, values in self._places:
            if -depth <= index < depth:
                found += values.get(path[index], ())
        if len(found) < 2:
            return found
        if len(found) > CANDIDATES:
            return []
        return sorted(set(found), key=_ORDER)


def _needed(rules: Iterable[Filed]) -> re.Pattern[str] | None:
    """Return `HostRules.needed`."""
    names: set[str] = set()
    for rule in rules:
        own = [handle[1] for handle in rule.handles or rule.any_of if handle[0] in {"q", "v"}]
        if not own:
            return None
        names.update(own if not rule.handles else own[:1])
    if len(names) > NAMES or UNNAMED in names:
        return None
    return re.compile(rf"[?&;](?:{'|'.join(map(re.escape, sorted(names)))})(?:[=&;]|\Z)")


#: Of hosts of which no rule speaks.
NO_RULES: Final = HostRules(())


def _may_hold(rule: Rule, authority: str) -> bool:
    """Whether a rule that spans hosts asks for this one: a domain may have many mirrors, and each rule is of one."""
    hosts = [condition.values for condition in rule.context if condition.key == HOST and condition.test == "is"]
    return not hosts or hosts[0] == (authority,)


class Keys:
    """Keys under the rule sets of many hosts. A set replaces the one of its host before."""

    def __init__(self, conditional: bool = False) -> None:
        """Make keys under all rules, or (``conditional`` false) under those that ask nothing of the known page."""
        self._conditional = conditional
        self._sets: dict[str, RuleSet] = {}
        self._spanning: set[str] = set()
        self._compiled: dict[str, HostRules] = {}
        #: Domain → the hosts of it that have compiled rules.
        self._compiled_of: dict[str, set[str]] = {}

    def load(self, rules: RuleSet) -> None:
        """Take a host's rule set."""
        host = rules.host
        self._spanning.discard(host)
        self._sets.pop(host, None)
        if rules.rules:
            self._sets[host] = rules
            if any(rule.spans for rule in rules.rules):
                self._spanning.add(host)
        for known in self._changed_by(host):
            self._compiled.pop(known, None)
            self._compiled_of[registrable(known)].discard(known)

    def _changed_by(self, host: str) -> set[str]:
        """Return the hosts whose compiled rules a set of this one may change: of a domain's name all hosts of it."""
        compiled = self._compiled_of.get(registrable(host), set())
        return set(compiled) if registrable(host) == host else compiled & {host}

    def rules_of(self, authority: str) -> HostRules:
        """Return the compiled rules for a host: its own, and those that span its registrable domain."""
        found = self._compiled.get(authority)
        if found is None:
            if authority not in self._sets and registrable(authority) not in self._spanning:
                return NO_RULES  # not kept for each host: a broad crawl meets very many that have none
            if len(self._compiled) >= COMPILED:
                self._compiled.clear()
                self._compiled_of.clear()
            found = self._compiled[authority] = HostRules(self._gathered(authority))
            self._compiled_of.setdefault(registrable(authority), set()).add(authority)
        return found

    def _gathered(self, authority: str) -> list[Rule]:
        own = self._sets.get(authority)
        rules = [rule for rule in own.rules if not rule.spans] if own else []
        domain = registrable(authority)
        if domain in self._spanning:
            rules = [rule for rule in self._sets[domain].rules if rule.spans and _may_hold(rule, authority)] + rules
        return [rule for rule in rules if rule.state in LIVE and (self._conditional or not rule.shows)]

    def key(self, url: str) -> tuple[str, tuple[str, ...]]:
        """Return a URL's key and the ids of the rules applied, in order. What is no URL is its own key."""
        form = canonical_if_any(url)
        return self.key_of_canonical(form) if form else (url, ())

    def key_of_canonical(self, url: str) -> tuple[str, tuple[str, ...]]:
        """Return the key of a URL in canonical form."""
        if not self._sets or len(url) > LONGEST:
            return url, ()
        start = url.find("://") + 3
        host = url[start : url.find("/", start)]
        rules = self._compiled.get(host)
        if rules is None:
            rules = self.rules_of(host)
        if rules.empty:
            return url, ()
        if rules.needed is not None:
            query = url.find("?", start)
            if query < 0 or rules.needed.search(url, query) is None:
                return url, ()
        taken = parse(url)
        if len(taken.query) > PAIRS:
            return url, ()
        return self._settle(url, taken, rules)

    def _settle(self, url: str, taken: Url, rules: HostRules) -> tuple[str, tuple[str, ...]]:
        applied: list[str] = []
        now = url
        for _ in range(PASSES):
            before, authority, changed, plain = now, taken.authority, False, True
            for rule in rules.candidates(taken):
                done = rule.apply(taken)
                if done is None:
                    continue
                applied.append(rule.id)
                changed = True
                plain = plain and rule.plain
                if done is Edited.FAMILY:
                    return f"{FAMILY}{rule.id}@{taken.authority}", tuple(applied)
                if taken.authority != authority:
                    break  # A page of a mirror: the rules of the site that it mirrors say the rest.
            if not changed:
                return now, tuple(dict.fromkeys(applied))
            now = str(taken)
            if not plain or "%" in now:
                now = canonical(now)
                if now == before:
                    return now, tuple(dict.fromkeys(applied))
                if len(now) > LONGEST:
                    break
                rules = self.rules_of(host_of(now))
            if rules.needed is not None and rules.needed.search(now) is None:
                return now, tuple(dict.fromkeys(applied))
            taken = parse(now)
        return url, ()
