"""Pages that stand in a crawl's sweep for URLs that the crawl skipped: what is skipped is neither lost nor moved.

A crawl fetches one URL of each key, and the next one may well fetch another. A page of one sweep that a later crawl did
not fetch is there all the same where that crawl fetched a page of its key, by the rules that are in force now. Nothing
stands for anything in a sweep that was brought in from files: they hold what there was.

Rules by names (`?p=POST` → its topic) have no part in it: stored versions do not keep the names of pages.

A crawl whose skips rest on pages of earlier crawls (``CLUSTERD_SKIP_WITHIN``) does not look whether those are there,
nor whether what is linked from them is. In its sweep stands what the sweep before it holds, as far back as the oldest
page that a skip rested on: all of that the crawl would have skipped.

Cost: a key for each URL of the host, where it has rules and a sweep of it is a crawl's; the skips that can still be
listed, once; nothing otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property

from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.urls import registrable

from clusterd.clusters.contract import Version
from clusterd.learning.rulebook.redis import RuleBook

#: URL → its key.
KeyOf = Callable[[str], str]
#: Sweep → URL → the version that it saw.
Seen = dict[str, dict[str, Version]]


class Skipped:
    """What a rule book knows of what crawls skipped."""

    def __init__(self, book: RuleBook) -> None:
        self._book = book
        #: Of the hosts that are asked for next, and their domains, those that have no rules.
        self._without: set[str] = set()

    def expect(self, hosts: Iterable[str]) -> None:
        """Look in one round trip which of the hosts that are asked for next have rules."""
        names = sorted({name for host in hosts for name in (host, registrable(host))})
        versions = zip(names, self._book.versions(names), strict=True)
        self._without = {name for name, version in versions if not version}

    def key_of(self, host: str) -> KeyOf | None:
        """Return the keys of a host's URLs under the rules that are in force; None where every URL is its own."""
        keys = Keys()
        for name in {host, registrable(host)} - self._without:
            keys.load(self._book.load(name).rules)
        return None if keys.rules_of(host).empty else lambda url: keys.key(url)[0]

    def rested_on(self, crawl: str) -> Set[str]:
        """Return the pages that skips of a crawl rested on."""
        return self._by_crawl.get(crawl, frozenset())

    @cached_property
    def _by_crawl(self) -> Mapping[str, Set[str]]:
        pages: dict[str, set[str]] = defaultdict(set)
        for skip in self._book.skips():
            pages[skip.crawl].add(skip.known_url)
        return pages


def stand_ins(seen: Seen, crawls: Iterable[str], key_of: KeyOf) -> Seen:
    """Return for each of these sweeps which of its pages stand for which URLs that only other sweeps fetched."""
    alike: dict[str, list[str]] = defaultdict(list)
    for url in {url for pages in seen.values() for url in pages}:
        alike[key_of(url)].append(url)
    groups = [urls for urls in alike.values() if len(urls) > 1]
    return {sweep: _standing(groups, seen[sweep]) for sweep in crawls}


def _standing(groups: list[list[str]], fetched: dict[str, Version]) -> dict[str, Version]:
    """Return for the URLs that were not fetched the page of their key that was fetched first."""
    found: dict[str, Version] = {}
    for urls in groups:
        there = [fetched[url] for url in urls if url in fetched]
        if there:
            first = min(there, key=lambda version: (version.fetched_at, version.url))
            found.update((url, first) for url in urls if url not in fetched)
    return found


def known_before(fetched: Mapping[str, Version], before: Mapping[str, Version], skipped: Skipped) -> dict[str, Version]:
    """Return what a sweep has of the one before, as its crawls skipped that; ``fetched``: what it has otherwise."""
    crawls = {version.crawl for version in fetched.values()} - {""}
    rested = {url for crawl in crawls for url in skipped.rested_on(crawl)}
    since = min((before[url].fetched_at for url in rested & before.keys() - fetched.keys()), default=None)
    if since is None:
        return {}
    return {url: page for url, page in before.items() if url not in fetched and page.fetched_at >= since}
