"""A wrong setting ends the start of a crawl with one line.

Scrapy logs what ended a start with all the calls that led there: forty lines, of which the last says what is wrong. To
who wrote the setting the others say nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from scrapy.exceptions import UsageError

from clusterd_crawler.errors import SettingError

#: Who logs what ended a start: the loop, or Twisted, which besides writes it on standard error itself.
LOGGERS: Final = ("asyncio", "twisted")


class WrongSetting(SettingError, UsageError):
    """A setting of a crawl that does not start. ``scrapy shell`` says it as what is wrong with its arguments."""


class _OneLine(logging.Filter):
    """Makes one line of what is logged of a wrong setting."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the record pass, without the calls."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, WrongSetting):
            record.msg, record.args, record.exc_info = str(error), (), None
        return True


#: One for all crawls of the process: added again it is not added.
_ONE_LINE: Final = _OneLine()


@contextmanager
def told_plainly() -> Iterator[None]:
    """Let a `SettingError` leave as a `WrongSetting`."""
    try:
        yield
    except SettingError as error:
        for name in LOGGERS:
            logging.getLogger(name).addFilter(_ONE_LINE)
        raise WrongSetting(str(error)) from None
