"""Names of clusters that fall apart are numbers of contents, and are no content: their room is given back, too."""

from __future__ import annotations

from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.redis_scripts import Calls
from clusterd_crawler.sketch import Sketch

from tests.contract.index_world import expected, page, partition, settled

#: Nodes of a block (`NODES` in lua/records.lua).
BLOCK = 146
LEFT, RIGHT = [*range(100)], [*range(1000, 1100)]


def test_a_name_that_is_the_last_of_its_block_frees_what_has_no_other(redis_url: str, prefix: str) -> None:
    """All contents of the second block are gone by when its last number becomes the name of a part."""
    crawl: list[Sketch] = []
    index = RedisIndex(redis_url, prefix)

    def apply(*pages: Sketch) -> None:
        crawl.extend(pages)
        index.apply(pages)
        settled(index)
        index.expire(10**9)

    def shown(name: str, at: int, shingles: list[int]) -> Sketch:
        return page(f"http://h.example/{name}", at, shingles)

    apply(shown("left", 1, LEFT), shown("right", 1, RIGHT), shown("bridge", 1, LEFT + RIGHT))
    apply(*(shown(f"other-{n}", 1, [10_000 + n]) for n in range(4, BLOCK)))
    apply(*(shown("changing", at, [20_000 + at]) for at in range(BLOCK, 2 * BLOCK - 1)))
    apply(shown("changing", 10**6, LEFT))
    with connect(redis_url) as client:
        home = Home(Calls(client), prefix)
        assert home.counters().nodes == 2 * BLOCK - 2
        apply(shown("bridge", 2, LEFT))
        assert home.counters().nodes >= 2 * BLOCK - 1
        assert partition(index) == expected(crawl)
        assert not client.exists(f"{prefix}{{0}}:n:1", f"{prefix}{{0}}:n:1:left")
        assert not home.command("HEXISTS", "b", 1)
    index.close()
