"""The spool: order, restarts, limits, damage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from clusterd_crawler.publish import spool as spool_module
from clusterd_crawler.publish.spool import Entry, Spool

BIG = 100 * 1024 * 1024


def numbered(count: int, start: int = 0, size: int = 100) -> list[Entry]:
    return [(b"k%d" % n, (b"%d " % n).ljust(size, b".")) for n in range(start, start + count)]


def drain(spool: Spool, most: int = 7) -> list[Entry]:
    out: list[Entry] = []
    while (reading := spool.read(most)).entries:
        out.extend(reading.entries)
        spool.sent(reading)
    return out


def test_what_goes_in_comes_out_in_order_and_leaves_no_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", BIG)
    entries = numbered(1000)
    assert spool.append(entries[:600]) == (600, 0)
    assert spool.append(entries[600:]) == (400, 0)
    assert len(spool) == 1000
    assert drain(spool) == entries
    assert len(spool) == 0
    spool.close()
    assert list((tmp_path / "spool").iterdir()) == []


def test_what_was_read_and_not_sent_is_read_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BIG)
    spool.append(numbered(10))
    assert spool.read(4).entries == spool.read(4).entries == tuple(numbered(4))
    spool.sent(spool.read(4))
    assert spool.read(1).entries == tuple(numbered(1, start=4))
    spool.close()


def test_appending_goes_on_while_reading(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BIG)
    spool.append(numbered(3))
    reading = spool.read(10)
    spool.append(numbered(3, start=3))
    spool.sent(reading)
    assert drain(spool) == numbered(3, start=3)
    spool.append(numbered(1))
    assert drain(spool) == numbered(1)
    spool.close()


def test_a_restart_finds_what_waited(tmp_path: Path) -> None:
    first = Spool(tmp_path, BIG)
    first.append(numbered(50))
    first.sent(first.read(20))
    first.close()
    second = Spool(tmp_path, BIG)
    second.append(numbered(5, start=50))
    assert drain(second)[-35:] == numbered(35, start=20)  # a part may come twice, nothing is missing
    second.close()


def test_what_was_sent_to_its_end_is_not_sent_again_by_the_next_crawl(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BIG)
    spool.append(numbered(3))
    spool.sent(spool.read(3))  # a crawl that ends now does not look whether there is more
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_what_several_crawls_could_not_send_is_found_by_the_one_that_can(tmp_path: Path) -> None:
    for n in range(3):
        crawl = Spool(tmp_path, BIG)
        assert len(crawl) == 5 * n
        crawl.append(numbered(5, start=5 * n))
        crawl.close()
    heir = Spool(tmp_path, BIG)
    assert drain(heir) == numbered(15)
    heir.close()


def test_what_is_dropped_while_it_is_on_its_way_is_sent_all_the_same(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 256 * 1024)
    spool.append(numbered(100, size=1000))
    spool.sent(spool.read(7))
    reading = spool.read(100)  # to its segment's end
    kept, dropped = spool.append(numbered(200, start=100, size=1000))
    assert (kept, dropped >= len(reading.entries)) == (200, True)
    spool.sent(reading)
    assert len(spool) == 293 - dropped
    spool.sent(spool.read(7))
    assert len(spool) == 286 - dropped
    assert drain(spool) == numbered(300, size=1000)[14 + dropped :]
    spool.close()


def test_of_many_segments_and_crawls_no_file_stays_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    first = Spool(tmp_path, 1024 * 1024)
    first.append(numbered(2000, size=1000))
    second = Spool(tmp_path, 1024 * 1024)  # looks at the first one's lock
    for _ in range(3):
        second.append(numbered(3))
        assert drain(second) == numbered(3)
    assert len(os.listdir("/proc/self/fd")) <= len(before) + 3  # two locks and what is being written
    first.close()
    second.close()
    assert os.listdir("/proc/self/fd") == before


def test_who_was_killed_with_an_empty_spool_is_not_spoken_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "killed.lock").write_text("shop-sketches")
    Spool(tmp_path, BIG, "news-sketches").close()
    assert caplog.text == ""
    assert list(tmp_path.iterdir()) == []


def test_what_waits_for_one_log_goes_to_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The pages of a crawl of one store came into another, whose prefix the next crawl of the folder had."""
    first = Spool(tmp_path, BIG, "shop-sketches")
    first.append(numbered(5))
    first.close()
    for _ in range(2):
        other = Spool(tmp_path, BIG, "news-sketches")
        assert drain(other) == []
        other.close()
    assert caplog.text.count("Pages for shop-sketches wait on the spool") == 2
    again = Spool(tmp_path, BIG, "shop-sketches")
    assert drain(again) == numbered(5)
    again.close()
    assert list(tmp_path.iterdir()) == []


