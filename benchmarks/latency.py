"""From fetched page to published alert, over real Kafka and real Redis, while a crawl of 100 pages/s goes on.

A publisher stands for the crawl: every 10 ms it takes a page of a made-up crawl (a quarter exact copies, a fifth
edited ones), sketches its text and hands it to the add-on's publisher; the fetch time is taken before the sketch. One
daemon works the topic. The clock stops when the alert has been *read* from the alert stream and from Kafka's topic.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from clusterd.alerts import Alert
from clusterd.config import Config
from clusterd.services import open_services
from clusterd_consumer.insisting import StopFlag
from clusterd_crawler import topics
from clusterd_crawler.crawling.connections import Connections
from clusterd_crawler.message import encode
from clusterd_crawler.publish.publisher import Publisher
from clusterd_crawler.publish.spool import Spool
from clusterd_crawler.servers.kafka_client import client_options
from clusterd_crawler.sketch import TEXT, Sketch, sketch_text
from kafka import KafkaConsumer  # type: ignore[import-untyped]

from benchmarks.results import Row, result
from tests.services import kafka_broker
from tests.services.redis_server import redis_server

#: Pages a second, and seconds of crawl; those of the first seconds warm the caches and are not counted.
RATE = 100
SECONDS = 30
WARM_SECONDS = 5
WORDS = [f"word{n}" for n in range(5000)]
#: Words of a page: the mean of real documentation pages is about 1,200.
PAGE_WORDS = 1200


def texts(count: int, seed: int = 1) -> list[str]:
    """Texts of a crawl: a quarter exact copies, a fifth edited ones."""
    chance = random.Random(seed)
    made: list[list[str]] = []
    for _ in range(count):
        if made and chance.random() < 0.25:
            text = chance.choice(made)
        elif made and chance.random() < 0.25:
            text = list(chance.choice(made))
            text[chance.randrange(len(text))] = "edited"
        else:
            text = chance.choices(WORDS, k=PAGE_WORDS)
        made.append(text)
    return [" ".join(text) for text in made]


def crawl(config: Config, folder: Path, pages: Sequence[str]) -> dict[str, float]:
    """Fetch, sketch and publish at the rate, through the add-on's publisher; return when each URL was fetched."""
    publisher = Publisher(Connections(config, folder).log(), lambda: Spool(folder / "spool", 1 << 24), 1000)
    fetched: dict[str, float] = {}
    begin = time.time()
    for n, text in enumerate(pages):
        time.sleep(max(0.0, begin + n / RATE - time.time()))
        url = f"http://site{n % 7}.test/page/{n}"
        fetched[url] = time.time()
        stream = sketch_text(text, TEXT)
        page = Sketch(url, int(fetched[url] * 1000), TEXT.code, hash(text) & (2**64 - 1), stream, stream, stream.text)
        publisher.offer(url.encode(), encode(page))
    publisher.close(30)
    return fetched


class Watch(threading.Thread):
    """Reads alerts as a user does and notes when the first one of each URL came."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.seen: dict[str, float] = {}
        self.done = StopFlag()

    def note(self, alert: Alert) -> None:
        self.seen.setdefault(alert.url, time.time())


class StreamWatch(Watch):
    """Follows the alert stream."""

    def __init__(self, config: Config) -> None:
        super().__init__("stream")
        self._config = config

    def run(self) -> None:
        with open_services(self._config) as services:
            for alert in services.alerts.follow(0, self.done):
                self.note(alert)


class TopicWatch(Watch):
    """Follows Kafka's topic."""

    def __init__(self, config: Config) -> None:
        super().__init__("topic")
        self._config = config

    def run(self) -> None:
        consumer = KafkaConsumer(
            self._config.kafka_prefix + topics.ALERTS,
            **client_options(self._config.kafka),
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
        )
        while not self.done.is_set():
            for records in consumer.poll(timeout_ms=200).values():
                for record in records:
                    self.note(Alert.from_bytes(record.value))
        consumer.close()


def measure(config: Config, logs: Path) -> dict[str, list[float]]:
    """Run crawl, daemon and watches; return the latencies in seconds, sorted, by where the alert was read."""
    options = ["--redis", config.redis, "--kafka", config.kafka]
    with open_services(config) as services, (logs / "daemon.log").open("wb") as said:
        daemon = subprocess.Popen([sys.executable, "-m", "clusterd", "run", *options], stdout=said, stderr=said)
        try:
            while not services.daemon_alive():
                time.sleep(0.05)
            watches: list[Watch] = [StreamWatch(config)]
            watches += [TopicWatch(config)] if config.uses_kafka() else []
            for watch in watches:
                watch.start()
            fetched = crawl(config, logs, texts(RATE * SECONDS))
            while services.lag():
                time.sleep(0.1)
            time.sleep(1)
            for watch in watches:
                watch.done.set()
                watch.join()
        finally:
            daemon.terminate()
            daemon.wait(30)
    warm = min(fetched.values()) + WARM_SECONDS
    return {
        watch.name: sorted(at - fetched[url] for url, at in watch.seen.items() if fetched[url] >= warm)
        for watch in watches
    }


def rows(where: str, latencies: Sequence[float]) -> list[Row]:
    """Return p50 and p99 in milliseconds."""
    cuts = statistics.quantiles(latencies, n=100)
    subject = f"{where}, {RATE} pages/s, {len(latencies)} alerts"
    return [
        result(
            f"fetched page to published alert, {name}",
            subject,
            round(cut * 1000, 1),
            "ms",
            "one second",
            round(1 / cut, 1),
        )
        for name, cut in (("p50", cuts[49]), ("p99", cuts[98]))
    ]


def run() -> list[Row]:
    """Measure over Kafka and Redis, where this machine can run a broker; and over Redis alone."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lacking = kafka_broker.missing() or kafka_broker.fetch_jars()
        if lacking:
            print(lacking, file=sys.stderr)
        else:
            found += _over_kafka(folder)
        with redis_server(folder / "redis-alone", "--appendonly", "yes") as url:
            config = Config.load(environment={}, options={"redis": url})
            found += rows("Redis Streams + Redis", measure(config, folder)["stream"])
    return found


def _over_kafka(folder: Path) -> list[Row]:
    broker = kafka_broker.KafkaBroker(folder / "kafka")
    broker.start()
    try:
        with redis_server(folder / "redis", "--appendonly", "yes") as url:
            config = Config.load(environment={}, options={"redis": url, "kafka": broker.bootstrap})
            latencies = measure(config, folder)
    finally:
        broker.kill()
    return [
        *rows("Kafka + Redis, alert stream", latencies["stream"]),
        *rows("Kafka + Redis, topic", latencies["topic"]),
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
