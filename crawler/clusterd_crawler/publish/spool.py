"""Spool: messages that wait on disk until the log answers. Bounded, survives restarts, keeps on when the disk is full.

A folder holds segments ``<owner>-<number>.spool``, oldest number first. A segment is a sequence of records:

    u32 length of key | u32 length of value | u32 CRC-32 of both | key | value         (little-endian)

A record is appended with one write; what a crash or a full disk left half-written is cut off, or ends the reading of
its segment. So do zeros, where a file system had given the file its size and not yet its bytes when the power failed:
no value is empty. The owner of a segment holds a lock on ``<owner>.lock`` while it lives, so that several crawls share
a folder; a spool that opens takes over the segments whose owner is gone. The lock's file names the log that they are
for, so that pages of one store never come to another; by its name and not its server, in whose place another may have
come. A segment is deleted when all of it is in the log; after a crash a part may be sent twice, which the daemon bears
(at least once).

Beyond its limit the spool drops its oldest segment, so that the latest version of a page is the one that stays.
Cost: one write a batch and 12 bytes a record; nothing is synced to the platter before the spool is closed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import threading
import uuid
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

#: A message with its key, as it goes to the log.
Entry = tuple[bytes, bytes]

_HEAD: Final = struct.Struct("<III")
#: Bytes of a segment: an eighth of the limit, within these bounds, so that dropping the oldest loses little at once.
SEGMENT_BYTES: Final = (64 * 1024, 8 * 1024 * 1024)


#: Bytes of a log's name that are read.
LONGEST_NAME: Final = 4096


@dataclass(slots=True, eq=False)
class Segment:
    """One file: its size, the records in it, and how far they have been sent."""

    path: Path
    size: int = 0
    records: int = 0
    sent_bytes: int = 0
    sent_records: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read together: pass it to `Spool.sent` when it has arrived."""

    entries: tuple[Entry, ...]
    segment: Segment | None = None
    end: int = 0
    #: Records before these that could not be read, and were given up.
    lost: int = 0


