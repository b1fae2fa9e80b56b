"""The address of a Redis: what it may look like, and what of it may be told."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

#: What of a URL is followed by a password, and the password.
_PASSWORD: Final = re.compile(r"(://[^:/@]*:|[?&]password=)(?:(?<=:).*(?=@)|(?<==)[^&]*)")


def is_redis(url: str) -> bool:
    """Whether it is an address of a Redis or of a cluster."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # the port is no number, or the host no address
        return False
    # A database that is no number would be taken for the first one, and crawls that are to be apart would share it.
    database = "" if parts.scheme == "unix" else parts.path.strip("/")
    numbered = database in {"", "0"} if parts.scheme == "redis+cluster" else not database or database.isdecimal()
    return numbered and url.startswith(("redis://", "rediss://", "unix://", "redis+cluster://"))


def shown(url: str) -> str:
    """Return a URL as it may be logged: without its password."""
    return _PASSWORD.sub(r"\1***", url)
