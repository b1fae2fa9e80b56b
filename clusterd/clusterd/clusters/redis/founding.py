"""What whoever opens a store first decides for all: layout, shards, how candidates are found, whether whole pages stay.

BASE:m   hash: layout, shards, scheme (as JSON), whole
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from typing import Final

from clusterd_consumer.hash_tags import hash_tags, numbered, spread_tags
from clusterd_consumer.postings.scheme import DEFAULT, Scheme
from clusterd_crawler.errors import WrongInput

from clusterd.clusters.contract import WITHOUT_WHOLE
from clusterd.clusters.redis.home import Home

#: Of the records (lua/records.lua), lists and sketches. Counted up when a store of before can no longer be read.
LAYOUT: Final = 5
#: The same, of a store whose shards are homes, too, spread over all slots (`homes`): every new one on a Redis Cluster.
SPREAD: Final = 6
#: The oldest that can be read: its shards are called by their numbers.
OLDEST: Final = 4


def scheme_of(home: Home, wanted: Scheme | None) -> Scheme:
    """Return the scheme to open a store with: its own, where none is wanted, or the default one for its candidates.

    So a store that was begun when the defaults had other numbers is opened also where a setting names its candidates.
    """
    begun = _read(home.command("HGET", "m", "scheme") or b"")
    if begun is not None and wanted in (None, Scheme(candidates=begun.candidates)):
        return begun
    return wanted or DEFAULT


def _read(known: bytes) -> Scheme | None:
    """Return a scheme as a store keeps it; None where that is none of ours."""
    with suppress(TypeError, ValueError):
        return Scheme(**json.loads(known))
    return None


def founded(home: Home, scheme: Scheme, shards: int, layout: int) -> tuple[tuple[str, ...], int]:
    """Agree with whoever opened the store first on layout, shards and scheme; return the shards' tags, the layout."""
    ours = json.dumps(asdict(scheme), sort_keys=True)
    known, there = home.command("HMGET", "m", "scheme", "layout")
    if known is None:
        for name, value in (("layout", layout), ("shards", shards), ("scheme", ours)):
            home.command("HSETNX", "m", name, value)
    elif not OLDEST <= int(there or 1) <= SPREAD:
        raise WrongInput(
            f"this store has the layout {int(there or 1)}, this version of clusterd reads {OLDEST} to {SPREAD}: "
            "use the version that made it, or read the log again into a store of another prefix"
        )
    known, begun, there = home.command("HMGET", "m", "scheme", "shards", "layout")
    if known.decode() != ours:
        raise WrongInput(_another(known, scheme))
    named = {OLDEST: numbered, LAYOUT: hash_tags, SPREAD: spread_tags}[int(there)]
    return named(int(begun)), int(there)


def _another(known: bytes, wanted: Scheme) -> str:
    """Return what is said where a store was begun with another scheme than is wanted."""
    begun = _read(known)
    if begun is not None and begun.candidates != wanted.candidates:
        return (
            f"this store was begun with candidates = {begun.candidates} and keeps to that; "
            f"for {wanted.candidates} read the log into a store of another prefix or folder"
        )
    return f"this store was made with the scheme {known.decode()}; open it with that one"


def keeps_whole(home: Home, wanted: bool) -> bool:
    """Agree with whoever opened the store first on whether whole pages are kept: all writers have to."""
    if home.command("HGET", "m", "whole") is None:
        home.command("HSETNX", "m", "whole", int(wanted))
    kept = bool(int(home.command("HGET", "m", "whole")))
    if wanted and not kept:
        raise WrongInput(WITHOUT_WHOLE)
    return kept
