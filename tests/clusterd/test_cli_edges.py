"""What goes wrong at the edges of the command line is said in one line: what it is, and what would be right."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import uuid
from dataclasses import fields
from pathlib import Path

import pytest
import redis
from clusterd.alerts import Alert, Alerts
from clusterd.cli.alerts import moment
from clusterd.cli.commands import run
from clusterd.config import Config
from clusterd_crawler.clock import iso, now_ms
from clusterd_crawler.errors import SettingError, WrongInput
from clusterd_crawler.rule_language.json_form import rule_to_json
from clusterd_crawler.settings import DAEMON_ONLY, Settings

from tests.clusterd.command_line import clusterd, write
from tests.clusterd.made_up_rules import sid_rule


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("status", "--data", "file/inside"), 2, "file/inside cannot hold the store"),
        (("status", "--data", "file"), 2, "--data DIR"),
        (("status", "--data", ""), 2, "it takes a folder"),
        (("status", "--data"), 2, "Option '--data' requires an argument"),
        (("status", "--redis", "redis+cluster://127.0.0.1:1"), 1, "127.0.0.1:1"),
        (("status", "--redis", "redis+cluster://127.0.0.1:1/3"), 2, "it takes redis://HOST:PORT/DB"),
        (("status", "--redis", "redis://127.0.0.1:1?tls=1"), 2, "there is no option 'tls'"),
        (("policy", "add", "a b", "--resemblance", "0.5"), 2, "letters, digits"),
        (("policy", "add", "odd", "--resemblance", "nan"), 2, "nan is not in the range 0<x<=1"),
        (("pairs", "file", "--threshold", "nan"), 2, "nan is not in the range 0<x<=1"),
        (("ingest", "file", "--jobs", "100000"), 2, "100000 is not in the range 1<=x<=1000"),
        (("rules", "replay", "file", "--explore", "nan"), 2, "nan is not in the range 0<=x<=1"),
        (("compare", "-", "-"), 2, "standard input is one document"),
        (("policy",), 2, "policy: lacks its command; give one of add, list, remove"),
        (("batch",), 2, "give one of cluster"),
        (("rules", "--json"), 2, "give one of "),
        (("batch", "cluster", "file", "--policy", "added"), 2, "contained (CLUSTERD_POLICIES; not the store's)"),
        (("find-lost", "https://a.example/", "--host", "a.example"), 2, "--host goes with --all"),
        (("compare", "x" * 256, "text:a"), 2, "File name too long; give a URL of the store"),
        (("run", "--check", "--data", "x" * 256), 1, "cannot hold the store: File name too long"),
        (("changes", "--plot", "x" * 256 + "/a.svg"), 2, "cannot be written: File name too long"),
        (("cluster", "h.example/page"), 2, "not an absolute URL: 'h.example/page'; expected scheme://host/path"),
        (("cluster", "http://h.example/page"), 1, "the store has no page http://h.example/page"),
        (("similar", "http://"), 2, "no host in URL: 'http://'"),
        (("compare", "http:///page", "text:a"), 2, "no host in URL: 'http:///page'"),
        (("changes", "--plot", "absent/plot.svg"), 2, "there is no folder absent"),
        (("rules", "replay", "absent.tsv"), 2, "absent.tsv: cannot be read: No such file or directory"),
        (("rules", "replay", "file"), 2, "the header lacks content, url"),
        (("rules", "replay", "file", "--split", "0.5", "--explore", "0.1"), 2, "--explore go without --split"),
        (("rules", "replay", "file", "--split", "0.5", "--order", "random"), 2, "--explore go without --split"),
        (("rules", "import", "file"), 2, "file: is not JSON"),
        (("rules", "import", "number"), 2, "number: not a rule file of clusterd"),
        (("rules", "import", "number", "--format", "dud"), 2, "number: a rule file of duplicate-url-discarder"),
        (("rules", "export", "--loose"), 2, "--loose and --universal go with --format dud"),
        (("rules", "export", "--universal", "file"), 2, "--loose and --universal go with --format dud"),
        (("ingest", ""), 2, "the name is empty; it takes a folder or a file"),
        (("pairs", "", "--threshold", "0.5"), 2, "the name is empty"),
        (("status", "--config", ""), 2, "the name is empty"),
        (("clusters", "--host", ""), 2, "the name is empty; it takes a host"),
        (("rules", "export", "--host", ""), 2, "the name is empty; it takes a host"),
    ],
)
def test_one_line_and_the_right_status(tmp_path: Path, words: tuple[str, ...], status: int, says: str) -> None:
    (tmp_path / "file").write_text("x" * 5000 + "\n")
    (tmp_path / "number").write_text("1\n")
    done = clusterd(*words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 400


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("cluster", "http://a.example/\udcff"), 1),
        (("similar", "http://a.example/\udcff"), 1),
        (("group", "http://a.example/\udcff"), 0),
        (("rules", "show", "\udcff"), 2),
        (("clusters", "--host", "\udcff"), 2),
        (("find-lost", "http://\udcff.example/"), 2),
        (("ingest", "--sweep", "\udcff", "page.html"), 1),
    ],
)
def test_bytes_that_are_no_text_cost_one_line(
    redis_url: str, prefix: str, tmp_path: Path, words: tuple[str, ...], status: int
) -> None:
    (tmp_path / "page.html").write_text("<p>a page of a few words</p>")
    done = clusterd(*words, folder=tmp_path, CLUSTERD_REDIS=redis_url, CLUSTERD_REDIS_PREFIX=prefix)
    assert done.returncode == status
    assert done.stderr.count("\n") == (1 if status else 0)
    assert "fault of clusterd" not in done.stderr


def test_a_metrics_port_that_is_taken_is_said(redis_url: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = clusterd("run", "--metrics-port", port, "--log-level", "error", "--redis", redis_url, folder=tmp_path)
    assert done.returncode == 1
    assert f"metrics_port {port} of 127.0.0.1 cannot be served: Address already in use" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("since", ["99999999999d", "0001-01-02", "1960-01-01T00:00:00Z"])
def test_a_time_before_all_times_is_the_beginning(since: str) -> None:
    assert moment(since) == 0


@pytest.mark.parametrize(("span", "seconds"), [("90s", 90), ("2m", 120), ("3h", 10_800), ("1d", 86_400)])
def test_a_span_is_told_back_from_now(span: str, seconds: int) -> None:
    before = now_ms()
    assert before <= moment(span) + 1000 * seconds <= now_ms()


def test_a_span_of_thousands_of_digits_is_wrong_input() -> None:
    with pytest.raises(WrongInput, match="takes an ISO 8601 time"):
        moment("9" * 5000 + "d")


class TestSettings:
    def test_the_crawl_knows_the_names_of_the_daemon(self) -> None:
        assert {field.name for field in fields(Config)} - {field.name for field in fields(Settings)} == DAEMON_ONLY

    def test_one_environment_serves_both(self) -> None:
        shared = {"CLUSTERD_BATCH": "5", "CLUSTERD_EXPLORE": "0.5", "CLUSTERD_TEST_REDIS": "redis://x"}
        assert Settings.from_environment(shared).explore == Config.load(environment=shared).explore == 0.5
        with pytest.raises(SettingError, match="did you mean CLUSTERD_BATCH"):
            Settings.from_environment({"CLUSTERD_BATCHH": "5"})

    def test_a_crawl_takes_from_the_environment_what_scrapy_does_not_say(self) -> None:
        environment = {"CLUSTERD_EXPLORE": "0.5", "CLUSTERD_QUEUE": "7"}
        read = Settings.from_crawl({"CLUSTERD_QUEUE": 8, "LOG_LEVEL": "INFO"}, environment)
        assert (read.explore, read.queue) == (0.5, 8)

    @pytest.mark.parametrize("value", [True, 2.5, "2.5"])
    def test_a_whole_number_is_a_whole_number(self, value: object) -> None:
        with pytest.raises(SettingError, match="CLUSTERD_QUEUE"):
            Settings.from_mapping({"CLUSTERD_QUEUE": value}, source="here")

    def test_a_folder_that_is_named_beats_the_redis_of_the_environment(self) -> None:
        environment = {"REDIS_URL": "redis://127.0.0.1:1"}
        assert Config.load(environment=environment).redis == "redis://127.0.0.1:1"
        assert Config.load(environment=environment, options={"data": "here"}).redis == ""


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_following_ends_in_order_when_asked(redis_url: str, prefix: str, tmp_path: Path, asked: signal.Signals) -> None:
    """Also where a shell has started it in the background, with SIGINT ignored."""
    with redis.Redis.from_url(redis_url) as client:
        told = Alert(iso(now_ms()), "joined", "http://h/a", "near", "c", 2, None, 0.5)
        Alerts(client, Config(redis_prefix=prefix)).publish([told])
    follower = subprocess.Popen(
        [sys.executable, "-m", "clusterd", "alerts", "--follow", "--since", "1h"],
        bufsize=0,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN) and None,
    )
    try:
        assert follower.stdout is not None
        assert b"http://h/a" in follower.stdout.readline()
        follower.send_signal(asked)
        _, said = follower.communicate(timeout=60)
    finally:
        follower.kill()
    assert (follower.returncode, said) == (0, b"stopped\n")


@pytest.mark.parametrize("words", [("alerts",), ("changes",), ("find-lost", "--all"), ("clusters",), ("status",)])
def test_a_terminal_of_80_columns_is_enough(swept: dict[str, str], tmp_path: Path, words: tuple[str, ...]) -> None:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "clusterd", *words]
    done = subprocess.run(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, cwd=tmp_path, env=swept)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r", "").split("\n")
    assert max(map(len, lines)) <= 80
    if words != ("status",):
        assert any("http://s.example/new/1" in line for line in lines) or words == ("changes",)


def test_a_pipe_gets_no_escapes(swept: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "clusterd", "clusters"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=swept | {"FORCE_COLOR": "1"}, check=True)
    assert b"\x1b" not in done.stdout + done.stderr


@pytest.fixture(scope="module")
def swept(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a store that has seen two sweeps of a host; one page has moved."""
    folder = tmp_path_factory.mktemp("swept")
    environment = {**os.environ, "CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": f"t{uuid.uuid4().hex[:10]}:"}
    for label, name in (("2026-01-01", "old"), ("2026-02-01", "new")):
        text = " ".join(f"word{n}" for n in range(80))
        (folder / "p.jsonl").write_text(json.dumps({"url": f"http://s.example/{name}/1", "text": text}) + "\n")
        command = [sys.executable, "-m", "clusterd", "ingest", "p.jsonl", "--sweep", label]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)
    return environment


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("no json", ["rejected: -:1: not JSON", "clusterd: -: has no document"]),
        ('{"url": "", "text": "a"}', ["rejected: -:1: id and url are missing", "clusterd: -: has no document"]),
        ('{"id": "", "url": "", "text": "a"}', ["rejected: -:1: id and url are missing", "clusterd: -: has no"]),
        ("{no json", ["rejected: -:1: not JSON", "clusterd: -: has no document"]),
    ],
)
def test_standard_input_keeps_its_name_in_what_is_said(tmp_path: Path, given: str, says: list[str]) -> None:
    command = [sys.executable, "-m", "clusterd", "pairs", "-", "--threshold", "1"]
    done = subprocess.run(command, input=given, text=True, capture_output=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 2
    for line, beginning in zip(done.stderr.splitlines(), says, strict=True):
        assert line.startswith(beginning)


def test_a_document_whose_id_is_empty_goes_by_its_url(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "url": "http://h/1", "text": "some words"},
        {"id": "", "url": "http://h/2", "text": "some words"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = clusterd("pairs", "rows.jsonl", "--threshold", "1", "--json", folder=tmp_path)
    (pair,) = map(json.loads, done.stdout.splitlines())
    assert (pair["a"], pair["b"]) == ("a", "http://h/2")


@pytest.mark.parametrize(
    ("words", "lines"),
    [("ingest {} --json", 1), ("pairs {} --threshold .5 --json", 1), ("batch cluster {} --policy identical --json", 1)],
)
def test_a_pipe_of_the_shell_is_read_as_standard_input_is(tmp_path: Path, words: str, lines: int) -> None:
    row = json.dumps({"url": "http://h.example/N", "text": "some words that are the same"})
    script = f"{sys.executable} -m clusterd {words.format('<(cat rows; sed s/N/M/ rows)')} --data store"
    (tmp_path / "rows").write_text(row + "\n")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == lines


def test_a_file_that_is_cut_short_is_said_behind_any_number_of_broken_rows(tmp_path: Path) -> None:
    lines = "".join(f"not json {uuid.uuid4()}\n" for _ in range(3_000)).encode()
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(lines)[:-1_000])
    done = clusterd("pairs", "cut.jsonl.gz", "--threshold", "1", "--jobs", "1", folder=tmp_path)
    assert done.returncode == 2
    *named, more, cut, last = done.stderr.splitlines()
    assert (len(named), more) == (20, "rejected: more, counted only")
    assert cut.endswith("the file is cut short: it ends inside a compressed frame")
    assert last.startswith("clusterd: cut.jsonl.gz: has no document")


def test_rows_that_bear_the_id_of_another_file_s_are_told_of_where_the_last_alone_counts(tmp_path: Path) -> None:
    """Shards that count their rows anew: each replaced the one before it, and that no page has a copy was all said."""
    for shard in ("a", "b"):
        write(
            tmp_path / f"{shard}.jsonl", *({"id": n, "text": f"the words of {shard if n else 'both'}"} for n in (0, 1))
        )
    done = clusterd("--json", "batch", "cluster", "a.jsonl", "b.jsonl", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "2 of 4 pages have the URL (or id) of a later one, which alone counts" in done.stderr
    assert not clusterd("--json", "batch", "cluster", "a.jsonl", folder=tmp_path).stderr


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    """Once: from Python 3.13.2 on the interpreter tries again as it ends, says so in words of its own, status 120."""
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "clusterd", "compare", "text:a", "text:b"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == "clusterd: the output, or files in TMPDIR: No space left on device; make room there\n"


def test_a_limit_of_the_system_is_said(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", f"ulimit -n 8; exec {sys.executable} -m clusterd status"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 1
    allow = "allow more memory, processes or open files (ulimit -a, the container's limits)"
    assert done.stderr.splitlines()[-1] == f"clusterd: [Errno 24] Too many open files; {allow}"


def test_a_machine_without_a_folder_for_temporary_files_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"url": "http://h.example/", "text": "a"}\n')
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "nowhere")])
    assert run(["batch", "cluster", str(tmp_path / "rows.jsonl")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("clusterd: No usable temporary directory found")
    assert line.endswith("let TMPDIR name a folder that may be written to and has room")


def test_files_and_lists_may_begin_with_a_mark_and_the_locale_does_not_count(tmp_path: Path) -> None:
    """As editors of Windows write them. The store's scripts were read by the locale, and did not load in C's."""
    (tmp_path / "set.toml").write_bytes(b"\xef\xbb\xbfCLUSTERD_POLICIES = {near = {resemblance = 0.9}}\r\n")
    (tmp_path / "rules.json").write_bytes(b"\xef\xbb\xbf" + b'{"clusterd-rules": 1, "rules": []}')
    plain = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    def asked(*words: str, given: bytes = b"") -> list[str]:
        command = [sys.executable, "-m", "clusterd", *words, "--config", "set.toml", "--data", "store", "--json"]
        done = subprocess.run(
            command, input=given, capture_output=True, cwd=tmp_path, env=plain, timeout=60, check=True
        )
        return done.stdout.decode().splitlines()

    assert [json.loads(line)["policy"] for line in asked("policy", "list")] == ["near"]
    assert asked("rules", "import", "rules.json") == []
    urls = ["http://a.example/caf\u00e9", "http://a.example/b"]
    groups = asked("group", "-", "--policy", "near", given="\r\n".join(["\ufeff" + urls[0], urls[1]]).encode())
    assert [json.loads(line)["representative"] for line in groups] == urls


@pytest.mark.parametrize("charset", ["ascii:strict", "latin-1"])
def test_help_and_rules_are_printed_in_utf_8_whatever_the_terminal_speaks(tmp_path: Path, charset: str) -> None:
    """Where it could not write an ``…`` or an ``→`` all of it was called a fault of clusterd."""
    spoken = clusterd("pairs", "--help", folder=tmp_path, PYTHONIOENCODING=charset)
    assert (spoken.returncode, spoken.stderr) == (0, "")
    assert "r ≥ T" in spoken.stdout
    rules = {"clusterd-rules": 1, "rules": [rule_to_json(sid_rule())]}
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    clusterd("rules", "import", "rules.json", folder=tmp_path)
    exported = clusterd("rules", "export", folder=tmp_path, PYTHONIOENCODING=charset)
    assert (exported.returncode, exported.stderr) == (0, "")
    assert "→ delete ?sid" in exported.stdout
    assert json.loads(exported.stdout)["rules"][0]["host"] == "example.com"


def test_nothing_to_bring_in_is_said(redis_url: str, prefix: str, tmp_path: Path) -> None:
    """In a folder of JSON lines nothing said why it has no pages."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "crawl.json").write_bytes(b"{}\n")
    done = clusterd("ingest", "empty", "--redis", redis_url, folder=tmp_path, CLUSTERD_REDIS_PREFIX=prefix)
    said = "no page is in empty; of a folder the HTML files are read: name files of JSON lines one by one\n"
    assert (done.returncode, done.stderr) == (0, said)


def test_a_lost_page_is_told_of_beside_one_that_nobody_knows(tmp_path: Path) -> None:
    for sweep, path in (("1", "old"), ("2", "new")):
        (tmp_path / f"{sweep}.jsonl").write_text(json.dumps({"url": f"http://h.example/{path}", "text": "a few words"}))
        clusterd("ingest", f"{sweep}.jsonl", "--sweep", sweep, folder=tmp_path)
    done = clusterd("find-lost", "http://h.example/never", "http://h.example/old", folder=tmp_path)
    assert "http://h.example/new" in done.stdout
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no sweep of h.example has seen http://h.example/never" in done.stderr


@pytest.mark.parametrize("question", ["similar", "holders"])
def test_a_text_without_words_is_no_text_that_nobody_has(
    redis_url: str, prefix: str, tmp_path: Path, question: str
) -> None:
    def told(*words: str) -> tuple[int, str, str]:
        done = clusterd(*words, folder=tmp_path, CLUSTERD_REDIS=redis_url, CLUSTERD_REDIS_PREFIX=prefix)
        return done.returncode, done.stdout, done.stderr

    (tmp_path / "page.html").write_text("<title></title><p>&mdash;")
    wrong = "page.html: has no words, so that no page can be found by it; give HTML or plain text"
    assert told(question, "page.html", "--json") == (2, "", f"clusterd: {wrong}\n")
    (tmp_path / "pages.jsonl").write_text(json.dumps({"url": "http://a.example/", "text": "..."}))
    assert told("ingest", "pages.jsonl")[0] == 0
    assert told(question, "http://a.example/", "--json")[:2] == (0, "")


def test_what_brings_pages_in_forgets_where_no_daemon_does(redis_url: str, prefix: str, tmp_path: Path) -> None:
    row = {"url": "http://a.example/", "text": "a few words", "fetched_at": "2001-01-01T00:00:00Z"}
    later = row | {"text": "other words", "fetched_at": "2001-02-01T00:00:00Z"}
    (tmp_path / "pages.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(later)}\n")
    store = {"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}
    assert clusterd("ingest", "pages.jsonl", folder=tmp_path, **store, CLUSTERD_RETENTION="1").returncode == 0
    counted = json.loads(clusterd("status", "--json", folder=tmp_path, **store).stdout)
    assert (counted["documents"], counted["versions"]) == (1, 1)
