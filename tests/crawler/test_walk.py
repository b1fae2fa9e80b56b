"""The walk over markup: the compiled core and Python find the same in any page, as does lexbor where it is asked."""

from __future__ import annotations

import random

import pytest
from clusterd_crawler import names, text
from clusterd_crawler.core import compiled
from clusterd_crawler.html import markup
from clusterd_crawler.html.references import unescape
from clusterd_crawler.html.well_nested import well_nested
from hypothesis import given, settings
from hypothesis import strategies as st

#: Pieces of markup, sound and unsound, that the fuzz puts together.
PIECES = [
    "<div>", "</div>", "<p>", "</p>", "<ul>", "<li>", "</li>", "</ul>", "<a href=x>", "</a>", "<table>", "<tr>", "<td>",
    "</td>", "</tr>", "</table>", "<nav>", "</nav>", "<main>", "</main>", "<h1>", "</h1>", "<span hidden>", "</span>",
    "<title>", "</title>",
    "<div class='sidebar x'>", "<div role=main>", "<p class=footer>", "<li class=menu>", "<tr class=nav>",
    "<td id=sidebar>",
    "<b>", "</b>", "<br>", "<img src=x>", "<select>", "<option>", "</select>", "<script>", "</script>", "<!--", "-->",
    "<textarea>", "</textarea>", "<svg>", "</svg>", "<template>", "</template>", "<h1 id=a1>",
    "<svg><text>", "</text>", "<foreignObject>", "</foreignObject>", "<g style='display:none'>", "</g>",
    "</h1>", "<header>",
    "</header>", "<article>", "</article>", "<aside>", "</aside>", "<", ">", "</", "&amp;", "&eacute;", "&#65;",
    "&bogus",
    "&", "\0", "\1", "\2", "é", "漢", "text ", "more words here ", "<x y='", "'", '"', "<dialog open>", "</dialog>",
    "<![CDATA[", "]]>", "<dl>", "<dt class=pager>", "<dd>", "</dl>", "\x0b", "\r\n", "\xa0", "<a name=q7>", "<form>",
    "<form class=search-form>", "</form>", "<path d=x />", "<g>",
    "<template shadowrootmode=open>", "<img data-src='a b' src=''>", "<IMG SRC=y srcset=z width=2>",
    "<img hidden src=h>",
    "<img style='display: none' src=h>", "<img src=y height=02>", "<iframe src=f>", "</iframe>", "<video poster=p>",
    "<object data=d>", "</object>", "<script src=s>", "<script>var x</script>", "<input type=image src=i>",
    "<div class='tabs x'>", "<ul id=menu>", "<p class=banner>", "<td class='trail nav'>", "prose of a tab " * 15,
    "<canvas>", "</canvas>", "<annotation-xml>", "</annotation-xml>", "<xmp>", "</xmp>", "<noscript>", "</noscript>",
    "<plaintext>", "<iframe />",
    "<search>", "</search>", "<div role=' Search'>", "<section role>", "<ul class=searchbox>",
    "<aside class=sidebar>", "<div class=titlepage>", "<p class=sidebar-title>",
    "<source data-original=o data-lazy-src=l>", "</video>", "words enough for a page that is no shell " * 8,
    "<p title='a > b' id=a2>", "<a title='" + "long > " * 60 + "' href=y>",
    "<div class=nav title=\"" + "x" * 300 + "\">",
]  # fmt: skip


@pytest.mark.core
@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 90), max_size=400), st.sampled_from(["a", "", "x9-", "0"]))
def test_core_and_fallback_keep_the_same_anchors(numbers: list[int], before: str) -> None:
    assert compiled.CORE is not None
    data = "".join(f"<p id='{before}{number}'>" for number in numbers).encode()
    kept = compiled.CORE.walk(data, False, unescape)[2]
    assert kept == markup.walk(data)[2]
    if before in ("a", ""):
        met = dict.fromkeys(("anchor", str(number).encode()) for number in numbers[:256])
        assert kept == list(met)[: names.MAX_ANCHORS]


