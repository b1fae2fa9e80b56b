"""Main text: what of a page is its own, and what is chrome."""

from __future__ import annotations

import pytest
from clusterd_crawler.html.main_text import united
from clusterd_crawler.sketch import EMPTY

from tests.crawler.pages import STORY, main, shown, sketched


@pytest.mark.parametrize(
    "chrome",
    [
        "<nav>menu</nav>",
        "<header>menu</header>",
        "<footer>menu</footer>",
        "<aside>menu</aside>",
        "<ul class='docnav top'><li class=next><a href=x>menu</a></ul>",
        "<div role=navigation>menu</div>",
        "<div role=' Banner '>menu</div>",
        "<div class='left sidebar'>menu</div>",
        "<div id=breadcrumbs>menu</div>",
        "<table><tr><td class=sidebar>menu</td></tr></table>",
        "<ul class=breadcrumb><li>menu<li>menu</ul>",
        "<p class=footer>menu",
        "<div class=nav-panel><p>Next: <a href=n accesskey=n rel=next>menu</a> [<a href=i>Index</a>]</p></div>",
        "<div class=pageId><span>menu</span></div>",
        "<table><tr><td id=projectalign><div id=projectname>menu <span>3.3.9</span></div></td></tr></table>",
        "<div id=MSearchResultsWindow><div class=SRStatus>menu</div></div>",
        "<select><option>menu</select>",
        "<search>menu <input></search>",
        "<form role=search>menu <a href=s>menu</a></form>",
        "<form class=search-form>menu <input></form>",
        "<ul>" + "<li><a href=x>menu</a>" * 6 + "</ul>",
        "<ul>" + "<li><a href=x><b>m</b>enu</a>" * 6 + "</ul>",
    ],
)
def test_chrome_is_not_main_text(chrome: str) -> None:
    for page in (f"<title>T</title>{chrome}<div>{STORY}</div>", f"<title>T</title><div>{STORY}</div>{chrome}"):
        assert "menu" in shown(page)
        assert "menu" not in main(page)
        assert main(page) == main(f"<title>T</title><div>{STORY}</div>")


@pytest.mark.parametrize(
    "content",
    [
        "<article><header><h1>kept</h1></header></article>",
        "<section><footer>kept</footer></section>",
        "<div class=has-sidebar>kept</div>",
        "<div class='content no-nav'>kept</div>",
        "<article><aside>kept</aside></article>",
        "<span class=sidebar>kept</span>",
        "<ul>" + "<li>kept and described at some length, <a href=x>see</a>" * 6 + "</ul>",
        "<ul>" + "<li><a href=x>kept</a>" * 2 + "</ul>",
    ],
)
def test_content_stays_main_text(content: str) -> None:
    assert "kept" in main(f"<div>{STORY}</div>{content}")


def test_a_listing_keeps_its_links() -> None:
    listing = "<h1>Index</h1><ul>" + "".join(f"<li><a href='{n}'>file number {n}</a>" for n in range(50)) + "</ul>"
    assert "file number 49" in main(listing)


def test_a_table_of_contents_in_a_frame_is_chrome_however_long_it_is() -> None:
    # As LilyPond's manuals have it: all sections of the book beside the few words of one.
    contents = "<ul>" + "".join(f"<li><a href='{n}'>section number {n}</a>" for n in range(500)) + "</ul>"
    frame = f"<div id=tocframe><p><a href=/>Back to the index</a></p>{contents}</div>"
    assert main(f"<title>T</title><div id=main>{STORY}</div>{frame}") == shown(f"T {STORY}")


def test_main_elements_hold_the_main_text() -> None:
    page = f"<title>T</title><div>around</div><main>{STORY}</main><div>after</div>"
    assert main(page) == "T " + shown(STORY)
    small = f"<main>tiny</main><div>{STORY * 3}</div>"
    assert shown(STORY) in main(small)


def test_a_block_of_links_is_chrome_also_where_the_main_element_ends_with_it() -> None:
    links = "<ul>" + "<li><a href=x>menu</a>" * 6 + "</ul>"
    for main_element in (f"<main>{STORY}{links}</main>", f"<main>{links}{STORY}</main>"):
        assert main(f"<p>around</p>{main_element}<p>after</p>") == shown(STORY)


