"""Make clusterd's topics (partitions, retention, compaction); see `clusterd_consumer.transport.kafka_topics`."""

from __future__ import annotations

from clusterd_consumer.transport.kafka_topics import main

if __name__ == "__main__":
    raise SystemExit(main())
