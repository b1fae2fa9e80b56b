"""The time as messages, rules and the store have it, and as people read it."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_ms() -> int:
    """Return Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


def ms_of(moment: datetime) -> int:
    """Return a time as Unix milliseconds; one that names no zone is of UTC."""
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def iso(at: int) -> str:
    """Return Unix milliseconds as ISO 8601."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
