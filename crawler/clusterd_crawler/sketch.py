"""Tokens → shingles → fingerprints → sketch (Broder et al. 1997, sections 2 and 3).

A **shingle** is ``w`` consecutive tokens; a document shorter than ``w`` has one. It counts by its 40 bits
(`fingerprints`).

The default kind keeps the smallest fingerprints, MIN_s (the paper's F). Because the largest kept value is a threshold,
the same values are also the document's V under the modulus that fits its length: two sketches are brought to the lower
of their thresholds, as the paper brings V_i to V_(i+1), and give containment as well as resemblance. A document of at
most ``entire`` shingles is kept entire, and judged exactly (in a store, which cuts values short, nearly so). Of a
longer one s is at least ``size``, and grows with it: one in `PAGE_SHINGLES_PER_VALUE` up to ``entire``, one in
`SHINGLES_PER_VALUE` of a book up to ``most``, as brought to the threshold of a book's 400 values a chapter of a
hundredth of it would be judged by four. V_i and MOD_m are the other kinds.

Beside its values a sampled document has its **parity**: of each of `PARITY_BITS` cells, whether an odd number of its
shingles lie in it (the odd sketch of Mitzenmacher, Pagh, Pham, "Efficient estimation for high similarities using odd
sketches", 2014, here of all shingles and not of a sample). Where two documents differ in their parities tells in how
many shingles they differ, which near r = 1 a sample tells badly: at r = .9 the error is a quarter of that of 192 values
(`resemblance`), for the bytes of 170. A document that is kept entire has its parity in its values.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import mmh3
import numpy as np

from clusterd_crawler.core import compiled
from clusterd_crawler.fingerprints import Values, fingerprints
from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.token_hashes import fmix64, hash_streams, hash_text
from clusterd_crawler.tokens import Hashes, as_str, folded_pieces

Kind = Literal["min", "v", "mod"]


@dataclass(frozen=True, slots=True)
class Profile:
    """How a text becomes a sketch. Only sketches of one profile compare.

    ``code`` is the byte that names the profile on the wire; a change of token rules, extractor or hash takes a new one.
    """

    code: int
    name: str
    w: int
    kind: Kind
    #: Least s of MIN_s, m of MOD_m, or the expected number of values of V_i.
    size: int
    #: Of MIN_s: the longest document that is kept entire, and most values of a long one; below ``size``: ``size``.
    entire: int = 0
    most: int = 0
    #: Of MIN_s: whether a document that is not kept entire has its parity beside its values.
    parity: bool = False


#: Of a long page, and of a book, one value is kept for so many shingles.
PAGE_SHINGLES_PER_VALUE: Final = 10
SHINGLES_PER_VALUE: Final = 64
#: Cells of the parity, and the bits of a fingerprint that say which is its own.
PARITY_BITS: Final = 1024
PARITY_BYTES: Final = PARITY_BITS // 8
CELL_BITS: Final = 10
#: Bits of a float's mantissa below those of the cell, and the least number that has a bit below those of its cell.
_BELOW_CELL: Final = np.array(52 - CELL_BITS, np.int64)
_CELL: Final = np.array(PARITY_BITS - 1, np.int64)
_FULL_CELL: Final = np.array(2 << CELL_BITS, np.uint64)

#: The default: 10-word shingles (paper, section 7).
TEXT: Final = Profile(code=1, name="text", w=10, kind="min", size=192, entire=400, most=1600, parity=True)
#: A quarter of the bytes at less accuracy.
COMPACT: Final = Profile(code=2, name="compact", w=10, kind="min", size=64)
#: Tweets and slugs: 4-word shingles, every one kept (phpir).
SHORT: Final = Profile(code=3, name="short", w=4, kind="mod", size=1)

PROFILES: Final = {profile.code: profile for profile in (TEXT, COMPACT, SHORT)}


@dataclass(frozen=True, slots=True)
class StreamSketch:
    """The sketch of one token stream (main or whole text).

    ``values``: the kept fingerprints, ascending, distinct, 8 bytes each, little-endian (``np.frombuffer(v, "<u8")``).
    """

    values: bytes
    #: Number of distinct shingles of the stream, before sampling.
    shingles: int
    #: Number of tokens.
    tokens: int
    #: Identity of the canonical text: 64 bits over the sequence of tokens. 0 for an empty stream.
    text: int
    #: Of each cell whether an odd number of shingles lie in it, `PARITY_BITS` from the lowest bit of the first byte on;
    #: empty where the sketch holds every shingle, or its profile has none.
    parity: bytes = b""

    @property
    def complete(self) -> bool:
        """Whether the sketch holds every shingle, so that it estimates without error."""
        return len(self.values) == 8 * self.shingles

    def may_have(self, bytes_of_parity: int) -> bool:
        """Whether such a sketch may have a parity of so many bytes: one that holds every shingle has none."""
        return bytes_of_parity in ((0,) if self.complete else (0, PARITY_BYTES))


#: In the order of the codes by which messages and evidence say them.
NameKind = Literal["canonical", "shortlink", "og", "anchor"]
NAME_KINDS: Final[tuple[NameKind, ...]] = get_args(NameKind)


@dataclass(frozen=True, slots=True)
class Name:
    """What a page calls itself: ``kind`` is canonical, shortlink, og or anchor; ``hash`` 64 bits of its target.

    The target is hashed from the canonical form of the URL (`urls.canonical`), an anchor from its digits.
    """

    kind: NameKind
    hash: int


@dataclass(frozen=True, slots=True)
class Sketch:
    """One fetched page, as it travels from the crawl to the daemon: a node of the clustering is a version of a URL."""

    url: str
    #: Unix time of the fetch, in milliseconds. Of two versions of a URL the later fetch is the current one.
    fetched_at: int
    profile: int
    #: Identity of the bytes, 64 bits.
    content: int
    #: The page without its chrome; equal to ``whole`` where no chrome was found.
    main: StreamSketch
    #: All visible text.
    whole: StreamSketch
    #: Identity of the main text's words whatever their order, 64 bits.
    bag: int
    #: The same of its words that are no numbers, that is, do not begin with a digit. 0 where there are none, or where
    #: the crawl that sketched it did not say.
    unnumbered: int = 0
    #: Identity of the pictures, frames and data that a page of few words shows besides them (`embedded_identity`), 64
    #: bits; 0 where it shows none, or has more words.
    embedded: int = 0
    status: int = 200
    #: Which crawl fetched it (a skip is justified by a page of the same crawl).
    crawl: str = ""
    #: The label of a dated sweep (lost & found), or "".
    sweep: str = ""
    names: tuple[Name, ...] = field(default=())
    #: The rule that would have skipped this page, where it was fetched all the same to watch that rule; else "".
    explored: str = ""
    #: The known page on whose account it would have been skipped, or "".
    instead_of: str = ""
    #: The crawl waits for a verdict on `topics.VERDICTS`.
    wants_verdict: bool = False
    #: The page says that there is no page (`soft_errors`): it justifies no skip.
    soft_error: bool = False
    #: What the crawl fetched it for.
    purpose: Purpose = ANYONE

    def showing(self, words: int) -> int:
        """Return the identity of what the page shows, whose words have this one: what rules compare pages by."""
        return mmh3.hash64(struct.pack("<QQ", words, self.embedded), signed=False)[0] if self.embedded else words


_KINDS: Final = {"min": 0, "v": 1, "mod": 2}
#: What the compiled core makes: the fields of `StreamSketch` of the whole and of the main text, the bag, that without
#: numbers.
_Stream = tuple[bytes, int, int, int, bytes]
_Made = tuple[_Stream, _Stream | None, int, int]
EMPTY: Final = StreamSketch(values=b"", shingles=0, tokens=0, text=0)


@dataclass(frozen=True, slots=True)
class Streams:
    """The sketches of a page's two token streams, and its main text's other identities (`Sketch`)."""

    main: StreamSketch
    whole: StreamSketch
    bag: int
    unnumbered: int


def sketch_text(text: str, profile: Profile) -> StreamSketch:
    """Sketch the tokens of a plain text."""
    if compiled.CORE is None:
        return sketch_hashes(hash_text(text), profile)
    return StreamSketch(*_compiled(text, profile, False)[0])


def sketch_streams(text: str | bytes, profile: Profile, *, marked: bool) -> Streams:
    """Sketch a text (bytes are UTF-8); where it is ``marked``, \\1 and \\2 enclose what is not main text (`markup`).

    Main text is never empty where the whole is not: it is the whole then.
    """
    if compiled.CORE is None:
        return _sketch_streams(as_str(text), profile, marked)
    whole, main, *identities = _compiled(text, profile, marked)
    of_whole = StreamSketch(*whole)
    return Streams(of_whole if main is None else StreamSketch(*main), of_whole, *identities)


def _compiled(text: str | bytes, profile: Profile, marked: bool) -> _Made:
    """Sketch by the compiled core: the whole text, the main text where that is another, its other identities."""
    kept = (profile.size, profile.entire, profile.most, profile.parity)
    settings = (profile.w, _KINDS[profile.kind], *kept)
    core: Any = compiled.CORE
    made: _Made = core.sketch(text, marked, False, *settings) or core.sketch(_folded(text), marked, True, *settings)
    return made


def _folded(text: str | bytes) -> bytes:
    """Return what the core cannot fold itself, in UTF-8: in pieces, as encoding holds the interpreter's lock, too."""
    return b"".join(piece.encode("utf-8", "surrogatepass") for piece in folded_pieces(text))


