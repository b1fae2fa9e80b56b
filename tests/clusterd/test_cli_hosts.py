"""Hosts as people type them: in any case, with letters of any script, with the port that goes without saying."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusterd.queries.documents import known_host

WORDS = " ".join(f"word{n}" for n in range(40))
HOSTS = ["example.org", "xn--mnchen-3ya.de", "MÜNSTER.de", "example.org:8080", "[2001:db8::1]:81"]

Cli = Callable[..., list[dict[str, Any]]]


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("example.org", "example.org"),
        ("EXAMPLE.org", "example.org"),
        ("example.org:80", "example.org"),
        ("example.org:443", "example.org"),
        ("Example.org:8080", "example.org:8080"),
        ("münchen.de", "xn--mnchen-3ya.de"),
        ("xn--mnster-3ya.de", "MÜNSTER.de"),
        ("[2001:DB8::1]:81", "[2001:db8::1]:81"),
        ("example.org:81", "example.org:81"),
        ("no host", "no host"),
    ],
)
def test_a_host_is_known_by_any_of_its_names(given: str, known: str) -> None:
    assert known_host(given, HOSTS) == known


@pytest.fixture
def cli(redis_url: str, prefix: str, tmp_path: Path) -> Cli:
    environment = {**os.environ, "CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}

    def run(*words: str) -> list[dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-m", "clusterd", *words, "--json"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    for sweep, pages in (("2024", ("a", "b")), ("2025", ("a", "c"))):
        rows = [{"url": f"http://xn--mnchen-3ya.de/{page}", "text": WORDS} for page in pages]
        (tmp_path / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        run("ingest", "pages.jsonl", "--sweep", sweep)
    return run


@pytest.mark.parametrize("host", ["münchen.de", "XN--MNCHEN-3YA.DE:80"])
def test_commands_know_a_host_by_any_of_its_names(cli: Cli, host: str) -> None:
    assert [line["size"] for line in cli("clusters", "--host", host)] == [3]
    assert [line["host"] for line in cli("changes", "--host", host)] == ["xn--mnchen-3ya.de"]
    assert [line["url"] for line in cli("find-lost", "--all", "--host", host)] == ["http://xn--mnchen-3ya.de/b"]


def test_what_follows_a_host_without_a_path_is_no_part_of_it(cli: Cli, tmp_path: Path) -> None:
    row = {"url": "http://example.org?from=/feed", "text": WORDS}
    (tmp_path / "pages.jsonl").write_text(json.dumps(row) + "\n")
    cli("ingest", "pages.jsonl")
    assert [line["size"] for line in cli("clusters", "--host", "example.org")] == [4]
    assert "example.org" in {line["host"] for line in cli("holders", f"text:{WORDS}")}
