"""One settler at a time has the lease; who did not give it back is not kept out by himself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.index import RedisIndex
from clusterd.clusters.redis.settling.lease import RENEWAL, Lease, LeaseLost
from clusterd_consumer.hash_tags import spread_tags
from clusterd_consumer.redis_connection import Client, connect
from clusterd_consumer.redis_scripts import Calls, Request

from tests.contract.index_world import page

#: What settles, with what would be done by it: of a task, of a part that is to move.
TASK: Final = b"\0" + bytes(4) + b"\1\0\0\0"
STEPS: Final = {
    "renew": (),
    "dismiss": (0, 0, b"", 0),
    "move": (1, 1),
    "part": (b"", TASK[4:], b"", b"", 1),
    "whole": (TASK,),
    "parted": (TASK, b"", 1),
    "review": (1,),
}


@pytest.mark.parametrize("homes", [1, 3])
def test_a_settler_that_died_in_a_step_goes_on_and_others_wait(redis_url: str, prefix: str, homes: int) -> None:
    with connect(redis_url) as client:
        stores = [Homes(Calls(client), prefix, spread_tags(homes)) for _ in range(2)]
        mine, another = (Lease(store) for store in stores)
        assert mine.take()
        before = mine.token
        assert not another.take()
        assert mine.take()  # the store went away in the midst of a step, and nothing was given back
        home = stores[0].first
        home.command("RPUSH", "tasks", TASK)
        refused = {name: home.run(name, before, *arguments) for name, arguments in STEPS.items()}
        assert refused == dict.fromkeys(STEPS, -1), "what was sent under the lease before counts no more"
        assert home.command("LRANGE", "tasks", 0, -1) == [TASK]
        mine.renew()
        mine.give_back()
        assert another.take()
        with pytest.raises(LeaseLost):
            mine.renew()


class Interrupted(Calls):
    """Lets something happen before the lease is asked for, once."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.meanwhile: list[Callable[[], object]] = []

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        if self.meanwhile and any(request.name == "lease" for request in requests):
            self.meanwhile.pop()()
        return super().ask(requests)


@pytest.mark.parametrize("shards", [1, 3])
def test_threads_of_one_index_leave_no_lease_behind(redis_url: str, prefix: str, shards: int) -> None:
    """One took it under the other's token, and nobody could for ten seconds."""
    with connect(redis_url) as client:
        calls = Interrupted(client)
        index = RedisIndex(redis_url, prefix, shards=shards, calls=lambda _: calls)
        index.apply([page(f"http://h.example/{n}", 1, range(25 * n, 25 * n + 100)) for n in range(9)])
        index.apply([page(f"http://h.example/{n}", 2, range(10_000 * n, 10_000 * n + 99)) for n in (2, 4, 6)])
        calls.meanwhile.append(lambda: index.settle(1))
        assert index.settle() == 0
        assert not calls.meanwhile
        index.close()


@pytest.mark.parametrize("homes", [1, 3])
def test_what_takes_long_keeps_the_lease_while_it_lasts(redis_url: str, prefix: str, homes: int) -> None:
    with connect(redis_url) as client:
        store = Homes(Calls(client), prefix, spread_tags(homes))
        mine, another = Lease(store), Lease(store)
        assert mine.take()

        def left() -> list[int]:
            return [int(home.command("PTTL", "lock")) for home in store.all]

        time.sleep(RENEWAL)
        before = left()
        mine.keep()
        assert min(left()) > max(before)
        again = left()
        mine.keep()  # (not due: nothing is asked)
        assert max(left()) <= max(again)
        mine.give_back()
        assert another.take()
        time.sleep(RENEWAL)
        with pytest.raises(LeaseLost):
            mine.keep()
