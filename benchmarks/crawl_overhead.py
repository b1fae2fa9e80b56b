"""What the add-on costs a crawl: CPU a page, rate, and pauses of the event loop, with it and without, in turns.

A real Scrapy process crawls documentation pages over loopback: those under /usr/share/doc where there are enough, else
pages of the same size and markup made here. Its own CPU is counted, from the opening of the spider to its end (not the
start of the process, not the site, not the daemon). The add-on publishes to a real Redis, and a process answers every
page with a verdict as the daemon does. What the daemon itself costs a page is measured apart, in one crawl more with a
real one beside it: it may run on another machine. Pauses are measured in a crawl of `PACE` pages a second, since the
loop of a crawl at full speed is never idle and each of its turns is long.

Usage: python -m benchmarks.crawl_overhead [PAGES]
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from clusterd_crawler import topics
from clusterd_crawler.message import Verdict, decode, encode_verdict
from clusterd_crawler.redis_client import connect
from clusterd_crawler.sketch import Sketch

from tests.services.redis_server import redis_server

PAGES = 5000
TURNS = 2
DOCUMENTS = Path("/usr/share/doc")
#: Different pages that are enough.
ENOUGH = 1000
#: Pages a second, and pages, of the crawl in which pauses are measured.
PACE = 50
PACED_PAGES = 500
#: Sizes of the pages taken, in bytes of HTML.
SIZES = (2_000, 200_000)


def documents(count: int) -> list[bytes]:
    """Return real documentation pages, or made ones."""
    paths = sorted(DOCUMENTS.rglob("*.html"))
    real = [path.read_bytes() for path in paths if path.is_file() and SIZES[0] < path.stat().st_size < SIZES[1]]
    if len(real) < ENOUGH:
        return [made(n) for n in range(count)]
    return random.Random(1).choices(real, k=count)


def made(number: int) -> bytes:
    """Return a page of 7.7 KB of text in 20 KB of HTML, the mean of documentation packages."""
    chance = random.Random(number)
    words = ["".join(chance.choices("abcdefghijklmnoprstuw", k=chance.randint(2, 10))) for _ in range(500)]
    parts = [f"<html><head><title>Page {number}</title></head><body><nav><ul>"]
    parts += [f'<li><a href="/{n}"><span class="menu">{words[n]}</span></a></li>' for n in range(60)]
    parts.append("</ul></nav><main>")
    for section in range(12):
        parts.append(f'<h2 id="s{section}">{" ".join(chance.choices(words, k=4))}</h2>')
        parts.append(f"<p>{' '.join(chance.choices(words, k=70))}</p>")
        parts.append(f'<pre class="code"><span>{" ".join(chance.choices(words, k=20))}</span></pre>')
    return "".join([*parts, "</main></body></html>"]).encode()


def serve(pages: list[bytes], port: Any) -> None:
    """Serve ``/N`` (a process of its own)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = pages[int(self.path[1:])]
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port.send(server.server_address[1])
    server.serve_forever()


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


def daemon_cost(site: str, count: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Crawl once with a real daemon; return the row of its CPU a page."""
    prefix = "bench-daemon:"
    place = {**os.environ, "CLUSTERD_REDIS": settings["CLUSTERD_REDIS"], "CLUSTERD_REDIS_PREFIX": prefix}
    daemon = subprocess.Popen([sys.executable, "-m", "clusterd", "run"], env=place, stderr=subprocess.DEVNULL)
    try:
        crawl(site, count, {**settings, "CLUSTERD_REDIS_PREFIX": prefix, "CLUSTERD_SKIP": False})
        client, stream = connect(settings["CLUSTERD_REDIS"]), topics.stream(prefix, topics.SKETCHES)
        while any(group["pending"] or group["lag"] for group in client.xinfo_groups(stream)):
            time.sleep(0.1)
        client.close()
        taken = Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()
    finally:
        daemon.terminate()
        daemon.wait()
    spent = (int(taken[11]) + int(taken[12])) / os.sysconf("SC_CLK_TCK")
    value = round(1000 * spent / count, 3)
    return {"work": "crawl: the daemon's CPU a page", "subject": "clusterd", "value": value, "unit": "ms"}


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


def crawl(site: str, count: int, settings: dict[str, Any]) -> dict[str, float]:
    """Crawl once; return what `benchmarks.crawl_overhead_spider` measured."""
    command = [sys.executable, "-m", "benchmarks.crawl_overhead_spider", site, str(count), json.dumps(settings)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(count: int = PAGES) -> list[dict[str, Any]]:
    """Measure in turns; medians."""
    ours, theirs = multiprocessing.Pipe()
    with (
        tempfile.TemporaryDirectory() as folder,
        redis_server(Path(folder)) as url,
        process(serve, documents(count), theirs),
        process(answer, url, "bench:"),
    ):
        site = f"http://127.0.0.1:{ours.recv()}"
        switched_on = {
            "ADDONS": {"clusterd_crawler.Addon": 500},
            "CLUSTERD_REDIS": url,
            "CLUSTERD_REDIS_PREFIX": "bench:",
            "CLUSTERD_SPOOL": f"{folder}/spool",
        }
        paced = {"DOWNLOAD_DELAY": 1 / PACE, "DOWNLOAD_DELAY_JITTER": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8}
        few = min(count, PACED_PAGES)
        full = [(crawl(site, count, {}), crawl(site, count, switched_on)) for _ in range(TURNS)]
        slow = [(crawl(site, few, paced), crawl(site, few, {**switched_on, **paced})) for _ in range(TURNS)]
        daemon = daemon_cost(site, count, switched_on)
    return [*rows(full, slow), {**daemon, "peer": "", "ratio": None}]


Turns = list[tuple[dict[str, float], dict[str, float]]]


def rows(full: Turns, slow: Turns) -> list[dict[str, Any]]:
    """Return the table's rows: the add-on beside the bare crawl."""

    def row(subject: str, turns: Turns, field: str, unit: str) -> dict[str, Any]:
        off, on = (statistics.median(turn[side][field] for turn in turns) for side in (0, 1))
        return {
            "work": f"crawl: {subject}",
            "subject": "clusterd",
            "value": round(on, 3),
            "unit": unit,
            "peer": f"Scrapy alone {off:.3f}",
            "ratio": round(on / off, 3),
        }

    return [
        row("CPU a page", full, "cpu_ms", "ms"),
        row("CPU a page in the loop's thread", full, "loop_cpu_ms", "ms"),
        row("pages a second", full, "rate", "1/s"),
        row(f"longest pause of the event loop at {PACE} pages/s", slow, "longest_ms", "ms"),
        row(f"99.9th percentile of its pauses at {PACE} pages/s", slow, "pause_999_ms", "ms"),
    ]


if __name__ == "__main__":
    for line in run(*map(int, sys.argv[1:])):
        print(json.dumps(line))
