"""Learners in memory: of the hosts that this worker learns, the busy ones keep theirs between two looks.

A learner is rebuilt from the host's evidence log after a restart, after the log was cut, or when it had to make room.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic
from typing import Final

from clusterd_crawler.clock import now_ms
from clusterd_crawler.errors import NotFound
from clusterd_crawler.rules import Identity
from clusterd_crawler.skipping.rows import Rows

from clusterd.learning.contract import HostLearner, Page
from clusterd.learning.evidence.columns import Novelty
from clusterd.learning.rulebook import turns
from clusterd.learning.rulebook.arrivals import Arrivals
from clusterd.learning.rulebook.contract import HostRules
from clusterd.learning.rulebook.met import Met
from clusterd.learning.watch import AGREEMENTS, STRIKES

#: Pages that the learners of one worker may hold together (about 1 kB each with its learner's indexes).
PAGES_LIMIT: Final = 250_000
#: Pages that a learner counts for at least: an empty one has its weight too.
LEAST_PAGES: Final = 50
#: Seconds that a page which watches a rule waits for the one that it was fetched instead of: after a pause
#: partitions and workers are behind by unequal times. (Measured: 16 of 33 pages came first and would have differed.)
EARLY_SECONDS: Final = 60.0
#: Milliseconds after its fetch from which it waits for no further call, of a learner that is made from a whole log:
#: what is not in it by then never comes.
LATE_MS: Final = 3_600_000
#: Crawls of a host whose rows of one content are followed at once.
ROWS: Final = 4
#: Most of the latest trials that differed which may be taken back.
STRUCK: Final = 500


@dataclass(slots=True)
class Recall:
    """A host's learner, and how far it has read."""

    learner: HostLearner
    mark: str = ""
    #: The same of a group, for each of its hosts.
    marks: dict[str, str] = field(default_factory=dict)
    #: What was met on pages that were cut from the log, or from those of the group's hosts.
    met: Met = field(default_factory=Met)
    #: Of a group: how often its pages were halved before the learner saw them (`groups.sampled`).
    halved: int = 0
    #: Version of the host's rules that the learner was told of.
    version: int = -1
    #: Whether the host has rules in force, and whether this worker has published its pages up to ``fresh``.
    live: bool = False
    shared: bool = False
    #: The same of the rules of its group, where that has another name: mirrors of which the host is one.
    version_across: int = 0
    live_across: bool = False
    #: Pages read since they were last published.
    fresh: list[Page] = field(default_factory=list)
    arrivals: Arrivals = field(default_factory=Arrivals)
    #: Contents of the pages that no rule spoke against, by crawl.
    contents: Novelty = field(default_factory=Novelty)
    #: Crawl → its rows of one content, that of which a page came last at the end; and crawl, content and URL of what
    #: turned out to be a wall.
    rows: dict[str, Rows] = field(default_factory=dict)
    walled: list[tuple[str, int, str]] = field(default_factory=list)
    #: Rule → [agreed, differed]: pages that were fetched to watch it; one with a new content differs.
    trials: dict[str, list[int]] = field(default_factory=dict)
    #: The latest of them that differed: its crawl may still take such a page back, or what it was judged by.
    struck: deque[Page] = field(default_factory=lambda: deque(maxlen=STRUCK))
    #: Those that came before what they are judged by, and since when each waits (of the monotonic clock, as the other
    #: may be set back): judged, and shown, when that has come, or has had its time; and whether each came by the first
    #: call, by which a learner that is rebuilt is shown the whole log.
    early: list[tuple[Page, float, bool]] = field(default_factory=list)
    #: Whether the learner was shown pages before.
    begun: bool = False
    #: Crawl and URL → page that may still be taken back, in the order in which they came (`_standing`), and since when.
    standing: dict[tuple[str, str], tuple[Page, float]] = field(default_factory=dict)
    #: Those of them whose strikes were forgotten: to the learner they watch nothing.
    uncounted: set[Page] = field(default_factory=set)
    #: When the latest page so far was fetched (`_standing`): the clock of the log, the same to whoever reads it,
    #: however late, and however much of it at once.
    until: int = 0
    #: Rules that too many of them contradict, and that the book was told of.
    failed: set[str] = field(default_factory=set)
    #: Rule → when an operator's import put it into force (Unix ms): of what was fetched before no page is a trial.
    brought_in: dict[str, int] = field(default_factory=dict)

    def take(self, pages: Iterable[Page], told: HostRules | None, *, whole: bool = True) -> None:
        """Show pages, and tell what was decided of the host's rules since it was told of them (None: nothing).

        ``whole``: no messages are left to be read, as there are after a pause.
        """
        if told is not None:
            self.begin_anew(told)
        self.show(pages, whole=whole)
        if told is not None:
            self.tell(told)

    def show(self, pages: Iterable[Page], *, whole: bool = True) -> None:
        """Let the learner see the pages that are new to it, and which of them their crawl takes back (as failed).

        A page that says that it is none, as one that keeps robots out for a while does, says nothing about its URL. A
        file does: that it is not the page of the same key.
        """
        fresh = list(self._fresh(pages, whole))
        self.learner.observe(self._standing(fresh))
        self.uncounted &= {page for page, _ in self.standing.values() if page.explored}
        if self.is_spoken_of:
            self.fresh += (page for page in fresh if not page.target)

    def _standing(self, fresh: Iterable[Page]) -> Iterator[Page]:
        """Yield what the learner sees: of a host of which pages are taken back none that may be one of these yet.

        Shown until then, each would end rules that come back without it.
        """
        began = monotonic()
        for page in fresh:
            self.until = max(self.until, page.fetched_at)
            if page.state == "failed" and self.standing.pop((page.crawl, page.url), None) is None:
                yield page
            elif page.is_witness:
                self.standing.pop((page.crawl, page.url), None)
                self.standing[page.crawl, page.url] = page, began
            yield from self._settled(began)
        yield from self._settled(began)

    def _settled(self, began: float) -> Iterator[Page]:
        """Yield those that stand, by the clock of the log, or by ours where nothing more comes."""
        while self.standing:
            page, since = self.standing[first := next(iter(self.standing))]
            if not self.arrivals.stands(page, self.until, began - since):
                return
            del self.standing[first]
            yield replace(page, explored="") if page.explored and page in self.uncounted else page

    @property
    def is_spoken_of(self) -> bool:
        """Whether crawls can use the host's pages: rules in force speak of them, its own or those of its group."""
        return self.live or self.live_across

    def _fresh(self, pages: Iterable[Page], whole: bool) -> Iterator[Page]:
        began = monotonic()
        first, self.begun = not self.begun, True
        for page in self.arrivals.fresh(pages):
            if page.state == "good" and page.crawl and not page.target:
                self._note_row(page)
            if page.explored and page.is_witness:
                if self._is_early(page):
                    self.early.append((page, began, first))
                else:
                    yield self._tried(page)
                continue
            if page.is_witness:
                self.contents.add(page.crawl, page.content)
            elif page.state == "failed":
                self._uncount_strikes(page)
            yield page
        yield from self._judged(began, now_ms() - LATE_MS if whole else -inf)

    def _judged(self, now: float, late: float) -> Iterator[Page]:
        """Yield what waits no more; ``late``: of what came by the first call also what was fetched by then (ms)."""
        waiting, self.early = self.early, []
        for page, since, first in waiting:
            has_time = now - since < EARLY_SECONDS and not (first and page.fetched_at <= late)
            if has_time and self._is_early(page):
                self.early.append((page, since, first))
            else:
                yield self._tried(page)

    def _note_row(self, page: Page) -> None:
        rows = self.rows.pop(page.crawl) if page.crawl in self.rows else Rows()
        self.rows[page.crawl] = rows
        if len(self.rows) > ROWS:
            del self.rows[next(iter(self.rows))]
        # Of a log that was cut, what comes first in it may have been met before on what went.
        known = self.contents.knows(page.crawl, page.content) or self._repeats(page)
        content, walled = rows.add(page.url, page.content, not known and not self.met.has_forgotten(page.crawl))
        self.walled += ((page.crawl, content, url) for url in walled)

    def taken_back(self) -> list[Page]:
        """Return, once, what is to be added to the evidence: pages in whose place a wall was shown say nothing."""
        walled, self.walled = self.walled, []
        said = (self.arrivals.taken_back(url, crawl, content) for crawl, content, url in walled)
        found = [page for page in said if page is not None]
        for page in found:  # What rests on it is to count no more before that is read.
            self._uncount_strikes(page)
        return found

    def _is_early(self, page: Page) -> bool:
        """Whether a page would speak against a rule only because its crawl's page of the same key is still to come.

        Not where that has come, and was cut from the log since, or may have been.
        """
        cut = self.met.has_forgotten(page.crawl) or self.met.has_cut(page.crawl, page.instead_of)
        awaits = bool(page.instead_of) and not cut and self.arrivals.awaits(page.instead_of, page.crawl)
        return awaits and not self._agrees(page)

    def _agrees(self, page: Page) -> bool:
        known = self.arrivals.content_of(page.instead_of)
        return self.contents.knows(page.crawl, page.content) or known == page.content or self._repeats(page)

    def _repeats(self, page: Page) -> bool:
        return self.met.knows(page.crawl, page.content)

    def _some_met(self, content: int) -> bool:
        """Whether some crawl has met a content; takes longer the more crawls there were."""
        return self.contents.has_met(content) or self.met.has_met(content)

    def _tried(self, page: Page) -> Page:
        """Return a page that watches a rule as the learner is shown it, which knows nothing of what was cut."""
        if not self._count_trial(page):
            return replace(page, explored="")
        return replace(page, repeats=True) if self._repeats(page) else page

    def _count_trial(self, page: Page) -> bool:
        """Count a page that was fetched in spite of a rule: it agrees where its crawl knew what it shows.

        Or where the page does that the skip would have rested on, whichever crawl fetched that. Of one that no crawl
        has told of, as of pages of the HTTP cache that an earlier crawl skipped, it is not known what it shows: then a
        page speaks against the rule only by what no crawl has met, and else it is no trial (False). Nor is one where it
        is not known any more what its crawl has met: every rule of a large host would go. Nor what differs from a page
        that its crawl has taken back. To the learner none is what differs from a page that may have shown a wall: it
        counts once that turns out to be what the site shows (`failing`).
        """
        if page.fetched_at < self.brought_in.get(page.explored, 0):
            return True
        agrees = self._agrees(page)
        unknown = self.arrivals.content_of(page.instead_of) is None
        if unknown and (self.met.has_forgotten(page.crawl) or (not agrees and self._some_met(page.content))):
            return False
        if not agrees and self.arrivals.has_failed(page.instead_of, page.crawl):
            return False
        self.trials.setdefault(page.explored, [0, 0])[not agrees] += 1
        if not agrees:
            self.struck.append(page)
        return agrees or not self._may_be_wall(page)

    def _may_be_wall(self, page: Page) -> bool:
        """Whether the page that another one was fetched instead of may have shown a wall."""
        known, rows = self.arrivals.content_of(page.instead_of), self.rows.get(page.crawl)
        return known is not None and rows is not None and rows.may_be_wall(page.instead_of, known)

    def _uncount_strikes(self, gone: Page) -> None:
        """Forget strikes that rest on what the spider made nothing of: a captcha says nothing."""
        for page in tuple(self.struck):
            if page.crawl == gone.crawl and gone.url in {page.url, page.instead_of}:
                self.struck.remove(page)
                self.uncounted.add(page)
                self.trials[page.explored][1] -= 1

    def failing(self) -> dict[str, str]:
        """Return the rules that too many watched pages contradict, with the reason; each is returned once."""
        revocable = Counter(page.explored for page in self.struck if self._may_go(page) or self._may_be_wall(page))
        found = {
            rule: f"{differed} of {agreed + differed} watched pages differed"
            for rule, (agreed, every) in self.trials.items()
            if (differed := every - revocable[rule]) >= STRIKES
            if rule not in self.failed and agreed < AGREEMENTS * differed
        }
        self.failed |= set(found)
        return found

    @property
    def waits(self) -> bool:
        """Whether pages wait for what they are judged by, or trials that differed until they are taken back no more."""
        return bool(self.early) or any(map(self._may_go, self.struck))

    def _may_go(self, struck: Page) -> bool:
        """Whether a trial, or what it was judged by, may still be taken back."""
        return any((struck.crawl, url) in self.standing for url in (struck.url, struck.instead_of))

    def begin_anew(self, state: HostRules) -> None:
        """Watch rules that an import brought into force by what is fetched from then on; to be told before it is shown.

        Else a rule that the watch had retired would be retired again by the same pages, or not be watched any more.
        """
        for rule, entry in state.entries.items():
            at = turns.brought_in(entry)
            if at > self.brought_in.get(rule, 0):
                self.brought_in[rule] = at
                self.trials.pop(rule, None)
                self.struck = deque((page for page in self.struck if page.explored != rule), STRUCK)
                self.failed.discard(rule)

    def tell(self, state: HostRules) -> None:
        """Tell the learner what was decided without it: rules retired for good, rules pinned.

        A learner that was rebuilt may not know such a rule yet; it is told again when it has learned it.
        """
        for entry in state.entries.values():
            with suppress(NotFound):
                if turns.barred(entry):
                    self.learner.retire(entry.rule.id, entry.last.reason)
                elif entry.rule.state == "pinned":
                    self.learner.pin(entry.rule.id, entry.last.at)
        self.version = state.rules.version
        self.live = bool(state.rules.rules)


