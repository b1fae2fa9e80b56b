"""A topic that takes only small messages: what it refuses is counted, and was not brought in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterd.cli.commands import run
from clusterd_crawler import topics
from kafka import KafkaAdminClient

pytestmark = pytest.mark.kafka


def test_pages_that_kafka_refuses_are_not_brought_in(
    kafka_bootstrap: str, redis_url: str, prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = prefix.replace(":", "-")
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    small = {"num_partitions": 1, "replication_factor": 1, "configs": {"max.message.bytes": "1000"}}
    admin.create_topics({own + topics.SKETCHES: small})
    admin.close()
    config = tmp_path / "clusterd.toml"
    settings = {"redis": redis_url, "redis_prefix": prefix, "kafka": kafka_bootstrap, "kafka_prefix": own, "group": own}
    config.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items()))
    long, short = (" ".join(f"word{n}" for n in range(words)) for words in (500, 12))
    file = tmp_path / "pages.jsonl"
    for texts, status, said in (
        ([long, long + " more"], 1, {"pages": 2, "sketched": 0, "rejected": 2}),
        ([long, short], 0, {"pages": 2, "sketched": 1, "rejected": 1}),
    ):
        rows = [{"url": f"http://h.example/{number}", "text": text} for number, text in enumerate(texts)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert run(["ingest", "--config", str(config), "--json", str(file)]) == status
        told = capsys.readouterr()
        assert json.loads(told.out).items() >= said.items()
        assert "needs a larger max.message.bytes" in told.err
