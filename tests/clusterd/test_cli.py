"""``clusterd`` as it is typed: what comes on standard output, on standard error, and as exit status."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusterd.cli.commands import COMMANDS, clusterd, hoist, run
from clusterd_consumer.resemblance import exact

PROGRAM = [sys.executable, "-m", "clusterd"]
FIELDS = {
    "ingest": {"pages", "sketched", "rejected", "seconds"},
    "clusters": {"cluster", "policy", "size", "representative", "members"},
    "similar": {"url", "resemblance", "query_in_match", "match_in_query", "cluster"},
    "holders": {"host", "url", "query_in_match", "resemblance"},
    "pairs": {"a", "b", "resemblance", "a_in_b", "b_in_a"},
    "policy": {"policy", "resemblance", "containment", "clusters"},
    "find-lost": {"url", "match", "resemblance", "match_in_query", "query_in_match", "margin", "from", "to"},
    "group": {"representative", "members"},
    "changes": {"host", "from", "to", "unchanged", "revised", "moved", "vanished", "appeared", "resemblance_quantiles"},
    "alerts": {"at", "event", "url", "policy", "cluster", "size", "match", "resemblance"},
}


def words(seed: object, count: int = 200) -> str:
    source = random.Random(f"{seed}")
    return " ".join("".join(source.choices("abcdefghijklmnop", k=5)) for _ in range(count))


def page(path: str, text: str, **more: Any) -> dict[str, Any]:
    return {"url": f"http://h.example/{path}", "html": f"<html><body><p>{text}</p></body></html>", **more}


def write(file: Path, *rows: Any) -> Path:
    lines = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()
    file.write_bytes(gzip.compress(lines) if file.suffix == ".gz" else lines)
    return file


Typed = Callable[..., tuple[int, list[Any], str]]


@pytest.fixture
def typed(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Typed:
    """A command line on a store of this test's own; returns status, JSON lines (or text lines) and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLUSTERD_REDIS", redis_url)
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", prefix)

    def typed(*words: str, json_lines: bool = True) -> tuple[int, list[Any], str]:
        capsys.readouterr()
        status = run([*words, "--json"] if json_lines else list(words))
        out, err = capsys.readouterr()
        return status, [json.loads(line) if json_lines else line for line in out.splitlines()], err

    return typed


@pytest.fixture
def filled(typed: Typed, tmp_path: Path) -> Typed:
    rows = [
        page("a", words(1)),
        page("a?sid=1", words(1)),
        page("b", words(1) + " and a few words more"),
        page("c", words(2)),
        page("d", words(1, 100) + " " + words(3, 200)),
    ]
    status, lines, _ = typed("ingest", str(write(tmp_path / "pages.jsonl.gz", *rows)))
    assert (status, lines[0]["sketched"]) == (0, 5)
    return typed


