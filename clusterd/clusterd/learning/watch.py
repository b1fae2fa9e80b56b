"""The watch over live rules: what pages show that were fetched in spite of a rule.

A small share of would-be skips is fetched all the same. Such a page agrees when its content had been fetched before, as
the skip claimed, and contradicts when it brings a new one. A rule is retired by its `STRIKES`-th contradicting page at
the latest, unless it agreed `AGREEMENTS` times for each (a skip precision of .99 is the aim).

A rule is known by its *signature*: host, keys and edits without the values that its conditions list, because those
grow with the evidence and the record must not start anew with each. What was retired stays so until the host's evidence
has grown to `AGAIN` times its size, and is then judged with the contradicting pages in it. A family that brought
something new although it was exhausted (`families.exhausted`) has to run the longer for each such page: what it kept
out is fetched then, and was linked before what differed, so that a run of it says little of what comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from clusterd_crawler.rules import Rule

#: Contradicting pages that retire a rule …
STRIKES: Final = 3
#: … unless so many agreed for each of them.
AGREEMENTS: Final = 100
#: A retired rule may come back when the evidence is this many times as large.
AGAIN: Final = 2.0

#: Members in a row without anything new that an exhausted family takes for each page that contradicted it, on a host of
#: fewer pages of evidence: beyond, what one exception may bring is next to nothing among them.
RUN_AGAIN: Final = 200
LARGE: Final = 10_000

#: Why a rule went that no page contradicted.
NO_LONGER: Final = "its evidence no longer holds"

Signature = tuple[str, ...]


def signature(rule: Rule) -> Signature:
    """Return what stays of a rule when the values in its conditions change."""
    context = sorted(f"{condition.key} {condition.test in {'absent', 'only', 'depth'}}" for condition in rule.context)
    edits = [str(edit) for edit in rule.transformation]
    carrier = [str(condition) for condition in rule.carrier]
    return (rule.kind, rule.name, *context, "->", *edits, *carrier)


@dataclass(slots=True)
class Watch:
    """The records of one host's rules."""

    #: Rule id → signature, of every rule that was ever published.
    signatures: dict[str, Signature] = field(default_factory=dict)
    #: Signature → [agreed, contradicted].
    records: dict[Signature, list[int]] = field(default_factory=dict)
    #: Signature → pages of evidence when it was retired.
    barred: dict[Signature, int] = field(default_factory=dict)

    def publish(self, rules: tuple[Rule, ...]) -> None:
        """Note rules that go live."""
        for rule in rules:
            self.signatures[rule.id] = signature(rule)

    def explored(self, rule: str, agreed: bool) -> bool:
        """Count a page fetched in spite of a rule; true when the rule is to be retired for it."""
        known = self.signatures.get(rule)
        if known is None:
            return False
        record = self.records.setdefault(known, [0, 0])
        record[not agreed] += 1
        return not agreed and self.failed(known)

    def uncount(self, rule: str) -> None:
        """Forget one page that contradicted a rule: its crawl has taken it back, or what it was judged by."""
        known = self.signatures.get(rule, ())
        record = self.records.get(known)
        if record is not None and record[1]:
            record[1] -= 1
            if not self.failed(known):
                self.barred.pop(known, None)

    def failed(self, known: Signature) -> bool:
        """Whether too many pages contradict."""
        agreed, contradicted = self.records.get(known, (0, 0))
        return contradicted >= STRIKES and agreed < AGREEMENTS * contradicted

    def admits(self, rule: Rule, pages: int) -> bool:
        """Whether a rule may be live, with so many pages of evidence."""
        known = signature(rule)
        if known in self.barred:
            if pages < AGAIN * self.barred[known]:
                return False
            del self.barred[known]
            self.records.pop(known, None)
        if self.failed(known):
            self.barred[known] = pages
            return False
        contradicted = self.records.get(known, (0, 0))[1]
        return not rule.crawl or pages >= LARGE or rule.support >= RUN_AGAIN * contradicted

    def reason(self, rule: str) -> str:
        """Return why a rule that is no longer admitted went."""
        record = self.records.get(self.signatures.get(rule, ()))
        if record is not None and self.signatures[rule] in self.barred:
            return f"{record[1]} of {sum(record)} explored pages contradicted it"
        return NO_LONGER
