"""What a page of few words shows besides them: pages of equal words that show other files, or other data, differ."""

from __future__ import annotations

import pytest
from clusterd_crawler.embedded_identity import FEW_TOKENS
from clusterd_crawler.html.embedded_content import MAX_EMBEDDED
from clusterd_crawler.page import sketch_page

PAGE = "http://pictures.example/comic/12"
WORDS = "<title>A comic</title><p>Every day another one."


def shown(body: str, url: str = PAGE) -> tuple[int, int]:
    """What rules compare a page by, and the identity of its words."""
    sketch = sketch_page(url, body.encode(), "text/html; charset=utf-8", fetched_at=0)
    return sketch.showing(sketch.main.text), sketch.main.text


@pytest.mark.parametrize(
    "element",
    [
        "<img src=/{}.png>",
        "<IMG alt=x SRC='/{}.png' width=800>",
        "<img src=/blank.gif data-src=/{}.png>",
        "<img src=/blank.gif data-original=/{}.png>",
        "<img data-lazy-src=/{}.png>",
        "<picture><source srcset='/{}.png 1x, /{}.png 2x'></picture>",
        "<video src=/{}.mp4></video>",
        "<video poster=/{}.jpg></video>",
        "<audio><source src=/{}.ogg></audio>",
        "<iframe src=https://video.example/embed/{}></iframe>",
        "<object data=/{}.swf></object>",
        "<embed src=/{}.swf>",
        "<amp-img src=/{}.png width=800 height=600></amp-img>",
        "<input type=image src=/{}.png>",
        "<img src=picture.php?id={}>",
        "<img src=data:image/png;base64,{}>",
        "<main><h1>A comic</h1><img src=/{}.png></main><footer>of us</footer>",
    ],
)
def test_pages_of_equal_words_that_show_other_files_differ(element: str) -> None:
    (one, text), (other, same), (again, _) = (shown(WORDS + element.format(n, n)) for n in (1, 2, 1))
    assert text == same
    assert one == again != other


def test_frames_are_what_a_page_of_frames_shows() -> None:
    one, other = (shown(f"<title>Manual</title><frameset cols=2><frame src={n}.html></frameset>") for n in (1, 2))
    assert one[1] == other[1]
    assert one[0] != other[0]


@pytest.mark.parametrize(
    "element",
    [
        "<img src=/visits.gif?{} width=1 height=1>",
        "<img src=/visit/{} height=0>",
        "<noscript><img src=/visit/{}></noscript>",
        "<img hidden src=/{}.png>",
        "<img style='display: none' src=/{}.png>",
        "<div hidden><img src=/{}.png></div>",
        "<nav><img src=/{}.png> of the day</nav>",
        "<div class=banner><img src=/{}.png></div>",
        "<script src=/{}.js></script>",
        "<script>var at = {}</script>",
        "<!-- <img src=/{}.png> -->",
        "<a href=/{}>next</a>",
        "<img alt=x{}>",
    ],
)
def test_what_is_not_shown_or_is_chrome_does_not_count(element: str) -> None:
    one, other = (shown(WORDS + element.format(n)) for n in (1, 2))
    assert one == other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://pictures.example/a.png", "/a.png"),
        ("/comic/a.png", "a.png"),
        ("./a.png", "a.png"),
        ("../a/b.png", "./../a/b.png"),
        ("/a.png?v=1", "/a.png?v=2"),
        ("/a.JPG#x", "/a.JPG"),
        ("/i.php?a=1&amp;b=2", "/i.php?a=1&b=2"),
    ],
)
def test_one_file_is_known_by_any_of_its_addresses(one: str, other: str) -> None:
    assert shown(f'{WORDS}<img src="{one}">')[0] == shown(f'{WORDS}<img src="{other}">')[0]


def test_a_file_in_the_folder_of_its_page_is_resolved_against_page_and_base() -> None:
    beside = shown(WORDS + "<img src=full.png>"), shown(WORDS + "<img src=full.png>", "http://pictures.example/song/12")
    assert beside[0][0] != beside[1][0]
    based = [shown("<base href=/all/>" + WORDS + "<img src=full.png>", url) for url in (PAGE, PAGE + "/x/y")]
    assert based[0] == based[1]


@pytest.mark.parametrize("file", ["images/up.gif", "../images/up.gif", "../up.gif", "./images/up.gif", "i/up.php?n=1"])
def test_a_tree_of_two_names_shows_the_same_files(file: str) -> None:
    trees = (
        shown(f"{WORDS}<img src={file}>", f"http://pictures.example/{tree}/a/b.html") for tree in ("2.4", "current")
    )
    assert len(set(trees)) == 1


def test_a_mirror_shows_the_same_files() -> None:
    assert shown(WORDS + "<img src=/a.png>")[0] == shown(WORDS + "<img src=/a.png>", PAGE.replace("//", "//www."))[0]


def test_of_a_page_of_many_words_the_words_decide() -> None:
    words = " ".join(f"word{n}" for n in range(FEW_TOKENS))
    few, many = words.rpartition(" ")[0], words
    assert shown(f"<p>{few}<img src=1.png>")[0] != shown(f"<p>{few}<img src=2.png>")[0]
    assert shown(f"<p>{many}<img src=1.png>") == shown(f"<p>{many}<img src=2.png>")


def test_the_data_of_a_page_that_is_made_in_the_browser_counts() -> None:
    shell = "<title>Shop</title><div id=root></div><script type=application/json>{}</script>"
    data = [shell.format(f'{{"name": "item {n}", "price": {n}}}' * 10) for n in (1, 2, 1)]
    one, other, again = (shown(page) for page in data)
    assert one == again
    assert one[1] == other[1]
    assert one[0] != other[0]
    letters = "<p>" + "letters " * 100
    assert shown(letters + data[0]) == shown(letters + data[1])


def test_of_very_many_files_the_first_are_looked_at() -> None:
    files = [f"<img src={n}.png>" for n in range(MAX_EMBEDDED)]
    page = WORDS + "".join(files)
    assert shown(page + "<img src=x.png>") == shown(page + "<img src=y.png>")
    assert shown(page) != shown(WORDS + "".join(files[1:]) + "<img src=x.png>")


@pytest.mark.parametrize("address", ["http://[", "//", "\0", "x" * 100_000, "javascript:0", "%zz", "&#0;", "é漢"])
def test_any_address_is_taken(address: str) -> None:
    with_it, without = shown(f'{WORDS}<img src="{address}">'), shown(WORDS)
    assert with_it[1] == without[1]
    assert with_it[0] != without[0]
    assert shown(WORDS + "<img src=a.png>", "not a url")[0]


@pytest.mark.parametrize("address", ["http://a[b]@pictures.example/12", "http://a\uff03@pictures.example/12"])
def test_a_page_whose_address_python_takes_for_none_is_sketched(address: str) -> None:
    assert shown("<img src=/1.png>" + WORDS, address)[0] == shown("<img src=/1.png>" + WORDS)[0]
