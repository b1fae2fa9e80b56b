"""Verdict → which policies join the pair: one bit a policy, in the order in which policies were added."""

from __future__ import annotations

from collections.abc import Sequence

from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.errors import WrongInput

from clusterd.clusters.contract import Policy


def accepts(policy: Policy, verdict: Estimate) -> bool:
    """Whether a policy joins two pages of this verdict; one by identical text asks for more than a verdict."""
    if policy.resemblance is not None:
        return verdict.resemblance >= policy.resemblance
    return policy.containment is not None and verdict.containment >= policy.containment


def mask(policies: Sequence[Policy], verdict: Estimate) -> int:
    """Return the bits of the policies that join the pair."""
    bits, bit = 0, 1
    for policy in policies:
        if accepts(policy, verdict):
            bits |= bit
        bit <<= 1
    return bits


def slot_of(policies: Sequence[Policy], name: str) -> int:
    """Return a policy's slot: its bit; -1 for one by identical text; `WrongInput` where there is none."""
    known = next((policy for policy in policies if policy.name == name), None)
    if known is None:
        raise WrongInput(
            f"there is no policy {name!r}; policies are {', '.join(p.name for p in policies if not p.vacant)}"
        )
    return -1 if known.identical else [p.name for p in policies if not p.identical].index(name)


def loosest(policies: Sequence[Policy]) -> list[int]:
    """Return the slots of the graded policies that join the most: by resemblance, and by containment."""
    graded = list(enumerate(policy for policy in policies if not policy.identical))
    resembling = [(policy.resemblance, slot) for slot, policy in graded if policy.resemblance is not None]
    containing = [(policy.containment, slot) for slot, policy in graded if policy.containment is not None]
    return [min(of_kind)[1] for of_kind in (resembling, containing) if of_kind]
