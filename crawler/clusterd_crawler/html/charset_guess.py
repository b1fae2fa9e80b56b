"""Which charset a page is in that says none, or a wrong one, as its bytes look (uchardet, Mozilla's detector).

Read as windows-1252 a page of another script has no words, and what resembles it in UTF-8 is not found. Of a page with
few letters beyond ASCII, such as those of windows-1252's own languages mostly are, nothing is guessed: what falls out
otherwise for one of two copies does more harm than a letter that is misread in both. Nor of one whose letters, read as
windows-1252, are those of one such language: uchardet takes some Spanish, French, Catalan and Galician pages with many
of them for Czech, Polish or Vietnamese ones (of pieces of two Debian manuals 4 and 2 % of the Spanish and French ones).
"""

from __future__ import annotations

import codecs
import re
from itertools import islice
from typing import Final

from cchardet import detect

#: Charset as uchardet names it → as Python names it, or a charset of Python's that holds it whole. What else it names
#: pages are not in. Latvian and Lithuanian pages are in windows-1257, Romanian ones in windows-1250, whose letters are
#: the same bytes as in what it names.
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
    "ISO-8859-13": "cp1257",
    "ISO-8859-16": "cp1250",
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
#: in nineteen languages: whole pages and pieces of 40 to 1,000 letters).
_FEWEST: Final = 12
_SHARE: Final = 0.03
#: Confidence from which on uchardet is believed (chosen: below it is wrong as often as right).
_CONFIDENT: Final = 0.6

_ASCII: Final = bytes(range(128))
#: What pages of windows-1252 have beside letters (but for ¹ and ¾, which are letters of Slovene ones); the letters of
#: its languages, each line of one or of a few.
_SIGNS: Final = "\xa0¡¿ªº°²³±½¼µ×÷§´·«»£€¢¥©®™‚„…‘’“”‹›•–—".encode("cp1252")
_WESTERN: Final = tuple(
    (letters + letters.upper().replace("SS", "")).encode("cp1252")
    for letters in (
        "àâæçèéêëîïôùûüœÿ",  # French
        "áàçèéíïñòóúü",  # Spanish, Galician, Catalan, Italian but for its ì and ù, Irish
        "àèéìíòóùú",  # Italian, Scottish Gaelic
        "àáâãçéêíóôú",  # Portuguese but for its õ, as which Hungarian ő is read
        "äàåéöüß",  # German, Swedish, Finnish
        "áäçèéêëíïóöú",  # Dutch, Albanian
        "åæøàéèêòóô",  # Danish, Norwegian
        "áæéðíóöøúýþ",  # Icelandic, Faroese
    )
)
#: Share of other letters beyond which a text is of none of these (chosen: of Hungarian letters an eighth are others).
_STRANGE: Final = 1 / 32
#: A letter that Ukrainian has and Russian has not, within a word of KOI8-U: in KOI8-R these are lines of tables.
_UKRAINIAN: Final = re.compile(rb"[\xc0-\xff][\xa4\xa6\xa7\xad][\xc0-\xff]")
_KANA: Final = re.compile("[ぁ-ヶ]")
_NO_LETTERS: Final = bytes(set(range(128)) - set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))


def guessed(body: bytes) -> str | None:
    """Return the charset that a body looks like, as Python names it; None where that is windows-1252 or unknown."""
    text = _shown(body)
    beyond = len(text.translate(None, _ASCII))
    if beyond < max(_FEWEST, _SHARE * len(text.translate(None, _NO_LETTERS))) or _is_western(text):
        return None
    found = detect(text)
    if found["encoding"] is None or found["confidence"] is None or found["confidence"] < _CONFIDENT:
        return None
    charset = _CHARSETS.get(found["encoding"].upper())
    if charset == "koi8-r" and _UKRAINIAN.search(text):
        return "koi8-u"
    return "euc_jp" if charset == "big5hkscs" and _is_kana(text) else charset


def _is_western(text: bytes) -> bool:
    """Whether the letters of a text beyond ASCII, read as windows-1252, are those of one of its languages."""
    letters = text.translate(None, _ASCII + _SIGNS)
    strange = min(len(letters.translate(None, known)) for known in _WESTERN)
    return strange <= _STRANGE * len(letters)


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
    text = b" ".join(word for piece in pieces for word in piece[1][:_MOST_BYTES].split())
    if len(text) > _MOST_BYTES:
        text = text[: max(text.rfind(b" ", 0, _MOST_BYTES), 0) or _MOST_BYTES]
    return text
