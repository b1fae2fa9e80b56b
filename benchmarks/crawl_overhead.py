"""What the add-on costs a crawl: CPU a page, rate, and pauses of the event loop, with it and without, in turns.

A real Scrapy process crawls 5,000 different documentation pages over loopback (`benchmarks.crawl_overhead_site`), with
a spider that follows links, and with one that does next to nothing (`benchmarks.crawl_overhead_spider`). Its own CPU is
counted, all threads, from the opening of the spider to its end (not the start of the process, not the site, not the
daemon). The add-on publishes to a real Redis, and a process answers every page with a verdict as the daemon does. What
the daemon itself costs a page is measured apart, in one crawl more with a real one beside it: it may run on another
machine, and where it is embedded it is a process of its own.

Pauses are measured in crawls of `PACE` pages a second whose spider does nothing (`benchmarks.crawl_overhead_pauses`):
the loop of a crawl at full speed is never idle, and a spider that parses makes each of its turns long.

Usage: python -m benchmarks.crawl_overhead [PAGES]
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clusterd_crawler import topics
from clusterd_crawler.message import Verdict, decode, encode_verdict
from clusterd_crawler.redis_client import connect
from clusterd_crawler.sketch import Sketch

from benchmarks.crawl_overhead_site import documents
from benchmarks.live_sites.process import free_port, running, wait_for
from tests.services.redis_server import redis_server

PAGES = 5000
#: Crawls without and with the add-on, in turns, of each kind; the median counts.
TURNS = 3
#: Pages a second, and pages, of the crawls in which pauses are measured.
PACE = 50
PACED_PAGES = 1500

Figures = dict[str, float]
Turns = list[tuple[Figures, Figures]]
Row = dict[str, Any]


def answer(url: str, prefix: str) -> None:
    """Answer every page with a verdict (a process of its own)."""
    client, stream, last = connect(url), topics.stream(prefix, topics.SKETCHES), b"0-0"
    while True:
        for _, entries in client.xread({stream: last}, count=64, block=1000):
            pipe = client.pipeline(transaction=False)
            for offset, fields in entries:
                last = offset
                page = decode(fields[topics.FIELD_VALUE])
                if isinstance(page, Sketch):
                    verdict = encode_verdict(Verdict(page.url, page.fetched_at, page.crawl))
                    pipe.xadd(
                        topics.stream(prefix, topics.VERDICTS), {topics.FIELD_KEY: b"k", topics.FIELD_VALUE: verdict}
                    )
            pipe.execute()


@contextmanager
def process(target: Any, *arguments: Any) -> Iterator[None]:
    """Run a function in a process of its own for a while."""
    started = multiprocessing.get_context("spawn").Process(target=target, args=arguments, daemon=True)
    started.start()
    try:
        yield
    finally:
        started.terminate()
        started.join()


@contextmanager
def site(count: int, folder: Path) -> Iterator[str]:
    """Serve the pages; yield the site's URL."""
    first, port = next(iter(documents(count))), free_port()
    command = [sys.executable, "-m", "benchmarks.crawl_overhead_site", str(count), str(port)]
    with running(command, folder / "site.log"):
        wait_for(f"http://127.0.0.1:{port}{first}")
        yield f"http://127.0.0.1:{port}"


