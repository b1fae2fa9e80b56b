"""From the bytes of a page to its sketch: visible text, charsets, names; what hostile pages cost."""

from __future__ import annotations

import random
import time

import mmh3
import pytest
from clusterd_crawler import names, text
from clusterd_crawler.core import compiled
from clusterd_crawler.html.recoding import check_utf8, recoded, repaired
from clusterd_crawler.html.well_nested import LARGE, well_nested
from clusterd_crawler.html.xhtml import as_html
from clusterd_crawler.page import sketch_page, sketch_plain
from clusterd_crawler.sketch import COMPACT, SHORT, sketch_text
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from w3lib.encoding import to_unicode

from tests.crawler.pages import STORY, URL, shown, sketched


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<title>T</title><p>one<p>two", "T one two"),
        ("<p>H<b>e</b>llo <i>wor</i>ld", "Hello world"),
        ("a<br>b<div>c</div>d<table><td>e", "a b c d e"),
        ("<script>var a = '<p>no</p>';</script><style>p{}</style>yes", "yes"),
        ("a<!-- no <p>no --><!--> b <!---> c <!-- no --!> d", "a b c d"),
        ("<x-a><template shadowrootmode=open>yes <slot></slot></template>yes</x-a>", "yes yes"),
        ("<body><template>no</template><noscript>no</noscript><svg><title>no</title></svg>yes", "yes"),
        ("<div hidden>no</div><div style='color:red; DISPLAY : none'>no</div><span hidden>no</span>yes", "yes"),
        ("<dialog>no</dialog><dialog open>yes</dialog>", "yes"),
        ("<canvas>no <b>no</b></canvas><p>yes<canvas id=c>no</p>yes", "yes yes"),
        ("<math><semantics><mi>x</mi><annotation>no</annotation></semantics></math> y", "x y"),
        ("<math><semantics><mi>x</mi><annotation-xml><ci>no</ci></annotation-xml></semantics></math> y", "x y"),
        ("<noscript><iframe src=x /></noscript>yes<noscript><!-- no</noscript> yes<noscript/>no", "yes yes"),
        ("<head><NoScript>no</NoScript><noscript><img src=x><!--</noscript></head><a href=x><a href=y>yes", "yes"),
        ("<h2><div hidden>no</h2>yes", "yes"),
        ("<xmp>a <b> c</xmp><p>d", "a <b> c d"),
        ("<xmp>&lt;&eacute;&#65; & \1</xmp>&lt;<xmp hidden>no</xmp>", "&lt;&eacute;&#65; & <"),
        ("a<plaintext>b <i>c &amp; <!-- d --></plaintext>e", "a b <i>c &amp; <!-- d --></plaintext>e"),
        ("<a href=x><a href=y>a<plaintext>b <i>c &amp;", "a b <i>c &amp;"),
        ("a<svg><plaintext>no</svg>yes", "a yes"),
        ("a<svg><text>b</text><text/><text>c</text><g> <text>d <a href=x>e</a></text></g>no</svg>f", "a b c d e f"),
        ("<svg><text>a<tspan>b</tspan> <![CDATA[<c>]]><title>no</title><style>no</style></svg>", "a b <c>"),
        ("<svg><g style='display:none'><text>no</text><path/></g><text>yes</text></svg>", "yes"),
        ("<svg style='display:none'><text>no</text></svg><div hidden><svg><text>no</svg></div>yes", "yes"),
        ("<svg><desc>no</desc><foreignObject><div>a <span>b</span></div></foreignObject>no</svg>c", "a b c"),
        ("<svg><text>a<svg>no<text>b</text>no</svg>c</text>no</svg><canvas><text>no</text></canvas>d", "a b c d"),
        ("a<svg><text>b<p>c</svg>d", "a b cd"),
        ("<svg><g><text>a</g>no</text></svg>b<svg><text>c", "a b c"),
        ("<textarea>a <b> c</textarea>", "a <b> c"),
        ("<textarea hidden>no</textarea><textarea style='display:none'><p>no</textarea>yes", "yes"),
        ("<script><!-- w('<script src=a></script>'); no\n//--></script>yes", "yes"),
        ("<script><!-- <script></script> --> no <script></SCRIPT >yes<script><!--> <script></script>yes", "yes yes"),
        ("<script><!-- <scripts></script>yes<script><!-- <script><script></script>no</script>yes", "yes yes"),
        (
            "&lt;b&gt; &amp;amp; caf&eacute; &#233;&#xe9; &nosuch; &copy &notit; &#0; &#128;",
            "<b> &amp; café éé &nosuch; © ¬it; \ufffd €",
        ),
        ("1 < 2 <3 </ 4", "1 < 2 <3"),
        ("<p title='a > b'>x</p><p title=a>y</p><img alt='no'>", "x y"),
        ("<?php no ?>a<!doctype no>b", "ab"),
        ("no markup at all", "no markup at all"),
        ("cut <p title='off", "cut"),
    ],
)
def test_visible_text(html: str, expected: str) -> None:
    assert shown(html) == expected


