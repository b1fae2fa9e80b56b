"""How alike two documents are, whichever of them the index keeps.

An index cuts the values of its sketches, so that different ones agree by chance: of two pages of 5,000 words that share
nothing the plain ratios say r = .037 and c = .07. So where one of the two comes from an index, both are judged as the
stream judges them, corrected for that (`clusterd_consumer.postings.judging`): a question and a cluster say the same.
"""

from __future__ import annotations

from clusterd_consumer.postings.judging import judge
from clusterd_consumer.postings.keys import prepare
from clusterd_consumer.postings.scheme import DEFAULT, mantissa
from clusterd_consumer.postings.stored import Restored
from clusterd_consumer.resemblance import NOTHING, Estimate, estimate
from clusterd_crawler.sketch import PROFILES, Profile, StreamSketch


def likeness(a: StreamSketch, b: StreamSketch, profile: Profile) -> Estimate:
    """Return the resemblance and containment of two documents; none of two that were made with different profiles.

    ``profile``: theirs, where neither is from an index. That one says with which it was made.
    """
    if not isinstance(a, Restored) and not isinstance(b, Restored):
        return estimate(a, b, profile)
    if len({made_by(one, profile) for one in (a, b) if isinstance(one, Restored)}) > 1:
        return NOTHING
    profile = made_by(a if isinstance(a, Restored) else b, profile)
    return judge(_stored(a, profile), _stored(b, profile), mantissa(profile))


def with_containment(found: Estimate, a: StreamSketch, b: StreamSketch) -> Estimate:
    """Return the same with the containments that a verdict does not claim, as they are seen through few values.

    The resemblance and the numbers of shingles say them: of A and B r (|A| + |B|) / (1 + r) are in common.
    """
    if not found.resemblance:
        return found
    common = found.resemblance * (a.shingles + b.shingles) / (1 + found.resemblance)
    a_in_b, b_in_a = (min(1.0, common / one.shingles) for one in (a, b))
    return Estimate(found.resemblance, found.a_in_b or a_in_b, found.b_in_a or b_in_a)


def made_by(sketch: StreamSketch, profile: Profile) -> Profile:
    """Return the profile that a sketch from an index was made with; of another this one."""
    return PROFILES.get(sketch.profile, profile) if isinstance(sketch, Restored) else profile


def _stored(sketch: StreamSketch, profile: Profile) -> bytes:
    return sketch.stored if isinstance(sketch, Restored) else prepare(sketch, profile, DEFAULT)[0]