@pytest.mark.parametrize("form", ["form role=search", "search", "div class=searchform", "form id=search-box"])
def test_what_was_found_is_content_also_within_the_form_that_finds_it(form: str) -> None:
    def page(*titles: str) -> str:
        found = "".join(
            f"<li><a href={n}>{title}, the title of a page</a> 2026-01-01" for n, title in enumerate(titles)
        )
        ending = form.partition(" ")[0]
        return f"<h1>Search</h1><{form}><input> Search the site <ol>{found}</ol></{ending}><p>{STORY}"

    assert "soups" in main(page("soups", "stews", "salads", "cakes"))
    assert main(page("soups", "stews", "salads", "cakes")) != main(page("breads", "stews", "salads", "cakes"))
    assert main(page()) == shown(f"<p>Search</p>{STORY}")


@pytest.mark.parametrize("name", ["id=tabs", "class='menu x'", "class=banner", "class=advert"])
def test_what_content_may_be_called_too_is_chrome_where_it_is_short_or_links(name: str) -> None:
    rest = "<p>The rest of the page, which is long enough to stand without any title of its own.</p>"
    dishes = f"<ul><li><a href=x>soups</a><li><a href=y>stews</a></ul><nav>menu</nav>{STORY}"
    assert main(f"<div {name}>{dishes}</div>{rest}") == shown(f"<p>soups<p>stews<p>{STORY}{rest}")
    links = "".join(f"<li><a href=x{n}>one of very many dishes</a>" for n in range(40))
    main_elements = f"<main>{rest * 2}</main><div {name}><main>{STORY}</main>"
    for chrome in ("a few words", f"<ul>{links}</ul>", f"{STORY}<ul>{links}</ul>", f"<ul>{links}</ul><h1>one</h1>"):
        assert main(f"<title>T</title><div {name}>{chrome}</div>{rest}") == shown(f"T {rest}")
        assert main(f"<title>T</title><h1>H</h1><div {name}>{chrome}</div>{rest}") == shown(f"<p>H</p>{rest}")
        assert main(f"{main_elements}{chrome if chrome != 'a few words' else links * 2}</div>") == shown(rest * 2)


@pytest.mark.parametrize(
    ("section", "title"),
    [
        ("section id=languages", "\n<h3>Languages<a class=headerlink href=#languages>¶</a></h3>"),
        ("div class=section id='related-links'", "<h2 class=x><span>1.2. </span>Related Links &para;</h2>"),
        ("section class=detail id=menuBar", "\n<H3>menuBar</H3>"),
        ("div id=copyright", "<h1><a href=#c>Copyright</a></h1>"),
        ("div class=section id=related-links", "<h2>Related &amp; <b>links</b></h2>"),
        ("div class=section id='related &amp;'", "<h2>Related &amp;</h2>"),
        ("div class=chapter-level-extent id=Languages", "<h2>Using it with other languages</h2>"),
    ],
)
def test_a_section_that_is_named_for_what_it_tells_is_content(section: str, title: str) -> None:
    """Generators of documents make ids of headings, or of names that authors gave."""
    kept = f"<h1>A document</h1><p>Its first words.<{section}>{title}<p>{STORY}</{section.partition(' ')[0]}>"
    assert main(f"<nav>menu</nav><title>T</title>{kept}") == main(f"<title>T</title>{kept.replace('id=', 'data-x=')}")


@pytest.mark.parametrize(
    "content",
    [
        "<section id=related><h2>Related pages</h2>menu</section>",
        "<section id=related class=related><h2>Related</h2>menu</section>",
        "<div id=copyright><p>Copyright</p>menu</div>",
        "<div id=menu><h2>Menu</h2><a href=/a>menu</a> <a href=/b>and more of it</a> by us</div>",
        "<div id=share>menu <h2>share</h2></div>",
        "<div id=footer><h1></h1>menu</div>",
        "<div id=footer><h1>foot</h1>menu</div>",
        "<div id='x footer'><h1>footer</h1>menu</div>",
        "<div id=footer><h12>footer</h12>menu</div>",
        f"<div id=footer><h1 title='{'x' * 256}'>footer</h1>menu</div>",
    ],
)
def test_what_only_has_a_heading_is_chrome_by_its_id(content: str) -> None:
    assert "menu" not in main(f"<title>T</title><p>{STORY}</p>{content}")


