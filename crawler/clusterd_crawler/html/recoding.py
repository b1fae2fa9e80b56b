"""Bytes of one charset → UTF-8, a large body piece by piece: Python's decoders hold the interpreter's lock, up to 10 ms
a MB, which would stop the crawl's loop for that long. Between two pieces other threads get their turn.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final

from w3lib.encoding import to_unicode

#: Bytes decoded at once.
PIECE: Final = 128 * 1024

#: Characters beyond ASCII for each wrong byte, from which on bytes are of a charset all the same: text of others has
#: hardly a sequence of bytes that is also one of UTF-8 (chosen).
RIGHT_PER_WRONG: Final = 4
#: How decoders are told to read wrong bytes as windows-1252.
KEPT: Final = "clusterd.kept"
_CUT_CHARACTER: Final = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()
#: All bytes of UTF-8 but those that begin a character beyond ASCII; but those that begin any character.
_NO_BEGINNINGS: Final = bytes(range(0xC0))
_CONTINUED: Final = bytes(range(0x80, 0xC0))


def recoded(body: bytes, charset: str) -> bytes:
    """Return a body in UTF-8; raises as `bytes.decode` does where it is not of that charset."""
    if len(body) <= PIECE or _starts_with_order(charset):
        return encoded(body.decode(charset))
    return b"".join(_pieces(body, charset, "strict"))


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
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(KEPT, _kept)


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
