"""What a page calls itself, bounded and hashed: canonical, shortlink, og:url, and anchors that end in digits.

A URL is resolved against the page's base and hashed in its canonical form, so that it equals the hash of the URL that a
crawl would fetch. An anchor's trailing digits are hashed alone: ``<a name="p1234">`` is what ``?p=1234`` points to.
Kept are the first of each kind of URL, and of the first 256 ids and names that end in a digit the first 64 that differ.
Hashes are the first 64 bits of MurmurHash3.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final, cast, get_args
from urllib.parse import urljoin

from clusterd_crawler import urls
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.html.declared import MAX_ANCHORS_KEPT, Declared, UrlKind
from clusterd_crawler.html.references import unescape
from clusterd_crawler.sketch import Name

#: Kinds of what a page declares that are URLs which name it.
URL_KINDS: Final = frozenset(get_args(UrlKind))
#: Most anchors of one page that are kept.
MAX_ANCHORS: Final = MAX_ANCHORS_KEPT


def name_hash(url: str) -> int:
    """Return the hash of what a URL names: equal for URLs with one canonical form."""
    return urls.hash_of(urls.canonical(url))


@lru_cache(maxsize=4096)  # pages of one site number their sections alike
def anchor_hash(digits: str) -> int:
    """Return the hash of an anchor's digits, or of the value of a parameter that may point to it."""
    return urls.hash_of(digits)


def declared_names(page_url: str, declared: Sequence[Declared]) -> tuple[Name, ...]:
    """Return the names among what a page declares (`text.marked_text`)."""
    base = base_of(page_url, declared)
    names: dict[Name, None] = {}
    for kind, value in declared:
        if kind == "anchor":
            names[_anchor(value)] = None
        elif kind in URL_KINDS and (target := _joined(base, value)):
            with suppress(WrongInput):
                names[Name(cast(UrlKind, kind), name_hash(target))] = None
    return tuple(names)


def base_of(page_url: str, declared: Sequence[Declared]) -> str:
    """Return the URL that a page's relative ones are resolved against."""
    return next((_joined(page_url, value) for kind, value in declared if kind == "base"), None) or page_url


@lru_cache(maxsize=16384)  # pages of one site number their sections alike; one object for all of them
def _anchor(digits: bytes) -> Name:
    return Name("anchor", anchor_hash(digits.decode("ascii")))


def _joined(base: str, value: bytes) -> str | None:
    """The absolute URL that an attribute's raw value means; None where it means none."""
    target = unescape(value).decode("utf-8", "replace").strip()
    try:
        joined = urljoin(base, target)
    except ValueError:
        return None
    return joined if joined.startswith(("http://", "https://")) else None
