"""What a question is asked with: a URL of the store, a file, standard input, or a text on the command line.

A file may be HTML or plain text, packed or not (`ingest.packings`): its content decides, not its name. A URL of the
store is known by its sketch alone (texts are not kept), the others with their text, so that they can be compared
exactly.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Final

from clusterd_crawler.errors import NotFound, WrongInput
from clusterd_crawler.sketch import PROFILES, Profile, StreamSketch, sketch_text
from clusterd_crawler.text import NotText, decode, is_markup, main_part, marked_text, plain
from clusterd_crawler.tokens import tokens
from clusterd_crawler.urls import canonical, canonical_hosts

from clusterd.clusters.contract import Index, Stream
from clusterd.ingest.contents import ARCHIVES, container, is_html, type_of, unpacked
from clusterd.ingest.frames import MOST
from clusterd.portions import portions
from clusterd.queries.spellings import spellings

#: What marks a text as given on the command line.
TEXT_MARK: Final = "text:"
#: URLs whose spellings are looked up at a time: up to 66 of each.
PORTION: Final = 250
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True)
class Document:
    """A document to ask with."""

    #: The URL, where it is a page of the store; else None.
    url: str | None
    sketch: StreamSketch
    #: The text that was sketched, where it is at hand: the main text, or that of the whole page.
    text: str | None = None

    @cached_property
    def tokens(self) -> tuple[str, ...] | None:
        """The tokens of the text, where it is at hand: of a book they take longer than all its sketches."""
        return None if self.text is None else tuple(tokens(self.text))

    @property
    def profile(self) -> Profile | None:
        """The profile that a page of the store was sketched with; None for others, whose text is at hand."""
        return PROFILES.get(getattr(self.sketch, "profile", 0))


def document(given: str, index: Index | None, profile: Profile, stream: Stream = "main") -> Document:
    """Return what is meant by a URL of the store (where there is one), a file's path, ``-`` or ``text:…``.

    ``stream``: by its main text, or as a whole page.
    """
    if given.startswith(TEXT_MARK):
        return of_text(given.removeprefix(TEXT_MARK), profile)
    if given == "-":
        return of_bytes(_read_whole(sys.stdin.buffer, "the input"), profile, stream=stream)
    if index is not None and _URL.match(given) and not os.path.exists(given):
        return of_url(given, index, stream)
    return of_bytes(read(given), profile, given, stream)


def of_text(text: str, profile: Profile) -> Document:
    """Return a plain text as a document."""
    return Document(None, sketch_text(text, profile), text)


def of_bytes(data: bytes, profile: Profile, name: str = "the input", stream: Stream = "main") -> Document:
    """Return HTML or plain text, packed or not, as a document; `WrongInput` for a picture and the like."""
    data = unpacked(data, name)
    if what := "a WARC or ARC file" if data.startswith(ARCHIVES) else container(data):
        raise WrongInput(f"{name}: is {what}; give HTML or plain text")
    try:
        is_markup(None, data)
    except NotText as error:
        raise WrongInput(f"{name}: {error}; give HTML or plain text") from None
    if not is_html(data):
        return of_text(decode(data, "text/plain"), profile)
    marked, _ = marked_text(decode(data, "text/html"), type_of(name))
    main = of_text(main_part(marked), profile) if stream == "main" else None
    return main if main and main.sketch.tokens else of_text(plain(marked), profile)


def of_url(url: str, index: Index, stream: Stream = "main") -> Document:
    """Return a page of the store as a document; `NotFound` where the store has none under this URL."""
    known = known_url(url, index)
    sketch_of = index.sketch if stream == "main" else index.whole_sketch
    if known is not None and (sketch := sketch_of(known)) is not None:
        return Document(known, sketch)
    raise missing(url)


def missing(url: str) -> NotFound:
    """Return what to raise of a page that the store has not; `WrongInput` of what is no absolute URL."""
    canonical(url)
    why = "not fetched, or kept out by a rule (see clusterd rules why URL)"
    return NotFound(f"the store has no page {url}: {why}; clusterd ingest brings it in")


def known_url(url: str, index: Index) -> str | None:
    """Return the spelling under which the store has a URL: as given, else its canonical form, else another of that."""
    return known_urls([url], index)[0]


def known_urls(urls: Sequence[str], index: Index) -> list[str | None]:
    """Return what `known_url` says of each of these, in few calls."""
    found: list[str | None] = []
    for some in portions(urls, PORTION):
        spelled = [spellings(url) for url in some]
        known = _first_stored([first for first, _ in spelled], index)
        others = _first_stored(
            [others if one is None else [] for one, (_, others) in zip(known, spelled, strict=True)], index
        )
        found += [one or other for one, other in zip(known, others, strict=True)]
    return found


def _first_stored(several: Sequence[Sequence[str]], index: Index) -> list[str | None]:
    """Return of each of several lists of URLs the first that the store has."""
    asked = [url for urls in several for url in urls]
    sketches = index.sketches([(url, None) for url in asked])
    stored = {url for url, sketch in zip(asked, sketches, strict=True) if sketch is not None}
    return [next((url for url in urls if url in stored), None) for urls in several]


def known_host(given: str, hosts: Collection[str]) -> str:
    """Return how one of these hosts is spelled, given by any of its names; what was given, if none of them is meant.

    Case, letters of an IDN and the port that goes without saying do not count.
    """
    if given in hosts:
        return given
    meant = canonical_hosts(given.rstrip())
    known = next((host for host in meant if host in hosts), None)
    return known or next((host for host in hosts if any(one in meant for one in canonical_hosts(host))), given)


def stored_host(given: str, hosts: Collection[str]) -> str:
    """Return how the store spells a host, of all that it has; `NotFound` where it has no page of it."""
    known = known_host(given, hosts)
    if known not in hosts:
        raise NotFound(f"the store has no pages of the host {given}")
    return known


def read(given: str) -> bytes:
    """Return the bytes of a file; `WrongInput` where it is not there, or has more than `MOST`."""
    try:
        with Path(given).open("rb") as file:
            return _read_whole(file, given)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        what = f"{given}: {reason}" if given else "an empty name"
        raise WrongInput(
            f"{what}; give a URL of the store (https://…), a file, - for standard input, or text:…"
        ) from None


def _read_whole(file: IO[bytes], name: str) -> bytes:
    """Return what a file holds, which may have no end; `WrongInput` where that is more than `MOST` bytes."""
    data = file.read(MOST + 1)
    if len(data) > MOST:
        raise WrongInput(f"{name} holds more than {MOST} bytes; give the part that is asked about")
    return data