def test_what_is_for_no_log_by_name_goes_to_any(tmp_path: Path) -> None:
    """As what a version has left that named none, or what somebody has emptied the lock's file of."""
    for log in ("", "shop-sketches"):
        first = Spool(tmp_path, BIG, log)
        first.append(numbered(5))
        first.close()
        for lock in tmp_path.glob("*.lock"):
            lock.write_bytes(b"")
        heir = Spool(tmp_path, BIG, "news-sketches")
        assert drain(heir) == numbered(5)
        heir.close()
        assert list(tmp_path.iterdir()) == []


def test_the_heir_of_several_takes_over_all_their_segments_and_leaves_no_file(tmp_path: Path) -> None:
    entries = numbered(900, size=1000)
    crawls = [Spool(tmp_path, 1024 * 1024), Spool(tmp_path, 1024 * 1024)]
    for crawl, start in zip(crawls, (0, 450), strict=True):
        assert crawl.append(entries[start : start + 450]) == (450, 0)
    for crawl in crawls:
        crawl.close()
    assert len(list(tmp_path.glob("*.spool"))) == 4
    heir = Spool(tmp_path, 1024 * 1024)
    assert len(heir) == 900
    found = drain(heir)
    assert sorted(found) == sorted(entries)
    assert [one for one in found if one in entries[:450]] == entries[:450]
    heir.close()
    assert list(tmp_path.iterdir()) == []


def test_two_living_crawls_leave_each_others_messages_alone(tmp_path: Path) -> None:
    first, second = Spool(tmp_path, BIG), Spool(tmp_path, BIG)
    first.append(numbered(5))
    assert drain(second) == []
    third = Spool(tmp_path, BIG)
    assert drain(third) == []
    first.close()
    heir = Spool(tmp_path, BIG)
    assert drain(heir) == numbered(5)
    for spool in (second, third, heir):
        spool.close()


def test_a_killed_crawl_is_inherited(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from clusterd_crawler.publish.spool import Spool\n"
        "spool = Spool(Path(sys.argv[1]), 10**8); spool.append([(b'k', b'v')] * 3); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == -9
    heir = Spool(tmp_path, BIG)
    assert len(heir) == 3
    assert drain(heir) == [(b"k", b"v")] * 3
    heir.close()


def test_beyond_the_limit_the_oldest_go_and_are_counted(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1024 * 1024)
    kept = dropped = 0
    for start in range(0, 4000, 100):
        some_kept, some_dropped = spool.append(numbered(100, start=start, size=1000))
        kept += some_kept
        dropped += some_dropped
        assert sum(file.stat().st_size for file in tmp_path.glob("*.spool")) <= 1024 * 1024
    left = drain(spool, most=500)
    assert kept == 4000
    assert left == numbered(4000, size=1000)[dropped:]
    assert len(left) > 700
    spool.close()


def test_of_more_than_the_limit_at_once_the_latest_stay(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 64 * 1024)
    assert spool.append(numbered(20, size=1000)) == (20, 0)
    kept, dropped = spool.append(numbered(200, start=20, size=1000))
    left = drain(spool)
    assert kept == 200
    assert left == numbered(220, size=1000)[dropped:]
    assert len(left) > 30
    spool.close()


def test_an_entry_larger_than_the_limit_is_dropped_and_no_other_for_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1000)
    assert spool.append([(b"k", b"v" * 2000)]) == (0, 1)
    assert spool.append([(b"k", b"v")]) == (1, 0)
    assert spool.append([(b"a", b"1"), (b"k", b"v" * 2000), (b"b", b"2")]) == (2, 1)
    assert drain(spool) == [(b"k", b"v"), (b"a", b"1"), (b"b", b"2")]
    spool.close()


