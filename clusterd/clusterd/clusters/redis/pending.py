"""Contents that were posted and linked, until the home shard knows: it hears of them with the position or a next call.

What is told names the state of the store in which they were posted: the process of the server, since one that was
restarted may have lost its last second; on a Redis Cluster that of the home shard (`numbers`), and how often the store
had gone back since (`marks`). Where that is another by now, they may have been lost after they were posted, and on one
Redis their numbers given to others: then nothing of it counts. The log brings them again; what it does not bring stays
pending: who meets it posts it once more.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any, Final

from clusterd_consumer.redis_scripts import Calls, Request, packed_numbers
from clusterd_consumer.transport.contract import Position, SetBack

from clusterd.clusters.redis.home import Home, pairs
from clusterd.clusters.redis.homes import Homes

#: Words by which the position of a partition is moved (`moves_of`).
MOVE: Final = 3


class Pending:
    """What one index has to tell; for several threads."""

    def __init__(self, calls: Calls, home: Home, alone: bool) -> None:
        self._calls = calls
        self._home = home
        #: On one Redis; of several homes each is told of the server's process by `numbers`.
        self._alone = alone
        self._lock = threading.Lock()
        self._done: list[int] = []
        self._process = ""
        #: The state of the store (BASE:back) when this index last looked.
        self._state = 0
        self.look()
        self.position()
        self._went_back = False

    def look(self) -> int:
        """Look whether another process of the server answers; return the state of the store."""
        process = self._calls.process() if self._alone else ""
        if process != self._process:
            self._home.run("state", int(process[:8], 16))
            self.position()
            self._process = process
        return self._state

    def look_anew(self) -> None:
        """Look again at a store that is not the one it was: set back, or emptied."""
        self._process = ""
        self.look()
        self.position()

    def position(self) -> dict[str, str]:
        """Look how far the log was read, and in what state the store is."""
        return self.noted(*self._home.ask(self.asks()))

    def asks(self) -> list[Request]:
        """Return what `position` asks: of several homes all are asked at once."""
        return [self._home.request("HGETALL", "q"), self._home.request("GET", "back")]

    def noted(self, found: Any, state: bytes | None) -> dict[str, str]:
        """Note the answers to what it `asks`; return how far the log was read."""
        with self._lock:
            if int(state or 0) != self._state:
                self._state, self._done, self._went_back = int(state or 0), [], True
        return {partition.decode(): offset.decode() for partition, offset in pairs(found).items()}

    def went_back(self) -> bool:
        """Whether the store went back since this was last asked."""
        with self._lock:
            went, self._went_back = self._went_back, False
        return went

    def done(self, contents: Sequence[int], state: int) -> None:
        """Take contents that were posted in a state of the store."""
        with self._lock:
            if state == self._state:
                self._done += contents

    @contextmanager
    def telling(self) -> Iterator[bytes]:
        """Give what is to be told ("" for nothing): again, where that fails."""
        self.look()
        with self._lock:
            done, self._done, state = self._done, [], self._state
        try:
            yield packed_numbers([state, *done]) if done else b""
        except BaseException:
            self.done(done, state)
            raise

    def tells(self, posted: bytes, moves: Sequence[str], state: int) -> list[Request]:
        """Return what tells the home what was posted, and how far the log was read in a state of the store."""
        told = posted or packed_numbers([self._state])
        words = moves if told.startswith(packed_numbers([state])) else ()
        return [self._home.function("tell", told, *words)] if posted or words else []


def moves_of(position: Position, known: Position) -> list[str]:
    """Return the words by which a position is moved: of each partition what is known of it, and what is to be."""
    return [word for partition, offset in position.items() for word in (partition, known.get(partition, ""), offset)]


def tell(homes: Homes, pending: Sequence[Pending], moves: Sequence[str] = (), state: int = 0) -> None:
    """Tell all homes at once what there is to be told, and the first how far the log was read in a state of it.

    What was posted is told no later than that, and before a log that is kept in the store itself hears that a batch is
    done: else no log would bring it again, and it stayed pending where a worker dies. `SetBack` where the first holds
    another position than is known.
    """
    with ExitStack() as stack:
        asked = [one.tells(stack.enter_context(one.telling()), (), 0) for one in pending[1:]]
        asked.append(pending[0].tells(stack.enter_context(pending[0].telling()), moves, state))
        told = homes.send([request for of in asked for request in of])
    if moves and told and told[-1] == -2:
        raise SetBack


def positions(homes: Homes, pending: Sequence[Pending]) -> list[dict[str, str]]:
    """Look at all homes at once, as `Pending.position` does at one."""
    asked = [one.asks() for one in pending]
    answers = iter(homes.send([request for of in asked for request in of]))
    return [one.noted(*islice(answers, len(of))) for one, of in zip(pending, asked, strict=True)]
