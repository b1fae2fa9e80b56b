"""One crawl that measures itself. Usage: python -m benchmarks.crawl_overhead_spider SITE PAGES PART PARTS MODE SETTINGS

Every page of a part of the site is a start URL, so that each crawl fetches the same pages; those of the other parts
count as seen. What is done with a page is the mode:

- ``follow``: what a `CrawlSpider` does: an item (title, headings, first paragraph) and every link that Scrapy's
  `LinkExtractor` finds is asked for, once each (about fifty requests a page go through duplicate filter and signals);
- ``list``: title and links are taken by two CSS selectors and nothing is followed: the least that a spider does;
- ``pauses``: nothing at all, and a beat measures how long the loop is busy (`benchmarks.crawl_overhead_pauses`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.dupefilters import RFPDupeFilter
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor

from benchmarks.crawl_overhead_pauses import Beat, own_callbacks
from benchmarks.crawl_overhead_site import documents


class Seen(RFPDupeFilter):
    """The duplicate filter of a crawl for which the other parts of the site are behind it."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Seen:
        made = super().from_crawler(crawler)
        assert isinstance(crawler.spider, Measured)
        for url, mine in crawler.spider.site.items():
            if not mine:
                made.request_seen(scrapy.Request(url))
        return made


class Measured(scrapy.Spider):
    """See the module."""

    name = "measured"

    def __init__(self, site: str, count: int, part: int, parts: int, mode: str) -> None:
        super().__init__()
        self.site = {site + path: number % parts == part for number, path in enumerate(documents(count))}
        self.urls = [url for url, mine in self.site.items() if mine]
        self.mode, self.count, self.fetched = mode, len(self.urls), 0
        self.links = LinkExtractor(unique=True)
        self.beat = Beat()
        self.found: dict[str, float] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Measured:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.begin, signals.spider_opened)
        crawler.signals.connect(spider.end, signals.spider_idle)
        return spider

    def begin(self) -> None:
        if self.mode == "pauses":
            self.beat.begin()
        self.started = time.perf_counter(), time.process_time(), time.thread_time()

    def end(self) -> None:
        wall, cpu, loop_cpu = self.started
        assert self.fetched == self.count, f"{self.fetched} of {self.count} pages"
        self.found = {
            "cpu_ms": 1000 * (time.process_time() - cpu) / self.count,
            "loop_cpu_ms": 1000 * (time.thread_time() - loop_cpu) / self.count,
            "rate": self.count / (time.perf_counter() - wall),
            **self.beat.end(),
        }

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for url in self.urls:
            yield scrapy.Request(url)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        self.fetched += 1
        if self.mode == "list":
            yield {"title": response.css("title::text").get(), "links": response.css("a::attr(href)").getall()}
        elif self.mode == "follow":
            assert isinstance(response, HtmlResponse)
            yield {
                "title": response.css("title::text").get(),
                "headings": response.css("h1 ::text, h2 ::text").getall(),
                "summary": response.xpath("string(//p)").get(),
            }
            for link in self.links.extract_links(response):
                if link.url in self.site:
                    yield scrapy.Request(link.url)


def main(site: str, count: str, part: str, parts: str, mode: str, settings: str) -> None:
    """Crawl and print what was measured."""
    fixed = {
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "DEPTH_STATS_VERBOSE": False,
        "DUPEFILTER_CLASS": Seen,
    }
    process = CrawlerProcess({**fixed, **json.loads(settings)})
    crawler = process.create_crawler(Measured)
    process.crawl(crawler, site=site, count=int(count), part=int(part), parts=int(parts), mode=mode)
    with own_callbacks(mode == "pauses") as own:
        process.start()
    assert isinstance(crawler.spider, Measured)
    print(json.dumps({**crawler.spider.found, **own()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
