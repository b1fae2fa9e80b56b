"""Rules by another identity than that of texts, where it is asked for: from near-duplicates, and words in any order."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusterd.config import Config
from clusterd.services import Services, open_services, process_pending, publish_sketches
from clusterd_crawler.crawling.pages.nearly_equal import FEWEST
from clusterd_crawler.page import sketch_page
from clusterd_crawler.rules import Identity
from clusterd_crawler.skipping.known_pages import KnownPages

from tests.crawler.crawling import ONE_BY_ONE, Crawled, crawl
from tests.crawler.site import html
from tests.flow.serving import serving

FILES = "http://files.example"
ITEMS = 40
#: Words of a page: one that differs leaves r = .95.
WORDS = 400


def words(item: str) -> list[str]:
    chance = random.Random(item)
    return ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(3, 9))) for _ in range(WORDS)]


@contextmanager
def varying(length: int = WORDS) -> Iterator[str]:
    """Serve items under any session; each answer counts the visitors in the middle of its text."""
    visitors = itertools.count(10_000)

    def page(path: str) -> bytes:
        text = words(path.partition("?")[0])[:length]
        text.insert(length // 2, f"visitor{next(visitors)}")
        return html("A shop", f"<p>{' '.join(text)}</p>", [])

    with serving(page) as site:
        yield site


def crawled(folder: Path, site: str, **settings: Any) -> Crawled:
    """Crawl every item twice, and after a while four times more, each time in another session."""
    urls = [
        f"{site}/item/{n}?sid={random.Random(n * 6 + again).getrandbits(64):x}"
        for again in range(6)
        for n in range(ITEMS)
    ]
    steps = [*urls[: 2 * ITEMS], {"pause": 4}, *urls[2 * ITEMS :]]
    return crawl(folder, steps, {"CLUSTERD_EXPLORE": 0.1, "ROBOTSTXT_OBEY": False, **settings})


def test_rules_are_learned_from_near_duplicates_by_a_setting(tmp_path: Path) -> None:
    with varying() as site:
        plain = crawled(tmp_path / "plain", site)
        near, again = (crawled(tmp_path / "near", site, CLUSTERD_RULE_IDENTITY="near") for _ in range(2))
    assert plain.stat("skipped") == 0
    assert len(plain.seen) == 6 * ITEMS
    assert near.stat("skipped") > 0
    assert again.stat("skipped") > 3 * ITEMS
    for one in (near, again):
        assert {path.partition("?")[0] for path in one.paths()} == {f"/item/{n}" for n in range(ITEMS)}
        assert not [heard for heard in one.heard if "retired" in heard]
    with open_services(Config(data=str(tmp_path / "near" / ".clusterd"))) as services:
        assert {rule.identity for rule in services.rulebook.rules()} == {"near"}


def test_pages_are_the_same_without_their_numbers_by_a_setting(tmp_path: Path) -> None:
    """Of 120 words: that differ in so few that near-duplicates tell nothing."""
    viewed = itertools.count(1_000, 7)

    def page(path: str) -> bytes:
        text = " ".join(words(path.partition("?")[0])[:60])
        seen = next(viewed)
        counted = f"Viewed {seen:,} times, for the last time at {seen % 24:02}:{seen % 60:02}, by {seen % 9} visitors"
        return html("A shop", f"<p>{text} {counted} {text}</p>", [])

    with serving(page) as site:
        near = crawled(tmp_path / "near", site, CLUSTERD_RULE_IDENTITY="near")
        unnumbered = crawled(tmp_path / "unnumbered", site, CLUSTERD_RULE_IDENTITY="unnumbered")
    assert near.stat("skipped") == 0
    assert unnumbered.stat("skipped") > 0
    assert {path.partition("?")[0] for path in unnumbered.paths()} == {f"/item/{n}" for n in range(ITEMS)}
    assert not [heard for heard in unnumbered.heard if "retired" in heard]


def test_what_a_middleware_takes_out_is_no_content(tmp_path: Path) -> None:
    # Given items of few words, all of which show how often they were viewed, and the middleware of the documentation.
    viewed = itertools.count(1_000)

    def page(path: str) -> bytes:
        text = " ".join(words(path.partition("?")[0])[:60])
        return html("A shop", f"<p>{text} Viewed {next(viewed):,} times {text}</p>", [])

    described = (
        (Path(__file__).parents[2] / "docs" / "rules.md").read_text().partition("## Pages that show something else")[2]
    )
    (tmp_path / "described.py").write_text(described.partition("```python\n")[2].partition("```")[0])
    with serving(page) as site:
        done = crawled(tmp_path, site, DOWNLOADER_MIDDLEWARES={"described.WithoutCounters": 500})
    assert done.stat("skipped") > 0
    assert {path.partition("?")[0] for path in done.paths()} == {f"/item/{n}" for n in range(ITEMS)}


@pytest.mark.parametrize(
    ("identity", "length", "told"),
    [("identical", WORDS, True), ("near", WORDS, False), ("near", 60, True), ("unnumbered", 60, False)],
)
def test_pages_that_differ_at_each_fetch_are_told_of_unless_rules_bring_them_together(
    tmp_path: Path, identity: Identity, length: int, told: bool
) -> None:
    # Given items, each also in a session, as many as are spoken of.
    with varying(length) as site:
        urls = [f"{site}/item/{n}{query}" for query in ("", "?sid=7") for n in range(FEWEST)]
        done = crawl(tmp_path, urls, {"CLUSTERD_RULE_IDENTITY": identity, "CLUSTERD_SKIP": False, **ONE_BY_ONE})
    host = site.removeprefix("http://")
    said = f"{host}: {FEWEST} of {2 * FEWEST} pages differ a little from a page whose URL has other parameters"
    assert (said in done.log) is told
    assert done.stat("nearly_equal") == (FEWEST if told else 0)


def test_what_only_the_store_refuses_ends_the_crawl_before_its_first_request(tmp_path: Path) -> None:
    """All pages were paid for, and none was skipped."""
    too_many = {f"p{n}": {"resemblance": 0.5 + n / 100} for n in range(17)}
    with varying() as site:
        done = crawl(tmp_path, [f"{site}/item/1"], {"CLUSTERD_POLICIES": too_many})
    assert "The daemon does not start: p16 is one policy too many" in done.log
    assert done.log.count("The daemon does not start") == 1
    assert "Traceback" not in done.log
    assert done.stats["finish_reason"] == "wrong_setting"
    assert not done.paths()


def listing(folder: int, by: str, order: str) -> str:
    """Return a folder's listing as Apache sorts it."""
    chance = random.Random(folder)
    files = [(chance.choice(words(str(folder))) + str(n), chance.randrange(10**9), n * 37 % 20) for n in range(20)]
    files.sort(key=lambda file: file["NSM".index(by)], reverse=order == "D")
    rows = "".join(f"<tr><td>{name}</td><td>{size} bytes</td><td>May {day}</td></tr>" for name, size, day in files)
    return (
        f"<html><title>Index of /{folder}</title><body><h1>Index of /{folder}</h1><table>{rows}</table></body></html>"
    )


