"""w3lib's ``canonicalize_url``: what Scrapy knows of every URL without learning anything."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from w3lib.url import canonicalize_url


class Canonical:
    """One rule that holds everywhere."""

    def rewrites(self, url: str) -> Iterator[tuple[Hashable, str]]:
        """Yield the canonical form."""
        yield "canonicalize_url", canonicalize_url(url)
