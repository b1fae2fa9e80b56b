"""A rule's conditions as functions of a `Url`: compiled once, run for every URL. No regular expressions.

A ``like`` pattern is literals, ``*`` and ``#``; it is matched from both ends, each literal between at its first place
from the left, so that the time is linear and nothing backtracks. The deep tokens of a component (Koppula et al. 2010,
section 3.1.2) are then the runs of its literals and the texts of its stars, counted from 1. ``numbered`` is read from
the end, and cuts a value into four.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from clusterd_crawler.rules import FIRST_COMPONENT, Condition, Key
from clusterd_crawler.urls import Url, in_query

Check = Callable[[Url], bool]
Reader = Callable[[Url], str | None]
#: Where the deep tokens of a value begin and end; None where it has not the form that they are defined for.
Tokens = Callable[[str], list[tuple[int, int]] | None]

#: A run of one kind (definition 3, a capital with the small letters after it taken as one run) or one delimiter.
RUN: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|.", re.DOTALL)

#: Stands in a pattern for a decimal number (no component or value has it: it begins the fragment).
NUMBER: Final = "#"


def no_tokens(value: str) -> None:
    """Find no deep token: no condition says what they are."""


def read_key(key: Key, tokens: Tokens = no_tokens) -> Reader:
    """Return the function that reads a key: its value, "" for a query key without one, None where it is absent.

    ``tokens``: the deep tokens of the component (`deep_tokens`), for a key that means one of them.
    """
    whole = _read_component(key) if not key.name else _read_named(key)
    if not (key.deep or key.deep_end):
        return whole

    def read_deep(url: Url) -> str | None:
        value = whole(url)
        spans = None if value is None else tokens(value)
        at = spans and deep_index(key, len(spans))
        return value[slice(*spans[at - 1])] if value is not None and spans and at else None

    return read_deep


def deep_index(key: Key, count: int) -> int:
    """Return the number of the deep token that a key means among ``count``, or 0 where there is none."""
    if key.deep:
        agrees = not key.deep_end or key.deep + key.deep_end == count + 1
        return key.deep if key.deep <= count and agrees else 0
    return count + 1 - key.deep_end if 0 < key.deep_end <= count else 0


def _read_named(key: Key) -> Reader:
    name, occurrence = key.name, key.occurrence

    def read_query(url: Url) -> str | None:
        left = occurrence
        for known, value in url.query:
            if known == name:
                left -= 1
                if not left:
                    return value or ""
        return None

    def read_matrix(url: Url) -> str | None:
        parameters = url.matrix or []
        index = parameter_index(key, parameters)
        return None if index < 0 else parameters[index][2] or ""

    return read_matrix if name.startswith(";") else read_query


def parameter_index(key: Key, parameters: Sequence[tuple[Any, ...]]) -> int:
    """Return the index in a URL's query, or in its ``matrix``, of the parameter that a key means; -1: there is none."""
    name, left = key.name, key.occurrence
    for index, parameter in enumerate(parameters):
        if parameter[-2] == name:  # before its value
            left -= 1
            if not left:
                return index
    return -1


def component_index(key: Key, url: Url) -> int:
    """Return the index in ``url.path`` of the component that a key means; -1 where there is none."""
    depth = len(url.path)
    if key.start:
        index = key.start - FIRST_COMPONENT
        if key.end and index != depth - key.end:
            return -1
    else:
        index = depth - key.end
    return index if 0 <= index < depth else -1


def _read_component(key: Key) -> Reader:
    start, end = key.start, key.end
    if start in {1, 2}:
        # k(1,y) and k(2,y) count the host and the scheme with the path components.
        def read_head(url: Url) -> str | None:
            if end and end + start != len(url.path) + 3:
                return None
            return url.scheme if start == 1 else url.authority

        return read_head
    if not start and not end:
        return lambda url: "/".join(url.path)

    def read_part(url: Url) -> str | None:
        index = component_index(key, url)
        return url.path[index] if index >= 0 else None

    return read_part


