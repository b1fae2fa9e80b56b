"""A file that is written whole or not at all: beside the earlier one of its name, whose place it takes at the end.

So neither a disk that fills nor an interruption costs the earlier one, or leaves half a file that looks whole. What is
no file of a folder (a pipe, ``/dev/stdout``) is written to as it is, and so is a file in whose folder no other can be
made, or that is mounted by itself, as containers do with single files.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from clusterd_crawler.errors import ClusterdError, WrongInput

#: What the system says of a disk, a quota or a limit that is full.
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: What it says where no file may be made in a folder, or none put in the place of one.
_IN_PLACE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY})
#: Names of what this process has open already: another file in the place of one would be read by nobody who waits.
_OPEN: Final = ("/dev/std", "/dev/fd/", "/proc/")


def write_whole(name: str | Path, data: bytes) -> None:
    """Write a file; `ClusterdError` where there is no room for it, `WrongInput` where else it cannot be written."""
    try:
        _write(Path(name), data)
    except OSError as error:
        reason = f"{name}: cannot be written: {error.strerror}"
        raise ClusterdError(reason) if error.errno in NO_ROOM else WrongInput(reason) from None


def _write(path: Path, data: bytes) -> None:
    with suppress(FileNotFoundError):
        if str(path).startswith(_OPEN) or not stat.S_ISREG(path.stat().st_mode):
            path.write_bytes(data)
            return
    place = Path(os.path.realpath(path))  # a link stays one
    try:
        _replace(place, data)
    except OSError as error:
        if error.errno not in _IN_PLACE or not place.exists():
            raise
        place.write_bytes(data)


def _replace(place: Path, data: bytes) -> None:
    if place.exists() and not os.access(place, os.W_OK):  # nobody is to write it
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    new = place.with_name(f".clusterd-{secrets.token_hex(8)}.part")
    try:
        with new.open("xb") as file:
            _take_after(place, file.fileno())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # else a power cut may leave the new name without its bytes
        new.replace(place)
    finally:
        new.unlink(missing_ok=True)


def _take_after(place: Path, file: int) -> None:
    """Give a new file the owner, as far as that may be done, and the rights of the earlier one."""
    with suppress(FileNotFoundError):
        before = place.stat()
        with suppress(PermissionError):
            os.fchown(file, before.st_uid, before.st_gid)
        os.fchmod(file, stat.S_IMODE(before.st_mode))
