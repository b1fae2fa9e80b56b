"""A file to which lines are appended, found again under its name where it was moved away (logrotate) or deleted.

What the disk does not take is lost, and logged once; a line that was half written is ended before the next. Several
workers may append to one file: each batch of lines is one write. A named pipe takes what it has room for while somebody
reads it: nobody is waited for.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

log = logging.getLogger(__name__)


class AlertFile:
    """For one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        #: Whether the last line in the file has no end.
        self._half = False
        #: Whether the last batch was refused.
        self._refused = False

    def append(self, lines: bytes) -> None:
        """Write whole lines, if the disk takes them."""
        try:
            file = self._current()
            given = b"\n" + lines if self._half else lines
            written = file.write(given) or 0  # None of a pipe without room
            self._half = not given[:written].endswith(b"\n") if written else self._half
            if written < len(given):
                raise OSError("the disk is full, or nobody reads the pipe")
            self._refused = False
        except OSError as error:
            if not self._refused:
                log.error("alerts cannot be written to %s: %s", self._path, error)
            self._refused = True

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _current(self) -> IO[bytes]:
        """Return the file that bears the name now, made where there is none."""
        if self._file is not None:
            try:
                named = os.stat(self._path)
            except FileNotFoundError:
                named = None
            if named is None or not os.path.samestat(named, os.fstat(self._file.fileno())):
                self.close()
        if self._file is None:
            # A pipe that nobody reads is refused (ENXIO), and would else be waited for.
            opened = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
            self._file = os.fdopen(opened, "ab", buffering=0)
            self._half = _is_cut_short(self._path)
        return self._file


def _is_cut_short(path: Path) -> bool:
    """Whether a file ends in the midst of a line, as after a full disk; not one that cannot be read, nor a pipe."""
    with suppress(OSError):  # of an empty one, too
        if path.is_file():
            with path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1) != b"\n"
    return False
