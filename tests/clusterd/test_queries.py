"""The questions, asked of an index in memory: what is found, what is not, and in which order."""

from __future__ import annotations

import pytest
from clusterd.queries import timeline
from clusterd.queries.addresses import page_name
from clusterd.queries.changes import quantiles
from clusterd.queries.nearest import Nearest
from clusterd.queries.nearness import Page
from clusterd.queries.timeline import in_order
from clusterd_crawler.errors import NotFound, WrongInput
from clusterd_crawler.sketch import COMPACT, EMPTY, TEXT, sketch_text

from clusterd import queries
from tests.clusterd.made_up_site import DAY, TEMPLATE, Site, edited, url, words


@pytest.fixture
def site() -> Site:
    return Site()


class TestFindLost:
    def test_a_page_is_found_by_best_match_far_below_any_threshold(self, site: Site) -> None:
        """The page moved, was renamed, and one word in fourteen is new: one 10-word shingle in three survives."""
        for number in range(20):
            site.add(url(f"old/page{number}"), TEMPLATE + words(number), "1", DAY)
            long_edit = edited(words(number), 14) if number == 7 else words(number)
            site.add(url(f"new/chapter{number}"), TEMPLATE + long_edit + " " + words(f"add{number}", 60), "2", 2 * DAY)
        found = site.lost()
        assert [one.match for one in found.values()] == [u.replace("old/page", "new/chapter") for u in found]
        rewritten = found[url("old/page7")]
        assert rewritten.resemblance < 0.3
        assert rewritten.margin > 0.02
        assert (rewritten.from_sweep, rewritten.to_sweep) == ("1", "2")

    def test_a_template_is_no_match(self, site: Site) -> None:
        for number in range(30):
            site.add(url(f"a{number}"), TEMPLATE + words(number, 100), "1", DAY)
            site.add(url(f"b{number}"), TEMPLATE + words(1000 + number, 100), "2", 2 * DAY)
        found = site.lost()
        assert len(found) == 30
        assert {one.match for one in found.values()} == {None}

    def test_short_pages_need_no_other_profile(self, site: Site) -> None:
        for number in range(60):
            site.add(url(f"linux/{number}"), words(number, 45), "1", DAY)
            site.add(url(f"common/{number}x"), edited(words(number, 45), 25), "2", 2 * DAY)
        found = site.lost()
        right = sum(one.match == u.replace("linux", "common") + "x" for u, one in found.items())
        assert right >= 59

    def test_of_pages_with_equal_text_the_one_that_kept_its_name_is_the_match(self, site: Site) -> None:
        site.add(url("osx/tool"), words(1), "1", DAY)
        for path in ("alias/other", "common/tool", "very/deep/tool"):
            site.add(url(path), words(1), "2", 2 * DAY)
        found = site.lost()[url("osx/tool")]
        assert found.match == url("common/tool")
        assert 0 < found.margin < 0.1  # the others show the same

    def test_a_page_that_stayed_is_no_match_unless_it_took_the_content_over(self, site: Site) -> None:
        site.add(url("gone"), words(1), "1", DAY)
        site.add(url("like"), edited(words(1), 40), "1", DAY)
        site.add(url("like"), edited(words(1), 40), "2", 2 * DAY)
        assert site.lost()[url("gone")] == queries.Found(url("gone"), None, 0, 0, 0, 0, "1", "2")
        site.add(url("merged"), words(2), "1", DAY)
        site.add(url("merged"), words(2) + " " + words(1), "2", 2 * DAY)
        found = site.lost()[url("gone")]
        assert found.match == url("merged")
        assert found.query_in_match > 0.9

    def test_a_page_that_was_taken_in_whole_is_nearer_than_a_short_one_with_a_passage_of_it(self, site: Site) -> None:
        site.add(url("gone"), words(1, 200), "1", DAY)
        site.add(url("book"), f"{words('before', 1500)} {words(1, 200)} {words('behind', 1500)}", "2", 2 * DAY)
        site.add(url("short"), f"{words(1, 60)} {words('short', 60)}", "2", 2 * DAY)
        found = site.lost()[url("gone")]
        assert found.match == url("book")
        assert (found.resemblance < 0.1, found.query_in_match > 0.9) == (True, True)
        site.add(url("revised"), edited(words(1, 200), 40), "2", 2 * DAY)  # the page itself, as it is now
        assert site.lost()[url("gone")].match == url("revised")

    def test_a_page_that_was_taken_in_by_one_forty_times_as_long_is_found(self, site: Site) -> None:
        """Of its shingles some ten are seen of the long page, all of them in both."""
        for number in range(10):
            site.add(url(f"gone{number}"), words(number, 200), "1", DAY)
            book = f"{words(f'before {number}', 4000)} {words(number, 200)} {words(f'behind {number}', 4000)}"
            site.add(url(f"book/{number}"), book, "2", 2 * DAY)
        found = [one.match for one in site.lost().values()]
        assert sum(match == url(f"book/{number}") for number, match in enumerate(found)) >= 8

    def test_another_copy_that_stayed_is_a_match(self, site: Site) -> None:
        site.add(url("gone"), words(1), "1", DAY)
        for sweep in (1, 2):
            site.add(url("mirror"), words(1), str(sweep), sweep * DAY)
        assert site.lost()[url("gone")].match == url("mirror")

    def test_a_chain_of_moves_is_followed(self, site: Site) -> None:
        text = words(1, 120)
        for sweep, path in enumerate(("one", "two", "three", "four"), start=1):
            site.add(url(path), text, str(sweep), sweep * DAY)
            site.add(url("home"), words("home"), str(sweep), sweep * DAY)
            text = edited(text, 24, f"round{sweep}", 8 * sweep - 8)
        found = site.lost(url("one"))[url("one")]
        assert found.match == url("four")
        assert found.via == (("2", url("two")), ("3", url("three")))

    def test_sweeps_are_chosen(self, site: Site) -> None:
        for sweep, path in (("1", "one"), ("2", "two"), ("3", "three")):
            site.add(url(path), words(1), sweep, int(sweep) * DAY)
        assert site.lost(url("one"), to_sweep="2")[url("one")].match == url("two")
        assert site.lost(url("one"))[url("one")].match == url("three")
        assert set(site.lost(from_sweep="2")) == {url("two")}

    def test_a_page_that_answers_with_an_error_is_lost(self, site: Site) -> None:
        site.add(url("here"), words(1), "1", DAY)
        site.add(url("here"), "not found", "2", 2 * DAY, status=404)
        site.add(url("there"), words(1), "2", 2 * DAY)
        assert site.lost(url("here"))[url("here")].match == url("there")

    def test_what_cannot_be_asked(self, site: Site) -> None:
        site.add(url("here"), words(1), "1", DAY)
        site.add(url("here"), words(1), "2", 2 * DAY)
        assert site.lost(url("here")) == {}
        with pytest.raises(NotFound, match=r"no sweep of docs\.example has seen"):
            site.lost(url("never"))
        with pytest.raises(WrongInput, match=r"no sweep '9'; its sweeps are: 1, 2"):
            site.lost(to_sweep="9")
        with pytest.raises(WrongInput, match=r"no sweep '9'; its sweeps are: 1, 2"):
            site.lost(url("here"), from_sweep="9")
        site.add(url("gone"), words(2), "1", DAY)
        assert site.lost(url("gone"), from_sweep="1", to_sweep="2").keys() == {url("gone")}
        with pytest.raises(WrongInput, match="no earlier one"):
            site.lost(url("gone"), from_sweep="2", to_sweep="1")


