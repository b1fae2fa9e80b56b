"""The address of a Kafka: what it says, what is wrong with it, and that a password is told nowhere."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.errors import SettingError, Unreachable
from clusterd_crawler.servers.kafka_address import KafkaAddress, read_address, shown_address
from clusterd_crawler.servers.kafka_client import client_options, probe
from clusterd_crawler.settings import Settings

from tests.services.certificates import Authority

SCRAM = "mechanism=SCRAM-SHA-256"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a:1", KafkaAddress(("a:1",))),
        ("kafka://a:1, b:2/", KafkaAddress(("a:1", "b:2"))),
        ("kafkas://a:1", KafkaAddress(("a:1",), tls=True)),
        ("kafkas://[::1]:1?ca=/c%26a.pem", KafkaAddress(("[::1]:1",), tls=True, ca="/c&a.pem")),
        (
            "kafka://me:p%40ss%3A%2F+%3F@a:1,b:2?mechanism=plain",
            KafkaAddress(("a:1", "b:2"), user="me", password="p@ss:/+?", mechanism="PLAIN"),
        ),
        (
            f"kafkas://me%3A:p@a:1?{SCRAM}&cert=c&key=k",
            KafkaAddress(("a:1",), True, "me:", "p", "SCRAM-SHA-256", cert="c", key="k"),
        ),
    ],
)
def test_what_an_address_says(text: str, read: KafkaAddress) -> None:
    assert read_address(text) == read
    assert Settings.from_crawl({"CLUSTERD_KAFKA": text}, {}).kafka == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kafka://", "a broker is HOST:PORT"),
        ("kafkas://a:1,b", "a broker is HOST:PORT"),
        ("kafkas://me:secret@a", "a broker is HOST:PORT"),
        ("kafkas://me:secret", "a broker is HOST:PORT"),
        ("kafkas://me:sec/ret?x@a:1", "HOST:PORT"),
        ("me:secret", "a broker is HOST:PORT"),
        ("redis://me:secret@a:1", "begins with kafka:// or, for TLS, kafkas://"),
        ("me:se://secret@a", "begins with kafka://"),
        (f"kafkas://me@a:1?{SCRAM}", "USER:PASSWORD"),
        (f"kafkas://:secret@a:1?{SCRAM}", "USER:PASSWORD"),
        ("kafkas://me:secret@a:1", "mechanism=PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
        ("kafkas://me:secret@a:1?mechanism=GSSAPI", "mechanism=PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
        ("kafkas://me:%ff@a:1?mechanism=PLAIN", "UTF-8"),
        (f"kafkas://a:1?{SCRAM}", "comes with USER:PASSWORD@"),
        ("kafkas://a:1?password=secret", "no option 'password', there are mechanism, ca, cert, key"),
        ("kafka://a:1?tls=true", "TLS is asked for by kafkas://"),
        ("kafkas://a:1?ca=", "the option ca has one value"),
        ("kafkas://a:1?ca=x&ca=y", "the option ca has one value"),
        ("kafka://a:1?ca=x", "the option ca is of TLS"),
        ("kafkas://a:1?key=x", "a key comes with its cert"),
    ],
)
def test_what_is_wrong_with_an_address(text: str, said: str) -> None:
    with pytest.raises(SettingError) as raised:
        Settings.from_crawl({"CLUSTERD_KAFKA": text}, {})
    told = str(raised.value)
    assert told.startswith("Scrapy settings: CLUSTERD_KAFKA = '")
    assert said in told
    assert "it takes kafka://HOST:PORT" in told
    assert "secret" not in told
    assert "sec/ret" not in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        ("kafka://a:1,b:2", "kafka://a:1,b:2"),
        ("a:1/", "a:1/"),
        ("kafkas://me:secret@a:1,b:99999?ca=x", "kafkas://***@a:1,b:99999?…"),
        ("kafkas://me:sec@ret@a:1", "kafkas://***@a:1"),
        ("me:secret,b:1", "me:***,b:1"),
    ],
)
def test_what_of_an_address_is_logged(text: str, logged: str) -> None:
    assert shown_address(text) == logged


def test_no_settings_show_a_password() -> None:
    settings = {"CLUSTERD_KAFKA": f"kafkas://me:secret@a:1?{SCRAM}", "CLUSTERD_REDIS": "redis://me:secret@a:1"}
    assert "secret" not in repr(Settings.from_crawl(settings, {}))
    with pytest.raises(SettingError, match=r"CLUSTERD_REDIS = 'redis://me:\*\*\*@a:1/x' is not accepted"):
        Settings.from_crawl({"CLUSTERD_REDIS": "redis://me:secret@a:1/x"}, {})


def test_the_options_of_the_client() -> None:
    assert client_options("a:1,b:2") == {"bootstrap_servers": ["a:1", "b:2"], "security_protocol": "PLAINTEXT"}
    options = client_options("kafkas://m%3De%2C:secret@a:1?mechanism=SCRAM-SHA-512")
    assert options["security_protocol"] == "SASL_SSL"
    assert options["sasl_plain_username"] == "m=3De=2C"  # as SCRAM writes a name
    assert options["sasl_plain_password"] == "secret"
    assert "secret" not in repr(options)
    context = options["ssl_context"]
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_a_name_that_no_host_can_have_is_no_kafka() -> None:
    address = f"{'a' * 70}:1"
    with pytest.raises(Unreachable, match="no Kafka at aaa"):
        probe(address, client_options(address))


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    cert, key = authority.sign("one")
    _, other = authority.sign("two")
    junk = tmp_path / "junk"
    junk.write_text("no certificate")
    whole = tmp_path / "whole.pem"
    whole.write_bytes(cert.read_bytes() + key.read_bytes())
    client_options(f"kafkas://a:1?ca={authority.ca}&cert={cert}&key={key}")
    client_options(f"kafkas://a:1?cert={whole}")
    faults: dict[str, Any] = {
        f"ca={tmp_path}/none": f"ca = '{tmp_path}/none' cannot be read: No such file or directory",
        f"ca={tmp_path}": "cannot be read: Is a directory",
        f"ca={junk}": "holds no certificates in PEM",
        f"cert={cert}&key={tmp_path}/none": "key = .* cannot be read: No such file",
        f"cert={cert}": "no certificate and its key",
        f"cert={cert}&key={other}": "no certificate and its key",
        f"cert={junk}&key={key}": "no certificate and its key",
    }
    for query, said in faults.items():
        with pytest.raises(SettingError, match=said):
            client_options(f"kafkas://a:1?{query}")
