"""Lost & found (paper, section 6.2): where did a page go that a later sweep of its host no longer has?

How it is found is told in `moves`; here is what may be asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterd_crawler.errors import NotFound, WrongInput
from clusterd_crawler.sketch import Profile
from clusterd_crawler.urls import host_of

from clusterd.clusters.contract import Index
from clusterd.queries.documents import known_urls, stored_host
from clusterd.queries.elsewhere import Elsewhere
from clusterd.queries.moves import Found, Search, searches
from clusterd.queries.stand_ins import Skipped


def find_lost(
    index: Index,
    profile: Profile,
    urls: Sequence[str] | None = None,
    from_sweep: str | None = None,
    to_sweep: str | None = None,
    host: str | None = None,
    skipped: Skipped | None = None,
) -> Iterator[Found]:
    """Yield what became of the given URLs, or of all lost pages (of a host).

    ``to_sweep`` is by default the last sweep of the host, ``from_sweep`` the last one before it that has the page. For
    a URL or a host that is given it may be a sweep of other hosts: of a server that is gone it has no page.
    A given URL that is not lost yields nothing; the first one that is unknown raises `NotFound`, behind the answers
    for all others. ``skipped`` (`stand_ins.Skipped`) tells what crawls skipped; without it that counts as lost.
    """
    if urls is None:
        yield from _all(index, profile, from_sweep, to_sweep, host, skipped)
        return
    searches: dict[str, Search] = {}
    others, unknown = Elsewhere(index, profile), None
    for url in (known or given for known, given in zip(known_urls(urls, index), urls, strict=True)):
        name = host_of(url) if "://" in url else ""
        if name not in searches:
            searches[name] = Search(index, profile, name, others, skipped)
        search = searches[name]
        if search.sweeps.sweeps:
            search.reach(to_sweep)
            search.covers(from_sweep, to_sweep, strict=True)
        try:
            found = search.one(url, from_sweep, to_sweep)
        except NotFound as error:
            unknown = unknown or error
            continue
        if found is not None:
            yield found
    if unknown is not None:
        raise unknown


def _all(
    index: Index,
    profile: Profile,
    from_sweep: str | None,
    to_sweep: str | None,
    host: str | None,
    skipped: Skipped | None,
) -> Iterator[Found]:
    """Yield what became of all lost pages of a host, or of the hosts that have these sweeps."""
    hosts = index.hosts()
    if host is not None:
        host = stored_host(host, hosts)
    covered, others = False, Elsewhere(index, profile)
    for search in searches(index, profile, hosts if host is None else [host], others, skipped):
        if host is not None:
            search.reach(to_sweep)
        if search.covers(from_sweep, to_sweep, strict=host is not None or len(hosts) == 1):
            covered = True
            yield from search.all(from_sweep, to_sweep)
    if hosts and not covered:
        asked = " and later in ".join(repr(sweep) for sweep in (from_sweep, to_sweep) if sweep is not None)
        raise WrongInput(f"no host has been seen in the sweep {asked}; clusterd changes lists the sweeps of each")
