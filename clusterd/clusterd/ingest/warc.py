"""WARC files (ISO 28500), plain, gzipped, or compressed with Zstandard (with a dictionary in the file or without).

Pages are the ``response`` records that an HTTP server answered with a page and the ``resource`` records that hold one;
redirects, errors, images and the like are passed over. Payloads are taken without transfer and content encoding.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any, Final

import zstandard
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]

from clusterd.ingest.raw import Broken, BrokenRecord, RawPage, milliseconds

#: First bytes of a Zstandard frame, and of the skippable frame that holds a WARC's dictionary.
ZSTD: Final = b"\x28\xb5\x2f\xfd"
ZSTD_DICTIONARY: Final = b"\x5d\x2a\x4d\x18"
#: Media types that hold a page.
PAGES: Final = ("text/html", "application/xhtml+xml", "text/plain")


def read_warc(stream: IO[bytes], name: str) -> Iterator[RawPage | Broken]:
    """Yield the pages of a WARC file; a record that cannot be read is named and skipped."""
    archive = ArchiveIterator(_plain(stream))
    number = 0
    while True:
        number += 1
        where = f"{name} record {number}"
        try:
            record = next(archive, None)
            if record is None:
                return
            page = _page(record, where)
        except BrokenRecord as error:
            yield Broken(where, str(error))
        except (ArchiveLoadFailed, OSError, EOFError, ValueError, zlib.error, zstandard.ZstdError) as error:
            yield Broken(where, f"the rest of the file cannot be read: {' '.join(str(error).split())}")
            return
        else:
            if page is not None:
                yield page


def _page(record: Any, where: str) -> RawPage | None:
    """Return the page in a record; None for what is no page."""
    if record.rec_type not in {"response", "resource"}:
        return None
    status, media = 200, record.rec_headers.get_header("Content-Type") or ""
    if record.rec_type == "response":
        if record.http_headers is None:
            return None
        said = record.http_headers.get_statuscode()
        status = int(said) if said and said.isdigit() else 0
        media = record.http_headers.get_header("Content-Type") or "text/html"
    if status != 200 or media.partition(";")[0].strip().lower() not in PAGES:
        return None
    url = record.rec_headers.get_header("WARC-Target-URI")
    if not url:
        raise BrokenRecord("WARC-Target-URI is missing")
    date = record.rec_headers.get_header("WARC-Date")
    return RawPage(
        url=url.strip("<> "),
        body=record.content_stream().read(),
        content_type=media,
        fetched_at=milliseconds(date) if date else None,
        status=status,
        where=where,
    )


def _plain(stream: IO[bytes]) -> IO[bytes]:
    """Return the stream without Zstandard; gzip is left to warcio, which reads it member by member."""
    head = stream.read(4)
    rest = io.BufferedReader(_Peeked(head, stream))
    if head == ZSTD_DICTIONARY:
        rest.read(4)
        size = struct.unpack("<I", rest.read(4))[0]
        dictionary = rest.read(size)
        if dictionary.startswith(ZSTD):
            dictionary = zstandard.ZstdDecompressor().decompress(dictionary, max_output_size=1 << 28)
        decompressor = zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(dictionary))
    elif head == ZSTD:
        decompressor = zstandard.ZstdDecompressor()
    else:
        return rest
    return io.BufferedReader(decompressor.stream_reader(rest, read_across_frames=True))


class _Peeked(io.RawIOBase):
    """A stream whose first bytes were looked at already."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)] if self._head else self._stream.read(len(buffer))
        self._head = self._head[len(buffer) :] if self._head else b""
        buffer[: len(data)] = data
        return len(data)
