"""A store of Redis Streams that is emptied, restarted or a replica for a while: a member goes on, or can leave."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import redis
from clusterd_consumer.embedded import embedded
from clusterd_consumer.insisting import Insisting
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.transport.redis_streams import RedisStreamTransport

from tests.consumer.redis_members import member, publish, work_off
from tests.services.redis_server import free_port, redis_server
from tests.services.waiting import wait_until


def test_a_store_that_was_emptied_is_joined_anew(client: redis.Redis, prefix: str, stream: str) -> None:
    worker = member(client, prefix)
    publish(worker, 3)
    work_off(worker, 3)
    client.delete(stream)
    assert list(worker.poll(10, 0.05)) == []
    publish(worker, 4)
    work_off(worker, 4)


@pytest.mark.parametrize("left", ["nothing", "the pages of others"])
def test_a_store_that_was_emptied_can_be_left(client: redis.Redis, prefix: str, stream: str, left: str) -> None:
    """A daemon that was asked to stop ended with an error that nobody had expected."""
    worker = member(client, prefix)
    assert not worker.poll(10, 0.01)
    client.delete(stream)
    if left != "nothing":
        publish(member(client, prefix), 1)
    worker.close()
    assert client.exists(stream) == (left != "nothing")


@pytest.mark.parametrize("change", ["emptied", "a replica"])
def test_a_store_that_changes_under_who_waits_is_asked_again(tmp_path: Path, prefix: str, change: str) -> None:
    """Who waits for entries is told by an error of its own, which ended the daemon as a fault of clusterd."""
    with redis_server(tmp_path) as url, connect(url) as client, connect(url) as other:
        worker = member(client, prefix)
        assert not worker.poll(10, 0.05)

        def change_under_it() -> None:
            wait_until(lambda: other.info("clients")["blocked_clients"] == 1)
            if change == "emptied":
                other.flushdb()
            else:
                other.execute_command("REPLICAOF", "127.0.0.1", free_port())
                time.sleep(0.5)
                other.execute_command("REPLICAOF", "NO", "ONE")

        changing = threading.Thread(target=change_under_it)
        changing.start()
        assert not Insisting()(lambda: worker.poll(10, 10))
        changing.join()
        publish(worker, 4)
        work_off(worker, 4)
        worker.close()


def test_a_store_that_was_emptied_before_pending_pages_are_claimed(
    client: redis.Redis, prefix: str, stream: str
) -> None:
    transport = RedisStreamTransport(client, prefix=prefix, group="g", claim_after=0.0)
    assert not transport.poll(10, 0.01)
    client.delete(stream)
    assert not transport.poll(10, 0.01)
    publish(transport, 3)
    assert len(transport.poll(10, 0.1)) == 3
    transport.close()


def test_a_server_that_miscounts_after_a_restart_is_not_waited_for(tmp_path: Path, prefix: str, stream: str) -> None:
    with embedded(tmp_path) as url, redis.Redis.from_url(url) as client:
        worker = member(client, prefix)
        publish(worker, 20)
        work_off(worker, 20)
        client.bgrewriteaof()
        while client.info("persistence")["aof_rewrite_in_progress"]:
            time.sleep(0.01)
        publish(worker, 30)
        work_off(worker, 30)
    with embedded(tmp_path) as url, redis.Redis.from_url(url) as client:
        (group,) = client.xinfo_groups(stream)
        assert group["lag"] in (0, 30)  # (Redis 8 counts right)
        worker, onlooker = member(client, prefix), member(client, prefix)
        assert onlooker.backlog() == 0
        client.xtrim(stream, maxlen=0, approximate=False)  # as what was worked off is
        publish(worker, 3)
        assert onlooker.backlog() == 3
        work_off(worker, 3)
        assert worker.backlog() == 0
        publish(worker, 5)
        assert (worker.backlog(), onlooker.backlog()) == (5, 5)
