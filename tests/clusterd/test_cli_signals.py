"""What SIGTERM (``timeout``, systemd) and SIGHUP (a terminal that closes) leave behind: nothing."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clusterd.cli.pairs import kept
from clusterd.ingest.raw import RawPage
from clusterd.ingest.reading import kind_of, read

from tests.services.locks import is_free

CLUSTERD = str(Path(sys.executable).parent / "clusterd")


def store_runs(folder: Path) -> bool:
    """Whether a server works on the embedded store: it holds this lock while it lives."""
    lock = folder / "redis.server.lock"
    return lock.exists() and not is_free(lock)


def until_it_works(process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + 60
    while not (folder / "redis.sock").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


def start(*command: str, ignored: tuple[signal.Signals, ...] = ()) -> subprocess.Popen[bytes]:
    def ignore() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    return subprocess.Popen([CLUSTERD, *command], bufsize=0, stderr=subprocess.PIPE, preexec_fn=ignore)


def until_it_runs(process: subprocess.Popen[bytes]) -> None:
    """Wait until a daemon says that it is at work: one that is ended earlier ends as any command."""
    assert process.stderr is not None
    while b" runs: " not in (line := process.stderr.readline()):
        assert line


@pytest.fixture(scope="module")
def long_crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that takes longer to ingest than anybody waits here."""
    file = tmp_path_factory.mktemp("crawl") / "crawl.jsonl"
    texts = [" ".join(f"w{text * word % 9973}" for word in range(1, 60)) for text in range(500)]
    with file.open("w") as lines:
        for page in range(60_000):
            lines.write(json.dumps({"url": f"http://h.com/{page}", "text": f"{page} {texts[page % 500]}"}) + "\n")
    return file


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("ignored", [(), (signal.SIGINT,)], ids=["", "in the background"])
def test_a_command_that_is_ended_takes_its_store_with_it(
    number: signal.Signals, ignored: tuple[signal.Signals, ...], long_crawl: Path, tmp_path: Path
) -> None:
    data = tmp_path / "store"
    process = start("ingest", str(long_crawl), "--data", str(data), ignored=ignored)
    until_it_works(process, data)
    time.sleep(0.5)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 1
    assert said.splitlines()[-1] == "clusterd: stopped"
    assert not store_runs(data)


def test_a_daemon_whose_terminal_closes_ends_in_order(tmp_path: Path) -> None:
    process = start("run", "--data", str(tmp_path))
    until_it_runs(process)
    process.send_signal(signal.SIGHUP)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 0
    assert "stops after 0 messages" in said
    assert not store_runs(tmp_path)


def test_what_nohup_started_goes_on(tmp_path: Path) -> None:
    process = start("run", "--data", str(tmp_path), ignored=(signal.SIGHUP,))
    until_it_runs(process)
    process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_ctrl_c_while_its_workers_start_ends_a_daemon_without_a_traceback(redis_url: str, prefix: str) -> None:
    """A terminal sends it to all of them; each that was about to read its modules printed where it had come to."""
    environment = os.environ | {"CLUSTERD_REDIS_PREFIX": prefix}
    command = [CLUSTERD, "run", "--workers", "3", "--redis", redis_url]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, env=environment)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    while len(children.read_text().split()) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 0
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("given", "pages"),
    [
        (b'broken\n{"url": "http://h.com/", "text": "a"}\n', ["http://h.com/"]),
        (b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n", []),
    ],
    ids=["lines", "WARC"],
)
def test_what_a_command_copies_of_its_input_has_no_name_to_stay_under(
    given: bytes, pages: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed, it left the copy. Lines are what it holds, unless it begins as something else does."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    with kept("-") as copy:
        assert list(tmp_path.iterdir()) == []
        for _ in range(2):
            assert [item.url for item in read(copy) if isinstance(item, RawPage)] == pages
        assert kind_of(copy) == ("jsonl" if pages else "warc")
