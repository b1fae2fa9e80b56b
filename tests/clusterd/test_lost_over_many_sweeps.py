"""What lost & found holds and reads of a site that was crawled many times: no more than its sweeps in use."""

from __future__ import annotations

import weakref
from typing import ClassVar

import pytest
from clusterd.queries import elsewhere, moves, succession, sweep_pages
from clusterd.queries.nearest import Nearest
from clusterd.queries.nearness import Match
from clusterd_crawler.sketch import TEXT

from clusterd import queries
from tests.clusterd.made_up_site import DAY, Site, words

SWEEPS = 10
PAGES = 12


@pytest.fixture(scope="module")
def site() -> Site:
    """In each sweep a page goes and one is new; every third moves twice, half of it written anew each time."""
    site = Site()
    for sweep in range(SWEEPS):
        for number in range(sweep, sweep + PAGES):
            moves = (sweep - number + PAGES - 1) // 4 if number % 3 == 0 else 0
            text = " ".join(words(f"{number} {half + 2 * (moves > half)}", 40) for half in range(2))
            site.add(f"http://a.example/{moves}/{number}-{moves}", text, f"{sweep}", at=(sweep + 1) * DAY)
    return site


class Counted(Nearest):
    """Knows how many sets there are, were at most and have been, and how many pages were read."""

    living: ClassVar[weakref.WeakSet[Counted]] = weakref.WeakSet()
    most = made = reads = 0

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        Counted.living.add(self)
        Counted.most, Counted.made = max(Counted.most, len(Counted.living)), Counted.made + 1

    def _read(self, *given: object) -> Match:
        Counted.reads += 1
        return super()._read(*given)  # type: ignore[arg-type]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[Counted]:
    Counted.living.clear()
    Counted.most = Counted.made = Counted.reads = 0
    monkeypatch.setattr(sweep_pages, "Nearest", Counted)
    return Counted


