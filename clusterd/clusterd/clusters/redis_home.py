"""The home shard: pages, texts, contents, clusters and everything that must change together, in one hash slot.

Each script is the library files below and its own; it runs atomically, and names its keys at its top. `lua/records.lua`
has the layout, `lua/forest.lua` the linking, `lua/move.lua` and `splitting` the splitting,
`lua/settling.lua` what waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

from clusterd_consumer.postings.redis_lists import TABLE
from clusterd_consumer.redis_scripts import Calls, Script

LUA: Final = files("clusterd.clusters") / "lua"
RECORDS: Final = TABLE + (LUA / "records.lua").read_text() + (LUA / "forest.lua").read_text()
SETTLING: Final = RECORDS + (LUA / "settling.lua").read_text()


def _script(name: str, library: str) -> Script:
    return Script(name, library + (LUA / f"{name}.lua").read_text())


REGISTER: Final = _script("register", RECORDS)
LINK: Final = _script("link", RECORDS)
RELINK: Final = _script("relink", RECORDS)
VERSIONS: Final = _script("versions", RECORDS)
STANDINGS: Final = _script("standings", RECORDS)
URLS: Final = _script("urls", RECORDS)
MEMBERS: Final = _script("members", RECORDS)
SHOWN: Final = _script("shown", RECORDS)
CONTENTS: Final = _script("contents", RECORDS)
NEAR: Final = _script("near", RECORDS)
DISMISS: Final = _script("dismiss", SETTLING)
MOVE: Final = _script("move", SETTLING)
PART: Final = _script("part", SETTLING)
FORGET: Final = _script("forget", SETTLING)
ADD_POLICY: Final = _script("add_policy", TABLE)
LABEL: Final = _script("label", TABLE)


class Home:
    """The scripts and keys of the home shard."""

    def __init__(self, calls: Calls, prefix: str) -> None:
        self._calls = calls
        self.base = f"{prefix}{{0}}"
        self._labels: dict[str, int] = {"": 0}
        self._names: dict[int, str] = {0: ""}

    def run(self, script: Script, *arguments: Any) -> Any:
        """Run a script of the home shard."""
        return self._calls.run(script, self.base, arguments)

    def command(self, name: str, key: str, *arguments: Any) -> Any:
        """Run a command on a key of the home shard."""
        return self._calls.command(name, f"{self.base}:{key}", *arguments)

    def counters(self, *names: str) -> list[int]:
        """Return counters, 0 where there is none."""
        return [int(value or 0) for value in self.command("HMGET", "m", *names)]

    def label(self, text: str) -> int:
        """Return the number of a crawl's or sweep's label."""
        number = self._labels.get(text)
        if number is None:
            number = self._labels[text] = int(self.run(LABEL, text))
        return number

    def label_names(self, least: int) -> dict[int, str]:
        """Return all labels by number, read again where the number ``least`` is not known yet."""
        if least not in self._names:
            found = pairs(self.command("HGETALL", "l"))
            self._names = {0: "", **{int(number): text.decode() for text, number in found.items()}}
        return self._names


def pairs(reply: Any) -> dict[bytes, bytes]:
    """Return a hash as a mapping, whatever protocol the client speaks."""
    if isinstance(reply, dict):
        return reply
    words: Sequence[bytes] = reply
    return dict(zip(words[::2], words[1::2], strict=True))
