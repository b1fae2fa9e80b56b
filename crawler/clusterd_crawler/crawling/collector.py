"""Python's garbage collector, kept from what is there when a crawl begins: modules, settings, rules.

A full collection would look at all of it again, 40 ms each time. It has to be let go when the crawl ends: in a process
that crawls again and again (a notebook, a server) every crawl's spider would stay for ever, as part of a ring of
references that the collector never looks at.
"""

from __future__ import annotations

import gc
from typing import Final

#: Objects that the interpreter itself may have frozen: 375 with Python 3.12, which takes what is immortal for that,
#: none with the others. A program's own are thousands.
OF_INTERPRETER: Final = 1_000


class Frozen:
    """What one crawl has kept from the collector."""

    def __init__(self) -> None:
        self._is_ours = False

    def freeze(self) -> None:
        """Keep the collector from all that there is, where another crawl or the program itself has not done so."""
        if gc.get_freeze_count() < OF_INTERPRETER:
            gc.freeze()
            self._is_ours = True

    def thaw(self) -> None:
        """Let the collector look at it again. May be repeated."""
        if self._is_ours:
            self._is_ours = False
            gc.unfreeze()
