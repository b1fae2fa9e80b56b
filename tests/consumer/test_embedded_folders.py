"""The embedded store in folders of any name, on a full disk, and stopped while it starts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis
from clusterd_consumer import embedded as module
from clusterd_consumer.embedded import Embedded, embedded, server_binaries
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.servers.redis_client import connect, embedded_socket, embedded_url, translated

from tests.services.locks import is_free


@pytest.mark.parametrize(
    "name", ["crawl #3", "what?", "100%41", "tab\there", "line\nbreak", os.fsdecode(b"caf\xe9")], ids=ascii
)
def test_a_folder_may_have_any_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends or changes the path of a URL stands in folders' names, too: the store was waited for in vain."""
    monkeypatch.setattr(module, "START_TIMEOUT", 5.0)
    folder = tmp_path / name
    with pytest.raises(Unreachable), translated(embedded_url(folder)):
        connect(embedded_url(folder)).ping()  # a crawl, before its daemon has started the store
    with embedded(folder) as url:
        assert redis.Redis.from_url(url).ping()
        assert connect(embedded_url(folder)).ping()
    assert is_free(folder / "redis.server.lock")
    if note := next(folder.glob("redis.socket-path"), None):
        shutil.rmtree(Path(note.read_text().strip()).parent)


def test_a_folder_may_have_any_name_where_the_system_speaks_ascii_alone(tmp_path: Path) -> None:
    """A crawl went on without clusterd there: what stands for the letters had no place in the socket's path."""
    folder = tmp_path / "caf\xe9"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    program = (
        "import sys; from pathlib import Path; from clusterd_crawler.errors import Unreachable\n"
        "from clusterd_consumer.embedded import embedded\n"
        "from clusterd_crawler.servers.redis_client import connect, embedded_url, translated\n"
        "folder = Path(sys.argv[1])\n"
        "try:\n"
        "    with translated(embedded_url(folder)): connect(embedded_url(folder)).ping()\n"
        "except Unreachable: print('not there yet')\n"
        "with embedded(folder): print(connect(embedded_url(folder)).ping())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, folder], env=os.environ | plain, capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n") == ["not there yet", "True", ""], done.stderr
    shutil.rmtree(Path((folder / "redis.socket-path").read_text().strip()).parent)


def test_a_copy_of_a_folder_is_a_store_of_its_own(tmp_path: Path) -> None:
    """Also where the socket lies elsewhere, as the path is too long for one: both stores were asked by one socket."""
    folder, copy = tmp_path / ("long" * 30), tmp_path / ("copy" * 30)
    with embedded(folder) as url:
        redis.Redis.from_url(url).set("page", "first")
    shutil.copytree(folder, copy)
    with embedded(folder) as url:
        redis.Redis.from_url(url).set("page", "second")
        with pytest.raises(Unreachable), translated(embedded_url(copy)):
            connect(embedded_url(copy)).ping()  # a crawl, before its daemon has started the store
        with embedded(copy) as other:
            assert redis.Redis.from_url(other).get("page") == b"first"
            assert connect(embedded_url(copy)).ping()
            assert redis.Redis.from_url(url).get("page") == b"second"
    with embedded(folder) as again:
        assert again == url
    for one in (folder, copy):
        shutil.rmtree(embedded_socket(one).parent)


def test_nobody_else_may_read_the_data(tmp_path: Path) -> None:
    """URLs, which may hold passwords, were readable for every user of the machine; the socket was not."""
    with embedded(tmp_path / "store") as url:
        redis.Redis.from_url(url).set("a", "b")
    kept = tmp_path / "store" / "appendonlydir"
    assert any(kept.iterdir())
    assert not any(path.stat().st_mode & 0o077 for path in (kept, *kept.iterdir()))


def test_a_store_whose_disk_is_full_is_watched_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers PING with an error, which ended the watcher's thread with a traceback."""
    store = Embedded(tmp_path / "store")
    try:
        refuse = redis.ResponseError("MISCONF Errors writing to the AOF file: No space left on device")
        with monkeypatch.context() as full:
            full.setattr(redis.Redis, "ping", lambda _: (_ for _ in ()).throw(refuse))
            store.revive()
            time.sleep(2 * module.WATCH_INTERVAL)
        assert store._watcher.is_alive()
    finally:
        store.close()


def test_who_is_stopped_while_the_store_reads_its_data_takes_it_along(tmp_path: Path) -> None:
    slow = tmp_path / "redis-server"  # as one that reads for minutes
    version = f"{server_binaries()[0]} --version"
    slow.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec {version}\ntouch {tmp_path}/begun\nexec sleep 60\n')
    slow.chmod(0o755)
    folder = tmp_path / "store"
    program = (
        f"from pathlib import Path; from clusterd_consumer.embedded import Embedded; Embedded(Path({str(folder)!r}))"
    )
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert is_free(folder / "redis.server.lock")
