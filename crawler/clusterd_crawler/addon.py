"""The add-on: ``ADDONS = {"clusterd_crawler.Addon": 500}`` is all that a project needs to say."""

from __future__ import annotations

from typing import Final

from scrapy.settings import BaseSettings

from clusterd_crawler.crawling.wrong_settings import told_plainly
from clusterd_crawler.middleware import (
    ClusterdMiddleware,
    ClusterdPages,
    ClusterdReading,
    ClusterdRefreshes,
    ClusterdSkips,
)
from clusterd_crawler.settings import Settings

#: Places among the downloader middlewares: of what considers requests, before retries (550), redirects (600) and the
#: cache (900); of what ends skipped requests, before Scrapy's that counts exceptions (850) hears of them; of what
#: notices pages that send their reader on, between Scrapy's that decompresses pages (590) and the one that follows
#: those (580); and of what takes responses, after all others.
REQUESTS: Final = 540
SKIPS: Final = 860
REFRESHES: Final = 585
PAGES: Final = -1000
#: Place among the spider middlewares: of all the nearest to the spider.
READING: Final = 10_000


class Addon:
    """Switches the middlewares on, and stops the start of a crawl whose ``CLUSTERD_`` settings are wrong."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Check the settings and add the middlewares. Those of a daemon wait: add-ons after us may name a store."""
        with told_plainly():
            chosen = Settings.from_crawl(dict(settings))
        if chosen.enabled:
            _place(settings, "DOWNLOADER_MIDDLEWARES", ClusterdMiddleware, REQUESTS)
            _place(settings, "DOWNLOADER_MIDDLEWARES", ClusterdSkips, SKIPS)
            _place(settings, "DOWNLOADER_MIDDLEWARES", ClusterdPages, PAGES)
            _place(settings, "DOWNLOADER_MIDDLEWARES", ClusterdRefreshes, REFRESHES)
            _place(settings, "SPIDER_MIDDLEWARES", ClusterdReading, READING)


def _place(settings: BaseSettings, name: str, middleware: type, place: int) -> None:
    """Add a middleware, unless the project has placed it itself.

    Scrapy's own way (``setdefault_in_component_priority_dict``) imports all others that are there. In a script no
    reactor is installed yet: where a module of theirs imports Twisted's, it would be another than the crawl is to have.
    """
    placed = settings.getdict(name)
    if placed.keys().isdisjoint({middleware, f"{middleware.__module__}.{middleware.__qualname__}"}):
        settings.set(name, {**placed, middleware: place}, settings.getpriority(name) or 0)
