"""``clusterd clusters``, ``clusterd cluster URL``, ``clusterd policy list|add|remove``: what belongs together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from clusterd_crawler.errors import Unreachable, WrongInput

from clusterd.cli.invocation import Invocation
from clusterd.cli.parameters import Host, Share
from clusterd.cli.printing import pages, printable

if TYPE_CHECKING:
    from clusterd.clusters.contract import Cluster, Index, Policy
    from clusterd.services import Services

CLUSTER_COLUMNS: Final = ("cluster", "size", "representative", "members")
POLICY_COLUMNS: Final = ("policy", "resemblance", "containment", "clusters")
#: The policy that questions are answered under where none is named.
DEFAULT_POLICY: Final = "near"
#: Policies that stay: flags of a crawl, and rules by near-duplicates, go by them.
KEPT: Final = ("identical", "near")


@click.command("clusters")
@click.option("--policy", metavar="P", default=DEFAULT_POLICY, show_default=True, help="Under which policy.")
@click.option("--min-size", metavar="N", type=click.IntRange(1), default=2, show_default=True, help="Least size.")
@click.option("--host", metavar="H", type=Host(), help="Only clusters with a page of this host.")
@click.pass_obj
def clusters(invocation: Invocation, policy: str, min_size: int, host: str | None) -> None:
    """List the clusters of near-duplicate pages, largest first."""
    from clusterd.queries.documents import known_host

    with invocation.caught_up() as services:
        check_policy(services.index, policy)
        host = known_host(host, services.index.hosts()) if host else host
        found = services.index.clusters(policy, min_size, host)
        empty = "no clusters yet; clusterd ingest brings in pages"
        if services.index.counts()["documents"]:
            where = f" of {host} (a host is named with its port, if it has one)" if host else ""
            empty = f"no clusters of {min_size} pages and more under the policy {policy}{where}"
        invocation.show(map(cluster_record, found), CLUSTER_COLUMNS, empty=empty)


@click.command("cluster")
@click.argument("url", metavar="URL")
@click.option("--policy", metavar="P", default=DEFAULT_POLICY, show_default=True, help="Under which policy.")
@click.pass_obj
def cluster(invocation: Invocation, url: str, policy: str) -> None:
    """Show the cluster of a page: the other URLs of its content."""
    from clusterd.queries.grouping import alternatives

    with invocation.caught_up() as services:
        check_policy(services.index, policy)
        found = alternatives(services.index, url, policy)
        text = "\n".join(
            [f"{found.cluster}  {policy}  {pages(found.size)}", *(f"  {printable(member)}" for member in found.members)]
        )
        invocation.emit(cluster_record(found), text)


@click.group("policy")
def policy() -> None:
    """List the cluster policies, add one, or remove one."""


@policy.command("list")
@click.pass_obj
def list_policies(invocation: Invocation) -> None:
    """List the policies in use, with the number of their clusters."""
    with invocation.caught_up() as services:
        index = services.index
        invocation.show([policy_record(index, one) for one in index.policies()], POLICY_COLUMNS)


@policy.command("add")
@click.argument("name", metavar="NAME")
@click.option("--resemblance", metavar="R", type=Share(min_open=True), help="Together from r ≥ R.")
@click.option("--containment", metavar="C", type=Share(min_open=True), help="Together from c ≥ C.")
@click.pass_obj
def add_policy(invocation: Invocation, name: str, resemblance: float | None, containment: float | None) -> None:
    """Add a policy; its clusters are built from the stored sketches."""
    from clusterd.clusters.contract import POLICY_NAME, POLICY_NAME_IS, Policy

    if not POLICY_NAME.fullmatch(name):
        raise WrongInput(f"policy add {name!r}: {POLICY_NAME_IS}")
    if (resemblance is None) == (containment is None):
        raise WrongInput(f"policy add {name}: give one of --resemblance R and --containment C")
    added = Policy(name, resemblance, containment)
    with invocation.services() as services:
        known = {one.name: one for one in services.index.policies()}
        if known.get(name, added) != added:
            raise WrongInput(f"there is a policy {name} already, with other thresholds; choose another name")
        services.index.add_policy(added)
        daemon = "the daemon builds its clusters; clusterd status tells when they have settled"
        _settle(invocation, services, daemon, f"policy {name} is added, but its clusters are not built yet")
        invocation.emit(policy_record(services.index, added))


@policy.command("remove")
@click.argument("name", metavar="NAME")
@click.pass_obj
def remove_policy(invocation: Invocation, name: str) -> None:
    """Remove a policy; its clusters go, pages and other policies stay."""
    from clusterd.clusters.contract import DEFAULT_POLICIES

    if name in KEPT:
        raise WrongInput(f"policy remove {name}: {name} stays, since the verdicts that crawls get go by it")
    configured = invocation.config.policies
    if configured != DEFAULT_POLICIES and name in {one.name for one in configured}:
        raise WrongInput(f"policy remove {name}: CLUSTERD_POLICIES names it, take it out there first")
    with invocation.services() as services:
        record = policy_record(services.index, check_policy(services.index, name))
        if len(services.index.policies()) == 1:
            raise WrongInput(f"policy remove {name}: it is the only one, add another first (clusterd policy add)")
        services.index.remove_policy(name)
        daemon = "the daemon frees what they took; clusterd status tells when all has settled"
        _settle(invocation, services, daemon, f"policy {name} is removed, but what its clusters took is not freed yet")
        invocation.emit(record)


def _settle(invocation: Invocation, services: Services, daemon: str, left: str) -> None:
    """Do what a change of policies leaves to do, or say what a daemon does of it, where there is one.

    A store that lets nobody do it now (it is full, say) has the change all the same: that is said, and what is ``left``
    for the daemon or the question that comes next.
    """
    if services.daemon_alive():
        invocation.hint(daemon)
        return
    invocation.work_off(services)
    try:
        services.index.settle()
    except Unreachable as error:
        raise Unreachable(f"{left}, which the next daemon or question does: {error}") from error


def check_policy(index: Index, name: str) -> Policy:
    """Return a policy; refuse the name of one that is not in use."""
    known = {one.name: one for one in index.policies()}
    if name not in known:
        raise WrongInput(f"there is no policy {name}; the policies are {', '.join(known)} (clusterd policy add)")
    return known[name]


def cluster_record(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster as it is printed."""
    return {
        "cluster": cluster.cluster,
        "policy": cluster.policy,
        "size": cluster.size,
        "representative": cluster.representative,
        "members": list(cluster.members),
    }


def policy_record(index: Index, policy: Policy) -> dict[str, Any]:
    """Return a policy as it is printed, with the number of its clusters of two pages and more."""
    return {
        "policy": policy.name,
        "resemblance": policy.resemblance,
        "containment": policy.containment,
        "clusters": index.cluster_counts().get(policy.name, 0),  # removed by somebody else a moment ago
    }
