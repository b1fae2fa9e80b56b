"""The hashes of shapes under an edit are those of the shapes that it makes."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
from clusterd.learning.evidence.shapes import ColumnKey, Shape, Shapes, in_order

KEYS: list[ColumnKey] = [(name, occurrence) for name in "abcdefg" for occurrence in (1, 2)]


def random_shapes(count: int, seed: int = 0) -> list[Shape]:
    dice = random.Random(seed)
    return [tuple(dice.sample(KEYS, dice.randrange(6))) for _ in range(count)]


def assert_told_apart(hashes: np.ndarray, became: list[Shape]) -> None:
    """Equal shapes have one hash, and different ones have two."""
    by_shape, by_hash = defaultdict(set), defaultdict(set)
    for number, shape in zip(hashes.tolist(), became, strict=True):
        by_shape[shape].add(number)
        by_hash[number].add(shape)
    assert all(len(numbers) == 1 for numbers in by_shape.values())
    assert all(len(shapes) == 1 for shapes in by_hash.values())


def test_what_is_left_out_is_left_out_of_the_hash() -> None:
    shapes, dice = Shapes(), random.Random(1)
    for part in range(5):  # the table grows with the shapes, and with the longest of them
        for shape in random_shapes(200, part):
            shapes.number(shape)
        gone = dice.sample(KEYS, 4)
        left = [tuple(key for key in shape if key not in gone) for shape in shapes.items]
        assert_told_apart(shapes.hashes_left(gone), left)
        assert_told_apart(shapes.hashes_left(gone, in_order=True), [in_order(shape) for shape in left])
        assert_told_apart(shapes.hashes_with(gone, ("z", 1)), [(*shape, ("z", 1)) for shape in left])


def test_hashes_under_an_edit_are_those_of_the_numbers_that_it_gives() -> None:
    shapes = Shapes()
    for shape in random_shapes(300):
        shapes.number(shape)
    gone = KEYS[:5]
    kinds = (
        (shapes.hashes_left(gone), lambda shape: tuple(key for key in shape if key not in gone)),
        (shapes.hashes_left((), in_order=True), in_order),
        (shapes.hashes_with(gone, KEYS[9]), lambda shape: (*(key for key in shape if key not in gone), KEYS[9])),
    )
    for hashes, change in kinds:
        became = [shapes.number(change(shape)) for shape in list(shapes.items)]
        assert (hashes == shapes.hashes()[became[: len(hashes)]]).all()


def test_names_and_keys_of_shapes() -> None:
    shapes = Shapes()
    numbers = [shapes.number(shape) for shape in ((), (("b", 1), ("a", 1)), (("a", 1), ("a", 2), ("c", 1)))]
    assert shapes.keys_of(np.array(numbers)) == [("b", 1), ("a", 1), ("a", 2), ("c", 1)]
    assert shapes.of_names({"a", "c"}).tolist() == [True, False, True]
    assert shapes.hashes()[numbers[0]] == 0
