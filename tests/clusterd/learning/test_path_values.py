"""A number in a path that is a parameter's value: what is learned of it, and what forbids it."""

from __future__ import annotations

import random

import pytest
from clusterd.learning.replay import CrawlRow, Replay

from tests.clusterd.learning.one_host import HOST, learned, same


@pytest.mark.parametrize(
    ("path", "script"),
    [
        ("topic{}.html", "topic.php?t={}"),
        ("thread-{}-1-1.html", "forum.php?mod=viewthread&tid={}"),
        ("thread-{}-1-1.html", "forum.php?tid={}&mod=viewthread"),
        ("articles/{}.html", "print.php?id={}"),
        ("news/p-{}", "news/show/page?lang=en&p={}"),
    ],
)
def test_a_number_in_a_path_is_a_parameters_value(path: str, script: str) -> None:
    rules = learned([(form.format(n), n) for n in range(100, 300) for form in (path, script)])

    assert same(rules, path.format(9001), script.format(9001))
    assert not same(rules, path.format(9001), script.format(9002))
    assert not same(rules, path.format(9001), path.format(9002))
    # What has a query, or another form, is left alone.
    assert not same(rules, f"{path.format(9001)}?page=2", script.format(9001))
    assert not same(rules, f"old/{path.format(9001)}", script.format(9001))


def test_the_other_numbers_of_a_path_are_of_the_form() -> None:
    pages = [(form.format(n), n) for n in range(100, 300) for form in ("thread-{}-1-1.html", "thread.php?tid={}")]
    rules = learned([*pages, *((f"thread-{n}-2-1.html", 5000 + n) for n in range(100, 300))])

    assert same(rules, "thread-9001-1-1.html", "thread.php?tid=9001")
    assert not same(rules, "thread-9001-2-1.html", "thread.php?tid=9001")


@pytest.mark.parametrize("share", [10, 30])
def test_a_number_that_is_the_value_for_most_pages_only_says_nothing(share: int) -> None:
    pages = [(f"topic{n}.html", n) for n in range(100, 400)]
    rules = learned([*pages, *((f"topic.php?t={n}", n if n % share else 5000 + n) for n in range(100, 400))])

    assert not same(rules, "topic9001.html", "topic.php?t=9001")


def test_what_a_component_is_as_a_whole_is_said_once() -> None:
    rules = learned([(form.format(n), n) for n in range(100, 300) for form in ("v/{}", "v.php?id={}", "v-{}.html")])

    assert same(rules, "v/9001", "v.php?id=9001")
    assert same(rules, "v/9001", "v-9001.html")
    assert not same(rules, "v/9001", "v-9002.html")


@pytest.mark.parametrize("seed", [0, 1])
def test_in_a_crawl_what_is_skipped_is_known(seed: int) -> None:
    # Given a forum of 300 topics under two addresses each, and a print view of which one in 20 shows more.
    forms = ("thread-{}-1-1.html", "forum.php?mod=viewthread&tid={}", "forum.php?mod=viewthread&tid={}&from=index")
    rows = [CrawlRow(f"http://{HOST}/{form.format(n)}", n) for n in range(300) for form in forms]
    rows += [CrawlRow(f"http://{HOST}/print-{n}.html", n if n % 20 else 5000 + n) for n in range(300)]
    random.Random(seed).shuffle(rows)
    run = Replay()
    for row in rows:
        run.visit(row)
    # Then two of three addresses are skipped, once that is known, and nothing is lost.
    assert run.skips > 0.7 * 600
    assert run.right == run.skips
    assert len(run.fetched) == len({row.content for row in rows})
