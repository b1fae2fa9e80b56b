"""A generalized rule applied to a URL: r(u) as definition 2 has it, for trials (`columns`).

The crawl, and the protocol's metrics, apply published rules with compiled code (`clusterd_crawler.rule_language.keys`);
this is the plain form over slots. Cost: linear in the URL's tokens and the rule's keys.
"""

from __future__ import annotations

from clusterd.learning.koppula.generalize import ANY, Context
from clusterd.learning.koppula.pairwise import CONVERSIONS, Change, Transformation
from clusterd.learning.koppula.tokenize import Slot, Tokens

_CONVERT = dict(CONVERSIONS)


def located(slot: Slot, components: int) -> Slot:
    """Return the slot of a URL with so many components that a view, ``k(x,-)`` or ``k(-,y)``, stands for."""
    name, x, y, i, j = slot
    if name or (x and y):
        return slot
    return (name, x, components + 1 - x, i, j) if x else (name, components + 1 - y, y, i, j)


def components_of(tokens: Tokens) -> int:
    """Return the number of components, scheme and host included."""
    return max([slot[1] for slot in tokens if not slot[0]], default=0)


def matches(context: Context, tokens: Tokens) -> bool:
    """Whether a URL satisfies a context: literal values, ``*`` = present, None = absent."""
    depth = components_of(tokens)
    for slot, test in context:
        value = tokens.get(located(slot, depth))
        if value is None:
            if test is not None:
                return False
        elif test is None or (test != ANY and test != value):
            return False
    return True


def changed_tokens(changes: Transformation, tokens: Tokens) -> Tokens | None:
    """Apply a transformation; deletions first, so that an addition may take a deleted key's place.

    With a query key go those of its name behind it: they move up, and a crawl applies a rule until nothing changes.
    """
    depth = components_of(tokens)
    changed = dict(tokens)
    for slot, change in changes:
        if change.op == "delete":
            gone = located(slot, depth)
            while changed.pop(gone, None) is not None and gone[0] and not gone[3]:
                gone = (gone[0], gone[1] + 1, *gone[2:])
    for slot, change in changes:
        if change.op == "delete":
            continue
        at = located(slot, depth)
        value = _value(change, at, tokens, depth)
        if value is None:
            return None
        changed[at] = value
    return changed


def _value(change: Change, at: Slot, tokens: Tokens, depth: int) -> str | None:
    if change.op == "set":
        return change.value
    value = tokens.get(located(change.source, depth) if change.source else at)
    if value is None or change.op == "copy":
        return value
    return _CONVERT[change.op](value)
