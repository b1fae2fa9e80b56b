"""Rule sets that the store or the log has lost, each made good from the other.

The store loses some where it came back from a backup, or without its last second; the log where its topic was deleted,
or made by somebody who lets Kafka delete what is old: crawls that begin then would know of no rule.

A set is saved before it is published, so one in the log that is later than the store's is one that the store had. With
it come what operators did meanwhile (rules retired, pinned and imported, URLs exempted), which no replay of pages
brings back, and rules whose pages the log no longer has. Else crawls would use other rules than the store knows:
nobody would watch them, and nobody could retire them.

Cost: some 50 µs a rule set of the log, most of which the store has.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from clusterd_crawler.errors import ClusterdError
from clusterd_crawler.rule_language.json_form import version_of
from clusterd_crawler.rules import RuleSet

from clusterd.learning.rulebook import turns
from clusterd.learning.rulebook.entries import rules_from_bytes
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.portions import portions

log = logging.getLogger(__name__)

#: Rule sets whose versions the store is asked for at a time.
PORTION: Final = 1_000


def reconcile(rules: RuleService, published: Iterable[tuple[bytes, bytes]], at: int) -> int:
    """Restore what the store has lost, announce what the log (`topics.RULES`) has lost; return how many came back."""
    logged: dict[str, int] = {}

    def noting() -> Iterator[tuple[bytes, bytes]]:
        for host, raw in published:
            name = host.decode("utf-8", "replace")
            logged[name] = max(logged.get(name, 0), version_of(raw))
            yield host, raw

    restored = restore(rules.book, noting(), at)
    _announce_lost(rules, logged)
    return restored


def _announce_lost(rules: RuleService, logged: Mapping[str, int]) -> None:
    """Announce the rule sets of which the log has no version as late as the store's."""
    lost: list[str] = []
    for portion in portions(sorted({*rules.book.hosts(), *rules.book.offered()}), PORTION):
        versions = zip(portion, rules.book.versions(portion), strict=True)
        lost += [host for host, version in versions if version > logged.get(host, 0)]
    if lost:
        log.warning("the log came without %d rule sets of the store, which are announced again", len(lost))
    for host in lost:
        rules.sets.announce(rules.book.load(host).rules)


def restore(book: RuleBook, published: Iterable[tuple[bytes, bytes]], at: int) -> int:
    """Take over what of the log (`topics.RULES`: host, rule set) is later than the book's; return how many sets."""
    restored = 0
    for portion in portions(published, PORTION):
        versions = book.versions([host.decode("utf-8", "replace") for host, _ in portion])
        for (_, raw), version in zip(portion, versions, strict=True):
            if version_of(raw) > version and (rules := _read(raw)) is not None:
                restored += _taken_over(book, rules, at)
    if restored:
        log.warning("the store came back without %d rule sets, which are restored from the log", restored)
    return restored


def _taken_over(book: RuleBook, rules: RuleSet, at: int) -> bool:
    """Save a rule set, unless somebody saves a later one first."""
    while True:
        before = book.load(rules.host)
        if before.rules.version >= rules.version:
            return False
        after = turns.restored(before, rules, at)
        if book.save(after, before):
            book.offer(after.rules)
            book.note_announced(rules.host, rules.version)
            return True


def _read(raw: bytes) -> RuleSet | None:
    """Read a published rule set; None of what cannot be read."""
    try:
        return rules_from_bytes(raw)
    except (ValueError, TypeError, KeyError, RecursionError, ClusterdError) as error:
        log.warning("a rule set in the log cannot be read and is passed over: %s", error)
        return None