class TestSweeps:
    @pytest.mark.parametrize(
        ("first", "ordered"),
        [
            ({"2.4": 1, "2.0": 2, "2.10": 0}, ["2.0", "2.4", "2.10"]),
            ({"2022-06-01": 1, "2021-06-01": 2}, ["2021-06-01", "2022-06-01"]),
            ({"spring": 2, "autumn": 1}, ["autumn", "spring"]),
            ({"2.0": 2, "2.00": 1}, ["2.00", "2.0"]),
            ({"2.00": 1, "2.0": 2}, ["2.00", "2.0"]),
            ({"01/2023": 2, "1/2023": 1}, ["1/2023", "01/2023"]),
            ({"15.03.2023": 3, "01.06.2022": 1, "01.01.2023": 2}, ["01.06.2022", "01.01.2023", "15.03.2023"]),
            ({"15.01.2023": 1, "02.03.2023": 2}, ["15.01.2023", "02.03.2023"]),
            ({"12/2022": 3, "01-2023": 1}, ["01-2023", "12/2022"]),
            ({"02/2023": 1, "12/2022": 2, "11/2022": 3}, ["11/2022", "12/2022", "02/2023"]),
            ({}, []),
            ({"2" * 5000: 1, "1" * 5000: 2}, ["1" * 5000, "2" * 5000]),
        ],
    )
    def test_order(self, first: dict[str, int], ordered: list[str]) -> None:
        assert in_order(first) == ordered

    @pytest.mark.parametrize(
        ("milliseconds", "said"),
        [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (1_769_860_800_000, "2026-01-31"),
            (1_769_860_800_000_000, "9999-12-31"),
            (253_402_300_799_999, "9999-12-31"),
            (2**63, "9999-12-31"),
            (-(2**63), "0001-01-01"),
        ],
    )
    def test_every_time_has_a_day(self, milliseconds: int, said: str) -> None:
        assert timeline.day(milliseconds) == said


