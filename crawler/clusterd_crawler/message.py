"""The wire contract: what a crawl says about its pages, as bytes.

A message is read in any language with this page alone. Integers are little-endian; ``u8``, ``u16``, ``u64`` are
unsigned and ``i64`` signed of that many bits; a ``varint`` is LEB128 (7 bits a byte, least significant group first,
the high bit set on every byte but the last, at most 10 bytes); ``text`` is a varint with the number of its bytes, then
UTF-8.

    offset  bytes  field
    0       1      magic, 0xC1 (a byte that no UTF-8 text holds, so that JSON or HTML is never taken for a message)
    1       1      version, 1; a higher one is refused, never guessed at
    2       1      kind: 1 sketch, 2 skip, 3 failure, 4 redirect, 5 file
    3       …      the body, by kind
    end-4   4      CRC-32 (IEEE 802.3, as zlib) of all bytes before it

    sketch   u8   profile         `sketch.PROFILES`; an unknown one is refused
             u8   flags           1: ``whole`` equals ``main`` and is left out, 2: the crawl waits for a verdict,
                              4: the page is a soft error, 8: it shows something besides few words,
                              16: it says what it was fetched for, 32: its streams say their parities,
                              64: it says which words are left without numbers
             u16  status
             i64  fetched_at      Unix milliseconds, as all times, of the years 1 to 9999
             u64  content         identity of the bytes
             u64  bag             identity of the main text's words whatever their order
             u64  unnumbered      identity of the main text's words that are no numbers, likewise; with flag 64 only
             u64  embedded        identity of what it shows besides; with flag 8 only
             u64  reader, u64 session, u32 depth    `purpose.Purpose`; with flag 16 only
             text url, crawl, sweep, explored, instead_of
             varint n, then n × (u8 kind: 1 canonical, 2 shortlink, 3 og, 4 anchor; u64 hash)
             stream main
             stream whole         unless flag 1
    stream   varint shingles, varint tokens, u64 text (identity of the canonical text)
             varint n, then n × 5 bytes: the kept 40-bit fingerprints, strictly ascending
             varint p, then p bytes: its parity (`sketch.PARITY_BITS` / 8), or 0 where it has none; with flag 32 only
    skip     i64  at              text url, rule, key, known_url, crawl
    failure  i64  at              u16 status (0: no answer)    text url, reason, crawl
    redirect i64  at              text url, target, crawl, explored, instead_of
    file     i64  at              u64 content         text url, crawl, explored, instead_of

Fingerprints take 5 bytes and not the differences a varint: of 192 values of a page of 1,000 shingles the differences
need 30 bits on average, which is 5 bytes of a varint too, and a fixed width is read by one vectorised copy.
A page's message is 1.4 kB with the ``text`` profile (2.7 kB where main and whole text differ), 0.4 kB with ``compact``.
Cost: linear in its bytes; about 5 µs to write, compiled, and 35 µs to read.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from clusterd_crawler.core import compiled
from clusterd_crawler.errors import MessageError, WrongInput
from clusterd_crawler.fingerprints import FINGERPRINT_BITS
from clusterd_crawler.purpose import ANYONE, PACKED, Purpose
from clusterd_crawler.sketch import NAME_KINDS, PARITY_BYTES, PROFILES, Name, Sketch, StreamSketch
from clusterd_crawler.wire import Reader, put_texts, put_varint

MAGIC: Final = 0xC1
VERSION: Final = 1

#: Bytes of a URL beyond which nothing is reported of it; servers need not take more (RFC 9110: 8,000).
URL_BYTES: Final = 8192
#: Characters of a URL beyond which a message is refused: a store keeps twelve URLs in a block of 16 MB.
LONGEST_URL: Final = 1 << 18
#: Bytes of one fingerprint on the wire.
VALUE_BYTES: Final = FINGERPRINT_BITS // 8
#: The first byte, version, kind, and the checksum at the end.
HEAD_BYTES: Final = 3
CRC_BYTES: Final = 4

#: Times (Unix ms) that ISO 8601 and Python can write: whoever lists what happened would stumble over others.
YEAR_1: Final = -62_135_596_800_000
YEAR_10000: Final = 253_402_300_800_000

#: Flags of a sketch.
WHOLE_IS_MAIN: Final = 1
WANTS_VERDICT: Final = 2
SOFT_ERROR: Final = 4
EMBEDDED: Final = 8
PURPOSE: Final = 16
PARITIES: Final = 32
UNNUMBERED: Final = 64
_FLAGS: Final = WHOLE_IS_MAIN | WANTS_VERDICT | SOFT_ERROR | EMBEDDED | PURPOSE | PARITIES | UNNUMBERED

_SKETCH, _SKIP, _FAILURE, _REDIRECT, _FILE = 1, 2, 3, 4, 5
_NAME_KINDS: Final = dict(enumerate(NAME_KINDS, start=1))
_NAME_CODES: Final = {kind: code for code, kind in _NAME_KINDS.items()}
_SKETCH_HEAD: Final = struct.Struct("<BBHqQQ")
_NAME: Final = struct.Struct("<BQ")
_I64: Final = struct.Struct("<q")
_U64: Final = struct.Struct("<Q")
_CRC: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class SkipReport:
    """A request that a rule kept from being fetched: no skip without a trace."""

    url: str
    rule: str
    key: str
    known_url: str
    #: Unix time in milliseconds.
    at: int
    crawl: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A fetch that brought no page: an error status, no answer, a part of one, or one that was taken back.

    It justifies no skip.
    """

    url: str
    #: Unix time in milliseconds.
    at: int
    #: HTTP status; 0 where nothing answered.
    status: int = 0
    reason: str = ""
    crawl: str = ""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A request that was answered with the address of a page: what that page shows, the URL does."""

    url: str
    #: Unix time in milliseconds.
    at: int
    target: str
    crawl: str = ""
    #: As of a sketch: the rule that it was sent to watch, and the page that the skip would have rested on.
    explored: str = ""
    instead_of: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A fetch that brought a file, where its URL might have been a page's: what rules must not say of it."""

    url: str
    #: Unix time in milliseconds.
    at: int
    #: Identity of the bytes, 64 bits.
    content: int
    crawl: str = ""
    #: As of a sketch.
    explored: str = ""
    instead_of: str = ""


