"""A real Kafka broker of Apache's own jars (deploy/kafka/pom.xml), one KRaft node on loopback.

It runs deploy/kafka/server.properties, with ports and folder replaced. Needs Java 17 or later, and Maven once, to fetch
the jars into ``.kafka/libs``; where one is missing `missing` says which.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

from tests.services.redis_server import free_port

ROOT = Path(__file__).resolve().parents[2]
LIBS = ROOT / ".kafka" / "libs"
POM = ROOT / "deploy" / "kafka" / "pom.xml"
PROPERTIES = ROOT / "deploy" / "kafka" / "server.properties"
#: What `prepare` keeps of a first broker, two thirds of the processor time that each takes until it listens: the
#: classes that it loads (another Java passes them over), and a log folder that is formatted.
CLASSES = LIBS / "classes.jsa"
FORMATTED = LIBS / "formatted"
OLDEST_JAVA = 17
START_TIMEOUT = 60.0
FETCH_TIMEOUT = 600.0
#: The environment's name of a broker that runs already.
SHARED = "CLUSTERD_TEST_KAFKA"
#: Properties of a broker that is killed and started again: it is let in when the one that died counts as dead, which
#: otherwise takes nine seconds. (One that many tests share keeps the nine: it may be starved for a while.)
MORTAL = "\nbroker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500\n"


def missing() -> str | None:
    """Say what this machine lacks for a broker, or None."""
    if _java_version() < OLDEST_JAVA:
        return f"the Kafka broker needs Java {OLDEST_JAVA} or later on the PATH"
    if not _complete() and not shutil.which("mvn"):
        return "the Kafka broker's jars are not in .kafka/libs, and Maven (mvn) is not on the PATH to fetch them"
    return None


@cache  # what cannot be had is asked for once a process: Maven takes seconds to find that out, or minutes
def fetch_jars() -> str | None:
    """Fetch the jars that the pom names, once for each state of the pom; return why they cannot be had, or None.

    Whoever else asks for them at once waits: Maven takes a file that another Maven is writing, or that one left half
    written as it was killed, for complete.
    """
    if _complete():
        return None
    LIBS.parent.mkdir(exist_ok=True)
    with (LIBS.parent / "fetching").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _complete():
            return None
        fetched = LIBS.with_name("fetched")
        shutil.rmtree(fetched, ignore_errors=True)
        try:
            subprocess.run(
                ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={fetched}"],
                check=True,
                timeout=FETCH_TIMEOUT,
            )
        except subprocess.SubprocessError as error:
            return f"Maven cannot fetch the Kafka broker's jars, as where it reaches no repository: {error}"
        (fetched / "pom.xml").write_bytes(POM.read_bytes())
        shutil.rmtree(LIBS, ignore_errors=True)
        fetched.rename(LIBS)
    return None


def prepare() -> None:
    """Keep of a first broker what spares those after it their time, once for each state of the pom."""
    if CLASSES.exists() and FORMATTED.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder))
        shutil.copytree(Path(folder) / "log", FORMATTED, dirs_exist_ok=True)
        broker.start([f"-XX:ArchiveClassesAtExit={CLASSES}"])
        broker.end()


class KafkaBroker:
    """One broker. `start` and `kill` may alternate: the log stays."""

    def __init__(self, folder: Path, adding: str = "", users: Sequence[str] = ()) -> None:
        """``adding`` is appended to the properties; ``users`` are as the storage tool's ``--add-scram`` takes them."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = self._write_properties(adding)
        if users or not FORMATTED.exists():
            self._format(users)
        else:
            shutil.copytree(FORMATTED, folder / "log")

    def start(self, options: Sequence[str] = (f"-XX:SharedArchiveFile={CLASSES}",)) -> None:
        """Run the broker; return when it listens at each of its doors."""
        with (self.folder / "broker.log").open("ab") as said:
            self._process = subprocess.Popen(
                _java("-Xmx512m", *options, "kafka.Kafka", str(self._properties)), stdout=said, stderr=said
            )
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with suppress(OSError), ExitStack() as doors:
                for port in self._doors():
                    doors.enter_context(socket.create_connection(("127.0.0.1", port), timeout=1))
                return
            time.sleep(0.05)
        raise TimeoutError(f"the broker does not listen; see {self.folder / 'broker.log'}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal: SIGSTOP freezes the broker (it answers nothing any more as this returns), SIGCONT thaws it."""
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def kill(self) -> None:
        """End the broker at once, as a power cut does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=20)
            self._process = None

    def end(self) -> None:
        """Let the broker end in good order."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=START_TIMEOUT)
        self._process = None

    def _format(self, users: Sequence[str]) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(self._properties)]
        tool += [word for user in users for word in ("--add-scram", user)]
        with (self.folder / "format.log").open("wb") as said:
            subprocess.run(_java("-Xmx128m", *tool), check=True, stdout=said, stderr=said, timeout=START_TIMEOUT)

    def _doors(self) -> list[int]:
        """Return the ports at which clients are served: of several lines the last one counts."""
        listeners = re.findall(r"(?m)^advertised\.listeners=(.*)$", self._properties.read_text())
        return [int(port) for port in re.findall(r":(\d+)", listeners[-1])]

    def _write_properties(self, adding: str) -> Path:
        """Copy deploy/kafka/server.properties with this broker's ports and folder."""
        controller = free_port()
        text = PROPERTIES.read_text() + adding
        text = text.replace("127.0.0.1:9092", self.bootstrap).replace("127.0.0.1:9093", f"127.0.0.1:{controller}")
        text = re.sub(r"(?m)^log\.dirs=.*$", f"log.dirs={self.folder / 'log'}", text)
        path = self.folder / "server.properties"
        path.write_text(text)
        return path


def _java(heap: str, *arguments: str) -> list[str]:
    return ["java", heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{LIBS}/*", *arguments]


def _complete() -> bool:
    """Whether the jars of this very pom are there."""
    copied = LIBS / "pom.xml"
    return copied.exists() and copied.read_bytes() == POM.read_bytes()


def _java_version() -> int:
    if not shutil.which("java"):
        return 0
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False, env=os.environ).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def main(command: list[str]) -> int:
    """Prepare what brokers need, and run a command beside a broker that its tests share: one that is given, or ours.

    Where none can be had, the command runs without, and its tests say so again.
    """
    if lacking := missing() or fetch_jars():
        sys.stderr.write(f"{lacking}\n")
        return _run(command)
    prepare()
    if SHARED in os.environ:
        return _run(command)
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder))
        broker.start()
        os.environ[SHARED] = broker.bootstrap
        try:
            return _run(command)
        finally:
            broker.kill()


def _run(command: list[str]) -> int:
    """Run a command to its end, which is its own affair when it is interrupted or told to end."""
    process = subprocess.Popen(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
