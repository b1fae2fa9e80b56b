"""A log-in form that a site shows for a while in place of its pages, over HTTP: rules that it ends come back."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

from clusterd.config import Config
from clusterd.services import open_services

from tests.crawler.crawling import REST, crawl
from tests.crawler.site import html
from tests.flow.serving import serving

ARTICLES = 80
#: Requests that are answered before the form is shown, and with it.
BEFORE, WALL = 150, 60
#: Settings: the daemon has seen what was asked for before the next requests go out.
ASKED = {"rest": True, "answered": True}
FORMS = ["", "?sid=1", "?print=1", "?sort=date", "?sort=name", "?ref=home", "?view=full", "?lang=en"]


def words(item: str) -> str:
    chance = random.Random(item)
    return " ".join("".join(chance.choices("abcdefghijklmnop", k=6)) for _ in range(60))


def test_a_crawl_that_was_shown_a_log_in_form_for_a_while_skips_again(tmp_path: Path) -> None:
    asked = itertools.count()
    walled: list[str] = []
    shown: set[str] = set()

    def page(path: str) -> bytes:
        if BEFORE <= next(asked) < BEFORE + WALL:
            walled.append(path)
            return html("Log in", f"<p>{words('form')}</p>", [])
        shown.add(article := path.partition("?")[0])
        return html(article, f"<p>{words(article)}</p>", [])

    with serving(page) as site:
        urls = [f"{site}/article/{number}{form}" for number in range(ARTICLES) for form in FORMS]
        random.Random(1).shuffle(urls)
        steps: list[Any] = [step for at in range(0, len(urls), 40) for step in (*urls[at : at + 40], ASKED)]
        done = crawl(tmp_path, [*steps, REST], {"ROBOTSTXT_OBEY": False})
    assert len(walled) == WALL
    # Nothing is lost but what was asked for in vain; without the form some 300 pages are fetched, and nearly all were
    # for what it showed.
    assert {f"/article/{number}" for number in range(ARTICLES)} - shown <= {path.partition("?")[0] for path in walled}
    assert len(done.seen) < WALL + len(urls) * 2 / 3
    with open_services(Config(data=str(tmp_path / ".clusterd"))) as services:
        (host,) = services.rulebook.book.hosts()
        failed = [page.url for page in services.rulebook.book.evidence(host).pages if page.state == "failed"]
        assert len(failed) > WALL / 2
        assert len(list(services.rulebook.rules(host))) > 0
