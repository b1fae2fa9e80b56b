"""Parameters at stated values, values beside each other, and what a replay does when a rule is withdrawn."""

from __future__ import annotations

from clusterd.learning.contract import Page
from clusterd.learning.edits.fixed_values import DropFixed
from clusterd.learning.evidence.columns import Evidence
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.learner import Learner
from clusterd.learning.replay import CrawlRow, Replay
from clusterd.learning.trials.contexts import refine
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.urls import parse

from tests.clusterd.learning.one_host import learned_of
from tests.crawler.made_rules import key_under

HOST = "http://h.com"


def listings(folders: int) -> list[tuple[str, int]]:
    """Folders sorted eight ways: the index is sorted by name, and by type everything stands as it does by name."""
    found = []
    for n in range(folders):
        found.append((f"{HOST}/pub/d{n}/index.html", 10 * n))
        for column, shown in (("N", 0), ("D", 0), ("M", 2), ("S", 4)):
            found += [(f"{HOST}/pub/d{n}/?C={column};O={order}", 10 * n + shown + (order == "D")) for order in "AD"]
    return found


def learned(crawl: list[tuple[str, int]]) -> RuleSet:
    return learned_of("h.com", crawl)


def test_values_that_hold_only_together_are_dropped_together() -> None:
    rules = learned(listings(30))
    index = key_under(rules, f"{HOST}/pub/d3/index.html")[0]
    assert key_under(rules, f"{HOST}/pub/d3/?C=N;O=A")[0] == index
    assert key_under(rules, f"{HOST}/pub/d3/?C=D;O=A")[0] == index
    assert key_under(rules, f"{HOST}/pub/d3/?C=N;O=D")[0] != index
    assert key_under(rules, f"{HOST}/pub/d3/?C=S;O=A")[0] != index
    assert key_under(rules, f"{HOST}/pub/d3/?C=D;O=D")[0] == key_under(rules, f"{HOST}/pub/d3/?C=N;O=D")[0]


def test_a_value_is_written_as_it_stands_in_urls() -> None:
    rules = learned([(f"{HOST}/list?c={n}&price={price}", n) for n in range(120) for price in ("[0|100]", "[0|90]")])
    assert rules.rules
    assert len({key_under(rules, f"{HOST}/list?c=900&price={price}")[0] for price in ("[0|100]", "[0|90]")}) == 1


def test_the_luckiest_of_many_values_is_no_rule() -> None:
    """Revisions 1 and 2 agree 22 times of 22, those after them nine times of ten."""
    crawl = []
    for n in range(22):
        shown = n
        for revision in range(1, 7):
            shown += 1000 if revision > 2 and (n + revision) % 10 == 0 else 0
            crawl.append((f"{HOST}/file/f{n}.c?rev={revision}", shown))
    assert learned(crawl).rules == ()


def test_pages_without_a_value_that_a_context_was_narrowed_to_are_not_let_in_again() -> None:
    """``sort=price&order=asc`` shows the list, ``sort=rel&order=asc`` another one, and so does ``order=asc``."""
    evidence = Evidence()
    pages = [(n, query, 0) for n in range(80) for query in ("", "&order=asc&sort=price")]
    pages += [(n, "&order=asc&sort=rel", 1) for n in range(40)] + [(n, "&order=asc", 2) for n in range(3)]
    for n, query, other in pages:
        url = f"{HOST}/list?cat={n}{query}"
        evidence.add(url, 10 * n + other, parse(url))
    snapshot = Snapshot(evidence)
    own = ("order", 1), ("sort", 1)
    order, sort = (snapshot.columns[key].column.numbers for key in own)
    found = refine(snapshot, DropFixed(own, fixed=((order["asc"],), (sort["price"], sort["rel"]))))
    assert found is not None
    assert [str(known) for known in found.conditions if known.key.name == "sort"] == ["?sort is 'price'"]


def test_a_copy_of_a_snapshot_is_edited_apart() -> None:
    evidence = Evidence()
    for n in range(6):
        url = f"{HOST}/a?x={n % 2}&y={n}"
        evidence.add(url, n, parse(url))
    snapshot = Snapshot(evidence)
    twin = snapshot.copy()
    twin.key[:] = 0
    twin.columns["x", 1].alive[:] = False
    assert snapshot.key.all()
    assert snapshot.columns["x", 1].alive.all()


def test_what_a_withdrawn_rule_kept_out_is_decided_anew() -> None:
    run = Replay(explore=0)
    rows = [CrawlRow(f"{HOST}/t?id={n}{more}", n) for n in range(60) for more in ("", "&v=1")]
    late = [
        CrawlRow(f"{HOST}/t?id={n}{more}", 1000 + n * 2 + len(more)) for n in range(60, 90) for more in ("", "&v=1")
    ]
    for row in [*rows, *late]:
        run.visit(row)
    assert run.skips > 30
    kept_out = {row.url for row, *_ in run.trace.values()}
    learner = run.learners["h.com"]
    learner.retire(learner.rules[0].id, "by hand")
    run._load("h.com")
    run.visit(CrawlRow(f"{HOST}/other", 5000))
    assert run.skips == 0
    assert not run.trace
    assert {run.identity(row) for row in late} <= run.fetched
    assert kept_out


def test_a_reference_and_a_drop_do_not_undo_each_other() -> None:
    """The session's number is the item's, at times: what writes it is learned first, what drops it must win."""
    learner = Learner("h.com")
    items = [(f"{HOST}/item?id={n}{more}", n) for n in range(60) for more in ("", f"&sid={n}", f"&sid={n + 1}")]
    for start in range(0, len(items), 12):
        learner.observe(Page(url, content) for url, content in items[start : start + 12])
        learner.learn(start)
    rules = RuleSet("h.com", 1, learner.rules)
    keys = {key_under(rules, f"{HOST}/item?id=99{more}")[0] for more in ("", "&sid=99", "&sid=100")}
    assert len(keys) == 1
