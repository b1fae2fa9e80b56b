"""What Kafka's client logs: below a warning little that is worth reading, of an outage the same ever again.

At ``DEBUG``, which is Scrapy's default, it writes eight lines a page, and in an outage an error a second, with
tracebacks; Scrapy counts these as errors of the crawl.
"""

from __future__ import annotations

import logging
import math
from typing import Final

#: Seconds for which no further line is logged.
SELDOM: Final = 60.0
#: What the client says where one of its steps took a tenth of a second: on a busy machine any does, and nobody can help
#: it. It would take the place of a line that matters.
SLOW_STEP: Final = "blocking the event loop"


class Seldom(logging.Filter):
    """Lets one warning of Kafka's client through in `SELDOM`: in an outage it says ten a second, of six kinds.

    What an outage means to us we say ourselves. Less than a warning is logged only where somebody asks for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._silent_until = -math.inf

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is logged; without the calls in the client that led to it."""
        if record.levelno < logging.WARNING or not record.name.startswith("kafka."):
            return True
        silent = self._silent_until - SELDOM <= record.created < self._silent_until  # not where the clock was put back
        if silent or SLOW_STEP in record.getMessage():
            return False
        self._silent_until = record.created + SELDOM
        record.exc_info = None
        return True


#: One for all crawls of the process: added again it is not added.
_SELDOM: Final = Seldom()


def quieten() -> None:
    """Log one warning of the imported client in `SELDOM`; a level that somebody has set for it counts."""
    client = logging.getLogger("kafka")
    if client.level != logging.NOTSET:
        return
    client.setLevel(logging.WARNING)
    for name in tuple(logging.root.manager.loggerDict):
        if name.startswith("kafka."):
            logging.getLogger(name).addFilter(_SELDOM)
