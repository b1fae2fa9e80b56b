"""Contents that were posted and linked, until the home shard knows: it hears of them with the next call.

What is told names how often the store had gone back (`marks`) when they were posted. Where it has since, they may
have been lost after they were posted: then nothing of it counts, and the log brings them again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from clusterd_consumer.redis_scripts import packed_numbers

from clusterd.clusters.redis.home import TELL, Home, pairs


class Pending:
    """What one index has to tell; for several threads."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._done: list[int] = []
        #: How often the store had gone back when this index last looked.
        self.back = 0
        self.position()
        self._went_back = False

    def position(self) -> dict[str, str]:
        """Look how far the log was read, and whether the store went back."""
        found, back = self._home.ask([self._home.request("HGETALL", "q"), self._home.request("GET", "back")])
        with self._lock:
            if int(back or 0) != self.back:
                self.back, self._done, self._went_back = int(back or 0), [], True
        return {partition.decode(): offset.decode() for partition, offset in pairs(found).items()}

    def went_back(self) -> bool:
        """Whether it had, when this was last asked."""
        with self._lock:
            went, self._went_back = self._went_back, False
        return went

    def done(self, contents: Sequence[int], back: int) -> None:
        """Take contents that were posted when the store had gone back so often."""
        with self._lock:
            if back == self.back:
                self._done += contents

    @contextmanager
    def telling(self) -> Iterator[bytes]:
        """Give what is to be told ("" for nothing): again, where that fails."""
        with self._lock:
            done, self._done, back = self._done, [], self.back
        try:
            yield packed_numbers([back, *done]) if done else b""
        except BaseException:
            self.done(done, back)
            raise

    def tell(self, position: Sequence[str] = (), back: int = 0) -> None:
        """Tell what there is to be told, and how far the log was read when the store had gone back so often."""
        with self.telling() as posted:
            told = posted or packed_numbers([self.back])
            words = position if told.startswith(packed_numbers([back])) else ()
            if posted or words:
                self._home.run(TELL, told, *words)
