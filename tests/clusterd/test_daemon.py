"""The daemon: what it hands on, how it contains faults, how it starts, tells its health, and ends."""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from clusterd.alerts import now_ms
from clusterd.clusters.contract import Outcome
from clusterd.config import Config
from clusterd.handing import Handing, verdict
from clusterd.health import STALLED_AFTER
from clusterd.metrics import serve_metrics
from clusterd.services import Services, open_services, process_pending, publish_sketches
from clusterd_consumer.redis_scripts import Calls
from clusterd_consumer.transport.contract import Record
from clusterd_consumer.worker import Batch
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.message import Failure, SkipReport, decode_verdict, encode
from clusterd_crawler.sketch import Sketch

from clusterd import daemon, health
from tests.contract.index_world import page
from tests.flow.daemons import Daemons, daemons, made_up_crawl, until, wait_until_done
from tests.services.redis_server import free_port, redis_server

CLUSTERD = [sys.executable, "-m", "clusterd"]


def outcome(url: str, **more: Any) -> Outcome:
    told: dict[str, Any] = {
        "url": url,
        "fetched_at": 5,
        "new": True,
        "changed": False,
        "identity": None,
        "match": None,
        "resemblance": 0.0,
        "clusters": {},
    }
    return Outcome(**{**told, **more})


def batch_of(*sketches: Sketch, skips: Sequence[SkipReport] = ()) -> Batch:
    records = [Record("p", str(n), b"", b"", 0) for n, _ in enumerate(sketches)]
    return Batch(list(sketches), records, list(skips))


@pytest.fixture
def services(redis_url: str, prefix: str) -> Iterator[Services]:
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:
        yield services


@pytest.fixture
def group(redis_url: str, prefix: str, tmp_path: Path) -> Iterator[Daemons]:
    with daemons({"redis": redis_url, "redis_prefix": prefix, "claim_after": "2"}, tmp_path) as made:
        yield made


def test_a_verdict_names_the_match_and_the_nearest_cluster() -> None:
    clusters = {"related": ("r", 9), "near": ("n", 3)}
    told = verdict("crawl", outcome("http://h/a", match="http://h/b", resemblance=0.97, clusters=clusters))
    assert (told.crawl, told.match, told.cluster, told.policy, told.size) == ("crawl", "http://h/b", "n", "near", 3)
    alone = verdict("crawl", outcome("http://h/a"))
    assert (alone.match, alone.cluster, alone.size) == (None, None, 1)
    only_related = verdict("crawl", outcome("http://h/a", clusters={"related": ("r", 9)}))
    assert (only_related.cluster, only_related.policy) == ("r", "related")


def test_a_crawl_that_waits_gets_its_verdict(services: Services) -> None:
    waiting = Sketch(**{**_fields(page("http://h/2", 2, range(50))), "crawl": "c7", "wants_verdict": True})
    publish_sketches(services, [page("http://h/1", 1, range(50)), waiting])
    process_pending(services)
    ((_, entry),) = services.redis.xrange(topics.stream(services.config.redis_prefix, topics.VERDICTS))
    told = decode_verdict(entry[topics.FIELD_VALUE])
    assert entry[topics.FIELD_KEY] == b"c7"
    assert (told.url, told.match, told.resemblance, told.size) == ("http://h/2", "http://h/1", 1.0, 2)


def _fields(sketch: Sketch) -> dict[str, Any]:
    return {name: getattr(sketch, name) for name in Sketch.__dataclass_fields__}


