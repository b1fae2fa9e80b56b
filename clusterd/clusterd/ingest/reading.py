"""Which reader a path needs: decided by what the file holds; its name counts where its first line does not tell.

A folder is read page by page: its HTML files. ``-`` is standard input; it holds JSON lines, as does a pipe: both
can be read only once.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, cast

from clusterd_crawler.errors import WrongInput

from clusterd.ingest.beside import Beside
from clusterd.ingest.contents import (
    ARCHIVES,
    LINES,
    PARQUET,
    ZIP,
    begins_as_html,
    container,
    decompressed,
    is_html,
)
from clusterd.ingest.folder import may_be_html, read_file, read_folder
from clusterd.ingest.frames import trouble
from clusterd.ingest.jsonl import read_jsonl
from clusterd.ingest.packings import MARK
from clusterd.ingest.parquet import check_reader, read_parquet
from clusterd.ingest.raw import Broken
from clusterd.ingest.revisits import Revisits
from clusterd.ingest.wacz import is_wacz, warc_files
from clusterd.ingest.warc import ZSTD_DICTIONARY, Held, read_warc

Kind = Literal["folder", "warc", "jsonl", "parquet", "html"]

#: Bytes of a file that are looked at to tell its kind.
LOOKED_AT: Final = 65536
#: A JSON array of objects, as far as it was read: of a pipe, a few bytes.
_ARRAY: Final = re.compile(rb"\[\s*(?:\{|\Z)")
#: An object that goes on in the next line, as HAR files and what is printed for people do: not a line that breaks off.
_OVER_LINES: Final = re.compile(rb'\{[ \t]*[\r\n]+[ \t"}]')
#: How text in UTF-16 begins, as PowerShell writes it, and what of it is none of ASCII; byte order marks of UTF-8 too.
_WIDE_START: Final = re.compile(rb"\xff\xfe|\xfe\xff|[ -~]\0|\0[ -~]")
_WIDE: Final = b"\0\xff\xfe\xef\xbb\xbf"
KINDS: Final = "WARC or ARC, JSON lines (.gz, .zst, .bz2, .xz), WACZ, Parquet, an HTML file or a folder of HTML files"

Item = Held | Broken
#: Called with the number of bytes of a file that have been read.
Progress = Callable[[int], None]


def kind_of(path: str) -> Kind:
    """Return what a path holds; `WrongInput` where it is not there or of no known kind."""
    file = Path(path)
    if path != "-" and os.path.isdir(path):
        return "folder"
    if is_pipe(path):
        return "jsonl"
    try:
        with file.open("rb") as stream:
            nameless = not os.fstat(stream.fileno()).st_nlink  # the copy of a pipe
            head, broken = _head(stream)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongInput(f"{path}: {reason}; ingest takes {KINDS}") from None
    if head.startswith(ZIP) and is_wacz(path):
        return "warc"
    if head.startswith(PARQUET):
        check_reader(path)
        return "parquet"
    if other := container(head):
        raise WrongInput(f"{path}: is {other}; unpack it first: ingest takes {KINDS}")
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(ARCHIVES) or (not start and ".warc" in file.suffixes):
        return "warc"
    named = any(suffix in LINES for suffix in file.suffixes)  # a broken first line makes them nothing else
    if why := _no_lines(head, spread=not named):
        raise WrongInput(f"{path}: {why}")
    if named or nameless or start.startswith(b"{"):
        return "jsonl"
    if begins_as_html(head) or (may_be_html(file) and is_html(head)):  # a tag is near the beginning of a table, too
        return "html"
    what = "is of no known kind" if head else broken or "is empty"
    raise WrongInput(f"{path}: {what}; ingest takes {KINDS}")


def _no_lines(head: bytes, spread: bool) -> str:
    """Return why JSON that begins so is no JSON lines, and what makes such of it; "" where it may be lines, or no JSON.

    ``spread``: whether it may be one value over many lines.
    """
    start = head.translate(None, _WIDE).lstrip()
    if _WIDE_START.match(head) and start.startswith((b"{", b"[")):
        return "is in UTF-16; JSON lines are in UTF-8 (iconv -f UTF-16 -t UTF-8 makes them)"
    if spread and _ARRAY.match(start):
        return "is one JSON array; JSON lines have one object a line (jq -c '.[]' makes them)"
    if spread and _OVER_LINES.match(start):
        return "has an object over several lines; JSON lines have one object a line (jq -c . makes them)"
    return ""


def is_pipe(path: str) -> bool:
    """Whether a path is read as it comes, once: standard input, a named pipe, a shell's ``<(…)``."""
    try:
        return path == "-" or stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):  # whoever opens it says why it cannot be
        return False


