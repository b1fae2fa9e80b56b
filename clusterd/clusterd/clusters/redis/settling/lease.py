"""One settler at a time: the lease of all homes of a store, by a token that the scripts of the settler name.

Each time it is taken it has a new token, so that what was sent under the one before counts no more. Who took it last
takes it again at once: a settler whose store went away in the midst of a step, and came back, does not keep itself out.
"""

from __future__ import annotations

import os
from typing import Final

from clusterd.clusters.redis.home import LEASE, RENEW
from clusterd.clusters.redis.homes import Homes

#: Milliseconds that a settler may be silent before another takes over (settling.lua renews it).
SILENCE: Final = 30_000


class LeaseLost(Exception):
    """Another settler took over."""


class Lease:
    """The lease as one settler has it."""

    def __init__(self, homes: Homes) -> None:
        self._homes = homes
        self.token = ""

    def take(self) -> bool:
        """Take the leases of all homes, in order: who has the first has, or gets, the others."""
        before, self.token = self.token, os.urandom(8).hex()
        taken = self._homes.first.run(LEASE, self.token, SILENCE, before)
        if taken and len(self._homes) > 1:
            calls = {home.place: (self.token, SILENCE, before) for home in self._homes.all[1:]}
            taken = all(self._homes.each(LEASE, calls).values())
            if not taken:
                self.give_back()
        return bool(taken)

    def renew(self) -> None:
        """Keep the leases of all homes: most steps are of one."""
        for held in self._homes.each(RENEW, {home.place: (self.token,) for home in self._homes.all}).values():
            self.held(held)

    def held(self, reply: int) -> int:
        """Return what a script replied, unless it says that another has the lease."""
        if reply == -1:
            raise LeaseLost
        return reply

    def give_back(self) -> None:
        """Give back what leases there are."""
        locks = zip(self._homes.all, self._homes.ask("GET", "lock"), strict=True)
        self._homes.send([home.request("DEL", "lock") for home, lock in locks if lock == self.token.encode()])
