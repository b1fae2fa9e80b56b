"""What a reader yields: a page as it lies in a file, or what is wrong with a record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from clusterd_crawler.clock import ms_of
from clusterd_crawler.errors import ClusterdError
from clusterd_crawler.message import YEAR_1, YEAR_10000


@dataclass(frozen=True, slots=True)
class RawPage:
    """A page before it is sketched. One of ``body`` and ``text`` is set."""

    url: str
    body: bytes | None = None
    text: str | None = None
    content_type: str = "text/html"
    #: Unix milliseconds; None where the file does not say.
    fetched_at: int | None = None
    sweep: str = ""
    status: int = 200
    #: Where it was read, for messages: ``pages.jsonl:17``.
    where: str = ""
    #: What its row calls it, if anything.
    id: str | int | None = None
    #: Whether the file has only its beginning, and says so.
    truncated: bool = False
    #: The identity of all of it, where it was so long that only its beginning is kept.
    whole: int | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """A record that could not be read."""

    where: str
    reason: str
    #: Whether what follows it in its file is lost with it.
    ends: bool = False


class BrokenRecord(ClusterdError):
    """What a reader raises inside itself for one record; it leaves as `Broken`."""


def brings_page(status: int) -> bool:
    """Whether an answer with an HTTP status is a whole page, as crawls take it: no redirect, no error, no part."""
    return 200 <= status < 300 and status != 206


def milliseconds(iso: str, field: str = "fetched_at") -> int:
    """Return an ISO 8601 time (UTC where it names no zone) as Unix milliseconds; `BrokenRecord` where it is none.

    ``field``: what the file calls it, for the message.
    """
    try:
        at = ms_of(datetime.fromisoformat(iso))
    except (ValueError, TypeError):
        at = YEAR_10000
    if not YEAR_1 <= at < YEAR_10000:  # a zone may lead beyond the years that there are
        raise BrokenRecord(f"{field} is {iso!r}; it takes an ISO 8601 time such as 2026-01-31T12:00:00Z")
    return at
