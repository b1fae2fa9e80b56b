"""The transport contract: poll, publish, commit. At least once; the position in the log is kept beside the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

#: Where the next unread record of each partition stands, as text: partition → offset (Kafka) or entry id (Redis).
Position = Mapping[str, str]


class SetBack(Exception):
    """The store holds another position than it is known to: it came back from the past, or others went on."""


@dataclass(frozen=True, slots=True)
class Record:
    """One message as it lies in the log."""

    partition: str
    offset: str
    key: bytes
    value: bytes
    #: The offset that a position names once this record has been worked on.
    next: str = ""
    #: It may have been worked on before, by somebody who died before saying so.
    again: bool = False


class Transport(Protocol):
    """A consumer's and publisher's view of the log. Client-library errors leave as `errors.Unreachable`."""

    @property
    def outlives_store(self) -> bool:
        """Whether the log is kept apart from the state, so that a state that was set back is caught up by replay.

        False where both lie in one store and are set back together: then the state remembers no position.
        """
        ...

    @property
    def missed(self) -> int:
        """How many records the log deleted before they were read here."""
        ...

    @property
    def refused(self) -> int:
        """How many pages the log will never take, since they are too large: they are lost, which is logged."""
        ...

    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        """Return the next records of `topics.SKETCHES`, in order within a partition; none after ``timeout`` seconds."""
        ...

    def publish(self, topic: str, key: bytes, value: bytes) -> None:
        """Hand a message to the log; delivered by the next `flush` at the latest."""
        ...

    def flush(self, timeout: float) -> None:
        """Return when all that was published has arrived; raise `errors.Unreachable` after ``timeout`` seconds."""
        ...

    def commit(self, position: Position) -> None:
        """Say how far this consumer has come: for lag tools and Redis's pending list, the state has its own."""
        ...

    def seek(self, position: Position) -> None:
        """Go on from the position that the state remembers, wherever the last commit was (a restored store)."""
        ...

    def assigned(self) -> Position:
        """Return the partitions that this consumer reads now, and where the state said that each goes on ("": nowhere).

        That is how it was when they were placed: where the state says something else by now, others have moved them.
        """
        ...

    def changing(self) -> bool:
        """Whether the next poll may give partitions to others: who is to read on from here should know before."""
        ...

    def backlog(self) -> int:
        """Return how many records are unread, or read and not worked on; joins no group, takes nothing from anybody."""
        ...

    def close(self) -> None:
        """Leave the group and free the connections."""
        ...
