"""Dedicated connections to one Redis server: what is packed already is sent in one piece, and read by hiredis, or as it
comes by whoever asked (`redis_replies`).

The client library connects (TLS, user, database, time-outs); after that its path costs 25 µs a command, this one 8 µs a
round trip and .2 µs a reply. A line serves one caller at a time; there are as many as there are callers at once.
"""

from __future__ import annotations

import os
import re
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Final

import hiredis
from redis import ConnectionError as NotConnected
from redis import ConnectionPool, RedisError, TimeoutError
from redis.exceptions import ResponseError

from clusterd_consumer.core.compiled import REPLIES as CORE
from clusterd_consumer.redis_replies import ends

#: Bytes that are received at first, and that a line at rest keeps at most for what it receives.
BUFFER: Final = 1 << 18
KEPT: Final = 1 << 20
#: Seconds after which a line at rest is looked at before it is used: a server that restarts or forgets idle clients has
#: closed it.
REST: Final = 1.0
#: In what `INFO server` answers.
RUN_ID: Final = re.compile(rb"run_id:([0-9a-f]{8,})")


class Refused(ResponseError):
    """An error that a server answered, with its code."""


class Line:
    """One connection."""

    def __init__(self, pool: ConnectionPool) -> None:
        kwargs = {**pool.connection_kwargs, "protocol": 2}  # replies as lists, and nothing that was not asked for
        self._connection: Any = pool.connection_class(**kwargs)
        self._connection.connect()
        #: Which process of a server answers: another one after a restart. "" where it does not say.
        self.server = self._who_answers()
        self._socket: socket.socket = self._connection._sock
        #: The number under which the system knows the connection, where its bytes are the server's own.
        self._number = self._socket.fileno() if _wait_in_the_kernel(self._socket) else -1
        self._reader: Any = hiredis.Reader(protocolError=NotConnected, replyError=Refused)
        #: What was received for what was sent last; how far it was read, and how far it goes.
        self._buffer = bytearray(BUFFER)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self.process = os.getpid()
        self.used = time.monotonic()

    def _who_answers(self) -> str:
        self._connection.send_command("INFO", "server")
        try:
            found = RUN_ID.search(self._connection.read_response())
        except ResponseError:  # this user may not ask
            return ""
        return found[1].decode() if found else ""

    def send(self, data: bytes) -> None:
        """Send packed commands, when every reply to those before was read."""
        self._start = self._end = 0
        if len(self._buffer) > KEPT:
            self._make_room(BUFFER)
        try:
            sent = CORE.push(self._number, data) if CORE is not None and self._number >= 0 else 0
            if sent < len(data):
                self._socket.sendall(memoryview(data)[sent:])
        except OSError as error:
            raise _lost(error) from error

    def wait(self, count: int) -> None:
        """Receive so many replies, before the first is read: it costs less than to wait for one after the other."""
        begins = self._start
        self._pass(count)
        self._start = begins

    def read(self, count: int = 1, parse: Callable[[memoryview], Any] | None = None) -> Any:
        """Return the next reply, of several their list, or what ``parse`` makes of their bytes; or the first error.

        What ``parse`` is given is there only until it returns.
        """
        begins = self._start
        refused = self._pass(count)
        if refused or not parse:
            self._reader.feed(self._buffer, begins, self._start - begins)
            replies = [self._reader.gets() for _ in range(count)]
            for one in replies if refused else ():
                if isinstance(one, Refused):
                    return one
            if not parse:
                return replies if count > 1 else replies[0]
        return parse(self._view[begins : self._start])

    def _pass(self, count: int) -> bool:
        """Receive so many replies and pass them; return whether there is an error among them."""
        any_refused = False
        while True:
            try:
                self._start, self._end, count, refused = self._receive(count)
            except OSError as error:
                raise _lost(error) from error
            except ValueError as error:
                raise NotConnected(str(error)) from error
            any_refused = any_refused or refused
            if not count:
                return any_refused
            if self._end == len(self._buffer):
                self._make_room(2 * self._end)

    def _receive(self, count: int) -> tuple[int, int, int, bool]:
        """Receive some of so many replies; return how far they were passed and received, how many are still to come."""
        if CORE is not None and self._number >= 0:
            received: tuple[int, int, int, bool]
            received = CORE.receive(self._number, self._buffer, self._start, self._end, count)
            return received
        at, count, refused = ends(self._buffer, self._start, self._end, count)
        size = 0
        if count and self._end < len(self._buffer):
            size = self._socket.recv_into(self._view[self._end :])
            if not size:
                raise ConnectionResetError("the server closed the connection")
        return at, self._end + size, count, refused

    def _make_room(self, size: int) -> None:
        before = self._view[: self._end]
        self._buffer = bytearray(size)
        self._view = memoryview(self._buffer)
        self._view[: self._end] = before

    def closed(self) -> bool:
        """Whether the server has closed a line at rest: nothing else is there to be read."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Free the connection."""
        self._connection.disconnect()


class Lines:
    """The lines to one server."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._free: list[Line] = []
        #: Which process answered on the latest line.
        self.server = ""

    def take(self) -> Line:
        """Return a line that nobody else uses."""
        while self._free:
            try:
                line = self._free.pop()
            except IndexError:  # another thread took the last
                break
            if line.process == os.getpid() and (time.monotonic() - line.used < REST or not line.closed()):
                return line
            line.close()
        line = Line(self._pool)
        self.server = line.server
        return line

    def give(self, line: Line) -> None:
        """Take a line back, of which every reply was read."""
        line.used = time.monotonic()
        self._free.append(line)

    def close(self) -> None:
        """Free all lines at rest."""
        while self._free:
            self._free.pop().close()


def _wait_in_the_kernel(one: socket.socket) -> bool:
    """Let the kernel keep a socket's time-out: Python would poll before each call, one system call more."""
    seconds = one.gettimeout()
    if type(one) is not socket.socket or not seconds:
        return False  # TLS wants to know
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
    one.settimeout(None)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        one.setsockopt(socket.SOL_SOCKET, option, limit)
    return True


def _lost(error: OSError) -> RedisError:
    if isinstance(error, (socket.timeout, BlockingIOError)):
        return TimeoutError("no answer in time")
    return NotConnected(str(error))
