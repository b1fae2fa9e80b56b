"""What a daemon counts, for Prometheus: the figures of its report (`clusterd.health.Report`)."""

from __future__ import annotations

from collections.abc import Iterator

from clusterd_crawler.errors import ClusterdError
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from clusterd.health import Report


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
            "clusterd_missed", "messages that Kafka deleted before they were read", value=report.missed
        )
        yield GaugeMetricFamily("clusterd_lag", "messages that no daemon has worked on yet", value=report.lag)
        yield GaugeMetricFamily("clusterd_settling", "clusters that still settle", value=report.settling)
        yield GaugeMetricFamily(
            "clusterd_waiting", "1 while Kafka or the store does not answer", value=report.told() == "waiting"
        )
        yield GaugeMetricFamily("clusterd_stalled", "1 while the worker stands still", value=report.told() == "stalled")


def serve_metrics(host: str, port: int, report: Report) -> None:
    """Serve the metrics over HTTP, in a thread of its own; `ClusterdError` where the port cannot be had."""
    registry = CollectorRegistry()
    registry.register(ReportCollector(report))
    try:
        start_http_server(port, host, registry)
    except OSError as error:
        raise ClusterdError(
            f"metrics_port {port} of {host} cannot be served: {error.strerror}; name another"
        ) from error
