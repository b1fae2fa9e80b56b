"""The hosts of a registrable domain together: what its mirrors' learner sees (`clusterd.learning.mirrors`).

Every host keeps its own evidence log; the book only notes which sites a group has. A group of one site, as most are,
costs nothing more. For one of several the logs of its hosts that have grown are read a second time, each from its own
mark, by the worker that holds the group's lease. A group whose hosts have more pages than its learner takes is read in
a sample (`sampled`): beside it never more than one host's log is in memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from clusterd_crawler.rules import Identity
from clusterd_crawler.urls import beyond_site, hash_of, host_of, registrable, site_of

from clusterd.learning.contract import PAGES, SITES, Page
from clusterd.learning.rulebook.recall import Recall, Recalls, group_learner
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.portions import portions

#: Groups whose sites a worker remembers, so that the book is asked once a site.
REMEMBERED: Final = 100_000
#: Groups of which it is asked at a time how many sites they have.
ASKED: Final = 100


class Groups:
    """The groups' learners of one worker."""

    def __init__(self, book: RuleBook, identity: Identity, limit: int = PAGES) -> None:
        """Take the pages of a group that are read at most."""
        self._book, self._limit = book, limit
        self.recalls = Recalls(partial(group_learner, identity), groups=True)
        self._noted: OrderedDict[str, set[str]] = OrderedDict()

    def note(self, pages: Iterable[Page]) -> None:
        """Note the sites of pages that are about to be added to the evidence. May be repeated."""
        for page in pages:
            site = site_of(page.url)
            group = registrable(host_of(page.url))
            known = self._noted.setdefault(group, set())
            if site in known or len(known) >= SITES:
                continue
            known.update(self._book.sites(group))
            if site not in known and len(known) < SITES:
                self._book.note_site(group, site)
                known.add(site)
            if len(self._noted) > REMEMBERED:
                self._noted.popitem(last=False)

    def forget(self) -> None:
        """Let all learners go, and what sites were noted: of a store that came back from the past (`RuleService`)."""
        self.recalls.clear()
        self._noted.clear()

    def tell(self, host: str, recall: Recall) -> None:
        """Tell a host's learner whether its group has rules in force, where that has another name than the host."""
        group = registrable(host)
        if group != host and recall.version_across != (version := self._book.version(group)):
            recall.version_across = version
            recall.live_across = any(rule.spans for rule in self._book.load(group).rules.rules)

    def several(self, groups: Sequence[str]) -> Iterator[str]:
        """Yield those of some groups that have several sites."""
        for some in portions(groups, ASKED):
            counted = zip(some, self._book.site_counts(some), strict=True)
            yield from (group for group, sites in counted if sites > 1)

    def caught_up(self, group: str, *, whole: bool = True) -> Recall:
        """Return a group's learner, having seen all evidence of its hosts, in the order of the fetches.

        ``whole`` as of `Recall.take`.
        """
        hosts = sorted({site.partition("://")[2] for site in self._book.sites(group)})
        recall = self.recalls.get(group)
        pages = None if recall is None else self._read(recall, hosts)
        if recall is None or pages is None:
            recall = self.recalls.new(group)
            pages = self._sampled(recall, hosts)
        told = self._book.load(group) if recall.version != self._book.version(group) else None
        recall.take(sorted(pages, key=lambda page: page.fetched_at), told, whole=whole)
        recall.fresh.clear()  # Each host shares its own pages, and takes back its own.
        recall.walled.clear()
        return recall

    def _read(self, recall: Recall, hosts: Iterable[str]) -> list[Page] | None:
        """Return what was added to the hosts' logs; None where the sample has grown beyond the limit."""
        pages: list[Page] = []
        for host in self._book.grown({host: recall.marks.get(host, "") for host in hosts}):
            pages += sampled(self._added(recall, host), recall.halved)
            if max(len(pages), len(recall.arrivals)) > self._limit:
                return None
        return pages

    def _sampled(self, recall: Recall, hosts: Iterable[str]) -> list[Page]:
        """Return what the hosts' logs hold, halved as often as there is too much of it."""
        pages: list[Page] = []
        for host in hosts:
            pages += sampled(self._added(recall, host), recall.halved)
            while len(pages) > self._limit:
                recall.halved += 1
                pages = sampled(pages, recall.halved)
        return pages

    def _added(self, recall: Recall, host: str) -> tuple[Page, ...]:
        """Return what was added to a host's log; all of one that was rewritten, of which what is known is dropped."""
        evidence = self._book.evidence(host, recall.marks.get(host, ""))
        recall.marks[host] = evidence.mark
        if not evidence.continued and evidence.was_cut:
            recall.met.add(self._book.met(host))
        return evidence.pages


def sampled(pages: Iterable[Page], halved: int) -> list[Page]:
    """Return the pages of a group that are left of it, halved so many times.

    Those stay whose path and query hash lowest, under every site alike: what agrees with a mirror and what contradicts
    it. One that watches a rule stays with the page that it was fetched instead of: without it, it would speak against
    its rule. A redirect to a page that goes shows something of its own, named by that path and query, and watches
    nothing: shown as it is, it would wait for that page. (What a watched page shows that the crawl has met elsewhere
    may be gone, where that is few pages; then its rule is given up sooner than it need be.)
    """
    if not halved:
        return list(pages)
    above = 64 - halved
    kept = [page for page in pages if not _hash(page.instead_of or page.url) >> above]
    return [
        replace(page, state="good", content=shown, explored="")
        if page.state == "redirected" and (shown := _hash(page.target)) >> above
        else page
        for page in kept
    ]


def _hash(url: str) -> int:
    """Return the hash of a URL's path and query."""
    return hash_of(beyond_site(url))
