"""What the Kafka producer and consumer of the crawl share: addresses, time limits, errors as ours.

A producer or consumer that cannot reach its broker while it is built blocks, and leaves its sockets open: so a port is
tried first, and what was opened is closed (`build`).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from clusterd_crawler.errors import SettingError, Unreachable

#: Seconds to connect to one broker's port.
CONNECT_SECONDS: Final = 2.0
#: Milliseconds until a client gives up on its first contact.
BOOTSTRAP_MS: Final = 5_000


def servers(setting: str) -> list[str]:
    """Return the brokers of ``kafka://HOST:PORT[,…]``.

    >>> servers("kafka://a:9092,b:9092")
    ['a:9092', 'b:9092']
    """
    return [server.strip() for server in setting.removeprefix("kafka://").rstrip("/").split(",") if server.strip()]


def client_library() -> Any:
    """Return the client library; `SettingError` names the extra where it is missing."""
    try:
        import kafka  # type: ignore[import-untyped]
    except ImportError:
        raise SettingError("CLUSTERD_KAFKA needs the Kafka client: pip install 'clusterd[kafka]'") from None
    return kafka


def probe(setting: str) -> None:
    """Return when one of the brokers accepts a connection; `Unreachable` where none does."""
    reasons = []
    for server in servers(setting):
        host, _, port = server.rpartition(":")
        try:
            with closing(socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS)):
                return
        except (OSError, ValueError) as error:
            reasons.append(f"{server}: {error}")
    raise Unreachable(f"no Kafka at {'; '.join(reasons) or repr(setting)}")


def build(made: Any, **options: Any) -> Any:
    """Return a producer or consumer of the class ``made``; where it cannot be built, close what it had opened."""
    connections: list[Any] = []
    connection: Callable[..., Any] = made.DEFAULT_CONFIG["kafka_client"]

    def connect(*given: Any, **named: Any) -> Any:
        connections.append(connection(*given, **named))
        return connections[-1]

    with translated():
        try:
            return made(kafka_client=connect, bootstrap_timeout_ms=BOOTSTRAP_MS, **options)
        except BaseException:
            for opened in connections:
                opened.close()
            raise


@contextmanager
def translated() -> Iterator[None]:
    """Let the client's errors leave as `Unreachable`."""
    try:
        yield
    except (client_library().errors.KafkaError, OSError) as error:
        raise Unreachable(f"Kafka: {type(error).__name__}: {error}") from None
