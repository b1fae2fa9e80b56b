"""A real Scrapy crawl of the demo's web site over real Kafka and Redis, two daemons, one killed in the middle."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from clusterd.services import open_services
from clusterd_crawler import topics
from clusterd_crawler.message import SkipReport, decode
from clusterd_crawler.sketch import Sketch
from kafka import KafkaConsumer

from tests.contract.index_world import expected, partition
from tests.crawler.crawling import Crawling
from tests.demo.site import serve
from tests.flow.daemons import daemons, until, wait_until_done

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
#: Requests that rules have kept out of the crawl when it ends.
SKIPPED = 150


def messages(bootstrap: str, topic: str) -> list[object]:
    """Return all that a crawl has published."""
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=2000)
    found = [decode(record.value) for record in consumer]
    consumer.close()
    return found


def test_a_crawl_over_kafka_survives_the_death_of_a_daemon(
    kafka_bootstrap: str, redis_url: str, prefix: str, tmp_path: Path
) -> None:
    name = prefix.rstrip(":")
    shared = {"redis": redis_url, "redis_prefix": prefix, "kafka": kafka_bootstrap, "kafka_prefix": f"{name}-"}
    settings = {**shared, "group": name, "kafka_partitions": "4", "session_timeout": "2", "batch": "16"}
    crawl_settings = {f"CLUSTERD_{key.upper()}": value for key, value in shared.items()}
    with serve() as site, daemons(settings, tmp_path / "logs") as group, open_services(group.config()) as services:
        first, second = group.start(), group.start()
        until(lambda: services.daemon_alive() and group.said().count("reading") >= 4, say=group.said)
        # All pages take a minute and more: for 30 s a killed daemon may hold the lease of the host's learning. (Kafka's
        # client would say more on DEBUG than all the rest takes time.)
        paced = {**crawl_settings, "DOWNLOAD_DELAY": 0.05, "LOG_LEVEL": "INFO"}
        crawling = Crawling(tmp_path / "crawl", [f"{site}/"], paced, follow=True, enough=SKIPPED)
        until(lambda: services.index.counts()["documents"] > 60, say=group.said)
        first.send_signal(signal.SIGKILL)
        crawled = crawling.result(150)
        assert crawled.code == 0, crawled.log[-3000:]
        wait_until_done(services)
        assert second.poll() is None
        told = messages(kafka_bootstrap, f"{name}-{topics.SKETCHES}")
        pages = [message for message in told if isinstance(message, Sketch)]
        skips = [message for message in told if isinstance(message, SkipReport)]
        assert len(pages) == crawled.stat("sketched") > 200
        assert partition(services.index) == expected(pages)
        assert crawled.stat("skipped") == len(skips) > 0
        assert {skip.url for skip in services.rulebook.book.skips()} == {skip.url for skip in skips}
        assert crawled.stat("dropped") == 0
        assert list(services.alerts.since(0))
        assert "Traceback" not in group.said()