def _sketch_streams(text: str, profile: Profile, marked: bool) -> Streams:
    """The same without the compiled core."""
    hashes, is_main, is_number = hash_streams(text, marked=marked)
    whole = sketch_hashes(hashes, profile)
    if is_main is None or np.count_nonzero(is_main) in (0, len(hashes)):
        return Streams(whole, whole, bag_identity(hashes), bag_identity(np.compress(~is_number, hashes)))
    of_main = np.compress(is_main, hashes)
    unnumbered = bag_identity(np.compress(is_main & ~is_number, hashes))
    return Streams(sketch_hashes(of_main, profile), whole, bag_identity(of_main), unnumbered)


def sketch_hashes(hashes: Hashes, profile: Profile) -> StreamSketch:
    """Sketch a sequence of tokens given by their hashes."""
    if not len(hashes):
        return EMPTY
    distinct = fingerprints(hashes, profile.w)
    distinct.sort()
    is_first = np.empty(len(distinct), np.bool_)
    is_first[0] = True
    np.not_equal(distinct[1:], distinct[:-1], is_first[1:])
    return sketch_values(distinct[is_first], profile, tokens=len(hashes), text=text_identity(hashes))


def sketch_values(distinct: Values, profile: Profile, tokens: int, text: int) -> StreamSketch:
    """Sketch a document by its distinct fingerprints, ascending; its tokens and the identity of its text are given."""
    kept = sample(distinct, profile)
    parity = parity_of(distinct) if profile.parity and len(kept) < len(distinct) else b""
    return StreamSketch(kept.astype("<u8", copy=False).tobytes(), len(distinct), tokens, text, parity)


