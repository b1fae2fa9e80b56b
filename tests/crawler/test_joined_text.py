"""Text that a parser would copy over and over is seen by the walk, and never given to a parser."""

from __future__ import annotations

import subprocess
import sys

import pytest
from clusterd_crawler.core import compiled
from clusterd_crawler.html import markup
from clusterd_crawler.html.markup import EXTREME
from clusterd_crawler.html.references import unescape

#: What stands first, and what then goes on for 400 KB: each takes lexbor some hundred MB, and forty times that at 2 MB.
JOINED = {
    "rows without a table": ("", "<tr class=odd><td class=a>some text here</td></tr>"),
    "cells without a table": ("", "<td class=a>some text here"),
    "bodies": ("", "<body class=a>some text here"),
    "frames": ("", "some text here<frame src=a>"),
    "columns": ("", "some text here<col a=b>"),
    "forms in a form": ("<form>", "some text<form a=b>"),
    "end tags": ("", "more words here and some</i x=y>"),
    "end tags of cells": ("", "some text here</td class=a>"),
    "behind the body": ("", "text</body><!-- c -->"),
    "behind the head": ("</head>", "    <link a=b>"),
    "beside cells": ("<table>", "some text<td a=b>x</td>"),
    "beside rows": ("<table>", "some text<tr a=b>"),
    "comments beside cells": ("<img><table>", "<!</dfn>\ufeff"),
    "scripts beside cells": ("<table>", "some text<script a=b></script>"),
    "fields beside cells": ("<table>", "some text<input type=hidden>"),
    "cells in a list of options": ("<select>", "some text<td a=b>x</td>"),
}

TIDY = {
    "a table": ("<table class=a>", "\n <!-- a row --><tr class=a>\n  <td class=b><i class=c>text</i> here</td>\n</tr>"),
    "a list": ("<ul>", "<li class=a>some text here<!-- c --> <img src=a> and here <a href=x>there</a>"),
    "paragraphs": ("<body class=a>", "<p class=a>some text<br class=b>and <input name=a> here <!-- c --></p>\n"),
    "scripts": ("", "<div>some text <script src=a></script>and <style a=b>p {}</style>here<!-- c --></div>"),
}  # fmt: skip


def page(kind: tuple[str, str], size: int = 400_000) -> bytes:
    first, again = kind
    return (first + again * (size // len(again))).encode()


@pytest.mark.parametrize("name", JOINED)
def test_what_a_parser_would_copy_over_and_over_is_seen(name: str) -> None:
    assert markup.walk(page(JOINED[name]))[1] & EXTREME


@pytest.mark.parametrize("name", TIDY)
def test_what_stands_in_its_place_is_none(name: str) -> None:
    assert not markup.walk(page(TIDY[name], 2_000_000))[1] & EXTREME


@pytest.mark.core
@pytest.mark.parametrize("name", [*JOINED, *TIDY])
def test_compiled_and_python_agree(name: str) -> None:
    assert compiled.CORE is not None
    data = page((JOINED | TIDY)[name])
    assert compiled.CORE.walk(data, False, unescape)[:2] == markup.walk(data)[:2]


SKETCHED = """
from pathlib import Path
from clusterd_crawler.page import sketch_page
rows = b"<tr class=odd><td class=a>some text here</td></tr>" * 30_000
sketch = sketch_page("http://h.example/", rows, "text/html", fetched_at=0)
# not `getrusage`: it counts what this process was before it became a Python of its own
peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(sketch.whole.tokens, int(peak) // 1024)
"""


def test_rows_without_a_table_take_no_memory_to_speak_of() -> None:
    """As answers to a script have them; these took 3 GB."""
    done = subprocess.run([sys.executable, "-c", SKETCHED], capture_output=True, text=True, check=True)
    tokens, megabytes = map(int, done.stdout.split())
    assert tokens == 90_000
    assert megabytes < 300
