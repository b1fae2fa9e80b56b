"""The identities by which pages are one for the clustering: each is one fingerprint of 64 bits (paper, section 5.2).

Text: lexically equivalent pages. Sketch: shingle-equivalent pages; one of them is posted, the rest hang on it. It goes
by all that a verdict reads, also by the number of shingles and the parity: others are judged alike whichever of them
came first.
A page without a token is equal to nothing but other fetches of its own URL.
Cost: one MurmurHash3 of the sketch's values, 1 µs.
"""

from __future__ import annotations

import struct

import mmh3
from clusterd_crawler.sketch import Sketch, StreamSketch


def text_key(sketch: Sketch) -> bytes:
    """Return the identity of the main text, under its profile."""
    if not sketch.main.shingles:
        return _of_url(sketch)
    return struct.pack("<Q", sketch.main.text ^ sketch.profile * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)


def sketch_key(sketch: Sketch) -> bytes:
    """Return the identity of the main sketch, under its profile: its values, and of how many shingles they are."""
    if not sketch.main.shingles:
        return _of_url(sketch)
    return stream_key(sketch.main, sketch.profile)


def stream_key(stream: StreamSketch, profile: int) -> bytes:
    """Return the identity of a sketch that has a shingle."""
    seed = profile * 2 + (1 if stream.complete else stream.shingles << 9) & 0xFFFFFFFF
    if stream.parity:
        seed = int.from_bytes(mmh3.hash_bytes(stream.parity, seed)[:4], "little")
    return mmh3.hash_bytes(stream.values, seed)[:8]


def _of_url(sketch: Sketch) -> bytes:
    return mmh3.hash_bytes(_octets(sketch.url), sketch.profile)[:8]


def url_key(url: str) -> bytes:
    """Return the 64 bits that a URL is found by."""
    return mmh3.hash_bytes(_octets(url))[:8]


def _octets(url: str) -> bytes:
    """Return a URL as bytes, whatever is in it: mmh3 5.3.1 crashes on a string that has no UTF-8."""
    return url.encode("utf-8", "surrogatepass")