Message = Sketch | SkipReport | Failure | Redirect | File


@dataclass(frozen=True, slots=True)
class _Layout:
    """The body of a message that is no sketch: numbers, then texts, each by the name of its field."""

    kind: int
    of: type[SkipReport | Failure | Redirect | File]
    packed: struct.Struct
    numbers: tuple[str, ...]
    texts: tuple[str, ...]


_LAYOUTS: Final = (
    _Layout(_SKIP, SkipReport, _I64, ("at",), ("url", "rule", "key", "known_url", "crawl")),
    _Layout(_FAILURE, Failure, struct.Struct("<qH"), ("at", "status"), ("url", "reason", "crawl")),
    _Layout(_REDIRECT, Redirect, _I64, ("at",), ("url", "target", "crawl", "explored", "instead_of")),
    _Layout(_FILE, File, struct.Struct("<qQ"), ("at", "content"), ("url", "crawl", "explored", "instead_of")),
)
_BY_TYPE: Final = {layout.of: layout for layout in _LAYOUTS}
_BY_KIND: Final = {layout.kind: layout for layout in _LAYOUTS}


def encode(message: Message) -> bytes:
    """Return the bytes of a message; `WrongInput` where a field cannot be carried."""
    out = bytearray((MAGIC, VERSION))
    try:
        if isinstance(message, Sketch):
            out.append(_SKETCH)
            _put_sketch(out, message)
        else:
            layout = _BY_TYPE[type(message)]
            out.append(layout.kind)
            out += layout.packed.pack(*(getattr(message, name) for name in layout.numbers))
            put_texts(out, [getattr(message, name) for name in layout.texts])
    except (struct.error, UnicodeEncodeError, OverflowError) as error:
        raise WrongInput(f"the message about {message.url[:200]!r} cannot be written: {error}") from None
    out += _CRC.pack(zlib.crc32(out))
    return bytes(out)


