"""Pairwise rules: what turns a source URL into a target URL of its cluster (Koppula et al. 2010, algorithm 3).

The context is the source; the transformation lists what differs: deletions, additions, key references, value
conversions and literals. Cost: linear in the tokens of the two URLs.

Chosen where the paper is silent:
  A10  a key whose value is equal is not listed; then a conversion of the same key, a reference to another key, a
       conversion of another key, and last a literal, an addition or a deletion.
  A10b a reference is taken at once only where its value stands once in the source and has `SURE` characters; others are
       noted as candidates, which `targets` confirms across clusters.
  A11  components are aligned by their common prefix and suffix; what lies between is deleted and added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from clusterd.learning.koppula.tokenize import Slot, Tokens, whole

Op = Literal["delete", "set", "copy", "lower", "upper", "encode", "decode", "keep", "family"]

#: A shared value shorter than this (1, en) matches by accident.
SURE = 3


class Change(NamedTuple):
    """What happens to one key. ``source`` is the key that a reference or a conversion reads (None: the key itself)."""

    op: Op
    value: str = ""
    source: Slot | None = None


DELETE = Change("delete")
Transformation = tuple[tuple[Slot, Change], ...]

Conversions = tuple[tuple[Op, Callable[[str], str]], ...]
CONVERSIONS: Conversions = (
    # ASCII only: servers that fold case fold no more (A12).
    ("lower", lambda value: value.lower() if value.isascii() else value),
    ("upper", lambda value: value.upper() if value.isascii() else value),
    ("encode", lambda value: quote(value, safe="")),
    ("decode", unquote),
)


@dataclass(frozen=True, slots=True)
class PairwiseRule:
    """Context and transformation of one pair; ``cluster`` is where it comes from."""

    context: Tokens
    changes: Transformation
    cluster: int = 0
    #: Literals that may be references: (key, the source's keys with that value).
    candidates: tuple[tuple[Slot, tuple[Slot, ...]], ...] = ()


def pairwise_rule(source: Tokens, target: Tokens, cluster: int = 0) -> PairwiseRule:
    """GeneratePairwiseRule: the rule that turns ``source`` into ``target``."""
    found: dict[Slot, Change] = {}
    candidates: list[tuple[Slot, tuple[Slot, ...]]] = []
    for slot, mine, value in _differences(source, target):
        if value is None:
            found[slot] = DELETE
            continue
        change, possible = _explain(source, slot, mine, value)
        found[slot] = change
        if possible:
            candidates.append((slot, possible))
    return PairwiseRule(source, tuple(sorted(found.items())), cluster, tuple(candidates))


def _differences(source: Tokens, target: Tokens) -> Iterator[tuple[Slot, str | None, str | None]]:
    """Yield (key, value in the source, value in the target) where they differ, after alignment."""
    mine, theirs = _components(source), _components(target)
    yield from _aligned(mine, theirs)
    for slot, value in source.items():
        if slot[0]:
            other = target.get(slot)
            if other is None and _moved(slot, target):
                other = _joined(slot, target)
                if other == value:
                    continue
            if other != value:
                yield slot, value, other
    for slot, value in target.items():
        if slot[0] and slot not in source and not _moved(slot, source):
            yield slot, None, value


def _moved(slot: Slot, tokens: Tokens) -> bool:
    """Whether a query key is there, but cut into deep tokens otherwise."""
    return any(other[:3] == slot[:3] for other in tokens)


def _joined(slot: Slot, tokens: Tokens) -> str:
    return "".join(value for other, value in tokens.items() if other[:3] == slot[:3])


_Component = list[tuple[Slot, str]]


def _components(tokens: Tokens) -> list[_Component]:
    """Return the path's components (scheme and host first), each a list of its deep tokens."""
    components: list[_Component] = []
    last = 0
    for slot, value in tokens.items():
        if slot[0]:
            continue
        if slot[1] != last:
            components.append([])
            last = slot[1]
        components[-1].append((slot, value))
    return components


def _aligned(mine: Sequence[_Component], theirs: Sequence[_Component]) -> Iterator[tuple[Slot, str | None, str | None]]:
    """Yield the differences of two paths: the middle, between common prefix and suffix, is replaced."""
    values = [[value for _, value in component] for component in mine]
    others = [[value for _, value in component] for component in theirs]
    if len(values) == len(others):
        for component, other, left, right in zip(mine, theirs, values, others, strict=True):
            if left != right:
                yield from _deep_aligned(component, other)
        return
    low, high = common_ends(values, others)
    for component in mine[low : len(mine) - high]:
        for slot, value in component:
            yield slot, value, None
    for component in theirs[low : len(theirs) - high]:
        for slot, value in component:
            yield slot, None, value


def _deep_aligned(mine: _Component, theirs: _Component) -> Iterator[tuple[Slot, str | None, str | None]]:
    """Yield the differences of one component in both URLs, by deep token."""
    if len(mine) == len(theirs):
        for (slot, value), (_, other) in zip(mine, theirs, strict=True):
            if value != other:
                yield slot, value, other
        return
    if len(mine) == 1 or len(theirs) == 1 or whole(mine[0][0]) != whole(theirs[0][0]):
        yield whole(mine[0][0]), "".join(v for _, v in mine), "".join(v for _, v in theirs)
        return
    low, high = common_ends([v for _, v in mine], [v for _, v in theirs])
    for slot, value in mine[low : len(mine) - high]:
        yield slot, value, None
    for slot, value in theirs[low : len(theirs) - high]:
        yield slot, None, value


def common_ends(left: Sequence[object], right: Sequence[object]) -> tuple[int, int]:
    """Return the lengths of the common prefix and, of what is left, the common suffix."""
    shorter = min(len(left), len(right))
    low = next((n for n in range(shorter) if left[n] != right[n]), shorter)
    high = next((n for n in range(shorter - low) if left[-1 - n] != right[-1 - n]), shorter - low)
    return low, high


def _explain(source: Tokens, slot: Slot, mine: str | None, value: str) -> tuple[Change, tuple[Slot, ...]]:
    """Return the change that gives ``slot`` the target's value, and references that may explain it."""
    conversions = CONVERSIONS if mine == value else _possible(value)
    if mine is not None:
        for op, convert in conversions:
            if convert(mine) == value:
                return Change(op), ()
    same = tuple(other for other, found in source.items() if found == value and other != slot and not _constant(other))
    if len(same) == 1 and len(value) >= SURE:
        return Change("copy", source=same[0]), ()
    if not same and len(value) >= SURE:
        for op, convert in conversions:
            found = [other for other, own in source.items() if other != slot and convert(own) == value]
            if len(found) == 1 and not _constant(found[0]):
                return Change(op, source=found[0]), ()
    return Change("set", value), same


def _possible(value: str) -> Conversions:
    """Return the conversions that can give a value which another key does not have: to ask all of all keys is slow."""
    ops: set[Op] = {"decode", "lower" if value.islower() else "upper"}
    if "%" in value:
        ops.add("encode")
    return tuple([conversion for conversion in CONVERSIONS if conversion[0] in ops])


def _constant(slot: Slot) -> bool:
    """Scheme and host explain nothing about a path or a query."""
    return not slot[0] and slot[1] <= 2
