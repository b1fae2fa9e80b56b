"""One fetched page → its Sketch: the one function that the Scrapy middleware and ``clusterd ingest`` call.

Never fails on any bytes: a page of no charset, a wrong one, 50 MB, a million nested tags, NULs, is sketched; what is no
text at all raises `text.NotText`. A large page is meant to be sketched off the event loop's thread (the compiled core
releases the lock), and one that needs a parser too; any other page of 64 kB takes less than a millisecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mmh3

from clusterd_crawler import names, text
from clusterd_crawler.embedded_identity import FEW_TOKENS, embedded_identity
from clusterd_crawler.html.declared import Declared
from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.sketch import TEXT, Profile, Sketch, sketch_streams
from clusterd_crawler.soft_errors import is_soft_error


def sketch_page(
    url: str,
    body: bytes,
    content_type: str | None,
    *,
    profile: Profile = TEXT,
    fetched_at: int,
    status: int = 200,
    crawl: str = "",
    sweep: str = "",
    explored: str = "",
    instead_of: str = "",
    wants_verdict: bool = False,
    purpose: Purpose = ANYONE,
    parse: bool = True,
) -> Sketch:
    """Sketch a page from its bytes and the Content-Type header that came with them; what else is given is kept.

    Raises `text.NeedsParser` where ``parse`` is false and the page must be parsed to be read.
    """
    is_markup = text.is_markup(content_type, body)
    shown = text.utf8(body, content_type)
    declared: list[Declared] = []
    if is_markup:
        shown, declared = text.marked_text(shown, content_type, parse=parse)
    return _sketch(
        url,
        shown,
        body,
        is_markup,
        profile,
        declared,
        fetched_at=fetched_at,
        status=status,
        crawl=crawl,
        sweep=sweep,
        names=names.declared_names(url, declared) if declared else (),
        explored=explored,
        instead_of=instead_of,
        wants_verdict=wants_verdict,
        purpose=purpose,
        soft_error=is_markup and is_soft_error(body, content_type),
    )


def sketch_plain(
    url: str,
    plain_text: str,
    *,
    profile: Profile = TEXT,
    fetched_at: int,
    crawl: str = "",
    sweep: str = "",
) -> Sketch:
    """Sketch a document that is plain text already; its bytes are those of the text in UTF-8."""
    body = plain_text.encode("utf-8", "surrogatepass")
    return _sketch(url, body, body, False, profile, fetched_at=fetched_at, crawl=crawl, sweep=sweep)


def content_identity(body: bytes) -> int:
    """Return the identity of a page's bytes."""
    return int(mmh3.hash64(body, signed=False)[0])


def by_whole(sketch: Sketch, identity: int) -> Sketch:
    """Return the sketch of a long page's beginning with the identity of the whole page, which rules go by.

    What two long pages show at their beginnings says nothing of the rest.
    """
    return replace(sketch, content=identity, embedded=identity)


def _sketch(
    url: str,
    shown: bytes,
    body: bytes,
    marked: bool,
    profile: Profile,
    declared: Sequence[Declared] = (),
    soft_error: bool = False,
    **kept: Any,
) -> Sketch:
    """Sketch what a page shows; ``kept`` stands in the sketch as it is.

    A page that shows nothing is as good as none: it may be there when it is asked for again.
    """
    streams = sketch_streams(shown, profile, marked=marked)
    few = bool(declared) and streams.main.tokens < FEW_TOKENS
    return Sketch(
        url=url,
        profile=profile.code,
        content=content_identity(body),
        main=streams.main,
        whole=streams.whole,
        bag=streams.bag,
        unnumbered=streams.unnumbered,
        embedded=embedded_identity(url, declared, len(shown)) if few else 0,
        soft_error=soft_error or not streams.whole.shingles,
        **kept,
    )