def test_no_more_sweeps_are_held_than_are_in_use(
    site: Site, counted: type[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, changed = site.lost(), list(queries.changes(site.index, TEXT))
    assert sum(one.match is not None for one in whole.values()) > 3
    assert any(one.via for one in whole.values())
    monkeypatch.setattr(sweep_pages, "HELD", 0)
    monkeypatch.setattr(succession, "HELD", 0)
    counted.most = counted.made = 0
    counted.living.clear()
    assert site.lost() == whole
    assert counted.most <= 3  # one more while it is made
    assert counted.made < 3 * len(whole)
    counted.most = 0
    assert list(queries.changes(site.index, TEXT)) == changed
    assert counted.most <= 3


def test_a_page_that_is_gone_is_not_compared_with_each_sweep_anew(site: Site, counted: type[Counted]) -> None:
    found = site.lost("http://a.example/0/1-0")["http://a.example/0/1-0"]
    assert found.match is None
    assert counted.reads <= 3 * PAGES


def test_what_is_remembered_of_a_large_site_has_a_bound_and_changes_no_answer(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = site.lost()
    monkeypatch.setattr(moves, "PORTION", 1)
    monkeypatch.setattr(elsewhere, "REMEMBERED", 1)
    assert site.lost() == whole


def test_what_a_page_is_made_from_is_asked_of_each_of_its_texts() -> None:
    """What a page was made from in the last sweep was taken for what it was made from before, and gave it to others."""
    site, host = Site(), "http://a.example/"
    shared, before, after = words("shared", 40), words("before", 75), words("after", 15)
    for name, text in (("lost", "lost"), ("moved", "moved")):
        site.add(f"{host}{name}", f"{shared} {words(text, 60)}", "1", at=DAY)
    site.add(f"{host}other", f"{before} {words('other', 15)}", "1", at=DAY)
    site.add(f"{host}new/page", f"{shared} {words('moved', 60)}", "2", at=2 * DAY)
    site.add(f"{host}new/page", f"{before} {after}", "3", at=3 * DAY)
    found = {name: site.lost()[f"{host}{name}"].match for name in ("lost", "moved", "other")}
    assert found == {"lost": None, "moved": f"{host}new/page", "other": f"{host}new/page"}
    assert site.lost(f"{host}lost")[f"{host}lost"].match is None


def test_a_page_is_followed_to_a_copy_that_was_left_as_it_was() -> None:
    """In the sweep that missed the page nothing is new; the copy was written anew later."""
    site, host = Site(), "http://a.example/"
    for sweep, text in (("1", "page"), ("2", "page"), ("3", "anew")):
        site.add(f"{host}copy", words(text), sweep, at=int(sweep) * DAY)
    site.add(f"{host}page", words("page"), "1", at=DAY)
    found = site.lost()[f"{host}page"]
    assert (found.match, found.to_sweep, found.via) == (f"{host}copy", "3", ())


def test_what_is_told_of_a_host_s_last_sweep_stays_as_other_hosts_are_seen_again() -> None:
    """The server is gone by then; a page that had moved from it vanished, it was said, once it was rewritten there."""
    site, host = Site(), "old.example"
    for sweep in ("1", "2"):
        site.add(f"http://{host}/home", words("home"), sweep, at=int(sweep) * DAY)
    site.add(f"http://{host}/page", words("page"), "1", at=DAY)
    site.add("http://new.example/page", words("page"), "2", at=2 * DAY)
    told, changed = site.lost(host=host), list(queries.changes(site.index, TEXT, host))
    assert [one.match for one in told.values()] == ["http://new.example/page"]
    site.add("http://new.example/page", words("rewritten"), "3", at=3 * DAY)
    assert (site.lost(host=host), list(queries.changes(site.index, TEXT, host))) == (told, changed)


def test_a_page_that_was_on_another_host_all_along_is_no_match() -> None:
    """Neither in sweeps of both hosts, nor in others: there it was before the lost one was last seen."""
    site = Site()
    for sweep in ("1", "2"):
        site.add("http://old.example/home", words("home"), sweep, at=int(sweep) * DAY)
        site.add("http://mirror.example/page", words("page"), sweep, at=int(sweep) * DAY)
        site.add("http://blog.example/other", words("other"), f"blog {sweep}", at=int(sweep) * DAY - 1)
    for name in ("page", "other", "moved"):
        site.add(f"http://old.example/{name}", words(name), "1", at=DAY)
    site.add("http://new.example/moved", words("moved"), "blog 2", at=2 * DAY)
    matches = {one.url.rpartition("/")[2]: one.match for one in site.lost().values()}
    assert matches == {"page": None, "other": None, "moved": "http://new.example/moved"}


@pytest.mark.parametrize("copies", [10, 19, 40, 100])
def test_what_quoted_a_page_elsewhere_hides_no_match(copies: int) -> None:
    """Under so many session ids it is nearer than what became of the page, which was written anew by half."""
    site, quote, rest = Site(), words("quote", 220), words("rest", 80)
    for sweep in (1, 2):
        site.add("http://old.example/home", words("home"), f"{sweep}", at=sweep * DAY)
        for n in range(copies):
            site.add(f"http://blog.example/?sid={n}", quote, f"{sweep}", at=sweep * DAY)
    site.add("http://old.example/page", f"{quote} {rest}", "1", at=DAY)
    site.add("http://new.example/page", f"{quote} {words('new', 160)} {rest}", "2", at=2 * DAY)
    (found,) = site.lost().values()
    assert (found.match, found.resemblance) == ("http://new.example/page", pytest.approx(0.62, abs=0.05))


def test_a_sweep_of_other_hosts_lies_where_it_began_among_those_of_a_server_that_is_gone() -> None:
    site, page = Site(), "http://gone.example/page"
    for sweep, days in (("spring", (1, 6)), ("winter", (8, 9))):
        site.add(page, words("page"), sweep, at=days[0] * DAY)
        site.add("http://gone.example/home", words("home"), sweep, at=days[1] * DAY)
    site.add("http://new.example/page", words("page"), "autumn", at=5 * DAY)
    site.add("http://new.example/home", words("late"), "autumn", at=12 * DAY)
    found = site.lost(page, to_sweep="autumn")[page]
    assert (found.match, found.from_sweep) == ("http://new.example/page", "spring")


def test_what_other_hosts_show_only_after_the_sweep_asked_for_is_no_match_of_a_server_that_is_gone() -> None:
    """Of hosts that the sweep saw; of others nobody knows since when it is there."""
    site = Site()
    for name in ("page", "other"):
        site.add(f"http://gone.example/{name}", words(name), "1", at=DAY)
    for sweep in (2, 3):
        site.add("http://new.example/home", words("home"), f"{sweep}", at=sweep * DAY)
    site.add("http://new.example/page", words("page"), "3", at=3 * DAY)
    site.add("http://blog.example/other", words("other"), "3", at=3 * DAY)
    matches = [[one.match for one in site.lost(host="gone.example", to_sweep=sweep).values()] for sweep in "23"]
    assert matches == [["http://blog.example/other", None], ["http://blog.example/other", "http://new.example/page"]]


def test_what_is_superseded_is_found_among_many_short_and_long_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a page of a dozen words, which has fewer values than are looked at."""
    monkeypatch.setattr(elsewhere, "PORTION", 7)
    site = Site()
    counts = {f"{n}": 14 + 40 * (n % 3) for n in range(50)}
    for sweep in ("1", "2", "3"):
        site.add("http://old.example/home", words("home"), sweep, at=int(sweep) * DAY)
    for name, count in counts.items():
        site.add(f"http://old.example/{name}", words(name, count), "1", at=DAY)
        site.add(f"http://new.example/{name}", words(name, count), "2", at=2 * DAY)
        site.add(f"http://new.example/{name}", words(f"anew {name}", count), "3", at=3 * DAY)
    found = site.lost(to_sweep="2")
    assert {url: one.match for url, one in found.items()} == {
        f"http://old.example/{name}": f"http://new.example/{name}" for name in counts
    }


@pytest.mark.parametrize(("held", "reads"), [(10, [5, 5]), (9, [5] * 10)])
def test_what_is_superseded_is_read_once_for_all_hosts(
    monkeypatch: pytest.MonkeyPatch, held: int, reads: list[int]
) -> None:
    """Also where each host asks for what several sweeps have of it, unless these have more than is held."""
    monkeypatch.setattr(elsewhere, "HELD", held)
    site = Site()
    for number in range(5):
        for sweep in ("1", "2", "3", "4"):
            site.add(f"http://{number}.example/home", words(f"{number} {sweep}"), sweep, at=int(sweep) * DAY)
        for sweep, name in (("1", "gone"), ("2", "left"), ("3", "parted")):
            site.add(f"http://{number}.example/{name}", words(f"{name} {number}"), sweep, at=int(sweep) * DAY)
    read: list[int] = []
    one_reading = elsewhere.Elsewhere._read
    monkeypatch.setattr(elsewhere.Elsewhere, "_read", lambda self, of: (read.append(len(of)), one_reading(self, of))[1])
    assert [period.vanished for period in queries.changes(site.index, TEXT)] == [1] * 15
    assert read == reads
    listed: list[dict[str, list[tuple[str, int]]]] = []
    one_listing = elsewhere.Elsewhere._list_superseded
    monkeypatch.setattr(
        elsewhere.Elsewhere, "_list_superseded", lambda *of: (listed.append(one_listing(*of)), listed[-1])[1]
    )
    assert len(site.lost()) == len(site.lost(to_sweep="4")) == 15
    assert listed == [{"4": []}] * 2  # of the sweep that is asked for alone


def test_other_hosts_are_not_read_where_a_host_has_all_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of sweeps that are not the last, for which the superseded versions of all hosts are listed."""
    site = Site()
    for sweep in range(1, 4):
        for number in range(5):
            site.add(f"http://a.example/{sweep}/{number}", words(number, 60), f"{sweep}", at=sweep * DAY)
    asked: list[str | None] = []
    pages = site.index.pages
    monkeypatch.setattr(site.index, "pages", lambda host=None: (asked.append(host), pages(host))[1])
    assert [period.moved_within for period in queries.changes(site.index, TEXT, "a.example")] == [5, 5]
    assert None not in asked


def test_pages_whose_match_is_known_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a million that moved at once their sketches would be: only those that are followed are."""
    site = Site()
    for sweep, prefix in ((1, ""), (2, "new/"), (3, "new/")):
        for number in range(60):
            site.add(f"http://a.example/{prefix}{number}", words(number, 60), f"{sweep}", at=sweep * DAY)
    living: weakref.WeakSet[moves.Trail] = weakref.WeakSet()
    most: list[int] = []

    class Watched(moves.Trail):
        __hash__ = object.__hash__

        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            living.add(self)
            most.append(len(living))

    monkeypatch.setattr(moves, "TOGETHER", 4)
    monkeypatch.setattr(moves, "Trail", Watched)
    found = site.lost()
    assert len(found) == 60
    assert all(one.match for one in found.values())
    assert max(most) < 20
