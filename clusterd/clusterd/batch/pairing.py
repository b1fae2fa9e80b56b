"""`clusterd pairs`: all pairs of a collection above a threshold, by the paper's phases over every value of each sketch.

Unlike the stream it looks up all values and reads whole sketches (`resemblance`), so nothing is lost to postings.
Identical sketches are grouped first. What the sketches say is

- the answer, where the texts are not at hand: right to some .03 at r = .5, and .005 near 1;
- a sieve, where the collection can be read again: a pair passes that five standard deviations (`sieve`) could lift to
  the threshold, and the whole shingle sets of its documents decide. The ratios are exact then. For containment each
  document is also asked for the values of all the others' sketches, so that a passage is found in the longest book.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, product

import numpy as np
from clusterd_consumer.postings.keys import every_key
from clusterd_consumer.postings.scheme import DEFAULT
from clusterd_consumer.postings.stored import ordered
from clusterd_consumer.resemblance import EQUAL, Estimate, Reading, Values, estimate, read
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.sketch import PROFILES, Profile, Sketch, StreamSketch

from clusterd.batch.crowds import Crowd
from clusterd.batch.entries import Entries
from clusterd.batch.kept_sketches import RECENT, KeptSketches
from clusterd.batch.phases import COMMON, Keys, common_counts
from clusterd.batch.shingle_sets import ShingleSets
from clusterd.batch.sieve import reaches
from clusterd.clusters.identity import sketch_key

#: Sketches the documents at these places once more, keeping every shingle (`whole_profile`).
Again = Callable[[Collection[int]], Iterable[tuple[int, StreamSketch]]]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two documents of a collection, by their places in it (a < b), and how alike they are."""

    a: int
    b: int
    estimate: Estimate

    def measure(self, containment: bool) -> float:
        """Return the figure that a threshold is compared with."""
        return self.estimate.containment if containment else self.estimate.resemblance


def ranked(found: Iterable[Pair], containment: bool = False) -> Iterator[Pair]:
    """Yield pairs, the most alike first. They are sorted on disk: of pages that a template fills there are millions."""
    with Entries() as entries:
        for place, pair in enumerate(found):
            entries.add((-pair.measure(containment), place, pair.a, pair.b, *pair.estimate))
        for _, _, a, b, *ratios in entries.ascending():
            yield Pair(a, b, Estimate(*ratios))


def whole_profile(profile: Profile) -> Profile:
    """Return the profile that keeps every shingle where this one samples: MOD_1."""
    return Profile(profile.code, profile.name, profile.w, "mod", 1)


def pairs(
    sketches: Iterable[Sketch],
    threshold: float,
    containment: bool = False,
    *,
    again: Again | None = None,
    common: int | None = COMMON,
) -> Iterator[Pair]:
    """Yield the pairs whose resemblance (or larger containment) is at least the threshold.

    Estimated; counted where the documents can be read ``again``.
    """
    with KeptSketches() as kept:
        groups = _Groups(sketches, kept)
        if again is None:
            found = _estimated(groups, groups.sharing(common, threshold, containment, least=0))
        else:
            if containment:
                groups.look_beyond(again)
            sharing = groups.sharing(common, threshold, containment, least=threshold)
            passed = array("Q")
            for first, second in sharing:
                if _may_reach(groups.reading(first, second), threshold, containment):
                    passed.extend((first, second))
            found = _counted(groups, passed, again)
        yield from (pair for pair in found if pair.measure(containment) >= threshold)


