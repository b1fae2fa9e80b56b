"""What a crawl's requests are for (`purpose`): who reads the page, with what, as whom and in what form it is asked for.

Hashes are of what is written in the spider, so that crawlers of one crawl, and one that is resumed, mean the same by
them. What differs from process to process, as an object without a text of its own, serves the process that saw it.

A request's reader is its callback with ``cb_kwargs`` and with the items that it carries along in its meta; of a
`CrawlSpider`, which gives all requests the same callback, what the spider's rule does with the page. Its session are
its cookies, where they are its own, and the headers by which servers choose among the forms of a page. Other meta is
not looked at: components put what they like there.

A request that a callback awaits itself (``engine.download_async``) has a reader of its own, and is always sent: there
nobody expects a skip, and with the exception all that the callback had gathered would be lost.
"""

from __future__ import annotations

from functools import lru_cache, partial
from types import CellType, CodeType
from typing import Any, Final
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakSet

import mmh3
from itemadapter import is_item
from scrapy import Request, Spider
from scrapy.http.headers import Headers
from scrapy.settings import BaseSettings
from scrapy.spiders import CrawlSpider

from clusterd_crawler.purpose import Purpose

#: Headers by which a server may choose what it shows under a URL.
HEADERS: Final = frozenset({b"Accept", b"Accept-Language", b"Authorization", b"X-Requested-With"})
#: Keys of a request's meta by which it has cookies of its own, or none, or is shown by a browser.
META: Final = ("cookiejar", "dont_merge_cookies", "playwright", "playwright_context")
#: What no item is made of.
_SCALARS: Final = frozenset({bool, bytes, float, int, list, str, tuple, type(None)})
#: Stands for a callback that awaits its page.
AWAITED: Final = 2**64 - 1
#: Depths beyond are not told apart.
DEEPEST: Final = 2**32 - 1
#: Names this process, where a thing has no other name than its place in memory.
PROCESS: Final = uuid4().hex
#: Readers and sessions whose numbers are remembered.
NUMBERS: Final = 4096
#: What a number is made of: texts, and tuples of such.
Said = tuple[object, ...]


class Purposes:
    """For the loop's thread."""

    def __init__(self, spider: Spider, settings: BaseSettings, engine: Any = None) -> None:
        self._spider = spider
        default = settings.getdict("DEFAULT_REQUEST_HEADERS")
        # The middleware gives a spider's ``http_user`` to all requests, when they are about to be sent.
        names = HEADERS - ({b"Authorization"} if getattr(spider, "http_user", "") else set())
        if not settings.getbool("COOKIES_ENABLED"):
            names |= {b"Cookie"}
        #: Names of the headers that are looked at, each with the value that a request has which says nothing.
        self._headers = {name: Headers(default).get(name) for name in sorted(names)}
        self._ends = settings.getint("DEPTH_LIMIT") > 0
        self._noted: WeakKeyDictionary[Request, Purpose] = WeakKeyDictionary()
        self._awaited: WeakSet[Request] = WeakSet()
        if engine is not None:
            self._listen(engine)

    def _listen(self, engine: Any) -> None:
        """Learn which requests are awaited: nothing else tells them from those that the scheduler hands out."""
        download = engine.download_async

        def noting(request: Request) -> Any:
            self._awaited.add(request)
            return download(request)

        engine.download_async = noting

    def is_awaited(self, request: Request) -> bool:
        """Whether a callback awaits the page."""
        return request in self._awaited

    def note(self, request: Request) -> None:
        """Note what a request is for as it is about to be sent: further on other middlewares add to its headers."""
        self._noted[request] = self.of(request)

    def noted(self, request: Request) -> Purpose:
        """Return what was noted, or what the request is for."""
        return self._noted.get(request) or self.of(request)

    def of(self, request: Request) -> Purpose:
        """Return what a request is for."""
        depth = min(max(int(request.meta.get("depth", 0)), 0), DEEPEST) if self._ends else 0
        return Purpose(self._reader(request), self._session(request), depth)

    def _reader(self, request: Request) -> int:
        if request in self._awaited:
            return AWAITED
        carried = [repr(value) for value in request.meta.values() if type(value) not in _SCALARS and is_item(value)]
        given = repr(request.cb_kwargs) if request.cb_kwargs else ""
        return _number((self._callback(request), given, *carried))

    def _callback(self, request: Request) -> Said:
        spider, callback = self._spider, request.callback
        if isinstance(spider, CrawlSpider):
            number = request.meta.get("rule")
            if isinstance(number, int) and 0 <= number < len(spider._rules) and callback == spider._callback:
                rule = spider._rules[number]
                return _identity(rule.callback), repr(rule.cb_kwargs), str(rule.follow)
        elif callback is None:
            callback = spider.parse
        return _identity(callback)

    def _session(self, request: Request) -> int:
        headers, there = request.headers, request.headers.keys()  # their own look-up takes as long as all the rest
        chosen = {name: headers.get(name) for name in self._headers if name in there}
        said: list[object] = [(name, repr(value)) for name, value in chosen.items() if value != self._headers[name]]
        said += [(name, repr(request.meta[name])) for name in META if request.meta.get(name) is not None]
        if request.cookies:
            said.append(repr(request.cookies))
        return _number(tuple(said)) if said else 0


@lru_cache(NUMBERS)
def _number(said: Said) -> int:
    """Return the hash of what is said, but for 0 and `AWAITED`."""
    number = int(mmh3.hash64(repr(said).encode("utf-8", "surrogatepass"), signed=False)[0])
    return min(max(number, 1), AWAITED - 1)


def _identity(callback: Any) -> Said:
    """Return what a callback is, however often it is made: a method is bound again for each request, a lambda made."""
    if isinstance(callback, partial):
        return _identity(callback.func), repr(callback.args), repr(callback.keywords)
    function = getattr(callback, "__func__", callback)
    code = getattr(function, "__code__", None)
    if code is None:
        return ("",) if callback is None else (PROCESS, str(id(function)))
    name = (str(function.__module__), str(function.__qualname__))
    if "<" not in name[1] or _is_method(callback, function):  # there is one of this name
        return name
    given = repr(function.__defaults__), *(_content(cell) for cell in function.__closure__ or ())
    return *name, *_written(code), *given


def _is_method(callback: Any, function: Any) -> bool:
    """Whether a callback is a method of a spider's class, which may have been made in a function."""
    spider = getattr(callback, "__self__", None)
    return isinstance(spider, Spider) and getattr(type(spider), function.__name__, None) is function


@lru_cache(NUMBERS)
def _written(code: CodeType) -> Said:
    """Return what code does, in words that are the same in every process: of two lambdas in a line each its own."""
    return code.co_code, code.co_names, *map(_constant, code.co_consts)


def _constant(value: Any) -> object:
    if isinstance(value, CodeType):
        return _written(value)
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _content(cell: CellType) -> str:
    try:
        value = cell.cell_contents
    except ValueError:  # nothing yet
        return ""
    return f"the spider {value.name}" if isinstance(value, Spider) else repr(value)
