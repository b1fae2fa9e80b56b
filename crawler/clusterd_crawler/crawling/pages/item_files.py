"""Files that items name for Scrapy's media pipelines: a page whose item names new ones leads to something new.

No request for them says which page they are from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from itemadapter import ItemAdapter, is_item
from scrapy.http import Response
from scrapy.settings import BaseSettings

from clusterd_crawler.crawling.remembered import Remembered


class ItemFiles:
    """For the loop's thread."""

    def __init__(self, settings: BaseSettings, led: Callable[[str], None]) -> None:
        """``led`` is called with the URL of a page that leads to new files."""
        self._fields = (settings["FILES_URLS_FIELD"] or "file_urls", settings["IMAGES_URLS_FIELD"] or "image_urls")
        self._seen: Remembered[bool] = Remembered()
        self._led = led

    def scraped(self, item: Any, response: Response | None) -> None:
        """Take an item that was scraped from a page."""
        if response is None or not is_item(item):
            return
        fields = ItemAdapter(item)
        lists = [fields.get(field) for field in self._fields]
        # What else a project keeps under these names, as a number of files, no pipeline takes.
        named = [url for urls in lists if isinstance(urls, list) for url in urls if isinstance(url, str)]
        new = [url for url in named if url not in self._seen]
        for url in new:
            self._seen.remember(url, True)
        if new:
            self._led(response.url.partition("#")[0])
