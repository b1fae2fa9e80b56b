"""What a daemon counts, for Prometheus: the figures of its report (`clusterd.health.Report`), and its tallies.

What belongs to one worker process each of them says for itself; what the store holds all of them say alike.

Beside ``/metrics`` there are two answers for orchestrators, 200 or 503, with the state and the last error as JSON:
``/live`` (503: the worker stands still, a restart may help) and ``/ready`` (503 also where Kafka or the store is away).
Both say how long upkeep has been at what it has in hand.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from clusterd_crawler.clock import iso
from clusterd_crawler.errors import ClusterdError
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from clusterd.health import HEALTHY, Report, State
from clusterd.tallies import Tallies

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

#: The states in which an orchestrator is told that all is well.
PROBES: Final[dict[str, frozenset[State]]] = {
    "/live": HEALTHY | {"waiting", "stopping"},
    "/ready": HEALTHY,
}
#: What the store holds: field of `Index.counts`, and what it is.
HELD: Final = (
    ("documents", "URLs that the store knows"),
    ("versions", "versions of pages in the store"),
    ("contents", "different contents in the store"),
    ("store_bytes", "memory that the Redis servers use in all"),
)


class ReportCollector(Collector):
    """Reads the report when it is asked."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        report = self._report
        yield CounterMetricFamily("clusterd_messages", "messages worked on", value=report.messages)
        yield CounterMetricFamily("clusterd_dead_letters", "messages given up", value=report.dead_letters)
        yield CounterMetricFamily(
            "clusterd_missed", "messages that the log deleted before they were worked on", value=report.missed
        )
        if report.lag is not None:
            yield GaugeMetricFamily("clusterd_lag", "messages that no daemon has worked on yet", value=report.lag)
        yield GaugeMetricFamily("clusterd_settling", "clusters that still settle", value=report.settling)
        yield GaugeMetricFamily(
            "clusterd_waiting", "1 while Kafka or the store does not answer", value=report.told() == "waiting"
        )
        yield GaugeMetricFamily("clusterd_stalled", "1 while the worker stands still", value=report.told() == "stalled")
        yield GaugeMetricFamily(
            "clusterd_upkeep_seconds",
            "seconds for which settling and learning have been at the round in hand",
            value=report.upkeep_seconds(),
        )
        yield from _told(report.tallies)
        yield from _held(report.tallies)


def _told(tallies: Tallies) -> Iterator[Metric]:
    """Yield what this process has told crawls and others."""
    yield HistogramMetricFamily(
        "clusterd_answer_seconds",
        "from the fetch of a page to the verdict that its crawl waits for",
        buckets=list(tallies.answered.buckets()),
        sum_value=tallies.answered.total,
    )
    alerts = CounterMetricFamily("clusterd_alerts", "alerts, by event", labels=["event"])
    for event, count in sorted(tallies.alerts.items()):
        alerts.add_metric([event], count)
    yield alerts
    yield CounterMetricFamily("clusterd_skips", "requests that crawls did not send", value=tallies.skips)
    yield CounterMetricFamily("clusterd_rule_sets", "rule sets that were learned anew", value=tallies.rule_sets)


def _held(tallies: Tallies) -> Iterator[Metric]:
    """Yield what the store held when upkeep last looked."""
    for name, what in HELD:
        if name in tallies.held:
            yield GaugeMetricFamily(f"clusterd_{name}", what, value=tallies.held[name])
    clusters = GaugeMetricFamily("clusterd_clusters", "clusters of two URLs and more, by policy", labels=["policy"])
    for policy, count in tallies.clusters.items():
        clusters.add_metric([policy], count)
    yield clusters


class _Unlogged(WSGIRequestHandler):
    """Answers, and writes no line of each request."""

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def serve_metrics(host: str, port: int, report: Report) -> None:
    """Serve the metrics over HTTP, in a thread of its own; `ClusterdError` where the port cannot be had.

    Probes are answered from the first request on: Prometheus's own `start_http_server` could be told of them only when
    it listens already, and would answer one that comes before with metrics.
    """
    registry = CollectorRegistry()
    registry.register(ReportCollector(report))
    answer = _with_probes(make_wsgi_app(registry), report)
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        server_class = type("Server", (ThreadingWSGIServer,), {"address_family": family})
        server: WSGIServer = make_server(str(address[0]), port, answer, server_class, _Unlogged)
    except (OSError, UnicodeError) as error:  # the latter of a name that no host can have
        why = error.strerror if isinstance(error, OSError) else "no host has such a name"
        raise ClusterdError(f"metrics_port {port} of {host} cannot be served: {why}; name another") from error
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


def _with_probes(metrics: WSGIApplication, report: Report) -> WSGIApplication:
    """Return what answers for the probes, and leaves the rest to the metrics."""

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        well = PROBES.get(environ["PATH_INFO"])
        if well is None:
            return metrics(environ, start)
        state = report.told()
        status = "200 OK" if state in well else "503 Service Unavailable"
        start(status, [("Content-Type", "application/json")])
        said = {
            "state": state,
            "last_error": report.last_error,
            "last_error_at": iso(report.last_error_at) if report.last_error_at else "",
            "upkeep_seconds": round(report.upkeep_seconds(), 3),
        }
        return [json.dumps(said).encode()]

    return answer
