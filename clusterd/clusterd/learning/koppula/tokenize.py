"""URL → the function from keys to values of definition 1, and the views of a key that generalization chooses from.

Koppula et al. 2010, section 3.1.1 and definition 1. A *slot* is a key in the compact form that the learner counts
with: ``(name, a, b, i, j)``; of a path component ``name`` is "", ``a`` = x from the start (1 = scheme, 2 = host),
``b`` = y from the end; of a query key ``name`` is "?" and its name, ``a`` the occurrence. ``i``, ``j`` count deep
tokens from both ends, 0 = the whole component. Plain tuples hash in C: five times faster than the dataclass that
rules are published as.

What the paper leaves open (RFC 1738 is all that it says, A0), as chosen here and in `urls`: fragment dropped; a
trailing slash is an explicit empty last component, so that a rule can delete it; a bare host and "/" have no
component; repeated query keys are numbered; ``;`` separates parameters where the query has no ``&``; ``;name=``
inside the path is a key; a key without ``=`` has a value of its own (`BARE`), distinct from the empty one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

from clusterd_crawler.errors import WrongInput
from clusterd_crawler.rules import Key
from clusterd_crawler.urls import canonical, parse

Slot = tuple[str, int, int, int, int]
Tokens = dict[Slot, str]
View = Literal["both", "start", "end"]

#: The value of a query key that has no "=": distinct from the empty value, and impossible in a URL.
BARE = "\0"
#: A URL with more is a trap's. Work per URL is bounded: components beyond are kept in one piece, parameters left out.
MAX_COMPONENTS, MAX_PARAMETERS = 40, 60


class UrlParts(NamedTuple):
    """A URL cut at the standard delimiters."""

    scheme: str
    host: str
    path: tuple[str, ...]
    query: tuple[tuple[str, str], ...]

    def text(self, *, sort: bool = False) -> str:
        """Serialise; query keys in the order in which they stand, or sorted (two orders are one URL: A0b)."""
        if not self.query:
            return f"{self.scheme}://{self.host}/{'/'.join(self.path)}"
        pairs = [
            name if value == BARE else f"{name}={value}" for name, value in (sorted(self.query) if sort else self.query)
        ]
        matrix = "".join(pair for pair in pairs if pair[:1] == ";")
        query = "&".join(pair for pair in pairs if pair[:1] != ";")
        return f"{self.scheme}://{self.host}/{'/'.join(self.path)}{matrix}" + (f"?{query}" if query else "")


def split_url(url: str) -> UrlParts:
    """Cut a URL at the standard delimiters (RFC 1738); never fails: what is no URL is one value."""
    try:
        taken = parse(canonical(url))
    except WrongInput:
        return UrlParts("", url, (), ())
    path = tuple(taken.path) if taken.path != [""] else ()
    if len(path) > MAX_COMPONENTS:
        path = (*path[: MAX_COMPONENTS - 1], "/".join(path[MAX_COMPONENTS - 1 :]))
    pairs = [(name, BARE if value is None else value) for name, value in taken.query[:MAX_PARAMETERS]]
    if taken.matrix:
        pairs += [(name, BARE if value is None else value) for _, name, value in taken.matrix[:MAX_PARAMETERS]]
    return UrlParts(taken.scheme, taken.authority, path, tuple(pairs))


@lru_cache(maxsize=4096)
def path_slots(components: int) -> tuple[Slot, ...]:
    """Return the slots of a URL's scheme, host and path: ``components`` of them in all, indexed from both ends."""
    return tuple(("", x, components + 1 - x, 0, 0) for x in range(1, components + 1))


def tokenize(url: str | UrlParts) -> Tokens:
    """Return the URL as a function from slots to values (definition 1), without deep tokens."""
    parts = split_url(url) if isinstance(url, str) else url
    tokens = dict(zip(path_slots(len(parts.path) + 2), (parts.scheme, parts.host, *parts.path), strict=True))
    for name, value in parts.query:
        slot = ("?" + name, 1, 0, 0, 0)
        while slot in tokens:
            slot = (slot[0], slot[1] + 1, 0, 0, 0)
        tokens[slot] = value
    return tokens


def join(tokens: Mapping[Slot, str]) -> UrlParts:
    """Put a URL together again; slots of the path are ordered by their position, query keys as they stand."""
    path: list[tuple[Slot, str]] = []
    query: dict[tuple[str, int], list[tuple[Slot, str]]] = {}
    for slot, value in tokens.items():
        if slot[0]:
            query.setdefault(slot[:2], []).append((slot, value))
        else:
            path.append((slot, value))
    path.sort()
    components: dict[int, str] = {}
    for (_, x, _, _, _), value in path:
        components[x] = components[x] + value if x in components else value
    scheme, host, *rest = components.values()
    pairs = [(name[1:], "".join([value for _, value in sorted(pieces)])) for (name, _), pieces in query.items()]
    return UrlParts(scheme, host, tuple(rest), tuple(pairs))


def whole(slot: Slot) -> Slot:
    """Return the component or query key that a deep token belongs to."""
    return (*slot[:3], 0, 0)


@lru_cache(maxsize=65536)
def in_view(slot: Slot, view: View) -> Slot:
    """Return a path slot as counted from the start only, ``k(x,-)``, from the end only, ``k(-,y)``, or both.

    The paper switches between them without a word (A0c). Scheme and host always count from the start.
    """
    name, x, y, i, j = slot
    if name:
        return slot
    if x <= 2:
        return (name, x, 0, i, j)
    if view == "start":
        return (name, x, 0, i, j)
    return (name, 0, y, i, j) if view == "end" else slot


@lru_cache(maxsize=65536)
def key_of(slot: Slot) -> Key:
    """Return the slot as the key that rules are published with."""
    name, a, b, i, j = slot
    if name:
        return Key(name=name[1:], occurrence=a, deep=i, deep_end=j)
    return Key(start=a, end=b, deep=i, deep_end=j)


def slots_of(urls: Iterable[Tokens]) -> set[Slot]:
    """Return K, the set of all keys of some URLs."""
    return {slot for tokens in urls for slot in tokens}
