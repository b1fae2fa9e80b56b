"""One crawl that measures itself. Usage: python -m benchmarks.crawl_overhead_spider SITE PAGES SETTINGS"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import Response

#: Seconds between two beats; what a beat comes later is a pause of the loop.
BEAT = 0.001


class Measured(scrapy.Spider):
    """Fetches the pages and takes title and links off each, as spiders do."""

    name = "measured"

    def __init__(self, site: str, count: int) -> None:
        super().__init__()
        self.site, self.count = site, count
        self.pauses: list[float] = []
        self.found: dict[str, float] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Measured:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.begin, signals.spider_opened)
        crawler.signals.connect(spider.end, signals.spider_idle)
        return spider

    def begin(self) -> None:
        self.beating = asyncio.get_running_loop().create_task(self.beat())
        self.started = time.perf_counter(), time.process_time(), time.thread_time()

    async def beat(self) -> None:
        while True:
            due = time.perf_counter() + BEAT
            await asyncio.sleep(BEAT)
            self.pauses.append(time.perf_counter() - due)

    def end(self) -> None:
        wall, cpu, loop_cpu = self.started
        self.beating.cancel()
        self.pauses.sort()
        self.found = {
            "cpu_ms": 1000 * (time.process_time() - cpu) / self.count,
            "loop_cpu_ms": 1000 * (time.thread_time() - loop_cpu) / self.count,
            "longest_ms": 1000 * self.pauses[-1],
            "pause_999_ms": 1000 * self.pauses[int(0.999 * len(self.pauses))],
            "rate": self.count / (time.perf_counter() - wall),
        }

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for number in range(self.count):
            yield scrapy.Request(f"{self.site}/{number}")

    def parse(self, response: Response, **kwargs: Any) -> Iterator[dict[str, Any]]:
        yield {"title": response.css("title::text").get(), "links": response.css("a::attr(href)").getall()}


def main(site: str, count: str, settings: str) -> None:
    fixed = {
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
    }
    process = CrawlerProcess({**fixed, **json.loads(settings)})
    crawler = process.create_crawler(Measured)
    process.crawl(crawler, site=site, count=int(count))
    process.start()
    assert isinstance(crawler.spider, Measured)
    print(json.dumps(crawler.spider.found))


if __name__ == "__main__":
    main(*sys.argv[1:])
