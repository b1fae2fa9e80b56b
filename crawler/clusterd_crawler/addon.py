"""The add-on: ``ADDONS = {"clusterd_crawler.Addon": 500}`` is all that a project needs to say."""

from __future__ import annotations

from typing import Final

from scrapy.settings import BaseSettings

from clusterd_crawler.middleware import ClusterdMiddleware
from clusterd_crawler.settings import Settings

#: Place among the downloader middlewares: responses come here after retries (550), redirects (600), the cache (900).
ORDER: Final = 540


class Addon:
    """Switches the middleware on, and stops the start of a crawl whose ``CLUSTERD_`` settings are wrong."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Check the settings and add the middleware."""
        chosen = Settings.from_crawl(dict(settings))
        if chosen.enabled:
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", ClusterdMiddleware, ORDER)
