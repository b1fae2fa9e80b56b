"""``clusterd rules why`` of pages that several crawls have fetched; what is said where no rule is in force."""

from __future__ import annotations

import json

import pytest
import redis
from clusterd.cli.commands import run
from clusterd.learning.contract import Page
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd_crawler.rules import Condition, Edit, Key, Rule, rule_id

HOST = "shop.example.com"
ITEM = f"http://{HOST}/item?id=1"
CONTEXT, EDITS = (Condition(Key("sid"), "any"),), (Edit(Key("sid"), "delete"),)
SID = Rule(rule_id(HOST, CONTEXT, EDITS), HOST, CONTEXT, EDITS, support=30, coverage=40)


@pytest.fixture
def book(own_store: None, client: redis.Redis, prefix: str) -> RuleService:
    service = RuleService(RuleBook(client, prefix))
    service.import_rules([SID], at=1)
    return service


def known_url(capsys: pytest.CaptureFixture[str]) -> str | None:
    """Return the page that a skip of another session of the item would rest on."""
    capsys.readouterr()
    assert run(["--json", "rules", "why", f"{ITEM}&sid=99"]) == 0
    found: str | None = json.loads(capsys.readouterr().out)["known_url"]
    return found


def test_a_page_that_changed_since_it_was_fetched_under_two_urls_is_known(
    book: RuleService, capsys: pytest.CaptureFixture[str]
) -> None:
    # The second crawl has skipped the session by the rule, so of that only the text of before is known.
    pages = [(ITEM, 5, "one"), (f"{ITEM}&sid=7", 5, "one"), (ITEM, 6, "two")]
    book.book.add_pages(
        {HOST: [Page(url, content, 100, (), n, crawl=by) for n, (url, content, by) in enumerate(pages)]}
    )
    assert known_url(capsys) == ITEM


def test_pages_that_differ_in_the_last_crawl_are_no_answer(
    book: RuleService, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [(ITEM, 5, "one"), (f"{ITEM}&sid=7", 5, "one"), (ITEM, 6, "two"), (f"{ITEM}&sid=7", 7, "two")]
    book.book.add_pages(
        {HOST: [Page(url, content, 100, (), n, crawl=by) for n, (url, content, by) in enumerate(pages)]}
    )
    assert known_url(capsys) is None


@pytest.mark.parametrize("of", [[], ["--host", HOST]], ids=["all", "host"])
def test_where_all_rules_are_retired_it_is_said_that_there_are_some(
    book: RuleService, capsys: pytest.CaptureFixture[str], of: list[str]
) -> None:
    book.retire(SID.id, at=2)
    assert run(["rules", "list", *of]) == 0
    out, err = capsys.readouterr()
    assert not out
    assert "are in force; clusterd rules list --all shows the retired ones" in err
