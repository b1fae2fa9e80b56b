"""Which would-be skips are fetched all the same, so that rules are watched: a share of them, by the hash of the URL.

The less is known of a rule, the larger the share. Which URLs are fetched is decided by a hash of the URL, so that a
replay repeats itself, and of the crawl, so that what one crawl wrongly leaves out is fetched by another. Some rules are
tried further: those that rename folders (`renaming`), those that hold on pages of any path (`resting`), and both on
each value that many of their skips have (`spreading`).

Cost: a hash a would-be skip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import mmh3

from clusterd_crawler.rule_language.keys import FAMILY
from clusterd_crawler.rules import Key, Rule
from clusterd_crawler.skipping.renaming import Renaming
from clusterd_crawler.skipping.resting import Resting, is_one_server
from clusterd_crawler.skipping.spreading import Place, Spreading
from clusterd_crawler.skipping.trial_budget import TrialBudget

#: How many times as often a page of a family is explored, of which no key says what it shows: 5 % by default.
FAMILY_TIMES: Final = 2.5
#: How many times as often a page is explored that another spelling of its URL has shown: order and escapes (RFC 3986).
SPELLING_TIMES: Final = 0.25
SPELLING: Final = frozenset({"sort", "decode"})
#: What is not known of a rule that drops parameters at several values, from any page: of n trials that all agreed, up
#: to 3/n may be wrong (the rule of three, 95 %). Such a share is explored, until it is the share of all rules …
NOT_KNOWN: Final = 3
#: … but at most so many times that share.
YOUNG_TIMES: Final = 5
#: Fewest values of a parameter that speak for any: one is mostly its default, a second another way to write that.
SEVERAL: Final = 3
SEED: Final = 0x5EED
#: Would-be skips that are explored, before the crawl ends at the latest, of a family that brought it nothing new. Its
#: run says nothing of pages that were found before it and wait: a crawl that goes where the last link leads comes back
#: from a calendar's empty years to the months that it left. (95 %: of what is skipped less than one in ten is new.)
LAST_LOOK: Final = 30
#: Explored URLs that are remembered until their pages come; of more the oldest are counted as if they had.
AWAITED: Final = 100_000


@dataclass(slots=True)
class _Look:
    """A look at so many of a rule's next would-be skips, from the first to the last as evenly as may be."""

    count: int
    skips: int
    met: int = 0

    def takes_next(self) -> bool:
        self.met += 1
        return self.met <= self.skips and self.met * self.count % self.skips < self.count


