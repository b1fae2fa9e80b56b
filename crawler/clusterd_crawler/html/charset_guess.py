"""Which charset a page is in that says none, or a wrong one, as its bytes look (uchardet, Mozilla's detector).

Only charsets of other scripts than Latin are guessed: read as windows-1252 such a page has no words, and what resembles
it in UTF-8 is not found. Latin ones differ from windows-1252 by a few letters, and a guess that falls out otherwise for
one of two copies does more harm than these (of short Polish pages with other navigation a third would).
"""

from __future__ import annotations

import codecs
import re
from itertools import islice
from typing import Final

from cchardet import detect

#: Charset as uchardet names it → as Python names it, or a charset of Python's that holds it whole. The letters of
#: KOI8-R are the same in KOI8-U, which uchardet does not know.
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
    "KOI8-R": "koi8-u",
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
#: A character of four bytes in GB18030, for which uchardet takes it for Big5: blanks that do not break are such.
_FOUR_BYTES: Final = re.compile(rb"[\x81-\xfe][0-9][\x81-\xfe][0-9]")
#: Bytes of a page in which text is looked for, most pieces and bytes of it that are looked at: a few ms, lock held.
_LOOKED_AT: Final = 128 * 1024
_MOST_PIECES: Final = 512
_MOST_BYTES: Final = 8192
#: Bytes that are letters beyond ASCII in windows-1252 as well, and their share of all letters, from which on a text is
#: of another script (chosen; fifteen in a hundred of Czech, five of French, none of a table of measures).
_FEWEST: Final = 12
_SHARE: Final = 0.1
#: Confidence from which on uchardet is believed (chosen: below it is wrong as often as right).
_CONFIDENT: Final = 0.6

_ASCII: Final = bytes(range(128))
_SIGNS: Final = "\xa0¡¿ªº°¹²³±½¼¾µ×÷§´·«»£€¢¥©®™‚„…‘’“”‹›•–—".encode("cp1252")
_KANA: Final = re.compile("[ぁ-ヶ]")
_NO_LETTERS: Final = bytes(set(range(128)) - set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))


def guessed(body: bytes) -> str | None:
    """Return the charset that a body looks like, as Python names it; None where that is windows-1252 or unknown."""
    text = _shown(body)
    beyond = len(text.translate(None, _ASCII + _SIGNS))
    if beyond < max(_FEWEST, _SHARE * len(text.translate(None, _NO_LETTERS))):
        return None
    found = detect(text)
    if found["encoding"] is None or found["confidence"] is None or found["confidence"] < _CONFIDENT:
        return None
    charset = _CHARSETS.get(found["encoding"].upper())
    return "euc_jp" if charset == "big5hkscs" and _is_kana(text) else charset


def _is_kana(text: bytes) -> bool:
    """Whether a text is EUC-JP, a fourth of it kana: uchardet takes titles for Big5, which mostly fails as EUC-JP."""
    try:
        japanese = codecs.getincrementaldecoder("euc_jp")().decode(text)  # it may end within a character
    except UnicodeDecodeError:
        return False
    return 4 * len(_KANA.findall(japanese)) >= sum(not one.isascii() for one in japanese)


def _shown(body: bytes) -> bytes:
    """Return the first text of a body that is not all ASCII, some kB of it, cut where no character is.

    One blank is between two words: with line ends uchardet takes GBK for Big5.
    """
    pieces = islice(_TEXT.finditer(body, 0, _LOOKED_AT), _MOST_PIECES)
    text = b" ".join(word for piece in pieces for word in _FOUR_BYTES.sub(b" ", piece[1][:_MOST_BYTES]).split())
    if len(text) > _MOST_BYTES:
        text = text[: max(text.rfind(b" ", 0, _MOST_BYTES), 0) or _MOST_BYTES]
    return text
