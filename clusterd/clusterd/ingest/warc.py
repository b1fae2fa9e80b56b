"""WARC files (ISO 28500), plain or packed (`packings`): record by record or as a whole, with Zstandard also with a
dictionary in the file; ARC files, which archives wrote before, likewise; those in a WACZ (`wacz`).

Pages are the ``response`` records that an HTTP server answered with a page, the ``resource`` records that hold one, and
the ``revisit`` records that say of one that it was answered again (`revisits`). In a file of texts that were taken out
of pages, with no answer before them (WET, as Common Crawl gives away), these ``conversion`` records stand for their
pages. Where it is asked for, rules hear of the files that came in the place of pages, and of redirects (`beside`). The
rest is passed over: errors, pictures, answers to other requests than GET (`exchanges`), robots.txt, what archivers keep
for themselves (their logs, texts beside the pages). Payloads are taken without transfer and content encoding.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final
from zipfile import BadZipFile

import zstandard
from clusterd_crawler.message import File, Redirect
from clusterd_crawler.skipping.redirects import STATUSES
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]
from warcio.limitreader import LimitReader  # type: ignore[import-untyped]

from clusterd.ingest.archive import Archive
from clusterd.ingest.beside import Beside
from clusterd.ingest.coding import decoded, transferred
from clusterd.ingest.contents import ARC, decompressed
from clusterd.ingest.exchanges import Exchanges, Taken, asks_otherwise, taken
from clusterd.ingest.frames import MOST, Frames, trouble
from clusterd.ingest.packings import DAMAGED, MARK, ZSTANDARD
from clusterd.ingest.raw import Broken, BrokenRecord, RawPage, brings_page, milliseconds
from clusterd.ingest.revisits import Names, Revisit, Revisits, names_of, referred_to
from clusterd.ingest.wacz import warc_files

#: First bytes of the skippable frame that holds a WARC's dictionary.
ZSTD_DICTIONARY: Final = b"\x5d\x2a\x4d\x18"
#: Bytes of a dictionary at most.
DICTIONARY: Final = 1 << 28
#: Media types that hold a page.
PAGES: Final = ("text/html", "application/xhtml+xml", "text/plain")
#: Schemes of the names under which archivers keep a ``resource`` for themselves: Wget its log under ``metadata:``,
#: Browsertrix the texts of pages under ``urn:``.
OWN: Final = ("metadata:", "urn:")
#: What archivers fetch to know what they may fetch: no page, as little as to a crawl.
_ROBOTS: Final = re.compile(r"https?://[^/?#]+/robots\.txt")
#: What follows a media type: parameters, or the same header once more (joined by a comma).
_MEDIA_ENDS: Final = re.compile("[;,]")
#: Dates that WARC 1.1 allows beside those of ISO 8601 that Python reads: a year, or a month.
_YEAR_OR_MONTH: Final = re.compile(r"\d{4}(-\d\d)?")
_FIRST_DAY: Final = "0000-01-01"
#: A length or a status that may be meant: of more digits than 4,300 Python reads no number.
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
NOT_MODIFIED: Final = 304
LONGER: Final = "it goes on behind its end: its Content-Length is wrong"
#: Statuses of headers behind which the answer comes: all of 1xx but 101, behind which another protocol does.
IN_ADVANCE: Final = re.compile("1(?!01)..")

#: What reading a record may raise that is not whole; `OverflowError` of a length beyond all that can be counted.
UNREADABLE: Final = (OSError, EOFError, ValueError, OverflowError, ArchiveLoadFailed, BadZipFile, *DAMAGED)

log = logging.getLogger(__name__)

#: It would name each URL with a blank in it, as it stands there, though it has put %20 for it.
logging.getLogger("warcio").setLevel(logging.ERROR)

#: What a record holds.
Held = RawPage | File | Redirect
#: What becomes of a record: record, warcio's loader, where it was read → what it holds, asked for once it was whole.
Taking = Callable[[Any, Any, str], Iterable[Held]]


class EndsEarly(BrokenRecord):
    """The file ends inside this record."""


def read_warc(
    stream: io.BufferedReader, name: str, revisits: Revisits | None, beside: Beside | None
) -> Iterator[Held | Broken]:
    """Yield the pages of a WARC file; a record that cannot be read is named and skipped.

    ``revisits`` takes the ``revisit`` records, ``beside`` makes messages of what is no page; without, both are passed
    over.
    """
    return _read(stream, name, partial(_held, revisits, beside))


def originals(revisits: Revisits) -> Iterator[RawPage]:
    """Read the files of a run once more for what its ``revisit`` records refer to, and yield the pages that these are.

    What is broken in the files has been told. A file that is gone by now, as where an archiver moves what it has
    finished, costs no more than the revisits that refer to it.
    """
    for path in revisits.files:
        if not revisits.held:
            break
        try:
            yield from _originals_in(path, revisits)
        except (OSError, BadZipFile) as error:
            log.warning("%s cannot be read once more for what revisit records refer to: %s", path, error)
    revisits.give_up()


def _originals_in(path: str, revisits: Revisits) -> Iterator[RawPage]:
    for name, stream, _ in warc_files(path):
        for item in _read(stream, name, partial(_revisited, revisits)):
            if isinstance(item, RawPage):
                yield item
            if not revisits.held:
                return


def _read(stream: io.BufferedReader, name: str, taking: Taking) -> Iterator[Held | Broken]:
    exchanges: Exchanges[Held] = Exchanges()
    for item in _records(stream, name, taking):
        if isinstance(item, Broken):
            yield item
        else:
            yield from exchanges.after(item)
    yield from exchanges.end()


def _records(stream: io.BufferedReader, name: str, taking: Taking) -> Iterator[Taken[Held] | Broken]:
    try:
        plain = _plain(stream)
    except (BrokenRecord, zstandard.ZstdError) as error:
        yield Broken(name, f"its dictionary cannot be read: {error}", ends=True)
    except UNREADABLE as error:  # a short file of a broken WACZ
        yield Broken(name, f"cannot be read: {error}", ends=True)
    else:
        yield from _records_of(plain, name, taking)


def _records_of(plain: io.BufferedReader, name: str, taking: Taking) -> Iterator[Taken[Held] | Broken]:
    is_arc = plain.peek(1).startswith(ARC[:1])  # there may be one byte only so far
    archive = Archive(plain, is_arc=is_arc)
    named = strays = 0
    of_texts = True
    for number in count(1):
        where = f"{name} record {number}"
        try:
            record = next(archive, None)
            why = "" if record is not None else trouble(plain)
            if archive.err_count > strays and not why:
                strays = archive.err_count
                if named < number - 1:
                    yield Broken(f"{name} record {number - 1}", LONGER)
            if record is None:
                if why:
                    yield Broken(where, why, ends=True)
                return
            _has_length(record)
            of_texts = of_texts and record.rec_type != "response"
            if of_texts and record.rec_type == "conversion":
                record.rec_type = "resource"
            held = taken(record, asks_otherwise(record), taking(record, archive.loader, where))
            _to_the_end(record)
        except BrokenRecord as error:
            named, ends = number, isinstance(error, EndsEarly)
            yield Broken(where, (ends and trouble(plain)) or str(error), ends)
            if ends:
                return
        except UNREADABLE as error:
            why = trouble(plain) or f"the rest of the file cannot be read: {' '.join(str(error).split())}"
            yield Broken(where, why, ends=True)
            return
        else:
            yield held


def _held(revisits: Revisits | None, beside: Beside | None, record: Any, loader: Any, where: str) -> Iterable[Held]:
    """Return the page in a record, if any, or what rules are to hear of; put a revisit aside."""
    if record.rec_type == "revisit" and revisits is not None:
        if (revisit := _revisit(record, loader, where)) is not None:
            return _put_aside(revisits, revisit)
        if beside is not None and record.http_headers is not None:
            return _no_page(beside, record, _status(record.http_headers))
        return ()
    if (said := _answer(record, loader)) is None:
        return ()
    if not _is_page(*said):
        return () if beside is None else _no_page(beside, record, said[0])
    status, media = said
    at, cut = _fetched_at(record.rec_headers), _is_truncated(record)
    return (RawPage(_url(record), _content(record), None, media, at, status=status, where=where, truncated=cut),)


def _put_aside(revisits: Revisits, revisit: Revisit) -> Iterator[Held]:
    revisits.add(revisit)
    if revisits.full:
        yield from originals(revisits)


def _no_page(beside: Beside, record: Any, status: int) -> Iterable[File | Redirect]:
    """Return what rules are to hear of a record that holds no page."""
    try:
        url, at = _url(record), _fetched_at(record.rec_headers) or 0
        if status in STATUSES:
            told = beside.redirect(url, record.http_headers.get_header("Location") or "", at)
            return () if told is None else (told,)
        if record.rec_type == "response" and brings_page(status) and beside.may_tell_of(url):
            return () if _is_truncated(record) else (beside.file(url, _content(record), at),)
    except BrokenRecord:
        pass
    return ()


def _revisit(record: Any, loader: Any, where: str) -> Revisit | None:
    """Return what a revisit record says; None where it is none of a page."""
    url, headers = _url(record), record.rec_headers
    record.http_headers = http = _http_headers(record, loader, url)
    status, media = (0, "") if http is None else (_status(http), http.get_header("Content-Type") or "")
    if status == NOT_MODIFIED:
        status, media = 0, ""
    if _ROBOTS.fullmatch(url) or not _is_page(status or 200, media or PAGES[0]):
        return None
    refers, names = referred_to(headers.get_header), names_of(headers.get_header)
    return Revisit(url, _fetched_at(headers), where, status, media, refers, names)


def _revisited(revisits: Revisits, record: Any, loader: Any, where: str) -> Iterable[RawPage]:
    """Return the pages that are revisits of a record."""
    names = names_of(record.rec_headers.get_header)
    if not revisits.wait_for(names) or (said := _answer(record, loader)) is None:
        return ()
    status, media = said
    if not brings_page(status):  # a redirect to itself has the URL of the page, and often the second
        names = Names(names.digest)
    cut = _is_truncated(record)
    known = RawPage("", _content(record), None, media, status=status, truncated=cut)
    return _again(known, revisits.of(names))


def _again(known: RawPage, revisits: Iterable[Revisit]) -> Iterator[RawPage]:
    for one in revisits:
        status, media = one.status or known.status, one.media or known.content_type
        if _is_page(status, media):
            at, where = one.fetched_at, one.where
            yield replace(known, url=one.url, fetched_at=at, where=where, status=status, content_type=media)


def _url(record: Any) -> str:
    url = (record.rec_headers.get_header("WARC-Target-URI") or "").strip("<> ")
    if not url:
        raise BrokenRecord("WARC-Target-URI is missing")
    return url


def _fetched_at(headers: Any) -> int | None:
    """Return when a record was written, in Unix milliseconds; None where it does not say."""
    date = headers.get_header("WARC-Date")
    if not date:
        return None
    if _YEAR_OR_MONTH.fullmatch(date):
        date += _FIRST_DAY[len(date) :]
    return milliseconds(date, "WARC-Date")


def _answer(record: Any, loader: Any) -> tuple[int, str] | None:
    """Return the status and the media type of what was answered; None where a record holds no answer of the web."""
    if record.rec_type not in {"response", "resource"}:
        return None
    url = _url(record)
    if _ROBOTS.fullmatch(url):
        return None
    if record.rec_type == "resource":
        media = record.rec_headers.get_header("Content-Type") or ""
        return None if url.lower().startswith(OWN) else (200, media)
    record.http_headers = http = _http_headers(record, loader, url)
    return None if http is None else (_status(http), http.get_header("Content-Type") or PAGES[0])


def _status(http: Any) -> int:
    said = http.get_statuscode() or ""
    if not _NUMBER.fullmatch(said):  # a page without headers, for one
        raise BrokenRecord("it does not begin with an HTTP status and headers")
    return int(said)


def _is_page(status: int, media: str) -> bool:
    return brings_page(status) and _MEDIA_ENDS.split(media, 1)[0].strip().lower() in PAGES


def _is_truncated(record: Any) -> bool:
    """Whether a record, of whose payload nothing was read so far, has only the beginning: the archiver has kept no more
    (few say so where the connection broke), or has put the rest into ``continuation`` records.
    """
    headers, http = record.rec_headers, record.http_headers
    said = "" if http is None or http.get_header("Transfer-Encoding") else http.get_header("Content-Length") or ""
    broke = _NUMBER.fullmatch(said) is not None and record.raw_stream.limit < int(said)
    return broke or bool(headers.get_header("WARC-Truncated") or headers.get_header("WARC-Segment-Number"))


def _content(record: Any) -> bytes:
    """Return the payload without its transfer and content encoding; of one longer than `MOST` the beginning."""
    body, headers = bytes(record.raw_stream.read(MOST)), record.http_headers
    if headers is None:
        return body
    return decoded(transferred(body, _listed(headers, "Transfer-Encoding")), _listed(headers, "Content-Encoding"))


def _listed(headers: Any, name: str) -> str:
    """Return what a header lists; one that comes several times lists as if in one line (RFC 9110, 5.3)."""
    return ",".join(value for key, value in headers.headers if key.lower() == name.lower())


def _http_headers(record: Any, loader: Any, url: str) -> Any:
    """Return the status and headers of an HTTP answer; None where it is another protocol's.

    Those that a server sends in advance (100 Continue, 103 Early Hints) are passed over.
    """
    try:
        while True:
            http = loader.load_http_headers(record.rec_type, url.lower(), record.raw_stream, record.length)
            if http is None or not IN_ADVANCE.fullmatch(http.get_statuscode() or ""):
                return http
    except EOFError:  # the file ends here, or nothing follows what was sent in advance
        _to_the_end(record)
        raise BrokenRecord("it does not begin with an HTTP status and headers: it is empty") from None
    except ArchiveLoadFailed as error:
        raise BrokenRecord(str(error)) from None


def _has_length(record: Any) -> None:
    """Raise `EndsEarly` where a record does not say how long it is, or the file ends before it could.

    `BrokenRecord` where it says so in other than a number: warcio takes it for empty, and goes on behind its headers.
    """
    if not isinstance(record.raw_stream, LimitReader):
        raise EndsEarly(
            "it does not say how long it is (Content-Length), or the file is cut short inside its headers: the rest "
            "of the file cannot be read"
        )
    if not record.rec_headers.get_header("Content-Length", "").strip().isdecimal():
        raise BrokenRecord("it does not say how long it is: its Content-Length is no number, or the file is cut short")


def _to_the_end(record: Any) -> None:
    """Read what is left of a record; `EndsEarly` where the file ends before it (warcio would pass it as whole)."""
    while record.raw_stream.read(1 << 16):
        pass
    if record.raw_stream.limit > 0:
        raise EndsEarly(f"the file is cut short: {record.raw_stream.limit} bytes of the record are missing")


def _plain(stream: io.BufferedReader) -> io.BufferedReader:
    """Return the stream without its compression."""
    if not stream.peek(MARK).startswith(ZSTD_DICTIONARY):
        return decompressed(stream)
    dictionary = _dictionary(stream)
    if dictionary.startswith(ZSTANDARD.marks):
        dictionary = zstandard.ZstdDecompressor().decompress(dictionary, max_output_size=DICTIONARY)
    decompressor = zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(dictionary))
    return io.BufferedReader(Frames(stream, decompressor.decompressobj))


def _dictionary(stream: io.BufferedReader) -> bytes:
    """Return what the skippable frame at the beginning of a stream holds."""
    size = int.from_bytes(stream.read(8)[4:], "little")
    dictionary = stream.read(min(size, DICTIONARY))
    if not dictionary or len(dictionary) < size:
        raise BrokenRecord("the file is cut short: it ends inside it")
    return dictionary
