"""What a page of few words shows besides them, as one identity: pages of equal words that show other files differ.

A picture, a video, a frame, or the data that a script makes the page from, is what such a page is for: the pages of a
gallery or of a web comic often have one text. Of a page of more words the text decides, as it does for all resemblance:
among its pictures are those that are drawn anew at each fetch, and nobody could say which.

A file is known by its URL, without the site's own origin, which a mirror has another one of, and, of what is a static
file by its name, without its query: versions, sizes and sessions are written there. One that is named relative to a
folder beside or above the page is known as it is written: a tree of pages that has two names has its icons under both.
One in the page's own folder is known by its whole path: each picture of a gallery may be called ``photo.jpg``. Inline
scripts count where they are `DATA` times as long as the text. The identity is the first 64 bits of MurmurHash3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urljoin

import mmh3

from clusterd_crawler.html.declared import Declared
from clusterd_crawler.html.references import unescape
from clusterd_crawler.names import base_of
from clusterd_crawler.urls import host_of

#: Tokens of the main text from which on nothing but the text counts.
FEW_TOKENS: Final = 256
#: Bytes of inline scripts to one of text.
DATA: Final = 8

_STATIC: Final = re.compile(
    r"(\.(?:avif|bmp|gif|ico|jpe?g|mp3|mp4|ogg|ogv|pdf|png|svg|tiff?|wav|webm|webp))[?#][^\s,]*", re.IGNORECASE
)


def embedded_identity(page_url: str, declared: Sequence[Declared], text_bytes: int) -> int:
    """Return the identity of what is embedded among what a page declares (`text.marked_text`); 0 where nothing is."""
    files = [value for kind, value in declared if kind == "embedded"]
    scripts = [value for kind, value in declared if kind == "script"]
    if sum(map(len, scripts)) < DATA * text_bytes:
        scripts = []
    if not files and not scripts:
        return 0
    base = base_of(page_url, declared)
    origin = f"{page_url.partition('://')[0].lower()}://{host_of(page_url)}/"
    shown = [*(_file(base, origin, value) for value in files), *scripts]
    return int(mmh3.hash64(b"\n".join(shown), signed=False)[0]) or 1


def _file(base: str, origin: str, value: bytes) -> bytes:
    """Return what a file is known by, from an attribute's raw value."""
    target = unescape(value).decode("utf-8", "replace").strip()
    written = target.split("/")
    folders = [part for part in written if part not in {".", ".."}]
    is_relative = bool(written[0]) and ":" not in written[0]
    if is_relative and (len(folders) > 1 or ".." in written):
        target = "/".join(folders)
    else:
        with suppress(ValueError):  # what is no URL stands for itself
            target = urljoin(base, target)
        if target.startswith(origin):
            target = target[len(origin) - 1 :]
    return _STATIC.sub(r"\1", target).encode("utf-8", "replace")
