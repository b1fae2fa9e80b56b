"""The rule service: evidence in, rule sets out. What the worker calls, and what the command line changes.

Learning a host (`RuleService.learn_due`) is done by one worker at a time, which holds the host's lease:

1. its learner is brought up to date with the evidence log, and with what was decided without it;
2. where the evidence changed enough, it learns; the rules that watched pages contradict are told apart;
3. what both say is merged into the book by compare-and-set, and tried again where another change came first;
4. the new rule set is offered to crawlers that start later, published to those that run, and noted as announced when
   it has arrived in the log (`rule_sets`);
5. where it has live rules, its pages are shared with the crawls (`sharing`);
6. the host is taken off the list of changed ones, unless evidence has come since, or the lease has run out meanwhile:
   another may have learned it then and taken it off already.

Then the mirrors among the hosts of its domain are learned likewise (`groups`).

A crash between any two steps repeats them from the first. Cost: proportional to the pages that are new to the learner,
plus the learner's own; a log is rewritten whole once it exceeds its limit by a quarter.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import isinf
from typing import Final

from clusterd_crawler import urls
from clusterd_crawler.errors import NotFound, Unreachable
from clusterd_crawler.message import Failure, File, Redirect, SkipReport
from clusterd_crawler.rules import LIVE, Identity, Rule, RuleSet, State
from clusterd_crawler.sketch import Sketch

from clusterd.clusters.contract import Outcome
from clusterd.learning.contract import HostLearner, Page
from clusterd.learning.rulebook import turns
from clusterd.learning.rulebook.agenda import Agenda
from clusterd.learning.rulebook.blocks import BLOCK_PAGES
from clusterd.learning.rulebook.contract import EVIDENCE_LIMIT, Entry, Evidence, HostRules
from clusterd.learning.rulebook.groups import Groups
from clusterd.learning.rulebook.identity import Shown, by_host, failed, filed, page_of, redirected, texts
from clusterd.learning.rulebook.met import cut_contents
from clusterd.learning.rulebook.recall import Recall, Recalls, host_learner
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.reservoir import latest, reservoir, sightings
from clusterd.learning.rulebook.rule_sets import RuleSets
from clusterd.learning.rulebook.sharing import Publish, share

log = logging.getLogger(__name__)

#: Seconds that a host stays with the worker that learned it last; when a worker dies another takes over after them.
LEASE_SECONDS: Final = 30.0
#: How far a log may exceed its limit before it is cut to it.
SLACK: Final = 1.25
#: Seconds between two looks whether the learners in memory are too many: a command that learns all that is due, for as
#: long as that takes, holds no more than a daemon does.
SHRINK_SECONDS: Final = 1.0
#: Blocks beyond the fewest possible before a log is packed anew (a slow crawl brings blocks of one page).
LOOSE_BLOCKS: Final = 2_000


class RuleService:
    """Learns the rules of every host from the evidence that the workers bring, and publishes them."""

    def __init__(
        self,
        book: RuleBook,
        publish: Publish = lambda topic, key, value: None,
        *,
        flush: Callable[[], None] = lambda: None,
        make_learner: Callable[[str], HostLearner] | None = None,
        evidence_limit: int = EVIDENCE_LIMIT,
        identity: Identity = "identical",
        shown: Shown = texts,
    ) -> None:
        """Take where rules are kept and told, and by which identity pages are judged (`identity.shown_by`)."""
        self.book, self._shown, self._publish = book, shown, publish
        self.sets = RuleSets(book, publish, flush)
        self._limit = evidence_limit
        self._recalls = Recalls(make_learner or partial(host_learner, identity))
        self._groups = Groups(book, identity)
        self._leased: set[str] = set()
        #: When it was last seen to that the learners are not too many.
        self._shrunk = 0.0
        self._agenda = Agenda()
        self._owner = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def observe(self, sketches: Sequence[Sketch], outcomes: Sequence[Outcome] = ()) -> None:
        """Note the pages of a batch that the index has applied. May be repeated.

        Answers other than 2xx are no evidence: an error page says nothing about the URLs that lead to it.
        """
        shown = zip(sketches, self._shown(sketches, outcomes), strict=True)
        self._note(page_of(sketch, content) for sketch, content in shown if 200 <= sketch.status < 300)

    def note_failures(self, failures: Iterable[Failure]) -> None:
        """Note fetches of crawls that brought no page. May be repeated."""
        self.book.add_pages(by_host(map(failed, failures)))

    def note_redirects(self, redirects: Iterable[Redirect]) -> None:
        """Note requests of crawls that were redirected to a page. May be repeated."""
        self._note(map(redirected, redirects))

    def note_files(self, files: Iterable[File]) -> None:
        """Note files that crawls fetched where pages might have been. May be repeated."""
        self._note(map(filed, files))

    def _note(self, shown: Iterable[Page | None]) -> None:
        pages = by_host(shown)
        for added in pages.values():
            self._groups.note(added)
        self.book.add_pages(pages)

    def record_skips(self, reports: Sequence[SkipReport]) -> int:
        """Log and count skips; return how many were new. May be repeated."""
        return self.book.add_skips(reports)

    def learn_due(
        self, now: int, seconds: float = 2.0, stopping: Callable[[], bool] = lambda: False, *, whole: bool = True
    ) -> list[RuleSet]:
        """Learn every host whose evidence changed enough and that no other worker learns; publish what changed.

        No host is begun after ``seconds`` or when ``stopping`` says so, so that the caller's other work goes on; the
        rest waits for the next call, as does what has grown little while there is other work (`agenda`). ``whole``:
        as of `Recall.take`.
        """
        published: list[RuleSet] = []
        groups: dict[str, None] = {}
        until = time.monotonic() + seconds
        changed = self.book.changed()
        for host in self._agenda.order(changed, self._recalls.hosts(), every=isinf(seconds)):
            begun = time.monotonic()
            if not self._leases(host):
                continue
            with self._contained(self._recalls, "rules", host):
                published += self._look_at(host, now, whole=whole)
            over = time.monotonic() > begun + LEASE_SECONDS
            if not over and not self._recalls.waits(host):  # else it is looked at again, also where no page of it comes
                self.book.looked_at(host, changed[host])
            groups[urls.registrable(host)] = None
            self._make_room(SHRINK_SECONDS)
            if time.monotonic() > until or stopping():
                break
        for group in self._groups.several(list(groups)):
            if stopping():
                break
            if self._leases(_lease_of(group)):
                with self._contained(self._groups.recalls, "mirrors", group):
                    published += self._look_across(group, now, whole=whole)
            self._make_room(SHRINK_SECONDS)
        if groups:
            self._make_room()
        return published

    def share_rest(self, now: int) -> None:
        """Share the pages that came of this worker's hosts since these were learned last. Before it ends."""
        for host in sorted(self._leased & self.book.changed().keys()):
            recall = self._recalls.get(host)
            if recall is not None and recall.is_spoken_of:
                share(self.book, self._publish, host, self._caught_up(host), now)

    def _make_room(self, seconds: float = 0.0) -> None:
        """Let learners go that are too many, unless that was done so many seconds ago: each is looked at for it."""
        if time.monotonic() < self._shrunk + seconds:
            return
        for host in [*self._recalls.shrink(), *map(_lease_of, self._groups.recalls.shrink())]:
            self._leased.discard(host)
            self.book.release(host, self._owner)
        self._shrunk = time.monotonic()

    def entries(self, host: str = "", *, every: bool = False) -> Iterator[Entry]:
        """Yield the rules in force (with ``every`` the retired ones too), of a host or of all, with their history."""
        found = self.book.entries([host] if host else self.book.hosts())
        return (entry for entry in found if every or entry.rule.state in LIVE)

    def rules(self, host: str = "", *, every: bool = False) -> Iterator[Rule]:
        """Yield the rules of `entries`."""
        return (entry.rule for entry in self.entries(host, every=every))

    def pages(self, host: str) -> list[Page]:
        """Return a host's evidence: each page as it was fetched last, in the order of the fetches, but for failures."""
        return [page for page in latest(self.book.evidence(host).pages) if page.state != "failed"]

    def entry(self, rule: str) -> Entry:
        """Return a rule with its history; `NotFound` where there is none of that id."""
        return self._found(rule)[1]

    def retire(self, rule: str, at: int) -> Rule:
        """Retire a rule and publish at once; it does not come back by itself. `NotFound` where there is none."""
        return self._turn(rule, "retired", at)

    def pin(self, rule: str, at: int) -> Rule:
        """Keep a rule whatever the watch says, and publish at once. `NotFound` where there is none."""
        return self._turn(rule, "pinned", at)

    def import_rules(self, rules: Iterable[Rule], at: int) -> list[Rule]:
        """Enter an operator's rules and publish them. The live ones are watched by the pages that are explored.

        One whose id is that of a rule which says something else is entered, and returned, under another id.
        """
        by_host: dict[str, list[Rule]] = {}
        for rule in rules:
            elsewhere = self.book.host_of(rule.id) not in {None, rule.host}  # copied from another host's
            by_host.setdefault(rule.host, []).append(replace(rule, id=rule.made_id) if elsewhere else rule)
        for host, given in by_host.items():  # what is refused is refused whole
            turns.imported(self.book.load(host), given, at)
        entered = []
        for host, given in by_host.items():
            state = self.sets.change(host, lambda before, given=given: turns.imported(before, given, at))  # type: ignore[misc]
            entered += [state.entries[turns.entered_as(state, rule)].rule for rule in given]
        return entered

    def unskip(self, url: str = "", rule: str = "", at: int = 0) -> list[SkipReport]:
        """Have a URL, or all listed skips of a rule, fetched whatever the rules say; publish; return what is undone.

        A URL that is not in the log is exempted too, and returned without a rule. Skips are listed under their URLs as
        these were linked; crawls look for an exempted one by its canonical form.
        """
        if rule:
            found = list(self.book.skips(rule=rule))
            if not found and rule not in self.book.skip_counts():  # a trap, or a rule that was dropped, is in no book
                self._found(rule)
        else:
            url = urls.canonical(url)
            found = [skip for skip in self.book.skips() if _form(skip.url) == url] or [SkipReport(url, "", "", "", 0)]
        undone = {_form(skip.url): skip for skip in found}
        by_host: dict[str, list[str]] = {}
        for exempted in undone:
            by_host.setdefault(urls.host_of(exempted), []).append(exempted)
        for host, exempt in by_host.items():  # what is refused is refused whole
            turns.unskipped(self.book.load(host), exempt, at)
        for host, exempt in by_host.items():
            self.sets.change(host, lambda before, exempt=exempt: turns.unskipped(before, exempt, at))  # type: ignore[misc]
        return list(undone.values())

    def close(self) -> None:
        """Give the leases back, so that other workers go on at once."""
        try:
            while self._leased:
                self.book.release(self._leased.pop(), self._owner)
        except Unreachable as error:
            log.info("the leases run out by themselves: %s", error)
        self.forget()
        self.book.close()

    def forget(self) -> None:
        """Let all learners go, as of a store that came back from the past: by their marks they pass over what is added.

        It takes the places of what was lost, in other blocks. Sites that were noted may be lost, too.
        """
        self._recalls.clear()
        self._groups.forget()

    def _leases(self, name: str) -> bool:
        """Whether a host, or what stands for a group, is this worker's to learn for a while."""
        leased = self.book.lease(name, self._owner, LEASE_SECONDS)
        if leased:
            self._leased.add(name)
        return leased

    @contextmanager
    def _contained(self, recalls: Recalls, what: str, host: str) -> Iterator[None]:
        """Let what goes wrong with a host, or a group, keep no other from being learned, but a store that is away."""
        try:
            yield
        except Exception as error:
            # What the learner said is lost with it; the next one says it again, from the evidence.
            recalls.forget(host)
            if isinstance(error, Unreachable):
                raise
            log.exception("the %s of %s could not be learned; those of others are", what, host)

    def _look_at(self, host: str, now: int, *, whole: bool) -> list[RuleSet]:
        """Learn a host where that is due, and share its pages with the crawls; return the rule set if it changed."""
        recall = self._caught_up(host, whole=whole)
        rules = self._relearn(host, recall, now)
        share(self.book, self._publish, host, recall, now)
        return rules

    def _look_across(self, group: str, now: int, *, whole: bool) -> list[RuleSet]:
        """Learn the mirrors of a group of several sites; return the rule set if it changed."""
        recall = self._groups.caught_up(group, whole=whole)
        self.sets.announce_again(group, recall.version)
        return self._relearn(group, recall, now, spans=True)

    def _relearn(self, host: str, recall: Recall, now: int, *, spans: bool = False) -> list[RuleSet]:
        failing = recall.failing()
        learned = recall.learner.learn(now) if recall.learner.due() else None
        if learned is None and not failing:
            return []
        before = self.book.version(host)

        def change(state: HostRules) -> HostRules:
            if learned is not None:
                state = turns.relearned(state, learned, now, spans=spans)
            return turns.struck(state, failing, now, spans=spans) if failing else state

        state = self.sets.change(host, change)
        recall.tell(state)
        return [state.rules] if state.rules.version != before else []

    def _caught_up(self, host: str, *, whole: bool = True) -> Recall:
        """Return the host's learner, having seen all evidence and all that was decided without it."""
        recall = self._recalls.get(host)
        evidence = self.book.evidence(host, recall.mark if recall else "")
        if recall is None or not evidence.continued:
            recall = self._recalls.new(host)
        if evidence.total > self._limit * SLACK:
            recall, evidence = self._cut(host)
        elif evidence.blocks > LOOSE_BLOCKS + 2 * evidence.total / BLOCK_PAGES:
            evidence = self._packed(host)
        if not evidence.continued and evidence.was_cut:
            recall.met.add(self.book.met(host))
        told = self._told(host, evidence.version) if recall.version != (evidence.version or 0) else None
        recall.take(evidence.pages, told, whole=whole)
        if told is not None:
            self.sets.announce_again(host, told.rules.version)
        recall.mark = evidence.mark
        if walled := recall.taken_back():  # read with the next look, as what a spider takes back is
            self.book.add_pages({host: walled})
        self._agenda.looked_at(host, evidence.total)
        self._groups.tell(host, recall)
        return recall

    def _told(self, host: str, version: int | None) -> HostRules:
        """Return what is known of a host's rules, where of most nothing was ever saved (None)."""
        return HostRules.empty(host) if version is None else self.book.load(host)

    def _cut(self, host: str) -> tuple[Recall, Evidence]:
        """Cut the log to its limit; the learner starts anew from what stays."""
        whole = self.book.evidence(host)
        kept = reservoir(whole.pages, self._limit, self.book.load(host).rules)
        self.book.rewrite(host, whole.mark, kept, cut_contents(whole.pages, kept))
        log.info("evidence of %s: %d of %d pages kept", host, len(kept), len(whole.pages))
        return self._recalls.new(host), self.book.evidence(host)

    def _packed(self, host: str) -> Evidence:
        """Pack the log anew without dropping what the learner knows; return all of it with its new mark."""
        whole = self.book.evidence(host)
        kept = sightings(whole.pages)
        mark = self.book.rewrite(host, whole.mark, kept, cut_contents(whole.pages, kept))
        return replace(whole, mark=mark or whole.mark)

    def _turn(self, rule: str, state: State, at: int) -> Rule:
        host, _ = self._found(rule)
        try:
            after = self.sets.change(host, lambda before: turns.turned(before, {rule: (state, "hand", "by hand")}, at))
        except Unreachable as error:  # of the store, which then does not answer here either, or of the log
            if self._found(rule)[1].rule.state != state:
                raise
            later = f"crawls that run are told by a daemon with the next pages of {host}"
            raise Unreachable(f"{rule} is {state} in the store, but nobody was told: {error}; {later}") from error
        return after.entries[rule].rule

    def _found(self, rule: str) -> tuple[str, Entry]:
        host = self.book.host_of(rule)
        entry = self.book.load(host).entries.get(rule) if host else None
        if host is None or entry is None:
            raise NotFound(f"there is no rule {rule}; clusterd rules list --all shows the ids")
        return host, entry


def _lease_of(group: str) -> str:
    """Return what stands for a group among the leases: no host's name holds a slash."""
    return f"{group}/"


def _form(url: str) -> str:
    """Return the canonical form of a URL; one that has none as it is."""
    return urls.canonical_if_any(url) or url
