"""The topics on Kafka: partitions, retention, compaction. Made by the daemon where they are missing, or by hand:

    python -m clusterd_consumer.transport.kafka_topics --kafka ADDRESS [--prefix P] [--partitions N] [--replication N]

| topic | partitions | kept |
|---|---|---|
| sketches | as asked for | 7 days: what a store restored from a backup of that age replays |
| alerts | as asked for | 7 days |
| rules | 1 | the latest rule set of every host (compacted) |
| known | 1 | 7 days: how far back a crawl may look with CLUSTERD_SKIP_WITHIN |
| verdicts | 1 | 1 hour: an answer that comes later is of no use |
| dead-letters | 1 | 30 days |

All are dated by the broker. By the sender's clock a broker refuses what comes an hour from the future, whatever a crawl
has fetched, and deletes what comes from long ago before a daemon has read it.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusterd_crawler import topics
from clusterd_crawler.errors import ClusterdError, Unreachable, WrongInput
from clusterd_crawler.servers.kafka_client import address, opened, probe
from clusterd_crawler.settings import PREFIX, TOPIC_PREFIX
from kafka import KafkaAdminClient  # type: ignore[import-untyped]
from kafka.errors import (  # type: ignore[import-untyped]
    InvalidReplicationFactorError,
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
)

HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR

#: Topic → its settings on the broker. A partition count of 0 stands for the one that is asked for.
TOPICS: Final[Mapping[str, tuple[int, Mapping[str, str]]]] = {
    topics.SKETCHES: (0, {"retention.ms": str(7 * DAY)}),
    topics.ALERTS: (0, {"retention.ms": str(7 * DAY)}),
    topics.RULES: (1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.ms": str(HOUR)}),
    topics.KNOWN: (1, {"retention.ms": str(7 * DAY)}),
    topics.VERDICTS: (1, {"retention.ms": str(HOUR), "segment.ms": str(HOUR // 4)}),
    topics.DEAD_LETTERS: (1, {"retention.ms": str(30 * DAY)}),
}
#: Settings of every topic.
OF_ALL: Final = {"max.message.bytes": str(topics.LONGEST_MESSAGE), "message.timestamp.type": "LogAppendTime"}
#: Seconds to wait for the broker.
TIMEOUT: Final = 10.0


def ensure(
    where: str, prefix: str = "", partitions: int = 8, replication: int = 1, timeout: float = TIMEOUT
) -> list[str]:
    """Make the topics that are missing; return their names. Those that are there are left as they are."""
    options = address(where).client_options()
    probe(where, options)
    try:
        admin = opened(KafkaAdminClient, **options, bootstrap_timeout_ms=int(timeout * 1000))
    except KafkaError as error:
        raise Unreachable(f"Kafka at {address(where)} does not answer: {error}") from error
    try:
        missing = _missing(admin, prefix)
        for topic in missing:
            _make(admin, prefix + topic, *TOPICS[topic], partitions, replication)
        _wait_for_leaders(admin, [prefix + topic for topic in TOPICS])
        return [prefix + topic for topic in missing]
    except KafkaError as error:
        raise Unreachable(f"Kafka at {address(where)} does not make the topics: {_told(error)}") from error
    finally:
        admin.close()


def _told(error: KafkaError) -> str:
    """Return what the client says and why Kafka refused it, without the whole request and the whole answer."""
    said, _, whole = str(error).partition(": Request ")
    why = re.search(r"""error_message=(['"])(.+?)\1, topic_config""", whole)
    return f"{said} ({why[2]})" if why else said


def _missing(admin: Any, prefix: str) -> list[str]:
    there = set(admin.list_topics())
    return [topic for topic in TOPICS if prefix + topic not in there]


def _make(admin: Any, name: str, fixed: int, settings: Mapping[str, str], partitions: int, replication: int) -> None:
    configs = {**settings, **OF_ALL}
    wanted = {"num_partitions": fixed or partitions, "replication_factor": replication, "configs": configs}
    try:
        admin.create_topics({name: wanted}, timeout_ms=int(TIMEOUT * 1000))
    except TopicAlreadyExistsError:
        return  # another daemon was faster
    except InvalidReplicationFactorError as error:
        raise Unreachable(
            f"Kafka makes no topic {name} of {replication} replicas (CLUSTERD_KAFKA_REPLICATION): it has fewer brokers"
        ) from error
    except TopicAuthorizationFailedError as error:
        raise Unreachable(
            f"Kafka lets us make no topic {name}: let somebody make it who may (deploy/kafka/create_topics.py), or "
            "where it is there, let us read and write it"
        ) from error


def _wait_for_leaders(admin: Any, names: Sequence[str]) -> None:
    """Return when every topic can be written to: a topic just made may have no leader for some milliseconds."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        described = {topic["name"]: topic for topic in admin.describe_topics(list(names))}
        if all(_led(described.get(name)) for name in names):
            return
        time.sleep(0.05)
    raise Unreachable(f"topics {', '.join(names)} have no leader")


def _led(topic: Mapping[str, Any] | None) -> bool:
    return bool(topic and topic["partitions"] and all(part["leader_id"] >= 0 for part in topic["partitions"]))


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not accepted; it takes a whole number, 1 or more")
    return int(text)


def _beginning(text: str) -> str:
    if not TOPIC_PREFIX.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted; it takes letters, digits, . _ and -, 200 at most")
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the topics from the command line."""
    where, begin = (os.environ.get(f"{PREFIX}KAFKA{name}", "") for name in ("", "_PREFIX"))
    parser = argparse.ArgumentParser(description="Make clusterd's topics on Kafka.")
    parser.add_argument(
        "--kafka",
        required=not where,
        default=where,
        help="HOST:PORT[,HOST:PORT…] or kafkas://…; default: CLUSTERD_KAFKA of the environment",
    )
    parser.add_argument(
        "--prefix",
        type=_beginning,
        default=begin,
        help="what every topic begins with; default: CLUSTERD_KAFKA_PREFIX of the environment",
    )
    parser.add_argument("--partitions", type=_count, default=8)
    parser.add_argument("--replication", type=_count, default=1)
    given = parser.parse_args(arguments)
    try:
        made = ensure(given.kafka, given.prefix, given.partitions, given.replication)
    except ClusterdError as error:
        parser.exit(2 if isinstance(error, WrongInput) else 1, f"{error}\n")
    print(f"made {', '.join(made)}" if made else "all topics are there")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
