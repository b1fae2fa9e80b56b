"""A store that is set back between a search and the writing of what it found: nothing of that counts, or is lost."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clusterd.clusters.contract import SPLITS
from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import Client, connect
from clusterd_consumer.redis_scripts import Calls, Request

from tests.contract.index_world import expected, page, partition, settled

A, B, C = (f"http://h.example/{letter}" for letter in "abc")
LEFT, RIGHT, BRIDGE = range(100), range(1000, 1100), [*range(100), *range(1000, 1100)]
ELSEWHERE = range(7000, 7100)


class Acting(Calls):
    """Calls that let something else happen before the first script of each of these names runs."""

    def __init__(self, client: Client, acts: Mapping[str, Callable[[], None]]) -> None:
        super().__init__(client)
        self._acts = dict(acts)

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        for request in requests:
            self._acts.pop(request.name, lambda: None)()
        return super().ask(requests)


def test_no_side_moves_for_a_search_that_the_store_no_longer_knows_of(redis_url: str, prefix: str) -> None:
    """B leaves and its cluster is searched; then the store is as it was before B was dismissed, the lease included."""
    crawl = [page(A, 1, LEFT), page(B, 1, BRIDGE), page(C, 1, RIGHT), page(B, 2, ELSEWHERE)]
    kept: dict[bytes, bytes] = {}
    with connect(redis_url) as client:

        def keep() -> None:
            kept.update({key: client.dump(key) for key in client.scan_iter(f"{prefix}*", count=10_000)})

        def set_back() -> None:
            client.delete(*client.scan_iter(f"{prefix}*", count=10_000))
            for key, value in kept.items():
                client.restore(key, 0, value)

        index = RedisIndex(redis_url, prefix, calls=lambda own: Acting(own, {"dismiss": keep, "part": set_back}))
        for one in crawl:
            index.apply([one])
        numbers = Home(Calls(client), prefix).counters().nodes
        assert index.settle() > 0
        assert kept
        assert Home(Calls(client), prefix).counters().nodes == numbers  # a side that moves takes a number for its name
        settled(index)
        assert Home(Calls(client), prefix).counters().nodes > numbers
        assert partition(index) == expected(crawl)
        index.close()


def test_pages_that_a_store_has_lost_since_they_were_found_are_searched_for_no_more(
    redis_url: str, prefix: str
) -> None:
    """A side, and the rest, that are in no cluster: each would be found beside the other again and again."""
    index = RedisIndex(redis_url, prefix)
    index.apply([page(A, 1, LEFT), page(B, 1, RIGHT), page(C, 1, ELSEWHERE)])
    task = struct.pack("<BI3I", 0, 1, 1, 2, 3)
    with connect(redis_url) as client:
        home = Home(Calls(client), prefix)
        home.command("RPUSH", "tasks", task, task[:-4])
        home.run("lease", "token", "")
        rest, side = struct.pack("<I", 3), struct.pack("<I", 2)
        assert home.run("part", "token", task, b"", rest, side, SPLITS) == 1
        assert home.command("LRANGE", "tasks", 0, -1) == [task[:-4]]
        home.command("DEL", "lock")
    assert index.settle() == 0
    assert index.splits() == []
    index.close()


def test_splits_that_nobody_asks_for_are_kept_up_to_a_number_the_latest(redis_url: str, prefix: str) -> None:
    """Of one home and, where a search went over several, by the call that tells of all its sides."""
    index = RedisIndex(redis_url, prefix)
    sides = [page(f"http://h.example/side-{n}", 1, range(1000 * n, 1000 * n + 50)) for n in range(1, 6)]
    index.apply([*sides, page(A, 1, LEFT), page(B, 1, [*LEFT, 5000])])
    task = struct.pack("<BI6I", 0, 1, *range(1, 7))
    with connect(redis_url) as client:
        home = Home(Calls(client), prefix)
        home.command("RPUSH", "tasks", task, task)
        home.run("lease", "token", "")
        rest_, apart = struct.pack("<I", 6), struct.pack("<5I", *range(1, 6))
        assert home.run("part", "token", task, b"", rest_, apart, 3) == 1
        assert [split.url for split in index.splits()] == [one.url for one in sides[2:]]
        further = [struct.pack("<BII", 0, 6, 2) + f"http://h.example/{n}".encode() for n in range(2)]
        assert home.run("parted", "token", task + rest_, b"", 4, *further) == 1
        home.command("DEL", "lock")
    told = [split.url for split in index.splits()]
    assert told == [sides[3].url, sides[4].url, "http://h.example/0", "http://h.example/1"]
    index.close()


def test_a_search_goes_on_from_what_another_policy_left_in_searches_of_that_alone(redis_url: str, prefix: str) -> None:
    """Else the rest would be a side that came off under the other, where it is in no cluster with what is searched."""
    index = RedisIndex(redis_url, prefix)
    index.apply([page(A, 1, LEFT), page(B, 1, [*LEFT, 5000]), page(C, 1, ELSEWHERE)])
    tasks = [struct.pack("<BI2I", policy, 1, 1, 3) for policy in (0, 0, 1)]
    with connect(redis_url) as client:
        home = Home(Calls(client), prefix)
        home.command("RPUSH", "tasks", *tasks)
        home.run("lease", "token", "")
        rest, side = struct.pack("<I", 2), struct.pack("<I", 3)
        assert home.run("part", "token", tasks[0], b"", rest, side, SPLITS) == 1
        assert home.command("LRANGE", "tasks", 0, -1) == [tasks[1] + rest, tasks[2]]
    index.close()


def test_a_side_that_no_page_shows_any_more_is_no_split(redis_url: str, prefix: str) -> None:
    index = RedisIndex(redis_url, prefix)
    index.apply([page(A, 1, LEFT), page(B, 1, [*LEFT, 5000]), page(C, 1, RIGHT)])
    index.apply([page(C, 2, ELSEWHERE)])
    task = struct.pack("<BI2I", 0, 1, 1, 3)
    with connect(redis_url) as client:
        home = Home(Calls(client), prefix)
        home.command("RPUSH", "tasks", task)
        home.run("lease", "token", "")
        assert home.run("part", "token", task, b"", struct.pack("<I", 1), struct.pack("<I", 3), SPLITS) == 1
        home.command("DEL", "lock")
    assert index.splits() == []
    index.close()
