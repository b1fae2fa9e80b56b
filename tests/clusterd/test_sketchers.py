"""Sketching on several cores: the same sketches in the same order, whatever happens to the processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tracemalloc
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from clusterd.ingest import sketchers
from clusterd.ingest.raw import RawPage
from clusterd.ingest.sketchers import ALONE_PAGES, Task, _Processes, sketch_all
from clusterd.ingest.sketching import Sketching
from clusterd_crawler.page import content_identity
from clusterd_crawler.sketch import TEXT, Sketch

#: Enough that most are sketched by other processes.
PAGES = ALONE_PAGES + 1_000


def tasks() -> Iterator[tuple[int, Task | str]]:
    for number in range(PAGES):
        url, words = f"http://a.example/{number}", " ".join(f"w{number * word % 977}" for word in range(1, 40))
        if number % 97 == 5:
            yield number, f"{number} is broken"
        elif number % 7 == 3:
            body = f"<title>{number}</title><p>{words}".encode()
            yield number, Task(url, TEXT, number, body, None, "text/html; charset=utf-8", 203, "c", "s")
        else:
            yield number, Task(url, TEXT, number, None, words)


@pytest.fixture(scope="module")
def alone() -> list[tuple[int, Sketch | str]]:
    return list(sketch_all(tasks(), 1))


def test_two_processes_sketch_as_one(alone: list[tuple[int, Sketch | str]]) -> None:
    assert [number for number, _ in alone] == list(range(PAGES))
    assert list(sketch_all(tasks(), 2)) == alone
    assert not multiprocessing.active_children()


def test_of_long_pages_only_the_beginning_waits_for_the_processes() -> None:
    """Hundreds of each core's pages are under way: all of each was kept meanwhile, up to 256 MB."""
    length = 200_000

    def items() -> Iterator[RawPage]:
        yield from (RawPage(f"http://a.example/{n}", text="few words") for n in range(ALONE_PAGES))
        for number in range(600):
            yield RawPage(f"http://a.example/long{number}", f"<p>{number} ".encode().ljust(length, b"."))

    run = Sketching(TEXT, max_page_bytes=1000, jobs=2)
    tracemalloc.start()
    try:
        (last,) = deque(run.sketches(items()), 1)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run.shortened == 600
    assert last.content == content_identity(b"<p>599 ".ljust(length, b"."))
    assert most < 100 * length


def test_no_more_is_read_ahead_than_the_processes_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may hold more than the memory does, and a page alone fill a chunk."""
    monkeypatch.setattr(sketchers, "ALONE_BYTES", 0)
    monkeypatch.setattr(sketchers, "CHUNK_BYTES", 1)
    read = 0

    def counted() -> Iterator[tuple[int, Task | str]]:
        nonlocal read
        for one in islice(tasks(), 100):
            read += 1
            yield one

    ahead = [read - done for done, _ in enumerate(sketch_all(counted(), 2), 1)]
    assert max(ahead) <= 2 * sketchers.AHEAD + 2


def test_a_page_that_is_a_fault_of_ours_costs_no_other() -> None:
    odd: Any = ["no text"]
    asked = [
        (0, Task("http://a.example/0", TEXT, 0, None, odd)),
        (1, Task("http://a.example/1", TEXT, 0, None, "words")),
    ]
    (_, broken), (_, whole) = sketch_all(asked, 1)
    assert str(broken).startswith("could not be sketched: AttributeError: ")
    assert isinstance(whole, Sketch)


def test_what_a_killed_process_had_is_sketched_all_the_same(
    alone: list[tuple[int, Sketch | str]], caplog: pytest.LogCaptureFixture
) -> None:
    making = sketch_all(tasks(), 2)
    made = list(islice(making, ALONE_PAGES + 100))
    (first, *_) = multiprocessing.active_children()
    assert first.pid
    os.kill(first.pid, signal.SIGKILL)
    assert [*made, *making] == alone
    assert caplog.text.count("was killed") == 1
    assert not multiprocessing.active_children()


def killed_while_it_answers(asked: list[Task | str]) -> list[Sketch | str]:
    """What a process does that the system kills (out of memory) when it has written half of its answer."""
    if multiprocessing.parent_process() is not None:
        answers = sys._getframe(1).f_locals["result_queue"]
        answers._wlock.acquire()
        answers._writer._send(b"\0\0\1\0half")
        os.kill(os.getpid(), signal.SIGKILL)
    return [task if isinstance(task, str) else task.done() for task in asked]


def test_half_an_answer_of_a_killed_process_is_not_waited_for(
    alone: list[tuple[int, Sketch | str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rest was waited for, for ever, and its lock by the other processes."""
    monkeypatch.setattr("clusterd.ingest.sketchers._all_done", killed_while_it_answers)
    assert list(sketch_all(tasks(), 2)) == alone
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_while_nothing_is_under_way_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    processes = _Processes(ProcessPoolExecutor(2, multiprocessing.get_context("spawn")))
    chunk = list(islice(tasks(), 20))
    asked = [task for _, task in chunk]
    first = processes.hand(asked)
    assert first is not None
    made = list(processes.take(chunk, first))
    for process in multiprocessing.active_children():
        process.kill()
        process.join()
    while (future := processes.hand(asked)) is not None:  # until that is seen
        assert list(processes.take(chunk, future)) == made
    assert list(processes.take(chunk, None)) == made
    assert processes.hand(asked) is None
    assert caplog.text.count("was killed") == 1
    processes.pool.shutdown()


