"""Lost & found beyond one host, and what is asked of it wrongly."""

from __future__ import annotations

import pytest
from clusterd_crawler.errors import NotFound, WrongInput
from clusterd_crawler.sketch import SHORT, TEXT

from clusterd import queries
from tests.clusterd.made_up_site import DAY, Site, edited, words


@pytest.fixture
def site() -> Site:
    return Site()


def test_figures_go_by_the_profile_of_the_pages_whatever_the_settings_say() -> None:
    site = Site(SHORT)
    for n in range(3):
        site.add(f"https://a.example/{n}", words(n), "1", at=DAY)
        site.add(f"https://a.example/stays/{n}", words(f"stays {n}"), "1", at=DAY)
        site.add(f"https://a.example/stays/{n}", edited(words(f"stays {n}"), 50), "2", at=2 * DAY)
        site.add(f"https://a.example/moved/{n}x", edited(words(n), 50), "2", at=2 * DAY)
    told = list(queries.find_lost(site.index, SHORT))
    assert all(0.8 < one.resemblance < 0.9 for one in told)
    assert list(queries.find_lost(site.index, TEXT)) == told
    assert list(queries.changes(site.index, TEXT)) == list(queries.changes(site.index, SHORT))


def test_of_a_store_without_pages_nothing_is_lost_whatever_sweep_is_asked_for(site: Site) -> None:
    assert site.lost(from_sweep="1") == {}


@pytest.mark.parametrize("count", [8, 11, 12])
def test_pages_of_a_dozen_words_have_no_match_by_chance(site: Site, count: int) -> None:
    """Of one to three shingles each, whose cut values agree once in some 6,000 pairs: a third of the pages had one."""
    for n in range(300):
        site.add(f"https://a.example/old/{n}x", words(f"old {n}", count), "1", at=DAY)
        site.add(f"https://a.example/new/{n}y", words(f"new {n}", count), "2", at=2 * DAY)
    site.add("https://a.example/kept", words("kept", count), "1", at=DAY)
    site.add("https://a.example/moved", words("kept", count), "2", at=2 * DAY)
    matches = {url: found.match for url, found in site.lost().items() if found.match is not None}
    assert matches == {"https://a.example/kept": "https://a.example/moved"}


def test_a_copy_that_is_left_was_edited_since(site: Site) -> None:
    """It is what became of the page under its other URL; nothing had, it was said, unless it was hardly edited."""
    for sweep, every in (("1", 0), ("2", 40), ("3", 20)):
        text = edited(words("page"), every) if every else words("page")
        site.add("https://a.example/page", text, sweep, at=int(sweep) * DAY)
        site.add(f"https://a.example/other/{sweep}", words(f"other {sweep}"), sweep, at=int(sweep) * DAY)
    site.add("https://a.example/print?page=1", words("page"), "1", at=DAY)
    site.add("https://a.example/part", " ".join(words("page").split()[:150]) + words("part"), "1", at=DAY)
    for to_sweep, resemblance in (("2", 0.60), ("3", 0.33)):
        lost = site.lost(to_sweep=to_sweep)
        found = lost["https://a.example/print?page=1"]
        assert (found.match, found.resemblance) == ("https://a.example/page", pytest.approx(resemblance, abs=0.05))
        assert lost["https://a.example/part"].match is None
    first, second = queries.changes(site.index, TEXT)
    assert (first.moved_within, first.vanished, second.moved) == (1, 2, 0)


@pytest.mark.parametrize("nearer", ["a", "b"])
def test_of_two_pages_that_share_parts_of_it_the_one_that_shares_more_is_the_match(site: Site, nearer: str) -> None:
    """Neither of which has taken it in, nor resembles it by half."""
    lost = words("lost").split()
    site.add("https://a.example/lost", " ".join(lost), "1", at=DAY)
    for name in "ab":
        part = " ".join(lost[:150] if name == nearer else lost[200:])
        site.add(f"https://a.example/new/{name}", f"{part} {words(name, 200)}", "2", at=2 * DAY)
    found = site.lost()["https://a.example/lost"]
    assert (found.match, 0.2 < found.resemblance < 0.5) == (f"https://a.example/new/{nearer}", True)
    assert 0.05 < found.margin < 0.3


