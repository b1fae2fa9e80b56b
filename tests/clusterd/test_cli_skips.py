"""``clusterd skips`` and ``clusterd unskip`` as they are typed, on a real Redis."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import redis
from clusterd.cli.commands import run
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd_consumer.redis_connection import connect
from clusterd_crawler.message import SkipReport
from clusterd_crawler.rules import Condition, Edit, Key, Rule

from tests.clusterd.made_up_rules import offered_set

HOST = "example.com"
RULE = Rule("r1", HOST, (Condition(Key("sid"), "any"),), (Edit(Key("sid"), "delete"),))


def skip(number: int, rule: str = "r1") -> SkipReport:
    key = f"http://{HOST}/{number}"
    return SkipReport(f"{key}?sid=1", rule, key, f"{key}?sid=0", 1_700_000_000_000 + number)


@pytest.fixture
def book(client: redis.Redis, prefix: str) -> RuleService:
    service = RuleService(RuleBook(client, prefix))
    service.import_rules([RULE], at=1)
    service.record_skips([skip(1), skip(2), skip(3, "r2")])
    return service


@pytest.fixture
def typed(own_store: None, capsys: pytest.CaptureFixture[str], book: RuleService) -> Any:
    def typed(*words: str) -> tuple[int, list[dict[str, Any]], str]:
        capsys.readouterr()
        status = run(["--json", *words])
        out, err = capsys.readouterr()
        return status, [json.loads(line) for line in out.splitlines()], err

    return typed


def test_every_skip_is_listed(typed: Any) -> None:
    status, lines, _ = typed("skips")
    assert status == 0
    key = f"http://{HOST}/1"
    first = {"at": "2023-11-14T22:13:20.001Z", "url": f"{key}?sid=1", "rule": "r1", "key": key}
    first["known_url"] = f"{key}?sid=0"
    assert lines[0] == first
    assert [line["rule"] for line in lines] == ["r1", "r1", "r2"]


def test_the_skips_of_one_rule(typed: Any) -> None:
    assert [line["url"] for line in typed("skips", "--rule", "r1")[1]] == [skip(1).url, skip(2).url]
    # A rule that the book has dropped still has its skips; one that nobody knows is an error.
    assert len(typed("skips", "--rule", "r2")[1]) == 1
    status, lines, err = typed("skips", "--rule", "nosuch")
    assert (status, lines) == (1, [])
    assert "nosuch" in err


def test_a_skip_is_undone(typed: Any, book: RuleService) -> None:
    status, lines, _ = typed("unskip", skip(2).url)
    assert status == 0
    assert [(line["url"], line["rule"]) for line in lines] == [(skip(2).url, "r1")]
    assert book.book.load(HOST).rules.unskip == (skip(2).url,)


def test_all_skips_of_a_rule_are_undone(typed: Any, book: RuleService) -> None:
    assert len(typed("unskip", "--rule", "r1")[1]) == 2
    offered = offered_set(book.book, HOST)
    assert offered is not None
    assert offered.unskip == (skip(1).url, skip(2).url)


def test_a_skip_is_undone_under_the_url_that_was_linked(typed: Any, book: RuleService) -> None:
    linked = replace(skip(4), url=f"http://{HOST}:80/%7eann/?sid=1#top")
    canonical = f"http://{HOST}/~ann/?sid=1"
    book.record_skips([linked])
    status, lines, _ = typed("unskip", linked.url)
    assert status == 0
    assert [(line["url"], line["rule"]) for line in lines] == [(linked.url, "r1")]
    assert book.book.load(HOST).rules.unskip == (canonical,)
    assert len(typed("unskip", "--rule", "r1")[1]) == 3
    assert set(book.book.load(HOST).rules.unskip) == {canonical, skip(1).url, skip(2).url}


@pytest.mark.parametrize("rule", ["within", "trap-0a1b2c3d", "r2"])
def test_what_no_rule_of_the_book_kept_out_is_undone(typed: Any, book: RuleService, rule: str) -> None:
    book.record_skips([skip(5, rule)])
    status, lines, _ = typed("unskip", "--rule", rule)
    assert status == 0
    assert skip(5).url in {line["url"] for line in lines}
    assert skip(5).url in book.book.load(HOST).rules.unskip


def test_the_skips_of_a_rule_that_nobody_knows_are_not_there_to_be_undone(typed: Any) -> None:
    status, lines, err = typed("unskip", "--rule", "nosuch")
    assert (status, lines) == (1, [])
    assert "nosuch" in err


@pytest.mark.parametrize("words", [(), ("http://a.com/", "--rule", "r1"), ("nonsense",)])
def test_what_cannot_be_undone_is_wrong_input(typed: Any, words: tuple[str, ...]) -> None:
    status, lines, err = typed("unskip", *words)
    assert (status, lines) == (2, [])
    assert err.count("\n") == 1


def test_skips_that_are_no_longer_listed_are_told_of(
    typed: Any, redis_url: str, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a rule whose skips had all been followed by too many others it said that no request had been skipped."""
    client = connect(redis_url)
    RuleBook(client, prefix, skips_limit=100).add_skips([skip(number, "r3") for number in range(10, 400)])
    client.close()
    status, lines, err = typed("skips")
    assert (status, err) == (0, f"393 were skipped; the latest {len(lines)} are listed\n")
    assert 100 <= len(lines) < 390
    assert run(["skips", "--rule", "r1"]) == 0
    assert capsys.readouterr().err == "2 were skipped; so many came later that none of them is listed now\n"
