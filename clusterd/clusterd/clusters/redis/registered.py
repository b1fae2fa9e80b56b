"""A version on its way to register.lua, what that and link.lua say of it, and what the index then says.

Cost: 1 µs a page to pack, compiled (`_versions.c`), 5 µs in Python.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from clusterd_consumer.core.compiled import load
from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.urls import host_of

from clusterd.clusters.changes import changes
from clusterd.clusters.contract import Change, Outcome, Policy
from clusterd.clusters.identity import sketch_key, text_key, url_key
from clusterd.clusters.redis.home import Home

CORE: Final = load("clusterd.clusters.redis._versions")
#: register.lua: URL hash begun, time, URL hash ended, bytes, words, crawl, sweep, status; sketch, text, shingles,
#: tokens, profile.
VERSION: Final = struct.Struct("<4s6s4sQQ6sH8s8s6sB")
#: register.lua's answer begins with: URL id, node, content, flags.
ANSWER: Final = struct.Struct("<4I")
#: Most matches that link.lua is told of: more than departed contents may wait to be dismissed (`index.BACKLOG`).
MATCHES: Final = 80
NEW, CURRENT, CHANGED, POST, TEXT_EQUAL, SKETCH_EQUAL, STORE, ALONE, MADE, SAME = (1 << bit for bit in range(10))
#: register.lua: where a URL begins and ends among all, and where its host does.
URL_PLACES: Final = struct.Struct("<4I")
#: Size and name of a cluster.
PLACE: Final = struct.Struct("<II")
#: Latest time that is told apart (register.lua keeps 6 bytes), and most shingles or tokens (3 bytes).
LATEST: Final = 2**48 - 1
MOST: Final = 2**24 - 1

#: Names of policies, and where each stands among a page's places.
Slots = Sequence[tuple[str, int]]


@dataclass(slots=True)
class Registered:
    """What register.lua said of a version; `link` then says more of one that was proposed any."""

    page: int
    node: int
    content: int
    flags: int
    #: Packed places (forest.lua): where the page stands, and where it stood.
    now: bytes
    before: bytes
    #: URL of the page that is equal to it or matches best, and how well.
    match: bytes
    resemblance: float
    #: For each graded policy: whom the page brought together (`changes.MERGED`, `changes.GREW`, or 0; above these two
    #: bits what link.lua counts).
    brought: bytes = b""


def time_of(sketch: Sketch) -> int:
    """Return when a page was fetched, as far as that is told apart."""
    return min(max(sketch.fetched_at, 0), LATEST)


def packed_version(home: Home, sketch: Sketch) -> bytes:
    """Return a fetch as register.lua reads it."""
    main, url = sketch.main, url_key(sketch.url)
    at, status, shingles, tokens = sketch.fetched_at, sketch.status, main.shingles, main.tokens
    if not (0 <= at <= LATEST and 0 <= status <= 0xFFFF and shingles <= MOST and tokens <= MOST):
        at, status = time_of(sketch), min(max(status, 0), 0xFFFF)
        shingles, tokens = min(shingles, MOST), min(tokens, MOST)
    return VERSION.pack(
        url[:4],
        at.to_bytes(6, "big"),
        url[4:8],
        sketch.content,
        sketch.bag,
        home.labels(sketch.crawl, sketch.sweep),
        status,
        sketch_key(sketch),
        main.text.to_bytes(8, "big") if shingles else text_key(sketch),
        (shingles | tokens << 24).to_bytes(6, "little"),
        sketch.profile,
    )


def packed_versions(home: Home, sketches: Sequence[Sketch]) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Return a batch as register.lua reads it: heads of hashes, versions, where the URLs and hosts are, the URLs."""
    if CORE is not None:
        packed: tuple[bytes, bytes, bytes, bytes, bytes] = CORE.pack(list(sketches), home.labels)
        return packed
    versions = [packed_version(home, sketch) for sketch in sketches]
    places, urls, end = [], [], 0
    for sketch in sketches:
        url, host = sketch.url.encode(), host_of(sketch.url)
        begins = len(sketch.url[: sketch.url.find("://") + 3].encode())
        start, end = end, end + len(url)
        places.append(URL_PLACES.pack(start + 1, end, start + begins + 1, start + begins + len(host.encode())))
        urls.append(url)
    heads = b"".join([v[:4] for v in versions]), b"".join([v[38:42] for v in versions])
    return *heads, b"".join(versions), b"".join(places), b"".join(urls)


