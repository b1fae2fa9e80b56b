"""What the add-on costs a crawl: CPU a page, rate, and pauses of the event loop, with it and without, in turns.

A real Scrapy process crawls 5,000 different documentation pages over loopback (`benchmarks.crawl_overhead_site`), with
a spider that follows links, and with one that does next to nothing (`benchmarks.crawl_overhead_spider`). Its own CPU is
counted, all threads, from the opening of the spider to its end (not the start of the process, not the site, not the
daemon). The add-on publishes to a real Redis, and a process answers every page with a verdict as the daemon does. What
the daemon itself costs a page is measured apart, in one crawl more with a real one beside it: it may run on another
machine, and where it is embedded it is a process of its own.

A process is charged for a busy machine, too: its CPU time grows by half where another one uses the other half of its
core, or its caches. So that both crawls meet the same machine,

- the crawl has one processor and all else another (site, Redis, what answers), which a process of the lowest priority
  keeps busy in *both* kinds of crawl, also while there is nothing to publish or to answer;
- crawls without and with the add-on take turns, each of a third of the pages (the other two thirds count as seen, so
  that links to them are asked for and dropped as in a crawl of all), and every other pair in reverse order;
- what counts is the median of the pairs' ratios; the least and the largest are told.

Where there is only one processor nothing is bound to it, and the figures say less.

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clusterd_crawler import topics
from clusterd_crawler.message import decode
from clusterd_crawler.servers.redis_client import connect
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.verdict import Verdict, encode_verdict
from redis.exceptions import TimeoutError as RedisTimeout

from benchmarks.crawl_overhead_site import documents
from benchmarks.live_sites.process import free_port, running, wait_for
from benchmarks.results import Row, result
from tests.services.redis_server import redis_server

PAGES = 5000
#: Parts of the pages, one a crawl; pairs of crawls, without and with the add-on, of each kind; of those that pause.
PARTS = 3
PAIRS = 6
PAUSE_PAIRS = 3
#: Pages a second, and pages, of the crawls in which pauses are measured.
PACE = 50
PACED_PAGES = 1000

Figures = dict[str, float]
Turns = list[tuple[Figures, Figures]]


def answer(url: str, prefix: str) -> None:
    """Answer every page with a verdict (a process of its own)."""
    client, last = connect(url), b"0-0"
    sketches, verdicts = (topics.stream(prefix, topic) for topic in (topics.SKETCHES, topics.VERDICTS))
    while True:
        with suppress(RedisTimeout):  # where the machine is very busy
            for _, entries in client.xread({sketches: last}, count=64, block=1000):
                pipe = client.pipeline(transaction=False)
                for offset, fields in entries:
                    last = offset
                    page = decode(fields[topics.FIELD_VALUE])
                    if isinstance(page, Sketch):
                        verdict = encode_verdict(Verdict(page.url, page.fetched_at, page.crawl))
                        pipe.xadd(verdicts, {topics.FIELD_KEY: b"k", topics.FIELD_VALUE: verdict})
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


def keep_busy() -> None:
    """Use what is left of a processor, for as long as nobody else wants it (a process of its own)."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass


def processors() -> tuple[set[int], set[int]]:
    """Return the processor of the crawl and that of all else."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, {others[0]} if others else {first}


@contextmanager
def bound(chosen: set[int]) -> Iterator[None]:
    """Keep this process, and what it starts meanwhile, to these processors."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, chosen)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def site(count: int, folder: Path) -> Iterator[str]:
    """Serve the pages; yield the site's URL."""
    first, port = next(iter(documents(count))), free_port()
    command = [sys.executable, "-m", "benchmarks.crawl_overhead_site", str(count), str(port)]
    with running(command, folder / "site.log"):
        wait_for(f"http://127.0.0.1:{port}{first}")
        yield f"http://127.0.0.1:{port}"


