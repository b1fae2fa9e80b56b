"""A page of several homes that its worker has linked, and not united yet, when its cluster falls apart."""

from __future__ import annotations

import pytest

from tests.contract.index_world import expected, page, partition, settled
from tests.contract.moments import StandingStill
from tests.contract.test_index_homes import depart
from tests.contract.test_index_spans import BRIDGE, ELSEWHERE, RIGHT, on, opened


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside-another"])
@pytest.mark.parametrize("moves", [1, 2, 3, 9], ids=["first", "second", "third", "behind"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_side_moves_with_a_page_that_is_in_hand(
    redis_url: str, prefix: str, nth: int, moves: int, beside: bool
) -> None:
    """The page hangs on a side alone; it stands nowhere in its home, where another of the side may stand already."""
    joining = StandingStill()
    bridge, in_hand = on(1, "bridge"), page(on(0, "in-hand"), 1, range(975, 1075))
    crawl = [page(on(0, f"left-{n}"), 1, range(-25 * n, 100 - 25 * n)) for n in range(8)]  # longer, so this side stays
    crawl += [page(on(2, "right"), 1, RIGHT), page(on(2, "righter"), 1, range(1025, 1125)), page(bridge, 1, BRIDGE)]
    other = opened(redis_url, prefix)
    other.apply(crawl)
    settled(other)
    slow = opened(redis_url, prefix, "crown", nth, joining.wait)
    settler = opened(redis_url, prefix, "move", moves, joining.let_go_on)
    joining.begin(lambda: slow.apply([in_hand]))
    changes = [page(bridge, 2, ELSEWHERE)]
    if beside:
        changes.insert(0, page(on(0, "beside"), 1, range(1050, 1150)))
    for one in changes:
        other.apply([one])
    settled(settler)
    joining.let_go_on()  # where that moment has not come
    settled(other)
    assert partition(other) == expected([*crawl, in_hand, *changes])
    for one in (slow, settler):
        one.close()
    depart(redis_url, prefix, other, [*crawl, in_hand, *changes])
    other.close()
