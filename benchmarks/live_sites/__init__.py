"""Real web applications on loopback, crawled without clusterd and with it: is every content fetched all the same?

The contents of a crawl are its distinct main texts. Of the duplicate fetches that come after the first tenth of the
crawl, those are avoidable whose content the crawl had by then; the target is to avoid four fifths of them, and to lose
no content. ``install.sh`` installs the applications.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from benchmarks.live_sites.apache_tree import apache_tree
from benchmarks.live_sites.dokuwiki import dokuwiki
from benchmarks.live_sites.hgweb import hgweb

#: Links that neither crawl follows, since they have no end (each leads to one of twice the number, or half of it).
ENDLESS = {"hgweb": r"revcount=(?:\d|\d\d\d+)(?:\D|$)"}
SITES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "apache tree": apache_tree,
    "hgweb": hgweb,
    "dokuwiki": dokuwiki,
}
#: No site is that large; a trap would be.
LIMIT = 20_000

Page = dict[str, Any]


def run() -> list[dict[str, Any]]:
    """Crawl each site twice and compare."""
    return [row for name in SITES for row in compare(name)]


def compare(name: str) -> list[dict[str, Any]]:
    """Crawl one site without clusterd and with it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with SITES[name](folder) as start:
            endless = ENDLESS.get(name, "")
            without = _crawl(start, folder / "without.jsonl", "-", endless)
            fetched = _crawl(start, folder / "with.jsonl", str(folder / "store"), endless)
    return [
        {"work": "live site", "subject": f"{name}: {what}", "value": value, "unit": unit, "peer": None, "ratio": None}
        for what, value, unit in figures(without, fetched)
    ]


def figures(without: list[Page], fetched: list[Page]) -> list[tuple[str, float, str]]:
    """Return what the two crawls amount to."""
    contents = {page["main"] for page in without}
    lost = contents - {page["main"] for page in fetched}
    avoidable, made = duplicates(without), duplicates(fetched)
    return [
        ("fetches without", len(without), "pages"),
        ("fetches with", len(fetched), "pages"),
        ("contents", len(contents), "contents"),
        ("lost contents", len(lost), "contents"),
        ("avoidable duplicate fetches", avoidable, "pages"),
        ("avoided of them", 1 - made / avoidable if avoidable else 1.0, "share"),
    ]


def duplicates(pages: list[Page]) -> int:
    """Count the fetches, after the first tenth, of a content that had been fetched before."""
    seen: set[int] = set()
    count = 0
    for number, page in enumerate(pages):
        if page["main"] in seen and number >= len(pages) / 10:
            count += 1
        seen.add(page["main"])
    return count


def _crawl(start: str, out: Path, data: str, endless: str) -> list[Page]:
    command = [sys.executable, "-m", "benchmarks.live_sites.spider", start, str(out), data, str(LIMIT), endless]
    subprocess.run(command, check=True)
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
