"""Kafka as the feed: a consumer of no group on all partitions of its topics.

Rules are read from the beginning (the topic is compacted by host) and kept as compressed bytes, about 300 a host; of
rule sets that followed each other and are read together only the last is told: nobody is to hear of rules that were
withdrawn before the crawl began. Verdicts are read from the end; known pages, where they are asked for, from a time on.
New partitions are seen at the next start. A topic that was deleted and made anew, or came back older than it was read,
as from a backup, takes a feed of its own: its offsets speak of other messages.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.rule_language.json_form import version_of
from clusterd_crawler.servers.kafka_client import (
    METADATA_AGE,
    build,
    client_library,
    client_options,
    probe,
    topic_id,
    translated,
)
from clusterd_crawler.subscribe.contract import News

#: Milliseconds for an answer, and for closing.
REQUEST_MS: Final = 5_000
CLOSE_MS: Final = 2_000
#: Milliseconds in which a broker refuses who may not know of a topic.
REFUSAL_MS: Final = 1_000
#: Topics that every crawl follows.
FOLLOWED: Final = (topics.RULES, topics.VERDICTS)


class KafkaFeed:
    """One consumer that follows the topics."""

    def __init__(self, setting: str, prefix: str, known_since: int | None = None) -> None:
        library = client_library()
        options = client_options(setting)
        probe(setting, options)
        self._rules: dict[str, bytes] = {}
        followed = FOLLOWED if known_since is None else (*FOLLOWED, topics.KNOWN)
        self._topics = {prefix + topic: topic for topic in followed}
        self._known_since = known_since
        self._consumer = build(
            library.KafkaConsumer,
            **options,
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            request_timeout_ms=REQUEST_MS,
            fetch_max_wait_ms=100,
            metadata_max_age_ms=METADATA_AGE,
            metrics_enabled=False,
        )
        try:
            with translated():
                self._assign(library.TopicPartition)
            self._ids = self._topic_ids()
            #: Partition → the offset that comes next.
            self._expected: dict[Any, int] = {}
        except BaseException:  # whoever asks again would leave one more with its thread each time
            self.close()
            raise

    def _assign(self, partition_of: Any) -> None:
        found: dict[str, list[Any]] = {}
        for name, topic in self._topics.items():
            partitions = self._consumer.partitions_for_topic(name)
            if not partitions:
                raise self._absent(name, partition_of(name, 0))
            found[topic] = [partition_of(name, number) for number in partitions]
        self._consumer.assign([partition for partitions in found.values() for partition in partitions])
        self._consumer.seek_to_beginning(*found[topics.RULES])
        self._consumer.seek_to_end(*found[topics.VERDICTS])
        if self._known_since is not None:
            self._seek_to_time(found[topics.KNOWN], self._known_since)

    def _absent(self, name: str, partition: Any) -> Unreachable:
        """Return why a topic is not seen: who has no right on it is not told of it, but is refused where he asks."""
        with suppress(client_library().errors.KafkaTimeoutError):
            self._consumer.beginning_offsets([partition], timeout_ms=REFUSAL_MS)
        return Unreachable(f"there is no topic {name} yet; the daemon makes it")

    def _seek_to_time(self, partitions: Sequence[Any], since: int) -> None:
        """Begin with the first record of a time or later, at the end where there is none."""
        found = self._consumer.offsets_for_times(dict.fromkeys(partitions, since))
        for partition in partitions:
            if found.get(partition) is None:
                self._consumer.seek_to_end(partition)
            else:
                self._consumer.seek(partition, found[partition].offset)

    def _topic_ids(self) -> list[str]:
        return [topic_id(self._consumer, name) for name in self._topics]

    def poll(self, seconds: float) -> Sequence[News]:
        """See the contract."""
        if self._topic_ids() != self._ids:
            raise Unreachable(f"one of {', '.join(self._topics)} was deleted")
        with translated():
            answer = self._consumer.poll(timeout_ms=int(1000 * seconds))
            self._refuse_older(answer)
        news = [
            News(self._topics[record.topic], record.key or b"", record.value or b"")
            for records in answer.values()
            for record in records
        ]
        rules = [item for item in news if item.topic == topics.RULES]
        for item in rules:
            self._keep(item.key.decode("utf-8", "replace"), item.value)
        several = Counter(item.key for item in rules)
        return [item for item in news if several[item.key] < 2 or not self._is_superseded(item)]

    def _refuse_older(self, answer: Mapping[Any, Sequence[Any]]) -> None:
        """Raise `Unreachable` where the client has gone back to where it believes that an older log parts from ours.

        That may lie behind what has been written since. Where nothing was fetched it is asked where it stands.
        """
        at = {partition: records[0].offset for partition, records in answer.items()}
        at = at or {partition: self._consumer.position(partition, timeout_ms=0) for partition in self._expected}
        for partition, offset in at.items():
            if offset is not None and offset < self._expected.get(partition, 0):
                raise Unreachable(f"{partition.topic} came back older than it was read")
        self._expected.update({partition: records[-1].offset + 1 for partition, records in answer.items()})

    def _is_superseded(self, news: News) -> bool:
        """Whether it is a rule set of which a later version has been read."""
        if news.topic != topics.RULES:
            return False
        return 0 <= version_of(news.value) < version_of(self._kept(news.key.decode("utf-8", "replace")) or b"")

    def _keep(self, host: str, rules: bytes) -> None:
        """Keep a host's rule set, unless a later version has been read: of two writers the slower may come last."""
        known = self._kept(host)
        if not known or not rules or version_of(rules) >= version_of(known):
            self._rules[host] = zlib.compress(rules, 1)

    def known(self, hosts: Sequence[str]) -> list[bytes | None]:
        """See the contract; what has not been read yet comes by `poll`."""
        return [self._kept(host) for host in hosts]

    def _kept(self, host: str) -> bytes | None:
        packed = self._rules.get(host)
        return None if packed is None else zlib.decompress(packed)

    def close(self) -> None:
        """See the contract."""
        with translated():
            self._consumer.close(autocommit=False, timeout_ms=CLOSE_MS)
