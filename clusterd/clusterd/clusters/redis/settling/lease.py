"""One settler at a time: the lease of all homes of a store, by a token that the scripts of the settler name.

Each time it is taken it has a new token, so that what was sent under the one before counts no more. Who took it last
takes it again at once: a settler whose store went away in the midst of a step, and came back, does not keep itself out.
"""

from __future__ import annotations

import os
import time
from typing import Final

from clusterd.clusters.redis.homes import Homes

#: Seconds after which a lease is renewed in what takes long: a third of those for which a settler may be silent before
#: another takes over (`held` in settling.lua).
RENEWAL: Final = 3.0


class LeaseLost(Exception):
    """Another settler took over."""


class Lease:
    """The lease as one settler has it."""

    def __init__(self, homes: Homes) -> None:
        self._homes = homes
        self._renewed = 0.0
        self.token = ""

    def take(self) -> bool:
        """Take the leases of all homes, in order: who has the first has, or gets, the others."""
        before, self.token = self.token, os.urandom(8).hex()
        self._renewed = time.monotonic()
        taken = self._homes.first.run("lease", self.token, before)
        if taken and len(self._homes) > 1:
            calls = {home.place: (self.token, before) for home in self._homes.all[1:]}
            taken = all(self._homes.each("lease", calls).values())
            if not taken:
                self.give_back()
        return bool(taken)

    def keep(self) -> None:
        """Renew the leases where that is due: most steps are of one home, and what is looked up renews nothing."""
        if time.monotonic() - self._renewed >= RENEWAL:
            self.renew()

    def renew(self) -> None:
        """Renew the leases of all homes."""
        self._renewed = time.monotonic()
        for held in self._homes.each("renew", {home.place: (self.token,) for home in self._homes.all}).values():
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
