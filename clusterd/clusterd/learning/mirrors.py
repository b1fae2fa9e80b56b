"""Sites that show the same pages: www and bare host, http and https, a second port, a second name under one domain.

Scheme and host are keys of a URL like any other (Koppula et al. 2010, definition 1), so a mirror is a rule that
exchanges their values, and it is judged like every rule: pages of equal path and query under both sites agree or
differ, and a context says for which folders and parameters that was seen. Here a page's site stands in the evidence as
a first path component, so that the learner's own columns, trials and contexts do the work; `_at_home` translates what
they find.

Only sites of one group, a registrable domain, are ever compared (of an IP address or a name of one label: the same name
under any port). A rule spans the group and is published under the group's name. The site met later is taken for a
mirror of the one met earlier, so that rules never run in a circle.

Parameters that do not matter within the group are left out of the comparison: where each link has a session of its own
no two sites have a URL in common.

Cost: one more parse a page of groups that have several sites, and learning as a host of their size; `PAGES` and `SITES`
bound what a group can cost, whatever its names (a wildcard in the DNS makes a million).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote, unquote

import numpy as np
from clusterd_crawler.rules import HOST, SCHEME, Condition, Edit, Identity, Rule, component, rule_id
from clusterd_crawler.urls import Url, canonical_if_any, registrable, site_of

from clusterd.learning.candidates import deletions
from clusterd.learning.contract import PAGES, SITES, Page
from clusterd.learning.edits.edit import PathEdit
from clusterd.learning.evidence.arrays import Rows, begins
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.learner import Learner, accept
from clusterd.learning.trials.contexts import Proposal, refine

#: Fewest pages in common before two sites are compared.
SHARED: Final = 5
#: The place at which the site stands in the evidence, before all path components.
SITE: Final = component(0)


class MirrorLearner(Learner):
    """The `HostLearner` of a group: pages of all its sites in, rules that span them out."""

    def __init__(self, group: str, *, identity: Identity = "identical") -> None:
        super().__init__(group, identity=identity)
        self.sites: dict[str, int] = {}

    def observe(self, pages: Iterable[Page]) -> None:
        """Take pages of any site of the group; those of other groups are none of its business."""
        super().observe(taken for page in pages if (taken := self._taken(page)) is not None)

    def _taken(self, page: Page) -> Page | None:
        if not (url := canonical_if_any(page.url)):
            return None
        site = site_of(url)
        if registrable(site.partition("://")[2]) != self.host or "@" in site:
            return None
        full = len(self.sites) >= SITES or len(self.evidence) >= PAGES
        if site not in self.sites and (full or page.state == "failed"):
            return None
        placed = self._placed(url)
        if len(self.evidence) >= PAGES and placed not in self.evidence.row_of:
            return None
        self.sites.setdefault(site, len(self.sites))
        return replace(page, url=placed, instead_of=self._placed(page.instead_of) if page.instead_of else "")

    def _observe_names(self, url: str, page: Page, taken: Url) -> None:
        """Names are their host's affair: to remember what they may mean took more than all the rest."""

    def _placed(self, url: str) -> str:
        """Return a canonical URL as it stands in the evidence."""
        site = site_of(url)
        return f"http://{self.host}/{quote(site, safe='')}{url[len(site) :]}"

    def _accepted(self, snapshot: Snapshot) -> Iterable[tuple[Proposal, int]]:
        """Yield the mirrors that hold."""
        if len(self.sites) < 2:
            return
        self._let_go(snapshot)
        for mirror, site in self._candidates(snapshot):
            found = refine(snapshot, _exchange(mirror, site))
            if found is not None:
                accept(snapshot, found)
                yield found, 0

    def _let_go(self, snapshot: Snapshot) -> None:
        """Compare pages without the parameters that do not matter, as sessions: a page of another site has others."""
        for _ in self._judged(snapshot, deletions(snapshot)):
            pass  # each is accepted by now, and that it is a rule is said by the sites themselves

    def _candidates(self, snapshot: Snapshot) -> list[tuple[str, str]]:
        """Return (site met later, site met earlier) of those with pages in common, the most first."""
        numbers = {quote(site, safe=""): number for site, number in self.sites.items()}
        names = list(self.sites)
        items = snapshot.evidence.paths.items
        of_path = np.array([numbers.get(path.partition("/")[0], 0) for path in items], np.int64)
        site: Rows = of_path[snapshot.path]
        every = PathEdit((), lambda parts: ["", *parts[1:]])
        shared = every.keys(snapshot, np.ones(len(snapshot), np.bool_))
        order = np.lexsort((site, shared))
        starts = begins(shared[order])
        first = site[order][np.flatnonzero(starts)[np.cumsum(starts) - 1]]
        later = site[order] != first
        pairs = Counter(zip(site[order][later].tolist(), first[later].tolist(), strict=True))
        return [(names[mirror], names[known]) for (mirror, known), count in pairs.most_common() if count >= SHARED]

    def _rule(self, proposal: Proposal, at: int, shows: int) -> Rule:
        rule = super()._rule(proposal, at, shows)
        context = tuple(known for condition in rule.context for known in _at_home(condition))
        (gone,) = next(condition.values for condition in rule.context if condition.key == SITE)
        transformation = _heads(unquote(gone), unquote(rule.transformation[0].value))
        return replace(
            rule,
            id=rule_id(self.host, context, transformation, identity=self.identity),
            context=context,
            transformation=transformation,
            spans=True,
            evidence=tuple((_url(first), _url(second), agreed) for first, second, agreed in rule.evidence),
        )


