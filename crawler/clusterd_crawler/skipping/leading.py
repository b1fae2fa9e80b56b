"""Pages that bring nothing new themselves, but lead to what is new: "you leave this site", "your download starts soon",
lists of nothing but buttons.

Rules speak of what pages show; where they lead, only the crawl sees. When a page brings a content that was not known,
or a file, the page that linked to it has led to something new. Where too many pages of one key did, no skip rests on
that key. Some may have done so by chance: pages that were fetched before the rule was known, each the first to lead to
some part of the site. So when further pages of the key lead nowhere, skips rest on it again. Of a family only the
latest members count.

Cost: a set entry and two numbers for each page that led to something; a bit for some members of each family.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

from clusterd_crawler.rule_language.keys import FAMILY

#: Fewest pages of a key, or further ones of the keys of a rule, that have to lead on, and one in how many.
LED: Final = 3
ONE_IN: Final = 3
#: Latest members of a family that are looked at, and how many of them have to lead on.
LATEST: Final = 50
LED_LATEST: Final = 2

#: Most keys that are counted; of more all are counted anew.
KEYS: Final = 500_000


class Leading:
    """The pages of one domain."""

    def __init__(self, begun: set[str]) -> None:
        """``begun`` is given the ids of the rules of which a key begins to lead on."""
        #: URLs of the known pages that led to what was new. (What is empty of most domains are dictionaries: a set
        #: takes three times as much then.)
        self.led: dict[str, None] = {}
        #: Key of a family → its latest members, each with whether it led on.
        self._members: dict[str, OrderedDict[str, bool]] = {}
        #: Key → how many of its pages led on, and how many came since the first of these did.
        self._counts: dict[str, tuple[int, int]] = {}
        #: Keys on which no skip rests.
        self._keys: dict[str, None] = {}
        #: Rule → how many of the further pages of its keys led on, of keys of which one did before, and how many came.
        self._further: dict[str, tuple[int, int]] = {}
        #: Rules on which no skip rests.
        self._rules: dict[str, None] = {}
        self._begun = begun

    def bears(self, key: str, rules: Iterable[str]) -> bool:
        """Whether skips may rest on a key that these rules made."""
        return key not in self._keys and (not self._rules or self._rules.keys().isdisjoint(rules))

    def clear(self) -> None:
        """Forget all keys: rules have changed."""
        self._members.clear()
        self._counts.clear()
        self._keys.clear()
        self._further.clear()
        self._rules.clear()

    def fetched(self, url: str, key: str, rules: Sequence[str], further: bool = False) -> None:
        """Note a page that was fetched, and the rules that made its key; ``further``: another of the key was before."""
        if key.startswith(FAMILY):
            members = self._members.setdefault(key, OrderedDict())
            members[url] = members.pop(url, False) or url in self.led
            if len(members) > LATEST:
                members.popitem(last=False)
            self._look(key, rules, sum(members.values()) >= LED_LATEST)
            return
        if further:
            self._count_further(rules, 0, 1)
        if url in self.led or key in self._counts:
            self._count(key, rules, url in self.led, 1)

    def led_on(self, url: str, key: str, rules: Sequence[str]) -> None:
        """Note that a known page led to something new."""
        if url in self.led:
            return
        self.led[url] = None
        if not key.startswith(FAMILY):
            self._count(key, rules, True, key not in self._counts)
        elif url in (members := self._members.get(key, OrderedDict())):
            members[url] = True
            self._look(key, rules, sum(members.values()) >= LED_LATEST)

    def _count(self, key: str, rules: Sequence[str], led: bool, came: int) -> None:
        if len(self._counts) >= KEYS:
            self._counts.clear()
        before, others = self._counts.get(key, (0, 0))
        if led and before:
            self._count_further(rules, 1, 0)
        self._counts[key] = counts = before + led, others + came
        self._look(key, rules, _lead(*counts))

    def _count_further(self, rules: Sequence[str], led: int, came: int) -> None:
        for rule in rules:
            before, others = self._further.get(rule, (0, 0))
            self._further[rule] = counts = before + led, others + came
            if not _lead(*counts):
                self._rules.pop(rule, None)
            elif rule not in self._rules:
                self._rules[rule] = None
                self._begun.add(rule)

    def _look(self, key: str, rules: Sequence[str], leads: bool) -> None:
        if not leads:
            self._keys.pop(key, None)
        elif key not in self._keys:
            self._keys[key] = None
            self._begun.update(rules)


def _lead(led: int, came: int) -> bool:
    """Whether so many of so many pages are too many to be the first by chance."""
    return led >= LED and came <= ONE_IN * led
