"""The address of a Redis: what it may look like, and what of it may be told.

    redis://[USER:PASSWORD@]HOST[:PORT][/DB][?OPTION=VALUE&…]      one server; rediss:// by TLS
    unix://PATH                                                    one server, by its socket
    redis+cluster://…HOST:PORT[,HOST:PORT…]                        a Redis Cluster: some of its nodes
    redis+sentinel://…HOST[:PORT][,HOST[:PORT]…]/SERVICE[/DB]      the primary that these sentinels know by this name

The latter two by TLS with ``rediss+…``. User, password and options are those of the servers, in every form; sentinels
that ask for a user of their own are given ``?sentinel_username=…&sentinel_password=…``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import SplitResult, unquote, urlsplit

#: What of a URL is followed by a password, and the password; also where its beginning was forgotten.
_PASSWORD: Final = re.compile(r"(:(?!//)|[?&]\w*password=)(?:(?<=:).*(?=@)|(?<==)[^&]*)", re.DOTALL)
#: An option that is not the user's: answers of another protocol have another shape.
_PROTOCOL: Final = re.compile(r"(?<=[?&])protocol=[^&]*&?")
#: Scheme and host of a URL, and what follows them.
_AFTER_HOST: Final = re.compile(r"^((?:[a-z]+://)?+[^/?#]+)[/?#].+", re.DOTALL | re.IGNORECASE)
#: Ports of servers and of sentinels, where none is named.
SERVER_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
#: What an address may look like, for whoever gave another.
FORMS: Final = (
    "redis://HOST:PORT/DB, rediss://…, unix:///PATH, redis+cluster://HOST:PORT[,HOST:PORT…] or "
    "redis+sentinel://HOST:PORT[,HOST:PORT…]/SERVICE"
)


@dataclass(frozen=True, slots=True)
class Address:
    """An address, taken apart."""

    kind: Literal["server", "cluster", "sentinel"]
    #: As the client library reads it: of the first server named (of sentinels: no server, but user, database, options).
    url: str
    #: Hosts and ports, of a cluster's nodes or of the sentinels.
    servers: tuple[tuple[str, int], ...] = ()
    #: The name by which sentinels know the primary.
    service: str = ""


def read(url: str) -> Address:
    """Take an address apart; `ValueError` where it is none."""
    url = _PROTOCOL.sub("", url)
    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    if scheme not in {"redis", "rediss", "unix"} or not url.startswith(f"{parts.scheme}://"):
        raise ValueError(f"an address of Redis is {FORMS}")
    if not kind:
        _ = parts.port
        # A database that is no number would be taken for the first one: crawls that are to be apart would share it.
        _number("" if scheme == "unix" else parts.path.strip("/"))
        return Address("server", url)
    user, at, servers = parts.netloc.rpartition("@")
    if kind == "cluster" and scheme != "unix" and parts.path.strip("/") in {"", "0"}:
        nodes = tuple(_server(one, SERVER_PORT) for one in servers.split(","))
        return Address("cluster", _plain(parts, scheme, user + at + servers.split(",")[0], ""), nodes)
    if kind == "sentinel" and scheme != "unix":
        service, _, database = parts.path.strip("/").partition("/")
        if not service:
            raise ValueError("the name by which the sentinels know the primary is missing")
        sentinels = tuple(_server(one, SENTINEL_PORT) for one in servers.split(","))
        return Address("sentinel", _plain(parts, scheme, user + at, _number(database)), sentinels, unquote(service))
    raise ValueError(f"an address of Redis is {FORMS}")


def is_redis(url: str) -> bool:
    """Whether it is an address of a Redis, of a cluster or of sentinels."""
    try:
        read(url)
    except ValueError:  # also: the port is no number, or the host no address
        return False
    return True


def is_cluster(url: str) -> bool:
    """Whether it is an address of a cluster."""
    return url.startswith(("redis+cluster://", "rediss+cluster://"))


def shown(url: str) -> str:
    """Return a URL as it may be logged: without its passwords."""
    return _PASSWORD.sub(r"\1***", url)


def shown_host(url: str) -> str:
    """Return a web address as it may be logged: without its password, nor what follows the host, often a token."""
    return _AFTER_HOST.sub(r"\1/…", shown(url))


def _number(database: str) -> str:
    if database and not database.isdecimal():
        raise ValueError(f"a database is a number, not {database!r}")
    return database


def _server(text: str, port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("a host is missing")
    return parts.hostname, port if parts.port is None else parts.port


def _plain(parts: SplitResult, scheme: str, server: str, path: str) -> str:
    return f"{scheme}://{server}" + (f"/{path}" if path else "") + (f"?{parts.query}" if parts.query else "")
