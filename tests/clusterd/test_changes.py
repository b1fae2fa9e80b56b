"""What is told of how pages changed where retention has forgotten some of it."""

from __future__ import annotations

import pytest
from clusterd_crawler.sketch import TEXT

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
