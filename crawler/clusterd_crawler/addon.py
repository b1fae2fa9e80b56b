"""The add-on: ``ADDONS = {"clusterd_crawler.Addon": 500}`` is all that a project needs to say."""

from __future__ import annotations

from typing import Final

from scrapy.settings import BaseSettings

from clusterd_crawler.crawling.wrong_settings import told_plainly
from clusterd_crawler.middleware import ClusterdMiddleware, ClusterdPages, ClusterdReading, ClusterdRefreshes
from clusterd_crawler.settings import Settings

#: Places among the downloader middlewares: of what considers requests, before retries (550), redirects (600) and the
#: cache (900); of what notices pages that send their reader on, between Scrapy's that decompresses pages (590) and the
#: one that follows those (580); and of what takes responses, after all others.
REQUESTS: Final = 540
REFRESHES: Final = 585
PAGES: Final = -1000
#: Place among the spider middlewares: of all the nearest to the spider.
READING: Final = 10_000


class Addon:
    """Switches the middlewares on, and stops the start of a crawl whose ``CLUSTERD_`` settings are wrong."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Check the settings and add the middlewares."""
        with told_plainly():
            chosen = Settings.from_crawl(dict(settings))
        if chosen.enabled:
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", ClusterdMiddleware, REQUESTS)
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", ClusterdPages, PAGES)
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", ClusterdRefreshes, REFRESHES)
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", ClusterdReading, READING)
