"""The policies of a store, as all its homes know them, in one order.

BASE:policies   list: each policy as JSON; an edge has a bit for each that is graded (lua/policies.lua)

A policy that is removed leaves its place **vacant**: the others keep theirs, on which places in clusters, edges and
tasks rest. It takes up no edge from then on, whatever a worker says that has not heard of it: who names another number
than the store's (`State.number`) is refused, and asks again. What contents still hold of it is cleared by whoever
settles (lua/clear.lua); then another policy may take the place. A home that was set back may have another policy in a
place than the store by now: the place is vacated there and cleared before the home has the latest and takes pages.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Final, NamedTuple

from clusterd_crawler.errors import WrongInput

from clusterd.clusters.contract import VACANT, Policy
from clusterd.clusters.redis.home import Home, counted
from clusterd.clusters.redis.homes import Homes

#: Policies by resemblance or containment: an edge has a bit for each (lua/policies.lua).
GRADED_MOST: Final = 16
#: lua/counters.lua: values of a place and of a change in a number of policies; changes of which it has room.
PLACES, CHANGES = 32, 2048
#: Contents that are cleared of removed policies in one step (lua/clear.lua): some 15 µs each.
CLEARED: Final = 128


class State(NamedTuple):
    """The policies as a home has them, and their number there (lua/counters.lua)."""

    number: int
    texts: tuple[bytes, ...] = ()
    #: All of them, in order, also those that are vacant.
    entries: tuple[Policy, ...] = ()

    @property
    def graded(self) -> list[Policy]:
        """Return those by resemblance or containment, and vacant ones, each in its place."""
        return [policy for policy in self.entries if not policy.identical]

    @property
    def in_use(self) -> list[Policy]:
        """Return those that are in use."""
        return [policy for policy in self.entries if not policy.vacant]

    @property
    def age(self) -> tuple[int, int]:
        """Return how often a place was vacated or taken again, and how many policies there are: most, of the latest."""
        return self.number // PLACES % CHANGES, len(self.texts)


class Policies:
    """The policies that were known when the store was last asked (`state`); others are added, or removed.

    Each change is made in the first home before the others: who has a later one knows what it has lost.
    """

    def __init__(self, homes: Homes) -> None:
        self._homes = homes
        self.state = State(0)
        self.agree()

    def reload(self) -> State:
        """Ask the store for its policies."""
        self.state = self._look([self._homes.first])[0]
        return self.state

    def are_lost(self) -> bool:
        """Whether the store has fewer than are known: it was set back, or emptied."""
        return self._look([self._homes.first])[0].age < self.state.age

    def agree(self) -> State:
        """Ask the homes for the policies, and let all have the latest."""
        while True:
            found = self._look(self._homes.all)
            latest = max([*found, self.state], key=lambda state: state.age)
            behind = [(home, at) for home, at in zip(self._homes.all, found, strict=True) if at != latest]
            if not behind:
                self.state = latest
                return latest
            self._homes.seed()  # one may have come back with nothing: it takes no page before it knows all policies
            for home, at in behind:
                bring(home, at, latest)

    def add(self, policies: Sequence[Policy]) -> None:
        """Add those that the store lacks; `WrongInput`, and none, where a name is taken or where there are too many."""
        while lacking := self._lacking(policies):
            names = {known.name for known in self.state.entries}
            if taken := [policy.name for policy in lacking if policy.name in names]:
                raise WrongInput(f"a policy named {taken[0]} exists with another threshold; choose another name")
            vacant = self._vacant()
            room = GRADED_MOST - len(self.state.graded) + len(vacant)
            if too_many := [policy.name for policy in lacking if not policy.identical][room:]:
                raise WrongInput(
                    f"{too_many[0]} is one policy too many: {GRADED_MOST} by resemblance or containment are kept "
                    "(clusterd policy remove makes room, once all has settled)"
                )
            texts, changes = list(self.state.texts), self.state.age[0]
            place = vacant[0] if vacant and not lacking[0].identical else len(texts)
            texts[place : place + 1] = [text_of(lacking[0])]
            change(self._homes.first, self.state, texts, changes + (place < len(self.state.texts)))

    def _lacking(self, policies: Sequence[Policy]) -> list[Policy]:
        known = self.agree().entries  # asked once: another may be adding the same ones
        return [policy for policy in policies if policy not in known]

    def remove(self, name: str) -> None:
        """Remove a policy, where there is one of this name."""
        while any(known.name == name for known in self.agree().entries):
            place = next(place for place, known in enumerate(self.state.entries) if known.name == name)
            texts = list(self.state.texts)
            texts[place : place + 1] = [] if self.state.entries[place].identical else [text_of(VACANT)]
            change(self._homes.first, self.state, texts, self.state.age[0] + 1)

    def _vacant(self) -> list[int]:
        """Return the places that are vacant, and that nothing is to be cleared of."""
        vacant = [place for place, known in enumerate(self.state.entries) if known == VACANT]
        return [] if vacant and any(self._homes.ask("EXISTS", "clear")) else vacant

    def _look(self, homes: Sequence[Home]) -> list[State]:
        found = self._read(homes)
        if any(map(_is_torn, found)):  # or one was begun between the two looks
            found = self._read(homes)
        for home, state in zip(homes, found, strict=True):
            if _is_torn(state):
                raise home.lost("i" if state.texts else "policies")
        return found

    def _read(self, homes: Sequence[Home]) -> list[State]:
        # (The number first: who reads of a change in between has the number of before, and is refused.)
        asked = [one for home in homes for one in (home.request("GET", "i"), home.request("LRANGE", "policies", 0, -1))]
        replies = iter(self._homes.send(asked))
        return [_state(counted(next(replies)).policies, next(replies)) for _ in homes]


def _state(number: int, texts: Iterable[bytes]) -> State:
    texts = tuple(texts)
    return State(number, texts, tuple(Policy(**json.loads(text)) for text in texts))


def _is_torn(state: State) -> bool:
    """Whether a home has its policies, but not its counters, without which pages would be given numbers of others.

    Or its counters, but not its policies: the two are written together.
    """
    return bool(state.number % PLACES) != bool(state.graded)


def text_of(policy: Policy) -> bytes:
    """Return a policy as a store keeps it."""
    return json.dumps(asdict(policy)).encode()


def bring(home: Home, at: State, latest: State) -> None:
    """Let a home have the latest policies, or at first places without a policy where it has others, to be cleared."""
    had, vacant = iter(at.graded), text_of(VACANT)
    both = zip(latest.entries, latest.texts, strict=True)
    texts = tuple(text if one.identical or next(had, one) == one else vacant for one, text in both)
    if vacant in texts and texts == at.texts:
        while clear(home):
            pass
        texts = latest.texts
    changes = latest.age[0] - (texts != latest.texts)  # what is not the latest yet is older than that
    change(home, at, texts, max(changes, 0))


def clear(home: Home) -> bool:
    """Let some contents of a home forget policies that were removed; return whether any had to."""
    return bool(home.run("clear", CLEARED))


def uncleared(packed: bytes | None) -> int:
    """Return how many calls of `clear` are left, by what a home has noted of it (lua/clear.lua); None: nothing."""
    if packed is None:
        return 0
    first, last = (int(number) for number in struct.unpack("<II", packed))
    return max(1, -(-(last - first + 1) // CLEARED))


def change(home: Home, before: State, texts: Iterable[bytes], changes: int) -> None:
    """Let a home have other policies, unless it has others than before by now."""
    if changes >= CHANGES:
        raise WrongInput(f"policies of this store were removed {CHANGES} times, which is as often as they can be")
    home.run("policies", b"\n".join([b"%d" % before.number, *before.texts]), changes, *texts)
