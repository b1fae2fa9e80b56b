"""``clusterd status``: what is in the store, and how far the work has come."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from clusterd.cli.invocation import Invocation

if TYPE_CHECKING:
    from clusterd.services import Services


@click.command("status")
@click.pass_obj
def status(invocation: Invocation) -> None:
    """Count what is in the store: pages, clusters by policy, rules by state, skips, what waits."""
    with invocation.services() as services:
        invocation.emit(counted(services))


def counted(services: Services) -> dict[str, Any]:
    """Return the line of ``clusterd status``."""
    from clusterd.health import daemons

    index, book = services.index, services.rulebook
    counts = index.counts()
    states = Counter(rule.state for rule in book.rules(every=True))
    return {
        "documents": counts["documents"],
        "versions": counts["versions"],
        "contents": counts["contents"],
        "clusters": {policy.name: sum(1 for _ in index.clusters(policy.name)) for policy in index.policies()},
        "settling": counts["settling"],
        "rules": {state: states[state] for state in ("live", "pinned", "retired")},
        "skips": sum(book.book.skip_counts().values()),
        "lag": services.lag(),
        "dead_letters": services.dead_letters(),
        "daemons": len(daemons(services.redis, services.config.redis_prefix)),
        "store_bytes": counts["store_bytes"],
    }
