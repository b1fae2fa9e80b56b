"""Bytes of one charset → UTF-8, a large body piece by piece: Python's decoders hold the interpreter's lock, up to 10 ms
a MB, which would stop the crawl's loop for that long. Between two pieces other threads get their turn.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from w3lib.encoding import to_unicode

#: Bytes decoded at once.
PIECE: Final = 128 * 1024

#: Characters beyond ASCII for each wrong byte, from which on bytes are of a charset all the same: text of others has
#: hardly a sequence of bytes that is also one of UTF-8 (chosen).
RIGHT_PER_WRONG: Final = 4
#: How decoders are told to read wrong bytes as windows-1252, and to read what vendors added and refuse the rest.
KEPT: Final = "clusterd.kept"
ADDED: Final = "clusterd.added"
#: Japanese charsets of two bytes a character, whose codecs lack what NEC and IBM added (①, ㈱, 髙) and browsers read.
_JAPANESE: Final = frozenset(("euc_jp", "iso2022_jp", "iso2022_jp_ext"))
#: First bytes of theirs in JIS X 0208.
_ROWS: Final = frozenset((0x2D, 0x79, 0x7A, 0x7B, 0x7C))
#: Charsets of two bytes a character, as errors name them → bytes that begin a pair; not 0x8F, which in EUC-JP begins
#: three bytes, the last two of which make a character as well.
_FIRSTS: Final = {
    **dict.fromkeys(("big5hkscs", "cp932", "cp949", "gb18030"), frozenset(range(0x81, 0xFF))),
    "euc_jp": frozenset((0x8E, *range(0xA1, 0xFF))),
}
#: The sign of the euro in Big5, which Python's codec lacks.
_EURO: Final = ("big5hkscs", b"\xa3\xe1")
_CUT_CHARACTER: Final = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()
#: All bytes of UTF-8 but those that begin a character beyond ASCII; but those that begin any character.
_NO_BEGINNINGS: Final = bytes(range(0xC0))
_CONTINUED: Final = bytes(range(0x80, 0xC0))


def recoded(body: bytes, charset: str) -> bytes:
    """Return a body in UTF-8; raises as `bytes.decode` does where it is not of that charset."""
    if len(body) <= PIECE or _starts_with_order(charset):
        return encoded(body.decode(charset, ADDED))
    return b"".join(_pieces(body, charset, ADDED))


def check_utf8(body: bytes) -> None:
    """Raise `UnicodeDecodeError` where a body is not UTF-8."""
    if len(body) <= PIECE:
        body.decode()
        return
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    for at in range(0, len(body), PIECE):
        decoder.decode(body[at : at + PIECE], at + PIECE >= len(body))


def repaired(body: bytes, charset: str) -> bytes:
    """Return a body in UTF-8 with what is not of the charset replaced, as w3lib's ``to_unicode`` does."""
    if len(body) <= PIECE or "18030" in charset or _starts_with_order(charset):  # w3lib replaces otherwise in GB18030
        return encoded(to_unicode(body, charset))
    return b"".join(_pieces(body, charset, "replace"))


def mostly_right(body: bytes, charset: str) -> bytes | None:
    """Return a body in UTF-8; None where so much of it is wrong that the charset is another.

    A page may be cut short within a character, which is left out, or hold some text of another charset. That is read as
    windows-1252, so that pages which differ in nothing else stay different.
    """
    if charset == "utf-8" and (cut := _CUT_CHARACTER.search(body, max(0, len(body) - 3))):
        body = body[: cut.start()]
    made = repaired(body, charset)
    # ASCII is the same in most charsets and speaks for none of them; where it has two bytes or four a letter it does.
    is_wide = charset.startswith(("utf-16", "utf-32"))
    passed_over = _CONTINUED if is_wide else _NO_BEGINNINGS
    wrong = right = 0
    for at in range(0, len(made), PIECE):  # counting holds the lock as well
        wrong += made.count(_REPLACEMENT, at, at + PIECE + len(_REPLACEMENT) - 1)
        right += len(made[at : at + PIECE].translate(None, passed_over))
    if right - wrong <= RIGHT_PER_WRONG * wrong:
        return None
    return made if is_wide else b"".join(_pieces(body, charset, KEPT))


def _kept(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for wrong bytes, and where decoding goes on (see `codecs.register_error`)."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    end = _wrong_end(error)
    return _by_vendor(error) or (error.object[error.start : end].decode("cp1252", "replace"), end)


def _wrong_end(error: UnicodeDecodeError) -> int:
    """Return where what is wrong ends: as in browsers behind both bytes of a pair that is no character.

    Else the second would be read with what follows, all of it by the wrong halves up to the next byte of ASCII.
    """
    first, *second = error.object[error.start : error.start + 2]
    is_pair = first in _FIRSTS.get(error.encoding, ())
    return error.start + 2 if is_pair and second and second[0] >= 0x80 else error.end


def _added(error: UnicodeError) -> tuple[str, int]:
    found = _by_vendor(error) if isinstance(error, UnicodeDecodeError) else None
    if found is None:
        raise error
    return found


def _by_vendor(error: UnicodeDecodeError) -> tuple[str, int] | None:
    """Return the character that a vendor added, and where decoding goes on."""
    pair = error.object[error.start : error.start + 2]
    if (error.encoding, pair) == _EURO:
        return "€", error.start + 2
    if error.encoding not in _JAPANESE or len(pair) < 2 or (pair[0] ^ pair[1]) > 0x7F:
        return None
    row, cell = pair[0] & 0x7F, pair[1] & 0x7F
    if row in _ROWS and 0x21 <= cell <= 0x7E:
        with suppress(UnicodeDecodeError):
            return _in_shift_jis(row, cell).decode("cp932"), error.start + 2
    return None


def _in_shift_jis(row: int, cell: int) -> bytes:
    """Return in Shift_JIS, whose codec has the vendors' characters, one from its two bytes in JIS X 0208."""
    lead = (row + 1) // 2 + (0x70 if row < 0x5F else 0xB0)
    return bytes((lead, cell + (0x7E if row % 2 == 0 else 0x1F + (cell >= 0x60))))


codecs.register_error(KEPT, _kept)
codecs.register_error(ADDED, _added)


def _starts_with_order(charset: str) -> bool:
    """Whether bytes of that charset begin with their order: piece by piece Python insists on it, and pages lack it."""
    return codecs.lookup(charset).name in {"utf-16", "utf-32"}


def _pieces(body: bytes, charset: str, errors: str) -> Iterator[bytes]:
    b" ".decode(charset, "ignore")  # raises LookupError where that is no charset of text
    decoder = codecs.getincrementaldecoder(charset)(errors)
    for at in range(0, len(body), PIECE):
        yield encoded(decoder.decode(body[at : at + PIECE], at + PIECE >= len(body)))


def encoded(text: str) -> bytes:
    """Return a text in UTF-8; halves of surrogate pairs stay what they are."""
    return text.encode("utf-8", "surrogatepass")
