"""Posting lists as bytes: which bucket a key lies in, how an entry is added to it, and what a bucket says.

The multimap from keys (32 bits) to documents (32 bits) lies in string buckets that grow one at a time (linear hashing,
Litwin 1980). Buckets are written and read by native commands, and never pass through Lua:

    plan    keys → the appending of their entries, and the reading of their buckets with the number of buckets
    find    what was read → who else is there, and which keys are **odd**: `lua/mend.lua` looks at those
    fill    stored sketches → what is appended to their blocks (`lua/blocks.lua`)
    pick    what was read of blocks → the stored sketches of some documents

    bucket   entries of 7 bytes, oldest first: upper 3 bytes of the key, document (little-endian; 0: withdrawn)
    step     16 bytes: bucket, key, document, place of the document in its batch; by bucket, else in that order

With b buckets and L the power of two at most b, the buckets below L are split in the order of their numbers with the
bits turned round: a key lies in bucket key mod 2L where that order of key mod L is below b - L, else in bucket key mod
L. So every bucket is split when the table has doubled since it was made (in Litwin's order, when it has grown twofold
to threefold), which is as far as an APPEND makes room ahead. There are never fewer than 256 buckets, so the number of a
bucket tells the lowest byte of its keys.

The number of buckets that a client knows may be old. It is read again in the one command that reads the buckets, so a
key that now belongs elsewhere is seen to be odd. Odd is, too, a key whose list is common (an entry with the document
`COMMON`), is longer than its bound, or does not hold the document once.

    sources, split   which buckets are to be split, and their halves: `lua/swap.lua` puts these in their place
    strikes          where entries lie that are to be withdrawn: `lua/withdraw.lua` overwrites them

Cost: O(entries of the buckets), compiled (`core/_buckets.c`) .1 µs for a key, 10 µs here; both give the same bytes.
What was read is the server's reply as it came: a batch reads 400 kB, which is looked at where it lies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from clusterd_consumer.core.compiled import BUCKETS as CORE
from clusterd_consumer.redis_replies import strings

#: Fewest buckets of a table.
FIRST: Final = 256
#: In place of a document: the list of this key is common.
COMMON: Final = 0xFFFFFFFF
COMMON_BYTES: Final = COMMON.to_bytes(4, "little")
ENTRY: Final = struct.Struct("<3sI")
STEP: Final = struct.Struct("<4I")
#: Where an entry's document is struck: bucket, offset.
STRIKE: Final = struct.Struct("<2I")
#: What is to be withdrawn: document, key.
PAIR: Final = struct.Struct("<2I")
NOBODY: Final = bytes(4)
#: What stands before a sketch in its block: its place (5 bits) and its length.
SKETCH: Final = struct.Struct("<I")

#: A reply as it came: a list of strings.
Reply = bytes | memoryview
#: (document, its keys, 4 bytes each)
Posted = tuple[int, bytes]
#: (bucket, key, document, place)
Step = tuple[int, int, int, int]


def bucket_of(key: int, buckets: int) -> int:
    """Return the bucket of a key among so many."""
    depth = buckets.bit_length() - 1
    bucket = key % (1 << depth)
    turned = int(f"{bucket:0{depth}b}"[::-1], 2)
    return key % (2 << depth) if turned < buckets - (1 << depth) else bucket


def plan(
    prefix: bytes, last: bytes, documents: list[Posted], buckets: int, shard: int, shards: int
) -> tuple[bytes, int, bytes, bytes]:
    """Return the APPENDs of these documents' entries and their number, the MGET of their buckets, and the steps.

    ``last`` is the key that is read after the buckets: of their number. Keys of other shards are left out.
    """
    if CORE is not None:
        planned: tuple[bytes, int, bytes, bytes] = CORE.plan(prefix, last, documents, buckets, shard, shards)
        return planned
    steps = sorted(_steps(documents, buckets, shard, shards), key=lambda step: step[0])
    appends, reads = [], [b"MGET"]
    for bucket, group in groupby(steps, key=lambda step: step[0]):
        key = b"%s%d" % (prefix, bucket)
        entries = b"".join(ENTRY.pack(key_of.to_bytes(4, "little")[1:], number) for _, key_of, number, _ in group)
        appends.append(_packed([b"APPEND", key, entries]))
        reads.append(key)
    return b"".join(appends), len(appends), _packed([*reads, last]), b"".join(STEP.pack(*step) for step in steps)


def find(steps: bytes, documents: int, bound: int, looking: bool, reply: Reply) -> tuple[list[list[int]], bytes, int]:
    """Return for each document the others in its lists, ascending, the odd steps, and how many buckets there are.

    ``looking``: the documents are not in their lists; ``reply``: to what `plan` reads.
    """
    if CORE is not None:
        found: tuple[list[list[int]], bytes, int] = CORE.find(steps, reply, documents, bound, looking)
        return found
    others: list[set[int]] = [set() for _ in range(documents)]
    odd: list[bytes] = []
    values, buckets = _read(reply)
    groups = groupby(STEP.iter_unpack(steps), key=lambda step: step[0])
    for (bucket, group), value in zip(groups, values, strict=True):
        for _, key, number, place in group:
            tag = key.to_bytes(4, "little")[1:]
            listed = [one for head, one in _entries(value) if head == tag and one]
            good = COMMON not in listed and (looking or (listed.count(number) == 1 and len(listed) <= bound))
            if bucket_of(key, buckets) == bucket and good:
                others[place].update(one for one in listed if one != number)
            else:
                odd.append(STEP.pack(bucket, key, number, place))
    return [sorted(one) for one in others], b"".join(odd), buckets


def sources(buckets: int, wanted: int) -> list[int]:
    """Return the buckets that are split, in order, on the way to so many, but none that such a split has made."""
    depth = buckets.bit_length() - 1
    first = buckets - (1 << depth)
    last = min(wanted - (1 << depth), 1 << depth)
    return [int(f"{order:0{depth}b}"[::-1], 2) for order in range(first, last)]


def split(value: bytes | None, bucket: int, buckets: int) -> tuple[bytes, bytes, int]:
    """Return the two halves of a bucket among so many, and how many entries were dropped that do not belong in it.

    Such an entry was written when the bucket was another: its writer sees. What was withdrawn is left out uncounted.
    """
    depth = buckets.bit_length() - 1
    if CORE is not None:
        halves: tuple[bytes, bytes, int] = CORE.split(value, bucket, depth)
        return halves
    low: list[bytes] = []
    high: list[bytes] = []
    dropped = 0
    for tag, number in _entries(value or b""):
        key = int.from_bytes(tag, "little") << 8 | bucket & 255
        if number and key % (1 << depth) != bucket:
            dropped += 1
        elif number:
            (high if key >> depth & 1 else low).append(ENTRY.pack(tag, number))
    return b"".join(low), b"".join(high), dropped


def strikes(steps: bytes, reply: Reply) -> tuple[bytes, bytes, bytes, int]:
    """Return where the documents of these steps are struck, the buckets of which then a quarter is dead, and the rest.

    A document may stand under a key twice, where a worker died at posting what another posted, too. The rest,
    (document, key)*: what is not in its bucket, or under a common key. Whether a quarter is dead is not counted: one
    entry speaks for all, that before which a quarter stand, since the oldest mostly go first. Last: how many buckets
    there are.
    """
    if CORE is not None:
        found: tuple[bytes, bytes, bytes, int] = CORE.strikes(steps, reply)
        return found
    struck: list[bytes] = []
    spent: list[bytes] = []
    rest: list[bytes] = []
    values, buckets = _read(reply)
    for (bucket, group), value in zip(groupby(STEP.iter_unpack(steps), key=lambda step: step[0]), values, strict=True):
        entries = bytearray(value)
        before, common = len(struck), COMMON_BYTES in entries
        for _, key, number, _ in group:
            tag = key.to_bytes(4, "little")[1:]
            entry = tag + number.to_bytes(4, "little")
            at = _entry_at(entries, entry)
            if at < 0 or (common and _entry_at(entries, tag + COMMON_BYTES) >= 0):
                rest.append(PAIR.pack(number, key))
                continue
            while at >= 0:
                entries[at + 3 : at + 7] = NOBODY
                struck.append(STRIKE.pack(bucket, at + 3))
                at = _entry_at(entries, entry, at + ENTRY.size)
        quarter = len(entries) // ENTRY.size // 4 * ENTRY.size
        if len(struck) > before and entries[quarter + 3 : quarter + 7] == NOBODY:
            spent.append(bucket.to_bytes(4, "little"))
    return b"".join(struck), b"".join(spent), b"".join(rest), buckets


def _read(reply: Reply) -> tuple[list[bytes], int]:
    """Return the buckets of a reply, and their number, which stands behind them."""
    *values, buckets = strings(reply)
    return [value or b"" for value in values], int(buckets or FIRST)


def _entries(value: bytes) -> Iterator[tuple[bytes, int]]:
    """Return the entries of a bucket; what is no whole one, at its end, is passed over."""
    return ENTRY.iter_unpack(value[: len(value) // ENTRY.size * ENTRY.size])


def _entry_at(entries: bytearray, entry: bytes, begin: int = 0) -> int:
    """Return where an entry begins, from a place on, -1 where it is not."""
    at = entries.find(entry, begin)
    while at >= 0 and at % ENTRY.size:
        at = entries.find(entry, at + 1)
    return at


def fill(sketches: list[tuple[int, bytes]], size: int) -> list[tuple[int, int, bool, bytes]]:
    """Return what is appended to each block: (block, how many sketches, whether the last of its places, bytes).

    ``sketches``: (document, bytes), ascending; ``size``: sketches of a block (`lua/blocks.lua`).
    """
    if CORE is not None:
        filled: list[tuple[int, int, bool, bytes]] = CORE.fill(sketches, size)
        return filled
    blocks = []
    for block, group in groupby(sketches, key=lambda one: one[0] // size):
        entries = [(number % size, stored) for number, stored in group]
        data = b"".join(SKETCH.pack(place | len(stored) << 5) + stored for place, stored in entries)
        blocks.append((block, len(entries), entries[-1][0] == size - 1, data))
    return blocks


def pick(numbers: bytes, size: int, reply: Reply) -> list[bytes]:
    """Return the sketches of documents from their blocks (`lua/blocks.lua`), empty where there is none.

    ``numbers``: of the documents, ascending, 4 bytes each; ``size``: sketches of a block; ``reply``: the blocks.
    """
    if CORE is not None:
        picked: list[bytes] = CORE.pick(numbers, size, reply)
        return picked
    wanted = [number for (number,) in struct.iter_unpack("<I", numbers)]
    blocks = dict(zip(dict.fromkeys(number // size for number in wanted), strings(reply), strict=True))
    return [_sketch_at(blocks[number // size] or b"", number % size) for number in wanted]


def _sketch_at(block: bytes, place: int) -> bytes:
    """Return the sketch at a place of a block.

    Of several the last: where a cluster's node with the home shard came back without its last second, numbers are given
    anew, and the sketches' node still has what had them before.
    """
    at, found = 0, b""
    while at < len(block):
        (head,) = SKETCH.unpack_from(block, at)
        length = head >> 5
        at += SKETCH.size + length
        if head & 31 == place:
            found = block[at - length : at]
    return found


def _steps(documents: Sequence[Posted], buckets: int, shard: int, shards: int) -> Iterator[Step]:
    for place, (number, keys) in enumerate(documents):
        for (key,) in struct.iter_unpack("<I", keys):
            if (key >> 16) % shards == shard:
                yield bucket_of(key, buckets), key, number, place


def _packed(words: Sequence[bytes]) -> bytes:
    """Return a command as Redis reads it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
