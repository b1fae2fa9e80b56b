"""What README and docs say holds: links resolve, commands parse, settings and metrics exist, examples print that."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from clusterd.cli.commands import COMMANDS, clusterd, run
from clusterd.config import Config
from clusterd.health import Report
from clusterd.metrics import HELD, ReportCollector
from clusterd_crawler import SkippedDuplicate, signals
from clusterd_crawler.settings import PREFIX
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.signalmanager import SignalManager
from twisted.python.failure import Failure

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
QUESTIONS = ROOT / "docs" / "questions.md"
#: Where files are that the text names by the end of their path.
ROOMS = ("", "clusterd/clusterd/", "crawler/", "tests/")

named = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(text: str) -> Iterator[str]:
    """Yield the lines of all code blocks, fenced or indented."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()


def spans(text: str) -> list[str]:
    """Return what stands in backticks, fenced blocks apart."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@named
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there.read_text("utf-8")), target


@named
def test_files_that_are_named_are_there(page: Path) -> None:
    for span in spans(page.read_text("utf-8")):
        if re.fullmatch(r"(deploy|docs|clusters|benchmarks|tests)/[\w./-]+", span):
            assert any((ROOT / room / span).exists() for room in ROOMS), span


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/store.md", "docs/rules.md"])
def test_source_files_that_are_named_by_their_end_are_there(page: str) -> None:
    folders = [ROOT / room for room in ("clusterd", "consumer", "crawler", "tests")]
    sources = [f"/{path.relative_to(ROOT)}" for folder in folders for path in folder.rglob("*") if path.is_file()]
    text = (ROOT / page).read_text("utf-8")
    told = {span for span in spans(text) if re.fullmatch(r"[\w./]+(\.py|\.lua|\w/)", span)}
    assert len(told) > 5
    missing = {span for span in told if not any(f"/{span}" in source for source in sources)}
    assert not missing


@named
def test_commands_in_code_blocks_parse(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the real command line takes them; what they do is left out."""
    monkeypatch.setattr(click.Command, "invoke", lambda command, context: None)
    for line in blocks(page.read_text("utf-8")):
        for part in re.split(r"\s[|>]\s|&&", re.sub(r"\s+#\s.*", "", line.removeprefix("$ "))):
            words = shlex.split(part) if re.match(r"(\.venv/bin/)?clusterd ", part.strip()) else []
            if words:
                clusterd.main(args=words[1:], prog_name="clusterd", standalone_mode=False)


@named
def test_commands_in_the_text_exist_with_their_options(page: Path) -> None:
    for span in spans(page.read_text("utf-8")):
        if not re.match(r"clusterd [a-z]", span):
            continue
        name, *rest = span.split()[1:]
        assert name in COMMANDS, span
        context = click.Context(clusterd)
        command = clusterd.get_command(context, name)
        if isinstance(command, click.Group) and rest and rest[0].islower():
            command = command.get_command(context, rest.pop(0).split("|")[0])
        assert command is not None, span
        known = {option for group in (command, clusterd) for parameter in group.params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= known, span


@named
def test_settings_exist(page: Path) -> None:
    known = {PREFIX + declared.name.upper() for declared in fields(Config)}
    assert set(re.findall(rf"\b{PREFIX}[A-Z_]*[A-Z]\b", page.read_text("utf-8"))) <= known


@named
def test_configurations_are_accepted(page: Path, tmp_path: Path) -> None:
    file = tmp_path / "clusterd.toml"
    for block in re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE):
        file.write_text(block, "utf-8")
        Config.load(file, environment={})


@named
def test_benchmarks_and_make_targets_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for module in re.findall(r"python -m benchmarks (\w+)", text):
        place = ROOT / "benchmarks" / module
        assert place.is_dir() or place.with_suffix(".py").is_file(), module
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    told = re.findall(r"`make ([\w-]+)`|^    make ([\w-]+)", text, flags=re.MULTILINE)
    assert {one or other for one, other in told} <= set(targets)


