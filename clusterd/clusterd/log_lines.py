"""Lines of a log: one for each thing that is said. A page's URL may hold what begins a line, or commands a terminal."""

from __future__ import annotations

import logging


class OneLine(logging.Filter):
    """For handlers: writes what of a message is not to be shown as Python does in a string. Lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`."""
        try:
            said = record.getMessage()
        except Exception:  # of a library's, say: whoever wrote it goes on, and the handler says what is wrong with it
            return True
        if not said.isprintable():
            record.msg, record.args = "".join(c if c.isprintable() else repr(c)[1:-1] for c in said), ()
        return True
