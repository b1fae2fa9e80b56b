"""What a crawl's requests are for (`purpose`): who reads the page, with what, as whom and in what form it is asked for.

Hashes are of what is written in the spider, so that crawlers of one crawl, and one that is resumed, mean the same by
them. What has no text of its own serves the process that saw it (`carried`).

A request's reader is its callback with ``cb_kwargs`` and with what the spider has put into its meta for it; of a
`CrawlSpider`, which gives all requests the same callback, what the spider's rule does with the page. Its session are
its cookies, where they are its own, the headers by which servers choose among the forms of a page, and what a browser
does on it. Not looked at is what components put into the meta: Scrapy's own, by the names of their keys, and those of
others, where a key begins with "_"; but items, and what only they are made of, are never theirs.

A request that a callback awaits itself (``engine.download_async``) has a reader of its own, and is always sent: there
nobody expects a skip, and with the exception all that the callback had gathered would be lost.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from functools import lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import mmh3
from itemadapter import is_item
from itemloaders import ItemLoader
from parsel import Selector
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.http.headers import Headers
from scrapy.settings import BaseSettings
from scrapy.spiders import CrawlSpider
from w3lib.http import basic_auth_header

from clusterd_crawler.crawling.requests.carried import Carried
from clusterd_crawler.crawling.requests.kinds import REDIRECTED, is_page
from clusterd_crawler.purpose import Purpose

logger = logging.getLogger(__name__)

#: Headers by which a server may choose what it shows under a URL.
AUTHORIZATION: Final = b"Authorization"
HEADERS: Final = frozenset({b"Accept", b"Accept-Language", AUTHORIZATION, b"X-Requested-With"})
#: Keys of a request's meta by which it has cookies of its own, or none, or is shown by a browser.
META: Final = ("cookiejar", "dont_merge_cookies", "playwright", "playwright_context")
#: Key of what scrapy-playwright's browser is to do on a page before it is read: objects, a list of them or a table.
PAGE_METHODS: Final = "playwright_page_methods"
#: Keys of a request's meta that Scrapy's components look at, or set, as do scrapy-impersonate, scrapy-playwright and
#: scrapy-rotating-proxies. As which browser a page is asked for is looked at no more than the header User-Agent:
#: projects draw one at random for each request.
COMPONENTS: Final = frozenset(
    {
        *("allow_offsite", "autothrottle_dont_adjust_delay", "bindaddress", "cache_timestamp", "cached_response"),
        *("depth", "depth_reset", "dont_cache", "dont_obey_robotstxt", "dont_redirect", "dont_retry"),
        *("download_fail_on_dataloss", "download_latency", "download_maxsize", "download_slot", "download_timeout"),
        *("download_warnsize", "ftp_local_filename", "ftp_passive", "give_up_log_level", "handle_httpstatus_all"),
        *("handle_httpstatus_list", "is_secure", "is_start_request", "max_retry_times", "priority_adjust", "proxy"),
        *("referrer_policy", "retry_times", "verbatim_url", *REDIRECTED),
        *("impersonate", "impersonate_request_bytes", "impersonate_response_bytes"),
        *("playwright_page", "proxy_retry_times"),
    }
)
#: What the keys of other components begin with, and ours.
OTHERS: Final = ("_", "clusterd_")
#: Keys that a `CrawlSpider` sets.
RULES: Final = frozenset({"rule", "link_text"})
#: What is written into items as it is.
_SCALARS: Final = frozenset({bool, bytes, float, int, str, type(None)})
#: Key of the meta of a request that a callback awaits: what a redirect or a retry makes of it bears it, too.
MARK: Final = "clusterd_awaited"
#: Stands for a callback that awaits its page.
AWAITED: Final = 2**64 - 1
#: Depths beyond are not told apart.
DEEPEST: Final = 2**32 - 1
#: Different objects that requests carry, after which that is said: no page keeps out requests with another.
ALONE: Final = 100
#: Readers and sessions whose numbers are remembered.
NUMBERS: Final = 4096


class Purposes:
    """For the loop's thread."""

    def __init__(self, spider: Spider, settings: BaseSettings, engine: Any = None) -> None:
        self._spider = spider
        self._carried = Carried()
        self._not_for_it = COMPONENTS.union(META, RULES if isinstance(spider, CrawlSpider) else ())
        default = settings.getdict("DEFAULT_REQUEST_HEADERS")
        names = HEADERS if settings.getbool("COOKIES_ENABLED") else HEADERS | {b"Cookie"}
        #: Names of the headers that are looked at, each with the value that a request has which says nothing.
        self._headers = {name: Headers(default).get(name) for name in sorted(names)}
        self._login = _login(settings.get("HTTPAUTH_USER"), settings.get("HTTPAUTH_PASS"))
        self._login = _login(getattr(spider, "http_user", ""), getattr(spider, "http_pass", "")) or self._login
        self._ends = settings.getint("DEPTH_LIMIT") > 0
        self._noted: WeakKeyDictionary[Request, Purpose] = WeakKeyDictionary()
        self._awaited: WeakSet[Request] = WeakSet()
        #: How often a request carried an object that none before had.
        self._alone = 0
        #: The latest readers by their numbers: callback, ``cb_kwargs``, and each value in meta behind its key.
        self._readers: OrderedDict[int, tuple[str, ...]] = OrderedDict()
        if engine is not None:
            self._listen(engine)

    def _listen(self, engine: Any) -> None:
        """Learn which requests are awaited: nothing else tells them from those that the scheduler hands out."""
        download = engine.download_async

        def noting(request: Request) -> Any:
            self._awaited.add(request)
            if is_page(request):
                request.meta[MARK] = True
            return download(request)

        engine.download_async = noting

    def is_awaited(self, request: Request) -> bool:
        """Whether a callback awaits the page."""
        return request in self._awaited or (MARK in request.meta and request.callback is None)

    def note(self, request: Request) -> None:
        """Note what a request is for as it is about to be sent: further on other middlewares add to its headers."""
        self._noted[request] = self.of(request)

    def take(self, request: Request, purpose: Purpose) -> None:
        """Note what a request is for that was made of one that other middlewares have added to."""
        self._noted[request] = purpose

    def noted(self, request: Request) -> Purpose:
        """Return what was noted, or what the request is for."""
        return self._noted.get(request) or self.of(request)

    def of(self, request: Request) -> Purpose:
        """Return what a request is for."""
        depth = min(max(int(request.meta.get("depth", 0)), 0), DEEPEST) if self._ends else 0
        return Purpose(self._reader(request), self._session(request), depth)

    def _reader(self, request: Request) -> int:
        if self.is_awaited(request):
            return AWAITED
        said = sorted(
            f"{key} {self._said(value, 'meta', key)}"
            for key, value in request.meta.items()
            if self._is_said(key, value)
        )
        given = self._said(request.cb_kwargs, "cb_kwargs") if request.cb_kwargs else ""
        reader = self._callback(request), given, *said
        number = _number(reader)
        self._readers[number] = reader
        if len(self._readers) > NUMBERS:
            self._readers.popitem(last=False)
        return number

    def difference(self, request: Request, known: Purpose) -> str:
        """Return, for people, in what the purpose of a request is another than that of a known page."""
        purpose = self.noted(request)
        if purpose.reader == known.reader:
            return "depth" if purpose.session == known.session else "cookies or headers"
        mine, other = self._readers.get(purpose.reader), self._readers.get(known.reader)
        if mine is None or other is None:
            return "callback, cb_kwargs or meta"
        found = [name for name, one, two in zip(("callback", "cb_kwargs"), mine, other, strict=False) if one != two]
        keys = sorted({value.partition(" ")[0] for value in {*mine[2:]} ^ {*other[2:]}})
        return ", ".join([*found, *(f"meta[{key!r}]" for key in keys)])

    def _said(self, value: Any, where: str, key: Any = None) -> str:
        """Return what a request carries there; of very many objects, each in one request or a few, tell once."""
        before = self._carried.alone
        said = self._carried.text(value)
        if self._carried.alone > before:
            self._alone += 1
            if self._alone == ALONE:
                logger.warning(
                    "Requests carry other and other objects in %s%s: as the callback may need its own, a page keeps out"
                    ' only requests with the same object. A key of meta that begins with "_" is not looked at, but for'
                    " items",
                    where,
                    "" if key is None else f"[{key!r}] ({type(value).__qualname__})",
                )
        return said

    def _is_said(self, key: Any, value: Any) -> bool:
        """Whether something in a request's meta is for the callback."""
        if key == PAGE_METHODS:
            return False
        try:
            return _is_carried(value) or (key not in self._not_for_it and not str(key).startswith(OTHERS))
        except Exception:  # whatever the classes of the project raise when they are asked; a list that holds itself
            return True

    def _callback(self, request: Request) -> str:
        spider, callback = self._spider, request.callback
        if isinstance(spider, CrawlSpider):
            number = request.meta.get("rule")
            if isinstance(number, int) and 0 <= number < len(spider._rules) and callback == spider._callback:
                rule = spider._rules[number]
                return f"{self._identity(rule.callback)} {self._carried.text(rule.cb_kwargs)} {rule.follow}"
        elif callback is None:
            callback = spider.parse
        return self._identity(callback)

    def _identity(self, callback: Any) -> str:
        return "" if callback is None else self._carried.function(callback)

    def _session(self, request: Request) -> int:
        headers, there = request.headers, request.headers.keys()  # their own look-up takes as long as all the rest
        chosen = {name: headers.get(name) for name in self._headers if name in there}
        text = self._carried.text
        if AUTHORIZATION in chosen and chosen[AUTHORIZATION] == self._added_login(request):
            del chosen[AUTHORIZATION]
        said = [f"{name!r} {value!r}" for name, value in chosen.items() if value != self._headers[name]]
        said += [f"{name} {text(request.meta[name])}" for name in META if request.meta.get(name) is not None]
        if request.cookies:
            said.append(text(request.cookies))
        if methods := request.meta.get(PAGE_METHODS):
            said.append(f"{PAGE_METHODS} {text(_page_methods(methods))}")
        return _number(tuple(said)) if said else 0

    def _added_login(self, request: Request) -> bytes | None:
        """Return the header by which Scrapy's middleware has a request log in, when it is about to be sent.

        A link does not have it yet. What login is in its own meta tells its reader from others.
        """
        return _login(request.meta.get("http_user"), request.meta.get("http_pass")) or self._login


@lru_cache(NUMBERS)
def _number(said: tuple[str, ...]) -> int:
    """Return the hash of what is said, but for 0 and `AWAITED`."""
    number = int(mmh3.hash64(repr(said).encode("utf-8", "surrogatepass"), signed=False)[0])
    return min(max(number, 1), AWAITED - 1)


def _login(user: Any, password: Any) -> bytes | None:
    """Return the header of a login as Scrapy makes it; None where there is none."""
    return basic_auth_header(user or "", password or "") if user or password else None


def _page_methods(given: Any) -> Any:
    """Return what a browser is told to do: each request has objects of its own, whose results come beside."""
    methods = list(given.values()) if isinstance(given, dict) else given
    if not isinstance(methods, (list, tuple, set, frozenset)):
        return methods
    return [tuple(getattr(one, part, one) for part in ("method", "args", "kwargs")) for one in methods]


def _is_carried(value: Any) -> bool:
    """Whether only a spider puts such a value into a meta: an item, or what one is made of, also several in a list."""
    if type(value) in _SCALARS:
        return False
    if isinstance(value, (list, tuple)):
        return any(_is_carried(one) for one in value)
    return is_item(value) or isinstance(value, (ItemLoader, Selector, Response))
