"""``clusterd rules …`` and ``clusterd status`` as they are typed, on a real Redis."""

from __future__ import annotations

import json
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from clusterd.cli.commands import run
from clusterd.cli.rules import FIELDS
from clusterd.config import Config
from clusterd.learning.contract import Page
from clusterd.learning.interchange.files import write_rules
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.services import open_services, publish_sketches
from clusterd_consumer.redis_connection import connect
from clusterd_crawler import topics
from clusterd_crawler.message import SkipReport
from clusterd_crawler.page import sketch_plain
from clusterd_crawler.rule_language.json_form import rule_set_from_json
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.skipping.standing import ALIKE

from tests.clusterd.made_up_rules import offered_set
from tests.services.redis_server import free_port

HOST = "shop.example.com"
URL = f"http://{HOST}/item?id=1&sid=7"


def drop(name: str, host: str = HOST) -> Rule:
    context, edits = (Condition(Key(name), "any"),), (Edit(Key(name), "delete"),)
    evidence = ((f"http://{host}/a?{name}=1", f"http://{host}/a", True),)
    made = rule_id(host, context, edits)
    return Rule(made, host, context, edits, support=30, coverage=40, precision=1.0, lower_bound=0.92, evidence=evidence)


SID, LANG = drop("sid"), Rule("lang01", HOST, (), (Edit(Key("lang"), "set", "en"),))


