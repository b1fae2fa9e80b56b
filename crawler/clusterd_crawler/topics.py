"""The topics between the crawl and the daemon, on Kafka and on Redis Streams alike.

A Kafka topic is ``<kafka prefix><topic>``, a Redis stream ``<redis prefix>stream:<topic>``; see `settings`.
"""

from __future__ import annotations

from typing import Final

#: crawler → daemon: pages and what else a crawl says (`message`), keyed by URL so that a page's versions stay in order.
SKETCHES: Final = "sketches"
#: daemon → everybody: cluster changes, one JSON object each (fields in `clusterd.alerts`).
ALERTS: Final = "alerts"
#: daemon → crawlers: a host's whole rule set, compacted by host (`clusterd_crawler.rules.RuleSet`).
RULES: Final = "rules"
#: daemon → crawlers: good pages of hosts with live rules, in blocks (`fetches`), for crawls that share what they know.
KNOWN: Final = "known"
#: daemon → the crawl that asked for it: one short answer per page (only where a crawl waits for verdicts).
VERDICTS: Final = "verdicts"
#: what could not be decoded or applied, with its reason and its raw bytes.
DEAD_LETTERS: Final = "dead-letters"

#: Consumer group of daemons that are told no other (`clusterd.config.Config.group`).
GROUP: Final = "clusterd"

#: Bytes of the longest message, as Kafka's topics take it: a page has 4 kB, the longest that a crawl writes 0.8 MB; a
#: dead letter carries the bytes of whatever arrived, and a host may have thousands of rules that were imported.
LONGEST_MESSAGE: Final = 2 * 1024 * 1024

#: Fields of a Redis stream's entry: what a Kafka record calls key and value.
FIELD_KEY: Final = b"k"
FIELD_VALUE: Final = b"v"


def stream(prefix: str, topic: str) -> str:
    """Return the Redis stream of a topic."""
    return f"{prefix}stream:{topic}"
