"""The plot of `changes`: that it can be drawn, whatever hosts and sweeps there are, and shows what was measured."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from clusterd.queries import plot
from clusterd.queries.changes import QUANTILES, Changes
from clusterd_crawler.errors import ClusterdError, WrongInput
from clusterd_crawler.sketch import TEXT
from matplotlib.image import imread

from clusterd import queries
from tests.clusterd.made_up_site import DAY, Site, url, words


@pytest.mark.parametrize(("name", "begins"), [("p.png", b"\x89PNG"), ("p.svg", b"<?xml")])
def test_the_plot_is_a_picture(tmp_path: Path, name: str, begins: bytes) -> None:
    site = Site()
    for sweep in (1, 2, 3):
        site.add(url("a"), words("a") + " news" * sweep * 15, str(sweep), sweep * DAY)
    plot.plot(list(queries.changes(site.index, TEXT)), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_where_no_page_was_revised_no_resemblance_is_drawn(tmp_path: Path) -> None:
    revised = Changes("h", "1", "2", 1, 1, 0, 0, 0, 0, {"0.05": 0.1, "0.25": 0.2, "0.5": 0.3, "0.75": 1, "0.95": 1}, {})
    heights = []
    for period in (revised, replace(revised, revised=0, resemblance_quantiles={})):
        plot.plot([period], tmp_path / "plot.png")
        heights.append(int.from_bytes((tmp_path / "plot.png").read_bytes()[20:24]))  # of the picture's header
    assert heights == [700, 420]


def test_one_revised_page_is_seen_in_the_plot(tmp_path: Path) -> None:
    drawn = []
    for resemblance in (0.4, 0.8):
        period = Changes("h", "1", "2", 1, 1, 0, 0, 0, 0, dict.fromkeys(map(str, QUANTILES), resemblance), {})
        plot.plot([period], tmp_path / "plot.png")
        drawn.append(imread(tmp_path / "plot.png"))
    assert (drawn[0] != drawn[1]).any(axis=-1).sum() > 100  # picture elements


def test_the_plot_of_many_hosts_is_no_wider_than_can_be_shown(tmp_path: Path) -> None:
    """It grew with them: of 700 matplotlib 3.9 drew none, when all the work was done."""
    periods = [Changes(f"h{n}.example", "1", "2", 1, 1, 0, 0, 0, 0, {}, {}) for n in range(300)]
    plot.plot(periods, tmp_path / "plot.png")
    assert int.from_bytes((tmp_path / "plot.png").read_bytes()[16:20]) == 30_000


def test_the_plot_shows_hosts_and_labels_for_what_they_are(tmp_path: Path) -> None:
    """A host with dollars was taken for a formula, and there was no plot; of a control character no SVG."""
    periods = [Changes(host, "\x01$\\frac$", "<b>&", 1, 0, 0, 0, 0, 0, {}, {}) for host in ("h", "a$_$b.com")]
    plot.plot(periods, tmp_path / "plot.svg")
    drawn = ElementTree.parse(tmp_path / "plot.svg")
    assert drawn.getroot().tag.endswith("svg")


def test_the_plot_has_room_for_long_names_and_those_of_other_scripts(tmp_path: Path) -> None:
    """The bars had no height beside a name of 100 characters, and what the font lacks was boxes, with warnings."""
    hosts = ("例え.テスト:8000", ".".join(["department-of-a-long-name"] * 6), "h.example")
    periods = [Changes(host, f"第{n}", "2", 1, 1, 0, 0, 0, 0, {}, {}) for host in hosts for n in range(3)]
    plot.plot(periods, tmp_path / "plot.png")
    picture = imread(tmp_path / "plot.png")[..., :3]
    revised = [int(plot.PARTS["revised"][at : at + 2], 16) / 255 for at in (1, 3, 5)]
    assert (abs(picture - revised).max(axis=-1) < 0.01).any(axis=1).sum() > 40  # rows of picture elements
    assert plot._label(periods[0], periods).startswith("xn--r8jz45g.xn--zckzah:8000\n")


def test_the_plot_has_two_formats() -> None:
    with pytest.raises(WrongInput, match=r"\.png or \.svg"):
        plot.check(Path("changes.pdf"))


def test_a_picture_that_cannot_be_written_is_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "plot.svg").symlink_to("absent/plot.svg")
    period = Changes("h", "1", "2", 1, 0, 0, 0, 0, 0, {}, {})
    with pytest.raises(WrongInput, match=r"plot\.svg: cannot be written: No such file or directory"):
        plot.plot([period], tmp_path / "plot.svg")


def test_a_plot_without_matplotlib_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it was not installed
    with pytest.raises(ClusterdError, match=r"pip install 'clusterd\[plot\]'"):
        plot.check(Path("changes.png"))
