"""One contract, two stores: Redis, and a Redis Cluster of three nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
import redis
from clusterd.learning.contract import Page
from clusterd.learning.rulebook import redis as redis_book
from clusterd.learning.rulebook.contract import Entry, HostRules, Turn
from clusterd.learning.rulebook.redis import RuleBook
from clusterd_consumer.redis_connection import connect
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.message import SkipReport
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.sketch import Name

from tests.clusterd.made_up_rules import offered_set

HOST = "example.com"
SKIPS = 50


@pytest.fixture(params=["redis", pytest.param("cluster", marks=pytest.mark.cluster)])
def book(request: pytest.FixtureRequest, prefix: str) -> Iterator[RuleBook]:
    client = connect(request.getfixturevalue("redis_url" if request.param == "redis" else "redis_cluster_url"))
    yield RuleBook(client, prefix, skips_limit=SKIPS)
    client.close()


def page(number: int, content: int = 0) -> Page:
    names = (Name("canonical", 2**64 - 1 - number), Name("anchor", number))
    return Page(f"http://{HOST}/p?id={number}", content or 2**63 + number, number, names, 1_700_000_000_000 + number)


def rule(rule_id: str, host: str = HOST) -> Rule:
    sid = Key(name="sid")
    context = (Condition(sid, "any"),)
    evidence = ((f"http://{host}/a?sid=1", f"http://{host}/a", True),)
    return Rule(rule_id, host, context, (Edit(sid, "delete"),), support=9, precision=1.0, evidence=evidence)


def state(version: int, *rules: Rule, host: str = HOST) -> HostRules:
    entries = {r.id: Entry(r, (Turn(5, r.state, "learner", "why"),)) for r in rules}
    return HostRules(RuleSet(host, version, rules, (("old", "gone"),), (f"http://{host}/keep",)), entries)


def skip(number: int, rule_id: str = "r1") -> SkipReport:
    return SkipReport(f"http://{HOST}/a?sid={number}", rule_id, f"http://{HOST}/a", f"http://{HOST}/a", number)


def test_evidence_comes_back_whole_and_in_order(book: RuleBook) -> None:
    watched = replace(page(3), explored="r1", instead_of=f"http://{HOST}/ä")
    book.add_pages({HOST: [page(1), page(2)]})
    book.add_pages({HOST: [watched]})
    evidence = book.evidence(HOST)
    assert evidence.pages == (page(1), page(2), watched)
    assert evidence.total == 3


def test_evidence_goes_on_after_a_mark(book: RuleBook) -> None:
    book.add_pages({HOST: [page(1)]})
    mark = book.evidence(HOST).mark
    assert book.evidence(HOST, mark).pages == ()
    book.add_pages({HOST: [page(2), page(3)]})
    after = book.evidence(HOST, mark)
    assert after.pages == (page(2), page(3))
    assert after.continued


def test_evidence_has_grown_where_pages_came_or_it_was_rewritten(book: RuleBook) -> None:
    hosts = [f"h{number}.example" for number in range(5)]
    book.add_pages({host: [page(1), page(2)] for host in hosts[:4]})
    marks = {host: book.evidence(host).mark for host in hosts}
    assert book.grown(marks) == []
    assert book.grown(dict.fromkeys(hosts, "")) == hosts

    book.add_pages({hosts[1]: [page(3)], hosts[4]: [page(4)]})
    book.rewrite(hosts[2], marks[hosts[2]], [page(1), page(2)])
    assert book.grown(marks) == [hosts[1], hosts[2], hosts[4]]
    assert book.grown({host: book.evidence(host).mark for host in hosts}) == []


@pytest.mark.parametrize("before", [1, 3])
def test_of_a_log_that_was_lost_nothing_is_taken_for_known(redis_url: str, prefix: str, before: int) -> None:
    """It expires after a while without pages, or the store comes back without it: its generations begin anew."""
    with redis.Redis.from_url(redis_url) as client:
        book = RuleBook(client, prefix)
        for number in range(before):
            book.add_pages({HOST: [page(number)]})
        mark = book.evidence(HOST).mark
        client.delete(*client.scan_iter(f"{prefix}rb:*:*", count=10_000))
        book.add_pages({HOST: [page(4)]})
        after = book.evidence(HOST, mark)
        assert after.pages == (page(4),)
        assert not after.continued


def test_of_a_log_that_came_back_from_the_past_all_is_read_again(redis_url: str, prefix: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        book = RuleBook(client, prefix)
        book.add_pages({HOST: [page(1)]})
        (log,) = client.scan_iter(f"{prefix}rb:*:log", count=10_000)
        backup = client.dump(log)
        book.add_pages({HOST: [page(2)]})
        mark = book.evidence(HOST).mark
        client.restore(log, 0, backup, replace=True)
        after = book.evidence(HOST, mark)
        assert after.pages == (page(1),)
        assert not after.continued


def test_an_unknown_host_has_no_evidence(book: RuleBook) -> None:
    assert book.evidence("nowhere.example").pages == ()


def test_hosts_do_not_mix_whatever_their_names(book: RuleBook) -> None:
    hosts = ["a.com", "a.com:8080", "}{x", "skips", "[::1]:80", "x%7D", "*", "a.com:log"]
    book.add_pages({host: [page(n + 1)] for n, host in enumerate(hosts)})
    book.add_skips([skip(1)])
    assert [book.evidence(host).pages for host in hosts] == [(page(n + 1),) for n in range(len(hosts))]
    assert set(book.changed()) == set(hosts)
    assert [s.at for s in book.skips()] == [1]


def test_files_that_have_no_host_are_kept_like_pages_that_have_one(book: RuleBook) -> None:
    """On a cluster their keys lay in several slots, and nothing was learned any more of whatever host came next."""
    first, second = Page("file:///a.html", 1), Page("file:///b.html", 2)
    book.add_pages({"": [first, second]})
    assert book.lease("", "a", 1)
    evidence = book.evidence("")
    assert evidence.pages == (first, second)
    assert book.rewrite("", evidence.mark, [second])
    assert book.save(state(1, rule("r1", ""), host=""), book.load(""))


def test_a_rewritten_log_keeps_what_came_meanwhile_and_tells_its_readers(book: RuleBook) -> None:
    book.add_pages({HOST: [page(1), page(2)]})
    book.add_pages({HOST: [page(3)]})
    mark = book.evidence(HOST).mark
    book.add_pages({HOST: [page(4)]})

    new = book.rewrite(HOST, mark, [page(3)])

    assert new
    whole = book.evidence(HOST, mark)
    assert not whole.continued
    assert whole.pages == (page(3), page(4))
    assert whole.total == 2
    assert book.evidence(HOST, new).pages == (page(4),)
    assert book.evidence(HOST, new).continued


def test_of_two_rewrites_of_one_log_the_second_does_nothing(book: RuleBook) -> None:
    book.add_pages({HOST: [page(1), page(2)]})
    mark = book.evidence(HOST).mark
    assert book.rewrite(HOST, mark, [page(2)])
    assert book.rewrite(HOST, mark, []) == ""
    assert book.evidence(HOST).pages == (page(2),)


def test_a_log_can_be_rewritten_to_nothing_and_to_many_blocks(book: RuleBook) -> None:
    book.add_pages({HOST: [page(1)]})
    many = [page(n) for n in range(1, 2_502)]
    assert book.rewrite(HOST, book.evidence(HOST).mark, many)
    assert book.evidence(HOST).pages == tuple(many)
    assert book.rewrite(HOST, book.evidence(HOST).mark, [])
    assert book.evidence(HOST).total == 0


def test_what_was_met_on_pages_that_are_cut_is_kept_of_the_latest_crawls(
    book: RuleBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_book, "BYTES", 16)

    def cut(gone: dict[str, bytes]) -> dict[str, list[bytes]]:
        assert book.rewrite(HOST, book.evidence(HOST).mark, [page(1)], gone)
        return book.met(HOST)

    assert book.met(HOST) == {}
    assert cut({"first: ä": b"1111", "second": b"2222"}) == {"first: ä": [b"1111"], "second": [b"2222"]}
    assert cut({"second": b"3333"})["second"] == [b"2222", b"3333"]
    mark = book.evidence(HOST).mark
    assert cut({}) == {"first: ä": [b"1111"], "second": [b"2222", b"3333"]}
    # What is not rewritten cuts nothing.
    assert book.rewrite(HOST, mark, [], {"second": b"9999"}) == ""
    assert book.met(HOST) == {"first: ä": [b"1111"], "second": [b"2222", b"3333"]}
    # Of what is too much goes what was met by the crawl of which none was cut for longest, and is said to have gone …
    assert cut({"third": b"44445555"}) == {"first: ä": [b""], "second": [b"2222", b"3333"], "third": [b"44445555"]}
    # … but nothing of the one of which pages are cut now.
    assert cut({"first: ä": b"6" * 20}) == {"first: ä": [b"", b"6" * 20], "second": [b""], "third": [b""]}


def test_a_host_is_changed_until_it_was_looked_at_since(book: RuleBook) -> None:
    book.add_pages({HOST: [page(1), page(2)]})
    assert book.changed() == {HOST: 2}
    book.add_pages({HOST: [page(3)]})
    book.looked_at(HOST, 2)
    assert book.changed() == {HOST: 1}
    book.looked_at(HOST, 1)
    assert book.changed() == {}
    book.looked_at(HOST, 1)  # as another has, whose lease ran out meanwhile: no host has fewer pages than none
    assert book.changed() == {}
    book.add_pages({HOST: [page(4)]})
    assert book.changed() == {HOST: 1}


def test_only_one_owner_has_a_lease(book: RuleBook) -> None:
    assert book.lease(HOST, "one", 30)
    assert book.lease(HOST, "one", 30)
    assert not book.lease(HOST, "two", 30)
    assert book.lease("other.com", "two", 30)
    book.release(HOST, "two")
    assert not book.lease(HOST, "two", 30)
    book.release(HOST, "one")
    assert book.lease(HOST, "two", 30)


def test_a_lease_runs_out(book: RuleBook) -> None:
    assert book.lease(HOST, "one", 0.001)
    deadline = time.monotonic() + 60
    while not book.lease(HOST, "two", 30):
        assert time.monotonic() < deadline, "the lease of a dead owner never ran out"


def test_rules_come_back_as_they_were_saved(book: RuleBook) -> None:
    saved = state(1, rule("r1"), replace(rule("r2"), state="pinned", since=7))
    assert book.save(saved, book.load(HOST))
    loaded = book.load(HOST)
    assert loaded == saved
    assert [entry.rule.evidence for entry in loaded.entries.values()] == [r.evidence for r in saved.rules.rules]
    assert book.version(HOST) == 1
    assert book.versions(["other.org", HOST]) == [0, 1]
    assert book.versions([]) == []
    assert book.hosts() == [HOST]
    assert book.host_of("r2") == HOST


def test_the_evidence_says_what_else_is_known_of_its_host(book: RuleBook) -> None:
    """So that of the many hosts without rules and without a log that was cut nothing more is asked."""
    book.add_pages({HOST: [page(1), page(2)]})
    found = book.evidence(HOST)
    assert (found.was_cut, found.version) == (False, None)
    assert book.save(state(0, rule("r1")), book.load(HOST))
    assert book.rewrite(HOST, found.mark, [page(2)], {"one": b"12345678"})
    found = book.evidence(HOST)
    assert (found.was_cut, found.version) == (True, 0)
    assert book.save(state(3, rule("r1")), book.load(HOST))
    assert book.evidence(HOST, found.mark).version == 3


def test_sites_of_many_groups_are_counted_together(book: RuleBook) -> None:
    for group, site in (("a.com", "http://a.com"), ("a.com", "https://a.com"), ("b.com", "http://www.b.com")):
        book.note_site(group, site)
    assert book.site_counts(["b.com", "a.com", "c.com"]) == [1, 2, 0]


def test_of_two_that_learned_at_once_only_one_is_believed(book: RuleBook) -> None:
    before = book.load(HOST)
    assert book.save(state(1, rule("r1")), before)
    assert not book.save(state(1, rule("r2")), before)
    assert list(book.load(HOST).entries) == ["r1"]


def test_figures_change_without_a_new_version(book: RuleBook) -> None:
    book.save(state(1, rule("r1")), book.load(HOST))
    assert book.save(state(1, replace(rule("r1"), support=10)), book.load(HOST))
    assert book.load(HOST).entries["r1"].rule.support == 10


def test_a_change_that_needs_no_new_version_is_not_overwritten_either(book: RuleBook) -> None:
    # Given a rule that the learner has retired, and two that change its host at once
    gone = replace(rule("r1"), state="retired")
    retired = HostRules(RuleSet(HOST, 1, ()), {"r1": Entry(gone, (Turn(1, "retired", "relearned"),))})
    assert book.save(retired, book.load(HOST))
    learner, operator = book.load(HOST), book.load(HOST)
    # When the operator retires it for good, then what the learner read before is not believed
    barred = HostRules(operator.rules, {"r1": Entry(gone, (Turn(2, "retired", "hand"),))})
    assert book.save(barred, operator)
    assert not book.save(learner, learner)
    assert book.load(HOST).entries["r1"].last.by == "hand"


def test_what_was_announced_is_remembered(book: RuleBook) -> None:
    assert book.announced(HOST) == 0
    book.save(state(7, rule("r1")), book.load(HOST))
    assert book.announced(HOST) == 0
    book.note_announced(HOST, 7)
    assert book.announced(HOST) == 7
    assert book.load(HOST) == state(7, rule("r1"))


def test_a_log_that_was_rewritten_whole_still_expires(redis_url: str, prefix: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        book = RuleBook(client, prefix)
        book.add_pages({HOST: [page(1), page(2)]})
        assert book.rewrite(HOST, book.evidence(HOST).mark, [page(2)], {"a crawl": b"1234"})
        keys = [key for key in client.scan_iter(f"{prefix}rb:*", count=10_000) if not key.endswith(b"changed")]
        assert len(keys) == 3
        assert all(client.ttl(key) > 0 for key in keys)


def test_an_id_that_is_dropped_is_not_found(book: RuleBook) -> None:
    book.save(state(1, rule("r1"), rule("r2")), book.load(HOST))
    book.save(state(2, rule("r2")), book.load(HOST))
    assert book.host_of("r1") is None
    assert book.host_of("r2") == HOST


def test_the_entries_of_many_hosts_come_host_by_host(book: RuleBook) -> None:
    hosts = [f"h{number}.example" for number in range(2 * redis_book.HOSTS + 1)]
    known = {host: [f"{host}-{n}" for n in range(2)] for host in [*hosts[:3], *hosts[-3:]]}
    for host, ids in known.items():
        assert book.save(state(1, *(rule(one, host) for one in ids), host=host), HostRules.empty(host))
    assert [entry.rule.id for entry in book.entries(hosts)] == [one for ids in known.values() for one in ids]
    assert list(book.entries(hosts[:1])) == list(book.load(hosts[0]).entries.values())
    assert list(book.entries([])) == []


def test_nothing_is_known_of_an_unknown_host(book: RuleBook) -> None:
    assert book.load("nowhere.example") == HostRules.empty("nowhere.example")
    assert book.version("nowhere.example") == 0
    assert offered_set(book, "nowhere.example") is None
    assert book.host_of("none") is None


def test_an_older_set_never_takes_the_place_of_a_later_one(book: RuleBook) -> None:
    book.offer(state(2, rule("r2")).rules)
    book.offer(state(1, rule("r1")).rules)
    assert offered_set(book, HOST) == state(2, rule("r2")).rules
    book.offer(state(3).rules)
    assert offered_set(book, HOST) == state(3).rules


def test_a_skip_is_counted_once_however_often_it_is_delivered(book: RuleBook) -> None:
    assert book.add_skips([skip(1), skip(2), skip(1)]) == 2
    assert book.add_skips([skip(2), skip(3, "r2")]) == 1
    assert book.skip_counts() == {"r1": 2, "r2": 1}
    assert [s.at for s in book.skips()] == [1, 2, 3]
    assert list(book.skips(rule="r2")) == [skip(3, "r2")]
    book.add_skips([replace(skip(4), url="http://h.com/r2")])
    assert list(book.skips(rule="r2")) == [skip(3, "r2")]


def test_the_skip_log_is_bounded_and_the_counts_are_not(book: RuleBook) -> None:
    total = 20 * SKIPS
    for start in range(0, total, 25):
        book.add_skips([skip(n) for n in range(start, start + 25)])
    assert book.skip_counts() == {"r1": total}
    listed = [s.at for s in book.skips()]
    assert listed == list(range(total - len(listed), total))
    # A Redis stream is cut by whole nodes of 100 entries.
    assert SKIPS <= len(listed) <= SKIPS + 100


def test_a_late_delivery_repeated_is_still_known(book: RuleBook) -> None:
    reports = [skip(n) for n in range(SKIPS + 10)]
    book.add_skips(reports)
    assert book.add_skips(reports[-SKIPS:]) == 0


def test_a_store_that_is_gone_is_unreachable(redis_url: str) -> None:
    client = connect(redis_url)
    gone = RuleBook(client, "gone:")
    gone._client = connect("redis://127.0.0.1:1/0")
    with pytest.raises(Unreachable):
        gone.changed()
    client.close()


def test_rules_of_a_host_that_cannot_be_read_hide_no_others(book: RuleBook, caplog: pytest.LogCaptureFixture) -> None:
    """As of a later version: `rules list` and `status` ended with them."""
    empty = HostRules.empty(HOST)
    later = replace(rule("later", host="b.example"), identity="of a later version")  # type: ignore[arg-type]
    for host, one in (
        ("a.example", rule("r1", "a.example")),
        ("b.example", later),
        ("c.example", rule("r2", "c.example")),
    ):
        book.save(state(1, one, host=host), empty)
    assert [entry.rule.id for entry in book.entries(["a.example", "b.example", "c.example"])] == ["r1", "r2"]
    assert "the rules of b.example are passed over: " in caplog.text