@pytest.mark.core
@settings(deadline=None, max_examples=600)
@given(st.lists(st.sampled_from(PIECES), max_size=70), st.booleans())
def test_core_and_fallback_walk_alike(pieces: list[str], well_nested: bool) -> None:
    assert compiled.CORE is not None
    data = "".join(pieces).encode()
    marked, flags, declared = compiled.CORE.walk(data, well_nested, unescape)
    assert (marked, flags, declared) == markup.walk(data, well_nested)


@pytest.mark.core
@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=400))
def test_core_and_fallback_walk_random_bytes_alike(data: bytes) -> None:
    assert compiled.CORE is not None
    utf8 = data.decode("utf-8", "replace").encode()
    marked, flags, declared = compiled.CORE.walk(utf8, False, unescape)
    assert (marked, flags) == markup.walk(utf8)[:2]
    assert declared == markup.walk(utf8)[2]


#: What the fuzz hardly ever puts together.
RARE_PAGES = [
    *(f"<p{blank}class{blank}={blank}sidebar{blank}id=a7{blank}>x" for blank in "\t\n\f\r "),
    "<p title='x'id=a7>x<p title=\"x\"id='a8'>",
    "<p id=41><link rel=canonical href=7><p id=7>",  # 41 and 7 have one place among the sums of anchors
    "<script><!-- <script> i-1>0 </script> hidden --></script><p>shown",
    *("<p " + "a " * count + ">x" for count in (999, 1000, 1001)),
    # Links before the main element take no part in what is judged within it.
    "<ul>" + "<li><a href=x>a link beside it</a>" * 20 + "</ul><main><p>" + "prose of a page " * 15 + "</p><ul>"
    "<li><a href=x>m</a><li><a href=x>n</a><li><a href=x>o</a><li><a href=x>p</a><li><a href=x>q</a></ul></main>",
    # Links that were taken for chrome do not make the list around them one of links.
    "<ul><li><div class=tabs>" + "<a href=t>a tab that is long</a>" * 8 + "</div><li>plain words stand here"
    "<li><a href=x>m</a><li><a href=x>n</a><li><a href=x>o</a><li><a href=x>p</a><li><a href=x>q</a></ul><p>"
    + "prose of a page " * 15,
    "<table><tr>" + "<td></b><b>" * 900,  # an end in one cell ends nothing that another began
    "<b><svg></b></svg>" * 900,  # what was ended within does not come back
    "<p class=breadcruaax>x<p class=breadcrumbs>y",  # looked for in one place, and alike in the first eight letters
    *("<script>s</script><p>" + "x" * count for count in (511, 512)),  # a shell, and a page of letters
]  # fmt: skip


@pytest.mark.core
@pytest.mark.parametrize("page", RARE_PAGES)
def test_core_and_fallback_walk_rare_pages_alike(page: str) -> None:
    assert compiled.CORE is not None
    assert compiled.CORE.walk(page.encode(), False, unescape) == markup.walk(page.encode())


@pytest.mark.core
@pytest.mark.parametrize("written", ["&#{};", "&#x{:x};", "&#X{:X};", "&#{}", "&#x{:x}", "&#x{:x}g;", "&#0{};"])
def test_core_and_fallback_read_numeric_references_alike(written: str) -> None:
    assert compiled.CORE is not None
    edges = [0, 9, 32, 65, 127, 160, 0x7FF, 0x800, 0xD800, 0xE000, 0xFDD0, 0xFFFE, 0x10000, 0x110000]
    for code in {edge + by for edge in edges for by in (-1, 0, 1)} - {-1}:
        data = ("<p>a" + written.format(code)).encode()
        for page in (data, data + b" z"):
            assert compiled.CORE.walk(page, False, unescape) == markup.walk(page)


