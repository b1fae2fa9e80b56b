"""What posting lists hold that resembles a document: all its values are looked up, and the stored sketches decide.

Keys have 32 bits: of a store of millions of pages a long query is proposed some by chance, also pages of another
profile, whose stored sketches cannot even be read as ones of its own. They carry none of the keys asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from clusterd_consumer.postings.posted import keys_of, lookup_keys, prepare
from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import Scheme, mantissa
from clusterd_consumer.postings.verdict import Verdict, judge_many, judge_unproposed
from clusterd_crawler.sketch import Profile, StreamSketch


def ranking(lists: RedisLists, query: StreamSketch, profile: Profile, scheme: Scheme) -> dict[int, Verdict]:
    """Return the numbers of what resembles the query, each with the verdict, best first."""
    keys = lookup_keys(query, profile, scheme)
    asked = frozenset(keys.tolist())
    stored_of = lists.sketches(lists.look_up(keys))
    posted = {n: one for n, one in stored_of.items() if one and _is_posted(one, profile, scheme, asked)}
    return ranked(judged(posted, query, profile, scheme))


def judged(stored_of: dict[int, bytes], query: StreamSketch, profile: Profile, scheme: Scheme) -> dict[int, Verdict]:
    """Return the verdicts on the query and stored sketches of its profile."""
    stored, _ = prepare(query, profile, scheme)
    return dict(zip(stored_of, judge_many(stored, list(stored_of.values()), mantissa(profile)), strict=True))


def unproposed(
    stored_of: dict[int, bytes], query: StreamSketch, profile: Profile, scheme: Scheme, among: int
) -> dict[int, Verdict]:
    """Return the verdicts on those, of so many that were looked at, that have more in common than chance brings."""
    stored, _ = prepare(query, profile, scheme)
    verdicts = judge_unproposed(stored, list(stored_of.values()), mantissa(profile), among)
    return {number: verdict for number, verdict in zip(stored_of, verdicts, strict=True) if verdict.resemblance}


def ranked(verdicts: dict[int, Verdict]) -> dict[int, Verdict]:
    """Put what resembles at all in order, best first."""
    found: Iterable[tuple[int, Verdict]] = ((n, v) for n, v in verdicts.items() if v.resemblance)
    return dict(sorted(found, key=lambda one: (-one[1].resemblance, -one[1].a_in_b)))


def _is_posted(stored: bytes, profile: Profile, scheme: Scheme, asked: frozenset[int]) -> bool:
    """Whether a stored sketch, read as one of this profile, carries one of the keys asked for."""
    try:
        return not asked.isdisjoint(keys_of(stored, profile.code, scheme).tolist())
    except (ValueError, IndexError):  # not one of this profile
        return False