class Exploring:
    """How often the would-be skips of each rule are explored."""

    def __init__(self, share: float, crawl: str = "") -> None:
        self._share = share
        self._seed = mmh3.hash(crawl, SEED, signed=False) if crawl else SEED
        self._below = int(share * 2**32)
        #: Ids of rules that only say how URLs are spelled.
        self._spelling: set[str] = set()
        #: Id of a rule that drops parameters from any page, at several values → how many trials agreed.
        self._trials: dict[str, int] = {}
        #: Id of a family that brought this crawl nothing new → how many it keeps out when it is next looked at those,
        #: and how many had been explored after the last look; and the looks.
        self._due: dict[str, tuple[int, int]] = {}
        self._looks: dict[str, _Look] = {}
        #: URL that is to be fetched all the same, and has not come yet → rule that it is a trial of.
        self._awaited: dict[str, str] = {}
        self._renaming = Renaming()
        self._resting = Resting()
        self._spreading = Spreading()

    def load(
        self,
        gone: Sequence[Rule],
        rules: Sequence[Rule],
        applied: Callable[[str], Iterable[str]],
        explored: Counter[str],
    ) -> None:
        """Take rules in the place of others.

        ``applied``: the ids of those that make the key of a URL by now; ``explored``: how many pages of each have been.
        """
        awaited = self._awaited_under(gone, rules, applied)
        self._renaming.load(gone, rules, awaited)
        self._resting.load(gone, rules, awaited)
        spread = {rule.id: self._stated(rule) for rule in rules if self._is_spread(rule)}
        self._spreading.load([rule.id for rule in gone], spread)
        for rule in gone:
            self._spelling.discard(rule.id)
            self._trials.pop(rule.id, None)
        # A host's rules are published anew whenever one of them changes: what was looked at of one that stays holds.
        before, after = {rule.id for rule in gone}, {rule.id for rule in rules}
        for rule_id in before - after:
            self._due.pop(rule_id, None)
            self._looks.pop(rule_id, None)
        # Of one that comes again, other pages have run: what was explored before says nothing of what it keeps out now.
        new = [rule.id for rule in rules if rule.crawl and rule.id not in before]
        self._due.update((rule, (1, explored[rule])) for rule in new)
        for rule in rules:
            if _is_spelling(rule):
                self._spelling.add(rule.id)
            elif _goes_from_any_page(rule):
                self._trials[rule.id] = rule.support

    def _awaited_under(
        self, gone: Iterable[Rule], rules: Iterable[Rule], applied: Callable[[str], Iterable[str]]
    ) -> Counter[str]:
        """Return how many explored pages that have not come yet are trials of each of the rules, instead of others.

        A host's rules are published anew whenever one of them changes, often under another id with one value more.
        Were these not counted, as many more would be tried each time, while those wait in a long queue.
        """
        before, after = {rule.id for rule in gone}, {rule.id for rule in rules}
        awaited: Counter[str] = Counter()
        for url in [url for url, rule in self._awaited.items() if rule in before]:
            tried = after.intersection(applied(url))
            awaited.update(tried)
            if tried:
                self._awaited[url] = min(tried)
            else:
                del self._awaited[url]
        return awaited

    def look_once_more(self, kept: Counter[str], explored: Counter[str]) -> set[str]:
        """Return the rules of which what they keep out is decided anew before the crawl ends, and some of it explored.

        Each once, unless it keeps out twice as many since, and `LAST_LOOK` at least were added: not more at a time
        than it keeps out by now, or an endless family would be followed further.
        """
        looked = {rule for rule, (due, _) in self._due.items() if kept[rule] >= due} if self._share else set()
        return {rule for rule in looked if self._looks_at(rule, kept[rule], explored[rule])}

    def _looks_at(self, rule: str, kept: int, explored: int) -> bool:
        """Begin a look where fewer than `LAST_LOOK` were explored since the last one."""
        count = max(0, min(kept, self._due[rule][1] + LAST_LOOK - explored))
        self._due[rule] = 2 * max(kept, LAST_LOOK), explored + count
        if count:
            self._looks[rule] = _Look(count, kept)
        return count > 0

    def came(self, url: str) -> None:
        """Note that a URL was fetched, or that it was not found."""
        self._awaited.pop(url, None)

    def explores(self, url: str, rule: str, key: str, explored: int, tried: bool = False, owed: bool = False) -> bool:
        """Return whether a page is fetched all the same, of a rule of which so many have been.

        ``tried``: another page of its path was, and agreed. ``owed``: it is, where any are.
        """
        explores = self._is_trial(url, rule, key, explored, tried) or (owed and bool(self._share))
        if explores:
            self._awaited[url] = rule
            if len(self._awaited) > AWAITED:
                del self._awaited[next(iter(self._awaited))]
        return explores

    def _is_trial(self, url: str, rule: str, key: str, explored: int, tried: bool) -> bool:
        if rule in self._looks and self._looks[rule].takes_next():
            return True
        if mmh3.hash(url, self._seed, signed=False) < self._below * self._times(rule, key, explored):
            return True
        if not self._share or rule in self._spelling or key.startswith(FAMILY):
            return False
        return self._budget(rule).asks(rule, explored, tried) or (not tried and self._spreading.asks(rule, url))

    def agreed(self, rules: Iterable[str], url: str) -> None:
        """Note a page that shows what another one of its key does, which these rules made."""
        for rule in rules:
            self._spreading.tried(rule, url, agreed=True)

    def differed(self, rule: str, url: str, explored: int) -> bool:
        """Count a trial that differed; true where fewer skips may rest on the rule by now than do.

        These are to be decided anew, and are counted anew.
        """
        self._spreading.tried(rule, url, agreed=False)
        return self._budget(rule).differed(rule, explored)

    def _is_spread(self, rule: Rule) -> bool:
        """Whether a rule is tried on each value that many of its skips have."""
        rests = rule.id in self._resting or rule.id in self._renaming or is_one_server(rule)
        return rests and not _is_spelling(rule)

    def _stated(self, rule: Rule) -> list[tuple[Place, str]]:
        """Return the folders that a rule renames, each with its place in the path."""
        context = rule.context if rule.id in self._renaming else ()
        return [(known.key.index, known.values[0]) for known in context if known.test == "is" and known.key.index >= 0]

    def _budget(self, rule: str) -> TrialBudget:
        return self._renaming if rule in self._renaming else self._resting

    def _times(self, rule: str, key: str, explored: int) -> float:
        """Return how many times as often as others a would-be skip is explored."""
        if rule in self._spelling:
            return SPELLING_TIMES
        if rule in self._trials and self._share:
            agreed = max(1, self._trials[rule] + explored)
            return min(YOUNG_TIMES, max(1, NOT_KNOWN / agreed / self._share))
        return FAMILY_TIMES if key.startswith(FAMILY) else 1


def _is_spelling(rule: Rule) -> bool:
    return bool(rule.transformation) and all(edit.op in SPELLING for edit in rule.transformation)


def _goes_from_any_page(rule: Rule) -> bool:
    """Whether a rule drops parameters, seen with `SEVERAL` values or more, on any path or beside any other parameter.

    A rule of one text, whatever that is, is such a rule, too (`_takes_any_text`).
    """
    if _takes_any_text(rule):
        return True
    if not all(edit.key.name or edit.op == "sort" for edit in rule.transformation):
        return False
    seen = {name for condition in rule.context if condition.test == "only" for name in condition.values}
    dropped = {edit.key.name for edit in rule.transformation if edit.op == "delete"} & seen
    asked = {condition.key.name: condition for condition in rule.context if condition.test not in {"only", "any"}}
    if not any(name not in asked or len(asked[name].values) >= SEVERAL for name in dropped):
        return False
    path = any(condition.key == Key() and condition.test in {"is", "in"} for condition in rule.context)
    return not path or bool(seen - dropped - asked.keys())


def _takes_any_text(rule: Rule) -> bool:
    """Whether a rule is of one text, whatever that is: a session in the path, a title beside the number that counts.

    Components that go together are one where any of them is any of several; so is the order of items.
    """
    few = {known.key for known in rule.context if known.test in {"is", "in", "within"} and len(known.values) < SEVERAL}
    if len(rule.transformation) > 1:
        gone = all(edit.op == "delete" and edit.key.is_of_path for edit in rule.transformation)
        return gone and not all(edit.key in few for edit in rule.transformation)
    if len(rule.transformation) != 1:
        return False
    (edit,) = rule.transformation
    if edit.op == "items":
        return edit.key not in few
    source = edit.source or edit.key
    cut = edit.op == "copy" and source.deep > 0 and replace(source, deep=0) == edit.key  # one deep token stays
    if edit.key.name:
        return cut
    if edit.key.start < 3 or not any(condition.test == "depth" for condition in rule.context):
        return False
    goes = edit.op == "delete" or (edit.op == "set" and edit.value == "*")
    return cut or (goes and not any(known.key == edit.key and known.test in {"is", "in"} for known in rule.context))
