"""Which charset a page is in that says none, or a wrong one, as its bytes look (uchardet, Mozilla's detector).

Only charsets of other scripts than Latin are guessed: read as windows-1252 such a page has no words, and what resembles
it in UTF-8 is not found. Latin ones differ from windows-1252 by a few letters, and a guess that falls out otherwise for
one of two copies would do more harm than good.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from cchardet import detect

#: Charset as uchardet names it → as Python names it, or a charset of Python's that holds it whole.
_CHARSETS: Final = {
    "BIG5": "big5hkscs",
    "EUC-JP": "euc_jp",
    "EUC-KR": "cp949",
    "GB18030": "gb18030",
    "GB2312": "gb18030",
    "IBM866": "cp866",
    "ISO-8859-5": "iso8859-5",
    "ISO-8859-6": "iso8859-6",
    "ISO-8859-7": "iso8859-7",
    "ISO-8859-8": "iso8859-8",
    "ISO-8859-11": "cp874",
    "KOI8-R": "koi8-r",
    "MACCYRILLIC": "mac-cyrillic",
    "SHIFT_JIS": "cp932",
    "TIS-620": "cp874",
    "UHC": "cp949",
    "WINDOWS-1251": "cp1251",
    "WINDOWS-1253": "cp1253",
    "WINDOWS-1255": "cp1255",
    "WINDOWS-1256": "cp1256",
}

#: Text between two tags in which a byte is not ASCII. No such charset has "<" or ">" as the second byte of a character.
_TEXT: Final = re.compile(rb"(?:\A|>)([^<>\x80-\xff]*[\x80-\xff][^<>]*)")
#: Bytes of a page in which text is looked for, most pieces and bytes of it that are looked at: a few ms, lock held.
_LOOKED_AT: Final = 128 * 1024
_MOST_PIECES: Final = 512
_MOST_BYTES: Final = 8192
#: Share of the letters that are beyond ASCII where a text is of another script (chosen; two in a hundred of Italian,
#: fifteen of Czech, of which uchardet knows the charsets).
_SHARE: Final = 0.1
#: Confidence from which on uchardet is believed (chosen; it says .25 of what it does not know).
_CONFIDENT: Final = 0.5

_ASCII: Final = bytes(range(128))
_NO_LETTERS: Final = bytes(set(range(128)) - set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))


def guessed(body: bytes) -> str | None:
    """Return the charset of another script that a body is in, as Python names it; None where it looks like none."""
    text = _shown(body)
    beyond = len(text.translate(None, _ASCII))
    if beyond < _SHARE * len(text.translate(None, _NO_LETTERS)):
        return None
    found = detect(text)
    if found["encoding"] is None or found["confidence"] is None or found["confidence"] < _CONFIDENT:
        return None
    return _CHARSETS.get(found["encoding"].upper())


def _shown(body: bytes) -> bytes:
    """Return the first text of a body that is not all ASCII, some kB of it, cut where no character is.

    One blank is between two words: line ends make uchardet take Chinese for Taiwanese.
    """
    pieces = islice(_TEXT.finditer(body, 0, _LOOKED_AT), _MOST_PIECES)
    text = b" ".join(word for piece in pieces for word in piece[1][:_MOST_BYTES].split())
    if len(text) > _MOST_BYTES:
        text = text[: max(text.rfind(b" ", 0, _MOST_BYTES), 0) or _MOST_BYTES]
    return text
