"""Crawler traps: families of pages that bring nothing new are noticed, slowed or cut, and opened again."""

from __future__ import annotations

import mmh3
import pytest
from clusterd_crawler.settings import Settings
from clusterd_crawler.skipping import traps
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.skipping.traps import OFTEN, REPEATED, RUN, WAITING, TrapGuard, family_of
from clusterd_crawler.urls import parse


def test_a_family_that_brings_nothing_new_is_noticed_reported_slowed_or_cut() -> None:
    left = {}
    for mode in ("off", "report", "sample", "cut"):
        known = KnownPages.from_settings(Settings(trap_guard=mode, explore=0))
        for number in range(RUN + 1):
            known.fetched(f"http://h.com/cal/{number}?d=1", number, content=5)
        skips = [known.decide(f"http://h.com/cal/{number}?d=1", 999) for number in range(5000, 6000)]
        left[mode] = sum(skip is not None for skip in skips)
        noticed = known.traps.noticed()
        assert [trap.family for trap in noticed] == ([] if mode == "off" else ["h.com/cal/N?d"])
        assert known.traps.noticed() == []
    assert left["off"] == left["report"] == 0
    assert 900 < left["sample"] < 990
    assert left["cut"] == 1000


def test_what_another_crawl_fetched_makes_no_trap() -> None:
    known = KnownPages.from_settings(Settings(trap_guard="cut", explore=0))
    for number in range(2 * RUN):
        known.fetched(f"http://h.com/cal/{number}?d=1", number, content=number, earlier=True)
    for number in range(RUN + 1):
        known.fetched(f"http://h.com/cal/{number}?d=2", number, content=number)
    assert known.traps.noticed() == []


def test_pages_that_are_fetched_again_make_no_trap() -> None:
    """As where a crawl that was killed begins again under its id: the daemon has told it of what it fetched before."""
    known = KnownPages.from_settings(Settings(trap_guard="cut", explore=0))
    for at in (0, 1):
        for number in range(2 * RUN):
            known.fetched(f"http://h.com/p/{number}", at, content=number)
    assert known.decide("http://h.com/p/9999", 2) is None
    assert known.traps.noticed() == []


@pytest.mark.parametrize("forgotten", ["it failed", "the oldest of too many", "of another crawl"])
def test_a_trap_stays_one_when_one_of_the_pages_that_show_the_same_is_forgotten(forgotten: str) -> None:
    limit = RUN if forgotten == "the oldest of too many" else 10 * RUN
    known = KnownPages(explore=0, limit=limit, guard="cut")
    known.fetched("http://h.com/old", 0, content=5, earlier=True)
    for number in range(RUN + 1):
        known.fetched(f"http://h.com/cal/{number}", number, content=5)
    if forgotten != "the oldest of too many":
        gone = "http://h.com/cal/7" if forgotten == "it failed" else "http://h.com/old"
        known.fetched(gone, 999, good=False)
    known.fetched("http://h.com/cal/9998", 1000, content=5)
    assert known.decide("http://h.com/cal/9999", 1000) is not None
    assert known.reopened() == set()


@pytest.mark.parametrize("again", [1, 3])
def test_what_only_forgotten_pages_showed_is_new_again(again: int) -> None:
    """However often a page was fetched: no more contents are kept than pages."""
    known = KnownPages(explore=0)
    known.fetched("http://h.com/other", 0, content=6)
    for at in range(again):
        known.fetched("http://h.com/page", at, content=5)
    known.fetched("http://h.com/page", 999, good=False)
    (held,) = known._hosts.values()
    assert list(held.contents) == [6]


