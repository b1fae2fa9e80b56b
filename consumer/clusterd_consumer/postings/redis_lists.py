"""Postings and stored sketches on Redis: on one, or spread over the shards of a Redis Cluster.

A shard is a hash slot: ``PREFIX{tag}`` (`hash_tags`). A posting lies in the shard of its key, a sketch in that of its
block. A batch is one round trip that stores, posts and reads the buckets by native commands, one for what is odd, where
anything is, and one that reads the candidates' sketches; where there are several shards, the sketches are stored by a
round trip of their own, before anything is posted. So of two documents that are posted at once at least one sees the
other, with its sketch: each is written in its place, and only then looks. Every step may be repeated.

Layout: `buckets`, `lua/buckets.lua`, `lua/blocks.lua`. Cost: about 1.3 µs of the server's time for a posting.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any, Final, NamedTuple

import hiredis

from clusterd_consumer.postings.buckets import (
    COMMON,
    COMMON_BYTES,
    FIRST,
    PAIR,
    STEP,
    Posted,
    bucket_of,
    fill,
    find,
    pick,
    plan,
    sources,
    split,
    strikes,
)
from clusterd_consumer.postings.keys import Keys
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.redis_scripts import FREES, Calls, Library, Request, Script, command, function, packed_numbers

LUA: Final = files("clusterd_consumer.postings") / "lua"
#: Sketches of a block (`lua/blocks.lua`).
PACK: Final = 21
#: Entries of a bucket (`lua/buckets.lua`); buckets by which a table may lag behind, so that a call splits many.
LOAD: Final = 144
LAG: Final = 16
#: Buckets that are split at a time: who posts more than they hold splits so many by each of several calls.
SPLITS: Final = 64
#: What `mend.lua` is given of an odd key: key, document, bucket.
ODD: Final = struct.Struct("<3I")

FUNCTIONS: Final = ("grow", "mend", "withdraw", "keep", "discard", "trim", "swap")
#: The buckets: a table for other rooms, too.
BUCKETS: Final = (LUA / "buckets.lua").read_text("utf-8")
#: What a full Redis lets run. (`grow` is how a client learns the number of buckets.)
FLAGS: Final = dict.fromkeys(("grow", "withdraw", "discard"), FREES)
LIBRARY: Final = Library.of_files("postings", LUA, ("buckets", "blocks"), FUNCTIONS, flags=FLAGS)
GROW: Final = Script(LIBRARY, "grow")
MEND: Final = Script(LIBRARY, "mend")
WITHDRAW: Final = Script(LIBRARY, "withdraw")
KEEP: Final = Script(LIBRARY, "keep")
DISCARD: Final = Script(LIBRARY, "discard")
TRIM: Final = Script(LIBRARY, "trim")
SWAP: Final = Script(LIBRARY, "swap")


class Posting(NamedTuple):
    """A document to be posted: its number, its stored sketch ("" where that is in its place), its packed keys.

    ``fresh``: nobody has stored or posted it, for nobody had its number before this very delivery.
    """

    number: int
    stored: bytes
    keys: bytes
    fresh: bool = False


class Proposed(NamedTuple):
    """Of documents that were posted: whom each is proposed; the sketches of those; keys of each in common lists."""

    documents: list[list[int]]
    sketches: dict[int, bytes]
    common: list[int]


class Plan(NamedTuple):
    """How a batch is posted in a shard: what appends and counts, if anything, what reads, and the steps (`buckets`)."""

    shard: int
    steps: bytes
    appends: Request | None
    reads: bytes


class Upkeep(NamedTuple):
    """What a table needs: a function, or the reading of the buckets ``sources``, which are then to be split.

    ``buckets``: how many the table had when that was decided; where it has others by then, nothing is split.
    ``entries``: how many it had.
    """

    request: Request
    buckets: int = 0
    sources: Sequence[int] = ()
    entries: int = 0


class Append(NamedTuple):
    """What was appended to a block: which request, which block, how many sketches and bytes; whether with its last."""

    place: int
    block: int
    sketches: int
    size: int
    last: bool


class RedisLists:
    """Bounded posting lists and stored sketches, a shard for each tag; ``name`` keeps those of one stream apart."""

    def __init__(self, calls: Calls, prefix: str, tags: Sequence[str], scheme: Scheme, name: str = "") -> None:
        self._calls = calls
        self._bases = [f"{prefix}{{{tag}}}{name}" for tag in tags]
        self._scheme = scheme
        #: Buckets of each shard, as far as is known; 0: not yet.
        self._buckets = [0] * len(tags)
        self._prefixes = [f"{base}:p:".encode() for base in self._bases]
        self._lasts = [f"{base}:pb".encode() for base in self._bases]

    # -- writing ---------------------------------------------------------------------------------------------------

    def propose(self, postings: Sequence[Posting]) -> Proposed:
        """Store and post documents; return whom each is proposed."""
        found, upkeep = self._write(postings)
        return found._replace(sketches=self._read({number for one in found.documents for number in one}, upkeep))

    def post(self, postings: Sequence[Posting]) -> None:
        """Store and post documents of which nobody asks whom they resemble."""
        _, upkeep = self._write(postings)
        self._keep_up(upkeep, self._calls.ask([one.request for one in upkeep]))

    def _write(self, postings: Sequence[Posting]) -> tuple[Proposed, list[Upkeep]]:
        """Store and post documents; return whom each is proposed, as yet without sketches, and what the tables need."""
        self._open()
        requests, appended = self._stores([posting for posting in postings if posting.stored])
        spoiled: list[int] = []
        if len(self._bases) > 1:
            spoiled = _spoiled(appended, self._calls.ask(requests))
            requests, appended = [], []
        plans = self._plans([(posting.number, posting.keys if posting.fresh else b"") for posting in postings])
        if not all(posting.fresh for posting in postings):  # these mostly lie there already: who does not is mended
            again = [(posting.number, b"" if posting.fresh else posting.keys) for posting in postings]
            plans += (planned._replace(appends=None) for planned in self._plans(again))
        first = len(requests)
        for planned in plans:
            if planned.appends:
                requests.append(planned.appends)
            requests.append(self._look(planned, len(postings), looking=False))
        replies = self._calls.ask(requests)
        spoiled += _spoiled(appended, replies)
        found = Proposed([[] for _ in postings], {}, [0] * len(postings))
        upkeep = self._found(plans, iter(replies[first:]), found)
        return found, self._trims(spoiled) + upkeep

    def withdraw(self, keys_of: Mapping[int, Keys]) -> Counter[int]:
        """Take documents out of their lists; return of how many keys each stood in a common list, or in none any more.

        Where their entries lie is looked up here.
        """
        self._open()
        plans = self._plans([(number, keys.tobytes()) for number, keys in keys_of.items()])
        requests: list[Request] = []
        for planned in plans:
            base = self._bases[planned.shard]
            requests.append(command("GET", f"{base}:pv"))
            requests.append(Request("look", base, planned.reads, parse=partial(strikes, planned.steps)))
        replies = iter(self._calls.ask(requests))
        for_all = []
        common: Counter[int] = Counter()
        for planned in plans:
            version, (struck, spent, rest, buckets) = next(replies) or 0, next(replies)
            self._buckets[planned.shard] = buckets
            common.update(number for number, _ in PAIR.iter_unpack(rest))
            every = b"".join([PAIR.pack(number, key) for _, key, number, _ in STEP.iter_unpack(planned.steps)])
            for_all.append((WITHDRAW, self._bases[planned.shard], (buckets, version, struck, spent, rest, every)))
        self._calls.run_all(for_all)
        return common

    def discard(self, numbers: Sequence[int]) -> None:
        """Free the stored sketches of documents."""
        groups = self._by_shard(numbers)
        self._calls.run_all((DISCARD, self._bases[shard], [packed_numbers(group)]) for shard, group in groups.items())

    # -- asking ----------------------------------------------------------------------------------------------------

    def look_up(self, queries: Sequence[bytes]) -> tuple[list[list[int]], list[int]]:
        """Return for each query, given its packed keys, the documents that their lists propose; how many are common."""
        self._open()
        common = [0] * len(queries)
        found: list[set[int]] = [set() for _ in queries]
        wanted = list(queries)
        while any(wanted):
            plans = self._plans([(0, keys) for keys in wanted])
            wanted = [b""] * len(queries)
            looks = [self._look(planned, len(queries), looking=True) for planned in plans]
            for planned, (listed, odds, buckets) in zip(plans, self._calls.ask(looks), strict=True):
                self._buckets[planned.shard] = buckets
                for place, one in enumerate(listed):
                    found[place].update(one)
                odd = list(STEP.iter_unpack(odds))
                commons = [(place, key) for bucket, key, _, place in odd if bucket == bucket_of(key, buckets)]
                for (place, _), one in zip(commons, self._common(planned.shard, commons), strict=True):
                    found[place].update(one)
                    common[place] += 1
                for _, key, _, place in odd:
                    if (place, key) not in commons:
                        wanted[place] += key.to_bytes(4, "little")
        return [sorted(one) for one in found], common

    def sketches(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """Return the stored sketches of documents; b"" where there is none."""
        return self._read(numbers, [])

    # -- steps -----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Learn how many buckets each shard has (and teach its server the functions)."""
        if not all(self._buckets):
            self._buckets = self._calls.run_all((GROW, base, ()) for base in self._bases)

    def _stores(self, postings: Sequence[Posting]) -> tuple[list[Request], list[Append]]:
        """Return what stores sketches: appending to the blocks of the fresh, a function for the others."""
        requests: list[Request] = []
        appended: list[Append] = []
        blocks = fill(sorted([(one.number, one.stored) for one in postings if one.fresh]), PACK)
        for block, sketches, full, data in blocks:
            last = block == blocks[-1][0]
            appended.append(Append(len(requests), block, sketches, len(data), full or not last))
            requests.append(command("APPEND", f"{self._bases[block % len(self._bases)]}:k:{block}", data))
        others = {posting.number: posting for posting in postings if not posting.fresh}
        for shard, numbers in self._by_shard(others).items():
            words = [word for n in numbers for word in (n.to_bytes(4, "little"), others[n].stored)]
            requests.append(function(KEEP, self._bases[shard], words))
        return requests, appended

    def _plans(self, documents: list[Posted]) -> list[Plan]:
        """Return for each shard that has a key of theirs how documents are posted there and their buckets read."""
        plans = []
        for shard, base in enumerate(self._bases):
            arguments = self._prefixes[shard], self._lasts[shard], documents, self._buckets[shard]
            appends, groups, reads, steps = plan(*arguments, shard, len(self._bases))
            if groups:
                data = appends + command("INCRBY", f"{base}:pn", len(steps) // STEP.size).data
                plans.append(Plan(shard, steps, Request("post", base, data, groups + 1, parse=_last), reads))
        return plans

    def _found(self, plans: Sequence[Plan], replies: Iterator[Any], found: Proposed) -> list[Upkeep]:
        """Add whom the buckets propose, mend what is odd; return which tables have to grow."""
        upkeep: list[Upkeep] = []
        mends: list[Request] = []
        places: list[int] = []
        numbers: list[int] = []
        documents = found.documents
        for planned in plans:
            counted = next(replies) if planned.appends else 0
            listed, odds, buckets = next(replies)
            self._buckets[planned.shard] = buckets
            for place, one in enumerate(listed):
                if one:
                    documents[place] += one
            base = self._bases[planned.shard]
            if odds:
                odd = list(STEP.iter_unpack(odds))
                words = b"".join([ODD.pack(key, number, bucket) for bucket, key, number, _ in odd])
                mends.append(function(MEND, base, (self._scheme.bound, self._scheme.latest, words)))
                places += [place for _, _, _, place in odd]
                numbers += [number for _, _, number, _ in odd]
            if counted > (buckets + LAG) * LOAD:
                upkeep.append(self._growing(planned.shard, counted, buckets))
        if mends:
            proposed = [ids for reply in self._calls.ask(mends) for ids in reply]
            for place, number, ids in zip(places, numbers, proposed, strict=True):
                documents[place] += (one for (one,) in struct.iter_unpack("<I", ids) if one not in (number, COMMON))
                found.common[place] += ids.endswith(COMMON_BYTES)
        if len(plans) > 1 or mends:
            documents[:] = [sorted(set(one)) for one in documents]
        return upkeep

    def _look(self, planned: Plan, documents: int, *, looking: bool) -> Request:
        """Return what reads the buckets of a plan and looks for the documents there."""
        parse = partial(find, planned.steps, documents, self._scheme.bound, looking)
        return Request("look", self._bases[planned.shard], planned.reads, parse=parse)

    def _common(self, shard: int, asked: Sequence[tuple[int, int]]) -> list[list[int]]:
        """Return the latest documents of the common list that each query, by its place, asks for by a key."""
        if not asked:
            return []
        base = self._bases[shard]
        names: list[Any] = [b"%s:f:%s" % (base.encode(), key.to_bytes(4, "little")) for _, key in asked]
        (lists,) = self._calls.ask([Request("MGET", base, hiredis.pack_command(("MGET", *names)))])
        size = 4 * (self._scheme.latest + 1)
        return [[number for (number,) in struct.iter_unpack("<I", (one or b"")[-size:])] for one in lists]

    def _read(self, numbers: Iterable[int], upkeep: Sequence[Upkeep]) -> dict[int, bytes]:
        """Return stored sketches; ``upkeep`` goes with the question, behind it."""
        requests: list[Request] = []
        groups = self._by_shard(sorted(numbers))
        for shard, group in groups.items():
            base = self._bases[shard]
            names = [f"{base}:k:{block}" for block in dict.fromkeys([number // PACK for number in group])]
            reads = command("MGET", *names)
            requests.append(reads._replace(key=base, parse=partial(pick, packed_numbers(group), PACK)))
        replies = self._calls.ask([*requests, *(one.request for one in upkeep)])
        self._keep_up(upkeep, replies[len(requests) :])
        found: dict[int, bytes] = {}
        for group, picked in zip(groups.values(), replies, strict=False):
            found.update(zip(group, picked, strict=True))
        return found

    def _keep_up(self, upkeep: Sequence[Upkeep], replies: Sequence[Any]) -> None:
        """Split the buckets that were read to be split; note how many buckets a table then has."""
        for one, reply in zip(upkeep, replies, strict=True):
            if one.sources:
                shard = self._bases.index(one.request.key)
                self._buckets[shard] = self._split(shard, one, reply)

    def _growing(self, shard: int, entries: int, buckets: int) -> Upkeep:
        """Return what reads the buckets that have to be split, `SPLITS` at most."""
        base, wanted = self._bases[shard], min(-(-entries // LOAD), buckets + SPLITS)
        numbers = sources(buckets, wanted)
        prefix = self._prefixes[shard]
        words: list[Any] = [b"MGET", self._lasts[shard], f"{base}:pv", *(b"%s%d" % (prefix, one) for one in numbers)]
        return Upkeep(Request("split", base, hiredis.pack_command(tuple(words))), buckets, numbers, entries)

    def _split(self, shard: int, read: Upkeep, reply: Sequence[Any]) -> int:
        """Split buckets as they were read, and more where the table lags farther behind; return how many there are.

        So no call keeps the server long, however much was posted at once.
        """
        there = self._swap(read, reply)
        while there > read.buckets and read.entries > (there + LAG) * LOAD:  # else somebody else is at it
            read = self._growing(shard, read.entries, there)
            there = self._swap(read, *self._calls.ask([read.request]))
        return there

    def _swap(self, read: Upkeep, reply: Sequence[Any]) -> int:
        """Put the halves of buckets in their place; return how many buckets there are."""
        buckets, version, *values = reply
        there = int(buckets or FIRST)
        if there != read.buckets:
            return there
        arguments: list[Any] = [read.buckets, version or 0]
        for source, value in zip(read.sources, values, strict=True):
            low, high, dropped = split(value, source, read.buckets)
            arguments += (source, len(value or b""), low, high, dropped)
        return int(self._calls.run(SWAP, read.request.key, arguments))

    def _trims(self, blocks: Sequence[int]) -> list[Upkeep]:
        groups: dict[int, list[int]] = {}
        for block in blocks:
            groups.setdefault(block % len(self._bases), []).append(block)
        return [Upkeep(function(TRIM, self._bases[shard], group)) for shard, group in groups.items()]

    def _by_shard(self, numbers: Iterable[int]) -> dict[int, list[int]]:
        """Return documents by the shard of their sketches."""
        groups: dict[int, list[int]] = {}
        for number in numbers:
            groups.setdefault(number // PACK % len(self._bases), []).append(number)
        return groups


def _last(replies: memoryview) -> int:
    """Return the last of some replies, which are numbers."""
    return int(bytes(replies[-24:]).rpartition(b":")[2])


def _spoiled(appended: Sequence[Append], replies: Sequence[Any]) -> list[int]:
    """Return the blocks that are full and had been begun before: Redis has given them twice their size.

    Others may append what comes before the last of a block after it: by its length a block is full then, too.
    """
    return [
        one.block
        for one in appended
        if replies[one.place] != one.size
        and (one.last or 2 * one.sketches * replies[one.place] > (2 * PACK - 1) * one.size)
    ]
