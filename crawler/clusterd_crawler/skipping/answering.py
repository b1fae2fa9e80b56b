"""Which of several rules answers for a skip: the least proven of those that make the two URLs one.

A URL that has lost its session by one rule and its page size by another is known by a page of the same key. Where that
page shows something else, one of the rules is wrong: not the one that says the order of parameters does not matter,
if they stand in one order, and sooner one that twenty pages speak for than one of a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from clusterd_crawler.rule_language.edits import list_name
from clusterd_crawler.rules import Rule
from clusterd_crawler.urls import Url, parse

#: Stands for the path (and the host) beside the names of parameters.
PATH = ""


@dataclass(frozen=True, slots=True)
class _Known:
    """What a rule edits (None: whatever there is), whether it sorts, and how many pages speak for it."""

    edited: frozenset[str] | None
    sorts: bool
    support: int


def _known(rule: Rule) -> _Known:
    ops = {edit.op for edit in rule.transformation}
    names = frozenset(list_name(edit.key.name)[0] for edit in rule.transformation if edit.op != "sort")
    return _Known(None if ops & {"family", "keep"} else names, "sort" in ops, rule.support)


class Answering:
    """The rules in use, by what they edit."""

    def __init__(self) -> None:
        self._rules: dict[str, _Known] = {}

    def load(self, gone: Iterable[Rule], rules: Iterable[Rule]) -> None:
        """Take the rules of a host in place of those before."""
        for rule in gone:
            self._rules.pop(rule.id, None)
        self._rules.update((rule.id, _known(rule)) for rule in rules)

    def choose(self, url: str, known: str, applied: Sequence[str]) -> str:
        """Return the rule that answers, of those applied to a URL and to the known page's."""
        rules = [(rule, self._rules[rule]) for rule in dict.fromkeys(applied) if rule in self._rules]
        if len(rules) < 2:
            return applied[-1]
        differing = _differing(parse(url), parse(known))
        meant = [(rule, of) for rule, of in rules if of.edited is None or not differing.isdisjoint(of.edited)]
        if not meant:  # they differ in order
            meant = [(rule, of) for rule, of in rules if of.sorts]
        return min(meant or rules, key=lambda rule: rule[1].support)[0]


def _differing(one: Url, other: Url) -> set[str]:
    """Return the names of the parameters in which two URLs differ, and `PATH`."""
    mine, theirs = _values(one), _values(other)
    found = {name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)}
    if (one.authority, one.path) != (other.authority, other.path):
        found.add(PATH)
    return found


def _values(url: Url) -> dict[str, list[str | None]]:
    """Return the values of each list of parameters, those of numbered ones in the order of their numbers."""
    found: dict[str, list[str | None]] = {}
    pairs = (*url.query, *((name, value) for _, name, value in url.matrix or ()))
    for (name, _), value in sorted(((list_name(name), value) for name, value in pairs), key=itemgetter(0)):
        found.setdefault(name, []).append(value)
    return found
