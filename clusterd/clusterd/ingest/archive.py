"""warcio's reader of WARC and ARC records, made to go on where it would end, and to read any line in its length."""

from __future__ import annotations

import io
import re
from typing import Final

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.bufferedreaders import BufferedReader  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]

from clusterd.ingest.contents import WARC

#: Bytes that are looked at together of a line behind a record.
LINE: Final = 1 << 20
#: Bytes of a record's headers at most, its own and those of its answer together: servers send some kilobytes. Each line
#: is held in memory, and a file of 1 MB may unpack to one of a gigabyte.
HEADERS: Final = 1 << 22
#: Lines of them at most. warcio adds each that goes on with the one before to what it has of that: a million of three
#: bytes took 107 s, packed in 4 KB.
HEADER_LINES: Final = 1 << 14
#: The line with which a record of an ARC file begins: URL, IP address, date, media type, length.
_ARC_RECORD: Final = re.compile(rb"[A-Za-z][\w+.-]*:.* \S* \d{8,17} \S* \d+\s*\Z")


class Reader(BufferedReader):  # type: ignore[misc]
    """Reads what is unpacked already, and a line in its length.

    warcio's own copies what it has of a line with each 16 KB more: 50 MB without a line's end (behind a wrong length)
    took 43 s, ten times as much 100 times as long.
    """

    #: Bytes of the record in hand that were read as lines, and how many lines.
    _of_headers = _lines = 0

    def _fillbuff(self, block_size: int | None = None) -> None:
        """Take what has come: a read of so many bytes would lose it where what follows is broken, or wait for it."""
        if self.empty():
            self._process_read(self.stream.read1(self.block_size))

    def begin_record(self) -> None:
        """Count the lines of headers from here on."""
        self._of_headers = self._lines = 0

    def readline(self, length: int | None = None) -> bytes:
        """Return a line of headers, of a longer one than ``length`` bytes the beginning; nothing at the end.

        `ArchiveLoadFailed` where it would be more than `HEADERS` bytes of the record, or than `HEADER_LINES`; nothing
        is taken then, for who asks counts what he was given.
        """
        most = HEADERS - self._of_headers
        if not most:
            raise ArchiveLoadFailed(f"its headers are longer than {HEADERS} bytes")
        if self._lines == HEADER_LINES:
            raise ArchiveLoadFailed(f"its headers have more than {HEADER_LINES} lines")
        line = self.line(most if length is None else min(length, most))
        self._of_headers += len(line)
        self._lines += 1
        return line

    def line(self, most: int) -> bytes:
        """Return a line, of a longer one than so many bytes the beginning; nothing at the end."""
        parts: list[bytes] = []
        while most > 0 and not (parts and parts[-1].endswith(b"\n")):
            self._fillbuff()
            if self.empty():
                break
            parts.append(self.buff.readline(most))
            most -= len(parts[-1])
        return b"".join(parts)


class Archive(ArchiveIterator):  # type: ignore[misc]
    """warcio's reader, which finds the next record also behind one that says a wrong length.

    warcio's own ends there, and at a record whose length counts the blank lines behind it, as the Internet Archive's
    ia-web-commons writes, or which has none (ARC files, as the first of them were described); and it shows on standard
    error what stands there, of whatever length.
    """

    def __init__(self, stream: io.BufferedReader, *, is_arc: bool) -> None:
        super().__init__(stream, no_record_parse=True, arc2warc=is_arc)  # what is broken inside is ours to refuse
        self.reader = Reader(stream)

    def _consume_blanklines(self) -> tuple[bytes | None, int]:
        """Return the line with which the next record begins, if any, and how many bytes were passed over before it."""
        passed, strays, begins = 0, False, True
        self.reader.begin_record()
        while line := self.reader.line(LINE):
            if begins and (line.startswith(WARC) or (self.mixed_arc_warc and _ARC_RECORD.match(line))):
                break
            begins = line.endswith(b"\n")
            passed, strays = passed + len(line), strays or not line.isspace()
        self.err_count += strays
        return line or None, passed
