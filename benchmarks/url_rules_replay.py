"""What the rules save on real crawls, and what they lose: each crawl replayed in three random orders and in its own.

The figures are those of ``clusterd rules replay``; the names of the crawls and what is promised of each stand in
`PROMISED`. Where ``../shared/crawls`` is not at hand there is nothing to measure.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, Literal

from clusterd.learning.replay import read_crawl, replay

from benchmarks.results import Row, result

CRAWLS: Final = Path(__file__).resolve().parent.parent.parent / "shared" / "crawls"
SEEDS: Final = (0, 1, 2)
#: Reduction that is promised, where one is.
PROMISED: Final = {
    "ftowa": 0.72,
    "opensuse-lizards": 0.18,
    "skysedge": 0.28,
    "abc-lang": 0.14,
    "aliado-opencart": 0.07,
    "unreal-wiki": 0.12,
}


def run() -> list[Row]:
    """Replay every crawl that is at hand; print the table, and return the rows of the results file."""
    if not CRAWLS.is_dir():
        print(f"no crawls at {CRAWLS}: nothing replayed", file=sys.stderr)
        return []
    print(f"{'crawl':26}{'order':>8}{'reduction':>11}{'precision':>11}{'lost':>9}{'rules':>7}{'URLs/s':>9}")
    found: list[Row] = []
    for path in sorted(CRAWLS.glob("*.tsv.gz")):
        found += replays(path)
    return found


def replays(path: Path) -> list[Row]:
    """Replay one crawl in every order."""
    site = path.name.removesuffix(".tsv.gz")
    crawl = read_crawl(path)
    orders: list[tuple[Literal["file", "random"], int]] = [*(("random", seed) for seed in SEEDS), ("file", 0)]
    found: list[Row] = []
    for order, seed in orders:
        line = replay(crawl, order, seed)
        name = order if order == "file" else f"random {seed}"
        print(
            f"{site:26}{name:>8}{line['reduction']:>10.1%}{line['skip_precision']:>11.4f}"
            f"{line['lost_contents']:>9.3%}{line['rules']:>7}{line['urls_per_second']:>9}",
            flush=True,
        )
        promised = PROMISED.get(site) if order == "random" else None
        ratio = None if promised is None else round(line["reduction"] / promised, 3)
        for figure in ("reduction", "skip_precision", "lost_contents"):
            against = ("promised", ratio) if figure == "reduction" and promised else ()
            found.append(result(f"rules: replay, {figure}", f"{site}, {name}", line[figure], "share", *against))
    return found
