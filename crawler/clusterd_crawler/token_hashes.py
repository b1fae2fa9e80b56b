"""Text → hashes of its tokens in NumPy, without a Python object for a token: for `sketch` where nothing is compiled.

1. Text becomes code points, folded through a table in which separators are 0 (the marks \\1 and \\2 stay), Latin 1 that
   folds to ASCII as bytes; text that is not made of simple code points (`tokens.fold_block`) is folded by Python.
2. Classes (`token_classes`) say where tokens begin and end; a mark takes the class of what it follows. Where all words
   are ASCII, what is above the marks is a word.
3. MurmurHash3 of all tokens at once: the first 16 bytes of each are taken as two numbers and masked to its length.
   Longer tokens, which are rare, go to mmh3 one by one.

Cost: about 9 ns a byte, 60 µs for a page of 1,000 words: arrays are short, so the number of passes is what counts, and
what a pass takes besides its numbers: half as much where it makes no array, and its constants are arrays.
Same results as `tokens.tokens`, hashed one by one.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import mmh3
import numpy as np
import numpy.typing as npt

from clusterd_crawler.token_classes import (
    CLASS,
    DIGIT,
    IGNORABLE,
    IGNORABLE_PLANE,
    MARK,
    SEPARATOR,
    SINGLE,
    TABLED,
    WORD,
    class_table,
)
from clusterd_crawler.tokens import Hashes, composed, fold_block

Codes = npt.NDArray[np.uint32] | npt.NDArray[np.uint8]
Places = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

_TABLE: Final = np.frombuffer(class_table() + bytes([SEPARATOR]), np.uint8)
_CLASSES: Final = _TABLE & np.uint8(CLASS)
_IS_DIGIT: Final = (_TABLE & np.uint8(DIGIT)).astype(np.bool_)
_BLOCK: Final = 256
#: The marks of `markup` around what is not main text; all below and between is separators.
_CHROME_ENDS: Final = 2
_ABOVE_MARKS: Final = np.array(_CHROME_ENDS, np.uint8)
_A_WORD: Final = np.array(WORD, np.uint8)
#: Stands for text that is not of Latin 1.
_WIDE: Final = b"\xff"
#: What a code point of the basic plane folds to where that is one code point, else one of the three below.
_UNREAD: Final = 0xFFFFFFFD
_IGNORED: Final = 0xFFFFFFFE
_OTHER: Final = 0xFFFFFFFF
_FOLDED: Final = np.full(0x10000, _UNREAD, np.uint32)

_LONGEST: Final = 15
#: Masks of the first n of sixteen bytes.
_MASKS: Final = np.frombuffer(b"".join(bytes([255] * n).ljust(16, b"\0") for n in range(_LONGEST + 1)), "V16")
_C1: Final = np.array(0x87C37B91114253D5, np.uint64)
_C2: Final = np.array(0x4CF5AD432745937F, np.uint64)
_F1: Final = np.array(0xFF51AFD7ED558CCD, np.uint64)
_F2: Final = np.array(0xC4CEB9FE1A85EC53, np.uint64)
_BY_31: Final = np.array(31, np.uint64)
_BY_33: Final = np.array(33, np.uint64)


def hash_text(text: str) -> Hashes:
    """Return the hashes of a text's tokens."""
    codes = _folded_codes(text)
    return _hash(codes, *_token_bounds(codes))


def hash_streams(text: str, *, marked: bool) -> tuple[Hashes, Flags | None, Flags]:
    """Return the hashes of a text's tokens, which of them are main text (None: all are), and which are numbers.

    A number begins with a digit: "12th" is one, as is "5kg".
    """
    codes = _folded_codes(text)
    starts, ends = _token_bounds(codes)
    is_number = _IS_DIGIT.take(codes.take(starts), mode="clip") if len(starts) else np.empty(0, np.bool_)
    return _hash(codes, starts, ends), _main_at(codes, starts) if marked else None, is_number


def _folded_codes(text: str) -> Codes:
    """The code points of the folded text, separators 0, without what is ignorable; bytes where it is ASCII then."""
    try:
        narrow = text.encode("latin-1").translate(_latin())
    except UnicodeEncodeError:
        narrow = _WIDE
    if narrow.isascii():
        return np.frombuffer(narrow, np.uint8)
    codes = _codes(text)
    folded = _fold_simple(codes) if codes.max() < len(_FOLDED) else None
    if folded is None:
        folded = _codes(composed(text))
        classes = _CLASSES.take(folded, mode="clip")  # beyond the table is a separator, as its last entry is
        ignored = classes == IGNORABLE
        ignored |= (folded >= IGNORABLE_PLANE.start) & (folded < IGNORABLE_PLANE.stop)
        folded = np.compress(~ignored, np.where((classes == SEPARATOR) & (folded > _CHROME_ENDS), 0, folded))
    return folded.astype(np.uint8) if not len(folded) or folded.max() < 0x80 else folded.astype(np.uint32, copy=False)


@cache
def _latin() -> bytes:
    """What a code point of Latin 1 folds to: 0 where it is a separator, 255 where it is not one of ASCII."""
    _read_blocks(np.zeros(1, np.uint32))
    return np.where(_FOLDED[:_BLOCK] < 0x80, _FOLDED[:_BLOCK], 0xFF).astype(np.uint8).tobytes()


def _fold_simple(codes: Codes) -> npt.NDArray[np.uint32] | None:
    """Fold code points of the basic plane one by one; None where that is not possible."""
    folded = _FOLDED.take(codes, mode="clip")
    largest = folded.max()
    if largest >= _UNREAD:
        _read_blocks(codes[folded == _UNREAD])
        folded = _FOLDED.take(codes, mode="clip")
        largest = folded.max()
    if largest == _OTHER:
        return None
    return np.compress(folded != _IGNORED, folded) if largest == _IGNORED else folded


