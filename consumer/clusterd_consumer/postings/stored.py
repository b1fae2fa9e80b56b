"""A sketch as an index keeps it: 192 values in about 200 bytes, in their order, comparable with any other document's.

A value is cut to a floating-point number: its bit length and the first bits after its leading one (11 for MIN_400).
Unlike low bits, that keeps the order of the permutation, so two cut sketches are still brought to the lower of their
thresholds; unlike a fixed scale, equal values are cut to equal **codes** whatever the length of their documents.
Two different values of one octave agree by chance once in 2^11; `judging` corrects for it.

    code(v) = v                                   where v < 2^(b+1)
            = (e - 1 - b) * 2^b + (v >> e - 1 - b)    otherwise;  e = bit length of v, b = mantissa bits

The i-th value of a sample of uniform values lies about 2^b / (i ln 2) codes above the one before, whatever the
document, so its Rice parameter is known from its rank and is not stored: k(i) = max(0, b - bit_length(i)).

    offset  bytes  content, little-endian, bits from the lowest
    0       4      n * 8 + (4 where its threshold is a power of two) + (2 where it holds every shingle)
                   + (1 where it has no threshold) + (2^31 where it has a parity)
    4       4      code of the smallest value
    8       2      code of its number of shingles (b = 11), where it does not hold every shingle
    10      128    its parity (`clusterd_crawler.sketch`), where it has one
    ...     ...    n - 1 low parts of the differences, k(i) bits each, together padded to a byte
    ...     ...    n - 1 high parts: so many zeros, then a one; padded to a byte
    ...     2, 3   low 16 or 24 bits of each *posted* value (`keys`), which the code has lost and its key needs

An empty sketch is 4 zero bytes. V_i: values are bit-reversed first, which turns divisibility into order.
Cost: linear; 2 µs for 192 values compiled (`core/_verify.c`), 40 µs in NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from clusterd_crawler.fingerprints import FINGERPRINT_BITS
from clusterd_crawler.sketch import PARITY_BYTES, Profile, StreamSketch

from clusterd_consumer.core.compiled import CORE
from clusterd_consumer.postings.scheme import mantissa

Codes = npt.NDArray[np.uint32]
Values = npt.NDArray[np.uint64]

HEADER: Final = 8
#: Mantissa bits of the number of shingles: it is right to .02 %, up to 2^42.
SIZE_BITS: Final = 11
WITH_PARITY: Final = 1 << 31
OCTAVE: Final = 4
EXACT: Final = 2
UNBOUNDED: Final = 1


@dataclass(frozen=True, slots=True)
class Stored:
    """A decoded sketch: codes ascending (with repeats), the document's number of shingles, and how far it is known."""

    codes: Codes
    shingles: int
    octave: bool
    exact: bool
    unbounded: bool
    #: Empty where it has none.
    parity: bytes
    #: What `keys` needs beside the codes.
    extras: bytes


class Restored(StreamSketch):
    """A sketch from an index, held as it is stored: its cut values are unpacked whenever they are asked for.

    So tens of thousands can be held: of 192 values it takes 400 bytes with its parity, and 2 kB unpacked.
    """

    __slots__ = ("_bits", "profile", "stored")

    stored: bytes
    #: The code of the profile that it was made with.
    profile: int
    _bits: int

    def __init__(self, stored: bytes, profile: Profile, shingles: int, tokens: int, text: int) -> None:
        own = {"stored": stored, "profile": profile.code, "_bits": mantissa(profile)}
        for name, value in {**own, "shingles": shingles, "tokens": tokens, "text": text}.items():
            object.__setattr__(self, name, value)  # as frozen dataclasses do

    @property
    def values(self) -> bytes:
        """Return the smallest values of the stored codes: to be compared with others from the index."""
        return values_of(self.stored, self._bits)

    @property
    def parity(self) -> bytes:
        """Return the parity, empty where it has none."""
        return self.stored[_parity_at(self.stored)]

    @property
    def complete(self) -> bool:
        """Whether the sketch holds every shingle."""
        return count_of(self.stored) == self.shingles


