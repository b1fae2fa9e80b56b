"""Where a crawl's messages go and come from, by its settings: Kafka, Redis, or the embedded store; and the folders.

Kafka carries the messages where it is given, else Redis Streams do; with neither, the store of the data folder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from clusterd_crawler import topics
from clusterd_crawler.crawling.embedded_daemon import check_installed
from clusterd_crawler.publish.contract import Log
from clusterd_crawler.publish.kafka_log import KafkaLog
from clusterd_crawler.publish.redis_log import RedisLog
from clusterd_crawler.servers.kafka_client import client_library, client_options
from clusterd_crawler.servers.redis_client import embedded_url
from clusterd_crawler.servers.redis_client import library as redis_library
from clusterd_crawler.settings import Settings
from clusterd_crawler.subscribe.contract import Feed
from clusterd_crawler.subscribe.kafka_feed import KafkaFeed
from clusterd_crawler.subscribe.redis_feed import RedisFeed


class Connections:
    """Makes the log and the feed of a crawl. Making this object checks that clients and their files are there."""

    def __init__(self, settings: Settings, project: Path) -> None:
        self._settings = settings
        #: Whether the crawl runs its own store and daemon.
        self.embedded = not settings.redis and not settings.kafka
        self.data = (project / settings.data).resolve()
        self.spool = (project / settings.spool).resolve() if settings.spool else self.data / "spool"
        if self.embedded:
            check_installed()
        if settings.kafka:
            client_library()
            client_options(settings.kafka)  # a file of TLS that cannot be read is said now
        else:
            redis_library()

    def log(self) -> Callable[[], Log]:
        """Return what connects to the log of `topics.SKETCHES`."""
        name, kafka = self.log_name, self._settings.kafka
        return (lambda: KafkaLog(kafka, name)) if kafka else lambda: RedisLog(self._redis(), name)

    @property
    def log_name(self) -> str:
        """Return the name of the topic, or stream, that pages go to."""
        if self._settings.kafka:
            return self._settings.kafka_prefix + topics.SKETCHES
        return topics.stream(self._settings.redis_prefix, topics.SKETCHES)

    def feed(self, known_since: int | None = None) -> Callable[[], Feed]:
        """Return what connects to the daemon's messages, to known pages of a time and later too where it is given.

        A connection to Redis goes on where the one before it ended.
        """
        settings = self._settings
        if settings.kafka:
            return lambda: KafkaFeed(settings.kafka, settings.kafka_prefix, known_since)
        ends: dict[str, bytes] = {}
        return lambda: RedisFeed(self._redis(), settings.redis_prefix, known_since, ends)

    def _redis(self) -> str:
        """Return the URL of Redis; of the embedded one at each connection anew, since it may have moved."""
        return self._settings.redis or embedded_url(self.data)
