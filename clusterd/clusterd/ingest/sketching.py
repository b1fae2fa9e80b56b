"""Pages as they lie in a file → sketches as a crawl would have sent them; redirects and files → what it tells of them.

A page that does not say when it was fetched was fetched on the day that its sweep's label names, if it names one, else
now. Of two rows of one URL the later one is the page's later version: no time is given twice to a URL in one run.
(Under a label that names a day the first row gets the day itself, so that to bring a file in again changes nothing.)

A date in the future is kept, and counted: any other would change the order of versions, and make one more of them each
time that the file is brought in again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from zlib import crc32

from clusterd_crawler.clock import ms_of, now_ms
from clusterd_crawler.errors import ClusterdError, WrongInput
from clusterd_crawler.message import LONGEST_URL, YEAR_1, YEAR_10000, File, Redirect
from clusterd_crawler.page import by_whole, content_identity
from clusterd_crawler.sketch import Profile, Sketch
from clusterd_crawler.text import NotText, is_markup
from clusterd_crawler.urls import canonical, is_text

from clusterd.ingest.beside import Beside
from clusterd.ingest.raw import Broken, RawPage, brings_page
from clusterd.ingest.reading import Item
from clusterd.ingest.sketchers import Made, Task, sketch_all

#: Slots in which the last time given to a URL is remembered, by hash: two URLs in one slot only move a millisecond on.
SLOTS: Final = 1 << 20
DAY_MS: Final = 86_400_000


class Clock:
    """Gives times of fetch to pages that have none; never the same one twice to a URL.

    Of a day's pages a slot remembers one, so that none moves on for another's sake: of two rows of one URL that lie
    hundreds of thousands of rows apart the later one may get the day itself again.
    """

    def __init__(self) -> None:
        self._given = array("q", bytes(8 * SLOTS))
        #: URL and day, hashed to 32 bits, above 32 bits of how often they came.
        self._rows = array("Q", bytes(8 * SLOTS))

    def stamp(self, url: str, sweep: str) -> int:
        """Return the day that the sweep's label names, else now, in Unix milliseconds."""
        day = day_of(sweep)
        if day is not None:
            return day + self._rows_before(f"{sweep}\n{url}")
        slot = crc32(url.encode("utf-8", "replace")) % SLOTS
        at = max(now_ms(), self._given[slot] + 1)
        self._given[slot] = at
        return at

    def _rows_before(self, row: str) -> int:
        """Return how many such rows came before."""
        tag = crc32(row.encode("utf-8", "replace"))
        known, rows = divmod(self._rows[tag % SLOTS], 1 << 32)
        rows = rows if known == tag else 0
        self._rows[tag % SLOTS] = (tag << 32) + rows + 1
        return rows


def day_of(label: str) -> int | None:
    """Return the time that a label names (2026-01-31, 2026-01-31T12:00:00Z), in Unix milliseconds, or None."""
    if len(label) < len("2026-01-31") or label[4:5] != "-":
        return None
    try:
        at = ms_of(datetime.fromisoformat(label))
    except ValueError:
        return None
    return at if YEAR_1 <= at < YEAR_10000 else None  # a zone may lead beyond the years that messages carry


