"""Rules changed by who does not reach the crawls' log, told there by daemons that may die, or lose the log, at it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import redis
from clusterd.handed_over import HandedOver
from clusterd.learning.rulebook.redis import RuleBook
from clusterd_crawler.errors import Unreachable

from tests.clusterd.made_up_rules import HOST, Log, Serve


class Interrupted(redis.Redis):
    """A client before whose first removal somebody else acts; behind it the log may be away."""

    act: Callable[[], object] | None = None
    dies = False

    def srem(self, *arguments: Any) -> Any:
        act, self.act = self.act, None
        if act is not None:
            act()
        removed = super().srem(*arguments)
        if act is not None and self.dies:
            raise Unreachable("the log")
        return removed


@pytest.mark.parametrize("dies", [False, True])
def test_what_changes_while_a_daemon_tells_of_a_change_is_told(
    serve: Serve, book: RuleBook, log: Log, redis_url: str, prefix: str, dies: bool
) -> None:
    daemon, command = serve(), serve()
    with Interrupted.from_url(redis_url) as client:
        told = HandedOver(client, prefix)
        command.sets.leave_to_others(told.add)
        command.unskip(f"http://{HOST}/a", at=1)
        client.act, client.dies = lambda: command.unskip(f"http://{HOST}/b", at=2), dies
        with suppress(Unreachable):
            told.tell(daemon.sets)
        told.tell(daemon.sets)
        assert not told.waiting()
    assert [rules.version for rules in log.sets] == [1, 2]
    assert book.announced(HOST) == book.version(HOST) == 2
