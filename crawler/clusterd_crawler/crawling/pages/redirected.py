"""Requests that a site redirects: what is seen at the end of it, their URL shows as well.

A redirect costs a request, and often a page that is fetched anew: every link to edit something leads to the log-in
page. So the daemon is told what leads where. A redirect is read as it comes from the network, since no page may follow:
Scrapy's duplicate filter drops what was fetched before. To Scrapy a page that sends its reader on is a redirect as well
(``<meta http-equiv="refresh">``), which no spider is given. A browser that fetches for Scrapy follows by itself, also
where a script sends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware
from scrapy.http import HtmlResponse, Response
from scrapy.utils.response import get_meta_refresh

from clusterd_crawler.clock import now_ms
from clusterd_crawler.crawling.pages.reporter import Reporter
from clusterd_crawler.crawling.pages.responses import is_good
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.explored import Explored
from clusterd_crawler.crawling.requests.kinds import is_page
from clusterd_crawler.crawling.requests.purposes import PAGE_METHODS
from clusterd_crawler.message import may_speak_of
from clusterd_crawler.skipping.redirects import STATUSES, leads_to

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Redirected:
    """Which responses redirect, as far as Scrapy follows them for this spider. For the loop's thread."""

    def __init__(self, crawler: Crawler, decisions: Decisions, reporter: Reporter, explored: Explored) -> None:
        self._follows = crawler.settings.getbool("REDIRECT_ENABLED")
        self._refreshes = crawler.get_downloader_middleware(MetaRefreshMiddleware) is not None
        self._ignored = crawler.settings.getlist("METAREFRESH_IGNORE_TAGS")
        self._longest = crawler.settings.getint("METAREFRESH_MAXDELAY")
        self._handled = frozenset(getattr(crawler.spider, "handle_httpstatus_list", ()))
        self._decisions = decisions
        self._reporter = reporter
        self._explored = explored

    def note(self, request: Request, response: Response) -> None:
        """Note and tell where a response leads, if it leads somewhere."""
        target = self._target(request, response) if is_page(request) else None
        if target is not None:
            self._tell(request, target)

    def refreshed(self, request: Request, response: Response) -> None:
        """Note and tell where a page sends its reader, if it does. What Scrapy finds there, it looks for once."""
        if not self._refreshes or not isinstance(response, HtmlResponse) or request.meta.get("dont_redirect"):
            return
        if not is_page(request) or self._is_old(request, response):
            return
        try:
            delay, found = get_meta_refresh(response, ignore_tags=self._ignored)
        except (ValueError, LookupError):
            return  # no address (``http://[``), no charset: Scrapy says so itself, and follows none
        target = (found or "").partition("#")[0]
        if delay is not None and delay < self._longest:
            self._tell(request, target)

    def browsed(self, request: Request, response: Response) -> None:
        """Note and tell where a browser has gone, as scrapy-playwright's: of all that Scrapy is given the end.

        Where the spider has it do something on the page, as click, that may have led there.
        """
        target = response.url.partition("#")[0]
        if target == request.url.partition("#")[0] or not is_good(response) or request.meta.get(PAGE_METHODS):
            return
        if not self._is_old(request, response):
            self._tell(request, target)

    def _is_old(self, request: Request, response: Response) -> bool:
        """Whether a response was told of when it was fetched, before the HTTP cache gave it, and is no trial."""
        return "cached" in response.flags and request.url not in self._explored

    def _tell(self, request: Request, target: str) -> None:
        url, at = request.url.partition("#")[0], now_ms()
        if may_speak_of(url) and may_speak_of(target):
            self._decisions.redirected(url, at, target)
            self._reporter.redirected(url, at, target, self._explored.pop(url))

    def _target(self, request: Request, response: Response) -> str | None:
        """Return the page to which a response leads, be it of another site; None where it leads to none."""
        location = response.headers.get("Location") if response.status in STATUSES else None
        if location is None or not self._is_followed(request, response.status):
            return None
        return leads_to(request.url, location)

    def _is_followed(self, request: Request, status: int) -> bool:
        meta = request.meta
        if not self._follows or meta.get("dont_redirect") or meta.get("handle_httpstatus_all"):
            return False
        return status not in meta.get("handle_httpstatus_list", self._handled)
