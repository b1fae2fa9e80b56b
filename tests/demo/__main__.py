"""Crawl the demo site without clusterd and with it, show what happens, and hold the figures to what is promised.

Leaves ``.demo/report.json``. Ends with 1 where a promise does not hold.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.demo.report import Report, broken_promises, judge
from tests.demo.site import serve

FOLDER = Path(".demo")
#: Alerts shown while they happen, in all and of each part of the site; the rest is counted.
ALERTS_SHOWN = 12
ALERTS_OF_A_PART = 3
#: The policy whose alerts are shown: the others tell of the same pages.
POLICY_SHOWN = "near"
#: Characters of an address that fit twice on a line of 80.
ADDRESS = 29

console = Console()


def main() -> int:
    """Run the demo."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    with serve() as site:
        without = _crawl("without clusterd", site, "-", total=None)
        with _alerts_as_they_happen():
            fetched = _crawl("with clusterd   ", site, str(FOLDER / "store"), total=len(without))
        report = judge(site, without, fetched, _clusterd("skips"), _clusterd("rules", "list", "--all"))
        report.alerts = len(_clusterd("alerts"))
        report.clusters = len(_clusterd("clusters", "--policy", "identical"))
    _show(report)
    (FOLDER / "report.json").write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
    broken = broken_promises(report)
    for promise in broken:
        console.print(f"[red]promise broken:[/red] {promise}")
    return 1 if broken else 0


def _crawl(title: str, site: str, data: str, total: int | None) -> list[str]:
    """Crawl in a process of its own, with a progress bar; return the URLs that were fetched, in order."""
    out = FOLDER / f"fetched-{'without' if data == '-' else 'with'}.jsonl"
    out.touch()
    columns = (
        TextColumn(f"crawl {title}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("pages"),
        TimeElapsedColumn(),
    )
    command = [sys.executable, "-m", "tests.demo.spider", site, str(out), data]
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=total)
        crawl = subprocess.Popen(command)
        while crawl.poll() is None:
            progress.update(task, completed=_lines(out))
            threading.Event().wait(0.2)
        progress.update(task, completed=_lines(out))
    if crawl.returncode:
        raise SystemExit(f"the crawl {title.strip()} ended with {crawl.returncode}")
    return [json.loads(line)["url"] for line in out.read_text(encoding="utf-8").splitlines()]


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "clusterd", "--data", str(FOLDER / "store"), "--json", *words]


def _clusterd(*words: str) -> list[dict[str, Any]]:
    """Ask clusterd as a user would; return its JSON lines."""
    done = subprocess.run(_command(*words), capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"clusterd {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


@contextmanager
def _alerts_as_they_happen() -> Iterator[None]:
    """Print the first alerts of the crawl as they come."""
    # The store is there before the crawl starts, so that the follower and the crawl share it.
    follower = subprocess.Popen(_command("alerts", "--follow"), stdout=subprocess.PIPE, text=True)
    reader = threading.Thread(target=_print_alerts, args=(follower,), daemon=True)
    reader.start()
    try:
        yield
    finally:
        follower.terminate()
        follower.wait(timeout=30)
        reader.join(timeout=5)


def _print_alerts(follower: subprocess.Popen[str]) -> None:
    assert follower.stdout is not None
    parts: Counter[str] = Counter()
    for line in follower.stdout:
        alert = json.loads(line)
        if alert["policy"] != POLICY_SHOWN or not alert["match"] or parts.total() >= ALERTS_SHOWN:
            continue
        part = urlsplit(alert["url"]).path.lower().split("/")[1]
        if parts[part] >= ALERTS_OF_A_PART:
            continue
        parts[part] += 1
        console.print(_alert_line(alert), soft_wrap=True, markup=False, highlight=False)
        if parts.total() == ALERTS_SHOWN:
            console.print("  … and so on (clusterd alerts lists them all)", highlight=False)


def _alert_line(alert: dict[str, Any]) -> str:
    """Return an alert as a person reads it: which page, like which, how much, and how many there are by now."""
    share = f"{alert['resemblance']:.0%}"
    pages = f"{alert['size']} alike"
    return f"  {_address(alert['url']):<{ADDRESS}} = {_address(alert['match']):<{ADDRESS}} {share:>4}, {pages}"


def _address(url: str) -> str:
    """Return path and query, with what is long and says nothing (session ids) cut."""
    parts = urlsplit(url)
    whole = re.sub(r"([0-9a-f]{4})[0-9a-f]{28}", r"\1…", parts.path + (f"?{parts.query}" if parts.query else ""))
    return whole if len(whole) <= ADDRESS else f"{whole[: ADDRESS - 1]}…"


def _show(report: Report) -> None:
    table = Table(title="What clusterd saved", show_header=False)
    saved = 1 - report.fetches_with / max(1, report.fetches_without)
    table.add_row("fetches without clusterd", str(report.fetches_without))
    table.add_row("fetches with clusterd", f"{report.fetches_with}  ({saved:.0%} fewer)")
    table.add_row("requests skipped", str(report.skipped))
    table.add_row("skip precision", f"{report.skip_precision:.4f}")
    table.add_row("lost contents", str(report.lost_contents))
    table.add_row("clusters of identical pages", str(report.clusters))
    table.add_row("alerts", str(report.alerts))
    console.print(table)
    rules = Table(title="Skipped by which rule")
    for column in ("rule", "what it says", "skipped", "state"):
        rules.add_column(column, justify="right" if column == "skipped" else "left", no_wrap=column != "what it says")
    at_work = [rule for rule in report.rules if rule["skipped"]]
    for rule in at_work:
        # The host is the same in all of them.
        rules.add_row(rule["id"], rule["text"].partition(": ")[2], str(rule["skipped"]), rule["state"])
    console.print(rules)
    console.print("replaced: having seen more pages, the learner says it in another way.", highlight=False)
    if len(at_work) < len(report.rules):
        console.print(f"{len(report.rules) - len(at_work)} more rules skipped nothing in this crawl.", highlight=False)
    store = FOLDER / "store"
    console.print("Where to look next:")
    for words in ("clusters", "rules list", "skips", "status", f"rules why {shlex.quote(report.example)}"):
        console.print(f"  .venv/bin/clusterd --data {store} {words}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
