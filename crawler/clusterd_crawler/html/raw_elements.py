"""Where elements end whose content is no markup: scripts, styles, titles (HTML standard, section 13.2.5)."""

from __future__ import annotations

import re
from typing import Final

_IN_SCRIPT: Final = re.compile(rb"<!--|-->|<(/?)script(?=[\t\n\f\r />])", re.IGNORECASE)


def end_of_raw(data: bytes, name: bytes, at: int) -> int:
    """Return where the end tag of a raw or escapable element begins, whose content begins at ``at``.

    The end tag of a script within ``<!-- <script>`` of a script is not its own (the HTML standard's "script data double
    escaped state"): pages write scripts by scripts.
    """
    if name != b"script":
        match = re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE).search(data, at)
        return match.start() if match else len(data)
    escaped = inner = False
    while match := _IN_SCRIPT.search(data, at):
        at = match.end()
        if match[0] == b"<!--":
            escaped, at = True, match.start() + 2  # <!--> is begun and ended
        elif match[0] == b"-->":
            escaped = inner = False
        elif match[1] and not inner:
            return match.start()
        else:
            inner = escaped and not match[1]
    return len(data)
