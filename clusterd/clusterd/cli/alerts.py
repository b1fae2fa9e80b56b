"""``clusterd alerts``: what joined, left, merged and split, since a time or as it happens."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Final

import click
from clusterd_crawler.clock import ms_of, now_ms
from clusterd_crawler.errors import WrongInput

from clusterd.cli.interruptions import Outages
from clusterd.cli.invocation import Invocation
from clusterd.cli.printing import pages, printable

if TYPE_CHECKING:
    from clusterd_consumer.insisting import StopFlag

    from clusterd.alerts import Alert

COLUMNS: Final = ("at", "event", "policy", "cluster", "size", "url", "match", "resemblance")
#: Suffix of a span → seconds.
SPANS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@click.command("alerts")
@click.option("--since", metavar="TIME", help="From this time on: 2026-01-31T12:00:00Z, or a span such as 90s, 2h, 1d.")
@click.option(
    "--follow", is_flag=True, help="Go on as alerts come, until interrupted; a store that restarts is waited for."
)
@click.pass_obj
def alerts(invocation: Invocation, since: str | None, follow: bool) -> None:
    """Read the alerts, oldest first; with --follow those to come (and with --since also the earlier ones)."""
    at = None if since is None else moment(since)
    if follow:
        _follow(invocation, at)
    else:
        _list(invocation, at or 0, "no alerts" + ("" if since is None else f" since {since}"))


def _list(invocation: Invocation, at: int, empty: str) -> None:
    """Print what happened: to a person line by line, as with --follow, to a pipe as a table."""
    with invocation.caught_up() as services:
        found = services.alerts.since(at)
        first = next(found, None)
        if first is not None and sys.stdout.isatty() and not invocation.json:
            for alert in chain([first], found):
                invocation.emit(asdict(alert), told(alert))
        else:
            invocation.show(map(asdict, chain([first] if first else [], found)), COLUMNS, empty=empty)


def _follow(invocation: Invocation, at: int | None) -> None:
    """Print what happens, until interrupted."""
    from clusterd_consumer.insisting import Insisting, Stopped

    with until_asked() as stop, invocation.services() as services, suppress(Stopped):
        for alert in services.alerts.follow(at, stop, Insisting(Outages(invocation), stop, level=logging.INFO)):
            invocation.emit(asdict(alert), told(alert))
            if stop.is_set():
                break
    if not invocation.json:
        invocation.hint("stopped")


@contextmanager
def until_asked() -> Iterator[StopFlag]:
    """Yield a flag that SIGINT and SIGTERM set, also where a shell started us with SIGINT ignored (``… &``)."""
    from clusterd_consumer.insisting import StopFlag

    stop = StopFlag()
    signals = (signal.SIGINT, signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def moment(given: str) -> int:
    """Return an ISO 8601 time, or a span before now, as Unix milliseconds."""
    try:
        if given[:-1].isascii() and given[:-1].isdigit() and given[-1:] in SPANS:
            return max(0, now_ms() - int(given[:-1]) * SPANS[given[-1]] * 1000)
        return max(0, ms_of(datetime.fromisoformat(given)))
    except ValueError:
        raise WrongInput(
            f"--since {given}: takes an ISO 8601 time such as 2026-01-31T12:00:00Z, or a span such as 90s, 2h, 1d"
        ) from None


def told(alert: Alert) -> str:
    """Return an alert for people: on a terminal one address a line, in a pipe all on one."""
    gap = "\n  " if sys.stdout.isatty() else "  "
    match = f"{gap}{alert.resemblance:.3f}  {printable(alert.match)}" if alert.match else ""
    return f"{alert.at}  {alert.event:<6}  {alert.cluster} ({pages(alert.size)}){gap}{printable(alert.url)}{match}"
