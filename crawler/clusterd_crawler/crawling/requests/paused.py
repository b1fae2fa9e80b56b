"""What rules kept out before a crawl was paused (``JOBDIR``): decided anew when the crawl goes on.

Meanwhile a rule may have been withdrawn or a skip undone, and nobody else would ask for these requests again: the pages
that link to them have been read. They lie in one file of the JOBDIR, as records of `kept`, and stay in it until the
crawl ends, so that a crash loses nothing of what is kept out still, and costs some fetches. What was queued again is
lost as far as Scrapy's own queue is, which no crash leaves whole: the duplicate filter knows it by then. A request that
can be written no more, or read, because the spider has changed meanwhile, is forgotten and counted.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from scrapy import Request, Spider

from clusterd_crawler.crawling.older_scrapy import run_in_thread, sleep
from clusterd_crawler.crawling.requests.kept import Kept, KeptOut, unpack

logger = logging.getLogger(__name__)

#: File of a JOBDIR that holds the requests.
FILE: Final = "clusterd-kept"
#: Requests that are decided about together.
PORTION: Final = 500
#: Seconds between two looks whether the daemon's messages can be read.
LOOK_SECONDS: Final = 0.5


class Paused:
    """`resume` is for the loop's thread; `keep` touches the disk and is not."""

    def __init__(self, spider: Spider, job: str | None) -> None:
        self._spider = spider
        self._path = Path(job) / FILE if job else None
        #: Whether there are requests to be decided about, and whether that is being done.
        self.there = self._path is not None and self._path.exists()
        self.busy = False
        #: Bytes of the file that have been decided about.
        self._done = 0
        self._lock = threading.Lock()
        self._ended = False
        #: Requests that could not be read.
        self.forgotten = 0

    async def resume(
        self,
        connected: Callable[[], bool],
        meet: Callable[[Request], Awaitable[None]],
        decide: Callable[[list[KeptOut]], Awaitable[None]],
    ) -> None:
        """Have it decided anew about what was kept out, once the daemon's messages can be read."""
        while not (connected() or self._ended):
            await sleep(LOOK_SECONDS)
        self.busy = True
        try:
            while self.there and not self._ended:
                some, end = await run_in_thread(self._read)
                if self._ended:  # what was read stays in the file, as what follows does
                    break
                for kept in some:
                    await meet(kept.request)
                await decide(some)
                self.there = end > self._done
                self._done = end
        finally:
            self.busy = False

    def stop(self) -> None:
        """Have nothing more decided: at the end of the crawl it would only be moved from one file to another."""
        self._ended = True

    def keep(self, kept: Kept) -> None:
        """Write what is kept out now, behind it what has not been decided about. At the end of the crawl."""
        with self._lock:
            self._ended = True
            if self._path is None:
                return
            new = self._path.with_suffix(".new")
            try:
                new.parent.mkdir(parents=True, exist_ok=True)
                self._write(new, kept)
                if new.stat().st_size:
                    os.replace(new, self._path)
                else:
                    new.unlink()
                    self._path.unlink(missing_ok=True)
            except OSError as error:
                logger.warning("What rules have kept out cannot be written for a resume: %s", error)
                with suppress(OSError):  # a disk that is full has no room for half of it
                    new.unlink(missing_ok=True)

    def _write(self, new: Path, kept: Kept) -> None:
        with new.open("wb") as out:
            kept.write(out)
            if self.there and self._path is not None and self._path.exists():  # else somebody has deleted it
                with self._path.open("rb") as old:
                    old.seek(self._done)
                    shutil.copyfileobj(old, out)

    def _read(self) -> tuple[list[KeptOut], int]:
        """Return the next requests, and where in the file they end."""
        with self._lock:
            if self._ended or self._path is None:
                return [], self._done
            try:
                with self._path.open("rb") as file:
                    file.seek(self._done)
                    read = list(islice(unpack(file, "", self._spider), PORTION))
                    found = [one for one in read if one is not None]
                    self.forgotten += len(read) - len(found)
                    return found, file.tell()
            except OSError as error:
                logger.warning("What rules kept out before the pause cannot be read now, and stays there: %s", error)
                self._ended = True
                return [], self._done