@pytest.mark.parametrize(
    ("box", "title"),
    [
        ("div class=sidebar", "<div class=titlepage><div><p class=title>Box</div></div>"),
        ("div class='sidebar' id=b", "<a id=anchor></a> <div class='titlepage'></div><p>Box"),
        ("aside class=sidebar", "<p class='sidebar-title'>Box</p>"),
        ("div class='sidebar x'", "<p class='first sidebar-title'>Box</p>"),
    ],
)
def test_a_box_of_prose_in_a_book_is_content(box: str, title: str) -> None:
    # As DocBook and docutils write it: a site's sidebar has no such title, and more links than prose.
    name = box.split()[0]
    rest = "<p>The rest of the page, which is long enough to stand without any title of its own.</p>"
    assert main(f"{rest}<{box}>{title}{STORY}</{name}>{rest}") == shown(f"{rest}<p>Box</p>{STORY}{rest}")
    links = "".join(f"<li><a href=x{n}>one of very many pages</a>" for n in range(40))
    assert "one remark" in main(f"{rest}<{box}>{title}<p>one remark</{name}>{rest}")
    for chrome in (f"<ul>{links}</ul>", f"<p>Before</p>{title}{STORY}"):
        page = f"<{box}>{chrome}</{name}>" if "Before" in chrome else f"<{box}>{title}{chrome}</{name}>"
        assert main(f"{rest}{page}{rest}") == shown(rest * 2)
    for surely in (
        f"<nav><{box}>{title}{STORY}</{name}></nav>",
        f"<{name} class='sidebar nav'>{title}{STORY}</{name}>",
    ):
        assert main(f"{rest}{surely}{rest}") == shown(rest * 2)


def test_spans_that_overlap_or_touch_are_one() -> None:
    assert united([]) == []
    assert united([(0, 1), (3, 9), (4, 7), (9, 10), (12, 13)]) == [(0, 1), (3, 10), (12, 13)]


def test_a_title_gives_way_to_the_heading_of_a_text_that_is_longer() -> None:
    form = "<h1>Log in</h1><p>You are not logged in. Enter your name and your password below.</p>"
    assert main(f"<title>Page 1 [Wiki]</title>{form}") == main(f"<title>Page 2 [Wiki]</title>{form}") == main(form)
    page = f"<title>T</title><h1>around</h1><main>{STORY}</main>"
    assert main(page) == main(f"<title>T</title><main>{STORY}</main>") != main(f"<main>{STORY}</main>")
    for kept in (
        f"<header><h1>T</h1></header>{STORY}",
        "<h1></h1>" + STORY,
        "<h1>Picture</h1>",
        "<h2>Log in</h2>" + STORY,
    ):
        assert main(f"<title>Sunset on the lake</title>{kept}").startswith("Sunset on the lake")


def test_a_form_is_one_text_whatever_the_length_of_the_name_in_its_title() -> None:
    # A wiki's page of backlinks, as DokuWiki writes it: tiny, and titled with the page that it was reached from.
    form = (
        "<main><div class=pageId>{0}</div><div class=page><h1>Backlinks</h1><p>This is a list of pages that seem to "
        "link back to the current page.</p><p>Nothing was found.</p></div><div class=docInfo>{0}.txt</div></main>"
    )
    names = ("a:p1", "alpha:beta:gamma:longername", "n" * 200)
    texts = {main(f"<title>{name} - Backlinks [A wiki]</title>{form.format(name)}") for name in names}
    assert len(texts) == 1
    assert "Nothing was found" in texts.pop()


def test_main_text_is_never_empty_where_the_whole_is_not() -> None:
    for page in ("<nav>only menu</nav>", "<title>T</title><div class=sidebar>all there is</div>", "<nav>a</nav> | "):
        sketch = sketched(page)
        assert sketch.main == sketch.whole != EMPTY


def test_pages_of_one_template_differ_in_main_and_pages_with_other_chrome_agree_there() -> None:
    menu = "<nav>" + "a long menu that every page has, " * 100 + "</nav>"
    one, other = (sketched(f"{menu}<div>{body}</div>") for body in (STORY, STORY.replace("fox", "hare")))
    assert one.main.text != other.main.text
    assert sketched(f"<nav>another menu</nav><div>{STORY}</div>").main == one.main
    assert one.whole != sketched(f"<nav>another menu</nav><div>{STORY}</div>").whole
