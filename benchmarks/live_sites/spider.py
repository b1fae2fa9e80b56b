"""Crawl a live site whole; write, for each page fetched, its URL and which content it showed.

Usage: python -m benchmarks.live_sites.spider START OUT.jsonl DATA|- LIMIT [ENDLESS]

ENDLESS is a regular expression of links that are not followed: an application that links ``revcount=2^n`` without end
has no whole. A limit of depth would do as well, but what a crawl reaches within it hangs on which of two equal pages it
fetched.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import scrapy
from clusterd_crawler.page import sketch_page
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response, TextResponse


class Whole(scrapy.Spider):
    """Follows every link that stays on the machine's address, but for those that never end."""

    name = "whole"

    def __init__(self, start: str, out: str, endless: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start]
        self.address = urlsplit(start).hostname
        self.endless = re.compile(endless or r"(?!)")
        self.out = Path(out)
        self.out.write_text("", encoding="utf-8")

    def parse(self, response: Response, **kwargs: Any) -> Iterator[scrapy.Request]:
        if not isinstance(response, TextResponse) or b"html" not in (response.headers.get("Content-Type") or b""):
            return
        sketch = sketch_page(response.url, response.body, "text/html", fetched_at=0)
        line = {"url": response.url, "main": sketch.main.text, "whole": sketch.whole.text}
        with self.out.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        for href in response.css("a::attr(href)").getall():
            url = response.urljoin(href.strip())
            here = url.startswith("http") and urlsplit(url).hostname == self.address
            if here and self.endless.search(url) is None:
                yield response.follow(href, callback=self.parse)


def main(start: str, out: str, data: str, limit: str, endless: str = "") -> None:
    """Crawl once."""
    settings: dict[str, Any] = {
        "LOG_LEVEL": "ERROR",
        "COOKIES_ENABLED": False,
        "CLOSESPIDER_PAGECOUNT": int(limit),
        "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "RETRY_ENABLED": False,
        # Breadth first, as crawls of whole sites go.
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }
    if data != "-":
        settings |= {"ADDONS": {"clusterd_crawler.Addon": 500}, "CLUSTERD_DATA": data}
    process = CrawlerProcess(settings)
    process.crawl(Whole, start=start, out=out, endless=endless)
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