def _codes(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32, copy=False)


def _read_blocks(codes: Codes) -> None:
    """Fill the table of folded code points for the blocks of these."""
    for block in np.unique(codes // _BLOCK).tolist():
        first = block * _BLOCK
        entries = fold_block(first)
        for at in range(_BLOCK):
            entry = entries[at * 8 : at * 8 + 8]
            becomes = entry[2 : 2 + entry[0]].decode("utf-8", "surrogatepass")
            folded = ord(becomes) if len(becomes) == 1 else _OTHER
            _FOLDED[first + at] = _tabled(folded)


def _tabled(folded: int) -> int:
    """What the table says of a code point that folds to this one."""
    if folded >= TABLED:
        return _OTHER
    if _CLASSES[folded] == IGNORABLE:
        return _IGNORED
    return 0 if _CLASSES[folded] == SEPARATOR and folded > _CHROME_ENDS else folded


def _token_bounds(codes: Codes) -> tuple[Places, Places]:
    """Where each token begins and ends, in code points."""
    if codes.itemsize == 1:
        return _runs(codes, np.greater, _ABOVE_MARKS)
    classes = _CLASSES.take(codes, mode="clip")
    if classes.max() <= WORD:
        return _runs(classes, np.equal, _A_WORD)
    marks = classes == MARK
    if marks.any():  # a mark has the class of what it follows; with nothing before it, it begins a word
        base = np.maximum.accumulate(np.where(marks, -1, np.arange(len(classes))))
        followed = np.where(base >= 0, classes[base], SEPARATOR)
        classes = np.where(marks & (followed == SEPARATOR), WORD, followed).astype(np.uint8)
    before = np.concatenate([[SEPARATOR], classes[:-1]])
    begins = ((classes == SINGLE) & ~marks) | ((classes != SEPARATOR) & (before == SEPARATOR))
    begins |= (classes == WORD) & (before == SINGLE)
    inside = classes != SEPARATOR
    ends = inside & np.append(begins[1:] | ~inside[1:], True)
    return np.flatnonzero(begins), np.flatnonzero(ends) + 1


def _runs(values: Codes, is_like: np.ufunc, that: Codes) -> tuple[Places, Places]:
    """Where each run of values that are like that begins and ends."""
    padded = np.zeros(len(values) + 2, np.bool_)
    is_like(values, that, padded[1:-1])
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return edges[::2], edges[1::2]


def _main_at(codes: Codes, starts: Places) -> Flags | None:
    r"""Which tokens stand outside \1 … \2."""
    marks = np.flatnonzero((codes == 1) | (codes == 2))
    if not len(marks):
        return None
    last = np.searchsorted(marks, starts) - 1
    is_main: Flags = (last < 0) | (codes[marks[last]] == 2)
    return is_main


def _hash(codes: Codes, starts: Places, ends: Places) -> Hashes:
    """MurmurHash3 of the UTF-8 of each token."""
    if not len(starts):
        return np.empty(0, np.uint64)
    if codes.itemsize == 1:
        data = codes.tobytes()
    else:
        data = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass").encode("utf-8", "surrogatepass")
        offsets = np.zeros(len(codes) + 1, np.intp)
        np.cumsum(1 + (codes >= 0x80) + (codes >= 0x800).astype(np.intp) + (codes >= 0x10000), out=offsets[1:])
        starts, ends = offsets[starts], offsets[ends]
    lengths = ends - starts
    sixteens = np.ndarray(len(data) + 1, "V16", data + bytes(16), strides=(1,))
    # indexed, as `take` would write out the sixteen bytes from every byte on first
    halves = sixteens[starts].view("<u8") & _MASKS.take(lengths, mode="clip").view("<u8")
    hashes = _murmur(halves[::2], halves[1::2], lengths.view(np.uint64))
    if lengths.max() > _LONGEST:
        long = np.flatnonzero(lengths > _LONGEST)
        bounds = zip(starts[long].tolist(), ends[long].tolist(), strict=True)
        hashes[long] = [mmh3.hash64(data[start:end], signed=False)[0] for start, end in bounds]
    return hashes


def _murmur(first: Hashes, second: Hashes, lengths: Hashes) -> Hashes:
    """The first half of MurmurHash3_x64_128, seed 0, of strings of up to 15 bytes given as two numbers."""
    both = np.empty((2, len(first)), np.uint64)
    one, two = both
    np.multiply(first, _C1, one)
    np.multiply(second, _C2, two)
    part = np.right_shift(one, _BY_33)
    np.left_shift(one, _BY_31, one)
    np.bitwise_or(one, part, one)
    np.right_shift(two, _BY_31, part)
    np.left_shift(two, _BY_33, two)
    np.bitwise_or(two, part, two)
    np.multiply(one, _C2, one)
    np.multiply(two, _C1, two)
    np.bitwise_xor(both, lengths, both)
    np.add(one, two, one)
    np.add(one, two, two)
    one, two = fmix64(both)
    mixed: Hashes = np.add(one, two, one)
    return mixed


def fmix64(values: Hashes) -> Hashes:
    """MurmurHash3's finalizer: a permutation of 64-bit numbers in which every bit depends on every other."""
    shifted = np.right_shift(values, _BY_33)
    mixed = np.bitwise_xor(values, shifted)
    for factor in (_F1, _F2):
        np.multiply(mixed, factor, mixed)
        np.right_shift(mixed, _BY_33, shifted)
        np.bitwise_xor(mixed, shifted, mixed)
    return mixed