@dataclass(slots=True)
class Group:
    """A group in memory: its pages are kept until a second site is met, and then its learner begins."""

    name: str
    identity: Identity = "identical"
    sites: set[str] = field(default_factory=set)
    waiting: list[Page] = field(default_factory=list)
    learner: MirrorLearner | None = None

    def observe(self, page: Page) -> MirrorLearner | None:
        """Take a page (its URL canonical); return the learner where there are several sites."""
        self.waiting.append(page)
        self.sites.add(site_of(page.url))
        if len(self.sites) > 1:
            self.learner = self.learner or MirrorLearner(self.name, identity=self.identity)
            self.learner.observe(self.waiting)
            self.waiting.clear()
        return self.learner


def _exchange(mirror: str, site: str) -> PathEdit:
    """Return the edit that writes a site for its mirror."""
    gone, kept = quote(mirror, safe=""), quote(site, safe="")
    return PathEdit(
        (Edit(SITE, "set", kept),),
        lambda parts: [kept, *parts[1:]] if parts[0] == gone else None,
        (Condition(SITE, "is", (gone,)),),
    )


def _at_home(condition: Condition) -> tuple[Condition, ...]:
    """Return a condition as it reads on URLs: without the site, which is scheme and host there."""
    key = condition.key
    if key == SITE:
        scheme, _, host = unquote(condition.values[0]).partition("://")
        return Condition(SCHEME, "is", (scheme,)), Condition(HOST, "is", (host,))
    if condition.test == "depth":
        return (replace(condition, values=tuple(str(int(depth) - 1) for depth in condition.values)),)
    if key.start:
        return (replace(condition, key=replace(key, start=key.start - 1)),)
    if not key.name and not key.end and condition.test in {"is", "in"}:
        return (replace(condition, values=tuple(value.partition("/")[2] for value in condition.values)),)
    return (condition,)


def _heads(mirror: str, site: str) -> tuple[Edit, ...]:
    """Return the edits of scheme and host, as far as they differ."""
    pairs = zip((SCHEME, HOST), mirror.split("://"), site.split("://"), strict=True)
    return tuple(Edit(key, "set", kept) for key, gone, kept in pairs if gone != kept)


def _url(placed: str) -> str:
    """Return the URL of a page as it was fetched."""
    site, _, rest = placed.split("/", 3)[3].partition("/")
    return f"{unquote(site)}/{rest}"
