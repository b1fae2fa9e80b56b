"""Rules as ours and as duplicate-url-discarder's own processor apply them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from duplicate_url_discarder.url_canonicalizer import UrlCanonicalizer

HOST = "shop.example.com"
Process = Callable[[str], str]


def make(context: Iterable[Condition], edits: Iterable[Edit], host: str = HOST, *, spans: bool = False) -> Rule:
    context, edits = tuple(context), tuple(edits)
    return Rule(rule_id(host, context, edits), host, context, edits, spans=spans)


def on(key: str, test: Any, *values: str) -> Condition:
    return Condition(Key.parse(key) if key else Key(), test, values)


def drop(*keys: str) -> list[Edit]:
    return [Edit(Key.parse(key), "delete") for key in keys]


def keep(*names: str) -> list[Edit]:
    return [Edit(Key(), "keep", names=names)]


def ours(rules: Iterable[Rule]) -> Process:
    keys = Keys()
    by_host: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_host[rule.host].append(rule)
    for host, own in by_host.items():
        keys.load(RuleSet(host, 1, tuple(own)))
    return lambda url: keys.key(url)[0]


def theirs(text: str, folder: Path) -> Process:
    file = folder / "rules.json"
    file.write_text(text, encoding="utf-8")
    return UrlCanonicalizer([file]).process_url


def urls() -> Iterator[str]:
    """Every URL of a small grid: hosts that a pattern could leak to, paths that share beginnings, queries in parts."""
    hosts = [HOST, f"www.{HOST}", "example.com", f"a.{HOST}", f"{HOST}:8080", "other.org"]
    paths = ["/", "/a", "/a/", "/ab", "/a/b", "/a/b/", "/a/bc", "/b/a", "/a/x/b", "/x/y/b", "/b", "/a/b/c", "/v.php"]
    paths += ["/a/v.php", "/a/a", "/a//b", "/x.php/a"]
    queries = [
        "",
        "?id=1",
        "?id=2",
        "?sid=9&id=1",
        "?id=1&sid=8",
        "?sid=7",
        "?mode=m&sid=1",
        "?mode=n&sid=1",
        "?mode=m",
    ]
    queries += ["?sid=", "?sid", "?x=%2B&sid=1", "?SID=1", "?mode=m&id=1&t=3"]
    for host in hosts:
        for path in paths:
            for query in queries:
                yield f"http://{host}{path}{query}"
    for query in ("?sid=3&id=1", "?id=1"):
        yield f"https://{HOST}/a{query}"


def groups(process: Process, every: Iterable[str] | None = None) -> set[frozenset[str]]:
    """Return which of these URLs (of `urls`) are one, as Scrapy's fingerprint sees it: an empty path is the root."""
    found: dict[str, set[str]] = defaultdict(set)
    for url in urls() if every is None else every:
        result = process(url)
        found[result + "/" if result.count("/") == 2 and "?" not in result else result].add(url)
    return {frozenset(group) for group in found.values()}