@pytest.mark.parametrize("left", [0, 60])
def test_of_many_namesakes_the_one_in_its_place_is_the_match(site: Site, left: int) -> None:
    """Written anew for another version, as some of a hundred packages are; others may be ``left`` where they were."""
    for sweep in (1, 2):
        for n in range(100):
            version = 1 if n < left else sweep
            text = words(f"anew {n} {sweep}" if n % 10 == 9 else f"package {n}")
            site.add(f"https://a.example/api/{version}/{n}/summary.html", text, f"{sweep}", at=sweep * DAY)
    found = site.lost()
    assert {url: one.match for url, one in found.items()} == {url: url.replace("api/1", "api/2") for url in found}
    assert len(found) == 100 - left


def test_a_namesake_that_was_there_before_is_no_match(site: Site) -> None:
    """In a place of its own, that is: it has taken nothing over."""
    for sweep in ("1", "2"):
        site.add("https://a.example/2025/news", words(f"news {sweep}"), sweep, at=int(sweep) * DAY)
        site.add("https://a.example/2024/news", words("old news"), "1", at=DAY)
    assert site.lost()["https://a.example/2024/news"].match is None


def test_a_host_that_only_answered_with_errors_has_lost_nothing(site: Site) -> None:
    for sweep in (1, 2):
        site.add("https://a.example/page", "bad request", f"{sweep}", at=sweep * DAY, status=400)
    assert (site.lost(), list(queries.changes(site.index, TEXT))) == ({}, [])


