"""What holds of a URL's path, as include patterns of url-matcher say it: prefixes of characters, ``*`` and ``|``.

A path is a list of components, of which a rule may fix some from the start (`Context.start`), some from the end
(`Context.end`), their number (`Context.depth`), or all (`Context.whole`). `paths` returns patterns that together hold
exactly where the conditions do, or raises `Inexpressible`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Final

from clusterd_crawler.rule_language.conditions import compile_condition
from clusterd_crawler.rules import Condition
from clusterd_crawler.urls import Url

#: Most includes that one rule may take.
INCLUDES_LIMIT: Final = 64

#: Tests that hold only where their component is there.
PRESENT: Final = frozenset({"is", "in", "any", "some", "like", "numbered"})


class Inexpressible(Exception):
    """A rule that the format cannot say; the text is the reason."""


@dataclass(slots=True)
class Context:
    """A rule's context, sorted by what the format can say of it."""

    scheme: str = ""
    #: Conditions on path components, by index from the start (0 = first) and from the end (1 = last).
    start: dict[int, Condition] = field(default_factory=dict)
    end: dict[int, Condition] = field(default_factory=dict)
    depth: int = 0
    #: The values of the whole path, where they are given.
    whole: Sequence[str] = ()
    query: dict[str, Condition] = field(default_factory=dict)


def take_path(context: Context, on_path: Sequence[Condition]) -> None:
    """Enter the conditions on the path into a context."""
    whole = [c for c in on_path if not c.key.start and not c.key.end and c.test != "depth"]
    if whole:
        context.whole = _whole(whole, on_path)
        return
    for condition in on_path:
        _put_path(context, condition)
    least = _least(context)
    for index in [index for index, condition in context.start.items() if condition.test == "absent"]:
        if least < index:
            raise Inexpressible(f"a path of at most {index} components")
        _put_depth(context, index)
        del context.start[index]
    for end, condition in (*context.end.items(),) if context.depth else ():
        _put_once(context.start, context.depth - end, condition)
        del context.end[end]


def _least(context: Context) -> int:
    """Return how many components the conditions ask for."""
    start = (index + 1 for index, condition in context.start.items() if condition.test in PRESENT)
    end = (index for index, condition in context.end.items() if condition.test in PRESENT)
    return max((*start, *end), default=0)


def _whole(given: Sequence[Condition], on_path: Iterable[Condition]) -> list[str]:
    """Return those of the given paths for which all conditions on the path hold."""
    first = given[0]
    if first.test not in {"is", "in"} or any("*" in path or "|" in path or ";" in path for path in first.values):
        raise Inexpressible(f"a condition on the path as a whole: {first}")
    checks = [compile_condition(condition) for condition in on_path]
    paths = [path for path in first.values if all(check(Url("", "", path.split("/"), [])) for check in checks)]
    if not paths:
        raise Inexpressible("conditions on the path that never hold together")
    return paths


def _put_path(context: Context, condition: Condition) -> None:
    key = condition.key
    if condition.test == "depth":
        if len(condition.values) > 1:
            raise Inexpressible("one of several numbers of path components")
        _put_depth(context, int(condition.values[0]))
        return
    if key.start and key.end:
        _put_depth(context, key.index + key.end)
    _put_once(context.start, key.index, condition) if key.start else _put_once(context.end, key.end, condition)


def _put_depth(context: Context, depth: int) -> None:
    if not depth or context.depth not in {0, depth}:
        raise Inexpressible("conditions on the path that never hold together")
    context.depth = depth


def _put_once(conditions: dict[int, Condition], place: int, condition: Condition) -> None:
    if conditions.setdefault(place, condition) != condition:
        raise Inexpressible(f"two conditions on one component: {conditions[place]} and {condition}")


def paths(context: Context) -> list[str]:
    """Return the path patterns that together hold exactly where the conditions on the path do."""
    found = list(islice(_paths(context), INCLUDES_LIMIT + 1))
    if len(found) > INCLUDES_LIMIT:
        raise Inexpressible(f"more than {INCLUDES_LIMIT} paths")
    return found


def _paths(context: Context) -> Iterator[str]:
    head, least = _run(context.start, 0)
    tail, least_end = _run(context.end, 1)
    if context.whole:
        yield from (f"/{path}|" for path in context.whole)
    elif context.depth:
        if least > context.depth:  # (those from the start are in a row)
            raise Inexpressible("conditions on the path that never hold together")
        if len(head) != context.depth or any(c.test == "like" for c in context.start.values()):
            raise Inexpressible("a number of path components, without the value of each")
        yield from (f"/{'/'.join(values)}|" for values in _each(head))
    elif not tail:
        for values in _each(head):
            yield from _beginning(values, max(least, least_end), context)
    elif least > len(head) or (head and least_end > len(tail)):
        raise Inexpressible("conditions on the path from both ends, with gaps")
    else:
        for values in _each([*head, *reversed(tail)]):
            yield from _between(values[: len(head)], values[len(head) :], least_end - len(tail))


def _each(components: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield every choice of one value a component; no more are looked at than may be written out."""
    return product(*(values[: INCLUDES_LIMIT + 1] for values in components))


def _run(conditions: dict[int, Condition], first: int) -> tuple[list[Sequence[str]], int]:
    """Return the values of the components that are fixed, from one end on, and how many components there must be."""
    fixed: list[Sequence[str]] = []
    for number, (index, condition) in enumerate(sorted(conditions.items())):
        in_a_row = index == number + first
        if condition.test == "any" and in_a_row:
            continue
        if condition.test not in {"is", "in", "like"} or not in_a_row or len(fixed) < number:
            raise Inexpressible(f"a condition on the path that patterns cannot say: {condition}")
        if condition.test == "like" and (number + 1 < len(conditions) or not _open(condition.values[0], first)):
            raise Inexpressible(f"a pattern inside the path: {condition}")
        if condition.test != "like" and any("*" in value or "|" in value for value in condition.values):
            raise Inexpressible(f"a literal * or | in the path: {condition}")
        fixed.append(condition.values)
    return fixed, len(conditions)


def _open(pattern: str, first: int) -> bool:
    """Whether a pattern has its one star at the open end of what is fixed, where it cannot swallow a slash."""
    bare = pattern.removesuffix("*") if first == 0 else pattern.removeprefix("*")
    return len(bare) + 1 == len(pattern) and "*" not in bare and "|" not in bare


def _beginning(head: Sequence[str], least: int, context: Context) -> Iterator[str]:
    """Yield the paths of at least so many components that begin so."""
    stem = "/" + "/".join(head)
    if head and context.start[len(head) - 1].test == "like":
        yield stem.removesuffix("*")
    elif not head:
        yield "/" + "*/" * (least - 1)
    elif least > len(head):
        yield f"{stem}/" + "*/" * (least - len(head) - 1)
    else:
        yield f"{stem}/"
        yield f"{stem}|"


def _between(head: Sequence[str], tail: Sequence[str], more: int) -> Iterator[str]:
    """Yield the paths that begin and end so, with so many components more or with whatever lies between."""
    start, end = "".join(f"/{part}" for part in head), "".join(f"/{part}" for part in tail)
    if tail[0].startswith("*"):
        if head:
            raise Inexpressible("conditions on the path from both ends, one of them a pattern")
        yield f"{end}|"
        return
    yield f"{start}{'/*' * max(1, more)}{end}|"
    if more:
        return
    yield f"{start}{end}|"
    for shared in range(1, min(len(head), len(tail)) + 1):
        if tuple(head[-shared:]) == tuple(tail[:shared]):
            yield start + "".join(f"/{part}" for part in tail[shared:]) + "|"
