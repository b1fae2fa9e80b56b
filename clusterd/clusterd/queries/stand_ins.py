"""Pages that stand in a crawl's sweep for URLs that the crawl skipped: what is skipped is neither lost nor moved.

A crawl fetches one URL of each key, and the next one may well fetch another. A page of one sweep that a later crawl did
not fetch is there all the same where that crawl fetched a page of its key, by the rules that are in force now. Nothing
stands for anything in a sweep that was brought in from files: they hold what there was.

Rules by names (`?p=POST` → its topic) have no part in it: stored versions do not keep the names of pages.

Cost: a key for each URL of the host, where it has rules and a sweep of it is a crawl's; nothing otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.urls import registrable

from clusterd.clusters.contract import Version
from clusterd.learning.rulebook.contract import RuleBook

#: URL → its key.
KeyOf = Callable[[str], str]
#: Host → the keys of its URLs; None where every URL is its own.
KeysOf = Callable[[str], KeyOf | None]
#: Sweep → URL → the version that it saw.
Seen = dict[str, dict[str, Version]]


def keys_under(book: RuleBook) -> KeysOf:
    """Return the keys of URLs under the rules of a book that are in force."""

    def keys_of(host: str) -> KeyOf | None:
        keys = Keys()
        for name in {host, registrable(host)}:
            keys.load(book.load(name).rules)
        return None if keys.rules_of(host).empty else lambda url: keys.key(url)[0]

    return keys_of


def stand_ins(seen: Seen, key_of: KeyOf) -> Seen:
    """Return for each sweep of a crawl which of its pages stand for which URLs that only other sweeps fetched."""
    crawls = [sweep for sweep, pages in seen.items() if any(version.crawl for version in pages.values())]
    if len(seen) < 2 or not crawls:
        return {}
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
