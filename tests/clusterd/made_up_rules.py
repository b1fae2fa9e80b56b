"""A host whose pages say that ``sid`` means nothing, the least learner that finds it, and where its rules go."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace

from clusterd.learning.contract import Page
from clusterd.learning.rulebook.entries import rules_from_bytes
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd_crawler import topics
from clusterd_crawler.errors import NotFound
from clusterd_crawler.rule_language.json_form import rule_set_from_json
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.sketch import Sketch, StreamSketch

HOST = "example.com"
SID = Key("sid")


def sid_rule(host: str = HOST, key: Key = SID) -> Rule:
    context, edits = (Condition(key, "any"),), (Edit(key, "delete"),)
    return Rule(rule_id(host, context, edits), host, context, edits)


def offered_set(book: RuleBook, host: str) -> RuleSet | None:
    """The rule set that crawlers would load now."""
    found = book._client.hget(f"{book._prefix}rules", host)
    return None if found is None else rules_from_bytes(found)


class SidLearner:
    """The least learner that is one: drops ``sid`` once three pages agree, until a watched page differs."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.pages: list[Page] = []
        self.live = False
        self.said: bool | None = False
        self.barred: set[str] = set()

    def observe(self, pages: Iterable[Page]) -> None:
        self.pages += (page for page in pages if page.is_witness)

    def due(self) -> bool:
        return bool(self.pages)

    def learn(self, at: int) -> RuleSet | None:
        content = {page.url: page.content for page in self.pages}
        bare = [(page.url.partition("?sid=")[0], page.content) for page in self.pages if "sid=" in page.url]
        agreed = sum(content.get(url) == seen for url, seen in bare)
        failed = any(content.get(page.instead_of) != page.content for page in self.pages if page.explored)
        rule = replace(sid_rule(self.host), support=agreed)
        before, self.live = self.live, agreed >= 3 and not failed and rule.id not in self.barred
        gone = ((rule.id, "a watched page differed"),) if before and not self.live else ()
        return RuleSet(self.host, 1, (rule,) if self.live else (), gone)

    def retire(self, rule: str, reason: str) -> RuleSet:
        if not self.live:
            raise NotFound(rule)
        self.barred.add(rule)
        self.live = False
        return RuleSet(self.host, 1, ())

    def pin(self, rule: str, at: int) -> RuleSet:
        return RuleSet(self.host, 1, (replace(sid_rule(self.host), state="pinned"),))


class Once(SidLearner):
    """Learns nothing more once it has said its rule."""

    def due(self) -> bool:
        return not self.live


class Log:
    """Where rule sets are published to."""

    def __init__(self) -> None:
        self.sets: list[RuleSet] = []

    def publish(self, topic: str, key: bytes, value: bytes) -> None:
        rules = rule_set_from_json(json.loads(value))
        assert topic == topics.RULES
        assert key == rules.host.encode()
        self.sets.append(rules)


Serve = Callable[..., RuleService]


def sketch(url: str, text: int, at: int = 1, **changes: object) -> Sketch:
    stream = StreamSketch(b"", 0, 100, text)
    made = Sketch(url, at, 1, text, stream, stream, text)
    return replace(made, **changes)  # type: ignore[arg-type]


def duplicates(count: int = 3, host: str = HOST, at: int = 1) -> list[Sketch]:
    pages = []
    for number in range(count):
        pages.append(sketch(f"http://{host}/{number}", 10 + number, at))
        pages.append(sketch(f"http://{host}/{number}?sid=x{number}", 10 + number, at + 1))
    return pages


def contradiction(number: int = 0, at: int = 9) -> Sketch:
    known, rule = f"http://{HOST}/{number}", sid_rule().id
    return sketch(f"{known}?sid=other", 999, at, explored=rule, instead_of=known)