def crawl(site: str, count: int, mode: str, settings: dict[str, Any]) -> Figures:
    """Crawl once; return what `benchmarks.crawl_overhead_spider` measured."""
    command = [sys.executable, "-m", "benchmarks.crawl_overhead_spider", site, str(count), mode, json.dumps(settings)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: Figures = json.loads(done.stdout)
    print(mode, "with" if "ADDONS" in settings else "without", json.dumps(found), file=sys.stderr)
    return found


def turns(site: str, count: int, mode: str, switched_on: dict[str, Any], settings: dict[str, Any]) -> Turns:
    """Crawl without and with the add-on, in turns."""
    return [
        (crawl(site, count, mode, settings), crawl(site, count, mode, {**switched_on, **settings}))
        for _ in range(TURNS)
    ]


def run(count: int = PAGES) -> list[Row]:
    """Measure in turns; medians."""
    with (
        tempfile.TemporaryDirectory() as name,
        redis_server(Path(name)) as url,
        site(count, Path(name)) as pages,
        process(answer, url, "bench:"),
    ):
        switched_on = {
            "ADDONS": {"clusterd_crawler.Addon": 500},
            "CLUSTERD_REDIS": url,
            "CLUSTERD_REDIS_PREFIX": "bench:",
            "CLUSTERD_SPOOL": f"{name}/spool",
        }
        paced = {"DOWNLOAD_DELAY": 1 / PACE, "DOWNLOAD_DELAY_JITTER": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8}
        follow = turns(pages, count, "follow", switched_on, {})
        least = turns(pages, count, "list", switched_on, {})
        slow = turns(pages, min(count, PACED_PAGES), "pauses", switched_on, paced)
        daemon = daemon_cost(pages, count, switched_on)
    return [
        *cost_rows(follow, "a spider that follows links"),
        *cost_rows(least, "the least spider"),
        *pauses(slow),
        daemon,
    ]


def daemon_cost(site: str, count: int, settings: dict[str, Any]) -> Row:
    """Crawl once with a real daemon; return the row of its CPU a page."""
    prefix = "bench-daemon:"
    place = {**os.environ, "CLUSTERD_REDIS": settings["CLUSTERD_REDIS"], "CLUSTERD_REDIS_PREFIX": prefix}
    daemon = subprocess.Popen([sys.executable, "-m", "clusterd", "run"], env=place, stderr=subprocess.DEVNULL)
    try:
        crawl(site, count, "list", {**settings, "CLUSTERD_REDIS_PREFIX": prefix, "CLUSTERD_SKIP": False})
        client, stream = connect(settings["CLUSTERD_REDIS"]), topics.stream(prefix, topics.SKETCHES)
        while any(group["pending"] or group["lag"] for group in client.xinfo_groups(stream)):
            time.sleep(0.1)
        client.close()
        taken = Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()
    finally:
        daemon.terminate()
        daemon.wait()
    spent = (int(taken[11]) + int(taken[12])) / os.sysconf("SC_CLK_TCK")
    return _row("the daemon's CPU a page, its own process", 1000 * spent / count, "ms", None)


def cost_rows(measured: Turns, spider: str) -> list[Row]:
    """Return the table's rows: the add-on beside the bare crawl; ratios are medians of the turns' ratios."""

    def row(subject: str, field: str, unit: str) -> Row:
        off, on = (statistics.median(turn[side][field] for turn in measured) for side in (0, 1))
        ratio = statistics.median(with_it[field] / without[field] for without, with_it in measured)
        return _row(f"{subject}, {spider}", on, unit, off, ratio)

    return [
        row("CPU a page", "cpu_ms", "ms"),
        row("CPU a page in the loop's thread", "loop_cpu_ms", "ms"),
        row("pages a second", "rate", "1/s"),
    ]


def pauses(measured: Turns) -> list[Row]:
    """Return the rows of the loop's pauses, with the add-on and without; of longest ones the longest of all turns."""

    def row(subject: str, field: str, unit: str, choose: Any) -> Row:
        off, on = (choose(turn[side].get(field, 0.0) for turn in measured) for side in (0, 1))
        return _row(f"{subject} at {PACE} pages/s", on, unit, off)

    return [
        row("p99 of the loop's delay", "late_99_ms", "ms", statistics.median),
        row("p99.9 of the loop's delay", "late_999_ms", "ms", statistics.median),
        row("longest delay of the loop", "late_longest_ms", "ms", max),
        row("delays of the loop over 10 ms", "late_over", "delays", sum),
        row("longest delay of the loop by the process itself", "busy_longest_ms", "ms", max),
        row("delays over 10 ms by the process itself", "busy_over", "delays", sum),
        row("longest callback of the add-on, in processor time", "own_longest_ms", "ms", max),
        row("callbacks of the add-on over 10 ms of processor time", "own_over", "callbacks", sum),
    ]


def _row(subject: str, value: float, unit: str, without: float | None, ratio: float | None = None) -> Row:
    if ratio is None and without:
        ratio = value / without
    return {
        "work": f"crawl: {subject}",
        "subject": "clusterd",
        "value": round(value, 3),
        "unit": unit,
        "peer": "" if without is None else f"Scrapy alone {without:.3f}",
        "ratio": None if ratio is None else round(ratio, 3),
    }


if __name__ == "__main__":
    for line in run(*map(int, sys.argv[1:])):
        print(json.dumps(line))
