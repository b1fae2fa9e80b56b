"""The command line as a test types it: small files that it reads, and the fields of what it prints."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-m", "clusterd"]
#: Command → the fields of its JSON lines.
FIELDS = {
    "ingest": {"pages", "sketched", "rejected", "seconds"},
    "clusters": {"cluster", "policy", "size", "representative", "members"},
    "similar": {"url", "resemblance", "query_in_match", "match_in_query", "cluster"},
    "holders": {"host", "url", "query_in_match", "resemblance"},
    "pairs": {"a", "b", "resemblance", "a_in_b", "b_in_a"},
    "policy": {"policy", "resemblance", "containment", "clusters"},
    "find-lost": {"url", "match", "resemblance", "match_in_query", "query_in_match", "margin", "from", "to"},
    "group": {"representative", "members"},
    "changes": {"host", "from", "to", "unchanged", "revised", "moved", "vanished", "appeared", "resemblance_quantiles"},
    "alerts": {"at", "event", "url", "policy", "cluster", "size", "match", "resemblance"},
}


def words(seed: object, count: int = 200) -> str:
    source = random.Random(f"{seed}")
    return " ".join("".join(source.choices("abcdefghijklmnop", k=5)) for _ in range(count))


def page(path: str, text: str, **more: Any) -> dict[str, Any]:
    return {"url": f"http://h.example/{path}", "html": f"<html><body><p>{text}</p></body></html>", **more}


def write(file: Path, *rows: Any) -> Path:
    lines = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()
    file.write_bytes(gzip.compress(lines) if file.suffix == ".gz" else lines)
    return file


def clusterd(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Type a command, in a folder, with these variables and none other of ours."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith("CLUSTERD_") and n != "REDIS_URL"}
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=kept | environment,
        timeout=60,
        check=False,
    )


Typed = Callable[..., tuple[int, list[Any], str]]