def may_speak_of(url: str) -> bool:
    """Whether messages speak of a URL: one of the web, and not too long."""
    return url.startswith(("http://", "https://")) and len(url) <= URL_BYTES


def decode(raw: bytes) -> Message:
    """Return the message that the bytes hold; `MessageError`, which keeps them, where they hold none."""
    kind = _check_frame(raw)
    reader = Reader(raw, HEAD_BYTES, len(raw) - CRC_BYTES)
    if kind == _SKETCH:
        message: Message = _take_sketch(reader)
    elif layout := _BY_KIND.get(kind):
        given: list[Any] = [*reader.unpack(layout.packed), *reader.texts(len(layout.texts))]
        message = layout.of(**dict(zip((*layout.numbers, *layout.texts), given, strict=True)))
    else:
        raise MessageError(f"a message of the unknown kind {kind}", raw)
    if reader.left:
        raise MessageError(f"{reader.left} bytes too many", raw)
    at = message.fetched_at if isinstance(message, Sketch) else message.at
    if not YEAR_1 <= at < YEAR_10000:
        raise MessageError(f"{at} is no time (Unix milliseconds) of a year that has four digits", raw)
    if len(message.url) > LONGEST_URL:
        raise MessageError(f"a URL of {len(message.url)} characters; {LONGEST_URL} are the most", raw)
    return message


def _put_sketch(out: bytearray, page: Sketch) -> None:
    same = page.whole is page.main or page.whole == page.main
    flags = WHOLE_IS_MAIN * same | WANTS_VERDICT * page.wants_verdict | SOFT_ERROR * page.soft_error
    flags |= EMBEDDED * bool(page.embedded) | PURPOSE * (page.purpose != ANYONE)
    flags |= PARITIES * bool(page.main.parity or page.whole.parity) | UNNUMBERED * bool(page.unnumbered)
    out += _SKETCH_HEAD.pack(page.profile, flags, page.status, page.fetched_at, page.content, page.bag)
    if page.unnumbered:
        out += _U64.pack(page.unnumbered)
    if page.embedded:
        out += _U64.pack(page.embedded)
    if flags & PURPOSE:
        out += PACKED.pack(*page.purpose)
    put_texts(out, (page.url, page.crawl, page.sweep, page.explored, page.instead_of))
    put_varint(out, len(page.names))
    for name in page.names:
        out += _NAME.pack(_NAME_CODES[name.kind], name.hash)
    for stream in (page.main,) if same else (page.main, page.whole):
        _put_stream(out, stream)
        if flags & PARITIES:
            _put_parity(out, stream)


