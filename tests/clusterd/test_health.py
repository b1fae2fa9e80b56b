"""How a daemon tells its health: its heart beat, `run --check`, metrics, probes for orchestrators."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clusterd.cli.commands import run
from clusterd.health import STALLED_AFTER
from clusterd.metrics import ReportCollector, serve_metrics
from clusterd.services import Services, open_services, publish_sketches
from clusterd.tallies import Tallies, Waits
from clusterd.upkeep import Upkeep
from clusterd_consumer.redis_scripts import Calls
from clusterd_crawler import topics
from clusterd_crawler.clock import iso, now_ms
from clusterd_crawler.errors import ClusterdError
from clusterd_crawler.message import SkipReport

from clusterd import health
from tests.flow.daemons import Daemons, made_up_crawl, until, wait_until_done
from tests.services.redis_server import free_port

CLUSTERD = [sys.executable, "-m", "clusterd"]


def beat(services: Services, prefix: str, report: health.Report) -> None:
    with closing(Calls(services.redis)) as calls:
        health.beat(calls, prefix, report)


def test_a_daemon_that_died_is_not_alive_for_long(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    beat(services, services.config.redis_prefix, report := health.Report())
    assert services.daemon_alive()
    monkeypatch.setattr(health, "ALIVE_FOR", 0.2)
    beat(services, services.config.redis_prefix, report)
    until(lambda: not services.daemon_alive())
    assert services.redis.scard(f"{services.config.redis_prefix}daemons") == 0


def test_daemons_of_one_host_name_and_one_process_number_are_two(services: Services, prefix: str) -> None:
    """As in containers on the network of their host: each told what the other did last, and took it out with it."""
    first, second = health.Report(), health.Report(state="waiting")
    for report in (first, second):
        beat(services, prefix, report)
    assert sorted(one["state"] for one in health.daemons(services.redis, prefix)) == ["starting", "waiting"]
    health.leave(services.redis, prefix, first)
    assert [one["id"] for one in health.daemons(services.redis, prefix)] == [second.id]


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "nowhere.invalid"])
def test_metrics_on_no_host_are_refused_in_one_line(host: str) -> None:
    with pytest.raises(ClusterdError, match=f"^metrics_port 9 of {host} cannot be served: .*; name another$"):
        serve_metrics(host, 9, health.Report())


def test_the_heart_beats_on_after_an_answer_that_it_did_not_expect(services: Services, prefix: str) -> None:
    services.redis.set(f"{prefix}daemons", "no set")
    with services.again() as beating:
        heart = health.Heart(beating.redis, prefix, health.Report())
        heart.start()
        time.sleep(0.2)
        services.redis.delete(f"{prefix}daemons")
        until(lambda: bool(health.daemons(services.redis, prefix)))
        heart.stop()
    assert health.daemons(services.redis, prefix) == []


def test_check_tells_the_health_and_ends_with_it(group: Daemons) -> None:
    settings = {f"CLUSTERD_{name.upper()}": value for name, value in group.settings.items()}
    check = [*CLUSTERD, "run", "--check", "--json"]
    environment = {**os.environ, **settings}
    before = subprocess.run(check, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (before.returncode, before.stdout) == (1, "")
    assert "no daemon works on" in before.stderr
    group.start()
    with open_services(group.config()) as services:
        until(services.daemon_alive, say=group.said)
    after = subprocess.run(check, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert after.returncode == 0, after.stderr
    report = json.loads(after.stdout)
    assert report["state"] in {"starting", "running"}
    assert (report["last_error"], report["last_error_at"]) == ("", "")
    assert datetime.fromisoformat(report["since"]) <= datetime.fromisoformat(report["at"]) <= datetime.now(UTC)


def test_a_worker_that_stands_still_is_told(services: Services, prefix: str, redis_url: str) -> None:
    report = health.Report(state="running")
    report.step()
    assert report.told() == "running"
    report.stepped -= 10**12  # a clock that is set says nothing of it
    assert report.told() == "running"
    report.stepped_at -= health.STALLED_AFTER + 1
    beat(services, prefix, report)
    environment = {**os.environ, "CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}
    check = [*CLUSTERD, "run", "--check", "--json"]
    done = subprocess.run(check, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, json.loads(done.stdout)["state"]) == (1, "stalled")
    assert "finished no step for minutes" in done.stderr
    report.state = "waiting"
    assert report.told() == "waiting"


@pytest.mark.parametrize(
    ("states", "returned", "says"),
    [
        (("running", "starting"), 0, ""),
        (("running", "stopping"), 0, ""),
        (("stopping",), 1, "the daemon stops"),
        (("running", "waiting"), 1, "of 2 daemons 1 is not well; number-1 waits: Kafka is away"),
        (("stalled", "waiting", "running"), 1, "of 3 daemons 2 are not well; number-0 has finished no step"),
    ],
)
def test_check_is_content_where_all_daemons_are_well(
    services: Services,
    redis_url: str,
    prefix: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    states: tuple[health.State, ...],
    returned: int,
    says: str,
) -> None:
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", prefix)
    for number, state in enumerate(states):
        beat(services, prefix, health.Report(id=f"number-{number}", state=state, last_error="Kafka is away"))
    assert run(["run", "--check", "--redis", redis_url]) == returned
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == bool(says)


def test_check_looks_at_the_daemons_of_this_machine_unless_it_is_told_to_look_anywhere(
    services: Services,
    redis_url: str,
    prefix: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", prefix)

    def check(*more: str) -> tuple[int, list[str], str]:
        status = run(["run", "--check", "--json", "--redis", redis_url, *more])
        out, err = capsys.readouterr()
        return status, [json.loads(line)["id"] for line in out.splitlines()], err

    beat(services, prefix, health.Report(id="far", host="elsewhere", state="waiting", last_error="Kafka is away"))
    status, told, err = check()
    assert (status, told, "1 on other machines (--anywhere)" in err) == (1, [], True)
    assert check("--anywhere") == (1, ["far"], "the daemon waits: Kafka is away\n")
    beat(services, prefix, health.Report(id="near", state="running"))
    assert check() == (0, ["near"], "")
    assert check("--anywhere")[:2] == (1, ["far", "near"])


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

        until(lambda: "clusterd_messages_total 20.0" in metrics(), say=group.said)
        assert {"clusterd_missed_total 0.0", "clusterd_stalled 0.0", "clusterd_waiting 0.0"} <= {
            *metrics().splitlines()
        }


@pytest.mark.parametrize("state", ["waiting", "stalled"])
def test_every_figure_stands_under_its_own_name(state: health.State) -> None:
    held = {"documents": 11, "versions": 12, "contents": 13, "store_bytes": 14}
    tallies = Tallies(alerts=Counter(joined=6, split=7), skips=8, rule_sets=9, held=held, clusters={"near": 15})
    report = health.Report(messages=2, dead_letters=3, missed=4, lag=0, settling=5, tallies=tallies, state=state)
    samples = [sample for metric in ReportCollector(report).collect() for sample in metric.samples]
    assert {(one.name, *one.labels.values()): one.value for one in samples if "answer" not in one.name} == {
        ("clusterd_messages_total",): 2,
        ("clusterd_dead_letters_total",): 3,
        ("clusterd_missed_total",): 4,
        ("clusterd_lag",): 0,
        ("clusterd_settling",): 5,
        ("clusterd_waiting",): state == "waiting",
        ("clusterd_stalled",): state == "stalled",
        ("clusterd_upkeep_seconds",): 0,
        ("clusterd_alerts_total", "joined"): 6,
        ("clusterd_alerts_total", "split"): 7,
        ("clusterd_skips_total",): 8,
        ("clusterd_rule_sets_total",): 9,
        ("clusterd_clusters", "near"): 15,
        **{(f"clusterd_{name}",): count for name, count in held.items()},
    }


def test_an_answer_before_its_page_was_fetched_by_another_clock_takes_no_time() -> None:
    waits = Waits()
    for seconds in (0.3, -5.0):
        waits.add(seconds)
    assert waits.total == 0.3  # a sum that falls is a counter that began anew
    assert dict(waits.buckets())["0.025"] == 1


@pytest.mark.parametrize(
    ("state", "silent", "live", "ready"),
    [
        ("running", 0, 200, 200),
        ("waiting", 0, 200, 503),
        ("stopping", 0, 200, 503),
        ("running", STALLED_AFTER + 5, 503, 503),
    ],
)
def test_orchestrators_are_told_whether_a_restart_helps(state: Any, silent: float, live: int, ready: int) -> None:
    report = health.Report(state=state, stepped_at=time.monotonic() - silent)
    report.fail("Kafka is away")
    port = free_port()
    serve_metrics("127.0.0.1", port, report)

    def asked(path: str) -> tuple[int, dict[str, str]]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)

    assert 0 <= now_ms() - report.last_error_at < 60_000
    at = iso(report.last_error_at)
    said = {"state": "stalled" if silent else state, "last_error": "Kafka is away", "last_error_at": at}
    said |= {"upkeep_seconds": 0.0}
    assert asked("/live") == (live, said)
    assert asked("/ready") == (ready, said)


def test_a_probe_that_comes_as_the_port_opens_is_answered_as_all_others() -> None:
    def ask() -> None:
        while True:
            with suppress(ConnectionError), closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as probe:
                probe.request("GET", "/live")
                answers.append(probe.getresponse().getheader("Content-Type"))
                return

    answers: list[str | None] = []
    for _ in range(20):
        port = free_port()
        probes = [threading.Thread(target=ask) for _ in range(4)]
        for probe in probes:
            probe.start()
        serve_metrics("127.0.0.1", port, health.Report())
        for probe in probes:
            probe.join()
    assert answers == ["application/json"] * 80


def test_what_upkeep_alone_may_not_do_is_told_once(
    services: Services, redis_url: str, prefix: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterd.upkeep.TROUBLE_PAUSE", 0.01)
    monkeypatch.setattr("clusterd.upkeep.LAG_INTERVAL", 0.01)
    user = prefix.strip(":")
    services.redis.execute_command("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all", "-info")
    config = replace(services.config, redis=redis_url.replace("//", f"//{user}:secret@"), metrics_port=1)
    report, rounds = health.Report(), Counter[str]()
    upkeep = Upkeep(Services(config), report)
    work = upkeep.round
    monkeypatch.setattr(upkeep, "round", lambda services: (rounds.update(["begun"]), work(services))[1])
    upkeep.start()
    try:
        until(lambda: rounds["begun"] > 5)
    finally:
        assert upkeep.stop(30)
        services.redis.execute_command("ACL", "DELUSER", user)
    told = [record.getMessage() for record in caplog.records if record.name == "clusterd.upkeep"]
    assert len(told) == 1
    assert "permissions to run the 'info' command" in told[0]
    assert "'info'" in report.last_error


def test_a_lesson_that_does_not_end_is_seen(
    services: Services, redis_url: str, prefix: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", prefix)
    monkeypatch.setattr("clusterd.health.STALLED_AFTER", 0.2)
    begun, ended = threading.Event(), threading.Event()

    def endless(*_: Any, **__: Any) -> int:
        begun.set()
        assert ended.wait(30)
        return 0

    monkeypatch.setattr("clusterd.upkeep.learn", endless)
    report = health.Report(id="this", state="running")
    report.step()
    port = free_port()
    serve_metrics("127.0.0.1", port, report)

    def asked(path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())

    upkeep = Upkeep(services.again(), report)
    upkeep.start()
    try:
        assert begun.wait(30)
        until(lambda: report.upkeep_seconds() > 0.3)
        report.stepped_at = time.monotonic() + 60  # the worker goes on
        (line,) = [line for line in asked("/metrics").splitlines() if line.startswith("clusterd_upkeep_seconds ")]
        assert float(line.split()[1]) > 0.3
        assert "clusterd_lag" not in asked("/metrics"), "nobody knows it yet"
        assert json.loads(asked("/live"))["upkeep_seconds"] > 0.3
        beat(services, prefix, report)
        assert run(["run", "--check", "--json", "--redis", redis_url]) == 0
        said = capsys.readouterr()
        assert json.loads(said.out)["upkeep_seconds"] > 0.3
        assert "this has been settling or learning" in said.err
    finally:
        ended.set()
        assert upkeep.stop(30)
    assert report.upkeep_seconds() == 0
    assert "clusterd_lag 0.0" in asked("/metrics")


def test_metrics_say_what_was_told_and_what_the_store_holds(group: Daemons) -> None:
    port, crawl = free_port(), made_up_crawl(200, seed=22)
    group.settings = {**group.settings, "metrics_port": str(port)}
    with open_services(group.config()) as services:
        group.start()
        waiting = [replace(sketch, crawl="c", wants_verdict=True, fetched_at=now_ms() - 2000) for sketch in crawl[:20]]
        skips = [SkipReport(f"http://s/{n}?sid=1", "r", "k", "http://s/", n) for n in range(3)]
        publish_sketches(services, [*waiting, *crawl[20:], *skips])
        services.publisher.publish(topics.SKETCHES, b"", b"junk")
        services.publisher.flush(10)
        wait_until_done(services)

        def metrics() -> dict[str, float]:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
            return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

        index = services.index
        held = {f'clusterd_clusters{{policy="{policy}"}}': count for policy, count in index.cluster_counts().items()}
        held["clusterd_documents"] = index.counts()["documents"]
        until(lambda: held.items() <= metrics().items(), say=group.said)  # the daemon counts now and then
        said = metrics()
        assert (said["clusterd_skips_total"], said["clusterd_dead_letters_total"]) == (3, 1)
        assert (said["clusterd_versions"], said["clusterd_contents"]) == (200, index.counts()["contents"])
        assert said["clusterd_store_bytes"] > 1_000_000
        assert said["clusterd_answer_seconds_count"] == said['clusterd_answer_seconds_bucket{le="+Inf"}'] == 20
        assert said['clusterd_answer_seconds_bucket{le="1.0"}'] == 0
        assert said["clusterd_answer_seconds_sum"] >= 40
        events = Counter(alert.event for alert in services.alerts.since())
        assert {event: said[f'clusterd_alerts_total{{event="{event}"}}'] for event in events} == events
