"""Rule sets that the store has lost, read from the log: it came back from a backup, or without its last second.

A set is saved before it is published, so one in the log that is later than the store's is one that the store had. With
it come what operators did meanwhile (rules retired, pinned and imported, URLs exempted), which no replay of pages
brings back, and rules whose pages the log no longer has. Else crawls would use other rules than the store knows:
nobody would watch them, and nobody could retire them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from clusterd_crawler.errors import ClusterdError
from clusterd_crawler.rules import RuleSet

from clusterd.learning.rulebook import turns
from clusterd.learning.rulebook.contract import RuleBook
from clusterd.learning.rulebook.entries import rules_from_bytes

log = logging.getLogger(__name__)


def restore(book: RuleBook, published: Iterable[bytes], at: int) -> int:
    """Take over the rule sets of the log (`topics.RULES`) that are later than the book's; return how many were."""
    restored = 0
    for raw in published:
        rules = _read(raw)
        if rules is not None and rules.version > book.version(rules.host):
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
    """Read a published rule set; None of a deleted key, and of what cannot be read."""
    if not raw:
        return None
    try:
        return rules_from_bytes(raw)
    except (ValueError, TypeError, KeyError, RecursionError, ClusterdError) as error:
        log.warning("a rule set in the log cannot be read and is passed over: %s", error)
        return None
