"""What a daemon hands on: verdicts, evidence for rules; a fault there does not stop the stream."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from clusterd.clusters.contract import Outcome
from clusterd.handing import Handing, is_nearly_its_match, verdict
from clusterd.services import Services, process_pending, publish_sketches
from clusterd_consumer.transport.contract import Record
from clusterd_consumer.worker import Batch
from clusterd_crawler import topics
from clusterd_crawler.clock import now_ms
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.message import Failure, SkipReport, encode
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.verdict import decode_verdict

from clusterd import health
from tests.contract.index_world import page

CLUSTERD = [sys.executable, "-m", "clusterd"]


def outcome(url: str, **more: Any) -> Outcome:
    told: dict[str, Any] = {
        "url": url,
        "fetched_at": 5,
        "new": True,
        "identity": None,
        "match": None,
        "resemblance": 0.0,
        "clusters": {},
    }
    return Outcome(**{**told, **more})


def batch_of(*sketches: Sketch, skips: Sequence[SkipReport] = ()) -> Batch:
    records = [Record("p", str(n), b"", b"") for n, _ in enumerate(sketches)]
    return Batch(list(sketches), records, list(skips))


def test_a_verdict_names_the_match_and_the_nearest_cluster() -> None:
    clusters = {"related": ("r", 9), "near": ("n", 3)}
    told = verdict("crawl", outcome("http://h/a", match="http://h/b", resemblance=0.97, clusters=clusters))
    assert (told.crawl, told.match, told.cluster, told.policy, told.size) == ("crawl", "http://h/b", "n", "near", 3)
    alone = verdict("crawl", outcome("http://h/a"))
    assert (alone.match, alone.cluster, alone.size) == (None, None, 1)
    only_related = verdict("crawl", outcome("http://h/a", clusters={"related": ("r", 9)}))
    assert (only_related.cluster, only_related.policy) == ("r", "related")


NEAR = {"near": ("n", 2), "related": ("r", 9)}


@pytest.mark.parametrize(
    ("url", "more", "nearly"),
    [
        ("http://h/a?id=7&sid=x", {}, True),
        ("http://h/a?id=8", {}, False),
        ("http://h/b?id=7&sid=x", {}, False),
        ("https://h/a?id=7", {}, False),
        ("http://h/a?id=7&sid=x", {"identity": "text"}, False),
        ("http://h/a?id=7&sid=x", {"identity": "sketch"}, True),
        ("http://h/a?id=7&sid=x", {"resemblance": 0.5, "clusters": {"related": ("r", 9)}}, True),
        ("http://h/a?id=7&sid=x", {"resemblance": 0.49}, False),
        ("http://h/a?id=7&sid=x", {"match": None}, False),
        ("http://[h/a?id=7&sid=x", {}, False),
    ],
)
def test_a_page_like_another_one_whose_url_has_other_parameters_is_nearly_its_match(
    url: str, more: dict[str, Any], nearly: bool
) -> None:
    given = {"match": "http://h/a?id=7", "resemblance": 0.95, "clusters": NEAR, **more}
    assert is_nearly_its_match(outcome(url, **given)) is nearly


RELATED: dict[str, tuple[str, int]] = {"related": ("r", 9)}


@pytest.mark.parametrize(
    ("identity", "clusters", "nearly"),
    [("near", NEAR, False), ("near", RELATED, True), ("words", RELATED, False), ("unnumbered", NEAR, False)],
)
def test_what_rules_may_bring_together_is_not_spoken_of(
    identity: str, clusters: dict[str, tuple[str, int]], nearly: bool
) -> None:
    given = outcome("http://h/a?id=7&sid=x", match="http://h/a?id=7", resemblance=0.8, clusters=clusters)
    assert is_nearly_its_match(given, identity) is nearly


def test_a_crawl_that_waits_gets_its_verdict(services: Services) -> None:
    waiting = Sketch(**{**_fields(page("http://h/2", 2, range(50))), "crawl": "c7", "wants_verdict": True})
    publish_sketches(services, [page("http://h/1", 1, range(50)), waiting])
    process_pending(services)
    ((_, entry),) = services.redis.xrange(topics.stream(services.config.redis_prefix, topics.VERDICTS))
    told = decode_verdict(entry[topics.FIELD_VALUE])
    assert entry[topics.FIELD_KEY] == b"c7"
    assert (told.url, told.match, told.resemblance, told.size) == ("http://h/2", "http://h/1", 1.0, 2)


@pytest.mark.parametrize("more", [[], [50]], ids=["equal", "near"])
@pytest.mark.parametrize("later", [0, 1], ids=["again", "recrawled"])
def test_what_is_told_again_names_the_match(services: Services, more: list[int], later: int) -> None:
    """Also where a worker died between the store and what it had to tell: the index tells who joins whom once."""
    other = page("http://h/1", 1, range(50))
    asked = Sketch(**{**_fields(page("http://h/2", 2, [*range(50), *more])), "crawl": "c7", "wants_verdict": True})
    (told,) = services.index.apply([other, asked])[1:]
    asked = replace(asked, fetched_at=asked.fetched_at + later)
    batch = batch_of(asked)
    batch.records = [replace(record, again=not later) for record in batch.records]
    transport = services.transport()
    Handing(services, transport, health.Report())(batch, services.index.apply([asked]))
    transport.flush(5)
    assert told.match == "http://h/1"
    assert told.resemblance >= 0.9
    alerts = {(one.match, one.resemblance) for one in services.alerts.since()}
    assert alerts == (set() if later else {(told.match, round(told.resemblance, 4))})
    ((_, entry),) = services.redis.xrange(topics.stream(services.config.redis_prefix, topics.VERDICTS))
    verdict = decode_verdict(entry[topics.FIELD_VALUE])
    assert (verdict.match, verdict.resemblance) == (told.match, pytest.approx(told.resemblance))


def test_a_crawl_whose_clock_is_ahead_is_told_of(services: Services, caplog: pytest.LogCaptureFixture) -> None:
    now = now_ms()
    ahead = [replace(page(f"http://h/{n}", n, range(50)), fetched_at=now + 3_600_000, crawl="c7") for n in (1, 2)]
    handing = Handing(services, services.transport(), health.Report())
    brought_in = replace(page("http://h/0", 0, range(50)), fetched_at=now + 7_200_000)  # of no crawl
    for sketches in ([replace(ahead[0], fetched_at=now + 1000)], [brought_in], [brought_in, ahead[0]], [ahead[1]]):
        handing(batch_of(*sketches), services.index.apply(sketches))
    (told,) = [record.getMessage() for record in caplog.records if record.name == "clusterd.handing"]
    assert re.match(r"http://h/1 of crawl c7 is dated 3[56]\d\d s ahead of this machine's clock", told)


def _fields(sketch: Sketch) -> dict[str, Any]:
    return {name: getattr(sketch, name) for name in Sketch.__dataclass_fields__}


def test_a_fault_in_the_rule_book_does_not_stop_the_stream(
    services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def observe(self, *_: Any) -> None:
            raise ZeroDivisionError("a host tripped the learner")

        def record_skips(self, *_: Any) -> None:
            raise Unreachable("the store is away")

    services.__dict__["rulebook"] = Broken()
    report = health.Report()
    handing = Handing(services, services.transport(), report)
    handing(batch_of(page("http://h/1", 1, range(9))), [outcome("http://h/1")])
    assert report.last_error == "ZeroDivisionError: a host tripped the learner"
    assert "the stream goes on" in caplog.text
    with pytest.raises(Unreachable):
        handing(batch_of(skips=[SkipReport("u", "r", "k", "v", 1)]), [])


@pytest.mark.parametrize("key", ["rb:{h}:log", topics.stream("", topics.ALERTS)])
def test_what_an_outage_leaves_of_a_batch_is_done_and_nothing_of_it_twice(services: Services, key: str) -> None:
    """A key of the rule book that was not to be had told everybody the alerts of the batch at each attempt."""
    batch = batch_of(page("http://h/1", 1, range(50)), page("http://h/2", 2, range(50)))
    outcomes = services.index.apply(batch.sketches)
    handing = Handing(services, services.transport(), report := health.Report())
    services.redis.set(taken := f"{services.config.redis_prefix}{key}", "another program's")
    for _ in range(3):
        with pytest.raises(Unreachable):
            handing(batch, outcomes)
    services.redis.delete(taken)
    handing(batch, outcomes)
    assert {one.url for one in services.rulebook.book.evidence("h").pages} == {"http://h/1", "http://h/2"}
    assert len(list(services.alerts.since())) == report.tallies.alerts.total() == len(services.index.policies())


def test_skips_failures_and_pages_reach_the_rule_book(services: Services) -> None:
    services.publisher.publish(topics.SKETCHES, b"u", encode(SkipReport("http://h/a?s=1", "r1", "k", "http://h/a", 3)))
    services.publisher.publish(topics.SKETCHES, b"b", encode(Failure("http://h/b", 5, 503, crawl="one")))
    publish_sketches(services, [page("http://h/a", 1, range(50))])
    process_pending(services)
    assert [skip.url for skip in services.rulebook.book.skips()] == ["http://h/a?s=1"]
    noted = {one.url: one.state for one in services.rulebook.book.evidence("h").pages}
    assert noted == {"http://h/a": "good", "http://h/b": "failed"}