class Cli:
    """Runs a command line in this process and reads what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *words: str, status: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text("--json", *words, status=status).splitlines()]

    def text(self, *words: str, status: int = 0) -> str:
        self._capsys.readouterr()
        ended = run(list(words))
        out, self.err = self._capsys.readouterr()
        assert ended == status, self.err
        return out


@pytest.fixture
def cli(own_store: None, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


@pytest.fixture
def book(client: redis.Redis, prefix: str) -> RuleService:
    return RuleService(RuleBook(client, prefix))


@pytest.fixture
def rules(book: RuleService) -> RuleService:
    book.import_rules([SID, LANG, drop("ref", "other.org")], at=1_700_000_000_000)
    return book


def published(redis_url: str, prefix: str) -> list[RuleSet]:
    client: Any = connect(redis_url)
    found = [rule_set_from_json(json.loads(fields[b"v"])) for _, fields in client.xrange(f"{prefix}stream:rules")]
    client.close()
    return found


def test_rules_are_listed_with_the_fields_of_the_interface(cli: Cli, rules: RuleService) -> None:
    listed = cli("rules", "list")
    assert [line["id"] for line in listed] == [drop("ref", "other.org").id, SID.id, LANG.id]
    assert set(FIELDS) <= set(listed[0])
    sid = listed[1]
    assert sid["host"] == HOST
    assert sid["context"] == [{"key": "?sid", "test": "any", "values": []}]
    assert sid["transformation"] == [{"key": "?sid", "op": "delete"}]
    assert (sid["support"], sid["coverage"], sid["precision"], sid["lower_bound"]) == (30, 40, 1.0, 0.92)
    assert (sid["state"], sid["since"]) == ("live", "2023-11-14T22:13:20.000Z")
    assert "?sid" in cli.text("rules", "list")


def test_a_host_is_listed_alone_and_retired_rules_only_when_asked_for(cli: Cli, rules: RuleService) -> None:
    rules.retire(LANG.id, at=5)
    assert [line["id"] for line in cli("rules", "list", "--host", HOST)] == [SID.id]
    assert [line["id"] for line in cli("rules", "list", "--host", f"{HOST.upper()}:80")] == [SID.id]
    assert {line["state"] for line in cli("rules", "list", "--host", HOST, "--all")} == {"live", "retired"}
    assert cli("rules", "list", "--host", "nowhere.example") == []


def test_a_rule_that_another_took_the_place_of_is_listed_with_that_one(cli: Cli, rules: RuleService) -> None:
    rules.retire(LANG.id, at=5)
    [anew] = rules.import_rules([replace(SID, transformation=drop("sess").transformation)], at=6)
    listed = {line["id"]: line.get("replaced_by") for line in cli("rules", "list", "--host", HOST, "--all")}
    assert listed == {SID.id: anew.id, LANG.id: None, anew.id: None}
    head, *lines = cli.text("rules", "list", "--host", HOST, "--all").splitlines()
    assert head.endswith("replaced_by")
    assert sorted(line.split()[-1] for line in lines) == sorted(["-", "-", anew.id])


def test_a_rule_is_shown_with_its_evidence_and_history(cli: Cli, rules: RuleService) -> None:
    [shown] = cli("rules", "show", SID.id)
    assert shown["evidence"] == [{"a": f"http://{HOST}/a?sid=1", "b": f"http://{HOST}/a", "agreed": True}]
    assert [turn["by"] for turn in shown["history"]] == ["import"]
    text = cli.text("rules", "show", SID.id)
    assert f"http://{HOST}/a?sid=1" in text
    assert "30 pages agreed" in text


@pytest.mark.parametrize("words", [("show",), ("retire",), ("pin",)])
def test_an_unknown_rule_ends_with_one(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli("rules", *words, "nosuch", status=1) == []
    assert "nosuch" in cli.err
    assert cli.err.count("\n") == 1


def test_why_tells_the_key_the_rules_and_the_page_that_is_known(cli: Cli, rules: RuleService) -> None:
    [line] = cli("rules", "why", URL)
    key = f"http://{HOST}/item?id=1&lang=en"
    assert line == {"url": URL, "key": key, "rules": [SID.id, LANG.id], "would_skip": False, "known_url": None}
    known = f"http://{HOST}/item?id=1&lang=de"
    rules.book.add_pages({HOST: [Page(known, 5, 100, (), 1)]})
    [line] = cli("rules", "why", URL)
    assert (line["would_skip"], line["known_url"]) == (True, known)
    assert cli("rules", "why", "no url", status=2) == []


def test_why_not_when_the_pages_of_the_key_differ_or_the_url_is_exempted(cli: Cli, rules: RuleService) -> None:
    rules.book.add_pages({HOST: [Page(f"http://{HOST}/item?id=1&sid={n}", n, 100, (), n) for n in (1, 2)]})
    assert not cli("rules", "why", URL)[0]["would_skip"]
    [of_the_two] = cli("rules", "why", f"http://{HOST}/item?id=1&sid=1")  # to a crawl that has the other alone
    assert (of_the_two["would_skip"], of_the_two["known_url"]) == (True, f"http://{HOST}/item?id=1&sid=2")
    other = f"http://{HOST}/item?id=2&sid=1"
    rules.book.add_pages({HOST: [Page(f"http://{HOST}/item?id=2", 9, 100, (), 1)]})
    assert cli("rules", "why", other)[0]["would_skip"]
    cli("unskip", other)
    assert not cli("rules", "why", other)[0]["would_skip"]


def test_why_tells_the_page_to_which_urls_of_the_key_lead(cli: Cli, rules: RuleService) -> None:
    shown = Page(f"http://{HOST}/start", 9, 100, (), 1)
    urls = [f"http://{HOST}/item?id=1&sid={n}" for n in range(ALIKE + 1)]
    leading = [Page(url, 0, 0, (), 2, state="redirected", target=shown.url) for url in urls]
    rules.book.add_pages({HOST: [shown, *leading[:ALIKE]]})
    assert not cli("rules", "why", leading[0].url)[0]["would_skip"]
    [line] = cli("rules", "why", leading[ALIKE].url)
    assert (line["would_skip"], line["known_url"]) == (True, shown.url)


def test_why_reads_only_the_pages_that_a_rule_speaks_of(
    cli: Cli, rules: RuleService, redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a platform with a host a user, which brings 200,000 pages, it took a minute."""
    hosts = [HOST, "user.example.com", "without.org"]
    urls = [f"http://{host}/item?id=1&lang=de" for host in hosts]
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:
        services.index.apply([sketch_plain(url, f"page {url}", fetched_at=1) for url in urls])
    read: list[str] = []
    pages = RuleService.pages
    monkeypatch.setattr(RuleService, "pages", lambda book, host: read.append(host) or pages(book, host))
    assert cli("rules", "why", URL)[0]["rules"] == [SID.id, LANG.id]
    assert read == [HOST]
    assert not cli("rules", "why", urls[2])[0]["would_skip"]
    assert read == [HOST]
    rules.import_rules([replace(drop("x", "example.com"), spans=True)], at=1)
    cli("rules", "why", URL)
    assert set(read) == {HOST, "user.example.com", "example.com"}


def test_a_rule_retired_by_hand_is_published_at_once(cli: Cli, rules: RuleService, redis_url: str, prefix: str) -> None:
    [line] = cli("rules", "retire", SID.id)
    assert (line["id"], line["state"]) == (SID.id, "retired")
    last = published(redis_url, prefix)[-1]
    assert last.retired == ((SID.id, "by hand"),)
    assert [rule.id for rule in last.rules] == [LANG.id]
    assert offered_set(rules.book, HOST) == last


