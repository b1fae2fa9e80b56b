"""Pairwise rules: what turns a source URL into a target URL of its cluster (Koppula et al. 2010, algorithm 3).

The context is the source; the transformation lists what differs: deletions, additions, key references, value
conversions and literals. Cost: linear in the tokens of the two URLs.

Chosen where the paper is silent:
  A10  a key whose value is equal is not listed; then a conversion of the same key, a reference to another key, a
       conversion of another key, and last a literal, an addition or a deletion.
  A10b a reference is taken at once only where its value stands once in the source and has `SURE` characters; others are
       noted as candidates, which `targets` confirms across clusters.
  A11  components, and deep tokens of unequal number, are aligned by their common prefix and suffix; what lies between
       is deleted and added. Where the target has more, what is behind the additions is renumbered: it is added too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from clusterd.learning.koppula.tokenize import Slot, Tokens

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
        change, possible = _explain(source, mine, value)
        found[slot] = change
        if possible:
            candidates.append((slot, possible))
    return PairwiseRule(source, tuple(sorted(found.items())), cluster, tuple(candidates))


def _differences(source: Tokens, target: Tokens) -> Iterator[_Difference]:
    """Yield (key, value in the source, value in the target) where they differ, after alignment."""
    (path, query), (other_path, other_query) = _parted(source), _parted(target)
    if len(path) == len(other_path):
        for mine, theirs in zip(path, other_path, strict=True):
            yield from _deep_aligned(mine, theirs)
    else:
        yield from _realigned(path, other_path)
    for key, mine in query.items():
        yield from _deep_aligned(mine, other_query[key]) if key in other_query else _realigned([mine], [])
    for key, theirs in other_query.items():
        if key not in query:
            yield from _realigned([], [theirs])


#: (key, value in the source, value in the target): None where it has no such key.
_Difference = tuple[Slot, str | None, str | None]
#: A path component or query key: its deep tokens, or itself as the only one.
_Component = list[tuple[Slot, str]]


def _parted(tokens: Tokens) -> tuple[list[_Component], dict[tuple[object, ...], _Component]]:
    """Return the path's components (scheme and host first), and the query's keys."""
    path: dict[tuple[object, ...], _Component] = {}
    query: dict[tuple[object, ...], _Component] = {}
    for slot, value in tokens.items():
        (query if slot[0] else path).setdefault(slot[:3], []).append((slot, value))
    return list(path.values()), query


def _text(component: _Component) -> str:
    return "".join([value for _, value in component])


def _realigned(mine: Sequence[_Component], theirs: Sequence[_Component]) -> Iterator[_Difference]:
    """Yield the differences of two sequences: the middle, between common prefix and suffix, is deleted and added.

    More additions than deletions renumber the keys behind them, so that the suffix is then written anew.
    """
    low, high = common_ends([_text(component) for component in mine], [_text(component) for component in theirs])
    if len(theirs) > len(mine):
        high = 0
    for component in mine[low : len(mine) - high]:
        for slot, value in component:
            yield slot, value, None
    for component in theirs[low : len(theirs) - high]:
        for slot, value in component:
            yield slot, None, value


def _deep_aligned(mine: _Component, theirs: _Component) -> Iterator[_Difference]:
    """Yield the differences of one component or query key in both URLs, by deep token."""
    value, other = _text(mine), _text(theirs)
    if value == other:
        return
    if len(mine) == 1:
        yield mine[0][0], value, other
    elif len(mine) == len(theirs):
        for (slot, value), (_, other) in zip(mine, theirs, strict=True):
            if value != other:
                yield slot, value, other
    else:
        yield from _realigned([[token] for token in mine], [[token] for token in theirs])


def common_ends(left: Sequence[object], right: Sequence[object]) -> tuple[int, int]:
    """Return the lengths of the common prefix and, of what is left, the common suffix."""
    shorter = min(len(left), len(right))
    low = next((n for n in range(shorter) if left[n] != right[n]), shorter)
    high = next((n for n in range(shorter - low) if left[-1 - n] != right[-1 - n]), shorter - low)
    return low, high


def _explain(source: Tokens, mine: str | None, value: str) -> tuple[Change, tuple[Slot, ...]]:
    """Return the change that gives a key the target's value, and references that may explain it."""
    conversions = _possible(value)
    if mine is not None:
        for op, convert in conversions:
            if convert(mine) == value:
                return Change(op), ()
    same = tuple(other for other, found in source.items() if found == value and not _constant(other))
    if len(same) == 1 and len(value) >= SURE:
        return Change("copy", source=same[0]), ()
    if not same and len(value) >= SURE:
        for op, convert in conversions:
            found = [other for other, own in source.items() if convert(own) == value]
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