class TestLostOnAnotherHost:
    @pytest.fixture
    def moved(self, site: Site) -> Site:
        for sweep in (1, 2, 3):
            host = "old" if sweep == 1 else "new"
            site.add("https://old.example/home", words("home"), f"{sweep}", at=sweep * DAY)
            site.add(f"https://{host}.example/p", words("moved"), f"{sweep}", at=sweep * DAY)
        return site

    def test_a_server_that_was_renamed(self, moved: Site) -> None:
        found = moved.lost()["https://old.example/p"]
        assert (found.match, found.resemblance, found.margin) == ("https://new.example/p", 1.0, 1.0)
        assert (found.from_sweep, found.to_sweep) == ("1", "3")
        first, second = queries.changes(moved.index, TEXT, "old.example")
        assert (first.moved_across, first.vanished, second.moved) == (1, 0, 0)
        moved.add("https://third.example/p", edited(words("moved"), 60), "3", at=3 * DAY)
        found = moved.lost()["https://old.example/p"]
        assert (found.match, found.margin) == ("https://new.example/p", pytest.approx(0.3, abs=0.1))

    @pytest.mark.parametrize(("urls", "host"), [([], "gone.example"), (["https://gone.example/q"], None)])
    def test_a_server_that_is_gone(self, moved: Site, urls: list[str], host: str | None) -> None:
        """No later sweep has a page of it: the one that is meant is named, and may lie between those it has."""
        for sweep in (0, 1):
            moved.add("https://gone.example/q", words("left"), f"{sweep}", at=sweep * DAY)
        moved.add("https://new.example/q", edited(words("left"), 60), "2", at=2 * DAY)
        assert moved.lost(*urls, host=host) == {}
        found = moved.lost(*urls, host=host, to_sweep="2")["https://gone.example/q"]
        assert (found.match, found.from_sweep, found.to_sweep) == ("https://new.example/q", "1", "2")
        with pytest.raises(WrongInput, match="no sweep '4'"):
            moved.lost(*urls, host=host, to_sweep="4")
        moved.add("https://gone.example/q", words("left"), "3", at=3 * DAY)
        assert moved.lost(*urls, host=host, to_sweep="2")["https://gone.example/q"].match == "https://new.example/q"

    @pytest.mark.parametrize("copies", [19, 20, 30, 200])
    def test_a_page_of_many_copies_on_the_server_that_was_renamed(self, moved: Site, copies: int) -> None:
        """Under so many session ids it was there, each as near as what it is by now."""
        for n in range(copies):
            moved.add(f"https://old.example/?sid={n}", words("entry"), "1", at=DAY)
        moved.add("https://renamed.example/", words("entry"), "2", at=2 * DAY)
        found = moved.lost(host="old.example", to_sweep="2")
        assert {found[f"https://old.example/?sid={n}"].match for n in range(copies)} == {"https://renamed.example/"}
        moved.add("https://renamed.example/", words("later"), "3", at=3 * DAY)
        found = moved.lost(host="old.example", to_sweep="2")
        assert {found[f"https://old.example/?sid={n}"].match for n in range(copies)} == {"https://renamed.example/"}

    def test_a_page_that_many_other_servers_have_had_before(self, moved: Site) -> None:
        for n in range(40):
            moved.add(f"https://copy{n}.example/notice", words("notice"), "1", at=DAY)
        moved.add("https://old.example/notice", words("notice"), "1", at=DAY)
        moved.add("https://renamed.example/notice", words("notice"), "3", at=3 * DAY)
        found = moved.lost("https://old.example/notice")["https://old.example/notice"]
        assert found.match == "https://renamed.example/notice"

    def test_a_copy_that_was_there_before_is_no_new_place(self, moved: Site) -> None:
        moved.add("https://copy.example/p", words("moved"), "0", at=DAY // 2)
        moved.add("https://old.example/q", words("left"), "1", at=DAY)
        moved.add("https://copy.example/q", words("left"), "1", at=DAY)
        assert moved.lost()["https://old.example/p"].match == "https://new.example/p"
        assert moved.lost()["https://old.example/q"].match is None

    def test_a_page_that_came_up_after_the_sweep_asked_for(self, moved: Site) -> None:
        moved.add("https://old.example/late", words("late"), "1", at=DAY)
        moved.add("https://new.example/late", words("late"), "3", at=3 * DAY)
        assert moved.lost("https://old.example/late", to_sweep="2")["https://old.example/late"].match is None
        assert moved.lost("https://old.example/late")["https://old.example/late"].match == "https://new.example/late"

    def test_a_page_that_was_revised_there(self, moved: Site) -> None:
        """It is found where the host itself has nothing of it; a passage of it on the host is nearer."""
        moved.add("https://old.example/q", words("left"), "1", at=DAY)
        moved.add("https://new.example/q", edited(words("left"), 60), "3", at=3 * DAY)
        found = moved.lost()["https://old.example/q"]
        assert (found.match, 0.6 < found.resemblance < 0.8) == ("https://new.example/q", True)
        passage = words("left").split()[:60]
        moved.add("https://old.example/else", " ".join(passage) + " " + words("grown"), "3", at=3 * DAY)
        assert moved.lost()["https://old.example/q"].match == "https://old.example/else"

    @pytest.mark.parametrize("later", [edited(words("moved"), 30), words("written anew")], ids=["revised", "rewritten"])
    def test_what_became_of_its_new_place_since_does_not_change_what_an_earlier_sweep_saw(
        self, moved: Site, later: str
    ) -> None:
        moved.add("https://old.example/home", words("home"), "4", at=4 * DAY)
        moved.add("https://new.example/p", later, "4", at=4 * DAY)
        moved.add("https://old.example/then", words("then"), "3", at=3 * DAY)
        found = moved.lost("https://old.example/p", to_sweep="2")["https://old.example/p"]
        assert (found.match, found.resemblance) == ("https://new.example/p", 1.0)
        first, second, third = queries.changes(moved.index, TEXT, "old.example")
        assert (first.moved_across, first.vanished, second.moved, third.moved_across) == (1, 0, 0, 0)

    def test_what_the_sweep_saw_there_was_another_page_yet(self, moved: Site) -> None:
        moved.add("https://old.example/late", words("late"), "1", at=DAY)
        moved.add("https://new.example/late", words("early"), "2", at=2 * DAY)
        moved.add("https://new.example/late", words("late"), "3", at=3 * DAY)
        assert moved.lost("https://old.example/late", to_sweep="2")["https://old.example/late"].match is None

    def test_sweeps_that_were_brought_in_in_another_order(self, site: Site) -> None:
        """Without times of the fetches they have those at which they were brought in; their names tell their order."""
        for at, sweep in enumerate(("2", "1")):
            site.add("https://old.example/home", words("home"), sweep, at=at)
            site.add(f"https://{'new' if sweep == '2' else 'old'}.example/p", words("moved"), sweep, at=at)
            site.add("https://copy.example/p", words("moved"), sweep, at=at)
        assert site.lost()["https://old.example/p"].match == "https://new.example/p"

    def test_a_page_that_was_rewritten_before_it_moved_there(self, moved: Site) -> None:
        for sweep, text in ((1, "before"), (2, "after")):
            moved.add("https://old.example/r", words(text), f"{sweep}", at=sweep * DAY)
        moved.add("https://new.example/r", words("after"), "3", at=3 * DAY)
        found = moved.lost(from_sweep="1", to_sweep="3")["https://old.example/r"]
        assert (found.match, found.resemblance, found.margin) == ("https://new.example/r", 0.0, 1.0)

    def test_one_text_that_goes_from_host_to_host(self, moved: Site) -> None:
        """What each of them lost is told whichever of the two is asked first."""
        moved.add("https://new.example/home", words("new home"), "3", at=3 * DAY)
        moved.add("https://new.example/home", words("new home"), "4", at=4 * DAY)
        moved.add("https://far.example/p", words("moved"), "4", at=4 * DAY)
        moved.add("https://old.example/home", words("home"), "4", at=4 * DAY)
        told = {(c.host, c.from_sweep): c.moved_across for c in queries.changes(moved.index, TEXT)}
        assert (told["old.example", "1"], told["new.example", "3"]) == (1, 1)

    @pytest.mark.parametrize(("name", "match"), [("else", "https://new.example/q"), ("q", "https://old.example/new/q")])
    def test_the_whole_page_there_is_nearer_than_a_page_here_that_shares_a_passage(
        self, moved: Site, name: str, match: str
    ) -> None:
        """Unless that one stands in its place: it was rewritten, and the other host has the old text."""
        passage = words("left").split()[:60]
        moved.add("https://old.example/q", words("left"), "1", at=DAY)
        moved.add(f"https://old.example/new/{name}", " ".join(passage) + " " + words("grown"), "3", at=3 * DAY)
        assert moved.lost()["https://old.example/q"].match == f"https://old.example/new/{name}"
        moved.add("https://new.example/q", words("left"), "3", at=3 * DAY)
        assert moved.lost()["https://old.example/q"].match == match

    def test_among_many_that_were_revised_there(self, moved: Site) -> None:
        """More than are looked at, and none of them says what it did then."""
        moved.add("https://old.example/q", words("left"), "1", at=DAY)
        for n in range(60):
            for sweep in ("2", "3"):
                moved.add(f"https://new.example/{n}", words(f"{n} {sweep}"), sweep, at=int(sweep) * DAY)
        moved.add("https://new.example/q", edited(words("left"), 60), "2", at=2 * DAY)
        moved.add("https://new.example/q", words("anew"), "3", at=3 * DAY)
        assert moved.lost(to_sweep="2")["https://old.example/q"].match == "https://new.example/q"

    def test_the_whole_page_there_is_nearer_than_a_namesake_here_that_shares_nothing(self, moved: Site) -> None:
        moved.add("https://old.example/2024/1", words("news"), "2", at=2 * DAY)
        moved.add("https://old.example/2025/1", words("other news"), "3", at=3 * DAY)
        assert moved.lost()["https://old.example/2024/1"].match == "https://old.example/2025/1"
        moved.add("https://new.example/news", words("news"), "3", at=3 * DAY)
        assert moved.lost()["https://old.example/2024/1"].match == "https://new.example/news"


class TestLostAskedForWrongly:
    @pytest.fixture
    def two(self, site: Site) -> Site:
        for host in ("a", "b"):
            site.add(f"https://{host}.example/gone", words(host), "1", at=1)
            site.add(f"https://{host}.example/new", words(host), "2", at=2)
        return site

    def test_another_spelling_of_a_url(self, two: Site) -> None:
        assert set(two.lost("HTTPS://A.Example:443/gone")) == {"https://a.example/gone"}

    @pytest.mark.parametrize(
        ("asked", "error", "says"),
        [
            ({"from_sweep": "never"}, WrongInput, "no host has been seen in the sweep 'never'"),
            ({"host": "c.example"}, NotFound, "no pages of the host c.example"),
            ({"host": "a.example", "from_sweep": "2", "to_sweep": "1"}, WrongInput, "no earlier one"),
            ({"host": "a.example", "from_sweep": "2", "to_sweep": "2"}, WrongInput, "no earlier one"),
            ({"from_sweep": "2", "to_sweep": "1"}, WrongInput, "seen in the sweep '2' and later in '1'"),
        ],
    )
    def test_all_pages_of_what_is_not_there(
        self, two: Site, asked: dict[str, str], error: type[Exception], says: str
    ) -> None:
        with pytest.raises(error, match=says):
            two.lost(**asked)

    def test_a_page_that_the_sweep_asked_for_has_not(self, two: Site) -> None:
        two.add("https://a.example/home", words("home"), "0", at=0)
        with pytest.raises(NotFound, match="gone is not in the sweep 0"):
            two.lost("https://a.example/gone", from_sweep="0")
        with pytest.raises(NotFound, match="gone is not in the sweep before 0"):
            two.lost("https://a.example/gone", to_sweep="0")

    def test_an_unknown_url_keeps_no_answer_for_the_others_back(self, two: Site) -> None:
        asked = ["https://a.example/never", "https://a.example/gone", "nonsense", "https://b.example/gone"]
        found = queries.find_lost(two.index, TEXT, asked)
        assert [next(found).url, next(found).url] == ["https://a.example/gone", "https://b.example/gone"]
        with pytest.raises(NotFound, match=r"a\.example has seen https://a\.example/never"):
            next(found)
        asked = ["https://c.example/never", "https://a.example/gone"]
        found = queries.find_lost(two.index, TEXT, asked, from_sweep="1", to_sweep="2")
        assert next(found).url == "https://a.example/gone"
        with pytest.raises(NotFound, match=r"c\.example has seen https://c\.example/never"):
            next(found)

    def test_what_is_no_url(self, two: Site) -> None:
        with pytest.raises(NotFound, match="any host has seen nonsense"):
            two.lost("nonsense")


class TestLostBesidePagesThatMoved:
    """A page that carries what an earlier one did is that one, wherever it stands now."""

    SHARED = words("shared", 250)

    @pytest.fixture
    def kin(self, site: Site) -> Site:
        """Two pages that share most of their text; the one moved, the other is gone."""
        site.add("https://a.example/moves", f"{words('moves', 100)} {self.SHARED}", "1", at=DAY)
        site.add("https://a.example/gone", f"{words('gone', 100)} {self.SHARED}", "1", at=DAY)
        return site

    def test_it_is_no_match_for_another(self, kin: Site) -> None:
        kin.add("https://a.example/new/place", f"{words('moves', 100)} {self.SHARED} edited", "2", at=2 * DAY)
        assert kin.lost()["https://a.example/moves"].match == "https://a.example/new/place"
        assert kin.lost()["https://a.example/gone"].match is None
        (period,) = queries.changes(kin.index, TEXT)
        assert (period.moved, period.vanished, period.appeared) == (1, 1, 0)

    def test_it_is_one_where_it_took_in_the_other(self, kin: Site) -> None:
        both = f"{words('moves', 100)} {self.SHARED} {words('gone', 100)}"
        kin.add("https://a.example/new/place", both, "2", at=2 * DAY)
        assert {found.match for found in kin.lost().values()} == {"https://a.example/new/place"}

    def test_it_is_one_under_the_name_of_the_other(self, kin: Site) -> None:
        kin.add("https://a.example/new/gone", f"{words('moves', 100)} {self.SHARED}", "2", at=2 * DAY)
        assert kin.lost()["https://a.example/gone"].match == "https://a.example/new/gone"

    @pytest.mark.parametrize(("shared", "place"), [(60, "new/place"), (20, "new/deep/gone")], ids=["text", "name"])
    def test_nor_is_one_that_was_revised_as_it_moved(self, site: Site, shared: int, place: str) -> None:
        """Whether the page that is gone shares a passage with it, or its name and a sentence."""
        common = words("common", shared)
        site.add("https://a.example/moves", f"{words('moves', 200)} {common}", "1", at=DAY)
        site.add("https://a.example/gone", f"{words('gone', 200)} {common}", "1", at=DAY)
        site.add(f"https://a.example/{place}", f"{edited(words('moves', 200), 40)} {common}", "2", at=2 * DAY)
        found = site.lost()
        assert found["https://a.example/moves"].match == f"https://a.example/{place}"
        assert found["https://a.example/gone"].match is None

    def test_what_several_lost_pages_were_is_the_match_of_each(self, site: Site) -> None:
        for view in ("moves", "moves?print=1"):
            site.add(f"https://a.example/{view}", words("moves"), "1", at=DAY)
        site.add("https://a.example/new/place", edited(words("moves"), 40), "2", at=2 * DAY)
        assert [found.match for found in site.lost().values()] == ["https://a.example/new/place"] * 2

    def test_nor_is_its_copy_on_another_host(self, kin: Site) -> None:
        kin.add("https://a.example/home", words("home"), "2", at=2 * DAY)
        kin.add("https://mirror.example/moves", f"{words('moves', 100)} {self.SHARED} edited", at=3 * DAY)
        found = kin.lost()
        assert found["https://a.example/moves"].match == "https://mirror.example/moves"
        assert found["https://a.example/gone"].match is None


class TestChangesAfterRetention:
    def test_a_sweep_whose_beginning_was_forgotten_is_not_compared(self, site: Site) -> None:
        """Its first pages would have appeared in the next one."""
        for sweep in (1, 2, 3):
            for number in range(10):
                site.add(f"https://old.example/{number}", words(number), f"{sweep}", 10 * sweep * DAY + number * 1000)
        assert [(one.from_sweep, one.appeared) for one in queries.changes(site.index, TEXT)] == [("1", 0), ("2", 0)]
        site.index.expire(10 * DAY + 5000)
        assert [(one.from_sweep, one.appeared) for one in queries.changes(site.index, TEXT)] == [("2", 0)]
        site.index.expire(15 * DAY)  # between two sweeps
        assert [(one.from_sweep, one.appeared) for one in queries.changes(site.index, TEXT)] == [("2", 0)]

    def test_nor_are_two_whose_beginnings_were_forgotten_since_they_ran_at_once(self, site: Site) -> None:
        """As where one crawler fetches a host's pages from Monday to Friday, another one from Tuesday to Saturday."""
        for sweep, begun in (("daily", 10), ("weekly", 11), ("later", 30), ("last", 50)):
            for number in range(10):
                site.add(f"https://old.example/{number}", words(number), sweep, begun * DAY + number * DAY // 2)
        told = [(one.from_sweep, one.appeared) for one in queries.changes(site.index, TEXT)]
        assert told == [("daily", 0), ("weekly", 0), ("later", 0)]
        site.index.expire(13 * DAY)
        assert [(one.from_sweep, one.appeared) for one in queries.changes(site.index, TEXT)] == [("later", 0)]

    def test_a_sweep_of_which_versions_were_forgotten_is_not_compared(self, site: Site) -> None:
        # Given: four sweeps of ten pages, of which one vanishes each time.
        for sweep in range(1, 5):
            for page in range(sweep, 11):
                site.add(f"https://old.example/{page}", words(f"p{page}"), f"{sweep}", at=sweep * DAY + page)
        told = [(one.from_sweep, one.unchanged, one.vanished) for one in queries.changes(site.index, TEXT)]
        assert told == [("1", 9, 1), ("2", 8, 1), ("3", 7, 1)]
        # When: what was fetched before the third is forgotten, where a later sweep has the page.
        site.index.expire(3 * DAY - DAY // 2)
        # Then: the first sweep, of which one page is left, is not told to have lost all its pages.
        assert [(one.from_sweep, one.unchanged) for one in queries.changes(site.index, TEXT)] == [("3", 7)]
