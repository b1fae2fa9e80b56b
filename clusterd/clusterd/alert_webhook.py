"""An HTTP address to which alerts are posted as JSON lines (application/x-ndjson): one that fails holds nobody up."""

from __future__ import annotations

import logging
import queue
import threading
import time
import urllib.request
from base64 import b64encode
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from string import printable
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from clusterd_consumer.insisting import FIRST_PAUSE, LONGEST_PAUSE
from clusterd_crawler.servers.redis_address import shown_host

log = logging.getLogger(__name__)

#: Alerts that may wait for an address, and the most in one post.
WEBHOOK_QUEUE: Final = 10_000
WEBHOOK_BATCH: Final = 500
#: Seconds for an address to answer.
WEBHOOK_TIMEOUT: Final = 10.0
#: Seconds for which alerts are posted again to an address that is away; what comes meanwhile waits in the queue.
WEBHOOK_PATIENCE: Final = 60.0
#: Seconds for which it is not said again that an address takes no alerts.
WEBHOOK_SILENCE: Final = 60.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows none: a GET without the alerts would be answered as if they had arrived, with our password elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Leave the answer for the error that it is."""


_OPENER: Final = urllib.request.build_opener(_NoRedirect)


class Webhook:
    """Posts alerts from a thread of its own.

    What stands before an ``@`` in the address is sent as user and password (Basic), and not logged. An address that
    redirects takes no alerts.
    """

    def __init__(self, address: str) -> None:
        self._address = shown_host(address)
        self._target, self._headers = _target_of(address)
        self._waiting: queue.Queue[bytes | None] = queue.Queue(WEBHOOK_QUEUE)
        self.lost = 0
        #: What is wrong, before and behind how many were lost, where that was not logged; and until when it is not.
        self._unsaid = ("", "")
        self._silent_until = 0.0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alert-webhook", daemon=True)
        self._thread.start()

    def post(self, lines: bytes) -> None:
        """Queue alerts; where the address is too slow they are lost, and counted."""
        queued, given = 0, lines.splitlines(keepends=True)
        with suppress(queue.Full):
            for line in given:
                self._waiting.put_nowait(line)
                queued += 1
        if queued < len(given):
            self.lost += len(given) - queued
            self._complain("is too slow: ", " alerts lost so far")

    def close(self, seconds: float = WEBHOOK_TIMEOUT) -> None:
        """Send what waits, in so many seconds; what the address has not been sent by then is lost, and counted."""
        until = time.monotonic() + seconds
        self._ending.set()
        with suppress(queue.Full):
            self._waiting.put(None, timeout=seconds)
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self.lost += self._given_up()
            self._unsaid = "is too slow: what waits for it is lost (", " alerts in all)"
        self._tell_lost()

    def _given_up(self) -> int:
        """Return how many alerts wait, which wait no longer."""
        count = 0
        with suppress(queue.Empty):
            while True:
                count += self._waiting.get_nowait() is not None
        return count

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            body = [first]
            while len(body) < WEBHOOK_BATCH and not self._waiting.empty():
                following = self._waiting.get()
                if following is None:
                    self._send(b"".join(body))
                    return
                body.append(following)
            self._send(b"".join(body))

    def _send(self, body: bytes) -> None:
        """Post alerts, after growing pauses again while the address is away; at last they are lost, and counted."""
        pause, until = FIRST_PAUSE, time.monotonic() + WEBHOOK_PATIENCE
        while True:
            last = self._ending.is_set() or time.monotonic() >= until
            if (error := self._refused(body)) is None:
                if not self.lost:
                    self._unsaid = ("", "")
                return
            given_up = last or not _passes(error)
            self.lost += body.count(b"\n") if given_up else 0
            self._complain("does not take alerts (", f" lost so far): {error}")
            if given_up:
                return
            self._ending.wait(min(max(pause, _asked_for(error)), until - time.monotonic()))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _refused(self, body: bytes) -> Exception | None:
        """Post alerts once; return why the address has not taken them, None where it has."""
        try:
            request = urllib.request.Request(self._target, data=body, headers=self._headers, method="POST")
            with _OPENER.open(request, timeout=WEBHOOK_TIMEOUT):
                return None
        except HTTPError as error:
            error.close()  # the answer itself, which would hold the connection while it is waited
            return error
        except (OSError, HTTPException, ValueError) as error:  # no connection; no HTTP; no address
            return error

    def _complain(self, before: str, behind: str) -> None:
        """Log that alerts are lost, once in `WEBHOOK_SILENCE`: it may be so for ten batches a second, for days."""
        self._unsaid = before, behind
        if time.monotonic() >= self._silent_until:
            self._silent_until = time.monotonic() + WEBHOOK_SILENCE
            self._tell_lost()

    def _tell_lost(self) -> None:
        (before, behind), self._unsaid = self._unsaid, ("", "")
        if before:
            log.error("%s %s%d%s", self._address, before, self.lost, behind)


def _passes(error: Exception) -> bool:
    """Whether an address that has not taken alerts may take them a little later: it is away, or has too much to do."""
    if isinstance(error, HTTPError):
        return error.code in {408, 429} or error.code >= 500
    return isinstance(error, OSError)


def _asked_for(error: Exception) -> float:
    """Return the seconds for which an address asks not to be asked again (RFC 9110, 10.2.3), 0 where it gives none."""
    said = str(error.headers.get("Retry-After", "")) if isinstance(error, HTTPError) else ""
    if said.isascii() and said.isdecimal():
        return float(said)
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, OverflowError):  # neither seconds nor a date that there is
        return 0.0


def _target_of(address: str) -> tuple[str, dict[str, str]]:
    """Return an address without its user and password, and the headers of what is posted there."""
    headers = {"Content-Type": "application/x-ndjson"}
    try:
        parts = urlsplit(address)
    except ValueError:  # said of each post
        return address, headers
    said, at, host = parts.netloc.rpartition("@")
    if at:
        user, _, password = map(unquote, said.partition(":"))  # the colon is sent where there is no password, too
        headers["Authorization"] = "Basic " + b64encode(f"{user}:{password}".encode()).decode()
    path, query = quote(parts.path, safe=printable), quote(parts.query, safe=printable)  # only what is not ASCII
    return urlunsplit(parts._replace(netloc=host, path=path, query=query)), headers
