"""The policies of a store, as all its homes know them, in one order.

BASE:policies   list: each policy as JSON; an edge has a bit for each that is graded (lua/add_policy.lua)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from clusterd_crawler.errors import WrongInput

from clusterd.clusters.contract import Policy
from clusterd.clusters.redis.home import ADD_POLICY
from clusterd.clusters.redis.homes import Homes

#: Policies by resemblance or containment: an edge has a bit for each (lua/add_policy.lua).
GRADED_MOST: Final = 16


class Policies:
    """The policies that were known when the store was last asked (`known`), and those that are added.

    Each is added to the first home before the others: who has more than that knows what it has lost.
    """

    def __init__(self, homes: Homes) -> None:
        self._homes = homes
        self.known: list[Policy] = []
        self.agree()

    @property
    def graded(self) -> list[Policy]:
        """Return those by resemblance or containment."""
        return [policy for policy in self.known if not policy.identical]

    def reload(self) -> list[Policy]:
        """Ask the store for its policies."""
        return self._take(self._homes.first.command("LRANGE", "policies", 0, -1))

    def agree(self) -> list[Policy]:
        """Ask the store for its policies, and let all homes know all of them."""
        lists = self._homes.ask("LRANGE", "policies", 0, -1)
        known, most = self._take(lists[0]), max(lists, key=len)
        if len(most) > len(known):
            for policy in self._take(most):
                self._homes.first.run(ADD_POLICY, *_added(policy))
            known = self.reload()
        short = [home for home, texts in zip(self._homes.all, lists, strict=True) if len(texts) < len(known)]
        if short:  # one may have come back with nothing: it takes no page before it knows all policies
            self._homes.seed()
        self._homes.send([home.function(ADD_POLICY, *_added(policy)) for home in short for policy in known])
        return known

    def add(self, policy: Policy) -> None:
        """Add a policy; `WrongInput` where its name is taken, or where there are too many."""
        self.agree()
        self._take(self._homes.first.run(ADD_POLICY, *_added(policy)))
        self.agree()
        if not policy.identical and all(known.name != policy.name for known in self.known):
            raise WrongInput(
                f"{policy.name} is one policy too many: {GRADED_MOST} by resemblance or containment are kept"
            )
        if policy not in self.known:
            raise WrongInput(f"a policy named {policy.name} exists with another threshold; choose another name")

    def _take(self, texts: Sequence[bytes]) -> list[Policy]:
        self.known = [Policy(**json.loads(text)) for text in texts]
        return list(self.known)


def _added(policy: Policy) -> tuple[str, str, int]:
    """Return what add_policy.lua is given of a policy."""
    return policy.name, json.dumps(asdict(policy)), 0 if policy.identical else 1
