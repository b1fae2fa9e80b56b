"""What a page is fetched for, beside what its URL says: one that has served one purpose need not have served another.

A content is lost to a crawl where another callback has read it, or where another session was shown something else
under it. So a skip rests on a page that was fetched for the same purpose.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple


class Purpose(NamedTuple):
    """64-bit hashes of what is said, which are the same in every crawler; 0 where nothing is."""

    #: What reads it, with what it was given to read it: 0 where that is not known, which serves anyone.
    reader: int = 0
    #: As whom, and in what form, it is asked for.
    session: int = 0
    #: How far from the start, where a crawl goes so far and no further: what lies behind its last pages is not reached.
    depth: int = 0

    def serves(self, other: Purpose) -> bool:
        """Whether a page fetched for this has served the other purpose, too."""
        if self is other:
            return True
        return self.reader in {0, other.reader} and self.session == other.session and self.depth <= other.depth


ANYONE: Final = Purpose()
#: A purpose in messages and in blocks of evidence.
PACKED: Final = struct.Struct("<QQI")
