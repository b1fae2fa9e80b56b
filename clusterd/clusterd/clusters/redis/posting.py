"""What of a registered batch is posted, its sketches prepared together; and the verdicts on what that proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import mmh3
import numpy as np
from clusterd_consumer.postings.posted import Keys, keys_of, prepare_all
from clusterd_consumer.postings.redis_lists import Posting
from clusterd_consumer.postings.scheme import Scheme, mantissa
from clusterd_consumer.postings.verdict import judge, judge_many
from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.sketch import PROFILES, TEXT, Sketch

from clusterd.clusters.redis.registered import MADE, POST, STORE, Registered


def postings_of(
    sketches: Sequence[Sketch], registered: Sequence[Registered], scheme: Scheme, several: bool = False
) -> dict[int, Posting]:
    """Return what is to be posted, or only stored, by the places of the sketches: each content once.

    ``several``: contents of several homes are posted, and equal ones are to find each other.
    """
    places: dict[int, int] = {}
    for place, known in enumerate(registered):
        if known.flags & (POST | STORE):
            places.setdefault(known.content, place)
    made: dict[int, tuple[bytes, bytes]] = {}
    for profile in {sketches[place].profile for place in places.values()}:
        of = [place for place in places.values() if sketches[place].profile == profile]
        streams = [sketches[place].main for place in of]
        made.update(zip(of, prepare_all(streams, PROFILES[profile], scheme), strict=True))
    postings = {}
    for content, place in places.items():
        flags, (stored, keys) = registered[place].flags, made[place]
        if several:
            keys += identity_key(stored, sketches[place].profile)
        postings[place] = Posting(content, stored, keys if flags & POST else b"", flags & MADE != 0)
    return postings


def identity_key(stored: bytes, profile: int) -> bytes:
    """Return one more key of a sketch that is posted in several homes: equal ones have it in common.

    Within a home equal sketches are one content; of two homes one finds the other by this, whatever lists are full.
    A page of a few words is stored alike under two profiles: that of another is to be proposed by this key no more than
    by others.
    """
    return mmh3.hash(stored, 0x1D + profile - TEXT.code, signed=False).to_bytes(4, "little")


def posted_keys(stored: bytes, profile: int, scheme: Scheme, homes: int) -> Keys:
    """Return the keys under which a stored sketch is posted in a store of so many homes."""
    keys = keys_of(stored, profile, scheme)
    return np.append(keys, np.frombuffer(identity_key(stored, profile), "<u4")) if homes > 1 else keys


def verdicts_on(
    posting: Posting, profile: int, proposed: Sequence[int], stored_of: Mapping[int, bytes]
) -> dict[int, Estimate]:
    """Return the verdict on each content that a posting was proposed and whose sketch is there."""
    if not proposed:  # as most are
        return {}
    candidates = {number: stored_of[number] for number in proposed if number != posting.number and stored_of[number]}
    return judged(posting.stored, profile, candidates)


def judged(stored: bytes, profile: int, candidates: Mapping[int, bytes]) -> dict[int, Estimate]:
    """Return the verdict on each candidate's stored sketch.

    Keys have 32 bits: now and then one proposes a page of another profile, whose sketch cannot be read as one of this.
    """
    bits = mantissa(PROFILES[profile])
    try:
        return dict(zip(candidates, judge_many(stored, list(candidates.values()), bits), strict=True))
    except (ValueError, IndexError):
        readable: dict[int, Estimate] = {}
        for number, candidate in candidates.items():
            with suppress(ValueError, IndexError):
                readable[number] = judge(stored, candidate, bits)
        return readable
