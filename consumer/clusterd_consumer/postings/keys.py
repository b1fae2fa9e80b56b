"""The keys under which a sketch is posted and looked up: 32 bits each, the same in memory, in Redis and in the batch.

**Prefix** (the default): the few smallest values, and one value in ``modulus`` of all. The smallest values find
documents of like length; of a small document they are not among the smallest of a large one that holds it, but its
sampled values are sampled there too (Broder 1997, section 3: containment needs V, not F). Which values are sampled is
a function of their code, so that the keys can be made again from the stored sketch alone (for a new policy, or to take
a departed document out of its lists).

**Super-shingles** (section 5.3): runs of ``run`` consecutive codes, of which the smallest ``supers`` fingerprints are
the meta-sketch; one in common proposes the pair. Cheaper, no containment, weak on short texts.

    key = fmix32(fmix32(code + profile * 0x9E3779B1) ^ low bits of the value * 0x85EBCA6B)

The low bits are 24 where the code is sampled, and 16 elsewhere. One code in 64 is sampled, some 32 of an octave, in
which half of all documents' sampled values lie: with 16 bits there would be two million keys for them, and every page
of a crawl of ten million would be proposed twenty others that share nothing with it.

**Both**: a document that stands in hardly any list but common ones, as a page of a site with a long notice in its text,
is posted by its super-shingles as well (`Scheme.is_crowded`): of a run of four values one is its own more often.

Cost: O(values).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from clusterd_crawler.sketch import PROFILES, Profile, StreamSketch

from clusterd_consumer.core.compiled import CORE
from clusterd_consumer.postings.scheme import Scheme, mantissa
from clusterd_consumer.postings.stored import Codes, Restored, Values, count_of, cut, ordered, pack, unpack

#: Ascending; "<u4" on every machine, since their bytes are written and compared.
Keys = npt.NDArray[np.uint32]

GOLDEN: Final = 0x9E3779B1


def fmix32(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return MurmurHash3's 32-bit finalizer of each word."""
    h = words.astype(np.uint32)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))


def prepare(sketch: StreamSketch, profile: Profile, scheme: Scheme) -> tuple[bytes, Keys]:
    """Return the stored form of a sketch and the keys under which it is posted."""
    ((stored, keys),) = prepare_all([sketch], profile, scheme)
    return stored, np.frombuffer(keys, "<u4")


def prepare_all(sketches: Sequence[StreamSketch], profile: Profile, scheme: Scheme) -> list[tuple[bytes, bytes]]:
    """Return of each sketch the stored form and the keys, 4 bytes each."""
    if CORE is None or profile.kind == "v":
        return [_prepared(sketch, profile, scheme) for sketch in sketches]
    by_supers = scheme.candidates == "super"
    posted = (0, 0, 0, 0) if by_supers else (scheme.prefix, scheme.small_prefix, scheme.small, scheme.modulus)
    sampled = profile.kind == "mod"
    packed: list[tuple[bytes, bytes]] = CORE.pack(list(sketches), mantissa(profile), sampled, profile.code, *posted)
    if by_supers:
        chosen = scheme.run, scheme.supers, profile.code
        return [(stored, CORE.supers(stored, mantissa(profile), *chosen)) for stored, _ in packed]
    return packed


def _prepared(sketch: StreamSketch, profile: Profile, scheme: Scheme) -> tuple[bytes, bytes]:
    values = ordered(sketch, profile)
    codes = cut(values, mantissa(profile))
    if scheme.candidates == "super":
        return pack(sketch, profile, codes, b""), _supers(codes, profile.code, scheme).tobytes()
    chosen = _chosen(codes, scheme)
    kept = _low_bytes(values[chosen], _sampled(codes[chosen], scheme))
    return pack(sketch, profile, codes, kept), _keys(values[chosen], codes[chosen], profile.code, scheme).tobytes()


def keys_of(stored: bytes, profile_code: int, scheme: Scheme) -> Keys:
    """Return the keys under which a stored sketch is posted."""
    bits = mantissa(PROFILES[profile_code])
    if scheme.candidates == "super":
        return super_keys(stored, profile_code, scheme)
    if CORE is not None:
        smallest = scheme.smallest(count_of(stored))
        return np.frombuffer(CORE.keys(stored, bits, smallest, scheme.modulus, profile_code), "<u4")
    decoded = unpack(stored, bits)
    codes = decoded.codes[_chosen(decoded.codes, scheme)]
    return _keys(_low_values(decoded.extras, _sampled(codes, scheme)), codes, profile_code, scheme)


