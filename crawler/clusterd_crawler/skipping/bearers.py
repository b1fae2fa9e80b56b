"""Which known page answers for a URL by a name that it bears (`names` has what names are).

A name finds duplicates that no function of the URL can (``viewtopic.php?p=POST`` → its topic, ``/?p=N`` → its slug).
Names lie: a name rule says which kind is believed, for URLs of which form (the rule's context), borne by pages of which
form (its carrier). An anchor answers for a URL by a number in it: the value that the context's first condition is on,
or the number at its end, where the condition asks for one (``/threads/a-title.7/post-456``).

Cost: one table look-up for each name rule that fits the URL's host and context.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final, cast

from clusterd_crawler.errors import WrongInput
from clusterd_crawler.html.declared import UrlKind
from clusterd_crawler.names import MAX_ANCHORS, URL_KINDS, anchor_hash, name_hash
from clusterd_crawler.rule_language.conditions import Check, Reader, compile_condition, deep_tokens, no_tokens, read_key
from clusterd_crawler.rules import Condition, Rule
from clusterd_crawler.sketch import Name
from clusterd_crawler.urls import Url, parse

#: Most names kept of one domain (about 250 bytes each). Beyond it new ones are not taken: fetches more, no wrong skip.
NAMES_LIMIT: Final = 500_000
_DIGITS: Final = re.compile(r"[0-9]+\Z")


def parse_names(text: str) -> tuple[Name, ...]:
    """Read the ``names`` column of a recorded crawl: space-separated ``canonical=URL``, ``anchor=ID`` and so on."""
    found: dict[Name, None] = {}
    anchors = 0
    for entry in text.split():
        kind, _, target = entry.partition("=")
        if kind == "anchor":
            digits = _DIGITS.search(target)
            name = Name("anchor", anchor_hash(digits[0])) if digits else None
            if name is not None and name not in found and anchors < MAX_ANCHORS:
                anchors += 1
                found[name] = None
        elif kind in URL_KINDS:
            with suppress(WrongInput):
                found[Name(cast(UrlKind, kind), name_hash(target))] = None
    return tuple(found)


def witnessed(url: str, names: Iterable[Name]) -> list[Name]:
    """Return the names that a page may be believed: one that says it is two other pages is no witness for either."""
    names = list(names)
    own = name_hash(url)
    others = {name.hash for name in names if name.kind != "anchor" and name.hash != own}
    return names if len(others) < 2 else [name for name in names if name.kind == "anchor"]


class _NameRule:
    __slots__ = ("checks", "fits", "id", "kind", "read")

    def __init__(self, rule: Rule) -> None:
        self.id = rule.id
        self.kind = rule.name
        self.checks: list[Check] = [compile_condition(condition) for condition in rule.context]
        self.fits: list[Check] = [compile_condition(condition) for condition in rule.carrier]
        self.read = _number_reader(rule.context[0]) if rule.name == "anchor" and rule.context else None

    def target(self, url: str, taken: Url) -> int | None:
        """Return the hash that a page would have to bear to answer for this URL, or None."""
        for check in self.checks:
            if not check(taken):
                return None
        if self.kind != "anchor":
            return name_hash(url)
        value = self.read(taken) if self.read is not None else None
        return anchor_hash(value) if value and value.isdigit() and value.isascii() else None


def _number_reader(condition: Condition) -> Reader:
    """Return the function that reads the number of an anchor from the key of a condition, or from the end of its value.

    ``numbered`` has it as third deep token, and ``like`` with a pattern that begins with ``#`` as first.
    """
    deep = {"numbered": 3, "like": 1}.get(condition.test, 0)
    return read_key(replace(condition.key, deep=deep), deep_tokens(condition) if deep else no_tokens)


class NameTable:
    """Names borne by the known pages of one domain, of the kinds that its name rules believe; at most ``limit``."""

    def __init__(self, rules: Iterable[Rule], limit: int = NAMES_LIMIT) -> None:
        self._limit = limit
        self._rules: dict[str, list[_NameRule]] = {}
        for rule in rules:
            self._rules.setdefault(rule.host, []).append(_NameRule(rule))
        #: (id of a rule, hash of a name) → URL of the known page that bears the name.
        self._bearers: dict[tuple[str, int], str] = {}

    def note(self, url: str, names: Iterable[Name]) -> None:
        """Note the names of a fetched page; of several that bear one name the latest answers for it."""
        for key in self._borne(url, names):
            if len(self._bearers) < self._limit or key in self._bearers:
                self._bearers[key] = url

    def forget(self, url: str, names: Iterable[Name]) -> None:
        """Drop the names of a page that is no longer known; those that another page bears by now stay."""
        for key in self._borne(url, names):
            if self._bearers.get(key) == url:
                del self._bearers[key]

    def __len__(self) -> int:
        return len(self._bearers)

    def _borne(self, url: str, names: Iterable[Name]) -> Iterator[tuple[str, int]]:
        """Yield what a page's names are kept under."""
        if not self._rules:
            return
        taken = parse(url)
        rules = [rule for rule in self._rules.get(taken.authority, ()) if all(fits(taken) for fits in rule.fits)]
        for name in witnessed(url, names) if rules else ():
            for rule in rules:
                if name.kind == rule.kind:
                    yield rule.id, name.hash

    def find(self, url: str) -> tuple[str, str] | None:
        """Return (rule id, URL of the known page that answers for this one), or None."""
        if not self._bearers:
            return None
        taken = parse(url)
        for rule in self._rules.get(taken.authority, ()):
            target = rule.target(url, taken)
            bearer = None if target is None else self._bearers.get((rule.id, target))
            if bearer is not None:
                return rule.id, bearer
        return None
