"""How alike two documents are, whichever of them the index keeps.

An index cuts the values of its sketches, so that different ones agree by chance: of two pages of 5,000 words that share
nothing the plain ratios say r = .037 and c = .07. So where one of the two comes from an index, both are judged as the
stream judges them, corrected for that (`clusterd_consumer.postings.verdict`): a question and a cluster say the same.
"""

from __future__ import annotations

from clusterd_consumer.postings.posted import prepare
from clusterd_consumer.postings.scheme import DEFAULT, mantissa
from clusterd_consumer.postings.stored import Restored
from clusterd_consumer.postings.verdict import judge
from clusterd_consumer.resemblance import Estimate, estimate
from clusterd_crawler.sketch import Profile, StreamSketch


def likeness(a: StreamSketch, b: StreamSketch, profile: Profile) -> Estimate:
    """Return the resemblance and containment of two documents of one profile."""
    if not isinstance(a, Restored) and not isinstance(b, Restored):
        return estimate(a, b, profile)
    verdict = judge(_stored(a, profile), _stored(b, profile), mantissa(profile))
    return Estimate(verdict.resemblance, verdict.a_in_b, verdict.b_in_a)


def _stored(sketch: StreamSketch, profile: Profile) -> bytes:
    return sketch.stored if isinstance(sketch, Restored) else prepare(sketch, profile, DEFAULT)[0]