def test_a_fault_in_the_rule_book_does_not_stop_the_stream(
    services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def observe(self, *_: Any) -> None:
            raise ZeroDivisionError("a host tripped the learner")

        def record_skips(self, *_: Any) -> None:
            raise Unreachable("the store is away")

    services.__dict__["rulebook"] = Broken()
    report = health.Report()
    handing = Handing(services, services.transport(), report)
    handing(batch_of(page("http://h/1", 1, range(9))), [outcome("http://h/1")])
    assert report.last_error == "ZeroDivisionError: a host tripped the learner"
    assert "the stream goes on" in caplog.text
    with pytest.raises(Unreachable):
        handing(batch_of(skips=[SkipReport("u", "r", "k", "v", 1)]), [])


def test_skips_failures_and_pages_reach_the_rule_book(services: Services) -> None:
    services.publisher.publish(topics.SKETCHES, b"u", encode(SkipReport("http://h/a?s=1", "r1", "k", "http://h/a", 3)))
    services.publisher.publish(topics.SKETCHES, b"b", encode(Failure("http://h/b", 5, 503, crawl="one")))
    publish_sketches(services, [page("http://h/a", 1, range(50))])
    process_pending(services)
    assert [skip.url for skip in services.rulebook.book.skips()] == ["http://h/a?s=1"]
    noted = {one.url: one.state for one in services.rulebook.book.evidence("h").pages}
    assert noted == {"http://h/a": "good", "http://h/b": "failed"}


def beat(services: Services, prefix: str, report: health.Report) -> None:
    with closing(Calls(services.redis)) as calls:
        health.beat(calls, prefix, report)


def test_a_daemon_that_died_is_not_alive_for_long(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "ALIVE_FOR", 0.2)
    beat(services, services.config.redis_prefix, health.Report())
    assert services.daemon_alive()
    time.sleep(0.3)
    assert not services.daemon_alive()
    assert services.redis.scard(f"{services.config.redis_prefix}daemons") == 0


def test_the_heart_beats_on_after_an_answer_that_it_did_not_expect(services: Services, prefix: str) -> None:
    services.redis.set(f"{prefix}daemons", "no set")
    with services.again() as beating:
        heart = health.Heart(beating.redis, prefix, health.Report())
        heart.start()
        time.sleep(0.2)
        services.redis.delete(f"{prefix}daemons")
        until(lambda: bool(health.daemons(services.redis, prefix)), seconds=10)
        heart.stop()
    assert health.daemons(services.redis, prefix) == []


def test_sigterm_ends_it_in_order(group: Daemons) -> None:
    with open_services(group.config()) as services:
        process = group.start()
        until(services.daemon_alive, say=group.said())
        publish_sketches(services, made_up_crawl(50, seed=20))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert not services.daemon_alive()
        process_pending(services)
        assert services.index.counts()["documents"] > 40
        consumers = services.redis.xinfo_consumers(
            topics.stream(services.config.redis_prefix, topics.SKETCHES), services.config.group
        )
        assert consumers == []


def test_sigterm_does_not_wait_for_a_long_lesson(group: Daemons) -> None:
    endless = (
        "import sys, time; from clusterd.learning.learner import Learner; Learner.due = lambda self: True; "
        "Learner.learn = lambda self, at: (print('learning', file=sys.stderr, flush=True), time.sleep(600)); "
        "from clusterd.cli import main; sys.argv = ['clusterd', 'run']; main()"
    )
    with open_services(group.config()) as services:
        process = group.start([sys.executable, "-c", endless])
        until(services.daemon_alive, say=group.said())
        publish_sketches(services, made_up_crawl(50, seed=20))
        until(lambda: "learning" in group.said(), say=group.said())
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert time.monotonic() - asked < 8, group.said()
        assert not services.daemon_alive()
        book = services.rulebook.book
        assert book.changed()  # the lesson waits for whoever comes next, once the dead one's lease has run out
        services.redis.delete(*services.redis.keys(f"{services.config.redis_prefix}rb:*:lease"))
        services.rulebook.learn_due(1)
        assert book.changed() == {}


def test_check_tells_the_health_and_ends_with_it(group: Daemons) -> None:
    settings = {f"CLUSTERD_{name.upper()}": value for name, value in group.settings.items()}
    check = [*CLUSTERD, "run", "--check", "--json"]
    environment = {**os.environ, **settings}
    before = subprocess.run(check, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (before.returncode, before.stdout) == (1, "")
    assert "no daemon works on" in before.stderr
    group.start()
    with open_services(group.config()) as services:
        until(services.daemon_alive, say=group.said())
    after = subprocess.run(check, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert after.returncode == 0, after.stderr
    assert json.loads(after.stdout)["state"] in {"starting", "running"}


def test_a_worker_that_stands_still_is_told(services: Services, prefix: str, redis_url: str) -> None:
    report = health.Report(state="running", stepped=int(time.time() * 1000))
    assert report.told() == "running"
    report.stepped -= int(health.STALLED_AFTER * 1000) + 1
    beat(services, prefix, report)
    environment = {**os.environ, "CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}
    check = [*CLUSTERD, "run", "--check", "--json"]
    done = subprocess.run(check, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, json.loads(done.stdout)["state"]) == (1, "stalled")
    assert "finished no step for minutes" in done.stderr
    report.state = "waiting"
    assert report.told() == "waiting"


def test_an_outage_is_logged_once_a_minute_by_the_client_of_kafka() -> None:
    seldom = daemon.Seldom()

    def passes(name: str, line: str, at: float) -> bool:
        record = logging.LogRecord(name, logging.ERROR, "", 0, line, (), None)
        record.created = at
        return seldom.filter(record)

    assert [passes("kafka.net", "refused: %s", at) for at in (0, 0.1, 59, 61)] == [True, False, False, True]
    assert passes("kafka.net", "another: %s", 0.2)
    assert passes("kafka.cluster", "refused: %s", 0.2)
    assert [passes("clusterd.daemon", "refused: %s", at) for at in (0, 0.1)] == [True, True]


def test_several_workers_end_in_one_line_where_the_store_refuses_them(group: Daemons, redis_url: str) -> None:
    group.settings = {**group.settings, "workers": "2"}
    with redis.Redis.from_url(redis_url) as client:
        client.hset(f"{group.settings['redis_prefix']}{{0}}:m", mapping={"layout": 3, "scheme": "another"})
    assert group.start().wait(60) == 2
    assert group.said().count("\n") == 1
    assert "this store has the layout 3" in group.said()


def test_a_worker_whose_port_is_taken_is_said_in_one_line(group: Daemons) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        group.settings = {**group.settings, "workers": "2", "metrics_port": str(port)}
        parent = group.start()
        until(lambda: "starting another" in group.said(), say=group.said())
    assert f"metrics_port {port} of 127.0.0.1 cannot be served" in group.said()
    assert "Traceback" not in group.said()
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(30) == 0


def test_a_store_that_cannot_be_reached_is_said_in_one_line() -> None:
    command = [*CLUSTERD, "run", "--check", "--redis", f"redis://127.0.0.1:{free_port()}/0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "does not answer" in done.stderr


def test_asking_for_health_makes_no_store(tmp_path: Path) -> None:
    command = [*CLUSTERD, "run", "--check", "--data", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert f"no daemon works on {tmp_path / 'none'}" in done.stderr
    assert not (tmp_path / "none").exists()


def test_a_wrong_setting_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("btach = 3")
    done = subprocess.run(
        [*CLUSTERD, "run", "--config", str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "did you mean batch?" in done.stderr


def test_a_daemon_that_starts_before_its_store_waits_for_it(tmp_path: Path, prefix: str) -> None:
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    with daemons({"redis": url, "redis_prefix": prefix}, tmp_path / "logs") as group:
        process = group.start()
        until(lambda: "trying again" in group.said())
        with redis_server(tmp_path / "late", port=port), redis.Redis.from_url(url) as client:
            until(lambda: bool(health.daemons(client, prefix)), say=group.said())
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


def test_several_workers_that_wait_for_a_silent_store_end_when_asked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        with daemons({"redis": url, "workers": "2"}, tmp_path) as group:
            process = group.start()
            silent.settimeout(30)
            connection, _ = silent.accept()
            with connection:
                process.send_signal(signal.SIGTERM)
                assert process.wait(daemon.END_SECONDS + 14) == 0  # a store may take 30 s to answer


def test_several_workers_are_kept_alive_by_their_parent(group: Daemons) -> None:
    port = _two_free_ports()
    group.settings = {**group.settings, "workers": "2", "metrics_port": str(port)}
    with open_services(group.config()) as services:

        def pids() -> set[int]:
            return {int(report["pid"]) for report in health.daemons(services.redis, services.config.redis_prefix)}

        parent = group.start()
        until(lambda: len(pids()) == 2, say=group.said())
        killed = pids().pop()
        os.kill(killed, signal.SIGKILL)
        until(lambda: len(pids() - {killed}) == 2, say=group.said())
        for number in range(2):
            with urllib.request.urlopen(f"http://127.0.0.1:{port + number}/metrics", timeout=5) as answer:
                assert b"clusterd_messages_total" in answer.read()
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(30) == 0
        until(lambda: pids() <= {killed})


def test_workers_end_with_a_parent_that_is_killed(group: Daemons) -> None:
    group.settings = {**group.settings, "workers": "2"}
    with open_services(group.config()) as services:

        def alive() -> int:
            return len(health.daemons(services.redis, services.config.redis_prefix))

        parent = group.start()
        until(lambda: alive() == 2, say=group.said())
        parent.kill()
        parent.wait()
        until(lambda: alive() == 0, seconds=8, say=group.said())  # before their last report has run out


def test_a_worker_whose_parent_was_killed_before_it_began_ends(group: Daemons) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    config = group.config()
    arguments = (config, config.redis, 0, gone.pid)
    worker = multiprocessing.get_context("spawn").Process(target=daemon.serve_quietly, args=arguments)
    worker.start()
    try:
        worker.join(30)
        assert worker.exitcode in {0, -signal.SIGTERM}
    finally:
        worker.kill()
        worker.join()


def _two_free_ports() -> int:
    """Return a port that is free, and so is the next."""
    while True:
        port = free_port()
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port + 1)):
            return port


def test_it_ends_with_the_process_that_started_it_where_asked(redis_url: str, prefix: str) -> None:
    settings = {"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}
    code = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-m', 'clusterd', 'run', '--with-parent'], start_new_session=True)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, **settings}, stderr=subprocess.DEVNULL)
    with redis.Redis.from_url(redis_url) as client:
        until(lambda: bool(health.daemons(client, prefix)))
        parent.kill()
        parent.wait()
        until(lambda: not health.daemons(client, prefix))


def test_metrics_are_served_on_loopback(group: Daemons) -> None:
    port = free_port()
    group.settings = {**group.settings, "metrics_port": str(port)}
    with open_services(group.config()) as services:
        group.start()
        publish_sketches(services, made_up_crawl(20, seed=21))

        def metrics() -> str:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                    return str(answer.read().decode())
            except OSError:
                return ""

        until(lambda: "clusterd_messages_total 20.0" in metrics(), say=group.said())
        assert {"clusterd_missed_total 0.0", "clusterd_stalled 0.0", "clusterd_waiting 0.0"} <= {
            *metrics().splitlines()
        }


@pytest.mark.parametrize(
    ("state", "silent", "live", "ready"),
    [("running", 0, 200, 200), ("waiting", 0, 200, 503), ("running", STALLED_AFTER + 5, 503, 503)],
)
def test_orchestrators_are_told_whether_a_restart_helps(state: Any, silent: float, live: int, ready: int) -> None:
    report = health.Report(state=state, stepped=int(1000 * (time.time() - silent)), last_error="Kafka is away")
    port = free_port()
    serve_metrics("127.0.0.1", port, report)

    def asked(path: str) -> tuple[int, dict[str, str]]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    said = {"state": "stalled" if silent else state, "last_error": "Kafka is away"}
    assert asked("/live") == (live, said)
    assert asked("/ready") == (ready, said)


def test_metrics_say_what_was_told_and_what_the_store_holds(group: Daemons) -> None:
    port, crawl = free_port(), made_up_crawl(200, seed=22)
    group.settings = {**group.settings, "metrics_port": str(port)}
    with open_services(group.config()) as services:
        group.start()
        waiting = [replace(sketch, crawl="c", wants_verdict=True, fetched_at=now_ms() - 2000) for sketch in crawl[:20]]
        publish_sketches(services, [*waiting, *crawl[20:]])
        wait_until_done(services)

        def metrics() -> dict[str, float]:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
            return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

        index = services.index
        until(lambda: metrics().get("clusterd_documents") == index.counts()["documents"], say=group.said())
        said = metrics()
        for policy, count in index.cluster_counts().items():
            assert said[f'clusterd_clusters{{policy="{policy}"}}'] == count
        assert (said["clusterd_versions"], said["clusterd_contents"]) == (200, index.counts()["contents"])
        assert said["clusterd_store_bytes"] > 1_000_000
        assert said["clusterd_answer_seconds_count"] == said['clusterd_answer_seconds_bucket{le="+Inf"}'] == 20
        assert said['clusterd_answer_seconds_bucket{le="1.0"}'] == 0
        assert said["clusterd_answer_seconds_sum"] >= 40
        events = Counter(alert.event for alert in services.alerts.since())
        assert {event: said[f'clusterd_alerts_total{{event="{event}"}}'] for event in events} == events
