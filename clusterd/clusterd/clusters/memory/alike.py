"""What resembles a document, in memory: what lists propose, its clusters, all contents (`clusters.redis.asking`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from clusterd_consumer.postings.judging import judge, judge_many, judge_unproposed
from clusterd_consumer.postings.keys import carries, lookup_keys, prepare
from clusterd_consumer.postings.lists import Lists
from clusterd_consumer.postings.scheme import Scheme, mantissa
from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.sketch import PROFILES, StreamSketch

from clusterd.clusters.acceptance import accepts
from clusterd.clusters.contract import WALKED, Hit, Policy
from clusterd.clusters.memory.contents import Content, Fetch, neighbours, urls_of
from clusterd.clusters.memory.forest import Forest


def alike(
    query: StreamSketch,
    profile: int,
    contents: Mapping[int, Content],
    lists: Lists,
    forests: Sequence[Forest],
    scheme: Scheme,
    every: bool,
) -> list[tuple[Content, Estimate]]:
    """Return the contents of a profile that resemble a query, with the verdicts, in no order."""
    kind = PROFILES[profile]
    stored, _ = prepare(query, kind, scheme)
    keys = lookup_keys(query, kind, scheme).tolist()
    asked = frozenset(keys)

    def judged(numbers: Iterable[int]) -> dict[int, Estimate]:
        found = [one for one in map(contents.__getitem__, numbers) if one.profile == profile]
        return dict(zip((one.number for one in found), judge_many(stored, _stored(found), mantissa(kind)), strict=True))

    def unproposed(found: Sequence[Content]) -> dict[int, Estimate]:
        verdicts = judge_unproposed(stored, _stored(found), mantissa(kind), len(contents))
        return dict(zip((one.number for one in found), verdicts, strict=True))

    verdicts = {number: verdict for number, verdict in judged(lists.look_up(keys)).items() if verdict.resemblance}
    company = ({forest.name(number): number for number in verdicts}.values() for forest in forests)
    walked = (one for forest, some in zip(forests, company, strict=True) for n in some for one in forest.members(n))
    beside = [contents[n] for n in islice((n for n in dict.fromkeys(walked) if n not in verdicts), WALKED)]
    left_out = {one.number for one in beside if carries(one.stored, profile, scheme, asked)}
    verdicts |= judged(left_out)
    rest = contents.values() if every else beside
    verdicts |= unproposed([c for c in rest if c.profile == profile and c.live and c.number not in verdicts])
    return [(contents[number], verdict) for number, verdict in verdicts.items() if verdict.resemblance]


def _stored(contents: Iterable[Content]) -> list[bytes]:
    return [one.stored for one in contents]


def original(fetch: Fetch, contents: Mapping[int, Content], forest: Forest, slot: int, policy: Policy) -> int:
    """Return the text of the oldest content, neighbour or of its cluster, that is known to resemble a fetch itself."""
    content = fetch.content
    if not fetch.shingles:
        return fetch.version.text
    near = (contents[number] for number in neighbours(content, slot))
    oldest = min((one for one in (content, *near) if one.live or one is content), key=lambda one: one.number)
    first = contents[min(forest.members(content.number))]
    if first.live and first.number < oldest.number and first.profile == content.profile:
        verdict = judge(content.stored, first.stored, mantissa(PROFILES[content.profile]))
        return first.text if accepts(policy, verdict) else oldest.text
    return oldest.text


def hits(found: Iterable[tuple[Content, Estimate]], cluster_of: Callable[[Content], str | None]) -> list[Hit]:
    """Return the pages that show these contents, best first."""
    pages = [Hit(url, *verdict, cluster_of(content)) for content, verdict in found for url in urls_of(content)]
    return sorted(pages, key=lambda hit: hit.rank)
