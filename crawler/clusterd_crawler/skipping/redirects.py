"""Where redirects lead, and which URLs led to a page by them: what it shows, they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urljoin

from w3lib.url import safe_url_string

#: Statuses of the redirects that Scrapy and browsers follow.
STATUSES: Final = frozenset({301, 302, 303, 307, 308})
#: Most redirects that are remembered of a domain; of what is not, the rest is fetched, and nothing is lost.
LIMIT: Final = 100_000
#: Redirects of a chain that are followed, as many as Scrapy and browsers do; none leads anywhere beyond.
HOPS: Final = 20


def leads_to(url: str, location: str | bytes) -> str | None:
    """Return the page to which a redirect leads, be it of another site, without fragment; None where that is none.

    >>> leads_to("http://h.com/a/b", "../c d#top"), leads_to("http://h.com/", "mailto:me@h.com")
    ('http://h.com/c%20d', None)
    """
    try:
        found = urljoin(url, safe_url_string(location)).partition("#")[0]
    except ValueError:  # ``http://[``
        return None
    return found if found.startswith(("http://", "https://")) and url.startswith(("http://", "https://")) else None


class Redirects:
    """Of one domain: canonical URLs, each with what it was redirected to last."""

    def __init__(self) -> None:
        self._to: dict[str, str] = {}
        #: What was redirected to → from where; no order is wanted, but dictionaries keep one that a rerun keeps too.
        self._from: dict[str, dict[str, None]] = {}

    def __contains__(self, url: str) -> bool:
        return url in self._to

    def note(self, url: str, target: str) -> None:
        """Note a redirect."""
        before = self._to.get(url)
        if url == target or before == target or (before is None and len(self._to) >= LIMIT):
            return
        if before is not None:
            del self._from[before][url]
            if not self._from[before]:  # a URL that leads somewhere else each time would leave one for each
                del self._from[before]
        self._to[url] = target
        self._from.setdefault(target, {})[url] = None

    def target(self, url: str) -> str:
        """Return where a URL leads in the end; itself where it leads to itself again, or nobody follows it so far."""
        at = url
        for _ in range(HOPS + 1):
            if (then := self._to.get(at)) is None:
                return at
            at = then
        return url

    def led_to(self, url: str) -> Iterator[str]:
        """Yield the URLs that lead to one, over others too; those next to it first."""
        seen = {url}
        reached = [url]
        for _ in range(HOPS):
            leading = []
            for one in (one for to in reached for one in self._from.get(to, ())):
                if one not in seen:
                    seen.add(one)
                    leading.append(one)
                    yield one
            if not (reached := leading):
                return
