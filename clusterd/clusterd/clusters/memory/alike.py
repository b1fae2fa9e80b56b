"""What resembles a document, in memory: what lists propose, its clusters, all contents (`clusters.redis.asking`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from clusterd_consumer.postings.lists import Lists
from clusterd_consumer.postings.posted import lookup_keys, prepare
from clusterd_consumer.postings.scheme import Scheme, mantissa
from clusterd_consumer.postings.verdict import Verdict, judge, judge_many, judge_unproposed
from clusterd_crawler.sketch import PROFILES, StreamSketch

from clusterd.clusters.acceptance import WALKED, accepts
from clusterd.clusters.contract import Hit, Policy
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
) -> list[tuple[Content, Verdict]]:
    """Return the contents of a profile that resemble a query, with the verdicts, in no order."""
    stored, _ = prepare(query, PROFILES[profile], scheme)

    def judged(numbers: Iterable[int]) -> dict[int, Verdict]:
        found = [one for one in map(contents.__getitem__, numbers) if one.profile == profile]
        verdicts = judge_many(stored, [one.stored for one in found], mantissa(PROFILES[profile]))
        return {one.number: verdict for one, verdict in zip(found, verdicts, strict=True) if verdict.resemblance}

    verdicts = judged(lists.look_up(lookup_keys(query, PROFILES[profile], scheme).tolist()))
    company = ({forest.name(number): number for number in verdicts}.values() for forest in forests)
    walked = (one for forest, some in zip(forests, company, strict=True) for n in some for one in forest.members(n))
    verdicts |= judged(islice((number for number in dict.fromkeys(walked) if number not in verdicts), WALKED))
    found = [(contents[number], verdict) for number, verdict in verdicts.items()]
    if every:
        rest = [one for one in contents.values() if one.live and one.profile == profile and one.number not in verdicts]
        more = judge_unproposed(stored, [one.stored for one in rest], mantissa(PROFILES[profile]), len(contents))
        found += [(one, verdict) for one, verdict in zip(rest, more, strict=True) if verdict.resemblance]
    return found


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


def hits(found: Iterable[tuple[Content, Verdict]], cluster_of: Callable[[Content], str | None]) -> list[Hit]:
    """Return the pages that show these contents, best first."""
    pages = [Hit(url, *verdict, cluster_of(content)) for content, verdict in found for url in urls_of(content)]
    return sorted(pages, key=lambda hit: hit.rank)
