"""Tables in Parquet: their rows are pages as those of JSON lines are, and what is broken is named."""

from __future__ import annotations

import base64
import json
import math
import subprocess
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clusterd.ingest import parquet
from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import kind_of, read
from clusterd_crawler.errors import ClusterdError, WrongInput

from tests.clusterd.command_line import PROGRAM, clusterd, write

PAGE = "<html><title>Sea</title><body><p>{} wide seas of words roll on and on until they end</p></body></html>"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def table(file: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), file, **options)
    return file


def items(file: Path) -> list[RawPage | Broken]:
    found = list(read(str(file)))
    assert all(isinstance(item, RawPage | Broken) for item in found)
    return found  # type: ignore[return-value]


def test_a_row_is_a_page_as_a_line_of_json_is(tmp_path: Path) -> None:
    rows = [
        {"url": "http://a/1", "html": PAGE, "fetched_at": NOON.isoformat(), "sweep": "one", "status": 200},
        {"url": "http://a/2", "html_b64": base64.b64encode(b"\xff\xfe").decode(), "content_type": "text/html"},
        {"url": "http://a/3", "text": "plain", "id": "three", "fetched_at": "2026-01-31", "other": [1, 2]},
        {"text": "a document of datatrove", "id": "four", "metadata": {"url": "http://a/4", "date": "2020"}},
        {"text": "of no address", "id": "five"},
    ]
    lines = tmp_path / "pages.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    filled = [{name: row.get(name) for given in rows for name in given} for row in rows]
    in_table, in_lines = (
        [(page.url, page.body, page.text, page.content_type, page.fetched_at, page.sweep, page.id) for page in found]
        for found in (items(table(tmp_path / "pages.parquet", filled)), items(lines))
        if all(isinstance(page, RawPage) for page in found)
    )
    assert in_table == in_lines
    assert [page[0] for page in in_table] == [f"http://a/{n}" for n in range(1, 5)] + [""]


@pytest.mark.parametrize("at", [NOON, NOON.replace(tzinfo=None), NOON.date()])
def test_times_and_bytes_are_what_the_table_says(tmp_path: Path, at: date) -> None:
    (page,) = items(table(tmp_path / "0", [{"url": b"http://a/1", "html": b"\xff\xfe<\0p\0", "fetched_at": at}]))
    assert isinstance(page, RawPage)
    assert (page.url, page.body, page.content_type) == ("http://a/1", b"\xff\xfe<\0p\0", "text/html")
    assert page.fetched_at == int(datetime(2026, 1, 31, 12 * isinstance(at, datetime), tzinfo=UTC).timestamp()) * 1000


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "Of/Nobody"])
def test_times_of_nanoseconds_as_pandas_writes_them_are_read(tmp_path: Path, zone: str | None) -> None:
    at = pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns", zone))
    pq.write_table(
        pa.table({"url": ["http://a/1", "http://a/2"], "text": ["x", "y"], "fetched_at": at}), tmp_path / "0"
    )
    found = items(tmp_path / "0")
    assert [page.fetched_at for page in found if isinstance(page, RawPage)] == [1_700_000_000_123, None]


def test_an_address_in_metadata_may_be_bytes_as_elsewhere(tmp_path: Path) -> None:
    (page,) = items(table(tmp_path / "0", [{"text": "x", "metadata": {"url": b"http://a/1"}}]))
    assert isinstance(page, RawPage)
    assert page.url == "http://a/1"


def test_a_column_of_numbers_with_gaps_is_one_of_whole_numbers(tmp_path: Path) -> None:
    """As pandas makes one of floats of it."""
    rows = [
        {"url": f"http://a/{n}", "text": "x", "status": status} for n, status in enumerate((200.0, math.nan, 200.5))
    ]
    *found, last = items(table(tmp_path / "0", rows))
    assert [page.status for page in found if isinstance(page, RawPage)] == [200, 200]
    assert last == Broken(f"{tmp_path / '0'}:3", "status is 200.5; it takes an HTTP status such as 200")


def test_so_is_one_in_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "pages.jsonl"
    file.write_text('{"url": "http://a/1", "text": "x", "status": 200.0, "id": 7.0, "sweep": 2025.0}\n')
    (page,) = items(file)
    assert isinstance(page, RawPage)
    assert (page.status, page.id, page.sweep) == (200, 7, "2025")
    assert isinstance(page.id, int)


