"""The crawl's side of clusterd: a page becomes a sketch, learned rules become skipped requests.

Importing this package imports no Scrapy: only touching :data:`Addon` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clusterd_crawler.addon import Addon

__all__ = ["Addon"]


def __getattr__(name: str) -> Any:
    """Load the add-on when it is asked for, so that the pure modules stay free of Scrapy."""
    if name == "Addon":
        from clusterd_crawler.addon import Addon

        return Addon
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
