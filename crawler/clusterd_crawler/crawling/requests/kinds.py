"""Which requests are for pages, and which of them rules may keep out."""

from __future__ import annotations

import sys
from typing import Final

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from clusterd_crawler.message import may_speak_of

#: Key of the meta of a request that a withdrawn rule had kept out, until it is sent. The duplicate filter knows it: it
#: has ``dont_filter``, need not be sent for all that, and is as the spider made it again when it is: what a redirect or
#: the spider makes of it would be asked for again and again. (Such a key says nothing of a purpose.)
QUEUED_AGAIN: Final = "_clusterd_queued_again"


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
        and "redirect_urls" not in request.meta
        and may_speak_of(request.url)
    )


def referrer(request: Request) -> str:
    """Return the page that linked to what is asked for, as far as the request says so; one object for all its links."""
    found = request.headers.get("Referer")
    return sys.intern(found.decode("latin-1")) if found else ""
