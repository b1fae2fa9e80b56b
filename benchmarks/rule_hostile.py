"""Hosts made to hurt the learners and the keys: what they cost, against what an ordinary host costs.

- parameters by the million: 50,000 URLs that bring 20 names each that no other URL has, two of each content;
- a hundred URLs of 10,000 parameters each, two of each content;
- a thousand rules on one host, each of which writes a value into itself, so that it doubles each time they apply.

Seconds are of the processor; memory is what is held (`tracemalloc`) once a fifth of the pages are known.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from random import Random
from time import process_time

from clusterd.learning.contract import Page
from clusterd.learning.koppula.selection import Evidence
from clusterd.learning.koppula.tokenize import split_url
from clusterd.learning.learner import Learner
from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id

from benchmarks.results import Row, result
from benchmarks.rule_speed import HOST, learned, one_host

#: URLs of each stream, and their parameters.
NAMES, WIDE = (50_000, 20), (100, 10_000)
PRECISION = 0.95

Stream = Callable[[int], Iterator[Page]]


def names(count: int) -> Iterator[Page]:
    """Yield pages whose URLs have names of their own."""
    for number in range(count):
        query = "&".join(f"n{number}x{m}=1" for m in range(NAMES[1]))
        yield Page(f"http://{HOST}/list?id={number}&{query}", number // 2 + 1)


def wide(count: int) -> Iterator[Page]:
    """Yield pages whose URLs have ten thousand parameters."""
    query = "&".join(f"p{m}={m}" for m in range(WIDE[1]))
    for number in range(count):
        yield Page(f"http://{HOST}/list?id={number}&{query}", number // 2 + 1)


def run() -> list[Row]:
    """Measure; the peer is an ordinary host of as many URLs."""
    found = []
    for subject, stream, count in (
        (f"{NAMES[0]:,} URLs with {NAMES[1]} names of their own", names, NAMES[0]),
        (f"{WIDE[0]} URLs of {WIDE[1]:,} parameters", wide, WIDE[0]),
    ):
        for work, learn in (("live", _live), ("the paper's", _paper)):
            plain, hostile = learn(one_host, count), learn(stream, count)
            title = f"hostile: learning, {work}"
            found.append(result(title, subject, hostile, "us CPU/URL", "ordinary host", round(plain / hostile, 3)))
        plain, hostile = _held(one_host, count // 5), _held(stream, count // 5)
        found.append(
            result("hostile: evidence held", subject, hostile, "bytes/URL", "ordinary host", round(plain / hostile, 3))
        )
    return [*found, result("hostile: key of a URL", "1,000 rules that double a value", _doubling(), "us CPU/URL")]


def _live(stream: Stream, count: int) -> float:
    pages, seconds = learned(stream(count))
    return seconds / pages * 1e6


def _paper(stream: Stream, count: int) -> float:
    clusters: dict[int, list[str]] = {}
    for page in stream(count):
        clusters.setdefault(page.content, []).append(page.url)
    several = [urls for urls in clusters.values() if len(urls) > 1]
    start = process_time()
    Evidence([[split_url(url) for url in urls] for urls in several], Random(0)).select(PRECISION)
    return (process_time() - start) / sum(map(len, several)) * 1e6


def _held(stream: Stream, count: int) -> float:
    """Return the bytes that a learner holds for each page shown to it."""
    learner = Learner(HOST)
    tracemalloc.start()
    for page in stream(count):
        learner.observe([page])
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held / count


def _doubling() -> float:
    """Return what the key of a URL costs whose value all of a host's rules write into itself."""
    value = Key(name="a")
    edits = (Edit(Key(name="a", deep=1), "copy", source=value),)
    made = []
    for number in range(1000):
        context = (Condition(value, "like", ("*-*",)), Condition(Key(name=f"p{number % 250}"), "any"))
        made.append(Rule(rule_id(HOST, context, edits, name=str(number)), HOST, context, edits))
    keys = Keys()
    keys.load(RuleSet(HOST, 1, tuple(made)))
    url = f"http://{HOST}/?a=x-y&" + "&".join(f"p{number}=1" for number in range(60))
    start = process_time()
    for _ in range(20):
        keys.key(url)
    return (process_time() - start) / 20 * 1e6


if __name__ == "__main__":
    for measured in run():
        print(measured)