@pytest.mark.parametrize("damage", ["torn", "flipped", "length"])
def test_damage_ends_its_segment_and_nothing_else(tmp_path: Path, damage: str) -> None:
    first = Spool(tmp_path, BIG)
    first.append(numbered(10))
    first.close()
    path = next(tmp_path.glob("*.spool"))
    raw = bytearray(path.read_bytes())
    record = len(raw) // 10
    if damage == "torn":
        del raw[-5:]
    elif damage == "flipped":
        raw[record * 9 + 30] ^= 1
    else:
        raw[record * 9 : record * 9 + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(raw)
    second = Spool(tmp_path, BIG)
    second.append(numbered(2, start=10))
    whole = second.read(10)
    assert whole.entries == tuple(numbered(9))
    second.sent(whole)
    behind = second.read(10)
    assert behind.entries == tuple(numbered(2, start=10))
    assert behind.lost == (damage == "flipped")  # else it is cut off when it is taken over, and was never whole
    second.close()


@pytest.mark.parametrize("whole", [0, 9], ids=["all of it", "its end"])
def test_zeros_are_no_messages(tmp_path: Path, whole: int) -> None:
    """A file system may have given a file its size, and not yet its bytes, when the power fails."""
    first = Spool(tmp_path, BIG)
    first.append(numbered(10))
    first.close()
    path = next(tmp_path.glob("*.spool"))
    size = path.stat().st_size
    os.truncate(path, size // 10 * whole)
    os.truncate(path, size + 1024 * 1024)
    second = Spool(tmp_path, BIG)
    assert len(second) == whole
    assert drain(second) == numbered(whole)
    second.close()


def test_a_segment_that_the_disk_does_not_give_keeps_nothing_back(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 256 * 1024)
    assert spool.append(numbered(100, size=1000)) == (100, 0)
    assert spool.append(numbered(2, start=100)) == (2, 0)
    oldest = min(tmp_path.glob("*.spool"))
    oldest.unlink()
    oldest.mkdir()
    assert (reading := spool.read(7)).lost == 100
    assert reading.entries == tuple(numbered(2, start=100))
    spool.close()


def test_a_folder_that_is_gone_at_the_end_ends_no_crawl(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", BIG)
    (tmp_path / "spool" / f"{spool.owner}.lock").unlink()
    (tmp_path / "spool").rmdir()
    (tmp_path / "spool").write_text("in the way")
    spool.close()


def test_what_another_user_left_denies_nobody_the_spool(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "another.lock").mkdir()  # opened as little as a file of another user
    first = Spool(tmp_path, BIG)
    first.append(numbered(5))
    first.close()
    heir = Spool(tmp_path, BIG)
    assert "cannot be taken over" in caplog.text
    assert drain(heir) == numbered(5)
    heir.close()


def test_a_lock_that_is_gone_by_the_time_it_is_looked_at_denies_nobody_the_spool(tmp_path: Path) -> None:
    """Another crawl has taken over meanwhile what its owner had left."""
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "gone.lock").symlink_to(tmp_path / "gone")
    spool = Spool(tmp_path / "spool", BIG)
    assert spool.append(numbered(5)) == (5, 0)
    assert drain(spool) == numbered(5)
    spool.close()


def test_of_several_that_left_something_the_first_is_the_oldest(tmp_path: Path) -> None:
    left = [Spool(tmp_path, BIG) for _ in range(6)]  # as crawls beside each other
    for number, spool in enumerate(left):
        spool.append(numbered(2, start=2 * number))
        os.utime(tmp_path / f"{spool.owner}.lock", ns=(number, number))
    for spool in left:
        spool.close()
    heir = Spool(tmp_path, BIG)
    assert drain(heir) == numbered(12)
    heir.close()


def test_a_segment_that_is_gone_ends_nothing_else_and_is_counted(tmp_path: Path) -> None:
    first = Spool(tmp_path, BIG)
    first.append(numbered(10))
    first.close()
    second = Spool(tmp_path, BIG)
    second.append(numbered(2, start=10))
    next(path for path in tmp_path.glob("*.spool") if path.name.endswith("-00000001.spool")).unlink()
    reading = second.read(7)
    assert (reading.entries, reading.lost) == (tuple(numbered(2, start=10)), 10)
    second.sent(reading)
    assert second.read(7).lost == len(second) == 0
    second.append(numbered(3))
    next(tmp_path.glob("*.spool")).unlink()
    assert second.read(7).lost == 3  # and nothing is left
    second.close()


def test_what_a_spool_leaves_is_found_also_where_another_opened_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = spool_module.fcntl.flock

    def interrupted(file: int, how: int) -> None:
        monkeypatch.setattr(spool_module.fcntl, "flock", lock)
        Spool(tmp_path, BIG).close()  # between the making of the first one's lock file and its locking
        lock(file, how)

    monkeypatch.setattr(spool_module.fcntl, "flock", interrupted)
    first = Spool(tmp_path, BIG)
    first.append(numbered(5))
    second = Spool(tmp_path, BIG)
    assert drain(second) == []  # of one that lives
    second.close()
    first.close()
    heir = Spool(tmp_path, BIG)
    assert drain(heir) == numbered(5)
    heir.close()
