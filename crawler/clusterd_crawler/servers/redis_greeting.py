"""Whether one end alone speaks TLS, where a Redis does not answer: the client says that it timed out, or was cut off.

A Redis without TLS waits for the end of what it takes for a command; one with TLS resets the connection.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from clusterd_crawler.servers.redis_address import SERVER_PORT, read

#: Seconds to connect, and to wait for an answer.
SECONDS: Final = 2.0

Server = tuple[str, int]


def one_sided(url: str) -> str:
    """Return what is wrong, and would be right, where one end alone speaks TLS, else ""."""
    scheme = urlsplit(url).scheme
    by_tls = scheme.startswith("rediss")
    for server in _servers(url):
        with suppress(OSError):  # nobody listens there, or says a word
            if by_tls and _answers_in_the_clear(server):
                return f"speaks no TLS at that port: it takes {scheme.replace('rediss', 'redis')}://…"
            if not by_tls and _speaks_tls(server):
                return f"speaks TLS at that port: it takes {scheme.replace('redis', 'rediss')}://…"
    return ""


def _servers(url: str) -> tuple[Server, ...]:
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return ()
    return read(url).servers or ((parts.hostname or "localhost", parts.port or SERVER_PORT),)


def _answers_in_the_clear(server: Server) -> bool:
    with socket.create_connection(server, timeout=SECONDS) as connection:
        connection.sendall(b"PING\r\n")
        return connection.recv(1) in {b"+", b"-"}


def _speaks_tls(server: Server) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is told to it
    try:
        with socket.create_connection(server, timeout=SECONDS) as connection, context.wrap_socket(connection):
            return True
    except ssl.SSLError as error:
        return "ALERT" in str(error.reason)  # it refuses us by TLS
