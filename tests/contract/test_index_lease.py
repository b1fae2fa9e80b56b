"""One settler at a time has the lease; who did not give it back is not kept out by himself."""

from __future__ import annotations

import time

import pytest
from clusterd.clusters.redis.home import RENEW
from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.settling.lease import RENEWAL, Lease, LeaseLost
from clusterd_consumer.hash_tags import spread_tags
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.redis_scripts import Calls


@pytest.mark.parametrize("homes", [1, 3])
def test_a_settler_that_died_in_a_step_goes_on_and_others_wait(redis_url: str, prefix: str, homes: int) -> None:
    with connect(redis_url) as client:
        stores = [Homes(Calls(client), prefix, spread_tags(homes)) for _ in range(2)]
        mine, another = (Lease(store) for store in stores)
        assert mine.take()
        before = mine.token
        assert not another.take()
        assert mine.take()  # the store went away in the midst of a step, and nothing was given back
        assert stores[0].first.run(RENEW, before) == -1  # what was sent under the lease before counts no more
        mine.renew()
        mine.give_back()
        assert another.take()
        with pytest.raises(LeaseLost):
            mine.renew()


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
