"""What a page shows, as far as rules go (``CLUSTERD_RULE_IDENTITY``): pages that show the same are what rules speak of.

**identical**: its main text. Nothing else loses no word.

**words**: the words of its main text in any order. For listings that are sorted by a parameter: as texts they have
nothing in common. A sort that changes what is on a page changes its words.

**unnumbered**: the same without those that begin with a digit. For sites that write a counter, a time or a date into
every answer, however short their pages. Items that differ in numbers alone are one by it.

**near**: the text of the oldest page that resembles it *itself* by the policy near (`Index.originals`), never of one at
the other end of a chain of resemblances: different products share a chain, and rules learned from those lost nearly
half of a shop's pages. For sites that write something else into every answer, a date, a counter, a token: no two
fetches are equal there. What was learned by texts goes on to hold, since the first page of its kind shows its own.

To all of them belongs what a page of few words shows besides (`Sketch.embedded`): pages of a gallery have one text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from clusterd_crawler.errors import WrongInput
from clusterd_crawler.message import Failure, File, Redirect
from clusterd_crawler.rule_language.json_form import may_have_rules
from clusterd_crawler.rules import Identity
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.urls import canonical, canonical_if_any, host_of

from clusterd.clusters.contract import NEAR, Index, Outcome
from clusterd.learning.contract import Page

#: A batch that the index has applied → what each of its pages shows.
Shown = Callable[[Sequence[Sketch], Sequence[Outcome]], list[int]]

#: The policy that ``near`` goes by.
POLICY: Final = NEAR.name


def shown_by(identity: Identity, index: Callable[[], Index]) -> Shown:
    """Return what tells what pages show; ``index`` is opened where it is needed."""
    known: dict[Identity, Shown] = {
        "identical": texts,
        "words": words,
        "unnumbered": unnumbered,
        "near": partial(originals, index),
    }
    return known[identity]


def texts(sketches: Sequence[Sketch], outcomes: Sequence[Outcome]) -> list[int]:
    """Return the main texts."""
    return [sketch.showing(sketch.main.text) for sketch in sketches]


def words(sketches: Sequence[Sketch], outcomes: Sequence[Outcome]) -> list[int]:
    """Return the words of the main texts; a page without a word shows what one by its text does."""
    return [sketch.showing(sketch.bag if sketch.main.shingles else sketch.main.text) for sketch in sketches]


def unnumbered(sketches: Sequence[Sketch], outcomes: Sequence[Outcome]) -> list[int]:
    """Return the words of the main texts that are no numbers; a page of none shows what one by its text does."""
    return [sketch.showing(sketch.unnumbered or sketch.main.text) for sketch in sketches]


def originals(index: Callable[[], Index], sketches: Sequence[Sketch], outcomes: Sequence[Outcome]) -> list[int]:
    """Return the texts that the pages are copies of, by what the index knows of them."""
    found = texts(sketches, outcomes)
    copies = [place for place, outcome in enumerate(outcomes) if POLICY in outcome.clusters]
    if copies:
        asked = [(sketches[place].url, sketches[place].fetched_at) for place in copies]
        for place, text in zip(copies, index().originals(POLICY, asked), strict=True):
            found[place] = sketches[place].showing(text) if text else found[place]
    return found


def page_of(sketch: Sketch, content: int) -> Page | None:
    """Return what the learner sees of a page that counts as showing a content; None where its URL is none."""
    try:
        url = canonical(sketch.url)
        instead_of = canonical(sketch.instead_of) if sketch.instead_of else ""
    except WrongInput:
        return None
    return Page(
        url,
        content,
        sketch.main.tokens,
        sketch.names,
        sketch.fetched_at,
        sketch.explored,
        instead_of,
        sketch.crawl,
        "soft" if sketch.soft_error else "good",
        sketch.purpose,
    )


def by_host(pages: Iterable[Page | None]) -> dict[str, list[Page]]:
    """Return the pages that there are, host by host; of hosts of which no rule can be nothing is learned."""
    found: dict[str, list[Page]] = {}
    for page in filter(None, pages):
        found.setdefault(host_of(page.url), []).append(page)
    return {host: of_host for host, of_host in found.items() if may_have_rules(host)}


def failed(failure: Failure) -> Page | None:
    """Return what is noted of a fetch that brought no page; None where its URL is none, or no crawl is named."""
    url = canonical_if_any(failure.url)
    return Page(url, 0, fetched_at=failure.at, crawl=failure.crawl, state="failed") if url and failure.crawl else None


def redirected(redirect: Redirect) -> Page | None:
    """Return what the learner sees of a redirect; None where it leads from a URL to itself, or one of them is none."""
    try:
        url, target = canonical(redirect.url), canonical(redirect.target)
        instead_of = canonical(redirect.instead_of) if redirect.instead_of else ""
    except WrongInput:
        return None
    if url == target:
        return None
    return Page(
        url,
        0,
        fetched_at=redirect.at,
        explored=redirect.explored,
        instead_of=instead_of,
        crawl=redirect.crawl,
        state="redirected",
        target=target,
    )


def filed(file: File) -> Page | None:
    """Return what the learner sees of a file; None where its URL is none."""
    try:
        url, instead_of = canonical(file.url), canonical(file.instead_of) if file.instead_of else ""
    except WrongInput:
        return None
    return Page(
        url,
        file.content,
        fetched_at=file.at,
        explored=file.explored,
        instead_of=instead_of,
        crawl=file.crawl,
        state="file" if file.content else "soft",  # nothing came
    )
