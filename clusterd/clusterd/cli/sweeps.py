"""``clusterd find-lost`` and ``clusterd changes``: the same site at different times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from clusterd_crawler.errors import NotFound, WrongInput

from clusterd.cli.invocation import Invocation
from clusterd.cli.parameters import Host

if TYPE_CHECKING:
    from clusterd.queries.changes import Changes
    from clusterd.queries.moves import Found

#: What makes one, for those who have none.
SWEEPS: Final = "CLUSTERD_SWEEP of a crawl, clusterd ingest --sweep LABEL"
LOST_COLUMNS: Final = ("url", "match", "resemblance", "margin", "from", "to")
CHANGES_COLUMNS: Final = (
    "host", "from", "to", "unchanged", "revised", "moved", "vanished", "appeared", "resemblance_quantiles",
)  # fmt: skip


@click.command("find-lost")
@click.argument("urls", metavar="[URL…]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All pages that the later sweep no longer has.")
@click.option("--host", metavar="H", type=Host(), help="With --all: only this host.")
@click.option("--from", "from_sweep", metavar="SWEEP", help="Pages of this sweep; default the last that has the page.")
@click.option(
    "--to",
    "to_sweep",
    metavar="SWEEP",
    help="Look in this sweep; default the last of the host. Where the server is gone: one of other hosts.",
)
@click.pass_obj
def find_lost(
    invocation: Invocation,
    urls: tuple[str, ...],
    everything: bool,
    host: str | None,
    from_sweep: str | None,
    to_sweep: str | None,
) -> int:
    """Find where lost pages have moved: pages of a host that a later sweep of that host no longer has.

    The match is the best one among the pages that are new in the later sweep or took the content over, whatever its
    resemblance, else a page that has appeared on another host since and resembles it by half; "margin" says by how much
    it is better than the second best.
    """
    from clusterd import queries
    from clusterd.queries.stand_ins import Skipped
    from clusterd.queries.timeline import day

    if bool(urls) == everything:
        raise WrongInput("find-lost: give the URLs of lost pages, or --all")
    if urls and host is not None:
        raise WrongInput("find-lost: --host goes with --all; a URL names its own host")
    with invocation.caught_up() as services:
        given = list(urls) if urls else None
        unknown: list[NotFound] = []

        def answers() -> Iterator[dict[str, Any]]:
            try:
                skipped = Skipped(services.rulebook.book)
                asked = (given, from_sweep, to_sweep, host)
                found = queries.find_lost(services.index, invocation.profile, *asked, skipped)
                yield from map(lost_record, found)
            except NotFound as error:
                unknown.append(error)  # raised below, when a table of the others has been drawn

        # The last sweep, and the last that has a page, are of current versions, which are never forgotten.
        if (from_sweep or to_sweep) and (forgotten := services.index.forgotten()):
            invocation.hint(
                f"versions of before {day(forgotten)} were forgotten (retention): of sweeps of then only the pages are "
                "known that have no later version"
            )
        shown = invocation.show(invocation.counted(answers(), "lost pages"), LOST_COLUMNS, empty="")
    if unknown:
        raise unknown[0]
    if not shown:
        _none_is_lost(invocation, len(urls), elsewhere=not to_sweep and bool(urls or host))
    return 0


def _none_is_lost(invocation: Invocation, asked: int, *, elsewhere: bool) -> None:
    """Say that no page is lost, or raise it of those that were ``asked`` for; ``elsewhere``: another sweep may tell."""
    gone = "; where the server is gone, name a later sweep of other hosts: --to SWEEP" if elsewhere else ""
    if asked:
        which = "this page" if asked == 1 else "these pages"
        raise NotFound(f"nothing is lost: the latest sweep that was asked for still has {which}{gone}")
    invocation.hint(f"no page was lost; find-lost compares sweeps of a host ({SWEEPS}){gone}")


@click.command("changes")
@click.option("--host", metavar="H", type=Host(), help="Only this host.")
@click.option("--plot", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Draw it: .png or .svg.")
@click.pass_obj
def changes(invocation: Invocation, host: str | None, plot: Path | None) -> None:
    """Tell what became of the pages from sweep to sweep: unchanged, revised, moved, vanished, appeared."""
    from clusterd import queries
    from clusterd.queries import plot as plots
    from clusterd.queries.documents import stored_host
    from clusterd.queries.stand_ins import Skipped
    from clusterd.queries.timeline import day

    if plot is not None:
        plots.check(plot)
    periods: list[Changes] = []
    with invocation.caught_up() as services:
        if host is not None:
            host = stored_host(host, services.index.hosts())

        def kept() -> Iterator[dict[str, Any]]:
            skipped = Skipped(services.rulebook.book)
            for period in queries.changes(services.index, invocation.profile, host, skipped):
                periods.append(period)
                yield changes_record(period)

        nothing = f"{'no host has' if host is None else host + ' has not'} been seen in two sweeps ({SWEEPS})"
        empty = f"nothing to compare: {nothing}" if plot is None else ""  # below it is said as an error
        invocation.show(invocation.counted(kept(), "periods"), CHANGES_COLUMNS, empty=empty)
        if forgotten := services.index.forgotten():
            invocation.hint(f"versions of before {day(forgotten)} were forgotten (retention): nothing is told of then")
    if plot is not None:
        if not periods:
            raise NotFound(f"there is nothing to plot: {nothing}")
        plots.plot(periods, plot)


def lost_record(found: Found) -> dict[str, Any]:
    """Return what became of a page as it is printed."""
    return {
        "url": found.url,
        "match": found.match,
        "resemblance": found.resemblance,
        "match_in_query": found.match_in_query,
        "query_in_match": found.query_in_match,
        "margin": found.margin,
        "from": found.from_sweep,
        "to": found.to_sweep,
        "via": [{"sweep": sweep, "url": url} for sweep, url in found.via],
    }


def changes_record(period: Changes) -> dict[str, Any]:
    """Return what happened between two sweeps as it is printed."""
    return {
        "host": period.host,
        "from": period.from_sweep,
        "to": period.to_sweep,
        "unchanged": period.unchanged,
        "revised": period.revised,
        "moved": period.moved,
        "vanished": period.vanished,
        "appeared": period.appeared,
        "resemblance_quantiles": period.resemblance_quantiles,
        "moved_within": period.moved_within,
        "moved_across": period.moved_across,
        "lifetime_days_quantiles": period.lifetime_quantiles,
    }
