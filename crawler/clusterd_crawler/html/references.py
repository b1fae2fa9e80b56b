"""Character references (``&amp;``, ``&#1078;``) in UTF-8 text, as browsers read them.

The compiled core reads the plain ones (`core/references.h`), and leaves all else to this.
"""

from __future__ import annotations

import html
import re
from typing import Final

#: The digits of a decimal reference, where they are many. Python reads no number of more than 4,300 (`int`); the first
#: eight that count are enough, as no character has so many.
_MANY_DIGITS: Final = re.compile(r"(?<=&#)(?=[0-9]{9})0*([0-9]{1,8})[0-9]*")


def unescape(segment: bytes) -> bytes:
    """Replace character references in UTF-8 text."""
    text = _MANY_DIGITS.sub(r"\1", segment.decode("utf-8", "surrogatepass"))
    return html.unescape(text).encode("utf-8", "surrogatepass")
