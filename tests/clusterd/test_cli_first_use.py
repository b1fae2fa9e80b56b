"""What a first user does: short texts, a daemon beside the commands, messages that nobody has worked off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from clusterd.clusters.contract import Policy
from clusterd.config import Config
from clusterd.health import Report
from clusterd.services import DAEMON_LOOK, open_services, process_pending, publish_sketches, see_through
from clusterd.working import make_worker
from clusterd_crawler.crawling.embedded_daemon import EmbeddedDaemon
from clusterd_crawler.page import sketch_plain
from clusterd_crawler.servers.redis_client import connect, embedded_url
from clusterd_crawler.sketch import TEXT

from tests.services.waiting import Clock

TWEETS = {1: "just setting up my twttr", 2: "RT just setting up my twttr today", 3: "hello", 4: "hello"}

Said = subprocess.CompletedProcess[str]
Typed = Callable[..., Said]


@pytest.fixture
def environment(redis_url: str, prefix: str) -> dict[str, str]:
    return {**os.environ, "CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}


@pytest.fixture
def typed(environment: dict[str, str], tmp_path: Path) -> Typed:
    def run(*words: str) -> Said:
        command = [sys.executable, "-m", "clusterd", *words, "--json"]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60, check=False
        )

    return run


@pytest.fixture
def tweets(typed: Typed, tmp_path: Path) -> Typed:
    rows = [{"url": f"http://t.example/{n}", "text": text} for n, text in TWEETS.items()]
    rows.append({"url": "http://long.example/", "text": " ".join(f"word{n}" for n in range(100))})
    (tmp_path / "tweets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    (tmp_path / "long.jsonl").write_text(json.dumps(rows[-1]) + "\n")
    assert typed("ingest", "tweets.jsonl", "--profile", "short").returncode == 0
    assert typed("ingest", "long.jsonl").returncode == 0
    return typed


def found(done: Said) -> dict[str, float]:
    assert done.returncode == 0, done.stderr
    return {row["url"]: row["resemblance"] for row in map(json.loads, done.stdout.splitlines())}


def test_short_texts_are_found_without_naming_their_profile(tweets: Typed) -> None:
    assert found(tweets("similar", "http://t.example/1")) == {"http://t.example/2": 0.5}
    assert found(tweets("similar", f"text:{TWEETS[1]}")) == {"http://t.example/1": 1.0, "http://t.example/2": 0.5}
    assert found(tweets("similar", "text:hello")) == {"http://t.example/3": 1.0, "http://t.example/4": 1.0}
    assert found(tweets("holders", "http://t.example/3")) == {"http://t.example/4": 1.0}


def test_a_page_is_compared_under_the_profile_that_it_has(tweets: Typed) -> None:
    done = tweets("compare", "http://t.example/1", f"text:{TWEETS[2]}")
    assert json.loads(done.stdout) == {"resemblance": 0.5, "a_in_b": 1.0, "b_in_a": 0.5}
    done = tweets("compare", "http://t.example/1", "http://long.example/")
    assert done.returncode == 2
    assert "which do not compare" in done.stderr


@pytest.fixture
def daemon(environment: dict[str, str], tmp_path: Path, typed: Typed) -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen(
        [sys.executable, "-m", "clusterd", "run"], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while typed("run", "--check").returncode and time.monotonic() < deadline:
        time.sleep(0.2)
    yield running
    running.terminate()
    running.wait(30)


def test_after_ingest_the_next_command_sees_the_pages_also_with_a_daemon(
    daemon: subprocess.Popen[bytes], typed: Typed, tmp_path: Path
) -> None:
    with (tmp_path / "p.jsonl").open("w") as file:
        for n in range(3000):
            text = " ".join(f"w{n // 2}x{m}" for m in range(40))
            file.write(json.dumps({"url": f"http://h.example/{n}", "text": text}) + "\n")
    assert typed("ingest", "p.jsonl").returncode == 0
    counted = json.loads(typed("status").stdout)
    assert (counted["documents"], counted["lag"], counted["settling"]) == (3000, 0, 0)
    assert counted["clusters"]["near"] == 1500
    assert daemon.poll() is None


def test_a_daemon_that_makes_no_headway_is_not_waited_for_for_ever(redis_url: str, prefix: str) -> None:
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:
        publish_sketches(services, [sketch_plain("http://h.example/", "some words", profile=TEXT, fetched_at=1)])
        services.redis.sadd(f"{prefix}daemons", "stuck")
        services.redis.set(f"{prefix}daemon:stuck", "{}", ex=60)
        assert see_through(services, patience=0.3) == 1
        services.redis.delete(f"{prefix}daemon:stuck")
        assert see_through(services, patience=0.3) == 0
        assert services.index.counts()["documents"] == 1


def test_a_slow_daemon_is_waited_for_as_long_as_it_makes_headway_and_an_outage_is_no_standing_still(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterd.services.time", clock := Clock())
    with open_services(Config(redis=redis_url, redis_prefix=prefix, batch=1)) as services:
        urls = [f"http://h.example/{n}" for n in range(6)]
        publish_sketches(services, [sketch_plain(url, url, profile=TEXT, fetched_at=1) for url in urls])
        services.redis.sadd(f"{prefix}daemons", "slow")
        services.redis.set(f"{prefix}daemon:slow", "{}")
        worker, _ = make_worker(services, Report(), 0.1)
        looks = count()

        def work(_: int, left: int) -> None:
            """Do what the daemon does: a page for every second look."""
            if next(looks) % 2:
                assert worker.step() == 1

        def away(ask: Callable[[], Any]) -> Any:
            clock.sleep(60)
            return ask()

        assert see_through(services, progress=work, patience=2.5 * DAEMON_LOOK, insist=away) == 0
        assert next(looks) == 2 * len(urls)
        worker.leave()


def test_where_more_pages_follow_hosts_that_grew_little_wait_for_the_last_of_them(redis_url: str, prefix: str) -> None:
    """Each is learned from its whole log: for a few new pages each of thousands of hosts, at each portion of it."""
    hosts = range(6)
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:

        def publish(first: int, last: int) -> None:
            urls = [f"http://h{host}.example/{n}" for host in hosts for n in range(first, last)]
            publish_sketches(services, [sketch_plain(url, url, profile=TEXT, fetched_at=1) for url in urls])

        publish(0, 30)
        assert see_through(services) == 0
        services.rulebook.forget()  # as where the learners of other hosts took their room
        publish(30, 31)
        assert see_through(services, allowed=10_000) == 0
        assert services.index.counts()["documents"] == 6 * 31
        assert len(services.rulebook.book.changed()) == 5
        assert see_through(services) == 0
        assert not services.rulebook.book.changed()


def test_what_others_publish_meanwhile_is_not_waited_for(redis_url: str, prefix: str) -> None:
    """Else an ingest beside crawls that keep the daemon busy would end with a word on a daemon that stands still."""
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:

        def publish(name: str) -> None:
            publish_sketches(services, [sketch_plain(f"http://h.example/{name}", name, profile=TEXT, fetched_at=1)])

        def come() -> None:
            services.redis.sadd(f"{prefix}daemons", "busy")
            services.redis.set(f"{prefix}daemon:busy", "{}", ex=60)

        def work(_: int, left: int) -> None:
            """Do what the daemon does, while a crawl goes on."""
            services.redis.delete(f"{prefix}daemon:busy")
            process_pending(services)
            come()
            publish(f"theirs{left}")

        publish("before")
        process_pending(services)
        come()
        publish("ours")
        assert see_through(services, progress=work, patience=0.3) == 0
        assert services.lag() == 1


def test_what_the_questions_do_from_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "questions.md").read_text("utf-8")
    code = page.partition("## From Python\n")[2].partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("page.html").write_text("<title>Some</title><p>words")
    exec(code, {})
    found, alternatives = capsys.readouterr().out.splitlines()
    assert found == "http://h.example/1 1.0 1.0"
    assert alternatives == "('http://h.example/1',)"


def test_a_question_works_off_what_waits(redis_url: str, prefix: str, typed: Typed) -> None:
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:
        pages = [sketch_plain(f"http://h.example/{n}", "same words " * 30, fetched_at=1) for n in range(3)]
        publish_sketches(services, pages)
    done = typed("clusters")
    assert json.loads(done.stdout)["size"] == 3
    assert done.stderr == "3 messages wait and no daemon runs: working them off\n"
    assert typed("clusters").stderr == ""


def test_a_question_settles_what_was_left(redis_url: str, prefix: str, typed: Typed) -> None:
    """A policy was added, and the command ended (kill -9, Ctrl-C) before its clusters were built."""
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:
        words = [f"w{n}" for n in range(100)]
        texts = [" ".join(words), " ".join(words[40:])]
        publish_sketches(services, [sketch_plain(f"http://h.example/{n}", texts[n], fetched_at=1) for n in range(2)])
        process_pending(services)
        services.index.add_policy(Policy("loose", resemblance=0.3))
        assert services.index.counts()["settling"]
    done = typed("clusters", "--policy", "loose")
    assert json.loads(done.stdout)["size"] == 2
    assert done.stderr == "clusters are not settled and no daemon runs: settling them\n"
    assert typed("clusters", "--policy", "loose").stderr == ""


def test_the_daemon_of_a_crawl_works_on_the_crawls_store_whatever_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REDIS_URL", "CLUSTERD_REDIS"):
        monkeypatch.setenv(name, "redis://127.0.0.1:1")
    daemon = EmbeddedDaemon(tmp_path / "data", "own:")
    daemon.start()
    try:
        client = connect(embedded_url(tmp_path / "data"))
        deadline = time.monotonic() + 60
        while not client.exists("own:daemons") and time.monotonic() < deadline:
            time.sleep(0.1)
        assert client.exists("own:daemons")
        client.close()
    finally:
        daemon.stop()


@pytest.mark.parametrize(
    "words",
    [("ingest", "long.jsonl"), ("pairs", "long.jsonl", "--threshold", ".5"), ("batch", "cluster", "long.jsonl")],
)
def test_pages_that_are_not_taken_whole_are_counted(
    environment: dict[str, str], typed: Typed, tmp_path: Path, words: tuple[str, ...]
) -> None:
    environment["CLUSTERD_MAX_PAGE_BYTES"] = "1000"
    longer = {"text": "any words " * 101, "html": "<p>any words</p>" * 63}
    rows = [{"url": f"http://h.example/{kind}", kind: content} for kind, content in longer.items()]
    rows.append({"url": "http://h.example/as-long", "text": "a" * 1000})
    (tmp_path / "long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = typed(*words)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "of 2 pages only the first 1000 bytes were taken (CLUSTERD_MAX_PAGE_BYTES)\n"


@pytest.mark.parametrize(
    "words", [("ingest", "a.warc"), ("pairs", "a.warc", "--threshold", ".5"), ("batch", "cluster", "a.warc")]
)
def test_pages_that_an_archiver_has_cut_short_are_counted(typed: Typed, tmp_path: Path, words: tuple[str, ...]) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>some words of a page"
    head = "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://h.example/{}\r\n{}Content-Length: {}\r\n\r\n"
    said = ("WARC-Truncated: time\r\n", "")
    records = [head.format(n, line, len(answer)).encode() + answer + b"\r\n\r\n" for n, line in enumerate(said)]
    (tmp_path / "a.warc").write_bytes(b"".join(records))
    done = typed(*words)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "of 1 page the file has only the beginning (WARC-Truncated, segments, Content-Length)\n"


def test_a_question_in_the_wrong_folder_says_that_there_was_no_store(
    environment: dict[str, str], tmp_path: Path
) -> None:
    elsewhere = {name: value for name, value in environment.items() if name not in {"CLUSTERD_REDIS", "REDIS_URL"}}
    (tmp_path / "page.html").write_text("<p>Some words.")

    def said(*words: str) -> str:
        command = [sys.executable, "-m", "clusterd", *words]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=elsewhere, timeout=60, check=True
        ).stderr

    another = "; --data DIR or --redis URL names another\n"
    new = f"there was no store in {tmp_path}/.clusterd: this one is new and empty{another}"
    assert said("skips") == "no request has been skipped\n" + new
    # The question itself has begun it: it is no more what the crawl has found than before.
    assert said("status") == f"the store in {tmp_path}/.clusterd has neither pages nor rules{another}"
    assert "no store" not in said("ingest", "page.html", "--data", "other")  # where one is meant to begin
    assert said("status", "--data", "other") == ""
