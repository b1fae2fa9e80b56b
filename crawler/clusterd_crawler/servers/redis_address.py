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
#: What stands alone before the ``@`` of a web address: often a token.
_USER_ALONE: Final = re.compile(r"(^|//)[^/?#:@]+(?=@)")
#: Ports of servers and of sentinels, where none is named.
SERVER_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
#: What an address may look like, for whoever gave another.
FORMS: Final = (
    "redis://HOST:PORT/DB, rediss://…, unix:///PATH, redis+cluster://HOST:PORT[,HOST:PORT…] or "
    "redis+sentinel://HOST:PORT[,HOST:PORT…]/SERVICE"
)
#: What is wrong with an address. Nothing of it is told: any part of it may be one of a password with a / or an @.
_BEGINNING: Final = "an address begins with redis://, rediss://, unix://, redis+cluster:// or redis+sentinel://"
_NO_SERVER: Final = "a server is HOST:PORT (what is no letter or digit of a password is percent-encoded)"


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
    """Take an address apart; `ValueError`, which says why and nothing of the address, where it is none."""
    url = _PROTOCOL.sub("", url)
    parts = _split(url)
    scheme, _, kind = parts.scheme.partition("+")
    if (
        scheme not in {"redis", "rediss", "unix"}
        or kind not in ({""} if scheme == "unix" else {"", "cluster", "sentinel"})
        or not url.startswith(f"{parts.scheme}://")
    ):
        raise ValueError(_BEGINNING)
    if not kind:
        _port(parts)
        # A database that is no number would be taken for the first one: crawls that are to be apart would share it.
        _number("" if scheme == "unix" else parts.path.strip("/"))
        return Address("server", url)
    user, at, servers = parts.netloc.rpartition("@")
    if kind == "cluster":
        nodes = tuple(_server(one, SERVER_PORT) for one in servers.split(","))
        if parts.path.strip("/") not in {"", "0"}:
            raise ValueError("a Redis Cluster has one database, 0")
        return Address("cluster", _plain(parts, scheme, user + at + servers.split(",")[0], ""), nodes)
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("the name by which the sentinels know the primary is missing")
    sentinels = tuple(_server(one, SENTINEL_PORT) for one in servers.split(","))
    return Address("sentinel", _plain(parts, scheme, user + at, _number(database)), sentinels, unquote(service))


def may_be_host(name: str) -> None:
    """Raise `ValueError` where no host has a name: of one with an empty label (``.example``) clients say nothing more.

    >>> may_be_host("bücher.example"), may_be_host("::1"), may_be_host("h.")
    (None, None, None)
    """
    name.encode("idna")


def is_cluster(url: str) -> bool:
    """Whether it is an address of a cluster."""
    return url.startswith(("redis+cluster://", "rediss+cluster://"))


def shown(url: str) -> str:
    """Return a URL as it may be logged: without its passwords."""
    return _PASSWORD.sub(r"\1***", url)


def shown_host(url: str) -> str:
    """Return a web address as it may be logged: without its password, nor a token in its place or behind the host."""
    return _AFTER_HOST.sub(r"\1/…", _USER_ALONE.sub(r"\1***", shown(url)))


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # it names the host, with what stands before it
        raise ValueError(_NO_SERVER) from None


def _port(parts: SplitResult) -> int | None:
    try:
        may_be_host(parts.hostname or "")
        return parts.port
    except ValueError:
        raise ValueError(_NO_SERVER) from None


def _number(database: str) -> str:
    if database and not database.isdecimal():
        raise ValueError("a database is a number")
    return database


def _server(text: str, port: int) -> tuple[str, int]:
    parts = _split(f"//{text}")
    named = _port(parts)
    if not parts.hostname:
        raise ValueError(_NO_SERVER)
    return parts.hostname, port if named is None else named


def _plain(parts: SplitResult, scheme: str, server: str, path: str) -> str:
    return f"{scheme}://{server}" + (f"/{path}" if path else "") + (f"?{parts.query}" if parts.query else "")
