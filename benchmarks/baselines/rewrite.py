"""Rewrite rules (Dasgupta, Kumar, Sasturkar, KDD 2008), as the paper that we implement describes and compares them.

A URL is a function from keys (positions from the start, query names) to values; a rule has the source as context and
lists for each key of the target a reference, a literal or nothing. All pairs of a cluster make rules (here at most
`PAIRS` of them at random: their way is quadratic). Heuristic generalization: a key that takes more than `FAN_OUT`
values over the rules of one transformation becomes a wildcard, in the context and, where it is replaced, in the
transformation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from random import Random

from clusterd.learning.koppula.tokenize import Slot, UrlParts, in_view, split_url, tokenize

from benchmarks.baselines.contract import Clusters

FAN_OUT, PAIRS, SURE = 30, 100, 3
ANY = "*"

Url = dict[Slot, str]
#: key → ("ref", key) or ("set", literal) or ("del", "").
Changes = tuple[tuple[Slot, tuple[str, Slot | str]], ...]
Shape = tuple[tuple[Slot, ...], Changes]


def _url(url: str) -> Url:
    return {in_view(slot, "start"): value for slot, value in tokenize(url).items()}


def _changes(source: Url, target: Url) -> Changes:
    changes: dict[Slot, tuple[str, Slot | str]] = {slot: ("del", "") for slot in source if slot not in target}
    places: dict[str, list[Slot]] = defaultdict(list)
    for slot, value in source.items():
        places[value].append(slot)
    for slot, value in target.items():
        if source.get(slot) == value:
            continue
        found = places.get(value, ())
        changes[slot] = ("ref", found[0]) if len(found) == 1 and len(value) >= SURE else ("set", value)
    return tuple(sorted(changes.items(), key=repr))


class Rewrite:
    """The learned rules, filed by the keys that a URL has and by which of them are wildcards."""

    def __init__(self, train: Clusters, seed: int = 0) -> None:
        pairs: list[tuple[Url, Changes]] = []
        random = Random(seed)
        for cluster in train:
            urls = [_url(url) for url in cluster]
            pairs += [(source, _changes(source, target)) for source, target in _pairs(urls, random)]
        shapes: dict[Shape, list[tuple[Url, Changes]]] = defaultdict(list)
        for source, changes in pairs:
            if changes:
                shapes[_shape(source, changes)].append((source, changes))
        self.filed: dict[tuple[Slot, ...], dict[tuple[Slot, ...], dict[tuple[str, ...], set[Changes]]]] = {}
        self.rules = 0
        for (keys, _), members in shapes.items():
            self._file(keys, members)

    def _file(self, keys: tuple[Slot, ...], members: Sequence[tuple[Url, Changes]]) -> None:
        wild_literals = _wild_literals(members)
        classes: dict[Changes, list[Url]] = defaultdict(list)
        for source, changes in members:
            classes[tuple((s, ("set", ANY) if s in wild_literals else c) for s, c in changes)].append(source)
        for changes, sources in classes.items():
            fixed = tuple(slot for slot in keys if len({source[slot] for source in sources}) <= FAN_OUT)
            table = self.filed.setdefault(keys, {}).setdefault(fixed, {})
            for values in {tuple(source[slot] for slot in fixed) for source in sources}:
                table.setdefault(values, set()).add(changes)
                self.rules += 1

    def rewrites(self, url: str) -> Iterator[tuple[Hashable, str]]:
        """Yield each rule that applies, with its result."""
        tokens = _url(url)
        keys = tuple(sorted(tokens))
        for fixed, table in self.filed.get(keys, {}).items():
            values = tuple(tokens[slot] for slot in fixed)
            for changes in table.get(values, ()):
                yield (keys, fixed, values, changes), _apply(tokens, changes)


def _pairs(urls: Sequence[Url], random: Random) -> list[tuple[Url, Url]]:
    if len(urls) * (len(urls) - 1) <= PAIRS:
        return [(source, target) for source in urls for target in urls if source is not target]
    found = (random.sample(list(urls), 2) for _ in range(PAIRS))
    return [(source, target) for source, target in found]


def _shape(source: Url, changes: Changes) -> Shape:
    keys = tuple(sorted(source))
    return keys, tuple(
        (slot, ("set", ANY) if change[0] == "set" and slot in source else change) for slot, change in changes
    )


def _wild_literals(members: Sequence[tuple[Url, Changes]]) -> set[Slot]:
    values: dict[Slot, set[Slot | str]] = defaultdict(set)
    for source, changes in members:
        for slot, (op, value) in changes:
            if op == "set" and slot in source:
                values[slot].add(value)
    return {slot for slot, found in values.items() if len(found) > FAN_OUT}


def _apply(tokens: Url, changes: Changes) -> str:
    result = dict(tokens)
    for slot, (op, value) in changes:
        if op == "del":
            result.pop(slot, None)
        else:
            result[slot] = tokens[value] if op == "ref" and isinstance(value, tuple) else str(value)
    path = [result[slot] for slot in sorted(slot for slot in result if not slot[0])]
    query = tuple((slot[0][1:], value) for slot, value in result.items() if slot[0])
    return UrlParts(path[0], path[1], tuple(path[2:]), query).text(sort=True) if len(path) > 1 else split_url("").text()
