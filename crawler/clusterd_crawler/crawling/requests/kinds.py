"""Which requests are for pages, and which of them rules may keep out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from clusterd_crawler.message import may_speak_of

#: Key of the meta of a request that a withdrawn rule had kept out, until it is sent. The duplicate filter knows it: it
#: has ``dont_filter``, need not be sent for all that, and is as the spider made it again when it is: what a redirect or
#: the spider makes of it would be asked for again and again. (Such a key says nothing of a purpose.)
QUEUED_AGAIN: Final = "_clusterd_queued_again"
#: Keys of the meta of a request whose page the spider was given: its URL, and the URLs that had led to it. Many spiders
#: give each request all that ``response.meta`` holds: by these is told what was true of the page before alone.
READ: Final = "clusterd_read"
LED: Final = "clusterd_led"
#: Keys of the meta of a request that Scrapy has made of a redirect.
REDIRECTED: Final = frozenset({"redirect_reasons", "redirect_times", "redirect_ttl", "redirect_urls"})


def is_page(request: Request) -> bool:
    """Whether a request is for a page that the spider wants to see, and that its URL alone names.

    robots.txt and media are not; nor is what is asked for in a body, as with POST, and with GET where an API wants it.
    """
    return request.method == "GET" and not request.body and request.callback is not NO_CALLBACK


def may_be_skipped(request: Request) -> bool:
    """Whether rules apply: to a page that need not be sent for, and that is not what a redirect leads to."""
    return (
        is_page(request)
        and (not request.dont_filter or QUEUED_AGAIN in request.meta)
        and not led_by(request)
        and may_speak_of(request.url)
    )


def led_by(request: Request) -> Sequence[str]:
    """Return the URLs that were redirected to a request's, the first one first; none where the spider has its page.

    (A spider that puts together a meta of its own may have written None there.)
    """
    led, earlier = (list(request.meta.get(key) or ()) for key in ("redirect_urls", LED))
    return led[len(earlier) :] if led[: len(earlier)] == earlier else led


def is_passed_on(request: Request) -> bool:
    """Whether a request was given the meta of another page: not of its own, which is asked for again."""
    return READ in request.meta and request.meta[READ] != (*led_by(request), request.url)[0]


def referrer(request: Request) -> str:
    """Return the page that linked to what is asked for, as far as the request says so; one object for all its links."""
    found = request.headers.get("Referer")
    return sys.intern(found.decode("latin-1")) if found else ""