class TestNearest:
    def test_nothing_is_near_nothing(self) -> None:
        query = Page("http://a/", sketch_text(words(1), TEXT))
        assert Nearest([], TEXT).matches(query) == []
        assert Nearest([Page("http://b/", EMPTY)], TEXT).matches(query) == []
        assert Nearest([query], TEXT).matches(Page("http://c/", EMPTY)) == []

    def test_sampled_sketches_are_read_up_to_the_lower_end(self) -> None:
        """A chapter of 500 words in its book of 20,000: by count alone the sketches would hardly meet."""
        book = [words(f"chapter{number}", 500) for number in range(40)]
        shelf = [
            Page(f"http://a/{n}", sketch_text(" ".join(words(f"{n}-{c}", 500) for c in range(10)), COMPACT))
            for n in range(20)
        ]
        shelf.append(Page("http://a/book", sketch_text(" ".join(book), COMPACT)))
        (best, *_) = Nearest(shelf, COMPACT).matches(Page("http://b/", sketch_text(" ".join(book[:20]), COMPACT)))
        assert best.page.url == "http://a/book"
        assert 0.3 < best.text < 0.7

    def test_of_books_whose_sketches_are_alike_the_one_of_equal_text_is_the_match(self) -> None:
        """One word of a book of 4,000 touches no value of the sketch in a third of the cases."""
        book = words("licence", 4000)
        own = sketch_text(book, TEXT)
        others = (sketch_text(f"{word} {book}", TEXT) for word in words("titles", 40).split())
        alike = next(other for other in others if other.values == own.values)
        shelf = [Page("http://a/another", alike), Page("http://a/same", own)]
        assert [match.page.url for match in Nearest(shelf, TEXT).matches(Page("http://b/", own))] == [
            "http://a/same",
            "http://a/another",
        ]

    @pytest.mark.parametrize(
        ("address", "name"),
        [
            ("http://a/x/tool.html", "tool.html"),
            ("http://a/x/index.html", "x/index.html"),
            ("http://a/x/?page=2", "x?page=2"),
            ("http://a/", ""),
            ("http://a[b]@c/x/tool.html#d", "tool.html"),
            ("x/tool.html", "tool.html"),
        ],
    )
    def test_page_names(self, address: str, name: str) -> None:
        assert page_name(address) == name


