"""The subscriber over a real Redis: rules of before and of now, verdicts of this crawl, nonsense, reconnection."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis
from clusterd_crawler import fetches, topics
from clusterd_crawler.crawling.connections import Connections
from clusterd_crawler.errors import MessageError
from clusterd_crawler.purpose import Purpose
from clusterd_crawler.rule_language.json_form import rule_set_to_json
from clusterd_crawler.rules import Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.servers.redis_client import connect
from clusterd_crawler.settings import Settings
from clusterd_crawler.subscribe.contract import News
from clusterd_crawler.subscribe.others_pages import OthersPages, Wanted
from clusterd_crawler.subscribe.redis_feed import RedisFeed
from clusterd_crawler.subscribe.subscriber import Subscriber
from clusterd_crawler.verdict import Verdict, encode_verdict

from tests.crawler.outage import Server
from tests.services.redis_server import free_port
from tests.services.waiting import wait_until


class Heard:
    def __init__(self) -> None:
        self.rules: list[RuleSet] = []
        self.verdicts: list[Verdict] = []


@contextmanager
def subscribed(url: str, prefix: str, heard: Heard, crawl: str = "c1") -> Iterator[Subscriber]:
    made = Subscriber(lambda: RedisFeed(url, prefix), heard.rules.append, heard.verdicts.extend, crawl)
    try:
        yield made
    finally:
        made.close(5)


def publish(client: redis.Redis, prefix: str, rules: RuleSet) -> None:
    raw = json.dumps(rule_set_to_json(rules)).encode()
    client.hset(f"{prefix}rules", rules.host, raw)
    tell(client, prefix, topics.RULES, rules.host.encode(), raw)


def tell(client: redis.Redis, prefix: str, topic: str, key: bytes, value: bytes) -> None:
    client.xadd(topics.stream(prefix, topic), {topics.FIELD_KEY: key, topics.FIELD_VALUE: value})


def test_rules_of_before_and_of_now_reach_hosts_that_were_met(redis_url: str, prefix: str) -> None:
    heard, client = Heard(), connect(redis_url)
    publish(client, prefix, RuleSet("old.test", 3, ()))
    publish(client, prefix, RuleSet("unmet.test", 1, ()))
    with subscribed(redis_url, prefix, heard) as subscriber:
        assert subscriber.connected.wait(10)
        subscriber.meet("old.test")
        subscriber.meet("new.test")
        assert heard.rules == [RuleSet("old.test", 3, ())]
        publish(client, prefix, RuleSet("new.test", 1, (), unskip=("http://new.test/a",)))
        publish(client, prefix, RuleSet("unmet.test", 2, ()))
        wait_until(lambda: len(heard.rules) == 2)
        assert heard.rules[1].unskip == ("http://new.test/a",)
        tell(client, prefix, topics.RULES, b"new.test", b"")  # of a key that somebody deleted
        wait_until(lambda: len(heard.rules) == 3)
        assert heard.rules[2] == RuleSet("new.test", 0, ())
    client.close()


def test_rules_of_a_host_that_a_mirror_leads_to_come_with_its_own(redis_url: str, prefix: str) -> None:
    """Keys of the mirror are of that host: of 1,998 URLs that its rules speak of a crawl of the mirror skipped none."""
    heard, client = Heard(), connect(redis_url)
    edits = (Edit(Key(start=2), "set", "docs.a.test"),)
    mirror = Rule(rule_id("a.test", (), edits), "a.test", (), edits, spans=True)
    with subscribed(redis_url, prefix, heard) as subscriber:
        assert subscriber.connected.wait(10)
        for host in ("www.docs.a.test", "a.test"):
            subscriber.meet(host)
        publish(client, prefix, RuleSet("docs.a.test", 1, ()))
        publish(client, prefix, RuleSet("a.test", 1, (mirror,)))
        wait_until(lambda: len(heard.rules) == 2)
        publish(client, prefix, RuleSet("docs.a.test", 2, ()))
        wait_until(lambda: len(heard.rules) == 3)
    assert [(rules.host, rules.version) for rules in heard.rules] == [
        ("docs.a.test", 1),
        ("a.test", 1),
        ("docs.a.test", 2),
    ]
    client.close()


def test_what_was_said_while_there_was_no_connection_is_heard_and_nothing_twice(
    redis_url: str, prefix: str, tmp_path: Path
) -> None:
    settings = Settings.from_mapping({"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}, source="a test")
    connection, client = Connections(settings, tmp_path).feed(known_since=0), connect(redis_url)
    tell(client, prefix, topics.VERDICTS, b"k", b"before the crawl")
    tell(client, prefix, topics.KNOWN, b"k", b"pages")
    for said in ([b"pages"], [b"first", b"second"], [b"third"]):
        feed = connection()
        assert [news.value for news in feed.poll(0.1)] == said
        feed.close()
        for value in {b"pages": (b"first", b"second"), b"first": (b"third",)}.get(said[0], ()):
            tell(client, prefix, topics.VERDICTS, b"k", value)
    client.close()


def test_verdicts_of_this_crawl_come_and_of_others_do_not(redis_url: str, prefix: str) -> None:
    heard, client = Heard(), connect(redis_url)
    with subscribed(redis_url, prefix, heard) as subscriber:
        assert subscriber.connected.wait(10)
        for crawl in ("c2", "c1"):
            verdict = Verdict(f"http://a.test/{crawl}", 5, crawl)
            tell(client, prefix, topics.VERDICTS, b"k", encode_verdict(verdict))
        wait_until(lambda: heard.verdicts)
        assert heard.verdicts == [Verdict("http://a.test/c1", 5, "c1")]
    client.close()


def test_nonsense_is_told_and_the_rest_goes_on(redis_url: str, prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    heard, client = Heard(), connect(redis_url)
    with subscribed(redis_url, prefix, heard) as subscriber:
        assert subscriber.connected.wait(10)
        subscriber.meet("a.test")
        other = json.dumps(rule_set_to_json(RuleSet("b.test", 1, ()))).encode()
        for value in (b"\xff", b"[]", b"{}", b'{"host": 5}', b"[" * 100_000, other):
            tell(client, prefix, topics.RULES, b"a.test", value)
        tell(client, prefix, topics.VERDICTS, b"k", b"no JSON")
        client.xadd(topics.stream(prefix, topics.RULES), {"other": "fields"})
        publish(client, prefix, RuleSet("a.test", 9, ()))
        wait_until(lambda: heard.rules)
        assert heard.rules == [RuleSet("a.test", 9, ())]
        wait_until(lambda: caplog.text.count("cannot be read and is ignored") == 7)
    client.close()


def test_a_fault_of_the_feed_does_not_end_the_following_of_rules(redis_url: str, prefix: str) -> None:
    class Faulty(RedisFeed):
        faults = 1

        def poll(self, seconds: float) -> Sequence[News]:
            if Faulty.faults:
                Faulty.faults -= 1
                raise KeyError("a client library's own")
            return super().poll(seconds)

        def close(self) -> None:
            super().close()
            raise KeyError("another of its own")

    heard, client = Heard(), connect(redis_url)
    subscriber = Subscriber(lambda: Faulty(redis_url, prefix), heard.rules.append, heard.verdicts.extend, "c1")
    subscriber.meet("h.test")
    wait_until(lambda: Faulty.faults == 0)
    publish(client, prefix, RuleSet("h.test", 2, ()))
    wait_until(lambda: RuleSet("h.test", 2, ()) in heard.rules)
    subscriber.close(5)
    client.close()


@pytest.mark.parametrize("rows", [b"[1]", b"{}", b'[["u",1,2,[["canonical",1e400]]]]', b'[["u",1,2,[["canonical"]]]]'])
def test_a_block_of_pages_that_is_none_is_refused(rows: bytes) -> None:
    block = fetches.pack([fetches.Fetch("http://h.test/", 5)])
    with suppress(MessageError):
        assert fetches.unpack(block[:9] + zlib.compress(rows)) == []


def test_blocks_of_pages_say_what_these_were_fetched_for() -> None:
    pages = [
        fetches.Fetch("http://h.test/1", 5, 7, purpose=Purpose(2**64 - 1, 3, 9)),
        fetches.Fetch("http://h.test/2", 6, 8),
        fetches.Fetch("http://h.test/3", 7, good=False),
    ]
    block = fetches.pack(pages)
    assert fetches.unpack(block) == pages
    with pytest.raises(MessageError, match="version"):
        fetches.unpack(bytes((fetches.VERSION + 1,)) + block[1:])


@pytest.mark.parametrize(
    ("wanted", "since", "taken"),
    [
        (Wanted("ours"), None, []),
        (Wanted("ours", own=True), 0, [("ours", 1), ("ours", 9000)]),
        (Wanted("ours", within=2.0), 8000, [("ours", 9000), ("another", 9000)]),
        (Wanted("ours", within=2.0, own=True), 8000, [("ours", 9000), ("another", 9000)]),
    ],
)
def test_of_the_pages_of_others_those_count_that_a_crawl_may_rest_on(
    wanted: Wanted, since: int | None, taken: list[tuple[str, int]]
) -> None:
    others, found = OthersPages(wanted), []
    for crawl, at in [("ours", 1), ("ours", 9000), ("another", 1), ("another", 9000)]:
        block = fetches.pack([fetches.Fetch("http://h.test/", at)])
        pages = others.arrived(fetches.key("h.test", crawl), block, met=True, now=10_000)
        found += [(crawl, page.at) for page, _ in pages]
        assert all(other == (crawl == "another") for _, other in pages)
    assert found == taken
    assert wanted.since(now=10_000) == since


def test_pages_of_hosts_that_are_not_met_are_held_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    block = fetches.pack([fetches.Fetch("http://h.test/", 5)])
    monkeypatch.setattr("clusterd_crawler.subscribe.others_pages.HELD_BYTES", 4 * len(block))
    others = OthersPages(Wanted("ours", own=True))
    for host in "aabbcc":
        assert others.arrived(fetches.key(host, "ours"), block, met=False, now=10_000) == []
        if host == "b":
            assert others.met("unknown") == []
    assert [len(others.met(host)) for host in "abcb"] == [0, 2, 2, 0]
    for host in "defg":
        for crawl in ("ours", "another"):  # of which this one takes nothing
            others.arrived(fetches.key(host, crawl), block, met=False, now=10_000)
    assert [others.met(host) for host in "defg"] == [[("ours", block)]] * 4


def test_after_an_absence_the_hosts_met_are_caught_up(prefix: str, tmp_path: Path) -> None:
    heard, server = Heard(), Server(tmp_path)
    with subscribed(server.url, prefix, heard) as subscriber:
        subscriber.meet("a.test")
        for version in (1, 2):
            server.start()
            client = connect(server.url)
            publish(client, prefix, RuleSet("a.test", version, ()))
            wait_until(lambda at_least=version: heard.rules and heard.rules[-1].version == at_least)
            client.close()
            server.stop()


def test_however_long_a_feed_is_away_it_is_asked_as_often(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a crawl would hear of withdrawn rules as long again after an outage as that took."""
    monkeypatch.setattr("clusterd_crawler.subscribe.subscriber.RETRY_SECONDS", (0.001, 0.002))
    nowhere, asked = f"redis://127.0.0.1:{free_port()}/0", []

    def connect_again() -> RedisFeed:
        asked.append(nowhere)
        return RedisFeed(nowhere, prefix)

    subscriber = Subscriber(connect_again, lambda rules: None, lambda verdicts: None, "c1")
    wait_until(lambda: len(asked) > 20)  # twice as seldom each time, the last of them would come after 17 minutes
    subscriber.close(5)


