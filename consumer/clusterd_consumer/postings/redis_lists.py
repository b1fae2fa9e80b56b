"""Postings and stored sketches on Redis: on one, or spread over the shards of a Redis Cluster.

A shard is a hash slot: ``PREFIX{n}``. A posting lies in the shard of its key, a sketch in that of its document's id. On
one shard a batch is a call that stores, posts and looks up, and one that reads the candidates' sketches. On several it
is three rounds of one call a shard: store the sketches everywhere, then post and look up everywhere, then read the
candidates' sketches: write first, then look up, so that of two documents that are posted at once at least one sees the
other, with its sketch. Sketches are read as the blocks that they lie in: Lua would hash every byte that passes it.

Layout and cost: `lua/table.lua`, `lua/lists.lua`. About 2 µs of the server's time for a posting.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import numpy as np

from clusterd_consumer.postings.posted import Keys
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.redis_scripts import Calls, Library, Script

LUA: Final = files("clusterd_consumer.postings") / "lua"
TABLE: Final = (LUA / "table.lua").read_text()

#: Sketches of a block (`lua/table.lua`).
PACK: Final = 12
#: What stands before each: its number modulo `PACK`, its length.
ENTRY: Final = struct.Struct("<BI")

Call = tuple[Script, str, Sequence[Any]]


FUNCTIONS: Final = ("post", "look_up", "sketches", "withdraw", "discard")
LIBRARY: Final = Library(
    "postings",
    [TABLE, (LUA / "lists.lua").read_text()],
    {name: (LUA / f"{name}.lua").read_text() for name in FUNCTIONS},
)
POST: Final = Script(LIBRARY, "post")
LOOK_UP: Final = Script(LIBRARY, "look_up")
SKETCHES: Final = Script(LIBRARY, "sketches")
WITHDRAW: Final = Script(LIBRARY, "withdraw")
DISCARD: Final = Script(LIBRARY, "discard")


@dataclass(frozen=True, slots=True)
class Posting:
    """A document to be posted: its number, its stored sketch ("" where that is in its place), its keys."""

    number: int
    stored: bytes
    keys: Keys


class RedisLists:
    """Bounded posting lists and stored sketches, in ``shards`` hash slots."""

    def __init__(self, calls: Calls, prefix: str, shards: int, scheme: Scheme) -> None:
        self._calls = calls
        self._bases = [f"{prefix}{{{number}}}" for number in range(shards)]
        self._scheme = scheme

    def propose(self, postings: Sequence[Posting]) -> tuple[list[list[int]], dict[int, bytes]]:
        """Store and post documents; return whom each is proposed, and the sketches of those."""
        if len(self._bases) > 1:
            return self._propose_spread(postings)
        arguments: list[Any] = [self._scheme.bound, self._scheme.latest]
        for posting in postings:
            arguments += (posting.number.to_bytes(4, "little"), posting.stored, posting.keys.astype("<u4").tobytes())
        reply = self._calls.run(POST, self._bases[0], arguments)
        found = [np.frombuffer(ids, "<u4").tolist() if ids else [] for ids in reply]
        return found, self.sketches({number for one in found for number in one})

    def _propose_spread(self, postings: Sequence[Posting]) -> tuple[list[list[int]], dict[int, bytes]]:
        empty = np.zeros(0, np.uint32)
        self._calls.run_all(
            self._post(shard, [p for p in postings if p.stored and p.number % len(self._bases) == shard], empty)
            for shard in range(len(self._bases))
        )
        bare = [Posting(posting.number, b"", posting.keys) for posting in postings]
        replies = self._calls.run_all(self._post(shard, bare) for shard in range(len(self._bases)))
        found: list[dict[int, None]] = [{} for _ in postings]
        for reply in replies:
            for number, ids in enumerate(reply):
                found[number].update(dict.fromkeys(np.frombuffer(ids, "<u4").tolist()))
        return [list(one) for one in found], self.sketches({number for one in found for number in one})

    def _post(self, shard: int, postings: Sequence[Posting], keys: Keys | None = None) -> Call:
        arguments: list[Any] = [self._scheme.bound, self._scheme.latest]
        for posting in postings:
            mine = self._of(shard, posting.keys if keys is None else keys)
            arguments += (posting.number.to_bytes(4, "little"), posting.stored, mine)
        return POST, self._bases[shard], arguments

    def _of(self, shard: int, keys: Keys) -> bytes:
        """Return the keys of a shard, packed."""
        spread = keys if len(self._bases) == 1 else keys[(keys >> np.uint32(16)) % np.uint32(len(self._bases)) == shard]
        return spread.astype("<u4").tobytes()

    def look_up(self, keys: Keys) -> list[int]:
        """Return the documents that the lists of these keys propose."""
        replies = self._calls.run_all(
            (LOOK_UP, base, [self._scheme.latest, self._of(shard, keys)]) for shard, base in enumerate(self._bases)
        )
        return [int(number) for number in np.unique(np.frombuffer(b"".join(replies), "<u4"))]

    def sketches(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """Return the stored sketches of documents; b"" where there is none."""
        wanted = sorted(numbers)
        if len(self._bases) == 1:
            return self._read(wanted)
        groups = [[n for n in wanted if n % len(self._bases) == shard] for shard in range(len(self._bases))]
        replies = self._calls.run_all(
            (SKETCHES, base, [_packed(group)]) for base, group in zip(self._bases, groups, strict=True) if group
        )
        found: dict[int, bytes] = {}
        for group, reply in zip(filter(None, groups), replies, strict=True):
            found.update(zip(group, reply, strict=True))
        return found

    def _read(self, wanted: Sequence[int]) -> dict[int, bytes]:
        blocks = list(dict.fromkeys(number // PACK for number in wanted))
        if not blocks:
            return {}
        keys = [f"{self._bases[0]}:k:{block}" for block in blocks]
        known = dict(zip(blocks, map(_unpacked, self._calls.command("MGET", *keys)), strict=True))
        return {number: known[number // PACK].get(number % PACK, b"") for number in wanted}

    def withdraw(self, keys_of: Mapping[int, Keys]) -> None:
        """Take documents out of their lists."""
        for_all = [
            (shard, base, [(number.to_bytes(4, "little"), self._of(shard, keys)) for number, keys in keys_of.items()])
            for shard, base in enumerate(self._bases)
        ]
        self._calls.run_all((WITHDRAW, base, [word for pair in pairs for word in pair]) for _, base, pairs in for_all)

    def discard(self, numbers: Sequence[int]) -> None:
        """Free the stored sketches of documents."""
        groups = [[n for n in numbers if n % len(self._bases) == shard] for shard in range(len(self._bases))]
        self._calls.run_all(
            (DISCARD, base, [_packed(group)]) for base, group in zip(self._bases, groups, strict=True) if group
        )


def _packed(numbers: Sequence[int]) -> bytes:
    return np.array(numbers, "<u4").tobytes()


def _unpacked(block: bytes | None) -> dict[int, bytes]:
    """Return the values of a block (`lua/table.lua`) by their place."""
    found, at = {}, 0
    while block and at < len(block):
        place, length = ENTRY.unpack_from(block, at)
        at += ENTRY.size + length
        found[place] = block[at - length : at]
    return found
