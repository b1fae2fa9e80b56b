"""Requests that a site redirects: what is told of them, and which skips rest on what they lead to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.message import Redirect
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.skipping import standing
from clusterd_crawler.skipping.known_pages import LED_AT_ONCE, KnownPages
from clusterd_crawler.skipping.redirects import HOPS, Redirects
from clusterd_crawler.skipping.standing import ALIKE
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import Response

from tests.crawler.crawling import REST, Crawling, crawl, publish_rules, published
from tests.crawler.site import Site

HOST = "h.example"
H = f"http://{HOST}"
BY_BROWSER = {"DOWNLOADER_MIDDLEWARES": {"tests.crawler.test_redirects.Browser": 1}}
#: One page whatever is asked for in a folder: as a family, as an edit, and where it shows a content.
FAMILY = Edit(Key(), "family")
ONE_PATH = Edit(Key(start=0, end=1), "set", value="*")


def one_page(edit: Edit, host: str = HOST, shows: int = 0) -> Rule:
    return Rule("r1", host, (Condition(Key(start=3), "is", ("edit",)),), (edit,), shows=shows)


def told(url: str, prefix: str) -> dict[str, Redirect]:
    """Return the redirects that crawls have told of, by path."""
    messages = [one for one in published(url, prefix) if isinstance(one, Redirect)]
    return {"/" + one.url.split("/", 3)[3]: one for one in messages}


def test_where_a_url_leads_is_told(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Also where no page follows, as the duplicate filter has let that page pass before, or it is of another site."""
    steps = [site.url + path for path in ("/login", "/edit/1#top", "/vote/2", "/redir/3?sid=a", "/page/4")]
    steps += [site.url + path for path in ("/abroad", "/nowhere")]
    handled = {"url": site.url + "/edit/5", "options": {"meta": {"handle_httpstatus_list": [302]}}}
    asked = {"url": site.url + "/edit/6", "options": {"meta": {"dont_redirect": True}}}
    posted = {"url": site.url + "/redir/7", "options": {"method": "POST"}}
    done = crawl(tmp_path, [*steps, handled, asked, posted], settings | {"RETRY_ENABLED": False})
    found = told(redis_url, prefix)
    assert {path: one.target.removeprefix(site.url) for path, one in found.items()} == {
        "/edit/1": "/login?next=/edit/1",
        "/vote/2": "/login",
        "/redir/3?sid=a": "/page/3?sid=a",
        "/abroad": "http://elsewhere.example/",
    }
    assert {one.crawl for one in found.values()} == {found["/vote/2"].crawl} != {""}
    assert {(one.explored, one.instead_of) for one in found.values()} == {("", "")}
    assert site.hits["/login"] == 1
    assert "/page/3?sid=a" in done.paths()


