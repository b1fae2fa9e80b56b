"""A home shard: pages, texts, contents, clusters and everything that must change together, in one hash slot.

Each function of the library below runs atomically; its file names its keys at its top. `lua/records.lua`
has the layout, `lua/forest.lua` the linking, `lua/move.lua` and `splitting` the splitting,
`lua/settling.lua` what waits.

A store on one Redis has one home, a store on a Redis Cluster as many as shards (`homes`). Of a document its home takes
about 220 bytes: the URL's string 70, pages 45, texts and contents 45, tables, clusters, host lists and what blocks
leave free; and two thirds of the servers' time. Sketches and postings take 365 bytes and a third of the time.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from clusterd_consumer.hash_tags import HOME
from clusterd_consumer.redis_scripts import FREES, READS, Calls, Library, Request, Script, command, function
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.sketch import Sketch

LUA: Final = files("clusterd.clusters.redis") / "lua"
SHARED: Final = (
    *("order", "counters", "spans", "tables", "records", "strings", "forest", "edges", "settling"),
    "positions",
)
FUNCTIONS: Final = (
    *("register", "link", "relink", "versions", "standings", "urls", "members", "shown", "contents", "near", "origins"),
    *("dismiss", "move", "part", "whole", "forget", "policies", "clear", "label"),
    *("tell", "state", "repend", "mark", "anew", "lease"),
    *("seed", "accept", "crown", "under", "widen", "adopt", "release", "shut", "lead"),
    *("stands", "cut", "equals", "alike", "texts", "parted", "renew", "review"),
    *("rebuild", "page"),
)
#: Places of counters in the order of `Counters`; where those of clusters begin.
COUNTED: Final = (0, 1, 2, 5, 6, 13, 14)
CLUSTERS: Final = 15

#: register.lua: number of a label, length of its text.
USED: Final = struct.Struct("<II")

#: Questions that shorten paths.
SHORTEN: Final = ("standings", "members", "shown", "origins", "stands")
#: What a full Redis lets run: questions, retention, and what settles.
FLAGS: Final = {
    **dict.fromkeys(("versions", "urls", "page", "contents", "near", "equals", "alike", "texts"), READS),
    **dict.fromkeys(SHORTEN, FREES),
    **dict.fromkeys(("crown", "under", "widen", "adopt", "release", "shut", "lead", "cut", "parted", "renew"), FREES),
    **dict.fromkeys(("lease", "dismiss", "move", "part", "whole", "forget", "tell", "state", "anew"), FREES),
    # (`seed` is a part of opening a store of several homes, also to ask.)
    **dict.fromkeys(("policies", "clear", "seed"), FREES),
}
LIBRARY: Final = Library.of_files("home", LUA, SHARED, FUNCTIONS, flags=FLAGS, questions=SHORTEN)
SCRIPTS: Final = {name: Script(LIBRARY, name) for name in FUNCTIONS}


@dataclass(frozen=True, slots=True)
class Counters:
    """What the home shard counts (`lua/counters.lua`)."""

    #: Which policies there are: another number each time that one is added or removed.
    policies: int = 0
    nodes: int = 0
    urls: int = 0
    versions: int = 0
    contents: int = 0
    build: int = 0
    build_to: int = 0
    #: Of two URLs and more: by identical text, by equal sketch, under each graded policy.
    clusters: tuple[int, ...] = (0, 0)


def counted(packed: bytes | None) -> Counters:
    """Return what lua/counters.lua keeps, packed."""
    if not packed:
        return Counters()
    words = struct.unpack(f"<{len(packed) // 4}I", packed)
    policies, nodes, urls, versions, contents, build, build_to = (words[place] for place in COUNTED)
    return Counters(policies, nodes, urls, versions, contents, build, build_to, words[CLUSTERS:])


class Home:
    """The functions and keys of the home shard."""

    def __init__(self, calls: Calls, prefix: str, tag: str = HOME, place: int = 0) -> None:
        self._calls = calls
        self.base = f"{prefix}{{{tag}}}"
        #: Of several homes, which this is.
        self.place = place
        self._labels: dict[str, int] = {"": 0}
        self._pairs: dict[tuple[str, str], bytes] = {}
        self._names: dict[int, str] = {0: ""}

    def run(self, name: str, *arguments: Any) -> Any:
        """Run a function of the home shard."""
        return self._calls.run(SCRIPTS[name], self.base, arguments)

    def command(self, name: str, key: str, *arguments: Any) -> Any:
        """Run a command on a key of the home shard."""
        return self._calls.command(name, f"{self.base}:{key}", *arguments)

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        """Ask several things of the home shard at once, in order."""
        return self._calls.ask(requests)

    def function(self, name: str, *arguments: Any) -> Request:
        """Return the request for a function of the home shard."""
        return function(SCRIPTS[name], self.base, arguments)

    def request(self, name: str, key: str, *arguments: Any) -> Request:
        """Return the request for a command on a key of the home shard."""
        return command(name, f"{self.base}:{key}", *arguments)

    def counters(self) -> Counters:
        """Return what is counted."""
        return counted(self.command("GET", "i"))

    def label(self, text: str) -> int:
        """Return the number of a crawl's or sweep's label."""
        number = self._labels.get(text)
        if number is None:
            number = self._labels[text] = int(self.run("label", text))
        return number

    def labels(self, crawl: str, sweep: str) -> bytes:
        """Return the numbers of a crawl's and a sweep's label, 3 bytes each."""
        known = self._pairs.get((crawl, sweep))
        if known is None:
            known = self._pairs[crawl, sweep] = (self.label(crawl) | self.label(sweep) << 24).to_bytes(6, "little")
        return known

    def used(self, sketches: Sequence[Sketch]) -> bytes:
        """Return the labels of these sketches with their numbers, as register.lua checks them."""
        texts = {text for sketch in sketches for text in (sketch.crawl, sketch.sweep)} - {""}
        return b"".join(USED.pack(self.label(text), len(text.encode())) + text.encode() for text in sorted(texts))

    def forget_labels(self) -> None:
        """Ask for the numbers of labels anew: the store is not the one that gave them."""
        self._labels, self._pairs, self._names = {"": 0}, {}, {0: ""}

    def label_names(self, least: int) -> dict[int, str]:
        """Return all labels by number, read again where the number ``least`` is not known yet."""
        if least not in self._names:
            found = pairs(self.command("HGETALL", "l"))
            self._names = {0: "", **{int(number): text.decode() for text, number in found.items()}}
            if least not in self._names:
                raise self.lost("l")
        return self._names

    def lost(self, key: str) -> Unreachable:
        """Return what is raised where a key is not there without which others cannot be read."""
        return Unreachable(
            f"the store has lost {self.base}:{key} and maybe more, which somebody has deleted: restore a backup, or "
            "read the log again into a store of another prefix"
        )


def pairs(words: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return a hash as a mapping."""
    return dict(zip(words[::2], words[1::2], strict=True))
