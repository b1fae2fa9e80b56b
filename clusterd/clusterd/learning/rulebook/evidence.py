"""Pages of evidence as bytes, and which of them stay when a host has more than may be kept.

A block is one or more pages. Integers are little-endian, a ``varint`` is LEB128, a ``text`` a varint with the number of
bytes, then UTF-8:

    offset  bytes  field
    0       1      version, 1
    1       …      zlib stream of the pages, each:
                   text url, u64 content, i64 fetched_at (Unix ms), varint words,
                   varint n, n × (u8 kind: 1 canonical, 2 shortlink, 3 og, 4 anchor; u64 hash),
                   text explored, text instead_of, text crawl, u8 state: 0 good, 1 soft error, 2 failed,
                   3 redirected, 4 a file, u64 reader, u64 session, u32 depth (`purpose.Purpose`),
                   text target; of what was redirected only

URLs of a host repeat each other, so a block of a thousand pages packs to 30–60 bytes a page.

Cost: packing and unpacking are linear in the pages (about 6 µs each); the reservoir sorts them once.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final

from clusterd_crawler.errors import MessageError
from clusterd_crawler.purpose import PACKED, Purpose
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import NAME_KINDS, Name
from clusterd_crawler.urls import beyond_site, hash_of, query_pair
from clusterd_crawler.wire import put_texts, put_varint

from clusterd.learning.contract import Page, State
from clusterd.learning.rulebook.together import brought_together

VERSION: Final = 1
#: Pages of one block when a log is rewritten.
BLOCK_PAGES: Final = 1_000
#: Fast, and within a tenth of the size that the best level reaches on URLs.
ZLIB_LEVEL: Final = 1

#: Pages of one content that the reservoir keeps before it touches anything else: agreement beyond it adds nothing.
SAME_CONTENT: Final = 256
#: Most earlier fetches of a URL that stay beside its last.
BESIDE: Final = 3
#: Share of the limit that pages fetched to watch a rule may take.
EXPLORED_SHARE: Final = 0.1
#: Share of it that pages may take which the rules in force bring together.
TOGETHER_SHARE: Final = 0.5
#: The rules of a host that has none.
NO_RULES: Final = RuleSet("", 0, ())

_CODES: Final = {kind: code for code, kind in enumerate(NAME_KINDS, start=1)}
_STATES: Final[tuple[State, ...]] = ("good", "soft", "failed", "redirected", "file")
_HEAD: Final = struct.Struct("<Qq")
_NAME: Final = struct.Struct("<BQ")


def pack(pages: Iterable[Page]) -> bytes:
    """Return the block that holds the pages."""
    out = bytearray()
    for page in pages:
        put_texts(out, (page.url,))
        out += _HEAD.pack(page.content, page.fetched_at)
        put_varint(out, page.words)
        put_varint(out, len(page.names))
        for name in page.names:
            out += _NAME.pack(_CODES[name.kind], name.hash)
        put_texts(out, (page.explored, page.instead_of, page.crawl))
        out.append(_STATES.index(page.state))
        out += PACKED.pack(*page.purpose)
        if page.state == "redirected":
            put_texts(out, (page.target,))
    return bytes((VERSION,)) + zlib.compress(out, ZLIB_LEVEL)


def unpack(block: bytes) -> list[Page]:
    """Return the pages of a block; `MessageError` where it is not one of ours or was cut short."""
    if not block or block[0] != VERSION:
        raise MessageError(f"not a block of evidence of version {VERSION}", block)
    try:
        return list(_pages(zlib.decompress(block[1:])))
    except (zlib.error, struct.error, IndexError, UnicodeDecodeError) as error:
        raise MessageError(f"a damaged block of evidence: {error}", block) from None


def latest(pages: Iterable[Page]) -> list[Page]:
    """Return the last fetch of each URL, in the order of the fetches (equal times in the order given)."""
    newest: dict[str, Page] = {}
    for page in pages:
        known = newest.get(page.url)
        if known is None or page.fetched_at >= known.fetched_at:
            newest[page.url] = page
    return sorted(newest.values(), key=lambda page: page.fetched_at)


def sightings(pages: Iterable[Page], beside: int = BESIDE) -> list[Page]:
    """Return the last fetch of each URL, and what else tells what was seen beside pages that no later crawl fetched.

    Pages are only compared that one crawl has seen (`learning.crawls`): of the crawls that were the last to fetch some
    URL, those of the most URLs first, ``beside`` fetches of each URL stay too, in the order of the fetches.
    """
    fetched: dict[str, dict[str, Page]] = {}
    for page in sorted(pages, key=lambda page: page.fetched_at):
        of_url = fetched.setdefault(page.url, {})
        of_url.pop(page.crawl, None)  # The last to fetch it stands last.
        of_url[page.crawl] = page
    last = Counter(next(reversed(of_url)) for of_url in fetched.values())
    kept: list[Page] = []
    for of_url in fetched.values():
        crawls = list(of_url)
        earlier = sorted((crawl for crawl in crawls[:-1] if last[crawl]), key=lambda crawl: -last[crawl])[:beside]
        kept += [of_url[crawl] for crawl in (*earlier, crawls[-1])]
    return sorted(kept, key=lambda page: page.fetched_at)


def reservoir(pages: Sequence[Page], limit: int, rules: RuleSet = NO_RULES) -> list[Page]:
    """Choose at most ``limit`` pages, so that what contradicts a rule outlives what merely agrees with it once more.

    1. Pages fetched to watch a rule stay, the latest first, up to their share of the limit, and with them what they are
       judged by: without that each would have brought something new, and speak against its rule. What is beyond that
       share watches nothing any more.
    2. So do pages that the rules in force bring together (`together`), up to a share of their own: what agrees under a
       rule, and what does not. A host whose rules work brings hardly any more of them, so that a rule which had to be
       found again in whatever families stay would mostly be withdrawn.
    3. Of one content at most `SAME_CONTENT` pages stay: a host cannot fill its log with one page under many URLs and
       so push out the pages that differ.
    4. Of the rest those stay whose folder and query names hash lowest: families of URLs stay or go whole, with
       their agreements and their contradictions alike. The hash is fixed, and the same under every site, so that the
       same pages are chosen whoever chooses and whenever, and of mirrors the same under each; each URL with one fetch
       beside its last (`sightings`).
    """
    every = sightings(pages)
    if len(every) <= limit:
        return every
    every = sightings(every, 1)
    kept = latest(every)
    watched = [page for page in kept if page.explored][-max(1, int(limit * EXPLORED_SHARE)) :]
    sizes = Counter(page.url for page in every)
    stays = watched + _witnesses(watched, every)
    stays += _judging(kept, {page.url for page in stays}, rules, int(limit * TOGETHER_SHARE), sizes)
    chosen: set[str] = set()
    staying = {page.url for page in stays}
    counts: Counter[int | str] = Counter(map(_shown, stays))
    rest: list[Page] = []
    for page in sorted((p for p in kept if p.url not in staying), key=lambda p: hash_of(beyond_site(p.url))):
        counts[_shown(page)] += 1
        if counts[_shown(page)] <= SAME_CONTENT:
            rest.append(page)
    rest.sort(key=lambda page: hash_of(family(beyond_site(page.url))))
    ordered = stays + rest
    for size, page in zip(accumulate(sizes[page.url] for page in ordered), ordered, strict=True):
        if size > limit:
            break
        chosen.add(page.url)
    watching = set(watched)
    return [
        replace(page, explored="", instead_of="") if page.explored and page not in watching else page
        for page in every
        if page.url in chosen
    ]


def _witnesses(watched: Sequence[Page], every: Sequence[Page]) -> list[Page]:
    """Return what watched pages are judged by: what they were fetched instead of, and what they lead to.

    Where the former shows something else also the first page of their crawl that shows the same.
    """
    known: dict[str, Page] = {}
    first: dict[tuple[str, int | str], Page] = {}
    for page in every:
        known[page.url] = page
        if page.is_witness:
            first.setdefault((page.crawl, _shown(page)), page)
    found: dict[str, Page] = {}
    for page in watched:
        instead = known.get(page.instead_of)
        same = first.get((page.crawl, _shown(page))) if instead is None or _shown(instead) != _shown(page) else None
        found.update((one.url, one) for one in (instead, same, known.get(page.target)) if one is not None)
    return [found[url] for url in sorted(found.keys() - {page.url for page in watched})]


def _judging(
    kept: Sequence[Page], staying: set[str], rules: RuleSet, most: int, sizes: Mapping[str, int]
) -> list[Page]:
    """Return the pages that the rules are judged by besides those that stay, with what redirects lead to.

    ``most``: how many fetches of them; ``sizes``: those of each URL.
    """
    taken = 0
    known = {page.url: page for page in kept}
    contents: Counter[int | str] = Counter()
    found: dict[str, Page] = {}
    for page in brought_together(kept, rules):
        contents[_shown(page)] += 1
        if contents[_shown(page)] <= SAME_CONTENT:
            for one in (page, known.get(page.target)):
                if one and one.url not in staying and one.url not in found:
                    found[one.url] = one
                    taken += sizes[one.url]
        if taken >= most:
            break
    return list(found.values())


def _shown(page: Page) -> int | str:
    """Return what stands for a page's content: of what was redirected, the address."""
    return page.target or page.content


