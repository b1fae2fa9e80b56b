"""The daemon: how it starts, waits for its store, keeps its workers, and ends."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import pytest
import redis
from clusterd.config import Config
from clusterd.services import Services, open_services, process_pending, publish_sketches
from clusterd_consumer.insisting import StopFlag
from clusterd_crawler import topics

from clusterd import daemon, health
from tests.flow.daemons import Daemons, daemons, made_up_crawl, until
from tests.services.locks import is_free
from tests.services.redis_server import free_port, redis_server
from tests.services.waiting import Clock

CLUSTERD = [sys.executable, "-m", "clusterd"]


def test_sigterm_ends_it_in_order(group: Daemons) -> None:
    with open_services(group.config()) as services:
        process = group.start()
        until(services.daemon_alive, say=group.said)
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


def test_it_forgets_versions_that_were_superseded_longer_ago_than_the_retention(group: Daemons) -> None:
    first = made_up_crawl(50, seed=20)
    second = [replace(now, url=before.url, fetched_at=before.fetched_at + 1) for before, now in pairwise(first)]
    with open_services(group.config()) as services:
        publish_sketches(services, [*first, *second])
        process_pending(services)
        counts = services.index.counts
        assert counts()["versions"] > counts()["documents"] + 20
        group.settings = {**group.settings, "retention": "1"}
        group.start()
        until(lambda: counts()["versions"] == counts()["documents"], say=group.said)


def test_a_command_that_does_the_work_of_a_daemon_forgets_as_one(redis_url: str, prefix: str) -> None:
    first = made_up_crawl(50, seed=20)
    second = [replace(now, url=before.url, fetched_at=before.fetched_at + 1) for before, now in pairwise(first)]
    with open_services(Config(redis=redis_url, redis_prefix=prefix, retention=1.0)) as services:
        publish_sketches(services, [*first, *second])
        process_pending(services)
        assert services.index.counts()["versions"] == services.index.counts()["documents"] > 40


def test_sigterm_does_not_wait_for_an_address_that_hangs(tmp_path: Path) -> None:
    """It was ended by force, and the server of its store stayed."""
    folder = tmp_path / "store"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        environment = os.environ | {"CLUSTERD_ALERT_WEBHOOK": address}
        command = [*CLUSTERD, "run", "--data", str(folder)]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
            with open_services(Config(data=str(folder))) as services:
                publish_sketches(services, made_up_crawl(50, seed=20))
            silent.settimeout(20)
            with silent.accept()[0]:
                process.send_signal(signal.SIGTERM)
                said = process.communicate(timeout=20)[1]
    assert process.returncode == 0
    assert "longer than" not in said
    assert is_free(folder / "redis.server.lock")


def test_sigterm_does_not_wait_for_a_long_lesson(group: Daemons) -> None:
    endless = (
        "import sys, time; from clusterd.learning.learner import Learner; Learner.due = lambda self: True; "
        "Learner.learn = lambda self, at: (print('learning', file=sys.stderr, flush=True), time.sleep(600)); "
        "from clusterd.cli import main; sys.argv = ['clusterd', 'run']; main()"
    )
    with open_services(group.config()) as services:
        process = group.start([sys.executable, "-c", endless])
        until(services.daemon_alive, say=group.said)
        publish_sketches(services, made_up_crawl(50, seed=20))
        until(lambda: "learning" in group.said(), say=group.said)
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


def test_a_store_that_is_not_there_yet_is_asked_ever_more_seldom() -> None:
    """A line a second, of each worker, fills the log of a night."""

    class Waiting(StopFlag):
        pauses: ClassVar[list[float]] = []

        def wait(self, seconds: float) -> bool:
            self.pauses.append(seconds)
            if len(self.pauses) > 9:
                self.set()
            return self.is_set()

    report = health.Report()
    with Services(Config(redis=f"redis://127.0.0.1:{free_port()}/0")) as services:
        assert not daemon._insist_on_store(lambda: services.index, report, Waiting())
    assert (report.state, Waiting.pauses[0], Waiting.pauses[-1]) == ("waiting", 0.05, 5.0)
    assert "does not answer" in report.last_error


def test_several_workers_end_in_one_line_where_the_store_refuses_them(group: Daemons, redis_url: str) -> None:
    group.settings = {**group.settings, "workers": "2"}
    with redis.Redis.from_url(redis_url) as client:
        client.hset(f"{group.settings['redis_prefix']}{{0}}:m", mapping={"layout": 3, "scheme": "another"})
    assert group.start().wait(60) == 2
    assert group.said().count("\n") == 1
    assert "this store has the layout 3" in group.said()


def test_a_worker_whose_port_is_taken_is_said_in_one_line(group: Daemons) -> None:
    port = free_port(in_a_row=2)
    with socket.create_server(("127.0.0.1", port)):
        group.settings = {**group.settings, "workers": "2", "metrics_port": str(port)}
        parent = group.start()
        until(lambda: "starting another in 1 s" in group.said(), say=group.said)
        until(lambda: "starting another in 2 s" in group.said(), say=group.said)  # it said so each second, for days
    until(lambda: group.said().count(" runs: ") == 2, say=group.said)
    assert f"metrics_port {port} of 127.0.0.1 cannot be served" in group.said()
    assert "Traceback" not in group.said()
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(30) == 0


def test_a_file_of_alerts_that_cannot_be_is_said_at_the_start(group: Daemons, tmp_path: Path) -> None:
    group.settings["alert_file"] = str(tmp_path / "nowhere" / "alerts.jsonl")
    group.start()
    until(lambda: " runs: " in group.said(), say=group.said)
    assert group.said().count("alerts cannot be written to") == 1


def test_a_wrong_setting_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("btach = 3")
    done = subprocess.run(
        [*CLUSTERD, "run", "--config", str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "did you mean batch?" in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_daemon_that_starts_before_its_store_waits_for_it(tmp_path: Path, prefix: str, workers: str) -> None:
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    probes = free_port(in_a_row=2)
    settings = {"redis": url, "redis_prefix": prefix, "metrics_port": str(probes), "workers": workers}
    with daemons(settings, tmp_path / "logs") as group:

        def state(of: int) -> str:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{probes + of}/live", timeout=5) as answer:
                    return str(json.load(answer)["state"])
            except OSError:  # its port is not open yet
                return ""

        process = group.start()
        until(lambda: {state(of) for of in range(int(workers))} == {"waiting"}, say=group.said)
        assert "trying again" in group.said()
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{probes}/ready", timeout=5)
        refused.value.close()
        with redis_server(tmp_path / "late", port=port), redis.Redis.from_url(url) as client:
            until(lambda: bool(health.daemons(client, prefix)), say=group.said)
            until(lambda: state(0) in {"starting", "running"}, say=group.said)
            with urllib.request.urlopen(f"http://127.0.0.1:{probes}/ready", timeout=5) as answer:
                assert answer.status == 200
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
    port = free_port(in_a_row=2)
    group.settings = {**group.settings, "workers": "2", "metrics_port": str(port)}
    with open_services(group.config()) as services:

        def pids() -> set[int]:
            return {int(report["pid"]) for report in health.daemons(services.redis, services.config.redis_prefix)}

        parent = group.start()
        until(lambda: len(pids()) == 2, say=group.said)
        killed = pids().pop()
        os.kill(killed, signal.SIGKILL)
        until(lambda: len(pids() - {killed}) == 2, say=group.said)
        for number in range(2):
            with urllib.request.urlopen(f"http://127.0.0.1:{port + number}/metrics", timeout=5) as answer:
                assert b"clusterd_messages_total" in answer.read()
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(30) == 0
        until(lambda: pids() <= {killed})


def test_a_worker_that_does_not_live_is_replaced_ever_later_and_one_that_lived_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("clusterd.daemon.time", clock := Clock())
    begun, lives = list[float](), 0.0

    class Process:
        pid = exitcode = 1

        def __init__(self) -> None:
            begun.append(clock.now)
            self.end = clock.now + lives

        def is_alive(self) -> bool:
            return clock.now < self.end

    def pass_by(seconds: int) -> None:
        for _ in range(seconds):
            clock.sleep(daemon.RESTART_PAUSE)
            kept.look()

    kept = daemon._Kept(Process)
    pass_by(190)
    assert begun == [0, 2, 5, 10, 19, 36, 69, 130]
    lives = 100.0
    pass_by(150)
    assert begun[8:] == [191, 291]


def test_a_daemon_that_is_asked_to_stop_starts_no_more_workers(group: Daemons) -> None:
    """Of a slip in their number it started all, deaf to signals, and nothing else on the machine went on."""
    group.settings = {**group.settings, "workers": "24"}
    process, most = group.start(), 0

    def children() -> int:
        try:
            return len(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        except OSError:
            return 0

    until(lambda: children() >= 2, say=group.said)  # one is the resource tracker of multiprocessing
    process.send_signal(signal.SIGTERM)
    while process.poll() is None:
        most = max(most, children())
    assert process.returncode == 0
    assert most < 24


def test_workers_end_with_a_parent_that_is_killed(group: Daemons) -> None:
    group.settings = {**group.settings, "workers": "2"}
    with open_services(group.config()) as services:

        def alive() -> int:
            return len(health.daemons(services.redis, services.config.redis_prefix))

        parent = group.start()
        until(lambda: alive() == 2, say=group.said)
        parent.kill()
        parent.wait()
        until(lambda: alive() == 0, seconds=8, say=group.said)  # before their last report has run out


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