@pytest.mark.parametrize("identity", ["identical", "words"])
def test_sorted_listings_are_the_same_by_their_words(tmp_path: Path, identity: Identity) -> None:
    sorts = [f"?C={by};O={order}" for by in "NSM" for order in "AD"]
    pages = [
        sketch_page(f"{FILES}/{folder}/{sort}", listing(folder, sort[3], sort[7]).encode(), "text/html", fetched_at=at)
        for at, (folder, sort) in enumerate(itertools.product(range(40), sorts))
    ]
    with open_services(Config(data=str(tmp_path), rule_identity=identity)) as services:
        publish_sketches(services, pages)
        process_pending(services)
        rules = list(services.rulebook.rules())
        known = KnownPages(explore=0)
        known.load(services.rulebook.book.load("files.example").rules)
    assert {rule.identity for rule in rules} == ({identity} if identity == "words" else set())
    for at, page in enumerate(pages):
        if page.url.endswith("?C=N;O=A"):
            known.fetched(page.url, at, content=page.main.text)
    skipped = [known.decide(f"{FILES}/{folder}/?C=M;O=D", 10**6) for folder in range(40)]
    assert all(skipped) if identity == "words" else not any(skipped)
    assert known.decide(f"{FILES}/61/?C=M;O=D", 10**6) is None


def test_a_command_that_names_none_goes_on_by_the_daemons_identity(redis_url: str, prefix: str) -> None:
    """It works off what a daemon has left: judged otherwise, the listings of before would differ from those of now."""
    store = Config(redis=redis_url, redis_prefix=prefix)
    sorts = [f"?C={by};O={order}" for by in "NSM" for order in "AD"]

    def bring(services: Services, folders: range, at: int) -> set[Identity]:
        urls = [(f"{FILES}/{folder}/{sort}", listing(folder, sort[3], sort[7])) for folder in folders for sort in sorts]
        publish_sketches(
            services,
            [sketch_page(url, body.encode(), "text/html", fetched_at=at + n) for n, (url, body) in enumerate(urls)],
        )
        process_pending(services)
        return {rule.identity for rule in services.rulebook.rules()}

    with Services(replace(store, rule_identity="words"), guest=False) as daemon:
        assert bring(daemon, range(40), 1_000) == {"words"}
    with Services(store) as command:
        assert bring(command, range(40, 80), 2_000) == {"words"}
        pages = [page for page in command.rulebook.pages("files.example") if "/60/" in page.url]
        assert (len(pages), len({page.content for page in pages})) == (6, 1)
    with Services(replace(store, rule_identity="unnumbered")) as command:  # for this time alone
        assert command.rulebook
    with Services(store) as command:
        assert command.rulebook
        assert command.redis.get(f"{prefix}rb:identity") == b"words"
    with Services(store, guest=False) as daemon:  # a daemon without the setting is one by texts
        assert daemon.rulebook
    with Services(store) as command:
        assert command.redis.get(f"{prefix}rb:identity") == b"identical"
