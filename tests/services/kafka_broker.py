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
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.services.redis_server import free_port

ROOT = Path(__file__).resolve().parents[2]
LIBS = ROOT / ".kafka" / "libs"
POM = ROOT / "deploy" / "kafka" / "pom.xml"
PROPERTIES = ROOT / "deploy" / "kafka" / "server.properties"
OLDEST_JAVA = 17
START_TIMEOUT = 60.0
FETCH_TIMEOUT = 600.0
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
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        with (folder / "format.log").open("wb") as said:
            tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(self._properties)]
            tool += [word for user in users for word in ("--add-scram", user)]
            subprocess.run(self._java("-Xmx128m", *tool), check=True, stdout=said, stderr=said, timeout=START_TIMEOUT)

    def start(self) -> None:
        """Run the broker; return when it listens."""
        with (self.folder / "broker.log").open("ab") as said:
            self._process = subprocess.Popen(
                self._java("-Xmx512m", "kafka.Kafka", str(self._properties)), stdout=said, stderr=said
            )
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise TimeoutError(f"the broker does not listen; see {self.folder / 'broker.log'}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal: SIGSTOP freezes the broker, SIGCONT thaws it."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End the broker at once, as a power cut does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=20)
            self._process = None

    def _java(self, *arguments: str) -> list[str]:
        return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *_with_classpath(arguments)]

    def _write_properties(self, adding: str) -> Path:
        """Copy deploy/kafka/server.properties with this broker's ports and folder."""
        controller = free_port()
        text = PROPERTIES.read_text() + adding
        text = text.replace("127.0.0.1:9092", self.bootstrap).replace("127.0.0.1:9093", f"127.0.0.1:{controller}")
        text = re.sub(r"(?m)^log\.dirs=.*$", f"log.dirs={self.folder / 'log'}", text)
        path = self.folder / "server.properties"
        path.write_text(text)
        return path


def _with_classpath(arguments: tuple[str, ...]) -> list[str]:
    heap, *rest = arguments
    return [heap, "-cp", f"{LIBS}/*", *rest]


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


if __name__ == "__main__" and missing() is None:
    sys.exit(fetch_jars())
