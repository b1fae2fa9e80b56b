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
from clusterd.clusters.redis.index import RedisIndex

from tests.clusterd.made_up_site import words
from tests.contract.index_world import page


class Screen(io.StringIO):
    """Takes for itself what a terminal would show."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"id": n, "text": words(n // 2)}) + "\n" for n in range(20)))
    return str(file)


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be at a terminal that can show progress, wherever the tests are run."""
    monkeypatch.setenv("TERM", "xterm")


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


def test_a_person_sees_how_much_of_a_policy_is_left_to_build(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = RedisIndex(redis_url, prefix)
    index.apply([page(f"http://h.example/{n}", 1, range(n, n + 50)) for n in range(2000)])
    index.close()
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", prefix)
    monkeypatch.setenv("CLUSTERD_SETTLE_STEPS", "1")
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    assert run(["--redis", redis_url, "policy", "add", "half", "--resemblance", ".5"]) == 0
    assert " to do" in screen.getvalue()


def test_a_question_does_not_wait_for_a_page_whose_worker_died(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody links it any more, since its message never returns, and it is given up after ten minutes only."""
    dying = RedisIndex(redis_url, prefix)
    monkeypatch.setattr(dying, "_post", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dying.apply([page("http://h.example/", 1, range(50))])
    index = RedisIndex(redis_url, prefix)
    index.apply([page("http://h.example/", 2, range(100, 150)), page("http://h.example/2", 2, range(100, 150))])
    assert index.settle() == 1
    for opened in (dying, index):
        opened.close()
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", prefix)
    assert run(["--redis", redis_url, "--json", "clusters"]) == 0
    assert json.loads(capsys.readouterr().out)["size"] == 2


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt
