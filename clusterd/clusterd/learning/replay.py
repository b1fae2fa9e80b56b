"""A recorded crawl through the real learner and the real decision, page by page: fetch → learn → skip.

Nothing of a page's content or names is looked at before the page is "fetched"; an explored page counts as fetched. When
a rule is withdrawn, what it kept out is decided anew, as a crawl does (`clusterd_crawler.crawling.rule_changes`): a
page that is fetched then counts as fetched. What a crawl looks at once more before it ends is not counted.
"""

from __future__ import annotations

import gzip
import io
import random
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Literal, cast

import mmh3
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.rules import Identity, RuleSet
from clusterd_crawler.skipping.bearers import parse_names
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.skipping.skip import Skip
from clusterd_crawler.urls import canonical_if_any, host_of, registrable

from clusterd.learning.contract import Page
from clusterd.learning.learner import Learner
from clusterd.learning.mirrors import Group

#: Share of would-be skips that is fetched to watch the rules, as in the settings.
EXPLORE: Final = 0.02
#: Near clusters are numbered after the contents, so that the two never meet.
NEAR: Final = 1 << 40
#: A replay is one crawl.
CRAWL: Final = "replay"
#: How a file begins that gzip has packed.
GZIP: Final = b"\x1f\x8b"
#: Decimal places of shares: one wrong skip of a hundred thousand is no precision of 1.
PLACES: Final = 6


@dataclass(frozen=True, slots=True)
class CrawlRow:
    """One page of a recorded crawl (``content``: equal numbers show equal text; ``near_cluster``: 0 is alone)."""

    url: str
    content: int
    near_cluster: int = 0
    words: int = 0
    names: str = ""


def read_crawl(path: str | Path) -> list[CrawlRow]:
    """Read a crawl file (tab-separated, a header, gzip or plain; ``-``: standard input).

    ``content`` and ``near_cluster`` are numbers, or any text, such as a digest, that stands for one. `WrongInput` names
    the line that is wrong.
    """
    path = Path(path)
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as file:
            packed = cast(io.BufferedReader, file).peek(len(GZIP)).startswith(GZIP)
            lines = io.TextIOWrapper(gzip.GzipFile(fileobj=file) if packed else file, "utf-8-sig")
            try:
                return _rows(path, lines)
            finally:
                lines.detach()  # standard input stays open
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise WrongInput(f"{path}: cannot be read: {reason}") from None


def _rows(path: Path, lines: Iterable[str]) -> list[CrawlRow]:
    rows: list[CrawlRow] = []
    columns: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        cells = line.rstrip("\r\n").split("\t")
        if number == 1:
            columns = {name: at for at, name in enumerate(cells)}
            missing = {"url", "content"} - set(columns)
            if missing:
                raise WrongInput(
                    f"{path}: the header lacks {', '.join(sorted(missing))}; it has {', '.join(cells)[:80]}"
                )
        elif line.strip():
            rows.append(_row(f"{path}: line {number}", columns, cells))
    if not columns:
        raise WrongInput(f"{path}: is empty; the first line names the columns url and content")
    return rows


def _row(where: str, columns: dict[str, int], cells: list[str]) -> CrawlRow:
    def cell(name: str) -> str:
        at = columns.get(name, len(cells))
        return cells[at] if at < len(cells) else ""

    def words() -> int:
        try:
            return int(cell("words") or 0)
        except ValueError:
            raise WrongInput(f"{where}: words is {cell('words')!r}, not a number") from None

    if not cell("url") or not cell("content"):
        raise WrongInput(f"{where}: url or content is missing")
    return CrawlRow(cell("url"), _number(cell("content")), _number(cell("near_cluster")), words(), cell("names"))


def _number(name: str) -> int:
    """Return the number that stands for a content: the one that is written, or of another name one of 64 bits.

    None is below 0: -1 would have the identity that stands for a content that nobody knows.
    """
    try:
        number = int(name or 0)
    except ValueError:
        number = -1
    return number if number >= 0 else int.from_bytes(mmh3.hash_bytes(name.encode())[:8])


class Replay:
    """One pass over a crawl; holds what its report counts."""

    def __init__(self, *, explore: float = EXPLORE, policy: Identity = "identical") -> None:
        self.known = KnownPages(explore=explore, crawl=CRAWL)
        self.policy: Identity = policy
        self.learners: dict[str, Learner] = {}
        self.groups: dict[str, Group] = {}
        self.fetched: set[int] = set()
        self.pages = self.skips = self.right = 0
        #: (row, known URL, rule, whether its content had been fetched) of every skip that stands, in order, by number.
        self.trace: dict[int, tuple[CrawlRow, str, str, bool]] = {}
        self._skipped = 0
        self._kept: dict[str, list[int]] = {}
        self._withdrawn: deque[str] = deque()
        self._versions = 0

    def identity(self, row: CrawlRow) -> int:
        """Return what the page is, by the policy."""
        return NEAR + row.near_cluster if self.policy == "near" and row.near_cluster else row.content + 1

    def visit(self, row: CrawlRow) -> None:
        """Decide on one page: skip it, or fetch it and learn; then decide anew on what withdrawn rules kept out."""
        self.pages += 1
        self._decide(row)
        self._withdrawn.extend(self.known.reopened())
        while self._withdrawn:
            again = self._withdrawn.popleft()
            for number in self._kept.pop(again, ()):
                self._decide(self._taken_back(number))
                self._withdrawn.extend(self.known.reopened())

    def _decide(self, row: CrawlRow) -> None:
        at = self.pages
        content = self.identity(row)
        if not (url := canonical_if_any(row.url)):  # No rule speaks of it: it is never skipped.
            self.fetched.add(content)
            return
        skip = self.known.decide(url, at)
        if skip is not None and not skip.explore:
            self._skip(row, skip, content in self.fetched)
            return
        self.fetched.add(content)
        names = parse_names(row.names)
        self.known.fetched(url, at, names, content=content)
        explored, instead = ("", "") if skip is None else (skip.rule, skip.known_url)
        self._learn(Page(url, content, row.words, names, at, explored, instead, CRAWL), host_of(url))

    def _skip(self, row: CrawlRow, skip: Skip, right: bool) -> None:
        self._kept.setdefault(skip.rule, []).append(self._skipped)
        self.trace[self._skipped] = (row, skip.known_url, skip.rule, right)
        self._skipped += 1
        self.skips += 1
        self.right += right

    def _taken_back(self, number: int) -> CrawlRow:
        """Return a page that a withdrawn rule kept out; its skip is undone."""
        row, _, _, right = self.trace.pop(number)
        self.skips -= 1
        self.right -= right
        return row

    def _learn(self, page: Page, host: str) -> None:
        """Show a page to its host's learner and to that of its group, and take what they say."""
        learner = self.learners.get(host)
        if learner is None:
            learner = self.learners[host] = Learner(host, identity=self.policy)
        learner.observe([page])
        if learner.due() and learner.learn(page.fetched_at) is not None:
            self._load(host)
        group = self.groups.setdefault(registrable(host), Group(registrable(host), self.policy))
        mirrors = group.observe(page)
        if mirrors is not None and mirrors.due() and mirrors.learn(page.fetched_at) is not None:
            self._load(group.name)

    def _load(self, host: str) -> None:
        """Put the rules of a host to use, and those that span the hosts of its domain where it is named by it."""
        group = self.groups.get(host)
        both = (None if group is None else group.learner, self.learners.get(host))
        rules = tuple(rule for learner in both if learner is not None for rule in learner.rules)
        before = self.known.rules_of(host)
        self._versions += 1
        self.known.load(RuleSet(host, self._versions, rules))
        live = {rule.id for rule in rules}
        self._withdrawn.extend(rule.id for rule in (before.rules if before else ()) if rule.id not in live)

    def rules(self) -> int:
        """Return how many rules are in use."""
        mirrors = [group.learner for group in self.groups.values() if group.learner is not None]
        return sum(len(learner.rules) for learner in (*self.learners.values(), *mirrors))


def replay(
    rows: Sequence[CrawlRow],
    order: Literal["file", "random"] = "file",
    seed: int = 0,
    explore: float = EXPLORE,
    policy: Identity = "identical",
) -> dict[str, Any]:
    """Replay a crawl; return the line of ``clusterd rules replay``."""
    taken = list(rows)
    if order == "random":
        random.Random(seed).shuffle(taken)
    run = Replay(explore=explore, policy=policy)
    start = perf_counter()
    for row in taken:
        run.visit(row)
    return report(run, taken, perf_counter() - start)


def report(run: Replay, rows: Sequence[CrawlRow], seconds: float) -> dict[str, Any]:
    """Return the figures of a replay."""
    contents = {run.identity(row) for row in rows}
    return {
        "pages": len(rows),
        "fetched": len(rows) - run.skips,
        "skipped": run.skips,
        "reduction": round(run.skips / max(1, len(rows)), PLACES),
        "skip_precision": round(run.right / run.skips, PLACES) if run.skips else 1.0,
        "lost_contents": round(len(contents - run.fetched) / max(1, len(contents)), PLACES),
        "rules": run.rules(),
        "urls_per_second": round(len(rows) / max(seconds, 1e-9)),
    }
