"""The address of a Kafka: ``kafka://HOST:PORT[,HOST:PORT…]``, and ``kafkas://`` where it speaks TLS.

    kafkas://USER:PASSWORD@HOST:PORT[,HOST:PORT…]?mechanism=SCRAM-SHA-256&ca=FILE&cert=FILE&key=FILE

User and password are percent-encoded and come with the SASL mechanism that checks them. Without ``ca`` the system's
authorities vouch for the brokers; their names are always compared with their certificates. ``cert`` and ``key`` are a
certificate of our own (PEM), for brokers that ask for one; the key may lie in the same file.
"""

from __future__ import annotations

import logging
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from clusterd_crawler.errors import SettingError

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
#: Options that are files of TLS, and all that may follow the question mark.
FILES: Final = ("ca", "cert", "key")
OPTIONS: Final = ("mechanism", *FILES)
#: Loggers of the client that write whole requests at ``DEBUG``, with what proves the password.
_TALKATIVE: Final = ("kafka.net.connection", "kafka.protocol.parser")


class Secret(str):
    """A password that says itself in no log: the client writes its configuration there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """What the address says; printed, it is its brokers alone."""

    servers: tuple[str, ...]
    tls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    mechanism: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""

    def __str__(self) -> str:
        return ",".join(self.servers)

    def client_options(self) -> dict[str, Any]:
        """Return the client's options: brokers, TLS, SASL; `SettingError` where a file cannot be used."""
        protocol = ("SASL_" if self.user else "") + ("SSL" if self.tls else "PLAINTEXT")
        options: dict[str, Any] = {"bootstrap_servers": list(self.servers), "security_protocol": protocol}
        if self.tls:
            options["ssl_context"] = self.context()
        if self.user:
            for name in _TALKATIVE:
                logging.getLogger(name).addFilter(_no_requests)
            user = self.user
            if self.mechanism != "PLAIN":  # RFC 5802, 5.1; the client leaves it to us
                user = user.replace("=", "=3D").replace(",", "=2C")
            options |= {"sasl_mechanism": self.mechanism, "sasl_plain_username": user}
            options["sasl_plain_password"] = Secret(self.password)
        return options

    def context(self) -> ssl.SSLContext:
        """Return the context of TLS; `SettingError` where a file cannot be used."""
        for name in FILES:
            if path := getattr(self, name):
                _readable(name, path)
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
        except ssl.SSLError as error:
            raise SettingError(
                f"kafka: ca = {self.ca!r} holds no certificates in PEM ({error.reason or 'nothing'})"
            ) from None
        if self.cert:
            try:
                # Without a password the library would ask for one at the terminal.
                context.load_cert_chain(self.cert, self.key or None, password="")
            except ssl.SSLError as error:
                named = f"cert = {self.cert!r}" + (f", key = {self.key!r}" if self.key else "")
                raise SettingError(
                    f"kafka: {named}: no certificate and its key, unencrypted, in PEM ({error.reason or 'no key'})"
                ) from None
        return context

    def renew(self, context: ssl.SSLContext) -> None:
        """Have a context read its files again, which may have been renewed; `SettingError` where one cannot be used."""
        self.context()
        if self.ca:
            context.load_verify_locations(self.ca)
        if self.cert:
            context.load_cert_chain(self.cert, self.key or None, password="")


def read_address(text: str) -> KafkaAddress:
    """Read an address, or raise `ValueError` that says what is wrong with it, and nothing of the password.

    >>> str(read_address("kafka://a:9092,b:9092"))
    'a:9092,b:9092'
    """
    scheme, given, rest = text.partition("://")
    scheme, rest = (scheme, rest) if given else ("kafka", text)
    if scheme not in ("kafka", "kafkas"):
        raise ValueError("it begins with kafka:// or, for TLS, kafkas://")
    rest, _, query = rest.partition("?")
    credentials, at, named = rest.rpartition("@")
    servers = tuple(server.strip() for server in named.rstrip("/").split(",") if server.strip())
    if not servers or not all(_is_server(server) for server in servers):
        raise ValueError("a broker is HOST:PORT (what is no letter or digit of a password is percent-encoded)")
    user, _, password = (_decoded("user and password", part) for part in credentials.partition(":"))
    if at and not (user and password):
        raise ValueError("before the @ stand USER:PASSWORD")
    options = _options(query)
    address = KafkaAddress(servers, scheme == "kafkas", user, password, **options)
    _check(address, options)
    return address


def shown_address(text: str) -> str:
    """Return an address as it may be logged: without user, password, options, and whatever else may be a password."""
    scheme = re.match(r"[a-z+]*://|", text)[0]  # type: ignore[index]
    _, at, rest = text.removeprefix(scheme).rpartition("@")
    rest, asked, _ = rest.partition("?")
    rest = re.sub(r":(?!\d+(?:[,/]|$))[^,]*", ":***", rest)  # a password whose @ is missing
    return scheme + ("***@" if at else "") + rest + ("?…" if asked else "")


def _is_server(server: str) -> bool:
    host, _, port = server.rpartition(":")
    return bool(host) and "/" not in host and port.isdecimal() and 0 < int(port) < 65536


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if name not in OPTIONS:
            hint = "; TLS is asked for by kafkas://" if name in ("tls", "ssl") else ""
            raise ValueError(f"there is no option {name!r}, there are {', '.join(OPTIONS)}{hint}")
        if name in options or not value:
            raise ValueError(f"the option {name} has one value")
        options[name] = _decoded(name, value)
    if "mechanism" in options:
        options["mechanism"] = options["mechanism"].upper()
    return options


def _check(address: KafkaAddress, options: dict[str, str]) -> None:
    """Raise `ValueError` where parts of an address do not go together."""
    if address.user and address.mechanism not in MECHANISMS:
        raise ValueError(f"a user comes with mechanism={', '.join(MECHANISMS[:-1])} or {MECHANISMS[-1]}")
    if address.mechanism and not address.user:
        raise ValueError("a mechanism comes with USER:PASSWORD@ before the brokers")
    for name in FILES:
        if name in options and not address.tls:
            raise ValueError(f"the option {name} is of TLS, which kafkas:// asks for")
    if address.key and not address.cert:
        raise ValueError("a key comes with its cert")


def _decoded(what: str, text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise ValueError(f"{what}: what is percent-encoded is UTF-8") from None


def _no_requests(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


def _readable(name: str, path: str) -> None:
    try:
        with Path(path).open("rb"):
            return
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise SettingError(f"kafka: {name} = {path!r} cannot be read: {said}") from None
