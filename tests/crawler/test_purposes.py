"""Two URLs of one key are two pages where different callbacks read them, or different sessions ask for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.crawling.requests.purposes import ALONE
from clusterd_crawler.purpose import Purpose
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.skipping.bearers import parse_names
from clusterd_crawler.skipping.known_pages import KnownPages
from scrapy import Request
from scrapy.downloadermiddlewares.httpauth import HttpAuthMiddleware
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider
from scrapy.spiders import Rule as LinkRule

from tests.crawler.crawling import REST, crawl, publish_rules, sid_rule
from tests.crawler.made_purposes import HOST, Reading, purposes
from tests.crawler.site import Site

ONE_AFTER_THE_OTHER = {"CONCURRENT_REQUESTS": 1, "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}

SHORTLINK = (Condition(Key(name="p"), "any"),)
BY_NAME = Rule(rule_id(HOST, SHORTLINK, (), name="shortlink"), HOST, SHORTLINK, (), kind="name", name="shortlink")
DROP_SORT = (Edit(Key(name="sort"), "delete"),)
SHOWN = Rule(rule_id(HOST, (), DROP_SORT, shows=77), HOST, (), DROP_SORT, shows=77)

#: Name → how the page is asked for that is known, how another URL of it, whether that has been served.
ASKED: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "as the other": ({}, {}, True),
    "by another callback": ({}, {"callback": "read_otherwise"}, False),
    "by the same of two callbacks": ({"callback": "read_otherwise"}, {"callback": "read_otherwise"}, True),
    "with something to add to it": ({"cb_kwargs": {"item": 1}}, {"cb_kwargs": {"item": 2}}, False),
    "with the same to add": ({"cb_kwargs": {"item": 1}}, {"cb_kwargs": {"item": 1}}, True),
    "with an item in its meta": ({}, {"meta": {"item": {"name": "a"}}}, False),
    "with a text in its meta": ({"meta": {"kind": "a"}}, {"meta": {"kind": "b"}}, False),
    "with the same text": ({"meta": {"kind": "a"}}, {"meta": {"kind": "a"}}, True),
    "with texts in its meta": ({}, {"meta": {"names": ["a"]}}, False),
    "with meta of components": (
        {},
        {"meta": {"download_timeout": 9, "_tries": 3, "proxy": None, "proxy_retry_times": 1}},
        True,
    ),
    "with its own jar": ({"meta": {"cookiejar": 1}}, {"meta": {"cookiejar": 2}}, False),
    "with the same jar": ({"meta": {"cookiejar": 1}}, {"meta": {"cookiejar": 1}}, True),
    "without the jar's cookies": ({}, {"meta": {"dont_merge_cookies": True}}, False),
    "with a cookie": ({}, {"cookies": {"currency": "EUR"}}, False),
    "in another language": ({}, {"headers": {"Accept-Language": "de"}}, False),
    "in the usual language": ({}, {"headers": {"Accept-Language": "en"}}, True),
    "by a script": ({}, {"headers": {"X-Requested-With": "XMLHttpRequest"}}, False),
    "by another browser": ({}, {"headers": {"User-Agent": "other", "Referer": "http://h.com/"}}, True),
    "as another browser": ({"meta": {"impersonate": "chrome"}}, {"meta": {"impersonate": "safari"}}, True),
}


@pytest.mark.parametrize("queued", [False, True])
def test_a_page_is_known_to_those_whom_it_has_served(
    queued: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Whether it is decided when the request is scheduled, or when it is about to be sent."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    first = [{"url": f"{site.url}/page/{n}", "options": one} for n, (one, _, _) in enumerate(ASKED.values())]
    second = [{"url": f"{site.url}/page/{n}?sid=a", "options": two} for n, (_, two, _) in enumerate(ASKED.values())]
    served = {how for how, (_, _, known) in ASKED.items() if known}
    # The rule is to arrive first, and then the pages, where the others are not to wait in the scheduler.
    steps = [f"{site.url}/", REST, *first, *([] if queued else [REST]), *second]
    done = crawl(tmp_path, steps, settings | ONE_AFTER_THE_OTHER)
    assert {how for n, how in enumerate(ASKED) if not site.hits[f"/page/{n}?sid=a"]} == served
    assert done.stat("skipped") == len(served)


def test_a_page_that_a_callback_awaits_itself_is_always_sent(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """A skip would end the callback, and what it has gathered would be lost. To others such a page is unread."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    more = [f"{site.url}/page/1?sid=a", f"{site.url}/page/2?sid=a", f"{site.url}/page/2?sid=b"]
    steps = [
        f"{site.url}/",
        REST,
        f"{site.url}/page/1",
        REST,
        {"url": f"{site.url}/page/3", "options": {"callback": "await_more"}},
        REST,
        f"{site.url}/page/2",
    ]
    done = crawl(tmp_path, steps, settings, more=more)
    assert done.paths() == ["/", "/page/1", "/page/3", "/page/2"]
    assert [site.hits[url.removeprefix(site.url)] for url in more] == [1, 1, 1]
    assert done.stat("skipped") == 0