def test_where_a_page_sends_its_reader_is_told(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """As far as Scrapy follows."""
    asked = {"url": site.url + "/refresh/2", "options": {"meta": {"dont_redirect": True}}}
    done = crawl(tmp_path, [site.url + "/refresh/1", site.url + "/late/3", asked], settings)
    assert sorted(done.paths()) == ["/late/3", "/page/1", "/refresh/2"]
    assert {path: one.target for path, one in told(redis_url, prefix).items()} == {"/refresh/1": f"{site.url}/page/1"}
    other = settings | {"METAREFRESH_ENABLED": False}
    assert crawl(tmp_path, [site.url + "/refresh/4"], other).paths() == ["/refresh/4"]
    assert "/refresh/4" not in told(redis_url, prefix)


@pytest.mark.parametrize("path", ["/refresh-to-nothing", "/in-no-charset"])
def test_a_page_that_scrapy_cannot_read_for_where_it_sends_its_reader_is_no_fault_of_ours(
    path: str, site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    done = Crawling(tmp_path, [site.url + path], settings).result()
    assert (site.hits[path], done.seen) == (1, [])  # Scrapy takes it for one that failed
    assert "clusterd failed" not in done.log


class Browser:
    """Says of what it is given where it came to, as scrapy-playwright does: also where Scrapy follows nowhere."""

    def process_response(self, request: Request, response: Response) -> Response:
        return response.replace(url=response.url.replace("/late/", "/page/"))


def test_where_a_browser_has_gone_is_told(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    steps: list[Any] = [site.url + path for path in ("/late/1#top", "/page/3#top", "/missing/late/2")]
    # (What it was told to do there may have led it on.)
    steps.append({"url": f"{site.url}/late/4", "options": {"meta": {"playwright_page_methods": ["click"]}}})
    done = crawl(tmp_path, steps, settings | BY_BROWSER)
    assert sorted(done.paths()) == ["/page/1", "/page/3", "/page/4"]
    assert {path: one.target for path, one in told(redis_url, prefix).items()} == {"/late/1": f"{site.url}/page/1"}


@pytest.mark.parametrize("form", ["redir", "refresh", "late"])
def test_a_trial_that_is_redirected_is_told_as_one(
    form: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    context, edit = Condition(Key(start=3), "is", (form,)), Edit(Key(start=3), "set", value="page")
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (Rule("r1", site.host, (context,), (edit,)),)))
    steps = [f"{site.url}/page/2", REST, f"{site.url}/{form}/2"]
    crawl(tmp_path, steps, settings | {"CLUSTERD_EXPLORE": 1} | (BY_BROWSER if form == "late" else {}))
    one = told(redis_url, prefix)[f"/{form}/2"]
    assert (one.explored, one.instead_of) == ("r1", f"{site.url}/page/2")


@pytest.mark.parametrize("edit", [FAMILY, ONE_PATH], ids=["family", "edit"])
def test_links_that_all_lead_to_one_page_are_skipped(
    edit: Edit, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """As those to edit something, for who is logged in only: after some of them, and each counts once."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (one_page(edit, site.host),)))
    first = [f"{site.url}/edit/{n}" for n in range(ALIKE)]
    then = [f"{site.url}/edit/{n}" for n in range(20)]
    steps = [f"{site.url}/page/1", REST, *first, REST, *then]
    done = crawl(tmp_path, steps, settings | {"CONCURRENT_REQUESTS": 1})
    assert sorted(path for path in site.hits if "/edit" in path and "login" not in path) == [
        f"/edit/{n}" for n in range(ALIKE)
    ]
    assert sum("/login" in path for path in site.hits) == ALIKE
    assert done.stat("skipped") == 20 - ALIKE


def known(rule: Rule | None = None, leads: int = ALIKE) -> KnownPages:
    """Return what is known of a host whose links to edit something lead to its log-in page."""
    pages = KnownPages(explore=0.0)
    pages.load(RuleSet(HOST, 1, (rule or one_page(ONE_PATH),)))
    pages.fetched(f"{H}/", 1, content=1)
    pages.fetched(f"{H}/login", 1, content=7)
    for n in range(leads):
        pages.redirected(f"{H}:80/edit/{n}", f"{H}:80/login")
    return pages


def would_skip(pages: KnownPages, url: str = f"{H}/edit/99") -> str | None:
    skip = pages.decide(url, 10)
    return None if skip is None else skip.known_url


def test_a_few_redirects_justify_no_skip() -> None:
    """A site that sends who asks too often to one page for a while says nothing of what its URLs show."""
    assert would_skip(known(leads=ALIKE - 1)) is None
    assert would_skip(known()) == f"{H}/login"
    pages = known(leads=1)
    for _ in range(ALIKE):
        pages.redirected(f"{H}/edit/0", f"{H}/login")
    assert would_skip(pages) is None


def test_a_page_to_which_many_keys_lead_with_a_few_urls_stands_for_none() -> None:
    """Each topic is linked with many sessions, all of which are blocked, and some that come later are not."""
    sid = Rule("r1", HOST, (Condition(Key(name="sid"), "any"),), (Edit(Key(name="sid"), "delete"),))
    pages = known(sid, leads=0)
    for n in range(2 * ALIKE):
        for session in range(ALIKE):
            pages.redirected(f"{H}/topic/{n}?sid={session}", f"{H}/login")
    assert [would_skip(pages, f"{H}/topic/{n}?sid=99") for n in range(2 * ALIKE)] == [None] * 2 * ALIKE


def test_redirects_to_several_contents_justify_no_skip() -> None:
    pages = known(leads=ALIKE - 1)
    pages.fetched(f"{H}/other", 2, content=8)
    pages.redirected(f"{H}/edit/5", f"{H}/other")
    assert would_skip(pages) is None


@pytest.mark.parametrize(("others", "skipped"), [(0, True), (ALIKE // 2, False)])
def test_one_of_several_contents_stands_for_its_key_only_if_it_is_nearly_all(others: int, skipped: bool) -> None:
    """Links by number of which many lead to the index, as what they named is gone, and some to what they name."""
    pages = known(leads=0)
    for n in range(2 * ALIKE):
        if n < others:
            pages.fetched(f"{H}/named/{n}", 2, content=100 + n)
            pages.redirected(f"{H}/edit/o{n}", f"{H}/named/{n}")
        pages.redirected(f"{H}/edit/{n}", f"{H}/login")
    assert (would_skip(pages) is not None) == skipped


def test_a_page_under_the_key_that_shows_something_else_tears_it() -> None:
    pages = known()
    pages.fetched(f"{H}/edit/50", 3, content=9)
    assert would_skip(pages) is None


def test_a_page_that_failed_since_justifies_no_skip() -> None:
    pages = known()
    pages.fetched(f"{H}/login", 5, good=False)
    assert would_skip(pages) is None
    pages.fetched(f"{H}/login", 6, content=7)
    assert would_skip(pages) == f"{H}/login"


def test_a_link_that_was_redirected_before_is_left_to_the_duplicate_filter() -> None:
    assert would_skip(known(), f"{H}/edit/1") is None


def test_what_is_redirected_before_its_page_comes_counts_then_and_after_rules_change() -> None:
    pages = KnownPages(explore=0.0)
    for n in range(ALIKE):
        pages.redirected(f"{H}/edit/{n}", f"{H}/over/{n}")
        pages.redirected(f"{H}/over/{n}", f"{H}/login?n={n}")
        pages.fetched(f"{H}/login?n={n}", 1, content=7)
    assert would_skip(pages) is None
    for version, edit in enumerate((ONE_PATH, FAMILY), start=1):
        pages.load(RuleSet(HOST, version, (one_page(edit),)))
        assert would_skip(pages) == f"{H}/login?n={ALIKE - 1}"


def test_what_a_retired_rule_was_redirected_to_stands_for_nothing() -> None:
    pages = known()
    assert would_skip(pages, f"{H}/edit/*") == f"{H}/login"
    pages.load(RuleSet(HOST, 2, ()))
    assert would_skip(pages, f"{H}/edit/*") is None


def test_a_rule_that_names_what_is_shown_needs_one_redirect() -> None:
    assert would_skip(known(one_page(ONE_PATH, shows=7), leads=1)) == f"{H}/login"
    assert would_skip(known(one_page(ONE_PATH, shows=8), leads=1)) is None


def test_a_rule_of_the_page_that_was_led_to_says_nothing_of_what_led_there() -> None:
    slash = Rule("r2", HOST, (Condition(Key(end=1), "is", ("",)),), (Edit(Key(end=1), "delete"),))
    asking = Rule("r3", HOST, (), (Edit(Key("sort"), "delete"),), shows=8)
    pages = KnownPages(explore=0.0)
    pages.load(RuleSet(HOST, 1, (slash, asking)))
    pages.fetched(f"{H}/login?sort=a", 1, content=7)
    pages.redirected(f"{H}/old", f"{H}/login?sort=a")

    assert would_skip(pages, f"{H}/old/") is None


def test_a_page_to_which_all_leads_costs_no_more_the_more_leads_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log-in page that a spider which asks not to filter fetches after each redirect: else n² in all."""
    pages = known(leads=3 * LED_AT_ONCE)
    computed: list[str] = []
    key_of = pages._sets.key

    def counted(url: str) -> tuple[str, tuple[str, ...]]:
        computed.append(url)
        return key_of(url)

    monkeypatch.setattr(pages._sets, "key", counted)
    pages.fetched(f"{H}/login", 5, content=7)
    assert LED_AT_ONCE <= len(computed) <= LED_AT_ONCE + 2
    computed.clear()
    pages.redirected(f"{H}/login", f"{H}/")
    assert LED_AT_ONCE <= len(computed) <= LED_AT_ONCE + 2


def test_a_chain_is_followed_as_far_as_browsers_do() -> None:
    """A host whose pages each lead to the one before would else cost the more the longer it is."""
    made = Redirects()
    for n in range(2 * HOPS):
        made.note(str(n + 1), str(n))
    assert (made.target(str(HOPS)), made.target(str(HOPS + 1))) == ("0", str(HOPS + 1))
    assert list(made.led_to("0")) == [str(n + 1) for n in range(HOPS)]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30))
def test_redirects_are_followed_to_their_end_and_back(noted: list[tuple[int, int]]) -> None:
    made = Redirects()
    leads: dict[int, int] = {}
    for one, to in noted:
        made.note(str(one), str(to))
        if one != to:
            leads[one] = to

    def path(n: int) -> list[int]:
        found = [n]
        while (n := leads.get(n, n)) not in found:
            found.append(n)
        return found

    for n in range(8):
        loops = leads.get(path(n)[-1]) is not None
        assert made.target(str(n)) == str(n if loops else path(n)[-1])
        assert set(made.led_to(str(n))) == {str(m) for m in range(8) if m != n and n in path(m)}
        assert (str(n) in made) == (n in leads)


def test_a_url_that_leads_elsewhere_each_time_leaves_nothing_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "LED_LIMIT", 20)
    known = KnownPages(explore=0, limit=10)
    known.load(RuleSet(HOST, 1, (one_page(FAMILY),)))
    for number in range(100):
        known.redirected(f"{H}/edit/random", f"{H}/page/{number}")
        known.fetched(f"{H}/page/{number}", number, content=number + 1)
        known.redirected(f"http://short.example/{number}", f"{H}/page/{number}")  # to another domain
    (held,) = known._hosts.values()
    assert held.standing is not None
    assert len(held.standing.redirects._from) == 1
    assert len(held.standing.led) <= 20