def test_what_python_has_no_value_for_costs_its_own_row_only(tmp_path: Path) -> None:
    """A row with bytes that are no UTF-8, or a time beyond all years, cost the rest of the file."""
    texts = pa.Array.from_buffers(pa.string(), 3, pa.array([b"good", b"\xff\xfe", b"good"]).buffers())
    times = pa.array([0, 10**12, None], pa.timestamp("s"))
    urls = [f"http://a/{n}" for n in range(3)]
    pq.write_table(pa.table({"url": urls, "html": texts, "fetched_at": times}), tmp_path / "0")
    first, second, third = items(tmp_path / "0")
    assert isinstance(first, RawPage)
    assert isinstance(second, Broken)
    assert (second.where, second.ends) == (f"{tmp_path / '0'}:2", False)
    assert isinstance(third, RawPage)
    pq.write_table(pa.table({"url": urls, "html": texts}), tmp_path / "1")
    bodies = [(page.body or b"").decode() for page in items(tmp_path / "1") if isinstance(page, RawPage)]
    assert bodies == ["good", "\ufffd\ufffd", "good"]
    broken = pa.Array.from_buffers(pa.string(), 3, pa.array([None, b"\xff\xfe", b"good"]).buffers())
    pq.write_table(pa.table({"url": urls, "text": broken, "html": ["good"] * 3}), tmp_path / "2")
    assert all(isinstance(page, RawPage) for page in items(tmp_path / "2"))


def test_a_broken_row_is_named_and_a_broken_file_ends_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"url": f"http://a/{n}" if n != 5 else None, "html": PAGE.format(n)} for n in range(2_500)]
    file = table(tmp_path / "pages.parquet", rows, row_group_size=1_000, compression="none")
    found = items(file)
    assert [item for item in found if isinstance(item, Broken)] == [Broken(f"{file}:6", "url is missing")]
    assert len(found) == 2_500
    # When what the second thousand begins with is no page of a column any more
    at = pq.ParquetFile(file).metadata.row_group(1).column(1)
    data = bytearray(file.read_bytes())
    data[at.data_page_offset : at.data_page_offset + 40] = b"\xff" * 40
    file.write_bytes(data)
    *before, last = items(file)
    assert len(before) == 1_000
    assert isinstance(last, Broken)
    assert (last.where, last.ends) == (f"{file}:1001", True)
    assert last.reason.startswith("the rest of the file cannot be read: ")
    # When it ends before its list of columns
    file.write_bytes(data[:-99])
    (only,) = items(file)
    assert isinstance(only, Broken)
    assert (only.where, only.ends) == (f"{file}:1", True)


def test_progress_ends_with_the_file(tmp_path: Path) -> None:
    file = table(tmp_path / "pages.parquet", [{"url": f"http://a/{n}", "text": "x"} for n in range(250)])
    told: list[int] = []
    assert len(list(read(str(file), progress=told.append))) == 250
    assert told == sorted(told)
    assert told[-1] == file.stat().st_size


def test_commands_take_tables(tmp_path: Path) -> None:
    rows = [{"id": n, "text": " ".join(f"w{max(word, 2 * n)}" for word in range(60))} for n in range(3)]
    file = table(tmp_path / "corpus.parquet", rows)
    found = clusterd("--json", "pairs", str(file), "--threshold", ".5", folder=tmp_path)
    first = json.loads(found.stdout.splitlines()[0])
    assert {first["a"], first["b"]} == {0, 1}
    # And of several files, whatever lies in which, and one of them as it comes
    lines = write(tmp_path / "rest.jsonl", *rows[1:])
    parts = (str(table(tmp_path / "0.parquet", rows[:1])), f"<(cat {lines})")
    typed = " ".join(("--json pairs", *parts, "--threshold .5"))
    split = subprocess.run(["bash", "-c", f"{' '.join(PROGRAM)} {typed}"], capture_output=True, text=True, check=True)
    assert split.stdout == found.stdout
    of_whole, of_parts = (
        clusterd("--json", "batch", "cluster", *files, "--policy", "related", folder=tmp_path).stdout
        for files in ((str(file),), (parts[0], str(lines)))
    )
    assert of_whole == of_parts != ""
    missing = clusterd("pairs", parts[0], "nowhere.jsonl", "--threshold", ".5", folder=tmp_path)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "nowhere.jsonl: No such file" in missing.stderr
    pages = table(tmp_path / "pages.parquet", [{"url": f"http://a/{n}", "html": PAGE.format("six")} for n in (1, 2)])
    done = json.loads(clusterd("--json", "ingest", str(pages), folder=tmp_path).stdout)
    assert (done["sketched"], done["rejected"]) == (2, 0)


def test_without_its_reader_it_is_said_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = table(tmp_path / "pages.parquet", [{"url": "http://a/1", "text": "x"}])
    assert kind_of(str(file)) == "parquet"
    monkeypatch.setattr(parquet, "find_spec", lambda name: None)
    with pytest.raises(ClusterdError, match=r"pip install 'clusterd\[parquet\]'") as error:
        kind_of(str(file))
    assert not isinstance(error.value, WrongInput)
