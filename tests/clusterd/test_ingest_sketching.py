"""Pages as they lie in files become sketches as a crawl would have sent them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clusterd.ingest import sketching
from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import read
from clusterd.ingest.sketching import Sketching, day_of
from clusterd_crawler.sketch import SHORT, TEXT, Sketch


def sketched(*items: RawPage | Broken, **options: object) -> list[Sketch]:
    return list(Sketching(TEXT, **options).sketches(items))  # type: ignore[arg-type]


class TestSketching:
    def test_counts_and_reports(self) -> None:
        said: list[Broken] = []
        run = Sketching(TEXT, rejecting=said.append)
        items: list[RawPage | Broken] = [
            RawPage("http://a/1", text="one", where="f:1"),
            Broken("f:2", "not JSON"),
            RawPage("no-url", text="two", where="f:3"),
            RawPage("http://a/4", text="gone", status=404, where="f:4"),
            RawPage("http://a/5", body=b"\x89PNG\r\n\x1a\n" + bytes(50), where="f:5"),
            RawPage(f"http://a/{'6' * 300_000}", text="three", where="f:6"),
        ]
        assert [sketch.url for sketch in run.sketches(items)] == ["http://a/1"]
        assert (run.pages, run.sketched, run.rejected) == (6, 1, 5)
        assert [broken.where for broken in said] == ["f:2", "f:3", "f:4", "f:5", "f:6"]

    def test_a_later_row_of_a_url_is_its_later_version(self) -> None:
        pages = [RawPage("http://a/1", text=f"text {n}") for n in range(50)]
        times = [sketch.fetched_at for sketch in sketched(*pages)]
        assert times == sorted(set(times))

    @pytest.mark.parametrize(
        ("given", "url"),
        [
            ("http://a/1#top", "http://a/1"),
            ("http://a/1?q=2#", "http://a/1?q=2"),
            ("http://a/1#:~:text=words", "http://a/1"),
            ("http://a/#!/one", "http://a/#!/one"),
            ("http://a/#/one#top", "http://a/#/one#top"),
        ],
    )
    def test_a_place_in_a_page_is_no_page_of_its_own(self, given: str, url: str) -> None:
        """As links of feeds have it: each was a page, that had a duplicate."""
        assert [sketch.url for sketch in sketched(RawPage(given, text="x"))] == [url]

    def test_two_places_of_a_page_are_versions_of_it(self) -> None:
        one, other = sketched(RawPage("http://a/1#one", text="x"), RawPage("http://a/1#two", text="y"))
        assert one.url == other.url
        assert one.fetched_at < other.fetched_at

    def test_a_sweep_that_names_a_day_dates_its_pages(self) -> None:
        first, second = sketched(
            RawPage("http://a/1", text="x", sweep="2021-06-01"), RawPage("http://a/1", text="x", sweep="2022-06-01")
        )
        assert (first.fetched_at, second.fetched_at) == (day_of("2021-06-01"), day_of("2022-06-01"))
        assert first.sweep == "2021-06-01"

    def test_rows_of_a_url_in_a_dated_sweep_are_versions_in_their_order(self) -> None:
        rows = [RawPage(f"http://a/{n % 3}", text=f"text {n}", sweep="2021-06-01") for n in range(9)]
        day = day_of("2021-06-01") or 0
        assert [sketch.fetched_at - day for sketch in sketched(*rows)] == [0, 0, 0, 1, 1, 1, 2, 2, 2]

    def test_no_page_of_a_dated_sweep_moves_on_for_another_s_sake(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sketching, "SLOTS", 1)
        rows = [RawPage(f"http://a/{n}", text="x", sweep="2021-06-01") for n in range(3)]
        assert {sketch.fetched_at for sketch in sketched(*rows)} == {day_of("2021-06-01")}

    def test_a_row_s_own_time_and_sweep_come_first(self) -> None:
        given, other = sketched(
            RawPage("http://a/1", text="x", sweep="a", fetched_at=5), RawPage("http://a/2", text="x"), sweep="b"
        )
        assert (given.fetched_at, given.sweep, other.sweep) == (5, "a", "b")

    @pytest.mark.parametrize(
        "label", ["2.0", "spring", "2021-06", "", "20210601", "2021-13-01", "0001-01-01T00+14", "9999-12-31T23-14"]
    )
    def test_other_labels_name_no_day(self, label: str) -> None:
        assert day_of(label) is None

    def test_pages_dated_in_the_future_keep_their_dates_and_are_counted(self) -> None:
        soon = int((time.time() + 3600) * 1000)
        dates = [None, 1_700_000_000_000, soon, 4_102_444_800_000]
        run = Sketching(TEXT)
        made = run.sketches(RawPage("http://a/", text="x", fetched_at=at) for at in dates)
        assert [sketch.fetched_at for sketch in made][1:] == dates[1:]
        assert run.ahead == 1

    def test_of_a_page_that_is_too_long_the_beginning_is_sketched_markup_or_text(self) -> None:
        """A text of 120 MB was sketched whole, in 2.4 GB of memory."""
        words = " ".join(f"wört{n}" for n in range(300))
        whole, same, cut = sketched(
            RawPage("http://a/1", text=words[:900]),
            RawPage("http://a/1", text=words[:900]),
            RawPage("http://a/1", text=words + " more" * 1000),
            max_page_bytes=len(words[:900].encode()),
        )
        assert whole.main == same.main == cut.main
        assert whole.showing(0) == same.showing(0) != cut.showing(0)

    def test_the_profile_is_the_one_asked_for(self) -> None:
        (sketch,) = Sketching(SHORT).sketches([RawPage("http://a/1", text="to be or not to be, that is the question")])
        assert (sketch.profile, sketch.main.shingles) == (SHORT.code, 7)


def test_documents_without_a_url_are_read_only_where_an_id_will_do(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text('{"id": 7, "text": "x"}\n{"id": "b", "url": "http://a/", "text": "x"}\n')

    def named(nameless: bool) -> Iterator[tuple[str, object]]:
        for _, page, sketch in Sketching(TEXT, nameless=nameless).named(read(str(file))):
            yield sketch.url, page.id

    assert list(named(nameless=True)) == [("7", 7), ("http://a/", "b")]
    assert list(named(nameless=False)) == [("http://a/", "b")]


def test_half_a_character_in_an_address_or_a_sweep_costs_its_own_page_only() -> None:
    good, lone = RawPage("http://a/1", text="x"), "\ud800"
    pages = [replace(good, url=f"http://a/{lone}"), replace(good, sweep=lone), replace(good, text=f"x {lone}"), good]
    assert [sketch.url for sketch in sketched(*pages)] == ["http://a/1", "http://a/1"]
