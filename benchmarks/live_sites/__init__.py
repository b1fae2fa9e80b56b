"""Real web applications on loopback, crawled without clusterd and with it: is every content fetched all the same?

The contents of a crawl are its distinct main texts. Of the duplicate fetches that come after the first tenth of the
crawl, those are avoidable whose content the crawl had by then; the target is to avoid four fifths of them, and to lose
no content. Both crawls follow every link of the site at full speed, breadth first; `ENDLESS` names the links that
neither follows. Of the wiki there is a small one too: there a site ends soon after enough has been seen to learn from.

``make live-sites`` installs the applications (``install.sh``), crawls, and prints the table; about eight minutes on two
cores. Where they are installed ``python -m benchmarks live_sites`` does the same.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from clusterd_crawler.page import sketch_page
from rich.console import Console
from rich.table import Table

from benchmarks.live_sites.apache_tree import apache_tree
from benchmarks.live_sites.dokuwiki import dokuwiki
from benchmarks.live_sites.hgweb import hgweb
from benchmarks.results import Row, result

#: Links that neither crawl follows, since they have no end (each leads to one of twice the number, or half of it).
ENDLESS = {"hgweb": r"revcount=(?:\d|\d\d\d+)(?:\D|$)"}
SITES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "apache tree": apache_tree,
    "hgweb": hgweb,
    "dokuwiki": dokuwiki,
    "dokuwiki, small": partial(dokuwiki, pages=180),
}
#: Share of the avoidable duplicate fetches that is to be avoided.
TARGET = 0.8
#: Programs that the sites run.
PROGRAMS = ("apache2", "hg", "php")
#: No site is that large; a trap would be.
LIMIT = 20_000

Page = dict[str, Any]


def run() -> list[Row]:
    """Crawl each site twice and compare."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        sys.exit(f"{', '.join(missing)} not installed: benchmarks/live_sites/install.sh installs what the sites run")
    rows = {name: compare(name) for name in SITES}
    Console().print(table(rows))
    return [row for found in rows.values() for row in found]


def table(rows: dict[str, list[Row]]) -> Table:
    """Return one line a site."""
    made = Table(title=f"live sites: target ≥ {TARGET:.0%} avoided, nothing lost")
    for column in ("site", *(row["subject"].rpartition(": ")[2] for row in next(iter(rows.values()))), "target"):
        made.add_column(column, justify="left" if column in {"site", "target"} else "right")
    for name, found in rows.items():
        *counts, avoided = (row["value"] for row in found)
        met = counts[3] == 0 and avoided >= TARGET
        made.add_row(name, *map(str, counts), f"{avoided:.1%}", "met" if met else "MISSED")
    return made


def compare(name: str) -> list[Row]:
    """Crawl one site without clusterd and with it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with SITES[name](folder) as start:
            endless = ENDLESS.get(name, "")
            without = _crawl(start, folder / "without.jsonl", "-", endless)
            fetched = _crawl(start, folder / "with.jsonl", str(folder / "store"), endless)
            lost = lost_contents(without, fetched)
    return [
        result("live site", f"{name}: {what}", value, unit)
        for what, value, unit in figures(without, fetched, len(lost))
    ]


def lost_contents(without: list[Page], fetched: list[Page]) -> set[int]:
    """Return the contents that only the first crawl has fetched, and that the site still shows where it found them.

    A server that stumbles once over a request shows a page that no other crawl can find.
    """
    known = {page["main"] for page in fetched}
    missing = {page["main"]: page["url"] for page in without if page["main"] not in known}
    return {content for content, url in missing.items() if _shown(url) == content}


def _shown(url: str) -> int:
    with urllib.request.urlopen(url, timeout=30) as response:
        return sketch_page(url, response.read(), "text/html", fetched_at=0).main.text


def figures(without: list[Page], fetched: list[Page], lost: int) -> list[tuple[str, float, str]]:
    """Return what the two crawls amount to."""
    contents = {page["main"] for page in without}
    avoidable, made = duplicates(without), duplicates(fetched)
    return [
        ("fetches without", len(without), "pages"),
        ("fetches with", len(fetched), "pages"),
        ("contents", len(contents), "contents"),
        ("lost contents", lost, "contents"),
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
