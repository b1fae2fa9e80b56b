"""A page that a crawl knows, and how it is kept: so that Python's garbage collector need not look at it.

Each time it collects, the collector visits every object that may be part of a reference cycle: 30 ms for 100,000 pages
that are objects of a class, in which the crawl's loop stands still. It stops tracking plain tuples that hold nothing
but atoms and such tuples (named tuples it goes on tracking). So a page is kept as a plain tuple, its names and its
purpose as well, and is made a `KnownPage` while it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.sketch import Name

#: A page's identity that is not known: it takes no part in telling whether the pages of a key agree.
UNKNOWN: Final = 0
#: Purposes of which one tuple is kept for all pages.
PURPOSES: Final = 4096

#: A tuple, not of a class of its own, of atoms and such tuples.
Plain = tuple[Any, ...]


class KnownPage(NamedTuple):
    """A fetched page that may justify a skip: `plain` is kept of it, and ``KnownPage(*plain)`` is the page again."""

    url: str
    at: int
    content: int = UNKNOWN
    #: See `plain_names`.
    names: Plain = ()
    #: Another crawl fetched it; this one has not.
    earlier: bool = False
    #: Ids of the rules applied to its URL, in order.
    applied: tuple[str, ...] = ()
    #: See `plain_purpose`.
    served: Plain = tuple(ANYONE)
    #: Others have told of it; this crawler has not fetched it, or did so before it was resumed.
    told: bool = False

    @property
    def purpose(self) -> Purpose:
        """Return what it was fetched for."""
        return Purpose(*self.served)

    def serves(self, purpose: Purpose) -> bool:
        """Whether it has served a purpose."""
        return self.served == purpose or self.purpose.serves(purpose)

    def plain(self) -> Plain:
        """Return what is kept of it."""
        return self[:]

    def under(self, applied: tuple[str, ...]) -> KnownPage:
        """Return the page with the rules applied to its URL, or to one that it stands for."""
        return self._replace(applied=applied)


def plain_names(names: Iterable[Name]) -> Plain:
    """Return names as they are kept: kind and hash of each in turn."""
    return tuple(part for name in names for part in (name.kind, name.hash))


@lru_cache(PURPOSES)
def plain_purpose(purpose: Purpose) -> Plain:
    """Return a purpose as it is kept."""
    return tuple(purpose)


def names_of(plain: Plain) -> list[Name]:
    """Return the names that are kept so."""
    return [Name(*pair) for pair in zip(plain[::2], plain[1::2], strict=True)]
