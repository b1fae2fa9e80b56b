"""Contexts and edits of a URL's path, over the tuple of its components (`tokenize` numbers them from both ends).

`PathTable` numbers a host's distinct paths and derives once what is asked of them again and again; what it says of a
number stays right whatever rules are applied, so that all copies of a host's columns share one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from clusterd_crawler.urls import hash_of

from clusterd.learning.koppula.generalize import ABSENT, ANY, Context
from clusterd.learning.koppula.pairwise import Change, Transformation
from clusterd.learning.koppula.tokenize import Slot

Path = tuple[str, ...]
#: A host's own page: crawls see it as one empty component.
ROOT: Path = ("",)


Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def index_of(slot: Slot, depth: int) -> int:
    """Return where in a path of so many components that of a slot stands, -1 where it has none."""
    _, x, y, _, _ = slot
    index = x - 3 if x else depth - y
    if x and y and x + y != depth + 3:
        return -1
    return index if 0 <= index < depth else -1


#: The places of an edit in paths of one depth, with what becomes of what stands there; none where a path lacks one.
EditedPlaces = list[tuple[int, Change]]


def places_of(changes: Transformation, depth: int) -> EditedPlaces:
    """Return where in paths of a depth an edit's components stand."""
    places = [(index_of(slot, depth), change) for slot, change in changes]
    return [] if any(index < 0 for index, _ in places) else places


def edited_path(places: EditedPlaces, path: Path) -> Path:
    """Return the path with its components deleted or set."""
    if not places:
        return path
    if len(places) == 1:
        ((index, change),) = places
        return path[:index] + (() if change.op == "delete" else (change.value,)) + path[index + 1 :] or ROOT
    parts: list[str | None] = list(path)
    for index, change in places:
        parts[index] = None if change.op == "delete" else change.value
    return tuple(part for part in parts if part is not None) or ROOT


class PathTable:
    """Distinct paths by number: their hashes, which of them satisfy a context, and what an edit makes of them."""

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self._numbers: dict[Path, int] = {}
        self._texts_hashed: list[int] = []
        self._hashes: Hashes = np.zeros(0, dtype=np.uint64)
        self._places: dict[Slot, _Places] = {}
        self._fits: dict[Context, Mask] = {}
        self._moved: dict[Transformation, Numbers] = {}
        #: Paths that a row may have; those beyond were only tried.
        self.live = 0

    def number(self, path: Path) -> int:
        """Return a path's number, a new one where it is new."""
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self.paths)
            self.paths.append(path)
            self._texts_hashed.append(hash_of("/".join(path)))
        return number

    def keep_tried(self) -> None:
        """Note that rows may have any of the paths from now on."""
        self.live = len(self.paths)

    def hashes(self) -> Hashes:
        """Return the hashes by number."""
        known = len(self._hashes)
        if known < len(self.paths):
            new = np.array(self._texts_hashed[known:], dtype=np.uint64)
            self._hashes = np.concatenate([self._hashes, new])
        return self._hashes

    def fitting(self, of_path: Context) -> Mask:
        """Return which of the paths that rows may have satisfy path conditions."""
        fits = self._fits.get(of_path)
        if fits is None or len(fits) < self.live:
            fits = np.ones(len(self.paths), dtype=np.bool_)
            for slot, test in of_path:
                fits &= self._satisfying(slot, test)
            self._fits[of_path] = fits
        return fits

    def _satisfying(self, slot: Slot, test: str | None) -> Mask:
        places = self._places.setdefault(slot, _Places(slot))
        places.extend(self.paths)
        found: Mask = np.zeros(len(self.paths), dtype=np.bool_)
        if test is ABSENT or test == ANY:
            for numbers in places.values.values():
                found[numbers] = True
            return ~found if test is ABSENT else found
        found[places.values.get(test, [])] = True
        return found

    def moved(self, of_path: Transformation, path: Numbers) -> Numbers:
        """Return what an edit makes of some rows' paths; of each distinct one it is asked once."""
        moved = self._moved.get(of_path)
        if moved is None or len(moved) < self.live:
            known = self._moved[of_path] = np.full(len(self.paths), -1, dtype=np.int64)
            if moved is not None:
                known[: len(moved)] = moved
            moved = known
        found: Numbers = moved[path]
        if len(found) and found.min() < 0:
            places: dict[int, EditedPlaces] = {}
            for number in dict.fromkeys(path[found < 0].tolist()):
                before = self.paths[number]
                at = places.get(len(before))
                if at is None:
                    at = places[len(before)] = places_of(of_path, len(before))
                moved[number] = self.number(edited_path(at, before))
            found = moved[path]
        return found


class _Places:
    """The values of one component, each with the paths that have it."""

    __slots__ = ("_known", "_slot", "values")

    def __init__(self, slot: Slot) -> None:
        self._slot, self._known = slot, 0
        self.values: dict[str, list[int]] = {}

    def extend(self, paths: list[Path]) -> None:
        """Take the paths that came since."""
        values = self.values
        indexes: dict[int, int] = {}
        for number in range(self._known, len(paths)):
            path = paths[number]
            index = indexes.get(len(path))
            if index is None:
                index = indexes[len(path)] = index_of(self._slot, len(path))
            if index < 0:
                continue
            known = values.get(path[index])
            if known is None:
                values[path[index]] = [number]
            else:
                known.append(number)
        self._known = len(paths)
