"""A host of sixteen parameters in any order: what is skipped of what could be, what is lost, and what learning costs.

Replayed (fetch, learn, skip) at three sizes; the share that could be skipped is all that is redundant. Seconds are of
the processor.
"""

from __future__ import annotations

from time import process_time
from typing import Any

from clusterd.learning.replay import replay

from tests.clusterd.learning.shop import shop

HOST = "shop.example"
SIZES = (10_000, 40_000, 150_000)


def run() -> list[dict[str, Any]]:
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
            {
                "work": "rules: 16 parameters, reduction",
                "subject": subject,
                "value": round(said["reduction"], 4),
                "unit": "of all fetches",
                "peer": f"redundant: {possible:.4f}",
                "ratio": round(said["reduction"] / possible, 3),
            },
            {
                "work": "rules: 16 parameters, learning",
                "subject": f"{len(rows):,} URLs",
                "value": round(len(rows) / seconds),
                "unit": "URLs/s of CPU",
            },
        ]
    return found
