"""What the addresses of two pages have in common."""

from __future__ import annotations

from itertools import pairwise, product

from clusterd.queries.addresses import spots


def test_a_spot_is_in_common_with_paths_that_differ_there_at_most() -> None:
    paths = [parts for count in range(1, 5) for parts in product(("", "a", "b"), repeat=count)]
    spots_of = {parts: spots("http://h.example/" + "/".join(parts)) for parts in paths}
    for one, other in product(paths, repeat=2):
        differing = [at for at, (a, b) in enumerate(zip(one, other, strict=False), 1) if a != b]
        shared = [at for at, spot in enumerate(spots_of[one]) if spot in spots_of[other]]
        alike = range(1 + len(one)) if one == other else differing if len(differing) == 1 else []
        assert shared == (list(alike) if len(one) == len(other) else [])


def test_a_path_of_very_many_parts_is_gone_through_once() -> None:
    """One of 200,000 took minutes, as each of its parts had all others beside it."""
    first, second = (spots(f"http://h.example/{'/' * 200_000}{name}") for name in "ab")
    assert [at for at, (a, b) in enumerate(zip(first, second, strict=True)) if a == b] == [200_001]
    assert all(a != b for a, b in pairwise(first))
