"""What a page calls itself, and which URL it thereby answers for.

A name is a kind and 64 bits: of the canonical form of the URL that the page gives as its canonical, shortlink or og:url,
or of the digits that an id or ``<a name>`` of it ends in. It finds duplicates that no function of the URL can
(``viewtopic.php?p=POST`` → its topic, ``/?p=N`` → its slug). Names lie: a name rule says which kind is believed, for
URLs of which form (the rule's context), borne by pages of which form (its carrier). An anchor answers for a URL by the
value of one query key: the first key of the rule's context.

Cost: one table look-up a name rule that fits the URL's host and context.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

import mmh3

from clusterd_crawler.errors import WrongInput
from clusterd_crawler.rule_tests import Check, Reader, compile_condition, read_key
from clusterd_crawler.rules import Rule
from clusterd_crawler.sketch import Name
from clusterd_crawler.urls import Url, canonical, parse

NameKind = Literal["canonical", "shortlink", "og", "anchor"]

#: Most names of one page that are kept (a page of 1,000 posts has more anchors than anyone links to).
NAMES_LIMIT: Final = 1000
#: Longest number that an anchor may end in; longer ones are hashes, not ids that a parameter carries.
ANCHOR_DIGITS: Final = 18
_ENDING: Final = re.compile(r"(?<![0-9])0*([0-9]{1,18})\Z")


def hash_of(text: str) -> int:
    """Return the 64 bits that stand for a name's target."""
    return mmh3.hash64(text.encode("utf-8", "surrogatepass"), signed=False)[0]


def url_name(kind: NameKind, url: str) -> Name | None:
    """Return the name that a page gives itself by a URL, or None where that is no absolute URL."""
    try:
        return Name(kind, hash_of(canonical(url)))
    except WrongInput:
        return None


def anchor_name(identifier: str) -> Name | None:
    """Return the name that an id or ``<a name>`` is, or None where it does not end in a number.

    >>> anchor_name("post-123") == anchor_name("p123"), anchor_name("top")
    (True, None)
    """
    match = _ENDING.search(identifier[-ANCHOR_DIGITS - 1 :])
    return None if match is None else Name("anchor", hash_of(match[1]))


def parse_names(text: str) -> tuple[Name, ...]:
    """Read the ``names`` column of a recorded crawl: space-separated ``canonical=URL``, ``anchor=ID`` and so on."""
    found: dict[Name, None] = {}
    for entry in text.split():
        kind, _, target = entry.partition("=")
        name: Name | None = None
        if kind == "anchor":
            name = anchor_name(target)
        elif kind in {"canonical", "shortlink", "og"}:
            name = url_name(kind, target)  # type: ignore[arg-type]
        if name is not None:
            found[name] = None
    return tuple(found)[:NAMES_LIMIT]


class _NameRule:
    __slots__ = ("checks", "fits", "id", "kind", "read")

    def __init__(self, rule: Rule) -> None:
        self.id = rule.id
        self.kind = rule.name
        self.checks: list[Check] = [compile_condition(condition) for condition in rule.context]
        self.fits: list[Check] = [compile_condition(condition) for condition in rule.carrier]
        self.read: Reader | None = read_key(rule.context[0].key) if rule.name == "anchor" and rule.context else None

    def target(self, url: str, taken: Url) -> int | None:
        """Return the hash that a page would have to bear to answer for this URL, or None."""
        for check in self.checks:
            if not check(taken):
                return None
        if self.kind != "anchor":
            return hash_of(url)
        value = self.read(taken) if self.read is not None else None
        return hash_of(value) if value and value.isdigit() and value.isascii() else None


class NameTable:
    """Names borne by the known pages of one domain, of the kinds that its name rules believe."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules: dict[str, list[_NameRule]] = {}
        for rule in rules:
            self._rules.setdefault(rule.host, []).append(_NameRule(rule))
        #: (rule number, hash of target) → URL of the page that bears the name.
        self._bearers: dict[tuple[str, int], str] = {}

    def note(self, url: str, names: Iterable[Name]) -> None:
        """Note the names of a fetched page."""
        names = tuple(names)
        if not self._rules or not names:
            return
        taken = parse(url)
        for rule in self._rules.get(taken.authority, ()):
            if all(fits(taken) for fits in rule.fits):
                for name in names:
                    if name.kind == rule.kind:
                        self._bearers[rule.id, name.hash] = url

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