def test_who_stops_early_leaves_no_process() -> None:
    making = sketch_all(tasks(), 2)
    assert len(list(islice(making, ALONE_PAGES + 1))) == ALONE_PAGES + 1
    assert multiprocessing.active_children()
    making.close()
    assert not multiprocessing.active_children()


def test_processes_end_with_the_one_that_is_killed() -> None:
    """Each of them holds the queue open that the others wait on: none is told by its end that nobody writes to it."""
    script = (
        "import multiprocessing, os, signal\n"
        "from clusterd.ingest.sketchers import sketch_all\n"
        "from tests.clusterd.test_sketchers import tasks\n"
        "made = sketch_all(tasks(), 2)\n"
        "for _ in range(3_100): next(made)\n"
        "print(*(child.pid for child in multiprocessing.active_children()), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    # What they print to stays open as long as one of them lives.
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL
    assert len(done.stdout.split()) == 2


def test_ctrl_c_never_reaches_a_process_that_sketches() -> None:
    """Neither while it starts, which a traceback for each of them told of."""
    making = sketch_all(tasks(), 2)
    list(islice(making, ALONE_PAGES + 1))
    for process in multiprocessing.active_children():
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
        assert (int(status["SigBlk"], 16) | int(status["SigIgn"], 16)) >> (signal.SIGINT - 1) & 1
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    making.close()


def test_a_small_input_starts_no_process() -> None:
    making = sketch_all(islice(tasks(), ALONE_PAGES), 8)
    assert len(list(islice(making, ALONE_PAGES))) == ALONE_PAGES
    assert not multiprocessing.active_children()


def test_pairs_names_the_right_rows_though_many_are_read_ahead(tmp_path: Path) -> None:
    twins = {PAGES - 7: 11, PAGES - 300: 500}
    with (tmp_path / "rows.jsonl").open("w") as file:
        for number in range(PAGES):
            words = " ".join(f"w{twins.get(number, number)}x{place}" for place in range(30))
            row = {"id": number} if number % 97 == 5 else {"id": number, "text": words}
            file.write(json.dumps(row) + "\n")
    command = [sys.executable, "-m", "clusterd", "pairs", str(tmp_path / "rows.jsonl"), "--threshold", ".9", "--json"]
    alone, together = (
        subprocess.run([*command, "--jobs", jobs], check=True, capture_output=True, text=True).stdout for jobs in "12"
    )
    assert alone == together
    pairs = {(row["a"], row["b"]) for row in map(json.loads, together.splitlines())}
    assert pairs == {(first, again) for again, first in twins.items()}
