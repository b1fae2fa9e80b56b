"""The learner on small made-up sites: what it learns, what it must not, and that its cost is bounded."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterable
from time import perf_counter

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.evidence.columns import Evidence
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.families.one_page import FAMILY
from clusterd.learning.learner import Learner
from clusterd_crawler.errors import NotFound
from clusterd_crawler.rules import RuleSet

from tests.crawler.made_rules import key_under

HOST = "h.com"
Crawl = list[tuple[str, int]]


def learn(crawl: Iterable[tuple[str, int]], host: str = HOST) -> RuleSet:
    learner = Learner(host)
    learner.observe([Page(f"http://{host}{path}", content, crawl="c") for path, content in crawl])
    return learner.learn(1) or RuleSet(host, 0, ())


def same(rules: RuleSet, first: str, second: str, host: str = HOST) -> bool:
    return key_under(rules, f"http://{host}{first}")[0] == key_under(rules, f"http://{host}{second}")[0]


def session_crawl(pages: int) -> Crawl:
    return [(f"/view.php?t={n}" + (f"&sid={n}{s}x" if s else ""), n) for n in range(pages) for s in range(3)]


def test_a_session_id_is_dropped_for_values_never_seen() -> None:
    rules = learn(session_crawl(60))
    assert same(rules, "/view.php?t=3", "/view.php?t=3&sid=brandnew")
    assert not same(rules, "/view.php?t=3", "/view.php?t=4&sid=brandnew")


def test_a_rule_says_what_it_rests_on() -> None:
    (rule,) = learn(session_crawl(60)).rules
    assert [edit.op for edit in rule.transformation] == ["delete"]
    assert rule.support >= 50
    assert rule.lower_bound > 0.95
    assert rule.precision == 1.0
    assert rule.coverage == 120
    assert all(agreed for _, _, agreed in rule.evidence)
    assert len(rule.evidence) >= 3


def test_too_little_evidence_makes_no_rule() -> None:
    assert learn(session_crawl(6)).rules == ()


def test_the_same_name_that_is_content_stays() -> None:
    crawl = [(f"/search.php?action=results&sid={n:032x}", n) for n in range(200)]
    assert learn(crawl).rules == ()


def test_pages_that_differ_count_like_pages_that_agree() -> None:
    agree = [(f"/v?t={n}&m={m}", n) for n in range(60) for m in (1, 2)]
    differ = [(f"/v?t={n}&m={m}", 1000 + 2 * n + m) for n in range(100, 115) for m in (1, 2)]
    assert learn(agree).rules != ()
    assert learn(agree + differ).rules == ()


def test_only_values_seen_in_evidence_are_dropped() -> None:
    crawl = [(f"/recent?page={n}" + (f"&days={d}" if d else ""), n) for n in range(40) for d in (0, 1, 3, 14)]
    rules = learn(crawl)
    assert same(rules, "/recent?page=7", "/recent?page=7&days=14")
    assert not same(rules, "/recent?page=7", "/recent?page=7&days=30")


def test_one_value_that_differs_is_kept_out_of_the_rule() -> None:
    crawl = [(f"/recent?page={n}" + (f"&days={d}" if d else ""), n) for n in range(60) for d in (0, 1, 3)]
    crawl += [(f"/recent?page={n}&days=30", 5000 + n) for n in range(60)]
    rules = learn(crawl)
    assert same(rules, "/recent?page=7", "/recent?page=7&days=3")
    assert not same(rules, "/recent?page=7", "/recent?page=7&days=30")


def test_a_parameter_irrelevant_on_one_path_and_content_on_another() -> None:
    crawl = [(f"/topic?t={n}&f={f}", n) for n in range(60) for f in (1, 2)]
    crawl += [(f"/forum?f={f}", 9000 + f) for f in range(40)]
    crawl += [(f"/forum?f={f}&x={x}", 9000 + f) for f in range(40) for x in (1, 2)]
    rules = learn(crawl)
    assert same(rules, "/topic?t=7&f=1", "/topic?t=7&f=2")
    assert not same(rules, "/forum?f=1", "/forum?f=2")


def test_parameters_that_only_go_together_are_dropped_together() -> None:
    crawl = [(f"/t?id={n}", n) for n in range(60)] + [(f"/t?id={n}&order=asc&by=date", n) for n in range(60)]
    crawl += [(f"/t?id={n}&order=desc&by=date", 7000 + n) for n in range(60)]
    rules = learn(crawl)
    assert same(rules, "/t?id=7", "/t?id=7&order=asc&by=date")
    assert not same(rules, "/t?id=7", "/t?id=7&order=desc&by=date")


def test_a_log_in_wall_says_nothing_about_parameters_elsewhere() -> None:
    wall = [(f"/post?t={n}&m={m}", 1) for n in range(100) for m in (1, 2)]
    pages = [(f"/view?t={n}&m={m}", 1000 + 2 * n + m) for n in range(10) for m in (1, 2)]
    rules = learn(wall + pages)
    assert not same(rules, "/view?t=50&m=1", "/view?t=50&m=2")
    assert not same(rules, "/view?t=50&m=1", "/view?t=51&m=1")


def test_a_family_that_always_answers_with_one_page_is_a_rule() -> None:
    crawl = [(f"/posting.php?mode=quote&p={n}", 1) for n in range(FAMILY)]
    crawl += [(f"/posting.php?mode=view&p={n}", 1000 + n) for n in range(FAMILY)]
    rules = learn(crawl)
    assert same(rules, "/posting.php?mode=quote&p=1", "/posting.php?mode=quote&p=99999")
    assert not same(rules, "/posting.php?mode=view&p=1", "/posting.php?mode=view&p=2")
    assert not same(rules, "/posting.php?mode=quote&p=1", "/posting.php?mode=quote&p=2&extra=1")
    assert not same(rules, "/posting.php?mode=quote&p=1", "/posting.php?mode=never-seen&p=1")


def test_a_family_that_brings_nothing_new_any_more_is_a_rule() -> None:
    crawl = [(f"/topic?t={n}", n) for n in range(150)]
    random.Random(1).shuffle(crawl)
    crawl += [
        (f"/topic?t={n}&view={view}", (n * turn) % 150)
        for n in range(150)
        for view, turn in (("next", 7), ("last", 11))
    ]
    rules = learn(crawl)
    assert [edit.op for rule in rules.rules for edit in rule.transformation] == ["family"]
    assert same(rules, "/topic?t=1&view=next", "/topic?t=999&view=last")
    assert not same(rules, "/topic?t=1&view=next", "/topic?t=1&view=print")


def test_the_order_of_parameters_and_their_spelling() -> None:
    crawl = [(f"/i?route=p%2Fq&id={n}&tag={n % 3}", n) for n in range(30)]
    crawl += [(f"/i?id={n}&route=p%2Fq&tag={n % 3}", n) for n in range(30)]
    rules = learn(crawl)
    assert same(rules, "/i?route=p%2Fq&id=999&tag=1", "/i?tag=1&id=999&route=p%2Fq")
    spelled = [(f"/i?id={n}&route=p%2F{n % 9}", n) for n in range(30)] + [
        (f"/i?id={n}&route=p/{n % 9}", n) for n in range(30)
    ]
    assert same(learn(spelled), "/i?id=5&route=p%2F3", "/i?id=5&route=p/3")


def test_the_order_of_parameters_within_a_component_of_the_path() -> None:
    rules = learn((f"/p{n}{order}/x", n) for n in range(30) for order in (";a=1;b=2", ";b=2;a=1"))
    assert same(rules, "/p99;a=7;b=8/x", "/p99;b=8;a=7/x")
    assert not same(rules, "/p99;a=7;b=8/x", "/p99;a=8;b=7/x")


def test_path_prefixes_index_files_slashes_and_case() -> None:
    prefixed = [(f"/{p}x{n}/page{n}", n) for n in range(60) for p in ("", "mirror/")]
    assert same(learn(prefixed), "/mirror/x7/page7", "/x7/page7")
    indexed = [(f"/d{n}/{last}", n) for n in range(60) for last in ("", "index.html")]
    assert same(learn(indexed), "/new/index.html", "/new/")
    bare = [(f"/d{n}{last}", n) for n in range(60) for last in ("", "/index.html")]
    assert same(learn(bare), "/d7/index.html", "/d7")
    assert not same(learn(indexed), "/new/other.html", "/new/")
    slashed = [(f"/d{n}{last}", n) for n in range(60) for last in ("", "/")]
    assert same(learn(slashed), "/new/", "/new")
    cased = [(path, n) for n in range(60) for path in (f"/Dir{n}/Page{n}", f"/dir{n}/page{n}")]
    assert same(learn(cased), "/New/Page", "/new/page")


def test_path_case_that_is_content_stays() -> None:
    assert learn([(path, 2 * n + i) for n in range(60) for i, path in enumerate((f"/D{n}", f"/d{n}"))]).rules == ()


def test_values_that_mean_the_same() -> None:
    crawl = [(f"/d{n}/?C={c};O=A", 10 * n + {"N": 0, "D": 0, "M": 1, "S": 2}[c]) for n in range(60) for c in "NDMS"]
    rules = learn(crawl)
    assert same(rules, "/x/?C=N;O=A", "/x/?C=D;O=A")
    assert not same(rules, "/x/?C=N;O=A", "/x/?C=M;O=A")


def test_what_holds_where_the_known_page_is_an_empty_list() -> None:
    empty = [(f"/files?user=u{n}&sort={s}", 1) for n in range(120) for s in ("name", "size")]
    full = [
        (f"/files?user=u{1000 + n}&sort={s}", 100 + 2 * n + i)
        for n in range(60)
        for i, s in enumerate(("name", "size"))
    ]
    rules = learn(empty + full)
    assert [rule.shows for rule in rules.rules if rule.shows] == [1]
    assert not same(rules, "/files?user=new&sort=name", "/files?user=new&sort=size") or rules.rules[0].shows


def test_paging_is_not_dropped() -> None:
    crawl = [(f"/list?c={c}&page={p}", 100 * c + p) for c in range(40) for p in range(5)]
    crawl += [(f"/list?c={c}", 100 * c) for c in range(40)]
    rules = learn(crawl)
    assert not same(rules, "/list?c=3&page=1", "/list?c=3&page=2")
    assert same(rules, "/list?c=3", "/list?c=3&page=0") or not rules.rules


def test_repeated_keys_and_path_parameters() -> None:
    crawl = [(f"/t;jsessionid={n}{s}?a={n}&a=2", n) for n in range(60) for s in range(2)]
    rules = learn(crawl)
    assert same(rules, "/t;jsessionid=X?a=5&a=2", "/t;jsessionid=Y?a=5&a=2")
    assert not same(rules, "/t?a=5&a=2", "/t?a=6&a=2")


def test_due_follows_new_duplicates_not_pages() -> None:
    learner = Learner(HOST)
    learner.observe([Page(f"http://h.com/{n}", n) for n in range(1000)])
    assert not learner.due()
    learner.observe([Page(f"http://h.com/x{n}", n) for n in range(50)])
    assert learner.due()
    learner.learn(1)
    assert not learner.due()


def test_learning_again_without_news_publishes_nothing() -> None:
    learner = Learner(HOST)
    learner.observe([Page(f"http://h.com{path}", content) for path, content in session_crawl(60)])
    first = learner.learn(1)
    assert first is not None
    assert first.version == 1
    assert learner.learn(2) is None


def test_a_url_seen_again_replaces_what_was_known_of_it() -> None:
    learner = Learner(HOST)
    learner.observe([Page(f"http://h.com/v?t={n}&m={m}", n) for n in range(60) for m in (1, 2)])
    learner.observe([Page(f"http://h.com/v?t={n}&m={m}", 100 + 2 * n + m) for n in range(60) for m in (1, 2)])
    assert learner.learn(1) is None


def test_the_order_of_arrival_does_not_change_the_rules() -> None:
    crawl = session_crawl(60)
    rules = {tuple(rule.id for rule in learn(random.Random(seed).sample(crawl, len(crawl))).rules) for seed in range(4)}
    assert len(rules) == 1


def test_retired_by_hand_stays_retired_and_pinned_stays() -> None:
    learner = Learner(HOST)
    learner.observe([Page(f"http://h.com{path}", content) for path, content in session_crawl(60)])
    rules = learner.learn(1)
    assert rules is not None
    (rule,) = rules.rules
    pinned = learner.pin(rule.id, 2)
    assert [known.state for known in pinned.rules] == ["pinned"]
    retired = learner.retire(rule.id, "by hand")
    assert (retired.rules, retired.retired) == ((), ((rule.id, "by hand"),))
    learner.observe([Page(f"http://h.com/view.php?t={n}&sid=q{s}", n) for n in range(60) for s in range(3)])
    learner.learn(4)
    assert rule.id not in {known.id for known in learner.rules}
    with pytest.raises(NotFound):
        learner.pin("unknown", 5)


def test_crafted_duplicates_make_no_rule_that_drops_what_differs() -> None:
    hostile = [(f"/x?{name}={n}", 1) for name in "abcdefgh" for n in range(100)]
    real = [(f"/x?id={n}", 1000 + n) for n in range(50)]
    rules = learn(hostile + real)
    assert not same(rules, "/x?id=1", "/x?id=2")
    assert {rule.host for rule in rules.rules} <= {HOST}


@pytest.mark.parametrize("kind", ["names", "pairs", "values", "paths", "one cluster"])
def test_hostile_hosts_cost_bounded_time(kind: str) -> None:
    crawl: Crawl = {
        "names": [(f"/x?n{n}=1&m{n}=2", n % 50) for n in range(5000)],
        "pairs": [("/x?" + "&".join(f"p{m}={(n * m) % 7}" for m in range(40)), n % 50) for n in range(2000)],
        "values": [("/x?" + "&".join(f"p{m}={n}-{m}" for m in range(20)), n % 50) for n in range(3000)],
        "paths": [("/" + "/".join(f"{(n >> b) & 1}" for b in range(12)) + f"/{n}", n % 50) for n in range(5000)],
        "one cluster": [(f"/x?a={n}&b={n % 7}&c={n % 11}", 1) for n in range(10_000)],
    }[kind]
    start = perf_counter()
    learn(crawl)
    assert perf_counter() - start < 20


def test_parameters_by_the_ten_thousand_are_not_remembered() -> None:
    query = "&".join(f"p{number}={number}" for number in range(10_000))
    learner = Learner(HOST)
    tracemalloc.start()
    learner.observe(Page(f"http://{HOST}/x?id={number}&{query}", number // 2) for number in range(20))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    learner.learn(1)
    assert learner.rules == ()
    assert held < 20 * len(query) / 10


def test_a_path_that_grows_for_ever_is_compared_with_none() -> None:
    learner = Learner(HOST)
    learner.observe(Page(f"http://{HOST}/{'1/' * (1000 + number)}", 1) for number in range(50))
    tracemalloc.start()
    learner.learn(1)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50_000_000


def test_a_query_without_a_name_is_no_parameter() -> None:
    rules = learn([(f"/x{n}{mark}", n) for n in range(60) for mark in ("", "?")])
    assert not rules or not rules.rules


def test_a_lesson_costs_little_where_any_filters_stand_in_any_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a shop whose lists are equal by chance: each edit was judged on nearly all pages, value by value."""
    monkeypatch.setattr("clusterd.learning.learner.LESSON", 100_000)
    kept: list[Snapshot] = []

    def keeping(evidence: Evidence) -> Snapshot:
        kept.append(Snapshot(evidence))
        return kept[-1]

    monkeypatch.setattr("clusterd.learning.learner.Snapshot", keeping)
    chosen = random.Random(2)

    def filters() -> str:
        return "&".join(f"f{number}={chosen.randrange(5)}" for number in chosen.sample(range(12), 5))

    lists = [(f"http://h/list?{filters()}", number % 100) for number in range(1000)]
    visits = [(f"{url}&sid={chosen.getrandbits(60):x}", content) for url, content in lists * 2]
    learner = Learner("h")
    learner.observe(Page(url, content) for url, content in lists + visits)
    rules = learner.learn(1)

    assert kept[0].judged < 200_000
    assert rules is not None
    assert [edit.key.name for rule in rules.rules for edit in rule.transformation] == ["sid"]
