"""``clusterd rules replay``: what the rules would have saved of a recorded crawl."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.clusterd.command_line import Typed

HOST = "shop.example.com"


def crawl(folder: Path, name: str = "small.tsv.gz", *, clock: bool = False) -> str:
    """Write a recorded crawl; with a ``clock`` on its pages no two of them are equal."""
    lines = ["url\tcontent\tnear_cluster\twords"]
    for number in range(150):
        for query in ("", f"&sid={number}", f"&sid={number + 1}"):
            content = len(lines) if clock else number
            lines.append(f"http://{HOST}/item?id={number}{query}\t{content}\t{number + 1}\t100")
    path = folder / name
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")
    return str(path)


def test_a_recorded_crawl_is_replayed(typed: Typed, tmp_path: Path) -> None:
    asked = "rules", "replay", crawl(tmp_path), "--order", "random", "--seed"
    [line] = typed(*asked, "3")[1]
    fields = {"pages", "fetched", "skipped", "reduction", "skip_precision", "lost_contents", "rules", "urls_per_second"}
    assert fields <= set(line)
    assert line["pages"] == 450 == line["fetched"] + line["skipped"]
    assert line["skip_precision"] == 1.0
    assert line["reduction"] > 0.4
    assert line["lost_contents"] == 0
    assert typed(*asked, "3")[1][0]["skipped"] == line["skipped"]
    assert typed(*asked, "4")[1][0]["skipped"] != line["skipped"]
    assert typed(*asked, "3", "--explore", "0")[1][0]["skipped"] > line["skipped"]
    assert typed(*asked, "3", "--explore", "1")[1][0]["skipped"] == 0


@pytest.mark.parametrize(("words", "figure"), [((), "skipped"), (("--split", "0.5"), "reduction")])
def test_pages_that_are_nearly_the_same_count_as_asked_for(
    typed: Typed, tmp_path: Path, words: tuple[str, ...], figure: str
) -> None:
    asked = "rules", "replay", crawl(tmp_path, clock=True), *words
    assert {line[figure] for line in typed(*asked)[1]} == {0}
    assert all(line[figure] > 0 for line in typed(*asked, "--policy", "near")[1])


def test_several_crawls_are_replayed_one_after_the_other(typed: Typed, tmp_path: Path) -> None:
    _, lines, _ = typed("rules", "replay", crawl(tmp_path, "docs.one.tsv.gz"), crawl(tmp_path, "docs.two.tsv"))
    assert [line["crawl"] for line in lines] == ["docs.one", "docs.two"]


def test_the_protocol_of_the_paper(typed: Typed, tmp_path: Path) -> None:
    _, lines, _ = typed("rules", "replay", crawl(tmp_path), "--split", "0.5", "--seed", "1")
    assert [line["precision"] for line in lines] == [1, 0.95, 0.9, 0.8, 0]
    assert {"rules", "reduction", "average_reduction_10", "possible_reduction"} <= set(lines[0])
    assert 0 < lines[1]["reduction"] <= lines[1]["possible_reduction"] < 1


def test_a_crawl_that_cannot_be_read_is_wrong_input(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text("address\tcontent\n")
    status, _, err = typed("rules", "replay", str(tmp_path / "bad.tsv"))
    assert (status, "url" in err) == (2, True)
