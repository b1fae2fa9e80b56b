"""How a skipped request ends: in its errback, or silently where it has none."""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest


class SkippedDuplicate(IgnoreRequest):
    """The request was not sent: a rule says that ``known_url``, fetched in this crawl, shows the same content."""

    def __init__(self, rule: str, key: str, known_url: str) -> None:
        super().__init__(f"same content as {known_url} by rule {rule}")
        self.rule = rule
        self.key = key
        self.known_url = known_url
