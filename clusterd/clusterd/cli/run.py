"""``clusterd run``: the daemon; ``clusterd run --check``: how the one that runs is."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import click
from clusterd_crawler.clock import iso
from clusterd_crawler.servers.redis_address import shown
from clusterd_crawler.settings import Settings

from clusterd.cli.invocation import Invocation
from clusterd.config import LOG_LEVELS, Config, may_be_there

#: Of a daemon's report what is a time: since when it runs, of when the report is, when it last finished a step, when
#: something last went wrong.
TIMES: Final = ("since", "at", "stepped", "last_error_at")


def _settings_table() -> str:
    """Return the daemon's own settings with their defaults, for the end of the help."""
    crawl = {field.name for field in fields(Settings)}
    own = [field for field in fields(Config) if field.name not in crawl and field.name != "policies"]
    lines = [f"  {field.name:<18} {field.metadata['help']} [{field.default!r}]" for field in own]
    head = "Settings of the daemon, in the file of --config or as CLUSTERD_... in the environment:"
    return "\n".join(["\b", head, *lines, "  [policies]         a table: near = { resemblance = 0.9 }, ..."])


@click.command("run", epilog=_settings_table())
@click.option("--check", is_flag=True, help="Print how the daemons on this machine are; exit 1 where one is not well.")
@click.option("--anywhere", is_flag=True, help="With --check: the daemons on other machines count too.")
@click.option("--group", metavar="NAME", help="Consumer group (default clusterd).")
@click.option("--workers", metavar="N", type=int, help="Worker processes (default 1).")
@click.option("--batch", metavar="N", type=int, help="Most pages in one call (default 256).")
@click.option(
    "--metrics-port",
    metavar="PORT",
    type=int,
    help="Serve Prometheus metrics on this port (of 127.0.0.1; metrics_host names another address).",
)
@click.option("--log-level", type=click.Choice(LOG_LEVELS), help="Least level that is logged (default info).")
@click.pass_obj
def run(invocation: Invocation, /, check: bool, anywhere: bool, **given: Any) -> int:
    """Run the daemon: it reads sketches from Kafka or Redis Streams, keeps the clusters, publishes alerts and rules.

    Several daemons of one group share the work. SIGTERM finishes and commits the batch in hand.
    """
    file = Path(invocation.config_file) if invocation.config_file else None
    config = Config.load(file, options={**invocation.given, **given})
    if check:
        return _check(invocation, config, anywhere)
    from clusterd import daemon

    daemon.configure_logging(config)
    if not daemon.run(config):
        daemon.end_at_once()
    return 0


def _check(invocation: Invocation, config: Config, anywhere: bool) -> int:
    """Print the reports of the daemons; 0 where there are some and, but for those that are stopping, all are well."""
    from clusterd.health import STALLED_AFTER, daemons
    from clusterd.services import open_services

    reports = []
    if config.redis or may_be_there(config.data_folder()):  # asking makes no store
        with open_services(config) as services:
            reports = daemons(services.redis, config.redis_prefix)
    here = [report for report in reports if anywhere or report["host"] == socket.gethostname()]
    for report in here:
        invocation.emit({**report, **{name: iso(report[name]) if report.get(name) else "" for name in TIMES}})
    trouble = _trouble([report for report in here if report["state"] != "stopping"])
    if not here:
        elsewhere = f"; {len(reports)} on other machines (--anywhere)" if reports else ""
        trouble = f"no daemon works on {shown(config.redis) or config.data_folder()} here{elsewhere}"
    if trouble:
        invocation.hint(trouble)
    for report in here:
        if report.get("upkeep_seconds", 0) > STALLED_AFTER:
            invocation.hint(
                f"{report['id']} has been settling or learning for {report['upkeep_seconds']:.0f} s without a break; "
                "pages go on, new rules and the lag come after it"
            )
    return 1 if trouble else 0


def _trouble(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return what is wrong with the first daemon that is not well, and of how many it is one; "" where all are well."""
    from clusterd.health import HEALTHY

    if not reports:
        return "the daemon stops"
    unwell = [report for report in reports if report["state"] not in HEALTHY]
    if not unwell:
        return ""
    first = unwell[0]
    if first["state"] == "stalled":
        why = "has finished no step for minutes and waits for nothing: its log may say why; restart it"
    else:
        why = f"waits: {first['last_error']}"
    if len(reports) == 1:
        return f"the daemon {why}"
    return (
        f"of {len(reports)} daemons {len(unwell)} {'is' if len(unwell) == 1 else 'are'} not well; {first['id']} {why}"
    )
