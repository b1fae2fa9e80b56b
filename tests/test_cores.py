"""The compiled cores answer, or say that their input was wrong, whatever they are given (`fuzz_cores`)."""

from __future__ import annotations

import pytest

from tests.fuzz_cores import Maker, feed


@pytest.mark.core
@pytest.mark.parametrize("seed", range(4))
def test_cores_answer_or_refuse_what_is_damaged(seed: int) -> None:
    make = Maker(seed)
    for _ in range(25):
        feed(make)
