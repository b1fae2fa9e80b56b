"""A reader that stands still while others go on in its partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from clusterd.clusters.contract import Index, Outcome
from clusterd_consumer.dead_letters import DeadLetters
from clusterd_consumer.transport.contract import Position
from clusterd_consumer.worker import Batch, Worker
from clusterd_crawler.message import encode
from clusterd_crawler.sketch import Sketch

from tests.contract.index_world import Opened, expected, partition, settled
from tests.contract.test_index_marks import Log, pages


class Interrupted:
    """An index at which its reader stands still once, between its look at the position and the write."""

    def __init__(self, index: Index, meanwhile: Callable[[], object]) -> None:
        self.position, self.went_back = index.position, index.went_back
        self._index = index
        self._meanwhile: Callable[[], object] | None = meanwhile

    def apply(
        self, sketches: Sequence[Sketch], position: Position | None = None, known: Position | None = None
    ) -> list[Outcome]:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile:
            meanwhile()
        return self._index.apply(sketches, position, known)


def test_a_reader_that_stood_still_puts_no_position_back(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    crawl = pages(0, 60)
    log, taking_over = Log(), Log()
    log.partitions = taking_over.partitions = {str(n): [encode(one) for one in crawl[n::2]] for n in range(2)}
    handed: list[str] = []

    def hand_on(batch: Batch, outcomes: Sequence[Outcome]) -> None:
        handed.extend(sketch.url for sketch in batch.sketches)

    def reader(log: Log, index: Index | Interrupted) -> Worker[Outcome]:
        return Worker(log, index, hand_on, DeadLetters(log), batch=8)

    index = opened()
    other = reader(taking_over, index)

    def take_over() -> None:
        for _ in range(4):
            other.step()

    frozen = reader(log, Interrupted(index, take_over))
    frozen.step()
    assert index.position() == {"0": "12", "1": "12"}  # as the other one told it, a batch behind what it has done
    assert len(handed) == len(set(handed)) == 32
    assert "others have worked on these partitions meanwhile" in caplog.text
    other.step()
    assert "may have lost its latest state" not in caplog.text
    assert len(handed) == len(set(handed)) == 40
    while other.step():
        pass
    settled(index)
    assert partition(index) == expected(crawl)
