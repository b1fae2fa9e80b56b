"""One broker is spoken to before a client is built, as the client would: TLS, SASL, a question.

The client tries on, whatever is wrong, and says in the end that it could not. A wrong password, a certificate that
nobody known has signed, TLS at one end only, or an address of the brokers that is no use here is said at once and after
a single attempt.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, Final

from clusterd_crawler.errors import Unreachable
from clusterd_crawler.servers.certificates import not_accepted
from clusterd_crawler.servers.kafka_address import KafkaAddress
from clusterd_crawler.servers.kafka_classes import make_in_turns

#: Seconds to connect to one broker's port, and to wait for an answer.
CONNECT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 5.0
#: How TLS begins to refuse what is no TLS.
_ALERT: Final = b"\x15\x03"
#: Error codes of Kafka's protocol.
_NO_SUCH_MECHANISM: Final = 33
_NO_SASL_HERE: Final = 34


def greet(address: KafkaAddress, server: str, options: Mapping[str, Any]) -> None:
    """Return when the broker answers us. `OSError`: nobody listens there; `Unreachable`: he does not take us as we are.

    ``options`` are those of `KafkaAddress.client_options`.
    """
    make_in_turns()
    host, _, port = server.rpartition(":")
    host = host.strip("[]")
    with closing(socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS)) as connection:
        connection.settimeout(ANSWER_SECONDS)
        if not address.tls:
            _talk(connection, address, server, host, options)
            return
        with closing(_secured(connection, address, server, host, options)) as secured:
            _talk(secured, address, server, host, options)


def _secured(
    connection: socket.socket, address: KafkaAddress, server: str, host: str, options: Mapping[str, Any]
) -> ssl.SSLSocket:
    context: ssl.SSLContext = options["ssl_context"]
    try:
        return context.wrap_socket(connection, server_hostname=host.rstrip("."))
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(f"Kafka at {server} {not_accepted(error.verify_message, 'ca')}") from None
    except ssl.SSLError as error:
        if isinstance(error, ssl.SSLEOFError) or error.reason == "WRONG_VERSION_NUMBER":
            raise Unreachable(_without_tls(server)) from None
        raise Unreachable(f"Kafka at {server} agrees on no TLS with us: {error.reason}{_own(error, address)}") from None
    except ConnectionError:
        raise Unreachable(_without_tls(server)) from None
    except TimeoutError:
        raise Unreachable(f"Kafka at {server} does not answer") from None


def _without_tls(server: str) -> str:
    return f"Kafka at {server} speaks no TLS at that port: it takes kafka://, or the port of its TLS"


def _own(error: ssl.SSLError, address: KafkaAddress) -> str:
    """Return what would be right where a broker wants our certificate, or another one."""
    if not re.search("CERTIFICATE|UNKNOWN_CA", str(error.reason)):
        return ""
    if address.cert:
        return " (our certificate is not accepted: cert=FILE&key=FILE)"
    return " (it takes a certificate of ours: cert=FILE&key=FILE)"


def _talk(connection: socket.socket, address: KafkaAddress, server: str, host: str, options: Mapping[str, Any]) -> None:
    from kafka.errors import KafkaError  # type: ignore[import-untyped]

    try:
        _introduce(_Exchange(connection), server, host, options)
    except TimeoutError:
        raise Unreachable(f"Kafka at {server} does not answer") from None
    except ssl.SSLError as error:
        raise Unreachable(f"Kafka at {server} ends TLS: {error.reason}{_own(error, address)}") from None
    except _SpeaksTls:
        raise Unreachable(f"Kafka at {server} speaks TLS at that port: it takes kafkas://") from None
    except ConnectionError:
        wants = [] if address.tls else ["TLS (kafkas://)"]
        wants += [] if address.user else ["a user (USER:PASSWORD@… ?mechanism=…)"]
        may = f"; it may want {' or '.join(wants)}" if wants else ""
        raise Unreachable(f"Kafka at {server} closes the connection{may}") from None
    except (KafkaError, ValueError, KeyError) as error:
        raise Unreachable(f"Kafka at {server} is not understood: {type(error).__name__}: {error}") from None


class _SpeaksTls(Exception):
    """The other end answers in TLS."""


class _Exchange:
    """Questions and answers over one connection, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        from kafka.protocol.parser import KafkaProtocol  # type: ignore[import-untyped]

        self._connection = connection
        self._parser = KafkaProtocol(client_id="clusterd", receive_message_max_bytes=1_000_000)
        self._heard = False

    def ask(self, request: Any) -> Any:
        """Return the answer to a question."""
        self._parser.send_request(request)
        self._connection.sendall(self._parser.send_bytes())
        while True:
            received = self._connection.recv(65536)
            if not received:
                raise ConnectionError("closed")
            if not self._heard and received.startswith(_ALERT):
                raise _SpeaksTls
            self._heard = True
            for _, answer in self._parser.receive_bytes(received):
                return answer


def _introduce(exchange: _Exchange, server: str, host: str, options: Mapping[str, Any]) -> None:
    """Say who we are where a user is given, and ask something that only who is let in may ask."""
    from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest  # type: ignore[import-untyped]

    exchange.ask(ApiVersionsRequest(version=0))
    if "sasl_mechanism" in options:
        _authenticate(exchange, server, host, options)
    said = exchange.ask(MetadataRequest(version=4, topics=[], allow_auto_topic_creation=False))
    _look_for(said.brokers, server)


def _look_for(brokers: Iterable[Any], server: str) -> None:
    """Raise `Unreachable` where none of the brokers is to be found at the address by which it makes itself known.

    The one asked is the first; of many that a firewall swallows no more are looked for than there is time.
    """
    named = {f"{broker.host}:{broker.port}": (broker.host, broker.port) for broker in brokers}
    absent: list[str] = []
    until = time.monotonic() + ANSWER_SECONDS
    for name, place in named.items() if server not in named else ():
        try:
            socket.create_connection(place, timeout=CONNECT_SECONDS).close()
        except OSError as error:
            absent.append(f"{name}: {error}")
        else:
            return
        if time.monotonic() > until:
            break
    if absent:
        raise Unreachable(
            f"Kafka at {server} sends its clients to {'; '.join(absent)}: its advertised.listeners takes an address "
            "that is reached from here"
        )


def _authenticate(exchange: _Exchange, server: str, host: str, options: Mapping[str, Any]) -> None:
    from kafka.net.sasl import get_sasl_mechanism  # type: ignore[import-untyped]
    from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest  # type: ignore[import-untyped]

    name = options["sasl_mechanism"]
    offered = exchange.ask(SaslHandshakeRequest(version=1, mechanism=name))
    if offered.error_code == _NO_SASL_HERE:
        raise Unreachable(f"Kafka at {server} asks for no user at that port: it takes an address without one")
    if offered.error_code == _NO_SUCH_MECHANISM:
        raise Unreachable(f"Kafka at {server} has no mechanism {name}: it has {', '.join(sorted(offered.mechanisms))}")
    mechanism = get_sasl_mechanism(name)(host=host, **options)
    while not mechanism.is_done():
        said = exchange.ask(SaslAuthenticateRequest(version=1, auth_bytes=mechanism.auth_bytes()))
        if said.error_code:
            raise Unreachable(f"Kafka at {server} refuses us: {said.error_message or f'error {said.error_code}'}")
        mechanism.receive(said.auth_bytes)
