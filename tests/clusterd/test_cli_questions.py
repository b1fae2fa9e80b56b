"""The questions as they are typed, each with the fields of its answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterd.cli.clusters import policy_record
from clusterd.clusters.contract import DEFAULT_POLICIES
from clusterd.clusters.memory.index import MemoryIndex
from clusterd_consumer.resemblance import exact

from tests.clusterd.command_line import FIELDS, PROGRAM, Typed, page, words, write

#: Pages, each with the seeds of its navigation and its main text.
PAGES = list(enumerate([(1, 2), (1, 3), (4, 2), (1, 2)]))


class TestQuestions:
    def test_clusters_under_policies(self, filled: Typed) -> None:
        (near,) = filled("clusters")[1]
        assert near.keys() == FIELDS["clusters"]
        assert near["members"] == [f"http://h.example/{path}" for path in ("a", "a?sid=1", "b")]
        assert (near["size"], near["representative"]) == (3, "http://h.example/a")
        (identical,) = filled("clusters", "--policy", "identical")[1]
        assert identical["size"] == 2
        assert len(filled("clusters", "--min-size", "1")[1]) == 3
        assert filled("clusters", "--host", "other.example")[1] == []
        (one,) = filled("cluster", "http://h.example/b", "--policy", "near")[1]
        assert one == near

    def test_a_table_for_people(self, filled: Typed) -> None:
        _, lines, _ = filled("clusters", json_lines=False)
        assert lines[0].split() == ["cluster", "size", "representative", "members"]
        assert lines[1].split()[1:] == [
            "3",
            *["http://h.example/a"] * 2,
            "http://h.example/a?sid=1",
            "http://h.example/b",
        ]

    def test_similar_and_holders(self, filled: Typed, tmp_path: Path) -> None:
        (tmp_path / "asked.txt").write_text(words(1))
        _, hits, _ = filled("similar", "asked.txt")
        assert hits[0].keys() == FIELDS["similar"]
        assert [hit["resemblance"] for hit in hits[:2]] == [1.0, 1.0]
        assert {hit["url"][-1] for hit in hits} == {"a", "1", "b", "d"}
        assert (hits[3]["query_in_match"], hits[3]["match_in_query"]) == pytest.approx((91 / 191, 91 / 291), abs=0.02)
        _, of_page, _ = filled("similar", "http://h.example/a", "--limit", "1")
        assert [hit["url"] for hit in of_page] == ["http://h.example/a?sid=1"]
        assert filled("similar", "asked.txt", "--all")[1] == hits
        (tmp_path / "part.txt").write_text(words(1, 100))
        _, held, _ = filled("holders", "part.txt")
        assert held[0].keys() == FIELDS["holders"]
        assert [(one["host"], one["query_in_match"]) for one in held] == [("h.example", 1.0)] * 4
        assert held[0]["resemblance"] < 0.5
        assert len(filled("holders", "asked.txt", "--least", "0.4")[1]) == 4
        assert len(filled("holders", "asked.txt", "--least", "0.6")[1]) == 3

    def test_similar_as_a_whole(self, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CLUSTERD_WHOLE", "true")
        rows = [page(str(place), f"<nav>{words(nav)}</nav><main>{words(text)}</main>") for place, (nav, text) in PAGES]
        assert typed("ingest", str(write(tmp_path / "pages.jsonl", *rows)))[0] == 0
        monkeypatch.delenv("CLUSTERD_WHOLE")
        _, hits, _ = typed("similar", "http://h.example/0", "--whole")
        assert hits[0].keys() == FIELDS["similar"]
        assert [hit["url"][-1] for hit in hits] == ["3", "1", "2"]  # all, the navigation, the main text
        assert [hit["url"][-1] for hit in typed("similar", "http://h.example/0")[1]] == ["2", "3"]
        (tmp_path / "asked.html").write_text(rows[0]["html"])
        assert [hit["resemblance"] for hit in typed("similar", "asked.html", "--whole")[1]][:2] == [1.0, 1.0]
        (tmp_path / "empty.html").write_text("<html><p></html>")
        for asked, code, what in (("empty.html", 2, "has no words"), ("http://h.example/no", 1, "has no page")):
            status, _, err = typed("similar", asked, "--whole")
            assert (status, what in err) == (code, True), err
        assert "give one of them" in typed("similar", "asked.html", "--whole", "--all")[2]

    def test_a_store_of_main_texts_has_no_whole_pages(self, filled: Typed) -> None:
        status, _, err = filled("similar", "http://h.example/a", "--whole")
        assert (status, "begun without whole pages (CLUSTERD_WHOLE)" in err) == (2, True), err

    def test_compare(self, filled: Typed) -> None:
        _, (exact,), _ = filled(
            "compare", "text:a rose is a rose is a rose", "text:a rose is a flower which is a rose", "--w", "2"
        )
        figures = {"resemblance": 0.5, "a_in_b": 1.0, "b_in_a": 0.5}
        assert exact == figures | {f"exact_{name}": figure for name, figure in figures.items()} | {"error": 0.0}
        _, (stored,), _ = filled("compare", "http://h.example/a", "http://h.example/a?sid=1")
        assert stored == {"resemblance": 1.0, "a_in_b": 1.0, "b_in_a": 1.0}

    def test_group(self, filled: Typed) -> None:
        urls = [f"http://h.example/{path}" for path in ("c", "b", "a")]
        _, groups, _ = filled("group", *urls)
        assert groups == [
            {"representative": urls[0], "members": urls[:1]},
            {"representative": urls[1], "members": urls[1:]},
        ]
        assert len(filled("group", *urls, "--policy", "identical")[1]) == 3

    def test_policies(self, filled: Typed) -> None:
        assert [one["policy"] for one in filled("policy", "list")[1]] == ["identical", "near", "related", "contained"]
        _, (added,), _ = filled("policy", "add", "loose", "--resemblance", "0.2")
        assert added == {"policy": "loose", "resemblance": 0.2, "containment": None, "clusters": 1}
        assert filled("clusters", "--policy", "loose")[1][0]["size"] == 4
        status, _, err = filled("policy", "add", "loose", "--resemblance", "0.3")
        assert status == 2
        assert "already" in err
        assert filled("policy", "remove", "loose")[1] == [added]
        assert filled("policy", "remove", "related")[0] == 0
        assert [one["policy"] for one in filled("policy", "list")[1]] == ["identical", "near", "contained"]
        for name, says in (("loose", "there is no policy loose"), ("near", "near stays, since the verdicts")):
            status, _, err = filled("policy", "remove", name)
            assert status == 2
            assert says in err

    def test_a_policy_that_is_removed_while_it_is_told(self) -> None:
        """Somebody else removes it between the two questions of what it is and how many clusters it has."""
        index = MemoryIndex(DEFAULT_POLICIES)
        policies = index.policies()
        index.remove_policy("related")
        assert [policy_record(index, one)["clusters"] for one in policies] == [0, 0, 0, 0]

    def test_an_alert_tells_of_a_split(self, typed: Typed, tmp_path: Path) -> None:
        first, second = words(1), words(2)
        rows = [page("a", first), page("b", f"{first} {second}"), page("c", second)]
        typed("ingest", str(write(tmp_path / "first.jsonl", *rows)))
        typed("ingest", str(write(tmp_path / "second.jsonl", page("b", words(3)))))
        told = [one for one in typed("alerts")[1] if one["event"] == "split"]
        (alert,) = [one for one in told if one["policy"] == "contained"]
        assert alert.keys() == FIELDS["alerts"]
        assert (alert["size"], alert["match"]) == (1, None)
        assert alert["url"] in {"http://h.example/a", "http://h.example/c"}
        typed("ingest", str(write(tmp_path / "third.jsonl", page("d", words(4)))))
        assert [one for one in typed("alerts")[1] if one["event"] == "split"] == told

    def test_alerts(self, filled: Typed) -> None:
        _, told, _ = filled("alerts")
        assert told[0].keys() == FIELDS["alerts"]
        assert {alert["event"] for alert in told} == {"joined"}
        assert len(filled("alerts", "--since", "1h")[1]) == len(told)
        assert filled("alerts", "--since", "2099-01-01")[1] == []


class TestSweeps:
    @pytest.fixture
    def dated(self, typed: Typed, tmp_path: Path) -> Iterator[Typed]:
        stays = [(f"stays/{n}", words(10 + n)) for n in range(3)]
        old = [page("old/tool", words(1)), *(page(path, text) for path, text in stays)]
        old += [page(path, words(path)) for path in ("vanishes", "ends")]
        new = [page("new/tool", words(1, 150)), *(page(path, text + " news") for path, text in stays)]
        new += [page(path, words(path)) for path in ("appears", "begins", "comes", "rises")]
        typed("ingest", str(write(tmp_path / "old.jsonl", *old)), "--sweep", "2.0")
        typed("ingest", str(write(tmp_path / "new.jsonl", *new)), "--sweep", "2.4")
        return typed

    def test_find_lost(self, dated: Typed) -> None:
        _, (moved,), _ = dated("find-lost", "http://h.example/old/tool")
        assert FIELDS["find-lost"] <= moved.keys()
        assert (moved["match"], moved["from"], moved["to"]) == ("http://h.example/new/tool", "2.0", "2.4")
        assert moved["match_in_query"] == pytest.approx(1, abs=0.02)
        status, lost, err = dated("find-lost", "--all")
        assert (status, err) == (0, "")
        assert {one["url"]: one["match"] for one in lost} == {
            "http://h.example/old/tool": "http://h.example/new/tool",
            "http://h.example/vanishes": None,
            "http://h.example/ends": None,
        }
        status, _, err = dated("find-lost", "http://h.example/stays/0")
        assert status == 1
        assert "still has this page" in err

    def test_find_lost_from_one_sweep_to_another(self, typed: Typed, tmp_path: Path) -> None:
        pages = {name: page(name, words(name)) for name in ("p", "q", "stays")}
        alike = [page("new/a", words("p")), page("new/b", f"{words('p', 100)} {words('b')}")]
        swept = [[*pages.values()], [pages["p"], pages["stays"]], [pages["stays"], *alike]]
        for sweep, rows in enumerate(swept, 1):
            typed("ingest", str(write(tmp_path / "sweep.jsonl", *rows)), "--sweep", str(sweep))

        def lost(*between: str) -> list[tuple[str, str, str]]:
            _, found, _ = typed("find-lost", "--all", *between)
            return sorted((one["url"][-1], one["from"], one["to"]) for one in found)

        assert lost() == [("p", "2", "3"), ("q", "1", "3")]
        assert lost("--from", "2") == [("p", "2", "3")]
        assert lost("--to", "2") == [("q", "1", "2")]
        _, (moved,), _ = typed("find-lost", "http://h.example/p")
        assert moved["match"] == "http://h.example/new/a"
        assert 0 < moved["margin"] < moved["resemblance"] == 1

    def test_find_lost_says_what_it_cannot_know(
        self, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """That a page of a sweep had moved in the next is gone with the version that a later one superseded."""
        first = [page("old", words(1), fetched_at="2020-01-01T00:00:00Z")]
        second = [page("new", words(1), fetched_at="2020-02-01T00:00:00Z")]
        third = [page("new", words(1) + " news")]
        monkeypatch.setenv("CLUSTERD_RETENTION", "30")
        for sweep, rows in {"1": first, "2": second}.items():
            typed("ingest", str(write(tmp_path / f"{sweep}.jsonl", *rows)), "--sweep", sweep)
        of_the_first = "find-lost", "--all", "--from", "1", "--to", "2"
        _, (lost,), err = typed(*of_the_first)
        assert (lost["match"], "forgotten" in err) == ("http://h.example/new", False)
        typed("ingest", str(write(tmp_path / "3.jsonl", *third)), "--sweep", "3")
        for asked in (of_the_first, of_the_first[:4], ("find-lost", "--all", "--to", "2")):
            assert "were forgotten (retention)" in typed(*asked)[2]
        _, (lost,), err = typed("find-lost", "--all")
        assert (lost["match"], lost["to"], "forgotten" in err) == ("http://h.example/new", "3", False)

    def test_changes(self, dated: Typed, tmp_path: Path) -> None:
        _, (period,), _ = dated("changes", "--plot", "changes.svg")
        assert FIELDS["changes"] <= period.keys()
        counted = [period[name] for name in ("unchanged", "revised", "moved", "vanished", "appeared")]
        assert counted == [0, 3, 1, 2, 4]
        assert (period["moved_within"], period["moved_across"]) == (1, 0)
        assert (tmp_path / "changes.svg").read_text().startswith("<?xml")

    def test_a_host_of_one_sweep_beside_others_of_two(self, dated: Typed, tmp_path: Path) -> None:
        """No host had been seen in two, it was said."""
        once = page("once", words(1), sweep="2025") | {"url": "http://once.example/"}
        dated("ingest", str(write(tmp_path / "once.jsonl", once)))
        assert dated("find-lost", "--all", "--host", "once.example")[:2] == (0, [])
        status, periods, err = dated("changes", "--host", "once.example", json_lines=False)
        assert (status, periods) == (0, [])
        assert err.startswith("nothing to compare: once.example has not been seen in two sweeps (CLUSTERD_")

    def test_that_there_is_nothing_to_plot_is_said_once(self, filled: Typed, tmp_path: Path) -> None:
        status, periods, err = filled("changes", "--plot", "changes.svg", json_lines=False)
        assert (status, periods) == (1, [])
        assert err.startswith("clusterd: there is nothing to plot: no host has been seen in two sweeps (CLUSTERD_")
        assert err.count("\n") == 1
        assert not (tmp_path / "changes.svg").exists()


class TestCollections:
    def test_pairs(self, typed: Typed, tmp_path: Path) -> None:
        file = write(
            tmp_path / "p.jsonl",
            {"id": "a", "text": words(1)},
            {"id": "b", "text": words(1) + " more"},
            {"url": "http://h.example/c", "text": words(1, 80)},
            {"id": "d", "text": words(2)},
        )
        _, (near,), _ = typed("pairs", str(file), "--threshold", "0.9")
        assert near.keys() == FIELDS["pairs"]
        assert (near["a"], near["b"]) == ("a", "b")
        _, contained, _ = typed("pairs", str(file), "--threshold", "0.9", "--containment")
        assert {(one["a"], one["b"], one["a_in_b"] < 0.9, one["b_in_a"] < 0.9) for one in contained} == {
            ("a", "b", False, False),
            ("a", "http://h.example/c", True, False),
            ("b", "http://h.example/c", True, False),
        }

    def test_pairs_of_long_documents_are_exact(self, typed: Typed, tmp_path: Path) -> None:
        long = words(1, 2000).split()
        other = [*long[:1000], "other", *long[1001:]]
        broken = "{"
        rows = [
            broken,
            *(json.dumps({"id": name, "text": " ".join(text)}) for name, text in (("a", long), ("b", other))),
        ]
        file = tmp_path / "p.jsonl"
        file.write_text("\n".join(rows))
        _, (pair,), _ = typed("pairs", str(file), "--threshold", "0.5")
        found = exact(long, other, 10)
        assert pair == {
            "a": "a",
            "b": "b",
            **{name: pytest.approx(one, abs=1e-6) for name, one in found._asdict().items()},
        }
        command = [sys.executable, "-m", "clusterd", "pairs", "-", "--threshold", "0.5", "--json"]
        piped = subprocess.run(command, input=file.read_bytes(), capture_output=True, check=True)
        assert json.loads(piped.stdout) == pair

    def test_batch_agrees_with_the_store(self, filled: Typed, tmp_path: Path) -> None:
        for asked in ((), ("--policy", "identical"), ("--min-size", "1")):
            _, batch, _ = filled("batch", "cluster", str(tmp_path / "pages.jsonl.gz"), *asked)
            assert [one["members"] for one in batch] == [one["members"] for one in filled("clusters", *asked)[1]]


def test_alerts_are_followed(redis_url: str, prefix: str, tmp_path: Path) -> None:
    environment = {**os.environ, "CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}
    follower = subprocess.Popen(
        [*PROGRAM, "alerts", "--follow", "--since", "1h", "--json"],
        stdout=subprocess.PIPE,
        env=environment,
        cwd=tmp_path,
    )
    timer = threading.Timer(120, follower.kill)
    timer.start()
    try:
        file = write(tmp_path / "p.jsonl", page("a", words(1)), page("b", words(1)))
        subprocess.run([*PROGRAM, "ingest", str(file)], env=environment, cwd=tmp_path, check=True, capture_output=True)
        assert follower.stdout is not None
        assert json.loads(follower.stdout.readline())["event"] == "joined"
        follower.send_signal(2)
        follower.stdout.close()
        assert follower.wait(20) == 0
    finally:
        timer.cancel()
        follower.kill()
        follower.wait()
