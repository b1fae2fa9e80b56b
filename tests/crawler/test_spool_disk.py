"""The spool on a disk that is really full, or gone, or that refuses what else a disk may."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clusterd_crawler.publish import spool as spool_module
from clusterd_crawler.publish.spool import Spool

from tests.crawler.test_spool import BIG, drain, numbered
from tests.services.locks import is_free

FULL = """
import resource, sys
from pathlib import Path
from clusterd_crawler.publish.spool import Spool
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
spool = Spool(Path(sys.argv[1]), 10**8)
kept, dropped = spool.append([(b"k%02d" % n, b"v" * 100) for n in range(60)])
on_disk = sum(path.stat().st_size for path in Path(sys.argv[1]).glob("*.spool"))
left = []
while (reading := spool.read(9)).entries:
    left += reading.entries
    spool.sent(reading)
again = spool.append([(b"k", b"v")])
print(kept, dropped, on_disk, left == [(b"k%02d" % n, b"v" * 100) for n in range(kept)], again)
"""


def test_a_full_disk_keeps_whole_records_and_recovers(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    # 5,000 bytes hold 43 records of 12 + 3 + 100 bytes
    assert done.stdout.split(maxsplit=4) == ["43", "17", f"{43 * 115}", "True", "(1, 0)\n"]


EVER_FULL = """
import resource, sys
from pathlib import Path
from clusterd_crawler.publish.spool import Spool
resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
spool = Spool(Path(sys.argv[1]), 10**8)
print(*(spool.append([(b"k", b"v" * 100)]) for _ in range(3)))
spool.close()
"""


def test_on_a_disk_that_takes_nothing_nothing_is_left(tmp_path: Path) -> None:
    command = [sys.executable, "-c", EVER_FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "(0, 1) (0, 1) (0, 1)\n"
    assert list(tmp_path.iterdir()) == []


FULL_FOR_LONG = """
import resource, sys
from pathlib import Path
from clusterd_crawler.publish.spool import Spool
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
spool = Spool(Path(sys.argv[1]), 10**8)
for _ in range(2):
    for n in range(60):
        spool.append([(b"k", b"v" * 100)])
    while (reading := spool.read(9)).entries:
        spool.sent(reading)
"""


def test_of_what_the_disk_refused_in_the_middle_nothing_behind_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is told how many were kept takes them for the first, and holds the others: else one came twice, one never."""
    write, refused = spool_module._write_all, [False, True, False]

    def write_once_in_vain(file: int, packed: bytes) -> int:
        if refused.pop(0):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, packed)

    monkeypatch.setattr(spool_module, "_write_all", write_once_in_vain)
    spool = Spool(tmp_path, 256 * 1024)
    kept, dropped = spool.append(numbered(180, size=1000))  # three segments
    assert 0 < kept == 180 - dropped < 90
    assert spool.refused
    assert drain(spool) == numbered(kept, size=1000)
    spool.close()


def test_a_disk_that_stays_full_is_said_once(tmp_path: Path) -> None:
    """Twice here: in between there is room."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_FOR_LONG, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("The spool cannot write to") == 2


def test_a_file_that_is_lost_while_it_is_written_takes_nothing_else_along(tmp_path: Path) -> None:
    """As a handle on a network's disk that went stale."""
    spool = Spool(tmp_path, 1024 * 1024)
    assert spool.append(numbered(3)) == (3, 0)
    assert spool._writing is not None
    os.close(spool._writing)
    assert spool.append(numbered(2, start=3)) == (0, 2)
    assert spool.refused
    assert spool.append(numbered(2, start=3)) == (2, 0)
    assert drain(spool) == numbered(5)
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_a_segment_that_cannot_be_deleted_holds_nothing_up(tmp_path: Path) -> None:
    """As on a disk that has become read-only: the keeper's thread ended by it, when the spool was full."""
    spool = Spool(tmp_path, 256 * 1024)
    assert spool.append(numbered(100, size=1000)) == (100, 0)
    oldest = min(tmp_path.glob("*.spool"))
    oldest.unlink()
    oldest.mkdir()
    kept, dropped = spool.append(numbered(200, start=100, size=1000))
    assert (kept, dropped > 0, len(spool)) == (200, True, 300 - dropped)
    spool.close()


def test_a_disk_that_cannot_be_synced_ends_no_crawl(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool(tmp_path, 1024 * 1024)
    segment = tmp_path / f"{spool.owner}-00000001.spool"
    os.mkfifo(segment)  # takes what is written, and cannot be synced
    reader = os.open(segment, os.O_RDWR)
    assert spool.append(numbered(3)) == (3, 0)
    spool.close()
    assert "cannot sync" in caplog.text
    assert is_free(tmp_path / f"{spool.owner}.lock")
    os.close(reader)


def test_a_folder_that_cannot_be_made_is_an_error_at_opening(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError):
        Spool(tmp_path / "file", BIG)


def test_a_folder_that_takes_no_file_is_a_disk_that_refuses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Then messages are held in the queue; here until the folder is there again."""
    folder = tmp_path / "spool"
    spool = Spool(folder, BIG)
    (folder / f"{spool.owner}.lock").unlink()
    folder.rmdir()
    assert spool.append(numbered(3)) == (0, 3)
    assert spool.refused
    assert "The spool cannot open a segment in" in caplog.text
    folder.mkdir()
    assert spool.append(numbered(3)) == (3, 0)
    assert not spool.refused
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())  # what was crawled is nobody else's
    assert drain(spool) == numbered(3)
    spool.close()