def test_every_metric_is_described_and_every_one_that_is_described_exists() -> None:
    report = Report(lag=0)
    report.tallies.held = {name: 1 for name, _ in HELD}
    served = {
        metric.name + ("_total" if metric.type == "counter" else "") for metric in ReportCollector(report).collect()
    }
    text = (ROOT / "docs" / "operations.md").read_text("utf-8")
    assert set(re.findall(r"`(clusterd_[a-z_]+)(?:\{\w+\})?`", text)) == served


def test_every_stat_of_a_crawl_is_described() -> None:
    counted = {"published", "spooled", "dropped"}
    for source in (ROOT / "crawler" / "clusterd_crawler").rglob("*.py"):
        counted.update(re.findall(r"_value\(f?\"clusterd/([a-z_]+)", source.read_text("utf-8")))
    table = (ROOT / "README.md").read_text("utf-8").partition("| stat |")[2].partition("\n\n")[0]
    described = {name for row in table.splitlines() for name in re.findall(r"`([a-z_]+)`", row.split("|")[1])}
    assert counted == described


def test_the_spider_of_the_readme_hears_of_duplicates_and_skips(caplog: pytest.LogCaptureFixture) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    made: dict[str, Any] = {}
    exec(text.partition("A spider that listens:\n")[2].partition("```python\n")[2].partition("```")[0], made)
    crawler = Crawler(made["MySpider"])
    crawler.signals = SignalManager(crawler)
    spider = made["MySpider"].from_crawler(crawler)
    failure = Failure(SkippedDuplicate("r1", "key", "http://h.example/1"))
    failure.request = Request("http://h.example/1?sid=2")
    with caplog.at_level("INFO"):
        told = {"response_url": "http://h.example/2", "cluster": "near-1", "match": "http://h.example/3"}
        crawler.signals.send_catch_log(signals.near_duplicate, **told, resemblance=0.95, spider=spider)
        spider.failed(failure)
    assert caplog.messages == [
        "http://h.example/2 is 95 % like http://h.example/3",
        "http://h.example/1?sid=2 would show what http://h.example/1 did",
    ]


#: What differs from run to run: times, paces, sizes.
VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r"in \d+\.\d s;"), "in SECONDS;"),
    (re.compile(r"(store_bytes +)\d+"), r"\1BYTES"),
    (re.compile(r'("urls_per_second": )[\d.]+'), r"\1PACE"),
)


def examples() -> list[tuple[str, str]]:
    """Return the commands of the first part of docs/questions.md, and what they print."""
    found = []
    text = QUESTIONS.read_text("utf-8").partition("## After a crawl\n")[0]
    for block in re.findall(r"^```console\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        for one in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = one.partition("\n")
            found.append((command, printed))
    return found


def told_alike(printed: str) -> str:
    for pattern, instead in VOLATILE:
        printed = "\n".join(pattern.sub(instead, line) for line in printed.rstrip().split("\n"))
    return printed


def test_the_questions_print_what_their_page_shows(
    redis_url: str,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    subprocess.run([sys.executable, ROOT / "docs" / "example_pages.py", tmp_path], check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLUSTERD_REDIS", redis_url)
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", prefix)
    asked = examples()
    assert len(asked) > 25
    for command, shown in asked:
        (program, *words), *filters = map(shlex.split, command.split(" | "))
        assert program == "clusterd", command
        run(words)
        printed = "".join(capsys.readouterr())
        for wanted in filters:
            printed = grep(wanted, printed)
        assert told_alike(printed) == told_alike(shown), command


def grep(wanted: list[str], printed: str) -> str:
    """Return the lines that ``grep WORD`` leaves, or ``grep -v WORD``."""
    program, *options, word = wanted
    assert program == "grep"
    assert options in ([], ["-v"])
    return "".join(line for line in printed.splitlines(keepends=True) if (word in line) is not bool(options))
