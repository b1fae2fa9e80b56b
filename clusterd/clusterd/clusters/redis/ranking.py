"""What posting lists hold that resembles a document: all its values are looked up, and the stored sketches decide."""

from __future__ import annotations

from clusterd_consumer.postings.posted import lookup_keys, prepare
from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import Scheme, mantissa
from clusterd_consumer.postings.verdict import Verdict, judge_many
from clusterd_crawler.sketch import Profile, StreamSketch


def ranking(lists: RedisLists, query: StreamSketch, profile: Profile, scheme: Scheme) -> list[tuple[int, Verdict]]:
    """Return the numbers of what resembles the query, each with the verdict, best first."""
    numbers = lists.look_up(lookup_keys(query, profile, scheme))
    stored_of = {number: one for number, one in lists.sketches(numbers).items() if one}
    stored, _ = prepare(query, profile, scheme)
    judged = judge_many(stored, list(stored_of.values()), mantissa(profile))
    ranked = [(n, v) for n, v in zip(stored_of, judged, strict=True) if v.resemblance]
    return sorted(ranked, key=lambda one: (-one[1].resemblance, -one[1].a_in_b))
