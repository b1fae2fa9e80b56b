"""What Kafka's client logs: below a warning little that is worth reading, of an outage the same ever again.

At ``DEBUG``, which is Scrapy's default, it writes eight lines a page, and in an outage an error a second, with
tracebacks; Scrapy counts these as errors of the crawl.
"""

from __future__ import annotations

import logging
import math
from typing import Final

#: Seconds for which a line is not logged again.
SELDOM: Final = 60.0
#: Lines that are remembered.
SELDOM_LINES: Final = 1000


class Seldom(logging.Filter):
    """Lets a warning of Kafka's client through once in `SELDOM`: in an outage it says ten a second.

    Less than a warning is logged only where somebody asks for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is logged."""
        if record.levelno < logging.WARNING or not record.name.startswith("kafka."):
            return True
        line = (record.name, str(record.msg))
        if record.created < self._said.get(line, -math.inf) + SELDOM:
            return False
        if len(self._said) >= SELDOM_LINES:
            self._said.clear()
        self._said[line] = record.created
        return True


#: One for all crawls of the process: added again it is not added.
_SELDOM: Final = Seldom()


def quieten() -> None:
    """Log warnings of the imported client, each once in `SELDOM`; a level that somebody has set for it counts."""
    client = logging.getLogger("kafka")
    if client.level != logging.NOTSET:
        return
    client.setLevel(logging.WARNING)
    for name in tuple(logging.root.manager.loggerDict):
        if name.startswith("kafka."):
            logging.getLogger(name).addFilter(_SELDOM)
