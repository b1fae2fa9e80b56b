"""WARC files (ISO 28500), plain, gzipped (record by record, or as a whole), or compressed with Zstandard (with a
dictionary in the file or without).

Pages are the ``response`` records that an HTTP server answered with a page and the ``resource`` records that hold one;
redirects, errors, images and the like are passed over. Payloads are taken without transfer and content encoding.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any, Final

import zstandard
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.bufferedreaders import ChunkedDataReader  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]
from warcio.limitreader import LimitReader  # type: ignore[import-untyped]
from warcio.statusandheaders import StatusAndHeadersParserException  # type: ignore[import-untyped]

from clusterd.ingest.coding import MOST, decoded
from clusterd.ingest.frames import Frames, gzip_member, trouble, zstandard_frame
from clusterd.ingest.raw import Broken, BrokenRecord, RawPage, brings_page, milliseconds
from clusterd.queries.documents import GZIP, ZSTD

#: First bytes of a Zstandard frame, and of the skippable frame that holds a WARC's dictionary.
ZSTD_DICTIONARY: Final = b"\x5d\x2a\x4d\x18"
#: Media types that hold a page.
PAGES: Final = ("text/html", "application/xhtml+xml", "text/plain")
#: What follows a media type: parameters, or the same header once more (joined by a comma).
_MEDIA_ENDS: Final = re.compile("[;,]")


class EndsEarly(BrokenRecord):
    """The file ends inside this record."""


def read_warc(stream: IO[bytes], name: str) -> Iterator[RawPage | Broken]:
    """Yield the pages of a WARC file; a record that cannot be read is named and skipped."""
    plain = _plain(stream)
    archive = ArchiveIterator(plain, no_record_parse=True)  # a record that is broken inside is ours to refuse
    number = 0
    while True:
        number += 1
        where = f"{name} record {number}"
        try:
            record = next(archive, None)
            if record is None:
                if why := trouble(plain):
                    yield Broken(where, why, ends=True)
                return
            page = _page(record, archive.loader, where)
            _to_the_end(record)
        except BrokenRecord as error:
            ends = isinstance(error, EndsEarly)
            yield Broken(where, str(error), ends)
            if ends:
                return
        except (ArchiveLoadFailed, OSError, EOFError, ValueError, zlib.error, zstandard.ZstdError) as error:
            yield Broken(where, f"the rest of the file cannot be read: {' '.join(str(error).split())}", ends=True)
            return
        else:
            if page is not None:
                yield page


def _page(record: Any, loader: Any, where: str) -> RawPage | None:
    """Return the page in a record; None for what is no page."""
    if record.rec_type not in {"response", "resource"}:
        return None
    url = (record.rec_headers.get_header("WARC-Target-URI") or "").strip("<> ")
    if not url:
        raise BrokenRecord("WARC-Target-URI is missing")
    status, media = 200, record.rec_headers.get_header("Content-Type") or ""
    if record.rec_type == "response":
        record.http_headers = _http_headers(record, loader, url)
        if record.http_headers is None:
            return None
        said = record.http_headers.get_statuscode()
        status = int(said) if said and said.isdigit() else 0
        media = record.http_headers.get_header("Content-Type") or "text/html"
    if not brings_page(status) or _MEDIA_ENDS.split(media, 1)[0].strip().lower() not in PAGES:
        return None
    date = record.rec_headers.get_header("WARC-Date")
    return RawPage(
        url=url,
        body=_content(record),
        content_type=media,
        fetched_at=milliseconds(date) if date else None,
        status=status,
        where=where,
    )


def _content(record: Any) -> bytes:
    """Return the payload without its transfer and content encoding; of one longer than `MOST` the beginning."""
    headers, stream = record.http_headers, record.raw_stream
    if headers is None:
        return bytes(stream.read(MOST))
    if (headers.get_header("Transfer-Encoding") or "").strip().lower().endswith("chunked"):
        stream = ChunkedDataReader(stream)
    return decoded(bytes(stream.read(MOST)), headers.get_header("Content-Encoding") or "")


def _http_headers(record: Any, loader: Any, url: str) -> Any:
    """Return the status and headers of an HTTP answer; None where it is another protocol's."""
    try:
        return loader.load_http_headers(record.rec_type, url, record.raw_stream, record.length)
    except (StatusAndHeadersParserException, EOFError) as error:
        raise BrokenRecord(f"it does not begin with an HTTP status and headers: {error or 'it is empty'}") from None


def _to_the_end(record: Any) -> None:
    """Read what is left of a record; `EndsEarly` where the file ends before it (warcio would pass it as whole)."""
    if not isinstance(record.raw_stream, LimitReader):  # a record that does not say how long it is
        return
    while record.raw_stream.read(1 << 16):
        pass
    if record.raw_stream.limit > 0:
        raise EndsEarly(f"the file is cut short: {record.raw_stream.limit} bytes of the record are missing")


def _plain(stream: IO[bytes]) -> IO[bytes]:
    """Return the stream without its compression."""
    head = stream.read(4)
    rest = io.BufferedReader(_Peeked(head, stream))
    if head == ZSTD_DICTIONARY:
        rest.read(4)
        size = struct.unpack("<I", rest.read(4))[0]
        dictionary = rest.read(size)
        if dictionary.startswith(ZSTD):
            dictionary = zstandard.ZstdDecompressor().decompress(dictionary, max_output_size=1 << 28)
        decompressor = zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(dictionary))
        return io.BufferedReader(Frames(rest, decompressor.decompressobj))
    if head == ZSTD:
        return io.BufferedReader(Frames(rest, zstandard_frame))
    if head.startswith(GZIP):
        return io.BufferedReader(Frames(rest, gzip_member))
    return rest


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
