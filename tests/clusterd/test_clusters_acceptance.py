"""Which policies join a pair, and which of them join the most."""

from __future__ import annotations

import pytest
from clusterd.clusters.acceptance import accepts, loosest, mask
from clusterd.clusters.contract import DEFAULT_POLICIES, Policy
from clusterd_consumer.resemblance import Estimate

IDENTICAL = Policy("identical")
NEAR, RELATED = Policy("near", resemblance=0.9), Policy("related", resemblance=0.5)
CONTAINED, WITHIN = Policy("contained", containment=0.9), Policy("within", containment=0.6)


@pytest.mark.parametrize(
    ("verdict", "joining"),
    [
        (Estimate(0.9, 0.9, 0.95), (NEAR, RELATED, CONTAINED)),
        (Estimate(0.89, 0.95, 0.93), (RELATED, CONTAINED)),
        (Estimate(0.2, 0.2, 0.9), (CONTAINED,)),
        (Estimate(0.2, 0.9, 0.2), (CONTAINED,)),
        (Estimate(0.49, 0.7, 0.7), ()),
        (Estimate(0.0, 0.0, 0.0), ()),
    ],
)
def test_a_threshold_is_reached_by_what_equals_it(verdict: Estimate, joining: tuple[Policy, ...]) -> None:
    policies = (NEAR, RELATED, CONTAINED)
    assert tuple(policy for policy in policies if accepts(policy, verdict)) == joining
    assert mask(policies, verdict) == sum(1 << policies.index(policy) for policy in joining)
    assert not accepts(IDENTICAL, verdict)


def test_the_loosest_of_each_kind_is_named_by_its_slot_among_the_graded() -> None:
    assert loosest(DEFAULT_POLICIES) == [1, 2]
    assert loosest((WITHIN, IDENTICAL, RELATED, NEAR, CONTAINED)) == [1, 0]
    assert loosest((IDENTICAL, NEAR)) == [0]
    assert loosest((IDENTICAL,)) == []