def test_a_list_sorted_another_way_has_the_same_bag() -> None:
    rows = [f"<tr><td>row {n} of things<td>{n * n}" for n in range(40)]
    one, other = sketched("<table>" + "".join(rows)), sketched("<table>" + "".join(reversed(rows)))
    assert one.bag == other.bag
    assert one.main.text != other.main.text
    assert one.bag != sketched("<table>" + "".join(rows[1:])).bag


def test_a_page_that_counts_its_visitors_has_the_same_words_without_numbers() -> None:
    said = "<nav>{} links</nav><p>Viewed {:,} times by {} visitors, the {}th at {:02}:{:02}.<p>Widget x{} of steel"
    one, other = sketched(said.format(9, 9_999, 8, 7, 10, 5, 2)), sketched(said.format(3, 10_000, 9, 9, 21, 59, 2))
    assert one.unnumbered == other.unnumbered != 0
    assert one.bag != other.bag
    assert one.unnumbered != sketched(said.format(9, 9_999, 8, 7, 10, 5, 3)).unnumbered
    assert sketched("<nav>Page 1 of 9</nav>").unnumbered == sketched("<nav>Page 12 of 19</nav>").unnumbered != 0
    assert sketched("<p>2026-11-28").unnumbered == 0


KOREAN = "안녕하세요 세계, 문서의 본문입니다"
JAPANESE = "日本語の文書です。こんにちは世界"
CHINESE = "汉字文档的正文内容测试"
RUSSIAN = "Это текст документа на русском языке"


