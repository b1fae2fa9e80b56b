"""Crawler traps: families of URLs without end that bring nothing new.

Three signs, each from the crawl's own pages: a family (host, path with its numbers taken out, names of the query keys)
of which the last pages, `RUN` at least, showed a few contents over and over, each known; a path in which one component
comes again and again (``/a/b/a/b/a/b``); a path that is longer than any site needs. By setting a trap is reported only,
slowed to a sample (1 page in `SAMPLE`), or cut. A family that brings something new again is no trap any more.

Most sites have families that bring nothing new for a while and have an end: the print view of each page, its address
with ``utm_source=``. Each of their pages shows another content. In a trap the contents come again without end, and so
`OFTEN` times each.

A site that grows paths grows a family with each. So these are one trap a host: told of once, and one of what skips are
counted by, and kept by on the disk.

Cost: one short pattern a URL; some 100 bytes for each of at most `FAMILIES` families, and as many hosts.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import mmh3

from clusterd_crawler.skipping.known_page import Plain
from clusterd_crawler.urls import Url, parse

#: Fetched pages in a row without new content that make a family a trap, and how often they show each content.
RUN: Final = 200
OFTEN: Final = 10
#: Contents of a row are told apart by so many marks, so that more of them count as about so many.
MARKS: Final = 256
#: One page of so many is fetched of a trap that is slowed.
SAMPLE: Final = 20
#: Most families that are remembered.
FAMILIES: Final = 50_000
#: Most noticed traps that wait to be asked for.
WAITING: Final = 1000
#: How often one component may stand in a path, and how many components a path may have.
REPEATED: Final = 3
DEEP: Final = 24
_NUMBER: Final = re.compile(r"[0-9]+")
_SEED: Final = 0x7A9

Guard = Literal["off", "report", "sample", "cut"]
#: What becomes of a trap, by setting.
GUARDED: Final = {
    "report": "is fetched all the same (CLUSTERD_TRAP_GUARD)",
    "sample": "only a sample of it is fetched",
    "cut": "is left",
}


@dataclass(frozen=True, slots=True)
class Trap:
    """A family of URLs that brings nothing new, and why it is thought so."""

    family: str
    reason: str
    #: A page of it that was fetched, or "".
    example: str = ""
    #: The host, where its path is the sign: all such paths of a host are one trap.
    grown_on: str = ""

    @property
    def id(self) -> str:
        """Return what stands for the trap among rule ids."""
        return f"trap-{mmh3.hash(self.grown_on or self.family, _SEED, signed=False):08x}"


class _Family(NamedTuple):
    """Kept as a plain tuple (`known_page` says why)."""

    #: Pages in a row that brought nothing new, and a bit for each mark of what they showed.
    run: int = 0
    shown: int = 0
    example: str = ""
    is_trap: bool = False

    def brought(self, url: str, content: int, new: bool) -> _Family:
        """Return the family after a page."""
        if new:
            return _Family(example=url)
        return _Family(self.run + 1, self.shown | 1 << content % MARKS, url, self.is_trap)

    def comes_again(self) -> bool:
        """Whether the row is long enough, and shows few contents for its length."""
        return self.run >= max(RUN, OFTEN * self.shown.bit_count())


class TrapGuard:
    """Notices traps among the fetched pages and says which URLs are to be left."""

    def __init__(self, mode: Guard = "report") -> None:
        self.mode = mode
        self._families: OrderedDict[str, Plain] = OrderedDict()
        #: Hosts of which it was noticed that they grow paths, each with such a page.
        self._growing: OrderedDict[str, str] = OrderedDict()
        self._noticed: list[Trap] = []
        #: Ids of what was left as traps and are none any more, since the last `over`.
        self._over: set[str] = set()

    def fetched(self, url: str, content: int, new: bool) -> None:
        """Note a fetched page (its URL canonical), its content's identity, and whether that was not known before."""
        if self.mode == "off":
            return
        taken = parse(url)
        name = family_of(taken)
        family = self._family(name)
        if new and family.is_trap and self.mode in {"sample", "cut"}:
            self._over.add(Trap(name, "").id)
        family = family.brought(url, content, new)
        if (reason := _growing(taken)) is not None:
            self._note_growing(Trap(name, reason, url, taken.authority))
        elif not family.is_trap and family.comes_again():
            family = family._replace(is_trap=True)
            self._notice(_without_news(name, family))
        self._families[name] = family[:]
        self._families.move_to_end(name)
        if len(self._families) > FAMILIES:
            self._families.popitem(last=False)

    def _family(self, name: str) -> _Family:
        return _Family(*self._families.get(name, ()))

    def _note_growing(self, trap: Trap) -> None:
        if trap.grown_on not in self._growing:
            self._notice(trap)
        self._growing[trap.grown_on] = trap.example
        if len(self._growing) > FAMILIES:
            self._growing.popitem(last=False)

    def _notice(self, trap: Trap) -> None:
        if len(self._noticed) < WAITING:
            self._noticed.append(trap)

    def noticed(self) -> list[Trap]:
        """Return the traps noticed since the last call, at most `WAITING`."""
        found, self._noticed = self._noticed, []
        return found

    def over(self) -> set[str]:
        """Return the ids of traps that brought something new since the last call: what they kept out may, too."""
        over, self._over = self._over, set()
        return over

    def trap(self, url: str) -> Trap | None:
        """Return the trap that a URL (canonical) leads into, or None."""
        taken = parse(url)
        name = family_of(taken)
        family = self._family(name)
        if family.is_trap:
            return _without_news(name, family)
        reason = _growing(taken)
        host = taken.authority
        return None if reason is None else Trap(name, reason, self._growing.get(host, ""), host)

    def leaves(self, url: str) -> Trap | None:
        """Return the trap on whose account a URL is not to be fetched, by the setting, or None."""
        if self.mode not in {"sample", "cut"}:
            return None
        found = self.trap(url)
        if found is None or self.mode == "cut":
            return found
        return None if mmh3.hash(url, _SEED, signed=False) % SAMPLE == 0 else found


def family_of(url: Url) -> str:
    """Return the family of a URL: host, path without its numbers, names of its query keys.

    >>> family_of(parse("http://h.com/cal/2024-05-06?view=day&x=1"))
    'h.com/cal/N-N-N?view&x'
    """
    names = "&".join(sorted({name for name, _ in url.query}))
    return f"{url.authority}/{_NUMBER.sub('N', '/'.join(url.path))}" + (f"?{names}" if names else "")


def _without_news(name: str, family: _Family) -> Trap:
    return Trap(name, f"the last {family.run} pages brought nothing new", family.example)


def _growing(url: Url) -> str | None:
    if len(url.path) > DEEP:
        return f"the path has {len(url.path)} components"
    if len(url.path) - len(set(url.path)) < REPEATED:  # most paths: nothing stands there so often
        return None
    component, times = Counter(part for part in url.path if part).most_common(1)[0] if any(url.path) else ("", 0)
    if times > REPEATED and not component.isdigit():
        return f"{component!r} stands {times} times in the path"
    return None