class TestChanges:
    def test_every_page_is_counted_once(self, site: Site) -> None:
        for number in range(5):
            site.add(url(f"same{number}"), words(number), "1", DAY)
            site.add(url(f"same{number}"), words(number), "2", 2 * DAY)
        site.add(url("revised"), words("r", 400), "1", DAY)
        news = " and a few words more at its end to tell the news of today"
        site.add(url("revised"), words("r", 400) + news, "2", 2 * DAY)
        site.add(url("old"), words("m"), "1", DAY)
        site.add(url("new"), words("m"), "2", 2 * DAY)
        site.add(url("leaving"), words("x"), "1", DAY)
        site.add(url("arrived", "other.example"), words("x"), "2", 2 * DAY)
        site.add(url("vanished"), words("v"), "1", DAY)
        site.add(url("appeared"), words("n"), "2", 2 * DAY)
        (period,) = queries.changes(site.index, TEXT, "docs.example")
        assert (period.unchanged, period.revised, period.moved_within, period.moved_across) == (5, 1, 1, 1)
        assert (period.moved, period.vanished, period.appeared) == (2, 1, 1)
        assert period.resemblance_quantiles["0.5"] == pytest.approx(391 / 403, abs=0.02)
        assert period.lifetime_quantiles["0.5"] == 0

    @pytest.mark.parametrize("first", ["early", "late"])
    def test_of_two_fetches_in_a_sweep_the_later_one_counts(self, site: Site, first: str) -> None:
        """And sweeps that overlap come in the order in which they began."""
        for at in sorted((1, 4), reverse=first == "late"):
            site.add(url("page"), words(at), "spring", at * DAY)
        site.add(url("page"), words(4), "autumn", 6 * DAY)
        site.add(url("gone"), words("gone"), "spring", 7 * DAY)
        site.add(url("came"), words("came"), "autumn", 2 * DAY)
        (period,) = queries.changes(site.index, TEXT)
        assert (period.from_sweep, period.to_sweep) == ("spring", "autumn")
        assert (period.unchanged, period.revised, period.vanished, period.appeared) == (1, 0, 1, 1)

    @pytest.mark.parametrize("count", [1, 2, 3, 19, 20, 21, 40])
    def test_its_share_of_the_values_is_not_above_a_quantile_and_less_is_below(self, count: int) -> None:
        """Of three pages 95 % were said to resemble by no more than the one in the middle does."""
        for share, value in quantiles(range(1, count + 1)).items():
            assert (value - 1) / count < float(share) <= value / count

    def test_versions_of_two_profiles_say_nothing_of_how_much_changed(self, site: Site) -> None:
        """To resemble each other by 0 would be to have been written anew."""
        for profile, sweep in ((TEXT, "1"), (COMPACT, "2")):
            site.profile = profile
            site.add(url("same"), words(1), sweep, int(sweep) * DAY)
            site.add(url("other"), words(2) + f" and {sweep}", sweep, int(sweep) * DAY)
        (found,) = queries.changes(site.index, TEXT)
        assert (found.unchanged, found.revised, found.resemblance_quantiles) == (1, 1, {})
        site.add(url("other"), words(2), "3", 3 * DAY)
        (_, later) = queries.changes(site.index, TEXT)
        assert later.resemblance_quantiles["0.5"] > 0.9

    def test_days_serve_where_no_sweep_is_named_and_lifetimes_add_up(self, site: Site) -> None:
        for day in (1, 2, 3):
            site.add(url("stays"), words(1), at=day * DAY)
            if day < 3:
                site.add(url("goes"), words(2), at=day * DAY)
        first, second = queries.changes(site.index, TEXT)
        assert (first.from_sweep, first.to_sweep) == ("1970-01-02", "1970-01-03")
        assert (first.vanished, second.vanished, second.lifetime_quantiles["0.5"]) == (0, 1, 1.0)


class TestAlike:
    @pytest.fixture
    def shelf(self, site: Site) -> Site:
        site.add(url("whole"), words(1, 400))
        site.add(url("half", "copies.example"), words(1, 200) + " " + words("rest", 300))
        site.add(url("twin"), words(1, 400))
        site.add(url("else"), words(9))
        return site

    def test_similar_to_a_text_never_seen(self, shelf: Site) -> None:
        hits = queries.similar(shelf.index, queries.document("text:" + words(1, 400), shelf.index, TEXT), TEXT)
        assert [hit.url for hit in hits] == [url("twin"), url("whole"), url("half", "copies.example")]
        assert hits[0].resemblance == 1.0
        assert hits[2].query_in_match == pytest.approx(191 / 391, abs=0.08)

    def test_similar_to_a_page_leaves_the_page_out(self, shelf: Site) -> None:
        asked = queries.document(url("whole"), shelf.index, TEXT)
        hits = queries.similar(shelf.index, asked, TEXT)
        assert [hit.url for hit in hits] == [url("twin"), url("half", "copies.example")]
        assert hits[1].resemblance < 0.5  # found by its posted values, not by a cluster

    def test_holders_are_ordered_by_how_much_they_carry(self, shelf: Site) -> None:
        part = queries.document("text:" + words(1, 200), shelf.index, TEXT)
        found = list(queries.holders(shelf.index, part, TEXT))
        assert {one.url for one in found} == {url("whole"), url("twin"), url("half", "copies.example")}
        assert min(one.query_in_match for one in found) > 0.9
        assert [one.query_in_match for one in found] == sorted((one.query_in_match for one in found), reverse=True)
        assert {one.host for one in found} == {"docs.example", "copies.example"}

    def test_compare_exact_and_estimated(self) -> None:
        a = queries.document("text:a rose is a rose is a rose", None, TEXT)
        b = queries.document("text:a rose is a flower which is a rose", None, TEXT)
        compared = [queries.compare(a, b, TEXT, w) for w in (1, 2, 3)]
        assert [one.estimated.resemblance for one in compared] == [0.6, 0.5, pytest.approx(3 / 7)]
        assert [one.exact for one in compared] == [one.estimated for one in compared]

    def test_compare_a_page_of_the_store_with_a_text(self, shelf: Site) -> None:
        page = queries.document(url("half", "copies.example"), shelf.index, TEXT)
        compared = queries.compare(page, queries.document("text:" + words(1, 200), None, TEXT), TEXT)
        assert compared.exact is None
        assert compared.estimated.b_in_a == pytest.approx(1, abs=0.02)
        with pytest.raises(WrongInput, match="is not kept"):
            queries.compare(page, page, TEXT, 4)

    @pytest.mark.parametrize(("count", "doubtful"), [(60, True), (400, False)])
    def test_compare_a_short_page_with_one_that_holds_it(self, site: Site, count: int, doubtful: bool) -> None:
        """Of 60 words some three values are seen in 9,000: that is no containment of 0."""
        site.add(url("long"), f"{words('a', 4000)} {words('short', count)} {words('b', 5000)}")
        site.add(url("short"), words("short", count))
        short, long = (queries.document(url(name), site.index, TEXT) for name in ("short", "long"))
        compared = queries.compare(short, long, TEXT)
        assert compared.estimated.a_in_b == pytest.approx(1, abs=0.2)
        assert compared.estimated.b_in_a == pytest.approx((count - 9) / (8991 + count), rel=0.2)
        assert queries.compare(long, short, TEXT).estimated == compared.estimated.turned()
        assert compared.doubtful is doubtful