def test_a_rule_is_pinned(cli: Cli, rules: RuleService, redis_url: str, prefix: str) -> None:
    assert cli("rules", "pin", SID.id)[0]["state"] == "pinned"
    assert {rule.id: rule.state for rule in published(redis_url, prefix)[-1].rules}[SID.id] == "pinned"


def test_rules_go_out_to_a_file_and_come_in_elsewhere(
    cli: Cli, rules: RuleService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    file = str(tmp_path / "rules.json")
    before = cli("rules", "list")
    assert [line["id"] for line in cli("rules", "export", file)] == [line["id"] for line in before]
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", f"{prefix}elsewhere:")
    assert len(cli("rules", "import", file)) == 3
    since = [{name: value for name, value in line.items() if name != "since"} for line in cli("rules", "list")]
    assert since == [{name: value for name, value in line.items() if name != "since"} for line in before]


def test_an_export_of_a_host_without_rules_leaves_the_file_of_before(
    cli: Cli, rules: RuleService, tmp_path: Path
) -> None:
    file = tmp_path / "rules.json"
    assert len(cli("rules", "export", str(file), "--host", HOST.upper())) == 2
    before = file.read_text()
    assert cli("rules", "export", str(file), "--host", "shop.example.con", status=1) == []
    assert cli.err.startswith("clusterd: no rules of shop.example.con; ")
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("file", "status", "says"),
    [
        ("absent/rules.json", 2, "No such file or directory"),
        (".", 2, "Is a directory"),
        ("/dev/full", 1, "No space left on device"),
    ],
)
def test_an_export_that_cannot_be_written_is_said(
    cli: Cli, rules: RuleService, file: str, status: int, says: str
) -> None:
    assert cli("rules", "export", file, status=status) == []
    assert cli.err == f"clusterd: {file}: cannot be written: {says}\n"