def test_hosts_met_are_caught_up_in_few_calls(prefix: str, tmp_path: Path) -> None:
    """Each call is a way to the server and back, and meanwhile nothing new is heard, such as a rule withdrawn."""
    heard, server = Heard(), Server(tmp_path)
    hosts = [f"h{number}.test" for number in range(250)]
    with server.running(), connect(server.url) as client:
        for host in hosts[1:]:
            publish(client, prefix, RuleSet(host, 1, ()))
        server.stop()
        with subscribed(server.url, prefix, heard) as subscriber:
            subscriber.meet(*hosts)
            server.start()
            wait_until(lambda: len(heard.rules) == 249)
        calls = connect(server.url).info("commandstats")["cmdstat_hmget"]["calls"]
    assert {rules.host for rules in heard.rules} == set(hosts[1:])
    assert calls == 3


def test_rules_that_could_not_be_asked_for_are_asked_for_again(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection that follows what is new may be sound all the while: nothing else would ask for them."""
    monkeypatch.setattr("clusterd_crawler.subscribe.subscriber.AGAIN_SECONDS", 0.0)
    heard, server = Heard(), Server(tmp_path)
    with server.running(), connect(server.url) as client:
        publish(client, prefix, RuleSet("a.test", 1, ()))
        client.execute_command("ACL", "SETUSER", "default", "-hmget")
        with subscribed(server.url, prefix, heard) as subscriber:
            assert subscriber.connected.wait(10)
            subscriber.meet("a.test")
            assert not heard.rules
            client.execute_command("ACL", "SETUSER", "default", "+hmget")
            wait_until(lambda: heard.rules)
            for number in (1, 2, 3):
                tell(client, prefix, topics.VERDICTS, b"k", encode_verdict(Verdict("http://a.test/", number, "c1")))
                wait_until(lambda many=number: len(heard.verdicts) == many)
    assert heard.rules == [RuleSet("a.test", 1, ())]  # and no more when they were had


def test_a_cluster_serves_as_the_feed(redis_cluster_url: str, prefix: str) -> None:
    heard, client = Heard(), connect(redis_cluster_url)
    with subscribed(redis_cluster_url, prefix, heard) as subscriber:
        assert subscriber.connected.wait(10)
        subscriber.meet("a.test")
        publish(client, prefix, RuleSet("a.test", 1, ()))
        tell(client, prefix, topics.VERDICTS, b"k", encode_verdict(Verdict("http://a.test/", 5, "c1")))
        wait_until(lambda: heard.rules and heard.verdicts)
    client.close()