def restored(stored: bytes, profile: Profile) -> Restored:
    """Return a sketch of which nothing is kept but its stored form: the number of its tokens and its text are not."""
    stored = stored or bytes(4)
    return Restored(stored, profile, unpack(stored, mantissa(profile)).shingles, tokens=0, text=0)


def ordered(sketch: StreamSketch, profile: Profile) -> Values:
    """Return a sketch's values in the order of their sampling, ascending."""
    values = np.frombuffer(sketch.values, "<u8").astype(np.uint64)
    if profile.kind != "v":
        return values
    octets = values.astype("<u8").view(np.uint8).reshape(-1, 8)
    bits = np.unpackbits(octets, axis=1, bitorder="little")[:, :FINGERPRINT_BITS][:, ::-1]
    padded = np.zeros((len(values), 64), np.uint8)
    padded[:, :FINGERPRINT_BITS] = bits
    return np.sort(np.packbits(padded, axis=1, bitorder="little").view("<u8").reshape(-1).astype(np.uint64))


def cut(values: Values, bits: int) -> Codes:
    """Cut values to codes of ``bits`` mantissa bits."""
    length = np.frexp(values.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(length - 1 - bits, 0).astype(np.uint64)
    return ((shift << np.uint64(bits)) + (values >> shift)).astype(np.uint32)


def parameters(n: int, bits: int) -> npt.NDArray[np.int64]:
    """Return the Rice parameters of the differences of ``n`` codes: those of rank 1 to n - 1."""
    length = np.frexp(np.arange(1, n, dtype=np.float64))[1].astype(np.int64)
    return np.maximum(bits - length, 0)


def pack(sketch: StreamSketch, profile: Profile, codes: Codes, extras: bytes) -> bytes:
    """Return the stored form of a sketch from its codes and what `keys` needs beside them."""
    n = len(codes)
    if n == 0:
        return bytes(4)
    header = np.array([n * 8 + flags_of(sketch, profile), codes[0]], "<u4").tobytes()
    if not sketch.may_have(len(sketch.parity)):
        raise ValueError(f"a parity has {PARITY_BYTES} bytes, and a sketch that holds every shingle none")
    if not sketch.complete:
        header += int(cut(np.array([sketch.shingles], np.uint64), SIZE_BITS)[0]).to_bytes(2, "little")
    bits = mantissa(profile)
    differences = codes[1:].astype(np.int64) - codes[:-1].astype(np.int64)
    k = parameters(n, bits)
    return header + sketch.parity + _lows(differences, k, bits) + _highs(differences >> k) + extras


def flags_of(sketch: StreamSketch, profile: Profile) -> int:
    """Return what the header says of a sketch beside its number of values."""
    exact = sketch.complete
    known = OCTAVE * (profile.kind == "v") + EXACT * exact + UNBOUNDED * (exact or profile.kind == "mod")
    return known + WITH_PARITY * bool(sketch.parity)


def count_of(stored: bytes) -> int:
    """Return the number of values of a stored sketch."""
    return (int.from_bytes(stored[:4], "little") & ~WITH_PARITY) >> 3


def unpack(stored: bytes, bits: int) -> Stored:
    """Return what a stored sketch says."""
    count, flags = count_of(stored), int.from_bytes(stored[:4], "little")
    if count == 0:
        return Stored(np.zeros(0, np.uint32), 0, False, False, False, b"", b"")
    first = int.from_bytes(stored[4:8], "little")
    k = parameters(count, bits)
    low_bytes = (int(k.sum()) + 7) // 8
    parity = _parity_at(stored)
    size_code = int.from_bytes(stored[HEADER : parity.start], "little")
    shingles = count if flags & EXACT else max(count, size_of(size_code))
    rest = np.frombuffer(stored, np.uint8, offset=parity.stop)
    lows = _read_lows(rest[:low_bytes], k, bits)
    highs, used = _read_highs(rest[low_bytes:], count - 1)
    codes = first + np.concatenate(([0], np.cumsum((highs << k) + lows)))
    known = bool(flags & OCTAVE), bool(flags & EXACT), bool(flags & UNBOUNDED)
    extras = stored[parity.stop + low_bytes + used :]
    return Stored(codes.astype(np.uint32), shingles, *known, stored[parity], extras)


def _parity_at(stored: bytes) -> slice:
    """Return where the parity of a stored sketch lies, behind the number of its shingles."""
    flags = int.from_bytes(stored[:4], "little")
    begin = HEADER if flags & EXACT else HEADER + 2
    return slice(begin, begin + (PARITY_BYTES if flags & WITH_PARITY else 0))


def size_of(code: int) -> int:
    """Return the number of shingles, the middle of those that have this code."""
    shift = max(0, (code >> SIZE_BITS) - 1)
    return (code - (shift << SIZE_BITS) << shift) + (1 << shift >> 1)


def values_of(stored: bytes, bits: int) -> bytes:
    """Return the smallest values of a stored sketch's codes, repeats told apart by counting up, 8 bytes each."""
    if CORE is not None:
        found: bytes = CORE.values(stored, bits)
        return found
    codes = unpack(stored, bits).codes
    wide = codes.astype(np.uint64)
    shift = np.maximum((wide >> np.uint64(bits)).astype(np.int64) - 1, 0).astype(np.uint64)
    values = (wide - (shift << np.uint64(bits))) << shift
    return (values + repeats(codes)).astype("<u8").tobytes()


def repeats(codes: Codes) -> Values:
    """Return of each of some ascending codes how many equal ones stand before it."""
    places = np.arange(len(codes))
    starts = np.append(True, codes[1:] != codes[:-1])[: len(codes)]
    return (places - np.maximum.accumulate(np.where(starts, places, 0))).astype(np.uint64)


def _groups(k: npt.NDArray[np.int64], bits: int) -> list[tuple[int, slice]]:
    """Return (parameter, ranks) for each run of one parameter."""
    lengths = range(1, len(k).bit_length() + 1)
    return [(max(bits - n, 0), slice(2 ** (n - 1) - 1, min(2**n - 1, len(k)))) for n in lengths]


def _lows(differences: npt.NDArray[np.int64], k: npt.NDArray[np.int64], bits: int) -> bytes:
    parts = [np.zeros(0, np.uint8)]
    for width, ranks in _groups(k, bits):
        columns = differences[ranks, None] >> np.arange(width)
        parts.append((columns & 1).astype(np.uint8).reshape(-1))
    return np.packbits(np.concatenate(parts), bitorder="little").tobytes()


def _read_lows(octets: npt.NDArray[np.uint8], k: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.int64]:
    stream = np.unpackbits(octets, bitorder="little")
    lows = np.zeros(len(k), np.int64)
    at = 0
    for width, ranks in _groups(k, bits):
        size = (ranks.stop - ranks.start) * width
        lows[ranks] = stream[at : at + size].reshape(-1, width) @ (1 << np.arange(width)) if width else 0
        at += size
    return lows


def _highs(highs: npt.NDArray[np.int64]) -> bytes:
    ends = np.cumsum(highs + 1) - 1
    stream = np.zeros(int(ends[-1]) + 1 if len(ends) else 0, np.uint8)
    stream[ends] = 1
    return np.packbits(stream, bitorder="little").tobytes()


def _read_highs(octets: npt.NDArray[np.uint8], count: int) -> tuple[npt.NDArray[np.int64], int]:
    if count == 0:
        return np.zeros(0, np.int64), 0
    ends = np.flatnonzero(np.unpackbits(octets, bitorder="little"))[:count]
    return np.diff(ends, prepend=-1) - 1, int(ends[-1]) // 8 + 1