def sample(distinct: Values, profile: Profile) -> Values:
    """Return those of a document's distinct fingerprints, ascending, that its sketch keeps."""
    if profile.kind == "min":
        return distinct[: smallest(len(distinct), profile)]
    if profile.kind == "mod":
        return np.compress(distinct % np.uint64(profile.size) == 0, distinct)
    exponent = modulus_exponent(len(distinct), profile.size)
    return np.compress((distinct & np.uint64((1 << exponent) - 1)) == 0, distinct)


def smallest(shingles: int, profile: Profile) -> int:
    """Return how many values of a document of so many distinct shingles MIN_s keeps."""
    if shingles <= profile.entire:
        return shingles
    of_page = min(shingles // PAGE_SHINGLES_PER_VALUE, profile.entire)
    of_book = min(shingles // SHINGLES_PER_VALUE, profile.most)
    return min(shingles, max(profile.size, of_page, of_book))


def parity_of(distinct: Values) -> bytes:
    """Return the parity of a document by its distinct fingerprints, ascending.

    The bits below the highest say which cell is a fingerprint's own. They are among those that an index keeps of it
    (its code: at most 11 below the highest, of one below 2^12 all), so that the parity of a document that is kept
    entire can be told there, too (`cells_parity`). As a float a number has just these at the top of its mantissa. One
    that has no bits below them counts by all but its last.
    """
    cells = distinct.astype(np.float64).view(np.int64)
    np.right_shift(cells, _BELOW_CELL, cells)
    np.bitwise_and(cells, _CELL, cells)
    small = np.searchsorted(distinct, _FULL_CELL)
    cells[:small] = distinct[:small] >> np.uint64(1)
    return cells_parity(cells)


def cells_parity(cells: np.typing.NDArray[Any]) -> bytes:
    """Return the parity of a document by the cells of all its shingles."""
    held = np.bincount(cells.astype(np.int64, copy=False), minlength=PARITY_BITS)
    return np.packbits(held.astype(np.uint8) & 1, bitorder="little").tobytes()


def modulus_exponent(shingles: int, size: int) -> int:
    """Return i of V_i: the largest i for which ``shingles`` / 2^i is at least ``size`` (so it is below 2 ``size``)."""
    return max(0, (shingles // size).bit_length() - 1)


def text_identity(hashes: Hashes) -> int:
    """Return the identity of a token sequence: MurmurHash3 over its hashes, 8 bytes each, little-endian; 0 if empty."""
    if not len(hashes):
        return 0
    return int(mmh3.hash64(hashes.astype("<u8", copy=False).tobytes(), signed=False)[0]) or 1


def bag_identity(hashes: Hashes) -> int:
    """Return the identity of the tokens whatever their order, with their repetitions; 0 if there are none."""
    if not len(hashes):
        return 0
    return int(fmix64(fmix64(hashes).sum(dtype=np.uint64, keepdims=True))[0]) or 1
