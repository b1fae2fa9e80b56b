"""MaybeDont (TeamHG-Memex, MIT): its six duplicate hypotheses, as rules.

The package (0.1.1) keeps them in memory, asks them of a URL against URLs seen, and crashes on Python 3.11 once a path
has more than 200 pages (``random.sample`` of a set). Its hypotheses are stated here over known clusters, so that the
text comparison plays no part: (1) URLs of one path are one page; those that differ in one parameter are, (2) whatever
the path, (3) on one path, (4) with one rest of the query; those that differ by param=value are, (5) anywhere, (6) on
one path. Evidence as in the package: at least five comparisons, of which some agreed; pairs on one path only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from benchmarks.baselines.contract import Clusters

#: Comparisons below which the package gives no probability.
COMPARISONS = 5

Query = tuple[tuple[str, str], ...]


class _Url(NamedTuple):
    path: str
    query: Query


def _parse(url: str) -> _Url:
    parts = urlsplit(url)
    return _Url(f"{parts.scheme}://{parts.netloc}{parts.path}", tuple(sorted(parse_qsl(parts.query, True))))


class Hypotheses:
    """The hypotheses that have evidence."""

    def __init__(self, train: Clusters) -> None:
        groups: dict[Hashable, Counter[int]] = defaultdict(Counter)
        rules_of: dict[Hashable, set[Hashable]] = defaultdict(set)
        for number, cluster in enumerate(train):
            for url in map(_parse, cluster):
                for rule, result in _hypotheses(url):
                    groups[rule, result][number] += 1
                    rules_of[rule].add(result)
                for rule, result in _value_removals(url):
                    rules_of[rule].add(result)
                groups["as it is", url][number] += 1
        self.known = {rule for rule, results in rules_of.items() if _agrees(rule, results, groups)}

    def rewrites(self, url: str) -> Iterator[tuple[Hashable, str]]:
        """Yield each hypothesis with evidence that speaks of a URL, with the URL that it makes equal."""
        parsed = _parse(url)
        for rule, result in (*_hypotheses(parsed), *_value_removals(parsed)):
            if rule in self.known:
                yield rule, result.path + ("?" + urlencode(result.query) if result.query else "")


def _hypotheses(url: _Url) -> Iterator[tuple[Hashable, _Url]]:
    """Yield hypotheses 1 to 4 for a URL."""
    yield ("path", url.path), _Url(url.path, ())
    for name, _ in url.query:
        rest = _Url(url.path, tuple(pair for pair in url.query if pair[0] != name))
        yield ("param", name), rest
        yield ("path, param", url.path, name), rest
        yield ("path, query, param", rest, name), rest


def _value_removals(url: _Url) -> Iterator[tuple[Hashable, _Url]]:
    """Yield hypotheses 5 and 6."""
    for pair in url.query:
        rest = _Url(url.path, tuple(other for other in url.query if other != pair))
        yield ("value", pair), rest
        yield ("path, value", url.path, pair), rest


def _agrees(rule: Hashable, results: set[Hashable], groups: dict[Hashable, Counter[int]]) -> bool:
    """Whether enough pairs were compared and some of them were duplicates."""
    compared = agreed = 0
    for result in results:
        clusters = groups.get((rule, result), Counter()) + groups.get(("as it is", result), Counter())
        size = clusters.total()
        compared += size * (size - 1) // 2
        agreed += sum(count * (count - 1) // 2 for count in clusters.values())
    return compared >= COMPARISONS and agreed > 0