@dataclass(frozen=True)
class Bench:
    """Where is crawled, and how the add-on is switched on."""

    site: str
    count: int
    processor: set[int]
    switched_on: dict[str, Any]

    def crawl(self, mode: str, settings: dict[str, Any], part: int = 0, parts: int = 1) -> Figures:
        """Crawl a part of the pages; return what `benchmarks.crawl_overhead_spider` measured."""
        arguments = [self.site, str(self.count), str(part), str(parts), mode, json.dumps(settings)]
        command = [sys.executable, "-m", "benchmarks.crawl_overhead_spider", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as crawling:
            os.sched_setaffinity(crawling.pid, self.processor)
            out = crawling.communicate()[0]
        found: Figures = json.loads(out)
        print(mode, "with" if "ADDONS" in settings else "without", json.dumps(found), file=sys.stderr, flush=True)
        return found

    def pairs(self, mode: str, many: int, parts: int, settings: dict[str, Any]) -> Turns:
        """Crawl without and with the add-on, in turns."""
        switched: tuple[dict[str, Any], ...] = ({}, self.switched_on)
        turns: Turns = []
        for pair in range(many):
            order = (0, 1) if pair % 2 == 0 else (1, 0)
            found = {side: self.crawl(mode, {**switched[side], **settings}, pair % parts, parts) for side in order}
            turns.append((found[0], found[1]))
        return turns


def run(count: int = PAGES) -> list[Row]:
    """Measure in turns; medians."""
    mine, others = processors()
    with (
        bound(others),
        tempfile.TemporaryDirectory() as name,
        redis_server(Path(name)) as url,
        site(count, Path(name)) as pages,
        process(answer, url, "bench:"),
        process(keep_busy),
    ):
        switched_on = {
            "ADDONS": {"clusterd_crawler.Addon": 500},
            "CLUSTERD_REDIS": url,
            "CLUSTERD_REDIS_PREFIX": "bench:",
            "CLUSTERD_SPOOL": f"{name}/spool",
        }
        paced = {"DOWNLOAD_DELAY": 1 / PACE, "DOWNLOAD_DELAY_JITTER": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8}
        bench = Bench(pages, count, mine, switched_on)
        follow = bench.pairs("follow", PAIRS, PARTS, {})
        least = bench.pairs("list", PAIRS, PARTS, {})
        slow = replace(bench, count=min(count, PACED_PAGES)).pairs("pauses", PAUSE_PAIRS, 1, paced)
        daemon = daemon_cost(bench)
    return [
        *cost_rows(follow, "a spider that follows links"),
        *cost_rows(least, "the least spider"),
        *pauses(slow),
        daemon,
    ]


def daemon_cost(bench: Bench) -> Row:
    """Crawl once with a real daemon; return the row of its CPU a page."""
    prefix, settings = "bench-daemon:", bench.switched_on
    place = {**os.environ, "CLUSTERD_REDIS": settings["CLUSTERD_REDIS"], "CLUSTERD_REDIS_PREFIX": prefix}
    daemon = subprocess.Popen([sys.executable, "-m", "clusterd", "run"], env=place, stderr=subprocess.DEVNULL)
    try:
        bench.crawl("list", {**settings, "CLUSTERD_REDIS_PREFIX": prefix, "CLUSTERD_SKIP": False})
        client, stream = connect(settings["CLUSTERD_REDIS"]), topics.stream(prefix, topics.SKETCHES)
        while any(group["pending"] or group["lag"] for group in client.xinfo_groups(stream)):
            time.sleep(0.1)
        client.close()
        taken = Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()
    finally:
        daemon.terminate()
        daemon.wait()
    spent = (int(taken[11]) + int(taken[12])) / os.sysconf("SC_CLK_TCK")
    return _row("the daemon's CPU a page, its own process", 1000 * spent / bench.count, "ms", None)


def cost_rows(measured: Turns, spider: str) -> list[Row]:
    """Return the table's rows: the add-on beside the bare crawl; ratios are medians of the turns' ratios."""

    def row(subject: str, field: str, unit: str) -> Row:
        off, on = (statistics.median(turn[side][field] for turn in measured) for side in (0, 1))
        ratios = sorted(with_it[field] / without[field] for without, with_it in measured)
        made = _row(f"{subject}, {spider}", on, unit, off, statistics.median(ratios))
        made["peer"] += f"; ratios {ratios[0]:.3f} to {ratios[-1]:.3f}"
        return made

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
    peer = None if without is None else f"Scrapy alone {without:.3f}"
    return result(
        f"crawl: {subject}", "clusterd", round(value, 3), unit, peer, None if ratio is None else round(ratio, 3)
    )


if __name__ == "__main__":
    for line in run(*map(int, sys.argv[1:])):
        print(json.dumps(line))