def host_learner(identity: Identity, host: str) -> HostLearner:
    """Make the learner of a host: imported by who learns, as it takes a fifth of the start of a command that asks."""
    from clusterd.learning.learner import Learner

    return Learner(host, identity=identity)


def group_learner(identity: Identity, group: str) -> HostLearner:
    """Make the learner of the hosts of a group, imported likewise."""
    from clusterd.learning.mirrors import MirrorLearner

    return MirrorLearner(group, identity=identity)


class Recalls:
    """The learners of one worker, bounded by the pages that they hold; the host looked at longest ago goes first."""

    def __init__(self, make: Callable[[str], HostLearner], *, groups: bool = False) -> None:
        """Take what makes a host's learner; or (``groups``) one of the hosts of a group together."""
        self._make = make
        self._groups = groups
        self._hosts: OrderedDict[str, Recall] = OrderedDict()

    def get(self, host: str) -> Recall | None:
        """Return a host's learner where it is in memory."""
        found = self._hosts.get(host)
        if found is not None:
            self._hosts.move_to_end(host)
        return found

    def hosts(self) -> set[str]:
        """Return the hosts whose learners are in memory."""
        return set(self._hosts)

    def waits(self, host: str) -> bool:
        """Whether a host is to be looked at again, also where no page of it comes any more."""
        found = self._hosts.get(host)
        return found is not None and found.waits

    def new(self, host: str) -> Recall:
        """Start a host's learner anew."""
        arrivals = Arrivals() if self._groups else Arrivals(host)
        self._hosts[host] = Recall(self._make(host), arrivals=arrivals)
        self._hosts.move_to_end(host)
        return self._hosts[host]

    def forget(self, host: str) -> None:
        """Drop a host's learner."""
        self._hosts.pop(host, None)

    def shrink(self) -> list[str]:
        """Drop learners until the rest fits (one always stays); return the hosts that went."""
        gone = []
        held = sum(map(_weight, self._hosts.values()))
        while held > PAGES_LIMIT and len(self._hosts) > 1:
            host, recall = self._hosts.popitem(last=False)
            held -= _weight(recall)
            gone.append(host)
        return gone

    def clear(self) -> None:
        """Drop all learners."""
        self._hosts.clear()


def _weight(recall: Recall) -> int:
    return max(LEAST_PAGES, len(recall.arrivals), len(recall.contents))
