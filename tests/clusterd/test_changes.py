"""What is told of how pages changed, and of lost ones, where retention has forgotten some of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from clusterd.queries import moves
from clusterd_crawler.sketch import TEXT, StreamSketch

from clusterd import queries
from tests.clusterd.made_up_site import DAY, Site, words


@pytest.mark.parametrize(("before", "told"), [(0, "zero one two"), (12, "two"), (20, "two"), (21, ""), (50, "")])
def test_sweeps_are_told_of_from_the_first_whole_one_on(before: int, told: str) -> None:
    """Each runs for five days; of one that begins within five days after what is forgotten nobody knows the beginning.

    Of those that ran meanwhile neither. By the end all has been forgotten that later sweeps have.
    """
    site = Site()
    for sweep, begun in (("zero", 5), ("one", 14), ("two", 25), ("end", 45)):
        for number in range(6):
            site.add(f"http://a.example/{number}", words(number), sweep, begun * DAY + number * DAY)
    if before:
        site.index.expire(before * DAY)
    assert " ".join(period.from_sweep for period in queries.changes(site.index, TEXT)) == told


@pytest.mark.parametrize("sweeps", [2, 3])
def test_what_is_forgotten_while_it_is_asked_for_ends_no_answer(monkeypatch: pytest.MonkeyPatch, sweeps: int) -> None:
    """Of pages that were read by then is told what became of them, and nothing of the others."""
    site = Site()
    for n in range(10):
        site.add(f"http://a.example/{n}", words(n), "1", at=DAY)
        for sweep in range(2, sweeps + 1):
            site.add(f"http://a.example/{n}", "gone", f"{sweep}", at=sweep * DAY, status=404)
            site.add(f"http://a.example/new/{sweep}", words(f"new {sweep}"), f"{sweep}", at=sweep * DAY)
    read = site.index.sketches

    def forgetting(asked: Sequence[tuple[str, int | None]]) -> list[StreamSketch | None]:
        found = read(asked)
        site.index.expire(2 * DAY)
        return found

    monkeypatch.setattr(moves, "PORTION", 4)
    monkeypatch.setattr(site.index, "sketches", forgetting)
    assert list(site.lost(to_sweep="2")) == [f"http://a.example/{n}" for n in range(4)]
