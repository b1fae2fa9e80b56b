"""What the Kafka producer and consumer of the crawl share: addresses, time limits, errors as ours.

A producer or consumer that cannot reach its broker while it is built blocks, and leaves its sockets open: so a broker
is greeted first, and what was opened is closed (`build`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from textwrap import shorten
from typing import Any, Final

from clusterd_crawler.errors import Forbidden, SettingError, Unreachable
from clusterd_crawler.servers.kafka_address import KafkaAddress, read_address, shown_address
from clusterd_crawler.servers.kafka_greeting import greet
from clusterd_crawler.servers.kafka_lines import quieten

#: Milliseconds until a client gives up on its first contact.
BOOTSTRAP_MS: Final = 5_000
#: Milliseconds after which a client asks for its topics: one made anew between two fetches answers without an error,
#: and of partitions that were added nobody else tells.
METADATA_AGE: Final = 15_000
#: Most characters that are told of what an error of the client says.
LONGEST: Final = 300


def client_options(setting: str) -> dict[str, Any]:
    """Return the client's options for an address: brokers, TLS, SASL; `SettingError` where it cannot be used."""
    return address(setting).client_options()


def address(setting: str) -> KafkaAddress:
    """Read an address, or raise `SettingError`."""
    try:
        return read_address(setting)
    except ValueError as error:
        raise SettingError(f"kafka = {shown_address(setting)!r} is not accepted: {error}") from None


def client_library() -> Any:
    """Return the client library, which says little then; `SettingError` names the extra where it is missing."""
    try:
        import kafka  # type: ignore[import-untyped]
    except ImportError:
        raise SettingError("CLUSTERD_KAFKA needs the Kafka client: pip install 'clusterd[kafka]'") from None
    quieten()
    return kafka


def probe(setting: str, options: Mapping[str, Any]) -> None:
    """Return when one of the brokers takes us as we come; `Unreachable` says why none does.

    ``options`` are those of `client_options`.
    """
    where, absent, refusals = address(setting), [], []
    for server in where.servers:
        try:
            greet(where, server, options)
        except Unreachable as error:
            refusals.append(str(error))
        except (OSError, ValueError) as error:  # of a name that no host can have
            absent.append(f"{server}: {error}")
        else:
            return
    raise Unreachable("; ".join(refusals) or f"no Kafka at {'; '.join(absent)}")


def ask_why(setting: str, options: Mapping[str, Any]) -> None:
    """Say in `Unreachable` why no broker takes us any more; return where one does.

    A client that has been let in once tries again without a word, by the files of TLS that it was given: these are read
    again, since they may have been renewed.
    """
    where = address(setting)
    if where.tls:
        try:
            where.renew(options["ssl_context"])
        except (SettingError, OSError) as error:  # one is written at this moment, for one
            raise Unreachable(str(error)) from None
    probe(setting, options)


def build(made: Any, **options: Any) -> Any:
    """Return a producer or consumer of the class ``made``; errors leave as `Unreachable`."""
    with translated():
        return opened(made, bootstrap_timeout_ms=BOOTSTRAP_MS, **options)


def opened(made: Any, **options: Any) -> Any:
    """Return a client of the class ``made``; where it cannot be built, close what it had opened: its thread goes on."""
    connections: list[Any] = []
    connection: Callable[..., Any] = made.DEFAULT_CONFIG["kafka_client"]

    def connect(*given: Any, **named: Any) -> Any:
        connections.append(connection(*given, **named))
        return connections[-1]

    try:
        return made(kafka_client=connect, **options)
    except BaseException:
        for left in connections:
            left.close()
        raise


def topic_id(client: Any, topic: str) -> str:
    """Return the topic's id as the client's latest metadata have it; nothing where they do not (before Kafka 2.8)."""
    found = client._client.cluster.topic_id(topic)
    return found.hex[:12] if found else ""


@contextmanager
def translated(right: str = "Read") -> Iterator[None]:
    """Let the client's errors leave as `Unreachable`, as `Forbidden` where we lack something (`lacking`)."""
    try:
        yield
    except (client_library().errors.KafkaError, OSError) as error:
        if needed := lacking(error, right):
            raise Forbidden(f"Kafka {needed}") from None
        raise Unreachable(f"Kafka: {type(error).__name__}: {said(error)}") from None


def lacking(error: Exception, right: str) -> str:
    """Return what we lack: a ``right`` on topics, a library, records that are whole; "" where it is none of these."""
    errors = client_library().errors
    if isinstance(error, errors.UnsupportedCodecError):
        return f"sends what is compressed in a way unknown here ({error}): install that library and start again"
    if isinstance(error, errors.CorruptRecordError):
        return (
            f"has damaged records ({error}): let another replica lead that partition, or delete the records up to "
            "behind them (docs/operations.md, Damaged records)"
        )
    if isinstance(error, errors.GroupAuthorizationFailedError):
        right, kind = "Read", "group"
    elif isinstance(error, errors.TopicAuthorizationFailedError):
        kind = "topic"
    else:
        return ""
    named = error.args[0] if error.args else ""
    names = named if isinstance(named, str) else ", ".join(sorted(named))
    return f"refuses us: our user needs {right} on the {kind} {names} (ACLs, docs/operations.md)"


def said(error: Exception) -> str:
    """Return what an error of the client says, as part of one line: some quote the whole answer of a broker, 6 kB."""
    return shorten(str(error), LONGEST, placeholder=" …")
