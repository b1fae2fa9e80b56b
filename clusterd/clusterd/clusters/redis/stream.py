"""A second token stream on Redis, the whole pages beside their main texts: to be asked for, not to be clustered.

Each text of the stream is posted once, by the identity of its sketch; the pages that show it now hang on it
(`lua/stream.lua`). Superseded versions are not kept. A batch costs one call of the function `enter`, and for what is
new the posting (`RedisLists`); a text that no page shows any more is withdrawn by `settle`. Every step may be
repeated: a text counts as posted only when a later call has said so. One buried meanwhile is withdrawn then.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import numpy as np
from clusterd_consumer.hash_tags import HOME
from clusterd_consumer.postings.keys import Keys, keys_of, prepare
from clusterd_consumer.postings.redis_lists import BUCKETS, Posting, RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.postings.stored import Restored, restored
from clusterd_consumer.redis_scripts import FREES, READS, Calls, Library, Script, command, packed_numbers
from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.sketch import PROFILES, TEXT, StreamSketch

from clusterd.clusters.identity import stream_key
from clusterd.clusters.redis.asking.ranking import rankings
from clusterd.portions import portions

LUA: Final = files("clusterd.clusters.redis") / "lua"
FUNCTIONS: Final = ("enter", "posted", "bury", "pages", "shows")
#: What a full Redis lets run.
FLAGS: Final = {"posted": FREES, "bury": FREES, "pages": READS, "shows": READS}
LIBRARY: Final = Library.of_files("stream", LUA, ("order", "stream"), FUNCTIONS, BUCKETS, FLAGS)
ENTER: Final = Script(LIBRARY, "enter")
POSTED: Final = Script(LIBRARY, "posted")
BURY: Final = Script(LIBRARY, "bury")
PAGES: Final = Script(LIBRARY, "pages")
SHOWS: Final = Script(LIBRARY, "shows")

#: enter.lua: page, time, identity, profile; its answer: text, whether it is to be posted (1), and is new (2).
SHOWN: Final = struct.Struct("<I6s8sB")
ENTERED: Final = struct.Struct("<IB")
#: shows.lua: text, profile.
SHOWING: Final = struct.Struct("<IB")
#: Texts that one step buries.
BURIED: Final = 64


@dataclass(frozen=True, slots=True)
class Showing:
    """A page shows a text from a time on (milliseconds)."""

    page: int
    at: int
    sketch: StreamSketch
    profile: int


class SecondStream:
    """The texts of a stream, and which pages show them."""

    def __init__(self, calls: Calls, prefix: str, name: str, tags: Sequence[str], scheme: Scheme) -> None:
        self._calls = calls
        self._scheme = scheme
        self._base = f"{prefix}{{{HOME}}}:{name}:of"
        self._lists = RedisLists(calls, prefix, tags, scheme, f":{name}")
        #: Texts that were posted, with their keys: the next call says so.
        self._posted: dict[int, Keys] = {}
        self._lock = threading.Lock()

    def apply(self, showings: Sequence[Showing]) -> None:
        """Let pages show texts; post those that nobody has posted."""
        pages = b"".join(
            SHOWN.pack(one.page, one.at.to_bytes(6, "big"), _identity(one.sketch, one.profile), one.profile)
            for one in showings
        )
        reply = self._told(ENTER, pages)
        postings: dict[int, Posting] = {}
        posted: dict[int, Keys] = {}
        for one, (text, state) in zip(showings, ENTERED.iter_unpack(reply), strict=True):
            if state and text not in postings:
                stored, keys = prepare(one.sketch, PROFILES[one.profile], self._scheme)
                postings[text] = Posting(text, stored, keys.tobytes(), fresh=state == 2)
                posted[text] = keys
        if postings:
            self._lists.post(list(postings.values()))
            with self._lock:
                self._posted |= posted

    def _told(self, script: Script, *arguments: bytes) -> bytes:
        """Run a function that is told of the texts that were posted, and withdraw those that were buried before that.

        Returns what else it replies. Where it fails, the next is told.
        """
        with self._lock:
            posted, self._posted = self._posted, {}
        try:
            buried, reply = self._calls.run(script, self._base, [packed_numbers(list(posted)), *arguments])
            if gone := {text: posted[text] for (text,) in struct.iter_unpack("<I", buried)}:
                self._lists.withdraw(gone)
                self._lists.discard(list(gone))
        except BaseException:
            with self._lock:
                self._posted |= posted
            raise
        found: bytes = reply
        return found

    def similar(self, query: StreamSketch, profile: int, limit: int) -> list[tuple[Estimate, list[int]]]:
        """Return what resembles the query, best first, each with the pages that show it, until there are `limit`."""
        kind = PROFILES[profile]
        stored, _ = prepare(query, kind, self._scheme)
        (best,) = rankings(self._lists, [query], [stored], kind, self._scheme)
        found: list[tuple[Estimate, list[int]]] = []
        pages = 0
        for chunk in portions(best.items(), BURIED):
            shown: list[Any] = self._calls.run(PAGES, self._base, [packed_numbers([n for n, _ in chunk]), limit])
            found += [(v, np.frombuffer(one, "<u4").tolist()) for (_, v), one in zip(chunk, shown, strict=True)]
            pages += sum(len(one) // 4 for one in shown)
            if pages >= limit:
                break
        return found

    def sketch(self, page: int) -> Restored:
        """Return the stored sketch of what a page shows; an empty one where that has no word."""
        text, profile = SHOWING.unpack(self._calls.run(SHOWS, self._base, [page]))
        stored = self._lists.sketches([text])[text] if text else b""
        return restored(stored, PROFILES.get(profile, TEXT))

    def settle(self, steps: int | None = None) -> int:
        """Bury texts that no page shows any more, up to so many steps; return how many wait."""
        if self._posted:
            self._told(POSTED)
        key, done = f"{self._base}:g", 0
        while (steps is None or done < steps) and (entries := self._calls.command("LRANGE", key, 0, BURIED - 1)):
            gone = self._bury({int(entry) >> 8: int(entry) & 255 for entry in entries})
            self._calls.ask([command("LREM", key, 1, entry) for entry in entries if int(entry) >> 8 in gone])
            done += 1
        return self.waiting()

    def waiting(self) -> int:
        """Return how many texts wait to be buried."""
        return int(self._calls.command("LLEN", f"{self._base}:g"))

    def _bury(self, profiles: dict[int, int]) -> set[int]:
        """Forget those that no page shows, then withdraw them: repeated, if left half done, it comes to the same.

        Returns which: the others wait no more.
        """
        packed = b"".join([SHOWING.pack(*one) for one in profiles.items()])
        gone = np.frombuffer(self._calls.run(BURY, self._base, [packed]), "<u4").tolist()
        stored = {number: one for number, one in self._lists.sketches(gone).items() if one}
        if stored:
            self._lists.withdraw({n: keys_of(one, profiles[n], self._scheme) for n, one in stored.items()})
            self._lists.discard(list(stored))
        return set(gone)


def _identity(sketch: StreamSketch, profile: int) -> bytes:
    """Return the identity of a sketch; zeros of one without a shingle."""
    return stream_key(sketch, profile) if sketch.shingles else bytes(8)