def read_answers(answers: bytes, others: Sequence[bytes], width: int) -> list[Registered]:
    """Read what register.lua answered; ``width`` is that of a page's places."""
    found = []
    rest = iter(others)
    for page, node, content, flags in ANSWER.iter_unpack(answers):
        if flags & (CURRENT | ALONE) == CURRENT:
            other = next(rest)
            before = width * 2 if flags & CHANGED else width
            found.append(
                Registered(page, node, content, flags, other[:width], other[width:before], other[before:], 1.0)
            )
        else:
            found.append(Registered(page, node, content, flags, b"", b"", b"", 1.0))
    return found


def note(known: Registered, verdicts: Mapping[int, Estimate], match: bytes, now: bytes, brought: bytes) -> None:
    """Note what link.lua said of a page; an equal page, if any, stays its match."""
    known.now, known.brought = now, brought
    if match and not known.match:
        number = int.from_bytes(match[:4], "little")
        known.match, known.resemblance = match[4:], 1.0 if number == known.content else verdicts[number].resemblance


def matches_of(verdicts: Mapping[int, Estimate]) -> list[int]:
    """Return the contents that resemble, best first: more than may have departed and not been dismissed yet."""
    alike = ((-verdict.resemblance, number) for number, verdict in verdicts.items() if verdict.resemblance)
    return [number for _, number in nsmallest(MATCHES, alike)]


def outcomes_of(
    policies: Sequence[Policy], sketches: Sequence[Sketch], registered: Sequence[Registered]
) -> list[Outcome]:
    """Return what the index says of a batch."""
    slots = _slots(policies)
    _let_copies_follow(registered)
    return [_outcome_of(slots, sketch, known) for sketch, known in zip(sketches, registered, strict=True)]


def _let_copies_follow(registered: Sequence[Registered]) -> None:
    """Let copies stand where their content does since it was linked: they were registered before that."""
    linked = {known.content: known.now for known in registered if known.brought and known.now}
    for known in registered if linked else ():
        if known.now and not known.brought and (now := linked.get(known.content)):
            known.now = known.now[: PLACE.size] + now[PLACE.size :]  # (equal sketches may be of different texts)


def _outcome_of(slots: Slots, sketch: Sketch, known: Registered) -> Outcome:
    flags, match = known.flags, known.match
    if not (known.now or match or flags & CHANGED):  # alone, as most pages are, or not current
        return Outcome(sketch.url, sketch.fetched_at, bool(flags & NEW), None, None, 0.0, {})
    after = _standing(slots, known.now)
    happened: tuple[Change, ...] = ()
    if flags & NEW and flags & CURRENT:
        brought = {name: known.brought[at - 1] & 3 for name, at in slots if 0 < at <= len(known.brought)}
        before = _standing(slots, known.before) if known.before else after if flags & SAME else {}
        happened = changes(before, after, brought)
    return Outcome(
        sketch.url,
        sketch.fetched_at,
        bool(flags & NEW),
        "text" if flags & TEXT_EQUAL else "sketch" if flags & SKETCH_EQUAL else None,
        match.decode() if match else None,
        known.resemblance if match else 0.0,
        after,
        happened,
    )


def _slots(policies: Sequence[Policy]) -> Slots:
    """Return where each policy stands among a page's places: identical text first, then the graded ones in order."""
    graded = 0
    slots = []
    for policy in policies:
        graded += not policy.identical
        if not policy.vacant:
            slots.append((policy.name, 0 if policy.identical else graded))
    return slots


def _standing(slots: Slots, places: bytes) -> dict[str, tuple[str, int]]:
    """Turn sizes and names under identical text and each graded policy into a standing, where there is company."""
    words = struct.unpack(f"<{len(places) // 4}I", places)
    most = len(words) // 2  # a policy that was added since has no place
    return {
        name: (f"{name}-{words[2 * at + 1]}", words[2 * at]) for name, at in slots if at < most and words[2 * at] > 1
    }
