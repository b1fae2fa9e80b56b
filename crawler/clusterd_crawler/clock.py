"""The time as messages, rules and the store have it."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_ms() -> int:
    """Return Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


def ms_of(moment: datetime) -> int:
    """Return a time as Unix milliseconds; one that names no zone is of UTC."""
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
