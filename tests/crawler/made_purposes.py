"""What requests of a spider are for, as a crawl finds it, without one."""

from __future__ import annotations

from typing import Any

from clusterd_crawler.crawling.requests.purposes import Purposes
from scrapy import Spider
from scrapy.http import Response
from scrapy.utils.test import get_crawler

HOST = "h.com"


class Reading(Spider):
    name = "reading"

    def parse_item(self, response: Response) -> None:
        pass


def purposes(kind: type[Spider], **settings: Any) -> tuple[Purposes, Any]:
    crawler = get_crawler(kind, settings)
    spider = crawler._create_spider()
    return Purposes(spider, crawler.settings), spider
