"""A row of ``.bench/results.json``: what was measured of whom, and the peer that it is measured against."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def result(
    work: str, subject: str, value: float, unit: str, peer: str | None = None, ratio: float | None = None
) -> Row:
    """Return a row; ``ratio``: how many times as well as the peer it was done, None without one."""
    return {"work": work, "subject": subject, "value": round(value, 4), "unit": unit, "peer": peer, "ratio": ratio}
