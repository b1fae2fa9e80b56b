"""Progress where a person watches, on standard error alone, and none in a pipe."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from clusterd.cli.commands import run
from clusterd.cli.progress import counted

from tests.clusterd.made_up_site import words


class Screen(io.StringIO):
    """Takes for itself what a terminal would show."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"id": n, "text": words(n // 2)}) + "\n" for n in range(20)))
    return str(file)


COMMANDS = [("pairs", "--threshold", ".9"), ("batch", "cluster")]


@pytest.mark.parametrize("words_of", COMMANDS)
def test_a_person_sees_how_far_a_file_has_been_read(
    words_of: tuple[str, ...], rows: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    assert run(["--json", *words_of, rows]) == 0
    assert "reading" in screen.getvalue() or "comparing" in screen.getvalue()
    assert len([json.loads(line) for line in capsys.readouterr().out.splitlines()]) == 10


@pytest.mark.parametrize("words_of", COMMANDS)
def test_a_pipe_gets_none(words_of: tuple[str, ...], rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--json", *words_of, rows]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("screen", [Screen, io.StringIO])
def test_records_are_counted_as_they_come(screen: Callable[[], io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", shown := screen())
    assert list(counted(iter(range(5)), "lost pages")) == [0, 1, 2, 3, 4]
    assert ("5 lost pages" in shown.getvalue()) == shown.isatty()
    assert shown.getvalue().isascii()  # what a terminal of another locale shows, too