@pytest.mark.core
@pytest.mark.parametrize(
    ("digits", "shown"), [("0" * 5000 + "65", "A"), ("9" * 5000, "\ufffd"), ("9" * 9, "\ufffd"), ("0" * 9, "\ufffd")]
)
def test_a_numeric_reference_may_have_any_number_of_digits(digits: str, shown: str) -> None:
    # Python reads no number of more than 4,300 digits (`int`); a browser does.
    assert compiled.CORE is not None
    page = f"<link rel=canonical href='&#{digits};'><p>a &#{digits};b".encode()
    found = compiled.CORE.walk(page, False, unescape)
    assert found == markup.walk(page)
    assert found[0].decode().split() == ["a", shown + "b"]
    assert not names.declared_names("http://h.example/", found[2])[1:]


@pytest.mark.core
@pytest.mark.parametrize(
    "page",
    [
        "<!-- a --!><!-->b<!--->c<![CDATA[d]]><?e><p class='f' id=g7 hidden>h&amp;i&#x41;j</p>",
        "<script src = k><!-- <script></script> --></script><title>l&eacute;</title><textarea>m</textarea><a href=n>",
    ],
)
def test_nothing_behind_the_end_is_read(page: str) -> None:
    # Of a part of a page what is behind it in memory must make no difference, wherever it ends.
    assert compiled.CORE is not None
    data = page.encode()
    for end in range(len(data)):
        part = compiled.CORE.walk(memoryview(data)[:end], False, unescape)
        assert part == markup.walk(data[:end])


#: As above without what is repaired in ways that do not show in tags: the walk must then say what lexbor says.
PLAIN_PIECES = [
    piece
    for piece in PIECES
    if piece
    not in {
        "\0",
        "<x y='",
        "'",
        '"',
        "<![CDATA[",
        "<textarea>",
        "<title>",
        "<xmp>",
        "<plaintext>",
        "<form class=search-form>",
    }
]


def test_a_walk_without_findings_equals_the_walk_of_what_lexbor_writes() -> None:
    """Save one in some thousand soups: see text.py."""
    source = random.Random(1)
    soups = ("".join(source.choices(PLAIN_PIECES, k=source.randint(1, 12))) for _ in range(20_000))
    walked = {soup: markup.walk(b"<body><div>" + soup.encode()) for soup in soups}
    plain = {soup: marked for soup, (marked, flags, _) in walked.items() if not flags}
    told_otherwise = [soup for soup, marked in plain.items() if shown(marked) != shown(repaired(soup))]
    assert len(plain) > 5_000
    assert len(told_otherwise) * 2_000 <= len(plain), told_otherwise


def repaired(soup: str) -> bytes:
    return markup.walk(well_nested(b"<body><div>" + soup.encode()), True)[0]


def shown(marked: bytes) -> tuple[str, str]:
    """A stray end tag ends a word in what is walked as it stands, and is not there in what lexbor writes."""
    return "".join(text.plain(marked).split()), "".join(text.main_part(marked).split())


@pytest.mark.parametrize("hiding", ["<nav>", "<div hidden>", "<footer>", "<div class='sidebar'>"])
def test_a_heading_ends_what_is_open_in_it(hiding: str) -> None:
    page = f"<h1>more{hiding}words</h1>here"
    assert text.main_part(text.marked_text(page)[0]).split() == ["more", "here"]


@pytest.mark.core
@pytest.mark.parametrize("size", [1, 200_000])
def test_what_is_raised_while_references_are_read_is_raised(size: int) -> None:
    assert compiled.CORE is not None

    def interrupted(_: bytes) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiled.CORE.walk(b"<p>" + b"x" * size + b"&xy<title>&xy</title>&xy", False, interrupted)
    with pytest.raises(UnicodeDecodeError):
        compiled.CORE.walk(b"<p>\xff" + b"x" * size + b"&xy", False, unescape)
