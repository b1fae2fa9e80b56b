"""A host of sixteen parameters in any order: what is skipped of what could be, what is lost, and what learning costs.

Replayed (fetch, learn, skip) at three sizes; the share that could be skipped is all that is redundant. Seconds are of
the processor.
"""

from __future__ import annotations

from time import process_time

from clusterd.learning.replay import replay

from benchmarks.results import Row, result
from tests.clusterd.learning.shop import shop

HOST = "shop.example"
SIZES = (10_000, 40_000, 150_000)


def run() -> list[Row]:
    """Measure; the peer is what could be skipped."""
    found = []
    for pages in SIZES:
        rows = shop(HOST, pages)
        contents = len({row.content for row in rows})
        before = process_time()
        said = replay(rows)
        seconds = process_time() - before
        possible = 1 - contents / len(rows)
        lost, wrong = said["lost_contents"], 1 - said["skip_precision"]
        subject = f"{len(rows):,} URLs, {lost:.3%} lost, {wrong:.3%} of skips wrong"
        found += [
            result(
                "rules: 16 parameters, reduction",
                subject,
                round(said["reduction"], 4),
                "of all fetches",
                f"redundant: {possible:.4f}",
                round(said["reduction"] / possible, 3),
            ),
            result(
                "rules: 16 parameters, learning", f"{len(rows):,} URLs", round(len(rows) / seconds), "URLs/s of CPU"
            ),
        ]
    return found