class TestEveryCommand:
    def test_shared_options_may_stand_anywhere(self) -> None:
        line = ["clusters", "--json", "--host", "h", "--data=x", "--redis", "redis://r", "--", "--json"]
        assert hoist(line) == ["--json", "--data=x", "--redis", "redis://r", "clusters", "--host", "h", "--", "--json"]

    def test_every_command_in_the_table_exists_and_explains_itself(self, capsys: pytest.CaptureFixture[str]) -> None:
        for name in COMMANDS:
            command = clusterd.get_command(None, name)  # type: ignore[arg-type]
            assert command is not None, name
            assert command.help
            assert run([name, "--help"]) == 0
        assert "Usage: clusterd" in capsys.readouterr().out

    def test_a_command_within_another_names_the_options_of_every_command_too(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for words in (["rules", "list"], ["policy", "add"], ["batch", "cluster"]):
            assert run([*words, "--help"]) == 0
            assert "Also the options of every command" in capsys.readouterr().out, words

    def test_help_imports_none_of_the_heavy_parts(self) -> None:
        code = (
            "import sys; sys.argv[1:] = ['--help']\n"
            "from clusterd.cli import main\n"
            "try: main()\n"
            "except SystemExit as stop: assert stop.code == 0\n"
            "assert not {'numpy', 'redis', 'kafka', 'rich', 'scrapy'} & set(sys.modules), sorted(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    @pytest.mark.parametrize(
        ("line", "says"),
        [
            (["clustrs"], "there is no command 'clustrs'; did you mean clusters?"),
            (
                ["clusters", "--polcy", "near"],
                "No such option '--polcy'. Did you mean '--policy'? Usage: clusterd clusters",
            ),
            (["clusters", "--policy", "nearby"], "there is no policy nearby; the policies are identical, near,"),
            (["pairs", "nothing.jsonl"], "Missing option '--threshold'"),
            (
                ["pairs", "nothing.jsonl", "--threshold", "0.5"],
                "nothing.jsonl: No such file or directory; ingest",
            ),
            (["ingest", "nothing.jsonl"], "nothing.jsonl: No such file or directory"),
            (["ingest", "thing.bin"], "thing.bin: is of no known kind; ingest takes WARC"),
            (["similar", "nothing.html"], "nothing.html: No such file or directory; give a URL of the store"),
            (["find-lost"], "give the URLs of lost pages, or --all"),
            (["policy", "add", "x"], "give one of --resemblance R and --containment C"),
            (["changes", "--plot", "p.pdf"], "ends in .png or .svg"),
            (["alerts", "--since", "noon"], "takes an ISO 8601 time"),
            (["clusters", "--config", "none.toml"], "none.toml: cannot be read"),
            (["clusters", "--redis", "http://x"], "CLUSTERD_REDIS = 'http://x' is not accepted"),
        ],
    )
    def test_wrong_input_ends_with_two_and_one_line(
        self, typed: Typed, tmp_path: Path, line: list[str], says: str
    ) -> None:
        (tmp_path / "thing.bin").write_bytes(b"\x00\x01\x02")
        status, lines, err = typed(*line)
        assert (status, lines) == (2, [])
        assert says in err
        assert err.startswith("clusterd: ")
        assert err.count("\n") == 1

    def test_what_cannot_be_done_ends_with_one(self, filled: Typed) -> None:
        for line, says in (
            (["similar", "http://h.example/never"], "the store has no page http://h.example/never"),
            (["cluster", "http://h.example/never"], "not fetched, or kept out by a rule (see clusterd rules why URL)"),
            (["find-lost", "http://h.example/never"], "no sweep of h.example has seen"),
            (["find-lost", "http://h.example/a"], "has been seen in one sweep only"),
            (["changes", "--host", "none.example"], "no pages of the host none.example"),
            (["clusters", "--redis", "redis://127.0.0.1:1/0"], "127.0.0.1:1"),
        ):
            status, lines, err = filled(*line)
            assert (status, lines) == (1, []), line
            assert says in err
            assert err.count("\n") == 1

    def test_debug_shows_where(self, typed: Typed) -> None:
        status, lines, err = typed("similar", "nothing.html", "--debug")
        assert (status, lines) == (2, [])
        assert "Traceback" in err
        assert err.splitlines()[-1].startswith("clusterd: nothing.html: No such file")

    @pytest.mark.parametrize("read", [0, 1])
    def test_standard_output_may_be_closed_early(self, tmp_path: Path, read: int) -> None:
        file = write(tmp_path / "p.jsonl", *({"id": n, "text": words(n % 2)} for n in range(400 if read else 3)))
        command = [sys.executable, "-m", "clusterd", "pairs", str(file), "--threshold", "0.5", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as pairs:
            assert pairs.stdout is not None
            assert [json.loads(pairs.stdout.readline())["resemblance"] for _ in range(read)] == [1.0] * read
            pairs.stdout.close()
            assert pairs.communicate()[1] == b""
        assert pairs.returncode == 1  # not all was said


class TestIngest:
    def test_the_last_line_counts_and_broken_records_are_named(self, typed: Typed, tmp_path: Path) -> None:
        file = write(tmp_path / "p.jsonl", page("a", words(1)), "{broken", {"url": "http://h.example/x"})
        status, lines, err = typed("ingest", str(file))
        assert status == 0
        assert lines[0].keys() == FIELDS["ingest"]
        assert (lines[0]["pages"], lines[0]["sketched"], lines[0]["rejected"]) == (3, 1, 2)
        assert f"rejected: {file}:2: not JSON" in err
        assert f"rejected: {file}:3: no content" in err

    def test_nothing_that_could_be_read_ends_with_one(self, typed: Typed, tmp_path: Path) -> None:
        assert typed("ingest", str(write(tmp_path / "p.jsonl", "{broken")))[0] == 1

    def test_standard_input(self, redis_url: str, prefix: str, tmp_path: Path) -> None:
        environment = {**os.environ, "CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}
        file = write(tmp_path / "p.jsonl.gz", page("a", words(1)))
        done = subprocess.run(
            [*PROGRAM, "ingest", "-", "--json"],
            input=file.read_bytes(),
            capture_output=True,
            env=environment,
            cwd=tmp_path,
        )
        assert json.loads(done.stdout)["sketched"] == 1, done.stderr

    def test_a_folder_at_an_address(self, typed: Typed, tmp_path: Path) -> None:
        folder = tmp_path / "site"
        folder.mkdir()
        for name in ("one.html", "two.html"):
            (folder / name).write_text(f"<html><body>{words(1)}</body></html>")
        typed("ingest", str(folder), "--base", "https://www.example.org/docs")
        (found,) = typed("clusters")[1]
        assert found["members"] == ["https://www.example.org/docs/one.html", "https://www.example.org/docs/two.html"]

    def test_the_embedded_store_needs_nothing_else(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The two commands of the README, as processes of their own, in an empty folder."""
        for name in list(os.environ):
            if name.startswith("CLUSTERD_") or name == "REDIS_URL":
                monkeypatch.delenv(name)
        write(tmp_path / "pages.jsonl", page("a", words(1)), page("b", words(1)))
        subprocess.run([*PROGRAM, "ingest", "pages.jsonl"], cwd=tmp_path, check=True, capture_output=True)
        done = subprocess.run([*PROGRAM, "--json", "clusters"], cwd=tmp_path, check=True, capture_output=True)
        assert json.loads(done.stdout)["size"] == 2
        assert (tmp_path / ".clusterd").is_dir()


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
        _, of_page, _ = filled("similar", "http://h.example/a", "--limit", "1")
        assert [hit["url"] for hit in of_page] == ["http://h.example/a?sid=1"]
        assert filled("similar", "asked.txt", "--all")[1] == hits
        (tmp_path / "part.txt").write_text(words(1, 100))
        _, held, _ = filled("holders", "part.txt")
        assert held[0].keys() == FIELDS["holders"]
        assert len(held) == 4
        assert {one["host"] for one in held} == {"h.example"}

    def test_compare(self, filled: Typed) -> None:
        _, (exact,), _ = filled(
            "compare", "text:a rose is a rose is a rose", "text:a rose is a flower which is a rose", "--w", "2"
        )
        assert (exact["resemblance"], exact["exact_resemblance"], exact["error"]) == (0.5, 0.5, 0.0)
        _, (stored,), _ = filled("compare", "http://h.example/a", "http://h.example/a?sid=1")
        assert stored == {"resemblance": 1.0, "a_in_b": 1.0, "b_in_a": 1.0}

    def test_group(self, filled: Typed) -> None:
        urls = [f"http://h.example/{path}" for path in ("c", "b", "a")]
        _, groups, _ = filled("group", *urls)
        assert groups == [
            {"representative": urls[0], "members": urls[:1]},
            {"representative": urls[1], "members": urls[1:]},
        ]

    def test_policies(self, filled: Typed) -> None:
        assert [one["policy"] for one in filled("policy", "list")[1]] == ["identical", "near", "related", "contained"]
        _, (added,), _ = filled("policy", "add", "loose", "--resemblance", "0.2")
        assert added.keys() == FIELDS["policy"]
        assert added["clusters"] == 1
        assert filled("clusters", "--policy", "loose")[1][0]["size"] == 4
        status, _, err = filled("policy", "add", "loose", "--resemblance", "0.3")
        assert status == 2
        assert "already" in err

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
        old = [page("old/tool", words(1)), page("stays", words(2)), page("vanishes", words(3))]
        new = [page("new/tool", words(1, 150)), page("stays", words(2) + " news"), page("appears", words(4))]
        typed("ingest", str(write(tmp_path / "old.jsonl", *old)), "--sweep", "2.0")
        typed("ingest", str(write(tmp_path / "new.jsonl", *new)), "--sweep", "2.4")
        return typed

    def test_find_lost(self, dated: Typed) -> None:
        _, (moved,), _ = dated("find-lost", "http://h.example/old/tool")
        assert FIELDS["find-lost"] <= moved.keys()
        assert (moved["match"], moved["from"], moved["to"]) == ("http://h.example/new/tool", "2.0", "2.4")
        assert moved["match_in_query"] == pytest.approx(1, abs=0.02)
        found = {one["url"]: one["match"] for one in dated("find-lost", "--all")[1]}
        assert found == {"http://h.example/old/tool": "http://h.example/new/tool", "http://h.example/vanishes": None}
        status, _, err = dated("find-lost", "http://h.example/stays")
        assert status == 1
        assert "still has this page" in err

    def test_changes(self, dated: Typed, tmp_path: Path) -> None:
        _, (period,), _ = dated("changes", "--plot", "changes.svg")
        assert FIELDS["changes"] <= period.keys()
        counted = [period[name] for name in ("unchanged", "revised", "moved", "vanished", "appeared")]
        assert counted == [0, 1, 1, 1, 1]
        assert (tmp_path / "changes.svg").read_text().startswith("<?xml")


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
        assert {(one["a"], one["b"]) for one in contained} == {
            ("a", "b"), ("a", "http://h.example/c"), ("b", "http://h.example/c"),
        }  # fmt: skip

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
        _, batch, _ = filled("batch", "cluster", str(tmp_path / "pages.jsonl.gz"))
        assert [one["members"] for one in batch] == [one["members"] for one in filled("clusters")[1]]


def test_alerts_are_followed(redis_url: str, prefix: str, tmp_path: Path) -> None:
    environment = {**os.environ, "CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}
    follower = subprocess.Popen(
        [*PROGRAM, "alerts", "--follow", "--since", "1h", "--json"],
        stdout=subprocess.PIPE,
        env=environment,
        cwd=tmp_path,
    )
    timer = threading.Timer(30, follower.kill)
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