def test_what_a_redirect_leads_to_is_awaited_too(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """The callback has read it, and the spider's ``parse`` has not."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    steps = [
        f"{site.url}/",
        REST,
        {"url": f"{site.url}/page/3", "options": {"callback": "await_more"}},
        REST,
        f"{site.url}/page/2?x=1&sid=a",
    ]
    done = crawl(tmp_path, steps, settings, more=[f"{site.url}/redir/2?x=1"])
    assert done.paths() == ["/", "/page/3", "/page/2?x=1&sid=a"]


def test_a_link_leads_to_what_the_crawl_began_with(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Scrapy notes in a request's meta that the crawl begins with it; it is fetched for the same all the same."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    steps = [f"{site.url}/page/0", REST, f"{site.url}/page/1", REST, f"{site.url}/second"]
    done = crawl(tmp_path, steps, settings, follow=True)
    assert not site.hits["/page/1?sid=s1"]
    assert site.hits["/page/2?sid=s2"] == 1
    assert done.stat("skipped") == 2


class Following(CrawlSpider):
    name = "following"
    rules = (
        LinkRule(LinkExtractor("/list/")),
        LinkRule(LinkExtractor("/item/"), callback="parse_item"),
        LinkRule(LinkExtractor("/product/"), callback="parse_item"),
        LinkRule(LinkExtractor("/offer/"), callback="parse_item", cb_kwargs={"price": True}),
    )

    def parse_item(self, response: Response) -> None:
        pass


class PageMethod:
    """As scrapy-playwright has it: what the browser is to do on a page, with a place for what came of it."""

    def __init__(self, method: str, *args: Any, **kwargs: Any) -> None:
        self.method, self.args, self.kwargs = method, args, kwargs
        self.result: Any = None


def test_what_a_browser_does_on_a_page_makes_the_form_of_it() -> None:
    """A list that is asked for with one more click shows more. Each request has objects of its own for that."""
    made, _ = purposes(Reading)

    def of(given: Any) -> Purpose:
        return made.of(Request(f"http://{HOST}/", meta={"playwright": True, "playwright_page_methods": given}))

    wait, click = ("wait_for_selector", "#list"), ("click", "#more")
    asked = [[wait], [wait, click], [wait, click, click], [("click", "#less")]]
    for container in (list, lambda methods: dict(enumerate(methods))):
        forms = [of(container([PageMethod(*one) for one in methods])) for methods in asked for _ in range(2)]
        assert forms[::2] == forms[1::2]
        assert len(set(forms)) == len(asked)
    done = PageMethod("screenshot", path="a.png")
    before = of([done])
    done.result = b"a picture"
    assert of([done]) == before != of([PageMethod("screenshot", path="b.png")])
    assert of([]) == of(None)


class Session:
    """What a spider may make anew for each request."""


def test_that_each_request_carries_an_object_of_its_own_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    made, _ = purposes(Reading)
    shared = Session()

    def readers(**meta: Callable[[], Any]) -> int:
        pages = [Request(f"http://{HOST}/", meta={key: make() for key, make in meta.items()}) for _ in range(2 * ALONE)]
        return len({made.of(page).reader for page in pages})

    assert readers(session=lambda: shared, number=lambda: 7) == 1
    assert readers(session=lambda: shared, _session=Session) == 1
    assert not caplog.messages
    assert readers(session=Session) == 2 * ALONE
    assert readers(session=Session) == 2 * ALONE
    (line,) = caplog.messages
    assert "meta['session'] (Session)" in line


def test_that_requests_carry_other_objects_in_their_arguments_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing was said. What is said is true, too, where requests share an object, as all of one list do."""
    made, _ = purposes(Reading)
    for _ in range(ALONE):
        carried = {"session": Session()}
        readers = {made.of(Request(f"http://{HOST}/{page}", cb_kwargs=carried)).reader for page in range(3)}
        assert len(readers) == 1
    (line,) = caplog.messages
    assert "in cb_kwargs: " in line
    assert "only requests with the same object" in line


def test_rules_of_a_spider_that_do_the_same_are_one_reader() -> None:
    made, spider = purposes(Following)
    follow, item, product, offer = (
        made.of(Request(f"http://{HOST}/", callback=spider._callback, meta={"rule": rule, "link_text": f"link {rule}"}))
        for rule in range(4)
    )
    assert item == product
    assert len({follow, item, offer, made.of(Request(f"http://{HOST}/"))}) == 4


def test_what_every_request_of_the_spider_says_makes_no_session() -> None:
    made, _ = purposes(Reading, DEFAULT_REQUEST_HEADERS={"accept-language": "de"})
    plain = made.of(Request(f"http://{HOST}/"))
    assert plain == made.of(Request(f"http://{HOST}/", headers={"Accept-Language": "de"}))
    assert plain != made.of(Request(f"http://{HOST}/", headers={"Accept-Language": "en"}))
    assert plain == made.of(Request(f"http://{HOST}/", headers={"Cookie": "of the jar"}))
    made, _ = purposes(Reading, COOKIES_ENABLED=False)
    assert plain != made.of(Request(f"http://{HOST}/", headers={"Cookie": "its own"}))


class LoggedIn(Reading):
    http_user, http_pass, http_auth_domain = "ann", "secret", None


@pytest.mark.filterwarnings("ignore:Use the HTTPAUTH_USER")  # of Scrapy, of the attributes
@pytest.mark.parametrize(
    ("kind", "settings", "meta"),
    [
        (LoggedIn, {}, {}),
        (LoggedIn, {"HTTPAUTH_USER": "bob", "HTTPAUTH_DOMAIN": None}, {}),
        (Reading, {"HTTPAUTH_USER": "ann", "HTTPAUTH_PASS": "secret", "HTTPAUTH_DOMAIN": None}, {}),
        (Reading, {}, {"http_user": "ann", "http_pass": "secret"}),
        (LoggedIn, {}, {"http_user": "bob"}),
    ],
)
def test_a_login_that_scrapy_adds_to_a_request_that_is_sent_makes_no_other_session(
    kind: type[Reading], settings: dict[str, Any], meta: dict[str, Any]
) -> None:
    """So a link is known when it is scheduled. A request's own login is another one."""
    made, spider = purposes(kind, **settings)
    adds = HttpAuthMiddleware.from_crawler(spider.crawler)
    adds.spider_opened(spider)
    link, sent = (Request(f"http://{HOST}/", meta=meta) for _ in range(2))
    assert adds.process_request(sent) is None
    assert b"Authorization" in sent.headers
    assert made.of(sent) == made.of(link)
    assert made.of(link.replace(headers={"Authorization": "Bearer 1"})) != made.of(link)
    assert made.of(link.replace(meta={"http_user": "eve"})) != made.of(link)


def test_pages_of_unknown_purpose_are_known_to_every_callback_without_a_session() -> None:
    """An older crawler did not tell what reads them; as whom they are asked for is mostly the same."""
    known = KnownPages(explore=0, within=60)
    known.load(RuleSet(HOST, 1, (sid_rule(HOST),)))
    known.fetched(f"http://{HOST}/a?sid=1", 1, earlier=True)
    for url in (f"http://{HOST}/a?sid=1", f"http://{HOST}/a?sid=2"):
        assert known.decide(url, 2, Purpose(reader=5)) is not None
        assert known.decide(url, 2, Purpose(reader=5, session=7)) is None
    known.fetched(f"http://{HOST}/a?sid=3", 3, purpose=Purpose(reader=6))
    assert known.decide(f"http://{HOST}/a?sid=2", 4, Purpose(reader=5)) is not None
    known.fetched(f"http://{HOST}/a?sid=1", 5, good=False)
    assert known.decide(f"http://{HOST}/a?sid=2", 6, Purpose(reader=5)) is None
    assert known.decide(f"http://{HOST}/a?sid=2", 6, Purpose(reader=6)) is not None
    known.fetched(f"http://{HOST}/a?sid=1", 7, purpose=Purpose(reader=6))  # again, and not for the first reader
    assert known.decide(f"http://{HOST}/a?sid=2", 8, Purpose(reader=5)) is None


def test_a_page_that_was_read_before_and_has_failed_since_is_known_to_nobody() -> None:
    known = KnownPages(explore=0)
    known.load(RuleSet(HOST, 1, (sid_rule(HOST),)))
    for at, (sid, reader) in enumerate(((1, 5), (2, 6), (1, 6), (2, 6))):
        known.fetched(f"http://{HOST}/a?sid={sid}", at, purpose=Purpose(reader=reader))
    assert known.decide(f"http://{HOST}/a?sid=3", 4, Purpose(reader=5)) is not None
    known.fetched(f"http://{HOST}/a?sid=1", 5, good=False)
    assert known.decide(f"http://{HOST}/a?sid=3", 6, Purpose(reader=5)) is None


def test_a_name_or_a_content_that_answers_has_served_the_same_purpose() -> None:
    one, other = Purpose(reader=1), Purpose(reader=2)
    known = KnownPages(explore=0)
    known.load(RuleSet(HOST, 1, (BY_NAME, SHOWN)))
    known.fetched(f"http://{HOST}/slug", 1, parse_names(f"shortlink=http://{HOST}/?p=5"), purpose=one)
    known.fetched(f"http://{HOST}/list?sort=a", 1, content=77, purpose=one)
    for url in (f"http://{HOST}/?p=5", f"http://{HOST}/list?sort=b"):
        assert known.decide(url, 2, one) is not None
        assert known.decide(url, 2, other) is None


def test_what_was_read_before_takes_no_more_room_than_pages() -> None:
    known = KnownPages(explore=0, limit=10)
    known.load(RuleSet(HOST, 1, (sid_rule(HOST),)))
    for number in range(1000):
        known.fetched(f"http://{HOST}/a?sid={number % 3}", number, content=1, purpose=Purpose(reader=number + 1))
        (held,) = known._hosts.values()
        assert len(held.read_before or ()) <= 10


def test_a_page_at_which_a_crawl_ends_is_read_again_where_the_crawl_goes_on(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Of a page at ``DEPTH_LIMIT`` no link is followed, nor of those before it as far: nearer to the start more is."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    steps = [f"{site.url}/", REST, f"{site.url}/page/1?sid=a"]
    for limit in (0, 1):
        done = crawl(tmp_path, steps, settings | ONE_AFTER_THE_OTHER | {"DEPTH_LIMIT": limit}, follow=True)
        assert ("/page/1?sid=a" in done.paths()) is (limit == 1)
