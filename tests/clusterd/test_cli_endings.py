"""How a command line ends: with its exit status, and one line where something lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from clusterd.cli import main
from clusterd.cli.alerts import until_asked
from clusterd.cli.commands import run

from tests.clusterd.command_line import PROGRAM, Typed, page, words, write


@pytest.mark.parametrize(
    ("line", "status", "says"),
    [
        ([], 2, "Usage: clusterd"),
        (["policy"], 2, "clusterd: policy: lacks its command; give one of add, list, remove\n"),
        (["--", "-x"], 2, "clusterd: No such option '-x'."),
        (["rules", "show", "r1", "--debug", "--data", ""], 2, "it takes a folder"),
    ],
)
def test_what_is_no_command_is_wrong_input(
    line: list[str], status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err


@pytest.mark.parametrize("package", ["redis", "zstandard", "warcio"])
def test_a_package_that_is_not_installed_is_named(package: str, tmp_path: Path) -> None:
    """Where click was there, as on many a crawl host, it was called a fault of clusterd."""
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name.partition('.')[0] == {package!r}: raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from clusterd.cli import main\n"
        "main(sys.argv[1:])"
    )
    file = write(tmp_path / "pages.jsonl", page("a", words(1)))
    done = subprocess.run(
        [sys.executable, "-c", code, "ingest", str(file)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    says = f"clusterd: {package} is not installed here; the commands need pip install 'clusterd[daemon]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", says)


@pytest.mark.parametrize("line", [["status", "--json"], ["rules", "export"]])
def test_a_reader_that_has_gone_is_no_fault(own_store: None, line: list[str]) -> None:
    """Whether it has gone before a line, or before what was gathered is written at the end."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([*PROGRAM, *line], stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_pages_of_the_future_are_told_of(typed: Typed, tmp_path: Path) -> None:
    rows = [page(path, words(path), fetched_at="2999-01-01T00:00:00Z") for path in ("a", "b")]
    for given, says in ((rows[:1], "1 page dated in the future; "), (rows, "2 pages dated in the future; ")):
        status, _, err = typed("ingest", str(write(tmp_path / "pages.jsonl", *given)))
        assert status == 0
        assert err.startswith(says)


def test_commands_run_in_a_thread_too(own_store: None, capsys: pytest.CaptureFixture[str]) -> None:
    """There a signal cannot be listened to."""
    ended: list[object] = []

    def type_it() -> None:
        with until_asked() as stop:
            ended.append(stop.is_set())
        with pytest.raises(SystemExit) as stopped:
            main(["status", "--json"])
        ended.append(stopped.value.code)

    thread = threading.Thread(target=type_it)
    thread.start()
    thread.join()
    assert ended == [False, 0]
    assert json.loads(capsys.readouterr().out)["documents"] == 0
