"""The crawl's side of clusterd: a page becomes a sketch, learned rules become skipped requests.

Importing this package imports no Scrapy: only touching :data:`Addon` or :data:`SkippedDuplicate` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clusterd_crawler.addon import Addon
    from clusterd_crawler.crawling.skipped import SkippedDuplicate

__all__ = ["Addon", "SkippedDuplicate"]


def __getattr__(name: str) -> Any:
    """Load what needs Scrapy when it is asked for, so that the pure modules stay free of it."""
    if name == "Addon":
        from clusterd_crawler.addon import Addon

        return Addon
    if name == "SkippedDuplicate":
        from clusterd_crawler.crawling.skipped import SkippedDuplicate

        return SkippedDuplicate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