def test_an_export_that_finds_no_room_leaves_the_file_of_before(cli: Cli, rules: RuleService, tmp_path: Path) -> None:
    """It was cut to no bytes before the new one was written."""
    file = tmp_path / "rules.json"
    file.write_text("before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        assert cli("rules", "export", str(file), status=1) == []
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert cli.err == f"clusterd: {file}: cannot be written: File too large\n"
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["rules.json"]
    assert file.read_text() == "before"


def test_an_export_names_what_the_format_cannot_say(cli: Cli, rules: RuleService, tmp_path: Path) -> None:
    file = tmp_path / "dud.json"
    lines = cli("rules", "export", str(file), "--format", "dud", "--host", HOST)
    assert [line["id"] for line in lines] == [SID.id, LANG.id]
    assert set(lines[1]) == {"id", "reason"}
    assert [entry["args"] for entry in json.loads(file.read_text())] == [["sid"]]
    assert "set ?lang" in lines[1]["reason"]
    assert "--loose" not in cli.err


def test_an_export_tells_of_the_looser_one(cli: Cli, book: RuleService, tmp_path: Path) -> None:
    book.import_rules([replace(SID, context=(Condition(Key(), "only", ("sid", "id")),))], at=1)
    file = str(tmp_path / "dud.json")
    assert "other parameters" in cli("rules", "export", file, "--format", "dud")[0]["reason"]
    assert cli.err.startswith("--loose exports them without their condition on other parameters")
    assert "reason" not in cli("rules", "export", file, "--format", "dud", "--loose")[0]
    assert cli.err == ""


def test_an_export_to_standard_output_is_the_file(cli: Cli, rules: RuleService, tmp_path: Path) -> None:
    universal = tmp_path / "universal.json"
    universal.write_text(
        json.dumps([{"order": 1, "processor": "queryRemoval", "args": ["utm"], "urlPattern": {"include": []}}])
    )
    assert json.loads(cli.text("rules", "export", "-", "--format", "dud", "--host", HOST))[0]["args"] == ["sid"]
    assert [
        [entry["args"] for entry in line] for line in cli("rules", "export", "--format", "dud", "--host", HOST)
    ] == [[["sid"]]]
    assert LANG.id in cli.err
    [line] = cli("rules", "export", "--format", "dud", "--host", HOST, "--universal", str(universal))
    assert sorted(entry["args"] for entry in line) == [["sid"], ["utm"]]


def test_a_discarders_file_is_imported_and_what_has_no_counterpart_named(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "dud.json"
    pattern = {"include": [f"{HOST}/item", "a.shop.example.com"]}
    file.write_text(json.dumps([{"order": 1, "processor": "queryRemoval", "args": ["x"], "urlPattern": pattern}]))
    lines = cli("rules", "import", str(file), "--format", "dud")
    assert [line.get("state", "refused") for line in lines] == ["live", "live", "refused"]
    assert cli("rules", "why", f"http://{HOST}/item?x=1&y=2")[0]["key"] == f"http://{HOST}/item?y=2"


def test_a_file_with_an_error_is_refused_whole(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    text, _ = write_rules([SID, drop("ref")], "clusterd")
    file.write_text(
        text.replace('"op": "delete"', '"op": "destroy"', 2).replace('"op": "destroy"', '"op": "delete"', 1)
    )
    assert cli("rules", "import", str(file), status=2) == []
    assert "entry 1" in cli.err
    assert "destroy" in cli.err
    assert cli("rules", "list") == []
    cli("rules", "import", str(tmp_path / "missing.json"), status=2)


def test_status_counts_what_is_in_the_store(
    cli: Cli, rules: RuleService, tmp_path: Path, redis_url: str, prefix: str
) -> None:
    rules.retire(LANG.id, at=9)
    rules.record_skips([SkipReport(URL, SID.id, "k", "k", 1)])
    words = " ".join(f"word{n}" for n in range(60))
    pages = [{"url": f"http://{HOST}/{n}", "text": words} for n in range(2)] + [
        {"url": f"http://{HOST}/x", "text": "z"}
    ]
    (tmp_path / "pages.jsonl").write_text("\n".join(map(json.dumps, pages)))
    cli("ingest", str(tmp_path / "pages.jsonl"))
    (tmp_path / "later.jsonl").write_text(json.dumps(pages[2] | {"text": "z and more"}))
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:
        services.publisher.publish(topics.SKETCHES, b"", b"junk")
    cli("ingest", str(tmp_path / "later.jsonl"))
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:
        publish_sketches(services, [sketch_plain(URL, "not worked on", fetched_at=1)] * 2)
    [line] = cli("status")
    assert (line["documents"], line["versions"], line["contents"]) == (3, 4, 3)
    assert line["clusters"]["identical"] == 1
    assert line["rules"] == {"live": 2, "pinned": 0, "retired": 1}
    assert (line["skips"], line["lag"], line["dead_letters"], line["daemons"]) == (1, 2, 1, 0)
    assert line["store_bytes"] > 100_000
    assert "documents" in cli.text("status")


def test_the_status_shows_what_it_can_where_kafka_does_not_answer(cli: Cli, rules: RuleService) -> None:
    [line] = cli("status", "--kafka", f"127.0.0.1:{free_port()}", status=1)
    assert line["rules"] == {"live": 3, "pinned": 0, "retired": 0}
    assert line["lag"] is None
    assert line["unreachable"]["kafka"].startswith("no Kafka at")
    assert cli.err == f"clusterd: {line['unreachable']['kafka']}\n"


def test_rules_are_told_where_kafka_does_not_answer(
    cli: Cli, rules: RuleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterd.cli.invocation.PATIENCE", 0.1)
    kafka = f"127.0.0.1:{free_port()}"
    assert len(cli("rules", "list", "--kafka", kafka)) == 3
    assert cli.err.startswith(f"no Kafka at {kafka}")
    assert cli.err.count("\n") == 1
    [added] = cli("policy", "add", "more", "--resemblance", "0.7", "--kafka", kafka)
    assert added["policy"] == "more"


def test_a_status_without_its_store_says_so_in_one_line(cli: Cli) -> None:
    assert cli("status", "--redis", f"redis://127.0.0.1:{free_port()}/0", status=1) == []
    assert cli.err.count("\n") == 1


def test_pages_that_come_in_become_rules(cli: Cli, tmp_path: Path) -> None:
    """The whole path without a daemon: ingest, learn, list, explain."""
    rows = []
    for number in range(300):
        text = " ".join(f"item{number} word{n}" for n in range(40))
        rows += [{"url": f"http://{HOST}/item?id={number}", "text": text}]
        rows += [{"url": f"http://{HOST}/item?id={number}&sid={number * 7 + s}", "text": text} for s in range(2)]
    (tmp_path / "pages.jsonl").write_text("\n".join(map(json.dumps, rows)))
    cli("ingest", str(tmp_path / "pages.jsonl"))
    assert any("?sid" in line["text"] for line in cli("rules", "list", "--host", HOST))
    [line] = cli("rules", "why", f"http://{HOST}/item?id=3&sid=new")
    assert line["would_skip"]
    assert line["known_url"].startswith(f"http://{HOST}/item?id=3")