def super_keys(stored: bytes, profile_code: int, scheme: Scheme) -> Keys:
    """Return the keys of a stored sketch's smallest super-shingles."""
    bits = mantissa(PROFILES[profile_code])
    if CORE is not None:
        return np.frombuffer(CORE.supers(stored, bits, scheme.run, scheme.supers, profile_code), "<u4")
    return _supers(unpack(stored, bits).codes, profile_code, scheme)


def lookup_keys(query: StreamSketch, profile: Profile, scheme: Scheme) -> Keys:
    """Return the keys that a query is looked up by: of all its values, or of those that an index has kept of it.

    Those under which it would be posted if its lists were common are among them.
    """
    if isinstance(query, Restored):
        own, supers = keys_of(query.stored, profile.code, scheme), super_keys(query.stored, profile.code, scheme)
    else:
        values = ordered(query, profile)
        own = every_key(values, profile, scheme)
        supers = _supers(cut(values, mantissa(profile)), profile.code, scheme)
    return np.union1d(own, supers)


def carries(stored: bytes, profile_code: int, scheme: Scheme, asked: frozenset[int]) -> bool:
    """Whether a stored sketch, read as one of this profile, is posted under one of the keys asked for."""
    try:
        return not asked.isdisjoint(keys_of(stored, profile_code, scheme).tolist())
    except (ValueError, IndexError):  # not one of this profile
        return False


def every_key(values: Values, profile: Profile, scheme: Scheme) -> Keys:
    """Return the keys of all values, posted or not: an on-the-fly query looks up everything it has."""
    codes = cut(values, mantissa(profile))
    if scheme.candidates == "super":
        return _windows(codes, profile.code, scheme)
    return _keys(values, codes, profile.code, scheme)


def _chosen(codes: Codes, scheme: Scheme) -> npt.NDArray[np.bool_]:
    """Return which of the values are posted."""
    chosen = _sampled(codes, scheme)
    chosen[: scheme.smallest(len(codes))] = True
    return chosen


def _sampled(codes: Codes, scheme: Scheme) -> npt.NDArray[np.bool_]:
    """Return the values of which codes are sampled."""
    if not scheme.modulus:
        return np.zeros(len(codes), np.bool_)
    sampled: npt.NDArray[np.bool_] = fmix32(codes * np.uint32(GOLDEN)) % np.uint32(scheme.modulus) == 0
    return sampled


def _low_bytes(values: Values, sampled: npt.NDArray[np.bool_]) -> bytes:
    """Return the low 2 or 3 bytes of each value."""
    octets = values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :3]
    kept = np.ones(octets.shape, np.bool_)
    kept[:, 2] = sampled
    return octets[kept].tobytes()


def _low_values(kept: bytes, sampled: npt.NDArray[np.bool_]) -> Values:
    """Return the low bits of values from those bytes."""
    octets = np.zeros((len(sampled), 8), np.uint8)
    there = np.zeros(octets.shape, np.bool_)
    there[:, :2] = True
    there[:, 2] = sampled
    octets[there] = np.frombuffer(kept, np.uint8)
    return octets.view("<u8").reshape(-1).astype(np.uint64)


def _keys(values: Values, codes: Codes, profile: int, scheme: Scheme) -> Keys:
    salt = np.uint32(profile * GOLDEN & 0xFFFFFFFF)
    low = values & np.where(_sampled(codes, scheme), np.uint64(0xFFFFFF), np.uint64(0xFFFF))
    mixed = fmix32(codes + salt) ^ low.astype(np.uint32) * np.uint32(0x85EBCA6B)
    return np.unique(fmix32(mixed)).astype("<u4", copy=False)


def _windows(codes: Codes, profile: int, scheme: Scheme) -> Keys:
    """Return the fingerprints of all super-shingles; a sketch shorter than a run has one."""
    if len(codes) == 0:
        return np.zeros(0, np.uint32)
    run = min(scheme.run, len(codes))
    count = len(codes) - run + 1
    mixed = np.full(count, profile * GOLDEN & 0xFFFFFFFF, np.uint32)
    for at in range(run):
        mixed = fmix32(mixed ^ fmix32(codes[at : at + count] + np.uint32(at * GOLDEN & 0xFFFFFFFF)))
    return np.unique(mixed).astype("<u4", copy=False)


def _supers(codes: Codes, profile: int, scheme: Scheme) -> Keys:
    return _windows(codes, profile, scheme)[: scheme.supers]