@pytest.mark.parametrize(
    ("content", "charset"),
    [
        (KOREAN, "euc-kr"),
        (KOREAN, "cp949"),
        (JAPANESE, "iso-2022-jp"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc-jp"),
        (CHINESE, "gb18030"),
        (CHINESE, "gb2312"),
        (CHINESE, "big5"),
        (RUSSIAN, "windows-1251"),
        (RUSSIAN, "koi8-r"),
        ("naïve café", "iso-8859-1"),
        (RUSSIAN, "utf-16"),
    ],
)
def test_charsets_lead_to_one_text(content: str, charset: str) -> None:
    content = content if charset != "big5" else "漢字文件的內容"
    html = f"<title>x</title><p>{content}</p>"
    expected = sketched(html).main
    assert sketched(html.encode(charset), f"text/html; charset={charset}").main == expected
    if charset != "utf-16":
        declared = f"<meta charset={charset}>{html}".encode(charset)
        assert sketched(declared, "text/html").main == expected


def test_no_charset_and_a_wrong_charset() -> None:
    html = f"<p>{RUSSIAN}</p>"
    assert sketched(html.encode(), None) == sketched(html.encode())
    assert sketched(html.encode(), "text/html; charset=ascii").main == sketched(html).main
    assert sketched(html.encode(), "text/html; charset=no-such").main == sketched(html).main
    assert sketched(f"<p>{JAPANESE}".encode("iso-2022-jp"), None).main == sketched(f"<p>{JAPANESE}").main
    assert sketched("naïve".encode("latin-1"), None).main == sketched("naïve").main
    for content_type in ("text/html; charset=utf-8", "text/html; charset=euc-kr", None):
        assert sketched(b"<p>good words \xff\xfe\x80 more words", content_type).main.tokens >= 4
    assert sketched(b"\xef\xbb\xbf<p>" + RUSSIAN.encode(), "text/html; charset=koi8-r").main == sketched(html).main


def test_what_is_no_text_is_refused() -> None:
    for body in (b"\x89PNG\r\n\x1a\n" + bytes(100), b"%PDF-1.4 ...", bytes(range(1, 32)) * 50):
        with pytest.raises(text.NotText):
            sketched(body)
    with pytest.raises(text.NotText, match=r"is .image/png.;"):
        sketched(b"words", "image/png; charset=utf-8")


def test_compressed_bytes_of_no_known_kind_are_refused_and_wide_text_is_not() -> None:
    """At a tenth of control characters, which is what chance brings, two bodies of five were taken for text."""
    for seed in range(200):
        with pytest.raises(text.NotText):
            sketched(random.Random(seed).randbytes(5000))
    for charset in ("utf-16-le", "utf-16-be", "utf-32-le"):
        told = f"text/html; charset={charset}"
        assert sketched(f"<p>{RUSSIAN}".encode(charset), told).main == sketched(f"<p>{RUSSIAN}").main
    korean = "<p>가 나 다 라 마"
    assert sketched(korean.encode("iso2022_kr"), "text/html; charset=iso-2022-kr").main == sketched(korean).main


XHTML = """<html xmlns="http://www.w3.org/1999/xhtml">
<head><title>{title}</title><script src="x.js"{script}</head><body>{body}</body></html>"""


def test_the_markup_that_a_plain_text_quotes_says_nothing_of_its_charset() -> None:
    page = ("<meta charset=windows-1251> и ещё слова " + RUSSIAN).encode()
    assert sketched(page, "text/plain") == sketched(page, "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    "content_type",
    ["text/html, charset=utf-8", "text/html charset=utf-8", "text/html,text/html; charset=utf-8", "Text/HTML ;x"],
)
def test_what_follows_a_type_need_not_follow_a_semicolon(content_type: str) -> None:
    page = "<p class=x>één woord<nav>more</nav>".encode()
    assert sketched(page, content_type) == sketched(page, "text/html")


@pytest.mark.parametrize(
    "content_type", ["application/xhtml+xml", "text/xml; charset=utf-8", "application/xml", "text/xml, charset=utf-8"]
)
def test_what_xml_closes_in_one_tag_swallows_nothing(content_type: str) -> None:
    """As HTML the script is left open: all pages of a site that had one title were one page."""
    body = f'<p id="a">{RUSSIAN}<br/><a id="b"/> more</p><svg><path d="M0"/></svg><iframe src="y"/><p>end</p>'
    served = sketched(XHTML.format(title="t", script="/>", body=body), content_type)
    plain = sketched(XHTML.format(title="t", script="></script>", body=f"<p>{RUSSIAN}<br>more</p><p>end</p>"))
    assert (served.main, served.whole) == (plain.main, plain.whole)
    assert served.main.text != sketched(XHTML.format(title="t", script="/>", body="<p>other"), content_type).main.text


def test_what_xml_quotes_is_text() -> None:
    told = "application/xhtml+xml"
    assert sketched("<p>a <![CDATA[1 < 2 & <b>]]> c</p>", told).main == sketched("<p>a 1 &lt; 2 &amp; &lt;b> c").main
    assert sketched("<p>a <![CDATA[b", told).main == sketched("<p>a <![CDATA[b").main


@pytest.mark.parametrize("unclosed", [b"<" + b"a" * 200_000, b"<a" * 100_000, b"<a b" * 50_000, b"<![CDATA[" * 20_000])
def test_xml_that_is_never_closed_costs_little(unclosed: bytes) -> None:
    started = time.process_time()
    assert as_html(unclosed) == unclosed
    assert time.process_time() - started < 5  # measured: 10 ms; quadratic took minutes


def test_html_is_read_as_html_whatever_it_looks_like() -> None:
    html = XHTML.format(title="t", script="/>", body="<p>gone")
    assert sketched(html).whole == sketched("<title>t</title>").whole


def test_plain_text_is_no_markup() -> None:
    assert sketched("a < b <p> c", "text/plain").whole == sketch_text("a < b <p> c", text_profile())
    plain = sketch_plain(URL, "a < b <p> c", fetched_at=5)
    assert plain == sketched("a < b <p> c", "text/plain; charset=utf-8")
    assert sketch_plain(URL, "lone \ud800 surrogate", fetched_at=5).whole.tokens == 2


def text_profile() -> object:
    from clusterd_crawler.sketch import TEXT

    return TEXT


def test_profiles_and_fields() -> None:
    for profile in (COMPACT, SHORT):
        sketch = sketch_page(URL, STORY.encode(), None, profile=profile, fetched_at=7, status=404, crawl="c", sweep="s")
        assert (sketch.url, sketch.fetched_at, sketch.profile) == (URL, 7, profile.code)
        assert (sketch.status, sketch.crawl, sketch.sweep) == (404, "c", "s")
        assert sketch.content == mmh3.hash64(STORY.encode(), signed=False)[0]
        assert sketch.whole == sketch_text(shown(STORY), profile)


def test_names_of_a_page() -> None:
    sketch = sketched(
        "<head><base href='http://example.org/x/'><link rel='shortlink Canonical' href='y?a=1&amp;b=2'>"
        "<link rel=canonical href=http://second.example/><meta property=og:url content=' HTTP://Example.org:80/og#f '>"
        "<link rel=stylesheet href=style.css></head>"
        "<a name=p12><a id=p12><div id=post_0045><h2 id=intro><a href='#p99' name=''>x</a>"
    )
    assert set(sketch.names) == {
        names.Name("canonical", names.name_hash("http://example.org/x/y?a=1&b=2")),
        names.Name("shortlink", names.name_hash("http://example.org/x/y?a=1&b=2")),
        names.Name("og", names.name_hash("http://example.org/og")),
        names.Name("anchor", names.anchor_hash("12")),
        names.Name("anchor", names.anchor_hash("0045")),
    }


def test_names_are_bounded_and_bad_ones_are_left_out() -> None:
    many = "".join(f"<a name=p{n}></a>" for n in range(5000))
    assert len(sketched(many).names) == names.MAX_ANCHORS
    for href in ("mailto:a@b", "http://[broken", "javascript:void(0)", "", "http://" + "x" * 5000, "//", "http://a b/"):
        assert all(name.kind == "canonical" for name in sketched(f'<link rel=canonical href="{href}">').names)
    assert sketch_page("not a url", b"<link rel=canonical href=/x>", None, fetched_at=0).names == ()


def test_a_search_form_with_a_drawing_needs_no_parser() -> None:
    page = "<nav><form class='search-form'><svg><path d='M1'/><g><path/></g></svg><div>Go</div></form></nav><p>text"
    assert text.plain(text.marked_text(page, parse=False)[0]).split() == ["Go", "text"]
    with pytest.raises(text.NeedsParser):
        text.marked_text("<table><form class='search-form'><div>Go</div></form></table>", parse=False)


@settings(deadline=None, max_examples=200)
@given(
    st.binary(max_size=2000),
    st.sampled_from(
        [None, "text/html", "text/html; charset=euc-kr", "text/html; charset=undefined", "text/plain", "text/xml", ";;"]
    ),
)
def test_any_bytes_are_sketched_or_refused_clearly(data: bytes, content_type: str | None) -> None:
    try:
        sketch = sketched(data, content_type)
    except text.NotText:
        return
    assert sketch.whole.tokens >= sketch.main.tokens


MEGABYTE = 1 << 20


def test_a_large_page_is_parsed_and_written_as_a_small_one() -> None:
    page = "<title>é</title><p>漢 <b>x<table><tr><div>&lt;y &amp; z<svg><path/></svg>".encode() * 9000
    assert len(page) > LARGE
    assert well_nested(page) == (LexborHTMLParser(page).html or "").encode()
    scripted = b"<p>x<noscript>\xc3\xa9<i></noscript>" * 30_000
    assert well_nested(scripted).count(b"<noembed>\xc3\xa9<i></noembed>") == 30_000


@pytest.mark.parametrize("charset", ["utf-8", "cp1252", "euc-jp", "big5", "utf-16", "iso2022_jp", "koi8-r"])
def test_a_large_body_is_decoded_as_a_small_one(charset: str) -> None:
    body = ("é" if charset == "cp1252" else "ж" if charset == "koi8-r" else "漢字かな 語").encode(charset) * 60_000
    assert recoded(body, charset) == body.decode(charset).encode()
    assert repaired(b"x" + body + b"\xff", charset) == to_unicode(b"x" + body + b"\xff", charset).encode()
    with pytest.raises(LookupError):
        recoded(body, "hex")
    with pytest.raises(UnicodeDecodeError):
        check_utf8(b"x" * 300_000 + b"\xe6\xbc")


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 200_000 + b"deep",
        b"<b>" * 200_000 + b"<p>x" * 100_000,
        b"".join(b"<b id=%d>" % n for n in range(1900)) + b"<p>x" * 100_000,
        b"<table>" * 100_000 + b"<tr><td>x",
        b"<a href=x>" * 100_000 + b"x",
        b"<" * MEGABYTE,
        b"</" * MEGABYTE,
        b"<!--" * MEGABYTE,
        b"&" * MEGABYTE,
        b"&#" * MEGABYTE,
        b"<div" + b" a=1" * 300_000,
        b"<div style='" + b" " * MEGABYTE + b"'>x",
        b"<p class='" + b"nav-" * 300_000 + b"'>x",
        b"<div><span>" * 100_000 + b"</section></p>" * 100_000,
        b"<main>x</main>" * 100_000,
        b"<ul>" + b"<li><a href=x>y</a>" * 100_000,
        b"x" * MEGABYTE,
        "漢".encode() * 400_000,
        "é́".encode() * 300_000,
        b"words and \0 NULs " * 60_000,
        b"<title>" * 300_000,
        b"<script>" + b"</scrip" * 200_000,
    ],
    ids=range(22),
)
def test_hostile_pages_cost_little(body: bytes) -> None:
    started = time.process_time()
    sketch = sketched(body)
    assert time.process_time() - started < 4
    assert sketch.fetched_at == 5


def test_fifty_megabytes() -> None:
    row = "<tr><td>" + " ".join(f"cell{n}" for n in range(100)) + "</td></tr>"
    body = ("<table>" + row * (50 * MEGABYTE // len(row))).encode()
    sketch = sketched(body)
    assert sketch.whole.tokens == 100 * (50 * MEGABYTE // len(row))
    assert sketch.whole.shingles == 100


def test_without_the_core_a_page_has_the_same_sketch(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [
        f"<title>Café</title><nav>{'menu ' * 9}</nav><div id=p77><b>{STORY}</div><p class=nav>x<div>{JAPANESE}</div>",
        f"<main>{STORY}</main><table><div>moved</div><tr><td>{KOREAN}</table><link rel=canonical href=/x>",
    ]
    with_core = [sketched(page) for page in pages]
    monkeypatch.setattr(compiled, "CORE", None)
    assert [sketched(page) for page in pages] == with_core
