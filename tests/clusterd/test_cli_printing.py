"""How values are printed: cells of a table for people, JSON for scripts."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

from clusterd.cli.printing import cell, pages, to_json, write_line


def test_cells() -> None:
    assert [cell(value) for value in (None, 0.5, True, ["a", "b", "c", "d", "e"], "x\x1b[31m")] == [
        "-", "0.500", "yes", "a b c … 2 more", "x\ufffd[31m",
    ]  # fmt: skip
    assert [cell(value) for value in (["a", "b", "c"], [], {"near": 2, "share": 0.5})] == [
        "a b c",
        "",
        "near 2, share 0.500",
    ]


def test_numbers_are_rounded_and_letters_kept() -> None:
    assert to_json({"url": "http://h/größe", "r": 1 / 3, "q": {"0.5": (2 / 3,)}}) == (
        '{"url": "http://h/größe", "r": 0.333333, "q": {"0.5": [0.666667]}}'
    )


def test_one_page_is_no_pages() -> None:
    assert [pages(number) for number in (0, 1, 2)] == ["0 pages", "1 page", "2 pages"]


def test_json_commands_no_terminal_and_says_the_same() -> None:
    hostile = "http://h/\x9b2J\x7f\u202e\u2028\U000e0001größe"
    line = to_json({"url": hostile})
    assert line.isprintable()
    assert "größe" in line
    assert json.loads(line) == {"url": hostile}


def test_what_is_printed_may_be_gathered_in_memory() -> None:
    gathered = io.StringIO()
    with redirect_stdout(gathered):
        write_line("http://h/größe\ud800")
    assert gathered.getvalue() == "http://h/größe\\ud800\n"
