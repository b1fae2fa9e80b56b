"""Contexts and edits of a URL's path, over the tuple of its components (`tokenize` numbers them from both ends)."""

from __future__ import annotations

from clusterd.learning.generalize import ANY, Context
from clusterd.learning.pairwise import Transformation
from clusterd.learning.tokenize import Slot

Path = tuple[str, ...]
#: A host's own page: crawls see it as one empty component.
ROOT: Path = ("",)


def index_of(slot: Slot, path: Path) -> int:
    """Return where in the path the component of a slot stands, -1 where the path has none."""
    _, x, y, _, _ = slot
    depth = len(path)
    index = x - 3 if x else depth - y
    if x and y and x + y != depth + 3:
        return -1
    return index if 0 <= index < depth else -1


def path_matches(context: Context, path: Path) -> bool:
    """Whether a path satisfies the path conditions of a context."""
    for slot, test in context:
        index = index_of(slot, path)
        if index < 0:
            if test is not None:
                return False
        elif test is None or (test != ANY and path[index] != test):
            return False
    return True


def edited_path(changes: Transformation, path: Path) -> Path:
    """Return the path with its components deleted or set; a path that lacks one of them stays as it is."""
    if len(changes) == 1:
        ((slot, change),) = changes
        index = index_of(slot, path)
        if index < 0:
            return path
        return path[:index] + (() if change.op == "delete" else (change.value,)) + path[index + 1 :] or ROOT
    places = [(index_of(slot, path), change) for slot, change in changes]
    if any(index < 0 for index, _ in places):
        return path
    parts: list[str | None] = list(path)
    for index, change in places:
        parts[index] = None if change.op == "delete" else change.value
    return tuple(part for part in parts if part is not None) or ROOT
