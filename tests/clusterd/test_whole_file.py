"""A file that a command writes has all of its content or stays as it was, whatever it is and where it lies."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest
from clusterd.whole_file import write_whole
from clusterd_crawler.errors import ClusterdError, WrongInput

#: A user without rights.
NOBODY = 65534
EARLIER, LATER = b"earlier", b"later " * 10_000


@pytest.fixture
def little_room() -> Iterator[None]:
    """No file may become as long as `LATER`: as on a disk that fills while it is written."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(LATER) // 2, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of our own, which we use as somebody who may not write everywhere, as root may."""
    user = os.getuid()
    with TemporaryDirectory() as name:
        os.chown(name, user or NOBODY, -1)
        os.setresuid(user or NOBODY, user or NOBODY, user)
        try:
            yield Path(name)
        finally:
            os.setresuid(user, user, user)


def test_a_file_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    for content in (EARLIER, LATER):
        write_whole(file, content)
        assert file.read_bytes() == content
    assert os.listdir(tmp_path) == ["rules.json"]


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("there", [True, False])
def test_where_there_is_no_room_all_stays_as_it_was(tmp_path: Path, there: bool) -> None:
    file = tmp_path / "rules.json"
    if there:
        file.write_bytes(EARLIER)
    with pytest.raises(ClusterdError, match=r"rules\.json: cannot be written: File too large") as told:
        write_whole(file, LATER)
    assert not isinstance(told.value, WrongInput)  # which ends with another status
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("rules.json", EARLIER)] * there


def test_the_rights_and_the_links_of_the_earlier_file_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "real" / "rules.json", tmp_path / "link.json"
    file.parent.mkdir()
    file.write_bytes(EARLIER)
    file.chmod(0o640)
    link.symlink_to("real/rules.json")
    write_whole(link, LATER)
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (LATER, 0o640)
    mask = os.umask(0o027)
    try:
        write_whole(tmp_path / "new.json", LATER)
    finally:
        os.umask(mask)
    assert (tmp_path / "new.json").stat().st_mode & 0o777 == 0o640


def test_a_pipe_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, LATER)
    reader.join()
    assert read == [LATER]
    assert pipe.is_fifo()


def test_standard_output_is_written_to_where_it_leads(tmp_path: Path) -> None:
    """It may be a file that is open: another one in its place would not have what the shell writes behind it."""
    code = f"from clusterd.whole_file import write_whole; write_whole('/dev/stdout', {LATER!r})"
    with (tmp_path / "out").open("w+b") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
        out.seek(0)
        assert out.read() == LATER
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout == LATER


def test_what_is_protected_stays_so_and_what_is_not_can_be_written(folder: Path) -> None:
    file = folder / "rules.json"
    file.write_bytes(EARLIER)
    file.chmod(0o444)
    with pytest.raises(WrongInput, match="Permission denied"):
        write_whole(file, LATER)
    assert file.read_bytes() == EARLIER
    file.chmod(0o644)
    folder.chmod(0o555)  # it takes no other file
    write_whole(file, LATER)
    folder.chmod(0o755)
    assert file.read_bytes() == LATER