class _Groups:
    """Documents by the identity of their sketches, and the identity of each document's text."""

    def __init__(self, sketches: Iterable[Sketch], kept: KeptSketches) -> None:
        groups: dict[tuple[int, bytes], list[int]] = {}
        self.sketches = kept
        self.profiles: list[Profile] = []
        self.texts: list[int] = []
        for place, sketch in enumerate(sketches):
            members = groups.setdefault((sketch.profile, sketch_key(sketch)), [])
            if not members:
                self.sketches.append(sketch.main)
                self.profiles.append(PROFILES[sketch.profile])
            members.append(place)
            self.texts.append(sketch.main.text)
        self.members = list(groups.values())
        #: Values that a group's documents hold beyond its sketch.
        self._beyond: dict[int, Values] = {}

    def look_beyond(self, again: Again) -> None:
        """Note which values of all the sketches a document holds that its own left out.

        A passage of 20 words in a book has no value in common with the book's sketch, and all of its own with the book.
        """
        sampled = np.unique(np.concatenate([np.empty(0, np.uint64), *map(_values, self.sketches)]))
        group_of = {place: number for (number, _), place in self.unread(range(len(self.members))).items()}
        for place, sketch in again(group_of) if group_of else ():
            held = _values(sketch)
            at = np.minimum(np.searchsorted(sampled, held), len(sampled) - 1)
            number = group_of[place]
            known = self._beyond.get(number, _values(self.sketches[number]))
            self._beyond[number] = np.union1d(known, held[sampled[at] == held])

    def sharing(
        self, common: int | None, threshold: float, containment: bool, least: float
    ) -> Iterator[tuple[int, int]]:
        """Yield the groups that share a value, and so many that they may be as much alike as ``least``.

        All the values that two sketches share are seen in their reading, and one of the two is seen whole in it. For
        containment (`look_beyond`) the values are counted that one document holds of the other's whole sketch, so that
        few say little of either. Those that are too common to be looked up are taken to be shared; of groups that may
        share nothing else, see `Crowd`.
        """
        sizes = np.array([len(sketch.values) // 8 for sketch in self.sketches])
        ignored: Counter[int] = Counter()
        blocks = common_counts(enumerate(map(self._keys, range(len(sizes)))), common, ignored=ignored)
        begun = next(blocks, None)  # from now on it is known what was ignored
        crowd = Crowd(self.sketches, self.profiles, ignored, threshold, containment, common or 0)
        unknown = np.zeros(len(sizes), np.int64)
        unknown[list(ignored)] = list(ignored.values())
        for firsts, seconds, counts in chain([begun] if begun else [], blocks):
            most = counts.astype(np.int64) + np.minimum(unknown[firsts], unknown[seconds])
            near = reaches(most, np.minimum(sizes[firsts], sizes[seconds]), least)
            near &= ~crowd.holds(firsts.astype(np.int64), seconds.astype(np.int64))
            for first, second in zip(firsts[near].tolist(), seconds[near].tolist(), strict=True):
                if self.profiles[first].code == self.profiles[second].code:
                    yield first, second
        yield from crowd.pairs()

    def _keys(self, number: int) -> Keys:
        profile, beyond = self.profiles[number], self._beyond.get(number)
        values = ordered(self.sketches[number], profile) if beyond is None else beyond
        return every_key(values, profile, DEFAULT).astype(np.uint32)

    def reading(self, first: int, second: int) -> Reading:
        """Return what the sketches of two groups show of their union."""
        return read(self.sketches[first], self.sketches[second], self.profiles[first])

    def within(self) -> Iterator[tuple[int, int]]:
        """Yield the places of two documents of one sketch; documents without a word resemble nothing."""
        for sketch, members in zip(self.sketches, self.members, strict=True):
            if sketch.shingles:
                yield from combinations(members, 2)

    def unread(self, numbers: Collection[int]) -> dict[tuple[int, int], int]:
        """Return the texts of these groups that their sketches do not hold whole: (group, text) → a place."""
        found: dict[tuple[int, int], int] = {}
        for number in numbers:
            if not self.sketches[number].complete:
                for place in self.members[number]:
                    found.setdefault((number, self.texts[place]), place)
        return found


def _estimated(groups: _Groups, sharing: Iterable[tuple[int, int]]) -> Iterator[Pair]:
    yield from (Pair(a, b, EQUAL) for a, b in groups.within())
    for first, second in sharing:
        found = estimate(groups.sketches[first], groups.sketches[second], groups.profiles[first])
        for a, b in product(groups.members[first], groups.members[second]):
            yield Pair(a, b, found) if a < b else Pair(b, a, found.turned())


def _counted(groups: _Groups, passed: Sequence[int], again: Again) -> Iterator[Pair]:
    """Count what passed the sieve, two groups after two, and the pairs within a group.

    By the whole sets of the texts that show them.
    """
    several = (n for n, members in enumerate(groups.members) if len({groups.texts[place] for place in members}) > 1)
    asked = set(passed)
    held = groups.unread(asked.union(several))
    with ShingleSets() as sets:
        for place, sketch in again(held.values()) if held else ():
            if sketch.text != groups.texts[place]:
                raise _changed(place, "is another")
            sets.put(place, sketch.values)
        if missing := [place for place in held.values() if place not in sets]:
            raise _changed(min(missing), "is not there")
        group_of = {place: number for number, members in enumerate(groups.members) for place in members}
        for number in asked:
            if groups.sketches[number].complete:
                sets.put(groups.members[number][0], groups.sketches[number].values)

        compare = lru_cache(RECENT)(sets.compare)  # many documents of a group may have one text

        def counted(a: int, b: int) -> Estimate:
            first, second = (held.get((group_of[p], groups.texts[p]), groups.members[group_of[p]][0]) for p in (a, b))
            return EQUAL if first == second else compare(first, second)

        yield from (Pair(a, b, counted(a, b)) for a, b in groups.within())
        for first, second in zip(passed[::2], passed[1::2], strict=True):
            for one, other in product(groups.members[first], groups.members[second]):
                a, b = min(one, other), max(one, other)
                yield Pair(a, b, counted(a, b))


def _changed(place: int, how: str) -> WrongInput:
    return WrongInput(f"document {place + 1} {how} at the second reading; let the file stay as it is")


def _may_reach(seen: Reading, threshold: float, containment: bool) -> bool:
    """Return whether the truth may reach the threshold, given the sample that was seen."""
    rests = (seen.only_a, seen.only_b) if containment else (seen.only_a + seen.only_b,)
    return any(reaches(seen.common, seen.common + rest, threshold) for rest in rests)


def _values(sketch: StreamSketch) -> Values:
    return np.frombuffer(sketch.values, "<u8").astype(np.uint64)
