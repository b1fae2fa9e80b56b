"""The loop: poll → decode → apply → hand on → commit. At least once, applied idempotently; nothing is ever dropped.

One step, `Worker.step`:

 1. poll     the next records of the log
 2. decode   bytes → messages; what cannot be decoded becomes a dead letter with its reason and its bytes
 3. apply    the sketches to the index; with them the store remembers how far everything *before* them was worked on
 4. hand on  what the index said: alerts, evidence for rules, verdicts, skips
 5. flush    what was published has arrived
 6. commit   for lag tools and for Redis's pending list

The position that the store remembers lags one batch behind (3): after a crash between 3 and 6 the batch comes again, is
found applied (`Record.again`), and is handed on after all. When nothing arrives, and before a share of the log is given
to others, the position catches up.

Before every attempt to apply, the store's position is compared with the one that it was last told. A store that came
back without its last second, or from a backup, remembers less; then reading goes on from what it remembers. What falls
between the look and the write, the write meets: a store moves a position only from the one that it was last told. So a
worker that stood still meanwhile, and lost its partitions to others, puts none of theirs back.

What goes wrong: a record that cannot be applied is found by applying the batch one by one, and becomes a dead letter
(one bad page never stops a partition). A store or a log that does not answer is asked again with growing pauses, for as
long as it takes, at the step at which it failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from clusterd_crawler.errors import MessageError, Unreachable
from clusterd_crawler.message import Failure, File, Redirect, SkipReport, decode
from clusterd_crawler.sketch import Sketch

from clusterd_consumer.dead_letters import DeadLetters
from clusterd_consumer.insisting import Insist, Insisting, StopFlag, Stopped
from clusterd_consumer.transport.contract import Position, Record, SetBack, Transport

log = logging.getLogger(__name__)

#: Seconds for what was published in a step to arrive, before a log that takes nothing counts as away: it is waited for
#: again, and the daemon is told to wait.
FLUSH_TIMEOUT: Final = 10.0

Result = TypeVar("Result")
Outcome_co = TypeVar("Outcome_co", covariant=True)


class Applies(Protocol[Outcome_co]):
    """What the worker needs of the index (`clusterd.clusters.contract.Index`)."""

    def apply(
        self, sketches: Sequence[Sketch], position: Position | None = None, known: Position | None = None
    ) -> Sequence[Outcome_co]:
        """Apply a batch and remember the position with it (empty: of a log that remembers it itself).

        `SetBack`, and no position is moved, where the state holds another one of these partitions than is known.
        """
        ...

    def position(self) -> dict[str, str]:
        """Return the position that the state remembers."""
        ...

    def went_back(self) -> bool:
        """Whether, at the latest `position`, part of the state had been set back since this was last asked."""
        ...


@dataclass(slots=True)
class Batch:
    """What one poll brought, decoded."""

    sketches: list[Sketch] = field(default_factory=list)
    #: The record of each sketch.
    records: list[Record] = field(default_factory=list)
    skips: list[SkipReport] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    files: list[File] = field(default_factory=list)


class Worker(Generic[Result]):
    """Reads one member's share of the log into an index. One thread; ``stopping`` may be set from any."""

    def __init__(
        self,
        transport: Transport,
        index: Applies[Result],
        hand_on: Callable[[Batch, Sequence[Result]], None],
        dead_letters: DeadLetters,
        *,
        batch: int = 256,
        poll_timeout: float = 0.5,
        on_trouble: Callable[[str], None] | None = None,
        on_set_back: Callable[[], None] = lambda: None,
        stopping: StopFlag | None = None,
        insist: Insist | None = None,
    ) -> None:
        self._transport = transport
        self._index = index
        self._hand_on = hand_on
        self._dead = dead_letters
        self._size = batch
        self._poll_timeout = poll_timeout
        self._stopping = stopping or StopFlag()
        #: Called when the store may have come back from the past, not where others merely went on: what else it has
        #: lost is to be looked after.
        self._on_set_back = on_set_back
        self._insist: Insist = insist or Insisting(on_trouble, self._stopping)
        #: Up to where records were worked on whole; and what the store was last told of it, "" where of nothing yet.
        self._done: dict[str, str] = {}
        self._stored: dict[str, str] = {}
        #: What it is being told: where no answer arrives, it may hold that all the same.
        self._telling: dict[str, str] = {}
        self._known: set[str] = set()
        self.messages = 0

    def insist(self, work: Callable[[], object]) -> None:
        """Do work between two steps as theirs is done: again while the store or the log does not answer."""
        self._insist(work)

    @property
    def dead_letters(self) -> int:
        """How many records this worker has given up."""
        return self._dead.count

    @property
    def missed(self) -> int:
        """How many records the log deleted before they were read."""
        return self._transport.missed

    def run(self, after_step: Callable[[], None] | None = None) -> None:
        """Work until ``stopping`` is set; the batch in hand is finished and committed, the group is left."""
        try:
            while not self._stopping.is_set():
                self.step()
                if after_step is not None:
                    after_step()
        except Stopped:
            log.info("stopped while waiting; what was not committed comes again")
        finally:
            self.leave()

    def leave(self) -> None:
        """Tell the store once more how far the work went, if it listens; leave the group."""
        try:
            self._remember()
        except (SetBack, Unreachable) as error:
            log.info("the store was not told the last position: %s", error)
        finally:
            self._transport.close()

    def step(self) -> int:
        """Do the six steps once; return how many records were worked on."""
        try:
            if self._transport.changing():  # whoever reads on from here would do our last batch again
                self._insist(self._remember)
            # 1. poll
            records = self._insist(lambda: self._transport.poll(self._size, self._poll_timeout))
            self._insist(self._follow_assignment)
            if not records:
                self._insist(self._remember)
                return 0
            self._work(records)
        except SetBack:
            self._insist(self._go_back)
            return 0
        self.messages += len(records)
        return len(records)

    def _work(self, records: Sequence[Record]) -> None:
        """Do the steps from the second on."""
        for record in records:
            self._done.setdefault(record.partition, record.offset)
        # 2. decode
        batch = self._decode(records)
        # 3. apply
        outcomes = self._apply(batch)
        # 4. hand on
        self._insist(lambda: self._hand_on(batch, outcomes))
        # 5. flush
        self._insist(lambda: self._transport.flush(FLUSH_TIMEOUT))
        # 6. commit
        self._done.update({record.partition: record.next for record in records})
        self._insist(lambda: self._transport.commit(self._done))

    def _follow_assignment(self) -> None:
        """Know what the store remembers of partitions that are new to us; forget those that somebody else reads."""
        ours = self._transport.assigned()
        for positions in (self._done, self._stored):
            for partition in positions.keys() - ours.keys():
                del positions[partition]
        self._stored.update({p: at for p, at in ours.items() if p not in self._known})
        self._known = set(ours)

    def _look(self) -> None:
        """Raise `SetBack` where the store does not hold the position that it was last told, or has gone back to it.

        A log that lies in the store goes back with it: there is nothing to read again, but it is said all the same.
        """
        held = self._index.position()
        if not self._transport.outlives_store:
            if self._index.went_back():
                log.warning("the store may have lost its latest state, and the log with it")
                self._on_set_back()
            return
        self._stored.update(self._telling.items() & held.items())
        lost = {p: held.get(p, "") for p, told in self._stored.items() if held.get(p, "") != told}
        went_back = self._index.went_back()
        if lost and not went_back and all(_further(there, self._stored[p]) for p, there in lost.items()):
            log.warning("others have worked on these partitions meanwhile; going on where they are: %s", lost)
            raise SetBack
        if went_back or lost:
            log.warning("the store may have lost its latest state; reading again from %s", lost or held)
            self._on_set_back()
            raise SetBack

    def _tell(self, sketches: Sequence[Sketch], position: dict[str, str]) -> list[Result]:
        """Apply sketches with the position, unless the store was set back since it was last told one."""
        self._look()
        self._telling = position
        try:
            outcomes = list(self._index.apply(sketches, position, self._stored))
        except SetBack:
            self._look()  # says what happened between the look and the write
            raise
        self._stored.update(position)
        self._telling = {}
        return outcomes

    def _go_back(self) -> None:
        """Go on from what the store remembers."""
        held = self._index.position()
        self._transport.seek(held)
        self._done.clear()
        self._telling = {}
        self._stored = {p: held.get(p, "") for p in self._known}

    def _remember(self) -> None:
        """Let the store remember what has been worked on, where no later batch has told it yet."""
        self._look()
        if self._transport.outlives_store and not self._is_stored(self._done):
            self._tell([], dict(self._done))

    def _is_stored(self, position: Position) -> bool:
        return position.items() <= self._stored.items()

    def _decode(self, records: Sequence[Record]) -> Batch:
        batch = Batch()
        for record in records:
            try:
                message = decode(record.value)
            except MessageError as error:
                self._bury(record, error.reason)
                continue
            if isinstance(message, Sketch):
                batch.sketches.append(message)
                batch.records.append(record)
            elif isinstance(message, SkipReport):
                batch.skips.append(message)
            elif isinstance(message, Redirect):
                batch.redirects.append(message)
            elif isinstance(message, File):
                batch.files.append(message)
            else:
                batch.failures.append(message)
        return batch

    def _apply(self, batch: Batch) -> list[Result]:
        """Apply the batch; where it fails, one by one, and bury who is to blame."""
        position = dict(self._done) if self._transport.outlives_store else {}
        try:
            return self._insist(lambda: self._attempt(batch, position))
        except (SetBack, Stopped, Unreachable):
            raise
        except Exception as error:
            log.warning("a batch of %d failed (%s: %s); one by one", len(batch.sketches), type(error).__name__, error)
            return self._apply_one_by_one(batch, position)

    def _attempt(self, batch: Batch, position: dict[str, str]) -> list[Result]:
        """Apply the batch; where the store does not answer, it may have been applied all the same."""
        try:
            return self._tell(batch.sketches, position)
        except SetBack:
            raise
        except Exception:
            batch.records = [replace(record, again=True) for record in batch.records]
            raise

    def _apply_one_by_one(self, batch: Batch, position: dict[str, str]) -> list[Result]:
        outcomes: list[Result] = []
        good: list[tuple[Sketch, Record]] = []
        for sketch, record in zip(batch.sketches, batch.records, strict=True):
            try:
                outcomes += self._insist(partial(self._tell, [sketch], position))
            except (SetBack, Stopped, Unreachable):
                raise
            except Exception as error:
                self._bury(record, f"{type(error).__name__}: {error}")
            else:
                good.append((sketch, record))
        batch.sketches = [sketch for sketch, _ in good]
        batch.records = [record for _, record in good]
        return outcomes

    def _bury(self, record: Record, reason: str) -> None:
        self._insist(lambda: self._dead.bury(record, reason))
        self._insist(self._dead.tell)


def _further(there: str, told: str) -> bool:
    """Whether an offset lies beyond another: of a partition that was taken from us while we stood still."""
    return there.isdecimal() and (not told or (told.isdecimal() and int(there) > int(told)))
