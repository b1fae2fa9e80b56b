"""The hosts of a registrable domain together: what its mirrors' learner sees (`clusterd.learning.mirrors`).

Every host keeps its own evidence log; the book only notes which sites a group has. A group of one site, as most are,
costs nothing more. For one of several the logs of its hosts are read a second time, each from its own mark, by the
worker that holds the group's lease.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from typing import Final

from clusterd_crawler.rules import Identity
from clusterd_crawler.urls import host_of, registrable

from clusterd.learning.contract import HostLearner, Page
from clusterd.learning.mirrors import SITES, site_of
from clusterd.learning.rulebook.contract import RuleBook
from clusterd.learning.rulebook.recall import Recall, Recalls

#: Groups whose sites a worker remembers, so that the book is asked once a site.
REMEMBERED: Final = 100_000


def _learner(group: str, identity: Identity) -> HostLearner:
    from clusterd.learning.mirrors import MirrorLearner

    return MirrorLearner(group, identity=identity)


class Groups:
    """The groups' learners of one worker."""

    def __init__(self, book: RuleBook, identity: Identity) -> None:
        self._book = book
        self.recalls = Recalls(partial(_learner, identity=identity), groups=True)
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

    def tell(self, host: str, recall: Recall) -> None:
        """Tell a host's learner whether its group has rules in force, where that has another name than the host."""
        group = registrable(host)
        if group != host and recall.version_across != (version := self._book.version(group)):
            recall.version_across = version
            recall.live_across = any(rule.spans for rule in self._book.load(group).rules.rules)

    def caught_up(self, group: str) -> Recall:
        """Return a group's learner, having seen all evidence of its hosts, in the order of the fetches."""
        hosts = sorted({site.partition("://")[2] for site in self._book.sites(group)})
        recall = self.recalls.get(group) or self.recalls.new(group)
        pages = self._read(recall, hosts)
        if pages is None:
            recall = self.recalls.new(group)
            pages = self._read(recall, hosts) or []
        recall.take(sorted(pages, key=lambda page: page.fetched_at), self._book, group)
        recall.fresh.clear()  # Each host shares its own pages.
        return recall

    def _read(self, recall: Recall, hosts: Iterable[str]) -> list[Page] | None:
        """Return what was added to the hosts' logs; None where one was rewritten since it was read."""
        pages: list[Page] = []
        for host in hosts:
            mark = recall.marks.get(host, "")
            evidence = self._book.evidence(host, mark)
            if mark and not evidence.continued:
                return None
            pages += evidence.pages
            recall.marks[host] = evidence.mark
        return pages
