"""Kafka's client in several threads at once: each reads every kind of answer."""

from __future__ import annotations

import subprocess
import sys

FIRST_USES = """
import gc, sys, threading
import kafka.protocol.metadata, kafka.protocol.sasl
from clusterd_crawler.servers.kafka_classes import make_in_turns
from kafka.protocol.api_header import ResponseClassRegistry

make_in_turns()
make_in_turns()
registry = ResponseClassRegistry._response_class_registry
kinds = list(registry.values())
together = threading.Barrier(4)

def use():
    for kind in kinds:
        together.wait()
        kind[0]

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
gc.collect()
for kind in registry.values():
    kind[0]  # a ReferenceError where its class is gone
print(len(kinds))
"""


def test_answers_that_several_threads_read_first_are_read_ever_after() -> None:
    """In a process of its own, where none of them has been read."""
    for _ in range(3):
        used = subprocess.run([sys.executable, "-c", FIRST_USES], capture_output=True, text=True, timeout=60)
        assert used.returncode == 0, used.stderr
        assert int(used.stdout) > 20
