"""Dedicated connections to one Redis server: what is packed already is sent in one piece, and read by hiredis, or as it
comes by whoever asked (`redis_replies`).

The client library connects (TLS, user, database, time-outs); after that its path costs 25 µs a command, this one 8 µs a
round trip and .2 µs a reply. A line serves one caller at a time; there are as many as there are callers at once.
"""

from __future__ import annotations

import os
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

from clusterd_consumer.redis_replies import ends

#: Bytes that are received at first, and that a line at rest keeps at most for what it receives.
BUFFER: Final = 1 << 18
KEPT: Final = 1 << 20
#: Seconds after which a line at rest is looked at before it is used: a server that restarts or forgets idle clients has
#: closed it.
REST: Final = 1.0


class Refused(ResponseError):
    """An error that a server answered, with its code."""


class Line:
    """One connection."""

    def __init__(self, pool: ConnectionPool) -> None:
        kwargs = {**pool.connection_kwargs, "protocol": 2}  # replies as lists, and nothing that was not asked for
        self._connection: Any = pool.connection_class(**kwargs)
        self._connection.connect()
        self._socket: socket.socket = self._connection._sock
        _wait_in_the_kernel(self._socket)
        self._reader: Any = hiredis.Reader(protocolError=NotConnected, replyError=Refused)
        #: What was received for what was sent last; how far it was read, and how far it goes.
        self._buffer = bytearray(BUFFER)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self.process = os.getpid()
        self.used = time.monotonic()

    def send(self, data: bytes) -> None:
        """Send packed commands, when every reply to those before was read."""
        self._start = self._end = 0
        if len(self._buffer) > KEPT:
            self._make_room(BUFFER)
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise _lost(error) from error

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
        try:
            while True:
                self._start, count, refused = ends(self._buffer, self._start, self._end, count)
                any_refused = any_refused or refused
                if not count:
                    return any_refused
                self._receive()
        except ValueError as error:
            raise NotConnected(str(error)) from error

    def _receive(self) -> None:
        if self._end == len(self._buffer):
            self._make_room(2 * self._end)
        try:
            size = self._socket.recv_into(self._view[self._end :])
        except OSError as error:
            raise _lost(error) from error
        if not size:
            raise NotConnected("the server closed the connection")
        self._end += size

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
        return Line(self._pool)

    def give(self, line: Line) -> None:
        """Take a line back, of which every reply was read."""
        line.used = time.monotonic()
        self._free.append(line)

    def close(self) -> None:
        """Free all lines at rest."""
        while self._free:
            self._free.pop().close()


def _wait_in_the_kernel(one: socket.socket) -> None:
    """Let the kernel keep a socket's time-out: Python would poll before each call, one system call more."""
    seconds = one.gettimeout()
    if type(one) is not socket.socket or not seconds:
        return  # TLS wants to know
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
    one.settimeout(None)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        one.setsockopt(socket.SOL_SOCKET, option, limit)


def _lost(error: OSError) -> RedisError:
    if isinstance(error, (socket.timeout, BlockingIOError)):
        return TimeoutError("no answer in time")
    return NotConnected(str(error))
