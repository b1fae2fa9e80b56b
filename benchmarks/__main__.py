"""``make bench``: run the benchmarks, print ratios, leave ``.bench/results.json``.

Usage: python -m benchmarks [NAME…]      (names: the modules of this folder that have a ``run`` function)
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

OUT = Path(".bench/results.json")
#: Those that ``make bench`` runs; the others (growth, hostile, …) take longer and are named on the command line.
DEFAULT = (
    "sketching",
    "accuracy_pages",
    "store",
    "stream_from_text",
    "latency",
    "crawl_overhead",
    "questions",
    "rule_speed",
    "url_rules_replay",
    "url_rules_split",
)

Row = dict[str, Any]


def main(names: list[str]) -> int:
    """Run the named benchmarks; a result replaces the one of the same work and subject."""
    console = Console()
    kept = _earlier()
    for name in names or DEFAULT:
        console.rule(name)
        rows: list[Row] = importlib.import_module(f"benchmarks.{name}").run()
        _print(console, rows)
        kept = [row for row in kept if (row["work"], row["subject"]) not in {(r["work"], r["subject"]) for r in rows}]
        kept += rows
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


def _earlier() -> list[Row]:
    return json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else []


def _print(console: Console, rows: list[Row]) -> None:
    table = Table()
    for column in ("work", "subject", "value", "unit", "peer", "ratio"):
        table.add_column(column, justify="right" if column in {"value", "ratio"} else "left")
    for row in rows:
        table.add_row(*(_text(row.get(column)) for column in ("work", "subject", "value", "unit", "peer", "ratio")))
    console.print(table)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    sys.exit(main(parser.parse_args().names))
