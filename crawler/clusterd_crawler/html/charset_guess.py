"""Which charset a page is in that says none, or a wrong one, as its bytes look (uchardet, Mozilla's detector).

Read as windows-1252 a page of another script has no words, and what resembles it in UTF-8 is not found. Of a page with
few letters beyond ASCII, such as those of windows-1252's own languages mostly are, nothing is guessed: what falls out
otherwise for one of two copies does more harm than a letter that is misread in both.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from cchardet import detect

#: Charset as uchardet names it → as Python names it, or a charset of Python's that holds it whole. What else it names
#: pages are not in: mostly it has taken a western text for that.
_CHARSETS: Final = {
    "BIG5": "big5hkscs",
    "EUC-JP": "euc_jp",
    "EUC-KR": "cp949",
    "GB18030": "gb18030",
    "GB2312": "gb18030",
    "IBM866": "cp866",
    "ISO-8859-2": "iso8859-2",
    "ISO-8859-5": "iso8859-5",
    "ISO-8859-6": "iso8859-6",
    "ISO-8859-7": "iso8859-7",
    "ISO-8859-8": "iso8859-8",
    "ISO-8859-9": "cp1254",
    "ISO-8859-11": "cp874",
    "KOI8-R": "koi8-r",
    "MACCYRILLIC": "mac-cyrillic",
    "SHIFT_JIS": "cp932",
    "TIS-620": "cp874",
    "UHC": "cp949",
    "WINDOWS-1250": "cp1250",
    "WINDOWS-1251": "cp1251",
    "WINDOWS-1253": "cp1253",
    "WINDOWS-1254": "cp1254",
    "WINDOWS-1255": "cp1255",
    "WINDOWS-1256": "cp1256",
    "WINDOWS-1257": "cp1257",
    "WINDOWS-1258": "cp1258",
}

#: Text between two tags in which a byte is not ASCII. No such charset has "<" or ">" as the second byte of a character.
_TEXT: Final = re.compile(rb"(?:\A|>)([^<>\x80-\xff]*[\x80-\xff][^<>]*)")
#: Bytes of a page in which text is looked for, most pieces and bytes of it that are looked at: a few ms, lock held.
_LOOKED_AT: Final = 128 * 1024
_MOST_PIECES: Final = 512
_MOST_BYTES: Final = 8192
#: Bytes beyond ASCII, and their share of the letters, from which on a text tells (chosen on Debian's installation guide
#: in nineteen languages: whole pages and pieces of 40 to 1,000 letters, 4,064 western ones; none of these is misread).
_FEWEST: Final = 12
_SHARE: Final = 0.03
#: Confidence from which on uchardet is believed (chosen; it says .25 of what it does not know).
_CONFIDENT: Final = 0.5

_ASCII: Final = bytes(range(128))
_NO_LETTERS: Final = bytes(set(range(128)) - set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))


def guessed(body: bytes) -> str | None:
    """Return the charset that a body looks like, as Python names it; None where that is windows-1252 or unknown."""
    text = _shown(body)
    beyond = len(text.translate(None, _ASCII))
    if beyond < max(_FEWEST, _SHARE * len(text.translate(None, _NO_LETTERS))):
        return None
    found = detect(text)
    if found["encoding"] is None or found["confidence"] is None or found["confidence"] < _CONFIDENT:
        return None
    return _CHARSETS.get(found["encoding"].upper())


def _shown(body: bytes) -> bytes:
    """Return the first text of a body that is not all ASCII, some kB of it, cut where no character is.

    One blank is between two words: with line ends uchardet takes GBK for Big5.
    """
    pieces = islice(_TEXT.finditer(body, 0, _LOOKED_AT), _MOST_PIECES)
    text = b" ".join(word for piece in pieces for word in piece[1][:_MOST_BYTES].split())
    if len(text) > _MOST_BYTES:
        text = text[: max(text.rfind(b" ", 0, _MOST_BYTES), 0) or _MOST_BYTES]
    return text
