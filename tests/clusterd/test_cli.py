"""``clusterd`` as it is typed: what comes on standard output, on standard error, and as exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clusterd.cli.commands import COMMANDS, clusterd, hoist, run

from tests.clusterd.command_line import FIELDS, PROGRAM, Typed, page, words, write


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
        for command in (["rules", "list"], ["policy", "add"], ["batch", "cluster"]):
            assert run([*command, "--help"]) == 0
            assert "Also the options of every command" in capsys.readouterr().out, command

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
            (
                ["ingest", ".", "--base", "www.example.org/docs"],
                "--base www.example.org/docs: takes an address such as",
            ),
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
            (["find-lost", "http://h.example/a"], "has been seen in one sweep only; bring in a later one"),
            (["changes", "--host", "none.example"], "no pages of the host none.example"),
            (["clusters", "--redis", "redis://127.0.0.1:1/0"], "127.0.0.1:1"),
        ):
            status, lines, err = filled(*line)
            assert (status, lines) == (1, []), line
            assert says in err
            assert err.count("\n") == 1

    @pytest.mark.parametrize(("of", "status"), [(["http://h.example/a"], 1), (["--all", "--host", "h.example"], 0)])
    def test_where_nothing_is_lost_it_says_how_to_ask_of_a_server_that_is_gone(
        self, filled: Typed, of: list[str], status: int
    ) -> None:
        done, _, err = filled("find-lost", *of)
        assert done == status
        assert err.endswith("of other hosts: --to SWEEP\n")
        _, lines, err = filled("find-lost", "--all", json_lines=False)
        assert (lines, err.count("\n"), "no page was lost" in err, "--to" in err) == ([], 1, True, False)

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
