"""The compiled cores answer, or say that their input was wrong, whatever they are given (`fuzz_cores`)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.fuzz_cores import Maker, feed


@pytest.mark.core
@pytest.mark.parametrize("seed", range(4))
def test_cores_answer_or_refuse_what_is_damaged(seed: int) -> None:
    make = Maker(seed)
    for _ in range(25):
        feed(make)


def test_cores_that_do_not_compile_with_the_sanitizers_are_not_taken_for_such() -> None:
    """Those beside the sources were fed, and found to be without fault."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz_cores", "0"],
        env={name: value for name, value in os.environ.items() if name != "PYTHONMALLOC"} | {"CC": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "nothing beyond its memory" not in done.stdout
