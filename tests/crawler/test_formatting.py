"""Markup on which a parser's work is not bounded is seen by the walk, and never given to a parser."""

from __future__ import annotations

import pytest
from clusterd_crawler.core import compiled
from clusterd_crawler.html import markup
from clusterd_crawler.html.markup import EXTREME, IRREGULAR
from clusterd_crawler.html.references import unescape
from clusterd_crawler.text import marked_text

#: What makes the walk ask for a parser.
ODD = b"<a href=x><a href=y></a></a>"


def repeated(row: bytes, times: int) -> bytes:
    return b"".join(row.replace(b"#", b"%d" % i) for i in range(times))


BOMBS = {
    # a crash: lexbor's work on templates in templates is recursive, and a template shuts off the end tag within it
    "templates": repeated(b"<div><template></div>", 20_000),
    # time: each end tag is looked for among all that is open
    "wrong end tags": repeated(b"<span></b>", 4_000),
    "items": repeated(b"<li><dd>", 4_000),
    "ruby": repeated(b"<rt>", 4_000),
    "groups": repeated(b"<optgroup>", 4_000),
    "ruby in a list of options": b"<select>" + repeated(b"<rp>x", 4_000),
    "a drawing's title": b"<svg><title>" + repeated(b"<i></b>", 4_000),
    "cells in a drawing": b"<svg>" + repeated(b"<td></search>", 4_000),
    "cells in a formula": b"<math>" + repeated(b"</div><td>x", 4_000),
    "options in a formula": b"<p><MATH><mi>x</mi>" + repeated(b"</x><option>", 4_000),
    "scripts in a formula": b"<math>" + repeated(b"<td><style /><title></script>", 4_000),
    "empty elements in a formula": b"<math>" + repeated(b"</div><input>", 4_000),
    "empty elements in a drawing": b"<svg>" + repeated(b"</div><area>", 4_000),
    # time: each attribute is compared with all others of its element
    "attributes": b"<p " + repeated(b"a# ", 4000) + b">x",
    "attributes of all bodies": repeated(b"<body a#>", 4000),
    "options": b"<select>" + b"<option>x" * 10_001,
    # memory: what is not closed is opened again in each paragraph
    "not closed": b"<p>" + repeated(b"<b id=#></x>", 1000) + b"<p>x" * 2000,
    "closed too far out": b"<p>" + repeated(b"<b id=#>" + b"<div>" * 9 + b"</b>" + b"</div>" * 9, 400) + b"<p>x" * 2000,
    "closed in an object": b"<p>" + repeated(b"<b id=#><object></b></object>", 1000) + b"<p>x" * 2000,
    "closed in a cell": b"<p>" + repeated(b"<b id=#><table><tr><td></b></table>", 1000) + b"<p>x" * 2000,
}

TIDY = {
    "ruby": b"<ruby>a<rt>b<rt>c</ruby>" * 2100,
    "lists": b"<ul><li><dl><dt>x<dd><b>y</b></dl><li>z</ul>" * 2100,
    "groups": b"<select><optgroup><option>x<optgroup></select>" * 2100,
    "cells": b"<table><tr><td><font><b>x</font></b><td>y</table>" * 2100,
    "formulas": b"<p>x<math><mrow><mi>x</mi></mrow></math><table><tr><td>y</table>" * 2100,
    "drawings": b"<a href=x><svg><title>x</title>" + b"<path/>" * 20 + b"</svg>y</a>" + b"<p>x" * 2100,
    "templates": b"<div><template><p>x</template></div>" * 2100,
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_would_burst_a_parser_is_walked_as_it_stands(name: str) -> None:
    page = ODD + BOMBS[name]
    assert markup.walk(page)[1] & EXTREME
    assert marked_text(page)[0] is not None


@pytest.mark.core
@pytest.mark.parametrize("name", [*BOMBS, *TIDY])
def test_compiled_and_python_agree(name: str) -> None:
    assert compiled.CORE is not None
    page = ODD + (BOMBS | TIDY)[name]
    assert compiled.CORE.walk(page, False, unescape)[:2] == markup.walk(page)[:2]


@pytest.mark.parametrize("name", TIDY)
def test_what_is_closed_is_parsed(name: str) -> None:
    assert markup.walk(ODD + TIDY[name])[1] == IRREGULAR
