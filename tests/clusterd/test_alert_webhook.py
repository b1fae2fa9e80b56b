"""The address that alerts are posted to: what it is sent, and that it holds nobody up."""

from __future__ import annotations

import json
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import redis
from clusterd.alert_webhook import Webhook
from clusterd.alerts import Alert, Alerts
from clusterd.config import Config

from tests.services.redis_server import free_port
from tests.services.waiting import wait_until

#: Status and headers.
Answer = tuple[int, dict[str, str]]


def alert(n: int) -> Alert:
    return Alert("2026-01-01T00:00:00.000Z", "joined", f"http://h/{n}", "near", "c", n, None, 0.5)


@contextmanager
def address(answer: Callable[[BaseHTTPRequestHandler, bytes], Answer], port: int = 0) -> Iterator[str]:
    """Serve an address for alerts, yield its host and port; ``answer`` says what a request with a body is answered."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, headers = answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_an_address_gets_alerts_as_json_lines(client: redis.Redis, prefix: str) -> None:
    received: list[bytes] = []
    users: list[str | None] = []
    paths: list[str] = []

    def take(request: BaseHTTPRequestHandler, body: bytes) -> Answer:
        users.append(request.headers["Authorization"])
        paths.append(request.path)
        received.append(body)
        return 204, {}

    with address(take) as where:
        for user, path in (("", "/"), ("who:s3%40cret@", "/a%20b?c=d"), ("token@", "/ü?é")):
            alerts = Alerts(client, Config(redis_prefix=prefix, alert_webhook=f"http://{user}{where}{path}"))
            alerts.publish([alert(1), alert(2)])
            alerts.close()
    assert [json.loads(line)["size"] for line in b"".join(received).splitlines()] == [1, 2] * 3
    assert users == [None, *("Basic " + b64encode(user).decode() for user in (b"who:s3@cret", b"token:"))]
    assert paths == ["/", "/a%20b?c=d", "/%C3%BC?%C3%A9"]


def test_an_address_that_does_not_answer_is_counted_not_waited_for(
    client: redis.Redis, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    alerts = Alerts(client, Config(redis_prefix=prefix, alert_webhook="http://who:s3cret@127.0.0.1:9/"))
    started = time.monotonic()
    alerts.publish([alert(1)])
    assert time.monotonic() - started < 1
    alerts.close()
    assert "http://who:***@127.0.0.1:9/ does not take alerts (1 lost so far)" in caplog.text


def test_an_address_that_speaks_no_http_is_counted_and_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    asked = threading.Semaphore(0)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.recv(10_000)
                    connection.sendall(b"SSH-2.0-no\r\n\r\n")
                asked.release()

        thread = threading.Thread(target=answer)
        thread.start()
        webhook = Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/")
        for _ in range(2):
            webhook.post(b"{}\n")
            assert asked.acquire(timeout=10)
        webhook.close()
        thread.join()
    assert webhook.lost == 2
    assert "does not take alerts (2 lost so far)" in caplog.text


def test_an_address_that_redirects_takes_no_alerts_and_nobody_else_gets_the_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked: list[str] = []

    def redirect(request: BaseHTTPRequestHandler, _: bytes) -> Answer:
        asked.append(request.path)
        return (302, {"Location": "/elsewhere"}) if request.command == "POST" else (200, {})

    with address(redirect) as where:
        webhook = Webhook(f"http://who:s3cret@{where}/alerts")
        webhook.post(b"{}\n{}\n")
        webhook.close()
    assert webhook.lost == 2
    assert set(asked) == {"/alerts"}
    assert "HTTP Error 302" in caplog.text


@pytest.mark.parametrize("busy", [False, True])
def test_an_address_that_is_away_for_a_moment_gets_what_came_meanwhile(
    busy: bool, caplog: pytest.LogCaptureFixture
) -> None:
    received: list[bytes] = []
    answers = [503, 429] if busy else []

    def take(_: BaseHTTPRequestHandler, body: bytes) -> Answer:
        answer = answers.pop(0) if answers else 204
        received.extend(body.splitlines() if answer == 204 else [])
        return answer, {}

    webhook = Webhook(f"http://127.0.0.1:{(port := free_port())}/")
    if not busy:
        webhook.post(b"1\n")
        wait_until(lambda: "Connection refused" in caplog.text)
        webhook.post(b"2\n")
    with address(take, port):
        if busy:
            webhook.post(b"1\n2\n")
        wait_until(lambda: len(received) == 2)
        webhook.close()
    assert (received, webhook.lost) == ([b"1", b"2"], 0)


@pytest.mark.parametrize("by_date", [False, True])
def test_an_address_that_asks_for_patience_is_left_alone_so_long(by_date: bool) -> None:
    asked: list[float] = []

    def ask_for_patience(*_: object) -> Answer:
        asked.append(time.monotonic())
        # A date has whole seconds, the fraction of which is gone: of two one at least is left.
        return 429 if len(asked) == 1 else 204, {
            "Retry-After": formatdate(time.time() + 2, usegmt=True) if by_date else "1"
        }

    with address(ask_for_patience) as where:
        webhook = Webhook(f"http://{where}/")
        webhook.post(b"{}\n")
        wait_until(lambda: len(asked) == 2)
        webhook.close()
    assert asked[1] - asked[0] >= 1
    assert webhook.lost == 0


@contextmanager
def hanging() -> Iterator[tuple[Webhook, socket.socket]]:
    """Return a webhook whose address has taken one alert and answers nothing, and the connection to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        webhook = Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/")
        webhook.post(b"{}\n")
        connection, _ = server.accept()
        with connection:
            connection.recv(10_000)
            yield webhook, connection


def test_no_connection_is_held_while_an_address_is_left_alone() -> None:
    with hanging() as (webhook, connection):
        connection.sendall(b"HTTP/1.1 503 Busy\r\nRetry-After: 30\r\n\r\n")
        connection.settimeout(5)
        while connection.recv(10_000):
            pass  # the rest of what was posted; then its end, or the time is over
    webhook.close(0.2)


def test_an_address_that_hangs_does_not_keep_the_daemon_from_ending(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("clusterd.alert_webhook.WEBHOOK_QUEUE", 1)
    with hanging() as (webhook, _):
        webhook.post(b"{}\n")
        started = time.monotonic()
        webhook.close(0.2)
        assert time.monotonic() - started < 5
    assert "is too slow: what waits for it is lost (1 alerts in all)" in caplog.text


def test_an_address_that_is_away_for_long_is_not_logged_for_each_batch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("clusterd.alert_webhook.WEBHOOK_PATIENCE", 0)
    webhook = Webhook("http://127.0.0.1:9/")
    for _ in range(50):
        webhook.post(b"{}\n")
        while webhook._waiting.qsize():
            time.sleep(0.001)
    webhook.close()
    said = [message for message in caplog.messages if "http://127.0.0.1:9/" in message]
    assert len(said) == 2
    assert "does not take alerts (50 lost so far)" in said[-1]


def test_what_waits_for_an_address_that_hangs_is_bounded_by_alerts_not_by_batches(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("clusterd.alert_webhook.WEBHOOK_QUEUE", 3)
    with hanging() as (webhook, _):
        webhook.post(b"{}\n" * 10)
        assert webhook.lost == 7
        webhook.close(0.2)
    assert "is too slow: 7 alerts lost so far" in caplog.text
    assert "is too slow: what waits for it is lost (10 alerts in all)" in caplog.text
