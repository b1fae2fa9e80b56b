"""The time as messages, rules and the store have it."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return Unix time in milliseconds."""
    return time.time_ns() // 1_000_000
