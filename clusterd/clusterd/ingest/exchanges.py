"""How the answers in WARC files were asked for. A page is what GET brings of its URL, to crawls as to archives.

What POST, HEAD or OPTIONS bring under the same URL is something else, often nothing: taken for a later version, it
would stand in the page's place. That an answer was asked for so is said by the ``request`` record beside it alone:
before it (Wget, Common Crawl) or behind (warcprox, pywb, Heritrix); one of the two names the other
(``WARC-Concurrent-To``). So what a record holds waits for the next one, beyond metadata that stands between the two. Of
an answer that has no request beside it nothing else is known than GET.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

#: How a request begins that is none of GET.
_OTHER_METHOD: Final = re.compile(rb"(?!GET )[A-Z]+ ")
#: Bytes in which a method ends.
_METHOD: Final = 32

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Taken(Generic[T]):
    """What was taken of a record."""

    record: str
    #: The records of the same exchange that it names.
    beside: tuple[str, ...]
    #: Whether it is a request by another method than GET.
    other_method: bool
    holds: Iterable[T]

    def spoils(self, other: Taken[T]) -> bool:
        """Whether it is the request of another record that is no page for it."""
        return self.other_method and self.is_beside(other)

    def is_beside(self, other: Taken[T]) -> bool:
        """Whether one of the two names the other."""
        return self.record in other.beside or other.record in self.beside

    def describes(self, other: Taken[T]) -> bool:
        """Whether it only says more of another record: its metadata, or the GET that it was asked for by."""
        return not self.holds and not self.other_method and self.is_beside(other)


def asks_otherwise(record: Any) -> bool:
    """Whether a record, of which nothing was read so far, is a request by another method than GET."""
    return record.rec_type == "request" and bool(_OTHER_METHOD.match(record.raw_stream.read(_METHOD)))


def taken(record: Any, other_method: bool, holds: Iterable[T]) -> Taken[T]:
    """Return what was taken of a record, along with what it says of those beside it."""
    beside = tuple(value for name, value in record.rec_headers.headers if name.lower() == "warc-concurrent-to")
    return Taken(record.rec_headers.get_header("WARC-Record-ID") or "", beside, other_method, holds)


class Exchanges(Generic[T]):
    """Passes on what one record after the other holds, but for what was not asked for by GET."""

    def __init__(self) -> None:
        self._last: Taken[T] | None = None

    def after(self, new: Taken[T]) -> Iterable[T]:
        """Return what the record that waited holds, if it is to be passed on: this one waits now."""
        last = self._last
        if last is not None and new.describes(last):
            return ()
        self._last = new
        if last is None:
            return ()
        if last.spoils(new):
            self._last = Taken(new.record, new.beside, new.other_method, ())
        return () if new.spoils(last) else last.holds

    def end(self) -> Iterable[T]:
        """Return what the last record holds."""
        return () if self._last is None else self._last.holds
