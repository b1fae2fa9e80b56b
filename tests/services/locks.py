"""Lock files of the embedded store, as whoever else works on it sees them."""

from __future__ import annotations

import fcntl
from pathlib import Path


def is_free(lock: Path) -> bool:
    """Whether nobody holds a lock file."""
    with lock.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
