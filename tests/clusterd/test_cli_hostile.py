"""URLs that command a terminal, or begin a line of their own: no command prints them as they are, to people.

And shells that give a command no standard streams.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from clusterd.learning.interchange.files import write_rules
from clusterd_crawler.rules import Condition, Edit, Key, Rule

CLUSTERD = str(Path(sys.executable).parent / "clusterd")
URLS = ["http://h.com/\x1b[31mred\x07", "http://h.com/b\nforged  line", "http://h.com/c\x9b2J", "http://h.com/plain"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    text = " ".join(f"w{n}" for n in range(200))
    rows = [{"url": url, "text": text} for url in URLS]
    (folder / "crawl.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    subprocess.run([CLUSTERD, "ingest", folder / "crawl.jsonl", "--data", folder / "store"], check=True)
    return folder / "store"


def printed(data: Path, *command: str, terminal: bool, **more: str) -> str:
    """Return what a command prints in a pipe, or on a terminal."""
    if not terminal:
        done = subprocess.run([CLUSTERD, *command, "--data", data], stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "dumb", "COLUMNS": "200"} | more
    with subprocess.Popen([CLUSTERD, *command, "--data", data], stdout=theirs, env=environment):
        os.close(theirs)
        said = b""
        while True:
            try:
                said += os.read(ours, 4096)
            except OSError:  # the other end is closed
                os.close(ours)
                return said.decode()


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "command", [("clusters",), ("cluster", "http://h.com/plain"), ("alerts",), ("similar", "http://h.com/plain")]
)
def test_what_a_terminal_would_obey_is_not_printed(command: tuple[str, ...], terminal: bool, data: Path) -> None:
    said = printed(data, *command, terminal=terminal)
    assert "red" in said or "more" in said
    assert not {"\x1b", "\x07", "\x9b"} & set(said)
    assert not any(line.strip().startswith("forged") for line in said.splitlines())


def test_a_table_is_drawn_in_any_locale(data: Path) -> None:
    said = printed(data, "clusters", terminal=True, PYTHONIOENCODING="ascii")
    assert "\ufffd[31mred\ufffd" in said


def test_nor_is_what_was_asked_for() -> None:
    done = subprocess.run([CLUSTERD, "similar", "/nowhere/\x1b[31m"], stderr=subprocess.PIPE, check=False)
    assert done.returncode in (1, 2)
    assert b"\x1b" not in done.stderr


def test_nor_is_what_was_not_found(data: Path) -> None:
    command = [CLUSTERD, "clusters", "--host", "\x1b[31m", "--data", data]
    assert b"no clusters" in (said := subprocess.run(command, stderr=subprocess.PIPE, check=True).stderr)
    assert b"\x1b" not in said


def test_nor_is_what_was_not_taken(data: Path, tmp_path: Path) -> None:
    row = {"url": "http://h.com/", "text": "a", "fetched_at": "\x1b[31m\n" + "9" * 100_000}
    (tmp_path / "odd.jsonl").write_text(json.dumps(row))
    command = [CLUSTERD, "ingest", tmp_path / "odd.jsonl", "--data", data]
    said = subprocess.run(command, stderr=subprocess.PIPE, check=False).stderr
    assert b"fetched_at is" in said
    assert b"\x1b" not in said
    assert len(said) < 2_000


@pytest.mark.parametrize("terminal", [False, True])
def test_nor_is_what_imported_rules_say(terminal: bool, tmp_path: Path) -> None:
    sid, odd = Key(name="sid"), "\nforged \x9b2J\u202e"
    edits = (Edit(sid, "delete"),)
    rule = Rule("r1", "h.com", (Condition(sid, "any"), Condition(Key(name="a"), "is", (odd,))), edits, crawl=odd)
    rule = replace(rule, evidence=((f"http://h.com/{odd}", "http://h.com/", True),))
    (tmp_path / "rules.json").write_text(write_rules([rule], "clusterd")[0])
    for command in (("import", str(tmp_path / "rules.json")), ("show", "r1"), ("export",)):
        said = printed(tmp_path / "store", "rules", *command, terminal=terminal)
        assert "forged" in said
        assert not {"\x9b", "\u202e"} & set(said)
        assert not any(line.strip().startswith("forged") for line in said.splitlines())


def test_a_line_of_the_daemons_log_is_one_whatever_it_names() -> None:
    program = (
        "import logging; from clusterd.config import Config; from clusterd.daemon import configure_logging;"
        r"configure_logging(Config()); logging.getLogger('x').warning('%s is', 'http://h.com/\x1b[31m\nERROR forged')"
    )
    said = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=True, text=True).stderr
    assert said[said.index("WARNING") :] == "WARNING x: http://h.com/\\x1b[31m\\nERROR forged is\n"


def test_a_line_that_cannot_be_written_costs_nothing_but_itself() -> None:
    program = (
        "import logging; from clusterd.config import Config; from clusterd.daemon import configure_logging;"
        "configure_logging(Config()); logging.getLogger('x').warning('%d is', 'a'); logging.getLogger('x').warning('b')"
    )
    said = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=True, text=True).stderr
    assert "--- Logging error ---" in said
    assert said.endswith("WARNING x: b\n")


@pytest.mark.parametrize(
    ("closed", "shown"), [("2>&-", '{"pages": 0,'), (">&-", ""), ("<&-", '{"pages": 0,'), ("<&- >&- 2>&-", "")]
)
def test_a_standard_stream_that_is_closed_is_no_fault(closed: str, shown: str, data: Path, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    command = f"{CLUSTERD} ingest {tmp_path / 'none.jsonl'} --json --data {data} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    hinted = "" if "2>&-" in closed else f"no page is in {tmp_path / 'none.jsonl'}\n"
    assert (done.returncode, done.stdout[: len(shown) or 1], done.stderr) == (0, shown, hinted)
