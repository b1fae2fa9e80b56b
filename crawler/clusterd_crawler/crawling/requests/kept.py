"""Requests that a rule kept out, to be queued again when the rule is withdrawn. Bounded memory, then disk.

The latest `MEMORY` requests stay as they are; older ones are written to one file a rule, each as a pickled
``Request.to_dict`` behind its length (what Scrapy's own disk queues do), up to a limit of bytes. What cannot be
written stays in memory, such as a request whose callback is no method of the spider; beyond `UNWRITTEN` the oldest of
these are forgotten, and counted (``clusterd/forgotten``). The files go with the crawl; where it may be resumed,
`paused` keeps what was in them. They lie in a folder that the crawl holds locked: one that a killed crawl has left is
deleted by the next crawl that makes its own.
"""

from __future__ import annotations

import fcntl
import logging
import os
import pickle
import shutil
import struct
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

from scrapy import Request, Spider
from scrapy.utils.request import request_from_dict

logger = logging.getLogger(__name__)

#: What the folders begin with.
PREFIX: Final = "kept-"
#: Requests in memory: about 1 kB each. With what Scrapy keeps of it (headers, parsed URL, weak references) one is
#: 13 objects to the garbage collector, and the half that goes at once when it is written takes the loop 5 µs each.
MEMORY: Final = 1_000
#: Requests in memory that cannot be written.
UNWRITTEN: Final = 15_000
#: Requests that are read back together (about 1.5 kB each): a rule may have kept a million out.
PORTION: Final = 500
OVERFLOWED: Final = (
    "The spool takes no more skipped requests (it is full: see CLUSTERD_SPOOL_BYTES; or their callback is no method "
    "of the spider), and %d are in memory: the oldest are forgotten, and not fetched even if their rule is withdrawn"
)
_LENGTH: Final = struct.Struct("<IB")


@dataclass(frozen=True, slots=True)
class KeptOut:
    """A request with the rule that kept it out, and whether the duplicate filter had let it pass before."""

    rule: str
    request: Request
    filtered: bool


