"""What of contents is posted, sketches prepared together; the verdicts on what that proposes; how they leave lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import mmh3
import numpy as np
from clusterd_consumer.postings.judging import alike_of, judge, judge_many
from clusterd_consumer.postings.keys import Keys, keys_of, prepare_all, super_keys
from clusterd_consumer.postings.redis_lists import Posting, RedisLists
from clusterd_consumer.postings.scheme import Scheme, mantissa
from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.sketch import PROFILES, TEXT, Sketch

from clusterd.clusters.redis.registered import MADE, POST, STORE, Registered


class Stored(NamedTuple):
    """A content's stored sketch, and its profile."""

    sketch: bytes
    profile: int


def postings_of(
    sketches: Sequence[Sketch], registered: Sequence[Registered], scheme: Scheme, several: bool
) -> dict[int, Posting]:
    """Return what is to be posted, or only stored, by the places of the sketches: each content once.

    ``several``: contents of several homes are posted, and equal ones are to find each other.
    """
    places: dict[int, int] = {}
    for place, known in enumerate(registered):
        if known.flags & (POST | STORE):
            places.setdefault(known.content, place)
    made = prepared(sketches, places.values(), scheme)
    postings = {}
    for content, place in places.items():
        flags, (stored, keys) = registered[place].flags, made[place]
        if several:
            keys += identity_key(stored, sketches[place].profile)
        postings[place] = Posting(content, stored, keys if flags & POST else b"", flags & MADE != 0)
    return postings


def prepared(sketches: Sequence[Sketch], places: Collection[int], scheme: Scheme) -> dict[int, tuple[bytes, bytes]]:
    """Return the sketches in some places as they are stored, and their keys: those of one profile at once."""
    made: dict[int, tuple[bytes, bytes]] = {}
    for profile in {sketches[place].profile for place in places}:
        of = [place for place in places if sketches[place].profile == profile]
        streams = [sketches[place].main for place in of]
        made.update(zip(of, prepare_all(streams, PROFILES[profile], scheme), strict=True))
    return made


def identity_key(stored: bytes, profile: int) -> bytes:
    """Return one more key of a sketch that is posted in several homes: equal ones have it in common.

    Within a home equal sketches are one content; of two homes one finds the other by this, whatever lists are full.
    A page of a few words is stored alike under two profiles: that of another is to be proposed by this key no more than
    by others.
    """
    return mmh3.hash(stored, 0x1D + profile - TEXT.code, signed=False).to_bytes(4, "little")


def posted_keys(stored: bytes, profile: int, scheme: Scheme, several: bool) -> Keys:
    """Return the keys under which a stored sketch is posted; ``several``: as for `postings_of`."""
    keys = keys_of(stored, profile, scheme)
    return np.append(keys, np.frombuffer(identity_key(stored, profile), "<u4")) if several else keys


def post(
    lists: RedisLists, postings: Sequence[Posting], contents: Mapping[int, Stored], scheme: Scheme, several: bool
) -> list[dict[int, Estimate]]:
    """Post contents, and return the verdicts of each on what that proposed.

    What hardly stands in any list but common ones, and is like nothing that these propose, is posted once more: what is
    alike is found by that, and nothing told of what shares with it what all share.
    """
    found = lists.propose(postings)
    verdicts = []
    crowded: dict[int, Posting] = {}
    for place, (number, _, keys, _) in enumerate(postings):
        content = contents[number]
        verdicts.append(verdicts_on(number, content, found.documents[place], found.sketches))
        if scheme.is_crowded(len(keys) // 4 - several, found.common[place]) and not alike_of(verdicts[place]):
            crowded[place] = Posting(number, b"", super_keys(*content, scheme).tobytes())
    if crowded:
        more = lists.propose(list(crowded.values()))
        for (place, (number, *_)), proposed in zip(crowded.items(), more.documents, strict=True):
            verdicts[place] |= alike_of(verdicts_on(number, contents[number], proposed, more.sketches))
    return verdicts


def withdraw(lists: RedisLists, contents: Mapping[int, Stored], scheme: Scheme, several: bool) -> None:
    """Take contents out of all lists in which they may stand.

    Which of them were posted once more is told by their lists: common ones stay so until they are empty. One that is
    posted again (`settle`, as a policy is added) after that began such lists anew, and keeps its super-shingles: 8
    entries that name nothing, of at most as many contents as a list holds before it is common.
    """
    keys = {number: posted_keys(*content, scheme, several) for number, content in contents.items()}
    common = lists.withdraw(keys)
    crowded = (number for number, of in keys.items() if scheme.is_crowded(len(of) - several, common[number]))
    lists.withdraw({number: super_keys(*contents[number], scheme) for number in crowded})


def verdicts_on(
    number: int, content: Stored, proposed: Sequence[int], stored_of: Mapping[int, bytes]
) -> dict[int, Estimate]:
    """Return the verdict on each content that one was proposed and whose sketch is there."""
    if not proposed:  # as most are
        return {}
    candidates = {other: stored_of[other] for other in proposed if other != number and stored_of[other]}
    return judged(*content, candidates)


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
