"""Text → tokens, in any language: NFKC, case folding, then words; scripts without spaces give one token a character.

    token = SINGLE MARK*  |  (WORD | MARK)+          classes: `token_classes`; IGNORABLE code points are dropped first

A Japanese chapter has containment .42 in its book by blank-separated words and .97 by characters; Korean is wrapped
and spaced freely, so that its syllables are tokens too. Marks stay with their base: a Thai vowel above, a Khmer
subscript, an accent that NFKC did not compose.

A token's hash is the first half of MurmurHash3_x64_128 of its UTF-8. Cost: linear. The compiled core and, where there
is none, `token_hashes` give the same hashes faster; this file is what they must agree with.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clusterd_crawler.token_classes import IGNORABLE, MARK, SEPARATOR, SINGLE, TABLED, WORD, class_table, pattern

Hashes = npt.NDArray[np.uint64]

#: Characters, or bytes of UTF-8, that are folded at once, and what they are parted by.
PIECE: Final = 32 * 1024
_BLANKS: Final[dict[type, re.Pattern[Any]]] = {str: re.compile("[ \n]"), bytes: re.compile(b"[ \n]")}

_ASCII_TOKEN: Final = re.compile(r"[0-9a-z_]+")
#: Patterns of whole classes, for `_compiled`.
_TOKEN: Final = f"[{pattern(SINGLE)}][{pattern(MARK)}]*|[{pattern(WORD, MARK)}]+"
_COMBINING: Final = f"[{pattern(MARK)}]"
_IGNORED: Final = f"[{pattern(IGNORABLE)}]+"

#: Marks in a row that NFKC puts in order together: Python's time for it grows with their square, hours for a page of
#: nothing else. No word of any language has so many (Unicode's stream-safe format, UAX #15, section 13, allows 30).
MARKS: Final = 64
#: Marks, and the two letters that NFKC turns into such; the grapheme joiner parts marks, and is ignorable.
_ANY_MARK: Final = f"[{pattern(MARK)}\uff9e\uff9f]"
#: Of so many in a row four stand at the places that are looked at first.
_LOOKED_AT: Final = MARKS // 4
_SOME_MARKS: Final = _ANY_MARK + "{4,}"
_MANY_MARKS: Final = f"{_ANY_MARK}{{{MARKS}}}"
_JOINER: Final = "\u034f"


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    """Compile a pattern of whole classes when it is first used: together they take 20 ms of the start of a command."""
    return re.compile(expression)


def fold(text: str) -> str:
    """Return the canonical form of a text: NFKC, then case folding, then without what is ignorable."""
    if text.isascii():
        return text.lower()
    return _compiled(_IGNORED).sub("", _normalized(text).casefold())


def composed(text: str) -> str:
    """Return the text as the compiled core takes it: it folds ASCII itself and drops what is ignorable."""
    return "".join(folded_pieces(text))


def folded_pieces(text: str | bytes) -> Iterator[str]:
    """Return the parts of what `composed` returns of a text (bytes are UTF-8).

    Long text is taken in pieces, since Python holds the interpreter's lock for 12 ms a MB. Blanks combine with nothing,
    so that text may be parted behind them.
    """
    if text.isascii():
        return iter([as_str(text)])
    return (_normalized(piece).casefold() for piece in _pieces(text))


def as_str(text: str | bytes) -> str:
    """Return a text as Python's: bytes are UTF-8, in which halves of surrogate pairs may stand."""
    return text if isinstance(text, str) else text.decode("utf-8", "surrogatepass")


def _normalized(text: str) -> str:
    """Return NFKC, where `MARKS` and more in a row are put in order so many at a time."""
    for some in _compiled(_SOME_MARKS).finditer(text[::_LOOKED_AT]):
        if _compiled(_MANY_MARKS).search(text, (some.start() - 1) * _LOOKED_AT, (some.end() + 1) * _LOOKED_AT):
            text = _compiled(_MANY_MARKS).sub(rf"\g<0>{_JOINER}", text)
            break
    return unicodedata.normalize("NFKC", text)


def _pieces(text: str | bytes) -> Iterator[str]:
    begin, blanks = 0, _BLANKS[type(text)]
    while len(text) - begin > PIECE and (blank := blanks.search(text, begin + PIECE)):
        yield as_str(text[begin : blank.end()])
        begin = blank.end()
    yield as_str(text[begin:])


def fold_block(first: int) -> bytes:
    """Return what 256 code points fold to, for the compiled core, 8 bytes each (the layout is in ``core/fold.h``).

    Only *simple* ones have an entry: they fold alike whatever stands beside them, because what they become neither
    combines nor is reordered with what precedes it. All that may is in the class MARK, or newer than the classes.
    """
    return b"".join(map(_folded_entry, range(first, first + 256)))


def _folded_entry(code: int) -> bytes:
    character = chr(code)
    becomes = unicodedata.normalize("NFKC", character)
    combines = _compiled(_COMBINING).match(becomes) and not _compiled(_IGNORED).fullmatch(becomes)
    if combines or any(map(unicodedata.combining, becomes)):
        return bytes(8)
    if code < TABLED and unicodedata.category(character)[0] in "LM" and class_table()[code] == SEPARATOR:
        return bytes(8)
    folded = becomes.casefold().encode("utf-8", "surrogatepass")
    if len(folded) > 6:
        return bytes(8)
    return bytes([len(folded), 0]) + folded.ljust(6, b"\0")


def tokens(text: str) -> list[str]:
    """Return the tokens of a text in order."""
    folded = fold(text)
    return (_ASCII_TOKEN if folded.isascii() else _compiled(_TOKEN)).findall(folded)