def test_something_new_opens_a_trap_again() -> None:
    guard = TrapGuard("cut")
    for _ in range(2):
        for number in range(RUN - 1):
            guard.fetched(f"http://h.com/cal/{number}", 5, new=False)
        assert (guard.leaves("http://h.com/cal/9999"), guard.noticed()) == (None, [])
        for number in range(RUN, RUN + 5):
            guard.fetched(f"http://h.com/cal/{number}", 5, new=False)
        left = guard.leaves("http://h.com/cal/9999")
        assert left is not None
        assert (left.family, left.example) == ("h.com/cal/N", f"http://h.com/cal/{RUN + 4}")
        assert len(guard.noticed()) == 1  # each time that it becomes one, once
        guard.fetched("http://h.com/cal/1", 5, new=True)
        assert guard.leaves("http://h.com/cal/9999") is None


def test_a_second_address_of_each_page_is_no_trap() -> None:
    """Print views, links with `utm_source=`: they bring nothing new, each of another page."""
    guard = TrapGuard("cut")
    for number in range(2000):
        guard.fetched(f"http://h.com/p/{number}?print=1", mmh3.hash(str(number)), new=False)
    assert (guard.leaves("http://h.com/p/9999?print=1"), guard.noticed()) == (None, [])


def test_pages_that_come_under_ever_new_addresses_are_a_trap() -> None:
    """Sessions in paths: each of some contents is shown over and over."""
    for contents in (1, 20, 300):
        guard = TrapGuard("cut")
        for number in range(OFTEN * max(contents, RUN // OFTEN)):
            guard.fetched(f"http://h.com/{number}/index", mmh3.hash(str(number % contents)), new=False)
        assert guard.leaves("http://h.com/9999/index") is not None
        assert len(guard.noticed()) == 1


def test_traps_that_nobody_asks_for_are_bounded() -> None:
    guard = TrapGuard("report")
    letters = [first + second + third for first in "abcdefghijkl" for second in "mnopqrstuvwx" for third in "abcdefgh"]
    assert len(letters) > WAITING
    for name in letters:
        guard.fetched(f"http://{name}.com" + "/a" * (REPEATED + 1), 5, new=True)
    assert len(guard.noticed()) == WAITING
    guard.fetched("http://h.com/later" + "/a" * (REPEATED + 1), 5, new=True)
    assert [trap.family for trap in guard.noticed()] == ["h.com/later" + "/a" * (REPEATED + 1)]


def test_a_host_that_grows_paths_for_ever_is_one_trap() -> None:
    known = KnownPages.from_settings(Settings(trap_guard="cut", explore=0))
    for number in range(100):
        known.fetched(
            f"http://h.com/x{chr(97 + number % 26) * (number + 1)}" + "/a/b" * (REPEATED + 1), number, content=1
        )
    assert len(known.traps.noticed()) == 1
    skips = [known.decide(f"http://h.com/{'y' * number}/" + "a/b/" * (REPEATED + 1), 999) for number in range(1, 100)]
    assert None not in skips
    rules = {skip.rule for skip in skips if skip is not None}
    assert len(rules) == 1
    elsewhere = known.decide("http://i.com" + "/a/b" * (REPEATED + 1), 999)
    assert elsewhere is not None
    assert elsewhere.rule not in rules


def test_of_too_many_families_those_stay_that_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traps, "FAMILIES", 3)
    guard = TrapGuard("cut")
    for number in range(RUN):
        guard.fetched(f"http://h.com/cal/{number}", 5, new=False)
        guard.fetched(f"http://h.com/{'x' * number}", 5, new=True)
    assert len(guard._families) == 3
    assert guard.leaves("http://h.com/cal/9999") is not None


def test_paths_that_grow_in_circles_are_traps() -> None:
    guard = TrapGuard("cut")
    assert guard.leaves("http://h.com" + "/a/b" * (REPEATED + 1)) is not None
    assert guard.leaves("http://h.com" + "/a/b" * REPEATED) is None
    assert guard.leaves("http://h.com/" + "/".join(f"p{n}" for n in range(40))) is not None
    assert family_of(parse("http://h.com/2024/05?b=1&a=2")) == "h.com/N/N?a&b"
