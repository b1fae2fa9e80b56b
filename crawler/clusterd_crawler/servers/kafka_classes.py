"""The classes of messages of Kafka's client are made by one thread at a time.

The client makes the class of a version of an answer when one is first read, and its registry of answers holds it by a
weak reference (3.0.12). Of two threads that ask at once the class of one is dropped; where it is the one in the
registry, no answer of that kind is read any more by this process, and a client waits for ever or ends with a
`ReferenceError`.
"""

from __future__ import annotations

import threading
from functools import wraps
from typing import Any

_MAKING = threading.RLock()


def make_in_turns() -> None:
    """Have classes made in turns from now on, in this process; to be called before the client is used."""
    try:
        from kafka.protocol.api_message import VersionSubscriptable  # type: ignore[import-untyped]
    except ImportError:  # a later client, that makes them in another way
        return
    with _MAKING:
        made = VersionSubscriptable.__getitem__
        if hasattr(made, "__wrapped__"):
            return

        @wraps(made)
        def in_turns(cls: Any, version: Any) -> Any:
            with _MAKING:
                return made(cls, version)

        VersionSubscriptable.__getitem__ = in_turns
