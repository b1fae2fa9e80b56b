"""Pages on their way to the log: what is too long is shortened and counted, and never too long for Kafka."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from clusterd_crawler.crawling.pages.reporter import Page, Reporter, Seen
from clusterd_crawler.message import File, decode
from clusterd_crawler.page import content_identity
from clusterd_crawler.publish.spool import Entry
from clusterd_crawler.settings import Settings
from clusterd_crawler.sketch import PROFILES, Sketch
from clusterd_crawler.text import NotText
from clusterd_crawler.topics import LONGEST_MESSAGE
from scrapy import Request
from scrapy.http import HtmlResponse


class Offered:
    """Keeps what would be published."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def offer_together(self, entries: Iterable[Entry]) -> None:
        self.values += [value for _, value in entries]


@pytest.mark.parametrize("profile", [profile.name for profile in PROFILES.values()])
def test_the_longest_page_fits_into_a_message(profile: str) -> None:
    """One-letter words, all shingles different, with chrome, so that both streams are as long as can be."""
    chance = random.Random(1)
    letters = "".join(map(chr, chance.choices(range(0x4E00, 0x9E00), k=1_000_000)))
    words = " ".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=1_000_000))
    for text in (letters, words):
        body = f"<html><body><nav><a href=/>menu</a></nav><main><p>{text}</p></main></body></html>".encode()
        reporter, offered = Reporter(Settings(profile=profile), "c"), Offered()
        reporter.publisher = offered  # type: ignore[assignment]
        url = "http://h.com/" + "x" * 8_000
        reporter.sketch([Page(url, 1, Request(url), HtmlResponse(url, body=body))])
        assert len(offered.values[0]) < LONGEST_MESSAGE / 2
        page = decode(offered.values[0])
        assert isinstance(page, Sketch)
        assert page.main.shingles > 30_000
        assert reporter.shortened == (profile == "short")


def test_soft_errors_say_so() -> None:
    reporter, offered = Reporter(Settings(), "c"), Offered()
    reporter.publisher = offered  # type: ignore[assignment]
    for title in ("404 Not Found", "A page"):
        body = f"<html><head><title>{title}</title></head><body>{'word ' * 50}</body></html>".encode()
        reporter.sketch([Page("http://h.com/", 1, Request("http://h.com/"), HtmlResponse("http://h.com/", body=body))])
    assert [page.soft_error for page in map(decode, offered.values) if isinstance(page, Sketch)] == [True, False]


def test_a_file_with_the_header_of_a_page_is_refused_and_told_as_a_file() -> None:
    """As scripts send it that say nothing of a type: rules that take its URL for a page's are to hear of it."""
    reporter, offered = Reporter(Settings(), "c"), Offered()
    reporter.publisher = offered  # type: ignore[assignment]
    url, body = "http://h.com/topic/1?view=1", b"%PDF-1.7 " + bytes(range(256))
    (outcome,) = reporter.sketch([Page(url, 1, Request(url), HtmlResponse(url, body=body))])
    assert isinstance(outcome, NotText)
    assert list(map(decode, offered.values)) == [File(url, 1, content_identity(body), "c")]


def test_what_two_pages_show_at_their_beginnings_says_nothing_of_the_rest() -> None:
    reporter, offered = Reporter(Settings(max_page_bytes=1_000), "c"), Offered()
    reporter.publisher = offered  # type: ignore[assignment]
    found = []
    for end in ("one", "other", "one"):
        body = f"<html><body><p>{'word ' * 500}{end}</p></body></html>".encode()
        found += reporter.sketch(
            [Page("http://h.com/", 1, Request("http://h.com/"), HtmlResponse("http://h.com/", body=body))]
        )
    one, other, again = (seen.content for seen in found if isinstance(seen, Seen))
    assert one == again != other
    pages = [page for page in map(decode, offered.values) if isinstance(page, Sketch)]
    assert [page.showing(page.main.text) for page in pages] == [one, other, one]
    assert pages[0].content == pages[2].content != pages[1].content
