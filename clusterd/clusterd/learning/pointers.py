"""Where a URL may bear the number of an anchor, as the address of a post bears the post's.

Forums write it as a parameter (``viewtopic.php?p=456``), at the end of one (``?topic=7.msg456``), or as the end of the
path: alone (``/comment/456``), or behind some letters (``/threads/a-title.7/post-456``, ``/topic,7.msg456.html``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from clusterd_crawler.rules import Condition, Key
from clusterd_crawler.urls import Url

#: Longest number that is looked up as an anchor.
DIGITS: Final = 18
#: What stands before a number that does not stand alone: letters, which begin the text or follow a mark that parts
#: them from the rest, and the ending behind it.
_NUMBERED: Final = re.compile(
    r"(?P<delimiter>\A[A-Za-z]+[-_]?|[.,:;_-][A-Za-z]+)(?P<number>[0-9]+)(?P<ending>\.[a-z]+)?\Z"
)
_ALONE: Final = re.compile(r"(?P<number>[0-9]+)(?P<ending>\.[a-z]+)?\Z")


class Pointer(NamedTuple):
    """A place of a number: a parameter, or (``name`` empty) the so manyth component from the end."""

    name: str = ""
    end: int = 0
    delimiter: str = ""
    ending: str = ""
    #: Of a number that is a whole component: the one before it, or "" where it is the first.
    folder: str = ""

    def conditions(self) -> tuple[Condition, ...]:
        """Return what a URL has to be like; the first is on the number's key (`clusterd_crawler.skipping.bearers`)."""
        key = Key(name=self.name) if self.name else Key(end=self.end)
        if self.delimiter:
            return (Condition(key, "numbered", (self.delimiter, self.ending)),)
        if self.name:
            return (Condition(key, "any"),)
        within = (Condition(Key(end=self.end + 1), "is", (self.folder,)),) if self.folder else ()
        return (Condition(key, "like", ("#" + self.ending,)), *within)


def pointers(url: Url) -> Iterator[tuple[Pointer, str]]:
    """Yield the places of a URL at which a number stands that may be an anchor's, each with its digits."""
    for name, value in url.query:
        if value and _is_short(value) and value.isascii() and value.isdigit():
            yield Pointer(name), value
        elif value and (found := _NUMBERED.search(value)) and _is_short(found["number"]):
            yield Pointer(name, 0, found["delimiter"], found["ending"] or ""), found["number"]
    end = 2 if len(url.path) > 1 and not url.path[-1] else 1
    last, folder = url.path[-end], url.path[-end - 1] if len(url.path) > end else ""
    found = _ALONE.match(last) or _NUMBERED.search(last)
    if found and _is_short(found["number"]):
        delimiter = found.groupdict().get("delimiter") or ""
        yield Pointer("", end, delimiter, found["ending"] or "", "" if delimiter else folder), found["number"]


def _is_short(digits: str) -> bool:
    return len(digits) <= DIGITS