class Kept:
    """`add`, `hold` and `take` are for the loop's thread; `spill` and `read` touch the disk and are not."""

    def __init__(
        self, spider: Spider, folder: Path, disk_bytes: int, memory: int = MEMORY, unwritten: int = UNWRITTEN
    ) -> None:
        self._spider = spider
        self._folder = folder
        self._own: Path | None = None
        #: What holds the folder locked; -1: nothing.
        self._lock = -1
        self._disk_bytes = disk_bytes
        self._memory = memory
        self._held: deque[KeptOut] = deque()
        self._unwritten: deque[KeptOut] = deque()
        self._most_unwritten = unwritten
        self._spilled: dict[str, int] = {}
        #: Held while a file is written or read.
        self._disk = threading.Lock()
        #: Requests that could not be held or written, or not be read back.
        self.forgotten = 0
        #: Whether it was said that there is no room left.
        self._overflowed = False

    def __len__(self) -> int:
        return len(self._held) + len(self._unwritten) + sum(self._spilled.values())

    def by_rule(self) -> Counter[str]:
        """Return how many requests each rule keeps out, of those that keep something out."""
        counted = Counter(kept.rule for kept in (*self._held, *self._unwritten))
        counted.update(dict(self._spilled))  # of a copy, since `spill` may be at work
        return counted

    def add(self, kept: KeptOut) -> list[KeptOut]:
        """Hold a request; return the older half, to be given to `spill`, where there are too many."""
        self._held.append(kept)
        if len(self._held) <= self._memory:
            return []
        return [self._held.popleft() for _ in range(len(self._held) // 2)]

    def take(self, rules: Collection[str]) -> list[KeptOut]:
        """Return what these rules kept out and hold it no longer."""
        taken = [kept for kept in (*self._unwritten, *self._held) if kept.rule in rules]
        if taken:
            self._held = deque(kept for kept in self._held if kept.rule not in rules)
            self._unwritten = deque(kept for kept in self._unwritten if kept.rule not in rules)
        return taken

    def has_spilled(self, rules: Collection[str]) -> bool:
        """Whether `read` would find something."""
        return any(rule in self._spilled for rule in rules)

    def hold(self, unwritten: Iterable[KeptOut]) -> None:
        """Hold requests that `spill` could not write."""
        self._unwritten += unwritten
        if len(self._unwritten) > self._most_unwritten and not self._overflowed:
            self._overflowed = True
            logger.warning(OVERFLOWED, self._most_unwritten)
        while len(self._unwritten) > self._most_unwritten:
            self._unwritten.popleft()
            self.forgotten += 1

    def spill(self, old: list[KeptOut]) -> list[KeptOut]:
        """Write requests to the disk; return those that cannot be written, to be given to `hold`."""
        unwritten = []
        with self._disk:
            for kept in old:
                packed = pack(kept, self._spider)
                try:
                    if packed is None or len(packed) > self._disk_bytes:
                        raise OSError("it cannot be written, or the limit is reached")
                    _append(self._path(kept.rule), packed)
                except OSError:
                    unwritten.append(kept)
                    continue
                self._disk_bytes -= len(packed)
                self._spilled[kept.rule] = self._spilled.get(kept.rule, 0) + 1
        return unwritten

    def read(self, rules: Collection[str]) -> Iterator[list[KeptOut]]:
        """Return what these rules kept out and `spill` wrote; each portion of it is read when it is asked for.

        What is kept out meanwhile is not in it, and has the whole room on the disk: nothing is forgotten for it.
        """
        with self._disk:
            spilled = [(rule, self._spilled.pop(rule)) for rule in rules if rule in self._spilled]
            return self._portions([(rule, count, self._aside(self._path(rule))) for rule, count in spilled])

    def _aside(self, path: Path) -> Path:
        """Rename a file, so that what is written from now on goes to another; return its name."""
        aside = path.with_name(f"{path.name}-{uuid4().hex}")
        with suppress(OSError):  # it is gone, say, which shows when it is read
            self._disk_bytes += path.stat().st_size
            return path.rename(aside)
        return path

    def _portions(self, spilled: list[tuple[str, int, Path]]) -> Iterator[list[KeptOut]]:
        for rule, count, path in spilled:
            written = self._written(rule, count, path)
            while portion := list(islice(written, PORTION)):
                yield portion
            with suppress(OSError):  # lest what was read be lost with it
                path.unlink()

    def write(self, out: BinaryIO) -> None:
        """Write all that is kept, wherever it lies, as records that `unpack` reads. At the end of the crawl.

        What lies on the disk is copied as it is: to read 190,000 requests and write them again takes 9 s of CPU. Raises
        `OSError` where ``out`` takes no more: what would be read from it then ends within a record.
        """
        for kept in (*self._unwritten, *self._held):
            packed = pack(kept, self._spider)
            if packed is None:
                self.forgotten += 1
            else:
                out.write(packed)
        with self._disk:
            for rule, count in self._spilled.items():
                try:
                    file = self._path(rule).open("rb")
                except OSError as error:
                    self._miss(rule, count, error)
                    continue
                with file:
                    shutil.copyfileobj(file, out)

    def close(self) -> None:
        """Delete the files. Nothing is written after that. May be repeated."""
        if self._own is not None and self._lock >= 0:
            shutil.rmtree(self._own, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def _path(self, rule: str) -> Path:
        if self._own is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            _delete_left(self._folder)
            self._own, self._lock = _own_folder(self._folder)
        return self._own / f"{rule.replace('/', '_')}.requests"

    def _written(self, rule: str, count: int, path: Path) -> Iterator[KeptOut]:
        """Yield the requests of a file as far as they can be read; of so many the others are forgotten."""
        try:
            with path.open("rb") as file:
                for one in unpack(file, rule, self._spider):
                    if one is not None:
                        count -= 1
                        yield one
        except OSError as error:
            self._miss(rule, count, error)
        else:
            self.forgotten += count

    def _miss(self, rule: str, count: int, error: OSError) -> None:
        """Say that so many requests cannot be read: somebody has emptied the folder, for one."""
        logger.warning("What rule %s has kept out cannot be read back: %s", rule, error)
        self.forgotten += count


def _own_folder(folder: Path) -> tuple[Path, int]:
    """Make a folder; return it, and what holds it locked as long as this process lives."""
    while True:
        own = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
        with suppress(FileNotFoundError):
            lock = os.open(own, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if own.exists():
                return own, lock
            os.close(lock)  # before it was locked another crawl took it for one that was left


def _delete_left(folder: Path) -> None:
    """Delete the folders of crawls that are gone."""
    for left in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)


def pack(kept: KeptOut, spider: Spider) -> bytes | None:
    """Return a request as a record; None where it cannot be written."""
    try:
        packed = pickle.dumps(kept.request.to_dict(spider=spider))
    except (ValueError, TypeError, AttributeError, RecursionError, pickle.PicklingError):
        return None
    return _LENGTH.pack(len(packed), kept.filtered) + packed


def unpack(file: BinaryIO, rule: str, spider: Spider) -> Iterator[KeptOut | None]:
    """Yield the requests of the records that follow in a file; None for one that the spider does not know any more."""
    while len(head := file.read(_LENGTH.size)) == _LENGTH.size:
        size, filtered = _LENGTH.unpack(head)
        packed = file.read(size)
        try:
            yield KeptOut(rule, request_from_dict(pickle.loads(packed), spider=spider), bool(filtered))
        except Exception as error:  # whatever the classes in it raise
            logger.debug("A request that was kept out cannot be read: %s", error)
            yield None


def _append(path: Path, packed: bytes) -> None:
    """Write a record; where the disk is full, what was half-written is cut off, so that the next one can be read."""
    whole = path.stat().st_size if path.exists() else 0
    try:
        with path.open("ab", buffering=0) as file:
            if file.write(packed) < len(packed):
                raise OSError("the disk is full")
    except OSError:
        with suppress(OSError):
            os.truncate(path, whole)
        raise