def compile_condition(condition: Condition) -> Check:
    """Return the function that tells whether a condition holds."""
    test, values = condition.test, condition.values
    if test == "depth":
        depths = frozenset(map(int, values))
        return lambda url: len(url.path) in depths
    if test == "only":
        names = frozenset(values)
        return lambda url: (
            all(pair[0] in names for pair in url.query)
            and (url.matrix is None or all(entry[1] in names for entry in url.matrix))
        )
    key = condition.key
    read = read_key(key)
    if test == "is":
        return _check_is(key, values[0], read)
    if test == "in":
        accepted = frozenset(values)
        return lambda url: read(url) in accepted
    if test == "within":
        allowed = frozenset([*values, None])
        return lambda url: read(url) in allowed
    if test == "any":
        return (
            _has_query(key.name) if key == Key(key.name) and in_query(key.name) else lambda url: read(url) is not None
        )
    if test == "some":
        return lambda url: bool(read(url))
    if test == "absent":
        return lambda url: read(url) is None
    if test == "numbered":
        found = deep_tokens(condition)
        return lambda url: (value := read(url)) is not None and found(value) is not None
    pattern = values[0]
    return lambda url: (value := read(url)) is not None and stars(pattern, value) is not None


def _has_query(name: str) -> Check:
    def has(url: Url) -> bool:
        for known, _ in url.query:  # noqa: SIM110 - a generator costs twice as much, for every rule looked at
            if known == name:
                return True
        return False

    return has


def _check_is(key: Key, value: str, read: Reader) -> Check:
    if key.start > 2 and not key.end:
        index = key.index
        return lambda url: len(url.path) > index and url.path[index] == value
    return lambda url: read(url) == value


def stars(pattern: str, value: str) -> list[tuple[int, int]] | None:
    """Return where each ``*`` of a pattern, and each ``#``, lies in a value that matches, else None.

    >>> stars("friends-*", "friends-lttU7d6kIuGq"), stars("a*c", "ab")
    ([(8, 20)], None)
    >>> stars("p#-*", "p12-a"), stars("p#-*", "pa-12"), stars("p#-#", "p12-*")
    ([(1, 3), (4, 5)], None, [(1, 3), (4, 5)])
    """
    if NUMBER not in pattern:
        return _stars(pattern, value)
    found = _stars(pattern.replace(NUMBER, "*"), value)
    marks = [mark for mark in pattern if mark in {NUMBER, "*"}]
    texts = [(mark, value[start:end]) for mark, (start, end) in zip(marks, found or (), strict=bool(found))]
    return found if all(mark == "*" or text == "*" or _is_number(text) for mark, text in texts) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _stars(pattern: str, value: str) -> list[tuple[int, int]] | None:
    first, *rest = pattern.split("*")
    if not rest:
        return [] if first == value else None
    if not value.startswith(first) or not value.endswith(rest[-1]) or len(value) < len(first) + len(rest[-1]):
        return None
    found: list[tuple[int, int]] = []
    at, limit = len(first), len(value) - len(rest[-1])
    for literal in rest[:-1]:
        place = value.find(literal, at, limit)
        if place < 0:
            return None
        found.append((at, place))
        at = place + len(literal)
    found.append((at, limit))
    return found


def deep_tokens(condition: Condition) -> Tokens:
    """Return the function that finds the deep tokens which a condition defines: ``like`` or ``numbered``."""
    if condition.test == "numbered":
        delimiter, ending, *digits = condition.values
        fewest = int(digits[0]) if digits else 1
        return lambda value: number_spans(delimiter, ending, value, fewest)
    pattern = condition.values[0]
    return lambda value: deep_spans(pattern, value)


def number_spans(delimiter: str, ending: str, value: str, fewest: int = 1) -> list[tuple[int, int]] | None:
    """Return where lie what stands before the delimiter, it, the number (of so many digits) behind it, and the ending.

    >>> number_spans("-", ".html", "a-1-23.html"), number_spans("-", "", "a-b"), number_spans("-", "", "a-23", 3)
    ([(0, 3), (3, 4), (4, 6), (6, 11)], None, None)
    """
    if not value.endswith(ending):
        return None
    ends = len(value) - len(ending)
    begins = len(value[:ends].rstrip("0123456789"))
    before = begins - len(delimiter)
    if ends - begins < max(1, fewest) or before < 0 or not value.startswith(delimiter, before):
        return None
    return [(0, before), (before, begins), (begins, ends), (ends, len(value))]


def deep_spans(pattern: str, value: str) -> list[tuple[int, int]] | None:
    """Return where the deep tokens of a value lie: the runs of the pattern's literals and the text of each star."""
    found = stars(pattern, value)
    if found is None:
        return None
    spans: list[tuple[int, int]] = []
    at = 0
    for start, end in [*found, (len(value), len(value))]:
        spans += [(at + run.start(), at + run.end()) for run in RUN.finditer(value[at:start])]
        if end > start or start < len(value):
            spans.append((start, end))
        at = end
    return spans
