"""Rewriting of requests to their key, off by default: ``/a?sid=7`` is asked for as ``/a`` where ``/a`` was linked too.

A key is asked for only where the crawl has seen it as a link, so that nothing is asked for that nobody linked, and
once: its own request, where it still waits, is skipped when the page has come. Where the key brings no page, the URL
that was linked is asked for after all. A rewritten request is never rewritten again. Once the page has come, the crawl
decides about the URL that was linked as about any other of its key: it is kept out, or tried, or fetched. Where the key
was redirected, what it led to answers for that URL only if nothing else has shown it: bare URLs often lead to the
log-in page, or to the first, where those with a session show what they name.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final

from scrapy import Request

from clusterd_crawler.crawling.requests.kinds import LED, READ, REDIRECTED, is_passed_on
from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.urls import canonical, canonical_if_any, hash_of

#: Links remembered, as 8-byte hashes; of more the oldest are forgotten, and not rewritten to.
LINKS: Final = 2_000_000
#: Key of a request's meta: the URL that was linked; "" where it is asked for as it is.
META: Final = "clusterd_linked_url"


class Rewriting:
    """For the loop's thread."""

    def __init__(self) -> None:
        #: Hash of a link → whether it was asked for, by its own request or by one that was rewritten to it.
        self._links: OrderedDict[int, bool] = OrderedDict()
        #: Hashes of the keys that were asked for and came → the rule that asked, and what for.
        self._came: dict[int, tuple[str, Purpose]] = {}

    def linked(self, url: str) -> None:
        """Note a link that the spider wants to follow."""
        if not (url := canonical_if_any(url)):
            return
        self._links.setdefault(hash_of(url), False)
        if len(self._links) > LINKS:
            self._came.pop(self._links.popitem(last=False)[0], None)

    def asked(self, url: str) -> None:
        """Note that a URL was asked for, whatever came of it."""
        link = hash_of(canonical_if_any(url))
        if link in self._links:
            self._links[link] = True

    def rewritten(self, request: Request, key: str) -> Request | None:
        """Return the request to be sent instead, None where this one is to be sent."""
        if is_rewritten(request) or not key.startswith(("http://", "https://")) or not self._may_ask(key, request.url):
            return None
        self._links[hash_of(key)] = True
        return request.replace(url=key, dont_filter=True, meta={**_bare(request), META: request.url})

    def _may_ask(self, key: str, url: str) -> bool:
        return self._links.get(hash_of(key)) is False and canonical(url) != key

    def came(self, request: Request, rule: str, purpose: Purpose = ANYONE) -> None:
        """Note that a good page came for a request that was rewritten by a rule, be it by a redirect."""
        for link in _asked_for(request):
            self._came[link] = rule, purpose

    def broke_off(self, request: Request) -> None:
        """Note that a page that came is none, or that an exception was raised of it: it answers for nothing."""
        for link in _asked_for(request) if self._came else ():
            self._came.pop(link, None)

    def has_come(self, url: str, purpose: Purpose = ANYONE) -> str | None:
        """Return the rule by which a request was rewritten to this very URL, and brought its page; else None."""
        if not self._came:
            return None
        rule, served = self._came.get(hash_of(canonical_if_any(url)), (None, purpose))
        return rule if served.serves(purpose) else None


def _asked_for(request: Request) -> Iterator[int]:
    """Yield the hashes of the URLs that a request has asked for, be it before a redirect."""
    for url in (request.url, *(request.meta.get("redirect_urls") or ())[:1]):
        if form := canonical_if_any(url):
            yield hash_of(form)


def goes_round(request: Request) -> bool:
    """Whether redirects lead to where they have led before, or the last comes that Scrapy follows.

    A site does so to who has no session yet. When Scrapy gives up, no middleware hears of it.
    """
    led = request.meta.get("redirect_urls", ())
    return bool(led) and (request.url in led or request.meta.get("redirect_ttl", 1) <= 0)


def original(request: Request) -> Request | None:
    """Return a request as it was linked, where it was rewritten: also before a pause, by a crawl that rewrites no more.

    What a redirect has noted goes, or the URL would count as what one leads to.
    """
    linked = request.meta.get(META) if is_rewritten(request) else None
    return request.replace(url=linked, dont_filter=True, meta={**_bare(request), META: ""}) if linked else None


def is_rewritten(request: Request) -> bool:
    """Whether a request was rewritten, or is asked for as it was linked after that; not one that was given its meta."""
    return META in request.meta and not is_passed_on(request)


def _bare(request: Request) -> dict[str, Any]:
    """Return a request's meta without what was noted of redirects, and of the page that the spider was given."""
    return {key: value for key, value in request.meta.items() if key not in {READ, LED, *REDIRECTED}}