def family(url: str) -> str:
    """Return a URL's folder and the names of its query keys: what URLs of one rule have in common."""
    path, _, query = url.partition("?")
    names = sorted({query_pair(piece)[0] for piece in query.split("&")}) if query else []
    return path.rpartition("/")[0] + "?" + "&".join(names)


def _pages(data: bytes) -> Iterator[Page]:
    at = 0
    while at < len(data):
        url, at = _text(data, at)
        content, fetched_at = _HEAD.unpack_from(data, at)
        words, at = _varint(data, at + _HEAD.size)
        count, at = _varint(data, at)
        names = []
        for _ in range(count):
            code, value = _NAME.unpack_from(data, at)
            names.append(Name(NAME_KINDS[code - 1], value))
            at += _NAME.size
        explored, at = _text(data, at)
        instead_of, at = _text(data, at)
        crawl, at = _text(data, at)
        state = _STATES[data[at]]
        purpose = Purpose(*PACKED.unpack_from(data, at + 1))
        at += 1 + PACKED.size
        target, at = _text(data, at) if state == "redirected" else ("", at)
        yield Page(url, content, words, tuple(names), fetched_at, explored, instead_of, crawl, state, purpose, target)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends (in half the time that `wire.Reader` takes)."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _text(data: bytes, at: int) -> tuple[str, int]:
    size, at = _varint(data, at)
    raw = data[at : at + size]
    if len(raw) < size:
        raise IndexError("it ends inside a text")
    return raw.decode(), at + size