@dataclass
class Sketching:
    """One run of ``ingest``: makes sketches of pages and counts them."""

    profile: Profile
    sweep: str = ""
    crawl: str = ""
    max_page_bytes: int = 10_000_000
    #: Called with each record that is rejected.
    rejecting: Callable[[Broken], None] = lambda broken: None
    #: Documents may have an id in the place of a URL (collections that are compared, not ingested).
    nameless: bool = False
    #: Processes that sketch, where there are many pages.
    jobs: int = 1
    pages: int = 0
    sketched: int = 0
    rejected: int = 0
    #: Pages dated more than a day ahead of this machine's clock: no fetch before that date supersedes them.
    ahead: int = 0
    #: Pages longer than `max_page_bytes`, of which the beginning counts.
    shortened: int = 0
    #: Pages of which the file has only the beginning.
    truncated: int = 0
    #: Messages about what is no page.
    told: int = 0
    #: Makes these.
    beside: Beside = field(default_factory=Beside)
    _clock: Clock = field(default_factory=Clock)

    def sketches(self, items: Iterable[Item]) -> Iterator[Sketch]:
        """Yield the sketch of each page; what is broken is reported and passed over."""
        return (sketch for _, _, sketch in self.named(items))

    def messages(self, items: Iterable[Item]) -> Iterator[Sketch | File | Redirect]:
        """Yield the sketch of each page, and what rules are to hear of the rest; what is broken is reported as well."""
        for _, item, made in self._made(items):
            for message in self._told_of(item, made):
                if isinstance(message, Sketch):
                    yield message
                    continue
                self.told += 1
                at = message.at or self._clock.stamp(message.url, self.sweep)
                yield replace(message, at=at, crawl=self.crawl)

    def named(self, items: Iterable[Item]) -> Iterator[tuple[int, RawPage, Sketch]]:
        """Yield which of the items each page is (the first is 1), the page, and its sketch; some may be read ahead."""
        for number, item, made in self._made(items):
            if isinstance(made, Sketch) and isinstance(item, RawPage):
                yield number, item, made

    def _made(self, items: Iterable[Item]) -> Iterator[tuple[int, Item, Made]]:
        """Yield which of the items each is, the item, and what has become of it; count, and report what is broken."""
        for (number, item), made in sketch_all(self._tasks(items), self.jobs):
            if isinstance(made, str) and isinstance(item, (RawPage, Broken)):
                self.rejected += 1
                self.rejecting(item if isinstance(item, Broken) else Broken(item.where, made))
            if isinstance(made, Sketch) and isinstance(item, RawPage):
                self.sketched += 1
                yield number, item, self._of_beginning(item, made)
            else:
                yield number, item, made

    def _of_beginning(self, page: RawPage, sketch: Sketch) -> Sketch:
        """Let rules go by the whole of a page, as in a crawl, and by none of which only the beginning is there."""
        sketch = sketch if page.whole is None else by_whole(sketch, page.whole)
        return replace(sketch, soft_error=True) if page.truncated else sketch

    def _shortened(self, page: Item) -> Item:
        """Return as much of a page as is sketched: many wait at a time, and each may have hundreds of megabytes."""
        if not isinstance(page, RawPage):
            return page
        body = None if page.body is None else page.body[: self.max_page_bytes]
        text = None if page.text is None else beginning(page.text, self.max_page_bytes)
        if body == page.body and text == page.text:
            return page
        whole = page.body or (page.text or "").encode("utf-8", "surrogatepass")
        return replace(page, body=body, text=text, whole=content_identity(whole))

    def _told_of(self, item: Item, made: Made) -> Iterator[Sketch | File | Redirect]:
        """Yield the messages about an item and what has become of it."""
        if isinstance(made, (File, Redirect)):
            yield made
        elif isinstance(made, str):
            if isinstance(item, RawPage) and (file := self._file(item)):
                yield file
        elif isinstance(item, RawPage) and (leads := self.beside.refresh(item, made.fetched_at + 1)):
            yield from (replace(made, soft_error=True), leads)
        else:
            yield made

    def _file(self, page: RawPage) -> File | None:
        """Return what is told of a page that was rejected as its bytes are no text; None where that was not the reason.

        As what scripts send with the header of a page is, or what has none.
        """
        if page.body is None or page.truncated or not (brings_page(page.status) and self.beside.may_tell_of(page.url)):
            return None
        try:
            is_markup(page.content_type, page.body)
        except NotText:
            file = self.beside.file(page.url, page.body, page.fetched_at or 0)
            return file if page.whole is None else replace(file, content=page.whole)
        return None

    def _tasks(self, items: Iterable[Item]) -> Iterator[tuple[tuple[int, Item], Task | Made]]:
        for item in map(self._shortened, items):
            if isinstance(item, (File, Redirect)):
                yield (self.pages, item), item
                continue
            self.pages += 1
            try:
                task: Task | Made = item.reason if isinstance(item, Broken) else self._task(item)
            except ClusterdError as error:
                task = str(error)
            yield (self.pages, item), task

    def _task(self, page: RawPage) -> Task:
        if self.nameless and not page.url and page.id is not None:
            page = replace(page, url=str(page.id))
        elif not page.url:
            raise WrongInput("id and url are missing" if self.nameless else "url is missing")
        elif not (is_text(page.url) and is_text(page.sweep or self.sweep)):
            raise WrongInput("the url or the sweep holds bytes or code points that are no text")
        elif not self.nameless:
            if len(page.url) > LONGEST_URL:
                raise WrongInput(f"the url has {len(page.url)} characters; {LONGEST_URL} are the most")
            canonical(page.url)  # refuses what is no absolute URL
            page = replace(page, url=_without_anchor(page.url))
        if not brings_page(page.status):
            raise WrongInput(f"{page.url} was answered with status {page.status}: no page")
        sweep = page.sweep or self.sweep
        at = page.fetched_at if page.fetched_at is not None else self._clock.stamp(page.url, sweep)
        self.ahead += at > now_ms() + DAY_MS
        self.shortened += page.whole is not None
        self.truncated += page.truncated
        kind, status = page.content_type, page.status
        return Task(page.url, self.profile, at, page.body, page.text, kind, status, self.crawl, sweep)


def _without_anchor(url: str) -> str:
    """Return a URL without a place in its page, as crawls leave it out; ``#!…`` and ``#/…`` name pages of a script's.

    >>> _without_anchor("http://h.example/a#top"), _without_anchor("http://h.example/#!/a")
    ('http://h.example/a', 'http://h.example/#!/a')
    """
    page, _, fragment = url.partition("#")
    return url if fragment.startswith(("!", "/")) else page


def beginning(text: str, most: int) -> str:
    """Return as much of a text as so many bytes of UTF-8 hold: all of it, mostly.

    >>> beginning("wörter", 7), beginning("wörter", 6), beginning("words", 3)
    ('wörter', 'wörte', 'wor')
    """
    if 4 * len(text) <= most:
        return text
    data = text[:most].encode("utf-8", "surrogatepass")
    return text if len(data) <= most and len(text) <= most else data[:most].decode("utf-8", "ignore")
