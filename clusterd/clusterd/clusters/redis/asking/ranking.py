"""What posting lists hold that resembles a document: all its values are looked up, and the stored sketches decide.

Keys have 32 bits: of a store of millions of pages a long query is proposed some by chance, also pages of another
profile, whose stored sketches cannot even be read as ones of its own. They carry none of the keys asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clusterd_consumer.postings.judging import judge_unproposed
from clusterd_consumer.postings.keys import carries, lookup_keys
from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import Scheme, mantissa
from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.sketch import Profile, StreamSketch

from clusterd.clusters.redis.posting import judged


def rankings(
    lists: RedisLists, queries: Sequence[StreamSketch], stored: Sequence[bytes], profile: Profile, scheme: Scheme
) -> list[dict[int, Estimate]]:
    """Return the numbers of what resembles each query, each with the verdict, best first.

    ``stored``: the queries as they would be stored.
    """
    keys = [lookup_keys(query, profile, scheme) for query in queries]
    proposed, _ = lists.look_up([one.tobytes() for one in keys])
    stored_of = lists.sketches({number for numbers in proposed for number in numbers})
    found = []
    for own, one, numbers in zip(stored, keys, proposed, strict=True):
        asked = frozenset(one.tolist())
        known = {number: other for number in numbers if (other := stored_of[number])}
        posted = {n: other for n, other in known.items() if carries(other, profile.code, scheme, asked)}
        found.append(ranked(judged(own, profile.code, posted)))
    return found


def of_company(
    query: StreamSketch, stored: bytes, profile: Profile, scheme: Scheme, stored_of: dict[int, bytes], among: int
) -> dict[int, Estimate]:
    """Return the verdicts on pages of the clusters of what was proposed.

    One that carries a key asked for was left out by a list that is bounded: it is judged like what lists propose. The
    others have no more in common with the query than pages of other clusters do, unless it is more than chance brings.
    """
    found = unproposed(stored, profile, stored_of, among)
    asked = frozenset(lookup_keys(query, profile, scheme).tolist())
    others = ((number, one) for number, one in stored_of.items() if number not in found)
    left_out = {number: one for number, one in others if carries(one, profile.code, scheme, asked)}
    return found | judged(stored, profile.code, left_out)


def unproposed(stored: bytes, profile: Profile, stored_of: dict[int, bytes], among: int) -> dict[int, Estimate]:
    """Return the verdicts on those, of so many that were looked at, that have more in common than chance brings."""
    verdicts = judge_unproposed(stored, list(stored_of.values()), mantissa(profile), among)
    return {number: verdict for number, verdict in zip(stored_of, verdicts, strict=True) if verdict.resemblance}


def ranked(verdicts: dict[int, Estimate]) -> dict[int, Estimate]:
    """Put what resembles at all in order, best first."""
    found: Iterable[tuple[int, Estimate]] = ((n, v) for n, v in verdicts.items() if v.resemblance)
    return dict(sorted(found, key=lambda one: (-one[1].resemblance, -one[1].a_in_b)))
