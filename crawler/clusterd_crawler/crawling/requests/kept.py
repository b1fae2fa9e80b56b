"""Requests that a rule kept out, to be queued again when the rule is withdrawn. Bounded memory, then disk.

The latest `MEMORY` requests stay as they are; older ones are written to files, one a rule and `level` of priorities,
each as a pickled ``Request.to_dict`` behind its length (what Scrapy's own disk queues do), up to a limit of bytes. What
is read back stays in its file until it is asked for: a rule may have kept out more than memory holds. A file that is
there and cannot be opened, as where the crawl has too many open, is tried for a while. What cannot be written stays in
memory, such as a request whose callback is no method of the spider; beyond `UNWRITTEN` the oldest of these are
forgotten, and counted (``clusterd/forgotten``). The files go with the crawl; where it may be resumed, `paused` keeps
what was in them. They lie in a folder that the crawl holds locked: one that a killed crawl has left is deleted by the
next crawl that makes its own.
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
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
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
#: How often it is tried to open a file that is there, and seconds in between.
TRIES: Final = 10
PAUSE: Final = 1.0
#: What says that a file is not there, or something else in its place.
GONE: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
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


@dataclass(slots=True)
class _Aside:
    """A file that is being read back: what of it is still to come is kept as before."""

    rule: str
    path: Path
    #: Requests that are still to come, and where in the file they begin.
    count: int
    done: int = 0


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
        #: Rule and level of each file → requests in it.
        self._spilled: dict[tuple[str, int], int] = {}
        self._asides: list[_Aside] = []
        #: Held while a file is written or read.
        self._disk = threading.Lock()
        #: Requests that could not be held or written, or not be read back.
        self.forgotten = 0
        #: Whether it was said that there is no room left.
        self._overflowed = False

    def __len__(self) -> int:
        reading = sum(aside.count for aside in self._asides)
        return len(self._held) + len(self._unwritten) + sum(self._spilled.values()) + reading

    def by_rule(self) -> Counter[str]:
        """Return how many requests each rule keeps out, of those that keep something out; but what is read back."""
        counted = Counter(kept.rule for kept in (*self._held, *self._unwritten))
        for (rule, _), count in dict(self._spilled).items():  # of a copy, since `spill` may be at work
            counted[rule] += count
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
        return any(rule in rules for rule, _ in dict(self._spilled))

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
        with self._disk:
            return [kept for kept in old if not self._write(kept)]

    def _write(self, kept: KeptOut) -> bool:
        """Write a request; whether it could be written."""
        packed = pack(kept, self._spider)
        if packed is None or len(packed) > self._disk_bytes:
            return False
        file = kept.rule, level(kept.request.priority)
        try:
            _append(self._path(*file), packed)
        except OSError:
            return False
        self._disk_bytes -= len(packed)
        self._spilled[file] = self._spilled.get(file, 0) + 1
        return True

    def read(self, rules: Collection[str]) -> Iterator[list[KeptOut]]:
        """Return what these rules kept out and `spill` wrote; each portion of it is read when it is asked for.

        What is kept out meanwhile is not in it, and finds the room on the disk that a portion has left: nothing is
        forgotten for it. What is asked for no more stays kept.
        """
        return chain.from_iterable(self.read_by_level(rules))

    def read_by_level(self, rules: Collection[str]) -> list[Iterator[list[KeptOut]]]:
        """Return the same apart by `level`, the highest first; each may be read in a thread of its own."""
        with self._disk:
            files = sorted((file for file in self._spilled if file[0] in rules), key=lambda file: -file[1])
            asides = [(at, _Aside(rule, self._aside(rule, at), self._spilled.pop((rule, at)))) for rule, at in files]
            self._asides += [aside for _, aside in asides]
        levels = dict.fromkeys(at for at, _ in asides)
        return [self._portions([aside for at, aside in asides if at == wanted]) for wanted in levels]

    def _aside(self, rule: str, at: int) -> Path:
        """Rename a file, so that what is written from now on goes to another; return its name."""
        path = self._path(rule, at)
        aside = path.with_name(f"{path.name}-{uuid4().hex}")
        with suppress(OSError):  # it is gone, say, which shows when it is read
            return path.rename(aside)
        return path

    def _portions(self, asides: list[_Aside]) -> Iterator[list[KeptOut]]:
        for aside in asides:
            written = self._written(aside)
            before = 0
            while portion := list(islice(written, PORTION)):
                self._leave(aside.done - before)
                before = aside.done
                yield portion
            if aside.count:  # it could not be opened, and stays for the crawl's next run
                continue
            with suppress(OSError):  # lest what was read be lost with it
                self._leave(aside.path.stat().st_size - before)
                aside.path.unlink()
            self._asides.remove(aside)

    def _leave(self, room: int) -> None:
        """Give so many bytes of the disk to what is written from now on."""
        with self._disk:
            self._disk_bytes += room

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
            spilled = [_Aside(rule, self._path(rule, at), count) for (rule, at), count in self._spilled.items()]
            for left in (*self._asides, *spilled):
                try:
                    file = _opened(left.path)
                except OSError as error:
                    self._miss(left, error)
                    continue
                with file:
                    file.seek(left.done)
                    shutil.copyfileobj(file, out)

    def close(self) -> None:
        """Delete the files. Nothing is written after that. May be repeated."""
        if self._own is not None and self._lock >= 0:
            shutil.rmtree(self._own, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def _path(self, rule: str, at: int) -> Path:
        if self._own is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            _delete_left(self._folder)
            self._own, self._lock = _own_folder(self._folder)
        return self._own / f"{rule.replace('/', '_')}.{at}.requests"

    def _written(self, aside: _Aside) -> Iterator[KeptOut]:
        """Yield the requests of a file as far as they can be read; the others of its count are forgotten.

        None of one that is there and cannot be opened, of which all stay kept.
        """
        try:
            file = _opened(aside.path)
        except GONE as error:
            self._miss(aside, error)
            return
        except OSError as error:
            logger.warning("What rule %s has kept out cannot be read back now, and stays kept: %s", aside.rule, error)
            return
        try:
            with file:
                for one in unpack(file, aside.rule, self._spider):
                    if one is not None:
                        aside.count -= 1
                        aside.done = file.tell()
                        yield one
        except OSError as error:
            self._miss(aside, error)
        else:
            self._forget(aside)

    def _miss(self, aside: _Aside, error: OSError) -> None:
        """Say that so many requests cannot be read: somebody has emptied the folder, for one."""
        logger.warning("What rule %s has kept out cannot be read back: %s", aside.rule, error)
        self._forget(aside)

    def _forget(self, aside: _Aside) -> None:
        """Count what of a file cannot be read."""
        self.forgotten += aside.count
        aside.count = 0


def _opened(path: Path) -> BinaryIO:
    """Open a file for reading; one that is there is tried for a while."""
    for _ in range(TRIES - 1):
        try:
            return path.open("rb")
        except GONE:
            raise
        except OSError:
            time.sleep(PAUSE)
    return path.open("rb")


def level(priority: int) -> int:
    """Return which priorities lie together: the same, or of one sign and one number of binary digits.

    So a spider may give each request a priority of its own, as by a score, and there are still few files.
    """
    digits = abs(priority).bit_length()
    return digits if priority > 0 else -digits


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
    except Exception:  # whatever the classes in it raise
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
    with path.open("ab", buffering=0) as file:
        whole = file.tell()
        try:
            if file.write(packed) < len(packed):
                raise OSError("the disk is full")
        except OSError:
            with suppress(OSError):
                file.truncate(whole)
            raise