def _put_stream(out: bytearray, stream: StreamSketch) -> None:
    put_varint(out, stream.shingles)
    put_varint(out, stream.tokens)
    out += _U64.pack(stream.text)
    put_varint(out, len(stream.values) // 8)
    out += _packed(stream.values) if compiled.CORE is None else compiled.CORE.pack(stream.values)


def _put_parity(out: bytearray, stream: StreamSketch) -> None:
    if not stream.may_have(len(stream.parity)):
        raise OverflowError(f"a parity has {PARITY_BYTES} bytes, and a sketch that holds every shingle none")
    put_varint(out, len(stream.parity))
    out += stream.parity


def _packed(values: bytes) -> bytes:
    """Return 5 bytes of each 8 (the core's ``pack``)."""
    numbers = np.frombuffer(values, dtype="<u8")
    if not _ascending(numbers) or (len(numbers) and numbers[-1] >> np.uint64(FINGERPRINT_BITS)):
        raise OverflowError("the values of a sketch are 40 bits, ascending and distinct")
    return numbers.view(np.uint8).reshape(-1, 8)[:, :VALUE_BYTES].tobytes()


def _ascending(values: np.ndarray[Any, np.dtype[np.uint64]]) -> bool:
    return bool(np.all(values[1:] > values[:-1]))


def _check_frame(raw: bytes) -> int:
    """Return the kind of a message whose frame is sound: magic, version, checksum, in this order."""
    if len(raw) < 2 or raw[0] != MAGIC:
        raise MessageError("not a message of clusterd: it does not begin with C1", raw)
    if raw[1] != VERSION:
        raise MessageError(f"a message of version {raw[1]}; this clusterd reads version {VERSION}", raw)
    if len(raw) < HEAD_BYTES + CRC_BYTES or _CRC.unpack_from(raw, len(raw) - CRC_BYTES)[0] != _crc(raw):
        raise MessageError("cut short or damaged: its checksum does not match", raw)
    return raw[2]


def _crc(raw: bytes) -> int:
    return zlib.crc32(memoryview(raw)[:-CRC_BYTES])


def _take_sketch(reader: Reader) -> Sketch:
    profile, flags, status, fetched_at, content, bag = reader.unpack(_SKETCH_HEAD)
    if profile not in PROFILES:
        raise MessageError(f"a sketch of the unknown profile {profile}", reader.raw)
    if flags & ~_FLAGS:
        raise MessageError(f"a sketch with the unknown flags {flags:#x}", reader.raw)
    unnumbered = reader.unpack(_U64)[0] if flags & UNNUMBERED else 0
    embedded = reader.unpack(_U64)[0] if flags & EMBEDDED else 0
    purpose = Purpose(*reader.unpack(PACKED)) if flags & PURPOSE else ANYONE
    url, crawl, sweep, explored, instead_of = reader.texts(5)
    names = _take_names(reader)
    main = _take_stream(reader, flags)
    whole = main if flags & WHOLE_IS_MAIN else _take_stream(reader, flags)
    return Sketch(
        url=url,
        fetched_at=fetched_at,
        profile=profile,
        content=content,
        main=main,
        whole=whole,
        bag=bag,
        unnumbered=unnumbered,
        embedded=embedded,
        status=status,
        crawl=crawl,
        sweep=sweep,
        names=names,
        explored=explored,
        instead_of=instead_of,
        wants_verdict=bool(flags & WANTS_VERDICT),
        soft_error=bool(flags & SOFT_ERROR),
        purpose=purpose,
    )


def _take_names(reader: Reader) -> tuple[Name, ...]:
    count = reader.varint()
    if count * _NAME.size > reader.left:
        raise MessageError(f"{count} names in {reader.left} bytes", reader.raw)
    names = []
    for code, target in _NAME.iter_unpack(reader.take(count * _NAME.size)):
        if code not in _NAME_KINDS:
            raise MessageError(f"a name of the unknown kind {code}", reader.raw)
        names.append(Name(_NAME_KINDS[code], target))
    return tuple(names)


def _take_stream(reader: Reader, flags: int) -> StreamSketch:
    shingles, tokens = reader.varint(), reader.varint()
    text = reader.unpack(_U64)[0]
    count = reader.varint()
    if not count <= shingles <= 1 << FINGERPRINT_BITS:  # there are no more fingerprints
        raise MessageError(f"{count} values of {shingles} shingles", reader.raw)
    packed = np.frombuffer(reader.take(count * VALUE_BYTES), dtype=np.uint8).reshape(-1, VALUE_BYTES)
    wide = np.zeros((count, 8), dtype=np.uint8)
    wide[:, :VALUE_BYTES] = packed
    values = wide.view("<u8").reshape(-1)
    if not _ascending(values):
        raise MessageError("the values of a sketch do not ascend", reader.raw)
    stream = StreamSketch(values=values.tobytes(), shingles=shingles, tokens=tokens, text=text)
    return _with_parity(stream, reader) if flags & PARITIES else stream


def _with_parity(stream: StreamSketch, reader: Reader) -> StreamSketch:
    size = reader.varint()
    if not stream.may_have(size):
        kept = len(stream.values) // 8
        raise MessageError(f"a parity of {size} bytes beside {kept} values of {stream.shingles} shingles", reader.raw)
    return replace(stream, parity=reader.take(size)) if size else stream
