"""The file of alerts on a real disk: rotated, deleted, full."""

from __future__ import annotations

import logging
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterd.alert_file import AlertFile


@pytest.fixture
def file_limit() -> Iterator[int]:
    """Let no file of this process grow beyond a few bytes, as on a full disk (EFBIG in place of ENOSPC)."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    yield 20
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, ignored)


def test_a_file_that_was_rotated_is_found_again_under_its_name(tmp_path: Path) -> None:
    path, rotated = tmp_path / "alerts.jsonl", tmp_path / "alerts.jsonl.1"
    file = AlertFile(path)
    file.append(b"1\n2\n")
    path.rename(rotated)
    file.append(b"3\n")
    assert (rotated.read_bytes(), path.read_bytes()) == (b"1\n2\n", b"3\n")
    path.unlink()
    file.append(b"4\n")
    assert path.read_bytes() == b"4\n"
    path.write_bytes(b"")  # logrotate's copytruncate
    file.append(b"5\n")
    assert path.read_bytes() == b"5\n"
    path.rename(rotated)
    path.touch()  # by logrotate's create, or another worker
    file.append(b"6\n")
    file.close()
    assert (rotated.read_bytes(), path.read_bytes()) == (b"5\n", b"6\n")


def test_a_full_disk_is_said_once_and_leaves_lines_whole(
    tmp_path: Path, file_limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "alerts.jsonl"
    file = AlertFile(path)
    with caplog.at_level(logging.ERROR):
        file.append(b'{"at": 1}\n')
        file.append(b'{"at": 2}\n{"at": 3}\n')  # the second does not fit
        file.append(b'{"at": 4}\n')
        file.append(b'{"at": 5}\n')
    assert caplog.text.count("cannot be written") == 1
    soft, hard = 10_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    file.append(b'{"at": 6}\n')
    file.close()
    lines = path.read_bytes().splitlines()
    assert lines[0] == b'{"at": 1}'
    assert lines[-1] == b'{"at": 6}'
    assert path.read_bytes().endswith(b"\n")


def test_a_pipe_that_nobody_reads_holds_nobody_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The daemon waited for a reader, at its start and wherever the pipe was full."""
    path = tmp_path / "alerts"
    os.mkfifo(path)
    file = AlertFile(path)
    file.append(b"lost\n")
    assert caplog.text.count("alerts cannot be written") == 1
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        file.append(b"1\n")
        file.append(b"x" * (1 << 20) + b"\n")  # more than it has room for
        file.append(b"lost, too\n")
        assert caplog.text.count("alerts cannot be written") == 2
        with open(reader, "rb", closefd=False) as pipe:
            assert (pipe.readline(), pipe.read().strip(b"x")) == (b"1\n", b"")
        file.append(b"2\n")
        assert os.read(reader, 100) == b"\n2\n"
    finally:
        os.close(reader)
        file.close()


def test_a_line_that_a_daemon_before_left_half_written_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    path.write_bytes(b'{"at": 1}\n{"at"')
    for number in (2, 3):
        file = AlertFile(path)
        file.append(b'{"at": %d}\n' % number)
        file.close()
    assert path.read_bytes() == b'{"at": 1}\n{"at"\n{"at": 2}\n{"at": 3}\n'