def read(
    path: str,
    base: str = "",
    progress: Progress | None = None,
    revisits: Revisits | None = None,
    beside: Beside | None = None,
) -> Iterator[Item]:
    """Yield the pages of a path, and what is broken in it.

    ``revisits`` takes the revisit records of a WARC file (`warc.originals`), ``beside`` makes messages of its redirects
    and files; without, they are passed over.
    """
    kind = kind_of(path)
    if kind == "folder":
        yield from read_folder(Path(path), base)
    elif kind == "html":
        yield from read_file(Path(path), base or Path(path).resolve().as_uri())
    elif kind == "parquet":
        yield from read_parquet(path, progress)
    elif kind == "warc":
        for name, stream, before in warc_files(path):
            yield from read_warc(io.BufferedReader(_Watched(stream, progress, before)), name, revisits, beside)
    else:
        with opened(path, progress) as stream:
            if is_pipe(path):
                _refuse_others(stream, path)
            yield from read_jsonl(stream, path)


def _refuse_others(stream: io.BufferedReader, path: str) -> None:
    """Refuse what comes through a pipe and is no JSON lines, by its first bytes: no line of it would be one.

    These are `MARK` at most, so as not to wait for more, and longer marks are known by so many.
    """
    head = stream.peek(MARK)
    if head.startswith(tuple(mark[:MARK] for mark in (*ARCHIVES, PARQUET))):
        raise WrongInput(f"{path}: is a WARC, ARC or Parquet file; give its name: a pipe can be read only once")
    if other := container(head, MARK):
        raise WrongInput(f"{path}: is {other}; unpack it first: a pipe takes JSON lines (.gz, .zst, .bz2, .xz)")
    if why := _no_lines(head, spread=True):
        raise WrongInput(f"{path}: {why}")


@contextmanager
def opened(path: str, progress: Progress | None = None) -> Iterator[io.BufferedReader]:
    """Open a file of lines, or standard input for ``-``; what it is packed with is taken off."""
    if path == "-":
        yield decompressed(io.BufferedReader(_Watched(cast(io.BufferedReader, sys.stdin.buffer), progress)))
        return
    try:
        with Path(path).open("rb") as stream:
            yield decompressed(io.BufferedReader(_Watched(stream, progress)))
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise WrongInput(f"{path}: {error.strerror}") from None


def _head(stream: io.BufferedReader) -> tuple[bytes, str]:
    """Return the first bytes of what a file holds, without its compression, and what is wrong with this; "": nothing.

    Of a kind that is known by its name the reader says the latter.
    """
    start = stream.read(MARK)
    stream.seek(0)
    if start == ZSTD_DICTIONARY:
        return b"WARC/", ""  # only WARC files carry their dictionary in front
    content, head = decompressed(stream), b""
    while len(head) < LOOKED_AT and (more := content.read1()):
        head += more
    why = trouble(content)
    return head, why and f"is packed, and broken: {why}"


class _Watched(io.RawIOBase):
    """A stream that tells how far it has been read. What has come is there at once: it may be a pipe that lives."""

    def __init__(self, stream: Any, progress: Progress | None, before: int = 0) -> None:
        self._stream = stream
        self._progress = progress
        self._read = 0
        self._before = before

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read1(len(buffer)) if self._read else self._stream.read(MARK)
        buffer[: len(data)] = data
        self._read += len(data)
        if self._progress is not None:
            self._progress(self._before + self._read)
        return len(data)
