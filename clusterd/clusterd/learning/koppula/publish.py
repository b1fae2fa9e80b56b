"""A learned rule as the rule that crawls load (`clusterd_crawler.rules`), where that can say it.

A published rule's edits run one after the other on the URL as it is then, so they are ordered: what is written first
(from the start of the path on, since a component can only be appended), then deletions, the last component first.
Deep tokens become one ``like`` pattern a component. What cannot be said that way is not published: None, never an
approximation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from clusterd_crawler.rule_language.conditions import deep_spans
from clusterd_crawler.rules import Condition, Edit, Key, Rule, rule_id

from clusterd.learning.koppula.generalize import ANY, Context, standing
from clusterd.learning.koppula.pairwise import DELETE, Change, Transformation
from clusterd.learning.koppula.tokenize import Slot, key_of, whole

_DeepTests = dict[Slot, str | None]


def published(host: str, context: Context, changes: Transformation) -> Rule | None:
    """Return the rule without its figures, or None where it cannot be expressed."""
    wholes, deep = _sorted_out(standing(context, changes))
    patterns = {slot: _pattern(tests) for slot, tests in deep.items()}
    edits = _edits(changes, {slot for slot, _ in wholes} | set(patterns), deep, patterns)
    if not edits:
        return None
    conditions = [_condition(slot, test) for slot, test in wholes]
    conditions += [Condition(key_of(slot), "like", (pattern,)) for slot, pattern in patterns.items()]
    told = tuple(conditions)
    return Rule(id=rule_id(host, told, edits), host=host, context=told, transformation=edits)


def _sorted_out(context: Context) -> tuple[list[tuple[Slot, str | None]], dict[Slot, _DeepTests]]:
    """Part the conditions on whole components from those on deep tokens; the rule's host says scheme and host."""
    wholes: list[tuple[Slot, str | None]] = []
    deep: dict[Slot, _DeepTests] = defaultdict(dict)
    for slot, test in context:
        if slot[3] or slot[4]:
            deep[whole(slot)][slot] = test
        elif slot[0] or slot[1] not in {1, 2}:
            wholes.append((slot, test))
    return wholes, deep


def _condition(slot: Slot, test: str | None) -> Condition:
    if test is None:
        return Condition(key_of(slot), "absent")
    return Condition(key_of(slot), "any") if test == ANY else Condition(key_of(slot), "is", (test,))


def _pattern(tests: Mapping[Slot, str | None]) -> str:
    """Return the ``like`` pattern of a component from its deep tokens' tests; one that is missing is a star."""
    count = max(slot[3] + slot[4] - 1 for slot in tests)
    parts = {slot[3]: test or ANY for slot, test in tests.items()}
    text = "".join(parts.get(n, ANY) for n in range(1, count + 1))
    while "**" in text:
        text = text.replace("**", "*")
    return text


def _edits(
    changes: Transformation, known: Iterable[Slot], deep: Mapping[Slot, _DeepTests], patterns: Mapping[Slot, str]
) -> tuple[Edit, ...]:
    """Return the edits in the order in which they may run, () where one of them cannot be said."""
    written: list[tuple[int, Edit]] = []
    deleted: list[tuple[int, Edit]] = []
    for slot, change in changes:
        if change.op == "family":
            return (Edit(Key(), "family"),)
        if change.op == "keep":
            deleted.append((0, Edit(Key(), "keep", names=tuple(change.value.split("&") if change.value else ()))))
            continue
        edit = _edit(slot, change, deep, patterns)
        if edit is None:
            return ()
        if change.op == "delete":
            deleted.append((-(slot[1] or slot[2]) if not slot[0] else 0, edit))
        else:
            written.append((slot[1] if not slot[0] else 0, edit))
    deleted = _not_replaced(written, deleted)
    present = {slot[1] for slot in known if not slot[0]} | {slot[1] for slot, change in changes if change == DELETE}
    if _appends(written, present) and any(place < 0 for place, _ in deleted):
        return ()
    edits = tuple(edit for _, edit in sorted(written, key=_first) + sorted(deleted, key=_first))
    return edits if _reads_before_writes(edits) else ()


def _not_replaced(written: list[tuple[int, Edit]], deleted: list[tuple[int, Edit]]) -> list[tuple[int, Edit]]:
    """Drop the deletions of components in whose place another is written: that is a replacement."""
    places = {place for place, _ in written if place}
    return [(place, edit) for place, edit in deleted if not (place < 0 and edit.key.start in places)]


def _appends(written: list[tuple[int, Edit]], present: set[int]) -> bool:
    """Whether a component is written where the source has none."""
    return any(place and place not in present and not edit.key.end for place, edit in written)


def _reads_before_writes(edits: tuple[Edit, ...]) -> bool:
    """Whether no edit reads what one before it has changed."""
    changed: set[Key] = set()
    for edit in edits:
        if edit.source is not None and edit.source in changed:
            return False
        changed.add(edit.key)
    return True


def _first(item: tuple[int, Edit]) -> int:
    return item[0]


def _edit(slot: Slot, change: Change, deep: Mapping[Slot, _DeepTests], patterns: Mapping[Slot, str]) -> Edit | None:
    key = _key(slot, deep, patterns)
    source = None if change.source is None else _key(change.source, deep, patterns)
    if key is None or (change.source is not None and source is None):
        return None
    return Edit(key, change.op, value=change.value, source=source)


def _key(slot: Slot, deep: Mapping[Slot, _DeepTests], patterns: Mapping[Slot, str]) -> Key | None:
    """Return the key that an edit names; positions count from the start once the depth may change."""
    name, x, y, i, j = slot
    if not i and not j:
        return key_of(slot) if name or not x or not y else Key(start=x)
    tests = deep.get(whole(slot))
    if tests is None or slot not in tests:
        return None
    number = _number_in(patterns[whole(slot)], tests, slot)
    if not number:
        return None
    if name:
        return Key(name=name[1:], occurrence=x, deep=number)
    return Key(start=x, end=y, deep=number)


def _number_in(pattern: str, tests: Mapping[Slot, str | None], slot: Slot) -> int:
    """Return which deep token of a pattern (as crawls cut it) a slot is, 0 where it is none by itself."""
    if tests[slot] != ANY:
        return 0
    ordered = sorted(tests, key=lambda other: other[3])
    star = sum(1 for other in ordered if other[3] < slot[3] and tests[other] == ANY)
    if pattern.count(ANY) != sum(1 for other in ordered if tests[other] == ANY):
        return 0
    shown = pattern.replace(ANY, "\0")
    marked = "".join("\1" if n == star else "\2" for n in range(pattern.count(ANY)))
    stars = iter(marked)
    value = "".join(next(stars) if character == "\0" else character for character in shown)
    spans = deep_spans(pattern, value) or []
    return next((n for n, (start, end) in enumerate(spans, 1) if value[start:end] == "\1"), 0)
