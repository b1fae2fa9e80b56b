"""A spider that follows every link of the site; run as a program, it crawls once and writes what it fetched.

Usage: python -m tests.demo.spider START OUT.jsonl DATA|-      ("-": without clusterd)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response


class FollowAll(scrapy.Spider):
    """Follows every link of a page."""

    name = "follow-all"

    def __init__(self, start: str, out: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start + "/"]
        self.out = Path(out)
        self.out.write_text("", encoding="utf-8")

    def parse(self, response: Response, **kwargs: Any) -> Iterator[scrapy.Request]:
        with self.out.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"url": response.url, "flags": response.flags}) + "\n")
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, callback=self.parse)


def main(start: str, out: str, data: str) -> None:
    """Crawl once."""
    settings: dict[str, Any] = {
        "LOG_LEVEL": "WARNING",
        "COOKIES_ENABLED": False,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
    }
    if data != "-":
        settings |= {"ADDONS": {"clusterd_crawler.Addon": 500}, "CLUSTERD_DATA": data}
    process = CrawlerProcess(settings)
    process.crawl(FollowAll, start=start, out=out)
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
