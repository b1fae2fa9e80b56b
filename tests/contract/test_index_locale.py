"""The order of fetches does not go by the server's locale: Lua compares strings by it, and few machines have C's."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from clusterd.clusters.contract import Index
from clusterd.clusters.opening import open_index
from clusterd_crawler.sketch import TEXT, Sketch

from tests.contract.index_world import expected, page, partition, settled, stream
from tests.services.redis_server import redis_server

#: Fetch times of some years, in Unix milliseconds.
BEGIN, END = 1_700_000_000_000, 1_900_000_000_000
URLS = [f"http://h.example/{number}" for number in range(40)]


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of a server in American English, whose strings of bytes stand in another order than in C's."""
    folder = tmp_path_factory.mktemp("locales")
    try:
        subprocess.run(
            ["localedef", "-i", "en_US", "-f", "UTF-8", folder / "en_US.UTF-8"], capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        lacking = f"no locale can be made ({error}): the package locales is missing"
        if os.environ.get("CI") == "true":
            pytest.fail(lacking)
        pytest.skip(lacking)
    return {"LOCPATH": str(folder), "LC_ALL": "en_US.UTF-8"}


@pytest.fixture
def indexes(tmp_path: Path, english: Mapping[str, str]) -> Iterator[tuple[Index, Index]]:
    """An index on such a server, and one in memory, which compares numbers."""
    with ExitStack() as stack:
        url = stack.enter_context(redis_server(tmp_path / "redis", environment=english))
        client = stack.enter_context(redis.Redis.from_url(url))
        assert client.eval("return {'a' < 'B' and 1 or 0}", 0) == [1], "the server's locale is C's"
        indexes = open_index(url, "t:", whole=True), open_index(None, whole=True)
        for index in indexes:
            stack.callback(index.close)
        yield indexes


def crawl(seed: int) -> list[Sketch]:
    """Pages fetched up to four times, with another main text and another frame each time; some at the same time."""
    dice = random.Random(seed)
    made = []
    for url in URLS:
        times = [dice.randrange(BEGIN, END) for _ in range(3)]
        for at in (*times, times[0]):
            family = dice.randrange(5) * 1000
            main = [n for n in range(family, family + 60) if dice.random() < 0.95]
            fetched = page(url, at, main)
            made.append(replace(fetched, whole=stream([*main, *range(10**6 + at % 1000, 10**6 + at % 1000 + 20)])))
    dice.shuffle(made)
    return made


def test_the_latest_fetch_is_current_whatever_the_servers_locale(indexes: tuple[Index, Index]) -> None:
    fetches = crawl(1)
    for index in indexes:
        for start in range(0, len(fetches), 16):
            index.apply(fetches[start : start + 16])
        settled(index)
    there, here = indexes
    assert there.versions_of(URLS) == here.versions_of(URLS)
    assert partition(there) == partition(here) == expected(fetches)
    for fetched in fetches[:20]:
        hits = [index.similar(fetched.whole, TEXT.code, limit=100, stream="whole") for index in indexes]
        said = [[(hit.url, round(hit.resemblance, 6)) for hit in found] for found in hits]
        assert said[0] == said[1]


def test_retention_forgets_by_the_time_whatever_the_servers_locale(indexes: tuple[Index, Index]) -> None:
    fetches = crawl(2)
    there, here = indexes
    for index in indexes:
        index.apply(fetches)
    for before in sorted(random.Random(3).sample(range(BEGIN, END), 8)):
        assert there.expire(before) == here.expire(before)
        assert there.forgotten() == here.forgotten()
    assert there.versions_of(URLS) == here.versions_of(URLS)
