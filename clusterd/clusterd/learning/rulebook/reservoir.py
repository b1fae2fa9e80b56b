"""Which pages of evidence stay when a host has more than may be kept. The pages are sorted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from typing import Final

from clusterd_crawler.rules import RuleSet
from clusterd_crawler.urls import beyond_site, hash_of, query_pair

from clusterd.learning.contract import Page
from clusterd.learning.rulebook.together import brought_together

#: Pages of one content that the reservoir keeps before it touches anything else: agreement beyond it adds nothing.
SAME_CONTENT: Final = 256
#: Most earlier fetches of a URL that stay beside its last.
BESIDE: Final = 3
#: Share of the limit that pages fetched to watch a rule may take.
EXPLORED_SHARE: Final = 0.1
#: Share of it that pages may take which the rules in force bring together.
TOGETHER_SHARE: Final = 0.5
#: The rules of a host that has none.
NO_RULES: Final = RuleSet("", 0, ())


def latest(pages: Iterable[Page]) -> list[Page]:
    """Return the last fetch of each URL, in the order of the fetches (equal times in the order given)."""
    newest: dict[str, Page] = {}
    for page in pages:
        known = newest.get(page.url)
        if known is None or page.fetched_at >= known.fetched_at:
            newest[page.url] = page
    return sorted(newest.values(), key=lambda page: page.fetched_at)


def sightings(pages: Iterable[Page], beside: int = BESIDE) -> list[Page]:
    """Return the last fetch of each URL, and what else tells what was seen beside pages that no later crawl fetched.

    Pages are only compared that one crawl has seen (`learning.crawls`): of the crawls that were the last to fetch some
    URL, those of the most URLs first, ``beside`` fetches of each URL stay too, in the order of the fetches.
    """
    fetched: dict[str, dict[str, Page]] = {}
    for page in sorted(pages, key=lambda page: page.fetched_at):
        of_url = fetched.setdefault(page.url, {})
        of_url.pop(page.crawl, None)  # The last to fetch it stands last.
        of_url[page.crawl] = page
    last = Counter(next(reversed(of_url)) for of_url in fetched.values())
    kept: list[Page] = []
    for of_url in fetched.values():
        crawls = list(of_url)
        earlier = sorted((crawl for crawl in crawls[:-1] if last[crawl]), key=lambda crawl: -last[crawl])[:beside]
        kept += [of_url[crawl] for crawl in (*earlier, crawls[-1])]
    return sorted(kept, key=lambda page: page.fetched_at)


def reservoir(pages: Sequence[Page], limit: int, rules: RuleSet = NO_RULES) -> list[Page]:
    """Choose at most ``limit`` pages, so that what contradicts a rule outlives what merely agrees with it once more.

    1. Pages fetched to watch a rule stay, the latest first, up to their share of the limit, and with them what they are
       judged by: without that each would have brought something new, and speak against its rule. What is beyond that
       share watches nothing any more.
    2. So do pages that the rules in force bring together (`together`), up to a share of their own: what agrees under a
       rule, and what does not. A host whose rules work brings hardly any more of them, so that a rule which had to be
       found again in whatever families stay would mostly be withdrawn.
    3. Of one content at most `SAME_CONTENT` pages stay: a host cannot fill its log with one page under many URLs and
       so push out the pages that differ.
    4. Of the rest those stay whose folder and query names hash lowest: families of URLs stay or go whole, with
       their agreements and their contradictions alike. The hash is fixed, and the same under every site, so that the
       same pages are chosen whoever chooses and whenever, and of mirrors the same under each; each URL with one fetch
       beside its last (`sightings`).
    """
    every = sightings(pages)
    if len(every) <= limit:
        return every
    every = sightings(every, 1)
    kept = latest(every)
    watched = [page for page in kept if page.explored][-max(1, int(limit * EXPLORED_SHARE)) :]
    sizes = Counter(page.url for page in every)
    stays = watched + _witnesses(watched, every)
    stays += _judging(kept, {page.url for page in stays}, rules, int(limit * TOGETHER_SHARE), sizes)
    staying = {page.url for page in stays}
    counts: Counter[int | str] = Counter(map(_shown, stays))
    rest: list[Page] = []
    for page in sorted((p for p in kept if p.url not in staying), key=lambda p: hash_of(beyond_site(p.url))):
        counts[_shown(page)] += 1
        if counts[_shown(page)] <= SAME_CONTENT:
            rest.append(page)
    rest.sort(key=lambda page: hash_of(family(beyond_site(page.url))))
    ordered = stays + rest
    fetches = zip(accumulate(sizes[page.url] for page in ordered), ordered, strict=True)
    chosen = {page.url for _, page in takewhile(lambda counted: counted[0] <= limit, fetches)}
    watching = set(watched)
    return [
        replace(page, explored="", instead_of="") if page.explored and page not in watching else page
        for page in every
        if page.url in chosen
    ]


def _witnesses(watched: Sequence[Page], every: Sequence[Page]) -> list[Page]:
    """Return what watched pages are judged by: what they were fetched instead of, and what they lead to.

    Where the former shows something else also the first page of their crawl that shows the same.
    """
    known: dict[str, Page] = {}
    first: dict[tuple[str, int | str], Page] = {}
    for page in every:
        known[page.url] = page
        if page.is_witness:
            first.setdefault((page.crawl, _shown(page)), page)
    found: dict[str, Page] = {}
    for page in watched:
        instead = known.get(page.instead_of)
        same = first.get((page.crawl, _shown(page))) if instead is None or _shown(instead) != _shown(page) else None
        found.update((one.url, one) for one in (instead, same, known.get(page.target)) if one is not None)
    return [found[url] for url in sorted(found.keys() - {page.url for page in watched})]


def _judging(
    kept: Sequence[Page], staying: set[str], rules: RuleSet, most: int, sizes: Mapping[str, int]
) -> list[Page]:
    """Return the pages that the rules are judged by besides those that stay, with what redirects lead to.

    ``most``: how many fetches of them; ``sizes``: those of each URL.
    """
    taken = 0
    known = {page.url: page for page in kept}
    contents: Counter[int | str] = Counter()
    found: dict[str, Page] = {}
    for page in brought_together(kept, rules):
        contents[_shown(page)] += 1
        if contents[_shown(page)] <= SAME_CONTENT:
            for one in (page, known.get(page.target)):
                if one and one.url not in staying and one.url not in found:
                    found[one.url] = one
                    taken += sizes[one.url]
        if taken >= most:
            break
    return list(found.values())


def _shown(page: Page) -> int | str:
    """Return what stands for a page's content: of what was redirected, the address."""
    return page.target or page.content


def family(url: str) -> str:
    """Return a URL's folder and the names of its query keys: what URLs of one rule have in common."""
    path, _, query = url.partition("?")
    names = sorted({query_pair(piece)[0] for piece in query.split("&")}) if query else []
    return path.rpartition("/")[0] + "?" + "&".join(names)
