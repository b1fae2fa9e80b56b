"""``clusterd status``: what is in the store, and how far the work has come.

Where Kafka does not answer, what the store knows is shown all the same: ``lag`` is null, ``unreachable`` says why, and
the status is 1. It is null, too, where only the daemons could say it, and none of them has looked yet.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click
from clusterd_crawler.errors import Unreachable

from clusterd.cli.invocation import Invocation

if TYPE_CHECKING:
    from clusterd.services import Services


@click.command("status")
@click.pass_obj
def status(invocation: Invocation) -> int:
    """Count what is in the store: pages, clusters by policy, rules by state, skips, what waits."""
    with invocation.services() as services:
        shown = counted(services)
        invocation.emit(shown)
    for reason in shown.get("unreachable", {}).values():
        invocation.hint(f"clusterd: {reason}")
    return 1 if "unreachable" in shown else 0


def counted(services: Services) -> dict[str, Any]:
    """Return the line of ``clusterd status``."""
    index, book = services.index, services.rulebook
    counts = index.counts()
    states = Counter(rule.state for rule in book.rules(every=True))
    lag, why = lag_of(services)
    return {
        "documents": counts["documents"],
        "versions": counts["versions"],
        "contents": counts["contents"],
        "clusters": index.cluster_counts(),
        "settling": counts["settling"],
        "rules": {state: states[state] for state in ("live", "pinned", "retired")},
        "skips": sum(book.book.skip_counts().values()),
        "lag": lag,
        "dead_letters": services.dead_letters(),
        "daemons": services.daemons(),
        "store_bytes": counts["store_bytes"],
    } | ({"unreachable": {"kafka": why}} if why else {})


def lag_of(services: Services) -> tuple[int | None, str]:
    """Return how many messages no daemon has worked on yet, or None and why Kafka does not say.

    Where that lies in a log that is not named here, as where a question names Redis alone, the daemons say.
    """
    if told := services.of_another_log():
        return max((report["lag"] for report in told if report["lag"] is not None), default=None), ""
    try:
        return services.lag(), ""
    except Unreachable as error:
        if not services.config.uses_kafka():
            raise
        return None, str(error)
