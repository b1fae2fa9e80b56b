"""A Kafka that asks for TLS and a password: the whole flow over it, and what is said where something does not fit.

The broker runs deploy/kafka/secure.properties, with names, ports and files replaced, and PLAIN and a listener that
wants certificates besides.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from clusterd.cli.commands import run
from clusterd.services import open_services
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_consumer.transport.kafka_topics import ensure
from clusterd_consumer.transport.kafka_topics import main as make_topics
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.publish.kafka_log import KafkaLog
from kafka import KafkaConsumer

from tests.conftest import needs_kafka
from tests.crawler.crawling import crawl
from tests.crawler.site import running
from tests.flow.daemons import daemons, until, wait_until_done
from tests.services.certificates import Authority
from tests.services.kafka_broker import MORTAL, PROPERTIES, KafkaBroker
from tests.services.redis_server import free_port
from tests.services.waiting import wait_until

pytestmark = pytest.mark.kafka

PASSWORD = "s3/cr@t:?ü"
ENCODED = quote(PASSWORD, safe="")
#: What of it could be seen anywhere.
TRACES = (PASSWORD, ENCODED, "s3/cr", "s3%2Fcr", repr(PASSWORD.encode())[2:-1])
TLS_ONLY = """
listeners=PLAINTEXT://127.0.0.1:9092,SASL_SSL://0.0.0.0:9094,MUTUAL://127.0.0.1:{mutual},CONTROLLER://127.0.0.1:9093
advertised.listeners=PLAINTEXT://127.0.0.1:9092,SASL_SSL://kafka.example.org:9094,MUTUAL://localhost:{mutual}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,MUTUAL:SSL,CONTROLLER:PLAINTEXT
listener.name.mutual.ssl.client.auth=required
listener.name.mutual.ssl.truststore.type=PEM
listener.name.mutual.ssl.truststore.location={ca}
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_plain="{password}";
"""


TLS_DOOR = """
listeners=PLAINTEXT://127.0.0.1:9092,TLS://127.0.0.1:{port},CONTROLLER://127.0.0.1:9093
advertised.listeners=PLAINTEXT://127.0.0.1:9092,TLS://localhost:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={shown}
"""


@dataclass
class Secured:
    """A broker with four doors: plaintext, TLS with passwords, TLS with certificates, and none."""

    broker: KafkaBroker
    ca: Path
    other_ca: Path
    own: tuple[Path, Path]
    strange: tuple[Path, Path]
    port: int
    mutual: int

    def address(
        self, user: str = f"scram:{ENCODED}@", mechanism: str = "SCRAM-SHA-256", host: str = "localhost"
    ) -> str:
        asked = f"mechanism={mechanism}&" if user else ""
        return f"kafkas://{user}{host}:{self.port}?{asked}ca={self.ca}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    needs_kafka()
    folder = tmp_path_factory.mktemp("secured")
    authority, other = Authority(folder, "authority"), Authority(folder, "other")
    whole = folder / "broker.pem"
    cert, key = authority.sign("localhost")
    whole.write_bytes(key.read_bytes() + cert.read_bytes())
    port, mutual = free_port(), free_port()
    text = (PROPERTIES.parent / "secure.properties").read_text(encoding="utf-8")
    text += TLS_ONLY.format(mutual=mutual, ca=authority.ca, password="s3/cr@t:?\\u00fc")
    text = text.replace("0.0.0.0:9094", f"127.0.0.1:{port}").replace("kafka.example.org:9094", f"localhost:{port}")
    text = text.replace("/etc/clusterd-kafka/broker.pem", str(whole))
    users = [
        f"SCRAM-SHA-256=[name=scram,password={PASSWORD}]",
        f"SCRAM-SHA-512=[name=scram,password={PASSWORD}]",
    ]
    broker = KafkaBroker(folder / "broker", f"\n{text}", users)
    broker.start()
    try:
        yield Secured(broker, authority.ca, other.ca, authority.sign("crawl"), other.sign("crawler"), port, mutual)
    finally:
        broker.kill()


def untold(text: str) -> None:
    """Assert that the password is not told."""
    assert not [trace for trace in TRACES if trace in text], text[-3000:]


def test_from_a_crawl_to_its_alerts(secured: Secured, redis_url: str, prefix: str, tmp_path: Path) -> None:
    name = prefix.rstrip(":")
    shared = {"kafka": secured.address(), "kafka_prefix": f"{name}-"}
    settings = {**shared, "redis": redis_url, "redis_prefix": prefix, "group": name, "log_level": "debug"}
    with running() as site, daemons(settings, tmp_path / "logs") as group, open_services(group.config()) as services:
        group.start()
        until(lambda: group.said().count("reading") >= 8, say=group.said)
        steps = [f"{site.url}/page/1", *(f"{site.url}/page/1?sid={n}" for n in range(5))]
        asked = {f"CLUSTERD_{key.upper()}": value for key, value in shared.items()}
        # Patient: the verdict has to come over the same Kafka.
        crawled = crawl(tmp_path / "crawl", steps, {**asked, "CLUSTERD_VERDICT_TIMEOUT": 10, "LOG_LEVEL": "DEBUG"})
        assert crawled.stat("published") == crawled.stat("sketched") == 6
        wait_until_done(services)
        alerts = list(services.alerts.since(0))
        assert len({alert.url for alert in alerts}) == 5
        assert "Traceback" not in group.said()
        untold(group.said() + crawled.log + json.dumps(crawled.stats) + repr(group.config()))
    consumer = KafkaConsumer(
        f"{name}-{topics.ALERTS}",
        bootstrap_servers=secured.broker.bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=1500,
    )
    sent = [json.loads(record.value)["url"] for record in consumer]
    consumer.close()
    assert sorted(sent) == sorted(alert.url for alert in alerts)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "certificate"])
def test_the_other_doors(secured: Secured, prefix: str, mechanism: str, caplog: pytest.LogCaptureFixture) -> None:
    """At the level at which the client logs whole requests, too."""
    address = secured.address(f"scram:{ENCODED}@", mechanism)
    if mechanism == "PLAIN":
        address = secured.address(f"plain:{ENCODED}@", mechanism)
    elif mechanism == "certificate":
        cert, key = secured.own
        address = f"kafkas://localhost:{secured.mutual}?ca={secured.ca}&cert={cert}&key={key}"
    with caplog.at_level(logging.DEBUG):
        assert ensure(address, prefix.replace(":", "-"), partitions=1)
    assert "Starting KafkaAdminClient" in caplog.text
    untold(caplog.text)


def faults(secured: Secured) -> dict[str, str]:
    """Return addresses that do not fit, and what is said of them."""
    mutual = f"kafkas://localhost:{secured.mutual}?ca={secured.ca}"
    right, other, cert, strange = secured.address(), secured.other_ca, secured.own[0], secured.strange
    return {
        secured.address("scram:s3%2Fcross@"): "refuses us: Authentication failed .*invalid credentials",
        secured.address(f"plain:{ENCODED}x@", "PLAIN"): "refuses us: Authentication failed",
        right.replace(f"ca={secured.ca}", f"ca={other}"): r"not accepted: .*\(ca=FILE names who signed it\)$",
        right.split("&ca=")[0]: r"not accepted: .*\(ca=FILE names who signed it\)$",
        secured.address(host="127.0.0.1"): r"IP address mismatch, certificate is not valid for .127\.0\.0\.1.$",
        secured.address(""): r"closes the connection; it may want a user",
        f"localhost:{secured.port}": "TLS",
        f"kafka://scram:{ENCODED}@localhost:{secured.port}?mechanism=PLAIN": r"kafkas://",
        f"kafkas://{secured.broker.bootstrap}": "speaks no TLS at that port",
        f"kafka://scram:{ENCODED}@{secured.broker.bootstrap}?mechanism=PLAIN": "asks for no user at that port",
        mutual: r"certificate of ours: cert=FILE&key=FILE",
        f"{mutual}&cert={strange[0]}&key={strange[1]}": r"\(our certificate is not accepted: cert=",
        f"kafkas://scram:{ENCODED}@localhost:{free_port()}?mechanism=PLAIN": "no Kafka at localhost:",
        right.replace("&ca=", f"&cert={cert}&ca="): "no certificate and its key",
    }


def test_what_does_not_fit_is_said_in_one_line_and_soon(
    secured: Secured, redis_url: str, prefix: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", prefix)
    for address, said in faults(secured).items():
        started = time.monotonic()
        status = run(["--redis", redis_url, "--kafka", address, "status"])
        told = capsys.readouterr().err
        assert status == (2 if "certificate and its key" in said else 1), told
        assert len(told.splitlines()) == 1, told
        assert re.search(said, told.rstrip()), (address, told)
        assert time.monotonic() - started < 5
        untold(told)


@pytest.mark.parametrize("command", [["ingest", "-"], ["run"]])
def test_files_and_refusals_in_every_command(
    secured: Secured, redis_url: str, prefix: str, command: list[str], tmp_path: Path
) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CLUSTERD_")}
    page = json.dumps({"url": "http://a.test/", "text": "some words of a page " * 20})
    asked = {secured.address().replace(".pem", ".none"): (2, "cannot be read: No such file or directory")}
    if command[0] == "ingest":  # a daemon waits
        asked[secured.address("scram:s3%2Fcross@")] = (1, "refuses us")
    for address, (status, said) in asked.items():
        given = {"CLUSTERD_KAFKA": address, "CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}
        ended = subprocess.run(
            [sys.executable, "-m", "clusterd", *command],
            input=page,
            env=clean | given,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert ended.returncode == status, ended.stderr
        lines = [line for line in ended.stderr.splitlines() if not line[:2].isdigit()]  # but what the daemon logs
        assert len(lines) == 1, ended.stderr
        assert said in lines[0]
        untold(ended.stderr)


def test_topics_are_made_by_hand(secured: Secured, prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--prefix", prefix.replace(":", "-"), "--partitions", "1"]
    assert make_topics(["--kafka", secured.address(), *own]) == 0
    for address, status in ((secured.address("scram:s3%2Fcross@"), 1), ("kafkas://scram:s3/cr@a:1", 2)):
        with pytest.raises(SystemExit) as ended:
            make_topics(["--kafka", address, *own])
        assert ended.value.code == status
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 2
    untold(told)


def shown(authority: Authority, broker: KafkaBroker) -> None:
    """Have a broker that starts show a certificate that this authority has signed."""
    cert, key = authority.sign("localhost")
    (broker.folder / "shown.pem").write_bytes(key.read_bytes() + cert.read_bytes())


@pytest.mark.slow
@pytest.mark.usefixtures("collect_sockets")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see collect_sockets
def test_who_is_at_work_says_that_a_certificate_is_another_and_reads_the_renewed_authority(tmp_path: Path) -> None:
    needs_kafka()
    before, after, ca = Authority(tmp_path, "before"), Authority(tmp_path, "after"), tmp_path / "ca.pem"
    doors = TLS_DOOR.format(port=(port := free_port()), shown=tmp_path / "broker" / "shown.pem")
    broker = KafkaBroker(tmp_path / "broker", doors + MORTAL)
    where = f"kafkas://localhost:{port}?ca={ca}"
    shutil.copy(before.ca, ca)
    try:
        shown(before, broker)
        broker.start()
        daemon, log = KafkaTransport(where, partitions=1), KafkaLog(where, topics.SKETCHES)
        wait_until(lambda: daemon.poll(1, 0.5) or daemon.assigned())
        broker.kill()
        shown(after, broker)
        broker.start()
        for work in (lambda: log.send([(b"k", b"v")]), lambda: daemon.backlog()):
            with pytest.raises(Unreachable, match=r"not accepted: .* \(ca=FILE names who signed it\)$"):
                work()
        shutil.copy(after.ca, ca)
        again = KafkaLog(where, topics.SKETCHES)
        again.send([(b"k", b"new")])
        heard: list[bytes] = []

        def hears() -> bool:
            with suppress(Unreachable):  # at first the files are read again
                heard.extend(record.value for record in daemon.poll(10, 0.5))
            return b"new" in heard

        wait_until(hears, 40)
        for one in (daemon, log, again):
            one.close()
    finally:
        broker.kill()