class Spool:
    """See the module. All methods may be called from several threads; none from the reactor's (they touch the disk)."""

    def __init__(self, folder: Path, limit: int, log: str = "") -> None:
        """``log``: the name of the topic or stream; what others have left for one of another name is not taken over."""
        self._folder = folder
        self._limit = limit
        self._log = log
        least, most = SEGMENT_BYTES
        self._segment_bytes = min(most, max(limit // 8, min(least, limit // 2)))
        self._lock = threading.RLock()
        self._segments: deque[Segment] = deque()
        self._writing: int | None = None
        #: Whether the disk refused what was last written.
        self._refused = False
        self._number = 0
        self.owner = uuid.uuid4().hex
        folder.mkdir(parents=True, exist_ok=True)
        self._held: int | None = _hold_lock(folder / f"{self.owner}.lock")
        with suppress(OSError):  # on a full disk what waits here may go to any log
            os.write(self._held, log.encode())
        self._adopt()

    def __len__(self) -> int:
        # Without the lock, which is held while the disk writes: whoever asks holds that for which the crawl would wait.
        return sum(segment.records - segment.sent_records for segment in self._segments.copy())

    @property
    def refused(self) -> bool:
        """Whether the disk refused what was last written."""
        return self._refused

    def append(self, entries: Sequence[Entry]) -> tuple[int, int]:
        """Keep the entries; return how many were kept and how many records, of these or older ones, were dropped."""
        kept = dropped = 0
        with self._lock:
            for packed in self._portions(entries):
                dropped += self._make_room(sum(map(len, packed)))
                written = self._write(packed)
                kept += written
                if written < len(packed):  # whoever is told how many were kept takes them for the first
                    break
        return kept, dropped + len(entries) - kept

    def _portions(self, entries: Iterable[Entry]) -> Iterator[list[bytes]]:
        """Yield records that are written together, a segment at most; none that the limit has no room for."""
        portion: list[bytes] = []
        size = 0
        for packed in map(_pack, entries):
            if len(packed) > self._limit:
                continue
            if portion and size + len(packed) > self._segment_bytes:
                yield portion
                portion, size = [], 0
            portion.append(packed)
            size += len(packed)
        if portion:
            yield portion

    def read(self, most: int) -> Reading:
        """Return the oldest entries that have not been sent, at most so many and of one segment."""
        lost = 0
        with self._lock:
            while self._segments:
                segment = self._segments[0]
                entries, end = _read(segment, most)
                if entries:
                    return Reading(tuple(entries), segment, end, lost)
                if segment.sent_bytes < segment.size:
                    logger.warning("Spool segment %s is damaged or gone; the rest of it is given up", segment.path)
                    lost += segment.records - segment.sent_records
                self._forget(segment)
            return Reading((), lost=lost)

    def sent(self, reading: Reading) -> None:
        """Note that what was read is in the log."""
        segment = reading.segment
        with self._lock:
            if segment is None or segment not in self._segments:
                return
            segment.sent_bytes = reading.end
            segment.sent_records += len(reading.entries)
            if segment.sent_bytes >= segment.size:
                self._forget(segment)

    def close(self) -> None:
        """Sync what waits, and leave it to whoever opens the folder next."""
        with self._lock:
            self._finish_segment(sync=True)
            if self._held is not None:
                if not self._segments:
                    _delete(self._folder / f"{self.owner}.lock")
                os.close(self._held)
                self._held = None

    def _make_room(self, wanted: int) -> int:
        """Drop oldest segments until so many bytes fit; return how many records went with them."""
        dropped = 0
        # `_portions` wants no more than the limit.
        while sum(segment.size for segment in self._segments) + wanted > self._limit:
            oldest = self._segments[0]
            dropped += oldest.records - oldest.sent_records
            self._forget(oldest)
        return dropped

    def _write(self, packed: list[bytes]) -> int:
        """Append records to the newest segment; return how many are whole on disk."""
        try:
            segment, file = self._open_segment()
        except OSError as error:
            self._complain("open a segment in", self._folder, error)
            return 0
        written, whole = 0, 0
        try:
            written = _write_all(file, b"".join(packed))
            self._refused = False
        except OSError as error:
            self._complain("write to", segment.path, error)
            with suppress(OSError):
                written = max(0, os.fstat(file).st_size - segment.size)
        for record in packed:
            if len(record) > written:
                self._cut(segment, file)
                break
            written -= len(record)
            segment.size += len(record)
            segment.records += 1
            whole += 1
        if segment.size >= self._segment_bytes:
            self._finish_segment(sync=False)
        return whole

    def _cut(self, segment: Segment, file: int) -> None:
        """Cut off a record that is not whole; a file of which that cannot be had (a stale handle) gets no other."""
        try:
            os.ftruncate(file, segment.size)
        except OSError:
            self._finish_segment(sync=False)

    def _complain(self, what: str, path: Path, error: OSError) -> None:
        """Log the first of the refusals in a row: on a full disk there is one for every few messages."""
        if not self._refused:
            logger.warning("The spool cannot %s %s: %s", what, path, error)
        self._refused = True

    def _open_segment(self) -> tuple[Segment, int]:
        if self._writing is not None:
            return self._segments[-1], self._writing
        self._number += 1
        segment = Segment(self._folder / f"{self.owner}-{self._number:08d}.spool")
        self._writing = os.open(segment.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._segments.append(segment)
        return segment, self._writing

    def _finish_segment(self, *, sync: bool) -> None:
        if self._writing is None:
            return
        file, self._writing = self._writing, None
        try:
            if sync:
                os.fsync(file)
        except OSError as error:  # a disk that is full, or broken, and says so only now
            self._complain("sync", self._segments[-1].path, error)
        with suppress(OSError):
            os.close(file)
        if not self._segments[-1].size:
            _delete(self._segments.pop().path)

    def _forget(self, segment: Segment) -> None:
        if self._writing is not None and segment is self._segments[-1]:
            with suppress(OSError):
                os.close(self._writing)
            self._writing = None
        self._segments.remove(segment)
        _delete(segment.path)

    def _adopt(self) -> None:
        """Take over the segments whose owner is gone, of who began first before others."""
        for lock in sorted(self._folder.glob("*.lock"), key=_made_at):
            try:
                if lock.stem != self.owner:
                    self._adopt_from(lock)
            except OSError as error:  # of another user, for one: it is left to its own
                logger.warning("What another crawl left on the spool cannot be taken over: %s", error)

    def _adopt_from(self, lock: Path) -> None:
        held = _take_lock(lock)
        if held is None:
            return
        try:
            if self._is_for_ours(held, lock):
                self._inherit(lock)
        finally:
            os.close(held)

    def _is_for_ours(self, held: int, lock: Path) -> bool:
        """Whether what lies there is for our log, or for any; say so where it is not."""
        log = os.pread(held, LONGEST_NAME, 0).decode(errors="replace")
        if not (self._log and log) or log == self._log or not any(self._folder.glob(f"{lock.stem}-*.spool")):
            return True
        logger.warning(
            "Pages for %s wait on the spool, and go there with the next crawl that has its prefix and this folder; to "
            "send them where this crawl sends its own, %s, empty %s",
            *(log, self._log, lock),
        )
        return False

    def _inherit(self, lock: Path) -> None:
        for path in sorted(self._folder.glob(f"{lock.stem}-*.spool")):
            segment = _measure(path)
            self._number += 1
            segment.path = self._folder / f"{self.owner}-{self._number:08d}.spool"
            path.rename(segment.path)
            self._segments.append(segment)
        lock.unlink(missing_ok=True)


def _made_at(path: Path) -> int:
    """Return when a lock was made, 0 where it is gone by now."""
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0


def _hold_lock(path: Path) -> int:
    """Return an open, locked file of our own.

    A spool that opens at the same moment may find the file before it is locked, take its owner for dead and delete it:
    then another file is locked, or nobody would ever find what this spool leaves behind.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        os.close(file)


def _take_lock(path: Path) -> int | None:
    """Return an open, locked file, or None where another process holds it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _delete(path: Path) -> None:
    """Delete a file where that can be had: on a disk that has become read-only its messages are sent once more."""
    with suppress(OSError):
        path.unlink()


def _pack(entry: Entry) -> bytes:
    key, value = entry
    return _HEAD.pack(len(key), len(value), zlib.crc32(value, zlib.crc32(key))) + key + value


def _write_all(file: int, packed: bytes) -> int:
    """Write until all is written or the disk refuses; return the number of bytes."""
    view = memoryview(packed)
    written = 0
    while written < len(view):
        written += os.write(file, view[written:])
    return written


def _read(segment: Segment, most: int) -> tuple[list[Entry], int]:
    """Return whole records from where the segment has been sent to, and where they end.

    None of a file that is gone or that the disk does not give: it would keep back all that comes after it.
    """
    entries: list[Entry] = []
    end = segment.sent_bytes
    with suppress(OSError), segment.path.open("rb") as file:
        file.seek(end)
        while len(entries) < most:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                break
            key_size, value_size, crc = _HEAD.unpack(head)
            if not value_size or key_size + value_size > segment.size - end:
                break
            key, value = file.read(key_size), file.read(value_size)
            if len(value) < value_size or zlib.crc32(value, zlib.crc32(key)) != crc:
                break
            entries.append((key, value))
            end += _HEAD.size + key_size + value_size
    return entries, end


def _measure(path: Path) -> Segment:
    """Count the records of a segment that another owner wrote, by their heads alone."""
    size = path.stat().st_size
    records = position = 0
    with path.open("rb") as file:
        while position + _HEAD.size <= size:
            file.seek(position)
            key_size, value_size, _ = _HEAD.unpack(file.read(_HEAD.size))
            if not value_size:
                break
            position += _HEAD.size + key_size + value_size
            records += position <= size
    return Segment(path, size=size, records=records)