class TestGroup:
    def test_results_are_folded_in_their_order(self, site: Site) -> None:
        site.add(url("a"), words(1))
        site.add(url("b"), words(2))
        site.add(url("c"), words(1))
        given = [url("unknown"), url("c"), url("b"), url("a"), url("unknown too"), url("c")]
        groups = queries.group(site.index, given, "near")
        assert [(one.representative, one.members) for one in groups] == [
            (url("unknown"), (url("unknown"),)),
            (url("c"), (url("c"), url("a"))),
            (url("b"), (url("b"),)),
            (url("unknown too"), (url("unknown too"),)),
        ]

    def test_a_cluster_is_walked_once_for_all_its_members(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        """By an index in memory, which has no shorter way to its name."""
        given = [url(f"page{n}") for n in range(50)]
        for one in given:
            site.add(one, words(1))
        asked: list[str] = []
        walk = site.index.cluster_of
        monkeypatch.setattr(site.index, "cluster_of", lambda url, policy: (asked.append(url), walk(url, policy))[1])
        (found,) = queries.group(site.index, given, "near")
        assert found.members == tuple(given)
        assert asked == given[:1]

    def test_alternatives(self, site: Site) -> None:
        site.add(url("a"), words(1))
        site.add(url("c"), words(1))
        assert queries.alternatives(site.index, "HTTP://docs.example:80/a", "near").members == (url("a"), url("c"))
        with pytest.raises(NotFound, match="no page"):
            queries.alternatives(site.index, url("x"), "near")


@pytest.mark.parametrize("shared", [0, 1000, 2000])
def test_pages_of_the_store_are_compared_without_what_agrees_by_chance(site: Site, shared: int) -> None:
    off = []
    for seed in range(30):
        both = words(f"both{seed}", shared)
        texts = {side: f"{both} {words(f'{side}{seed}', 3000 - shared)}" for side in "ab"}
        for side, text in texts.items():
            site.add(url(f"{seed}{side}"), text)
        kept = [queries.document(url(f"{seed}{side}"), site.index, TEXT) for side in "ab"]
        fresh = [queries.document(f"text:{text}", None, TEXT) for text in texts.values()]
        said = [queries.compare(*pair, TEXT).estimated for pair in (kept, fresh, (kept[0], fresh[1]))]
        off.append([one.resemblance - said[1].resemblance for one in said])
    assert all(abs(sum(column) / len(off)) < 0.006 for column in zip(*off, strict=True))


def test_what_shares_nothing_with_its_earlier_version_does_not_resemble_it(site: Site) -> None:
    site.add(url("a"), words("old", 3000), "1")
    site.add(url("a"), words("new", 3000), "2", at=DAY)
    (period,) = queries.changes(site.index, TEXT)
    assert max(period.resemblance_quantiles.values()) < 0.02
