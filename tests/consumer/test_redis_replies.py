"""Where replies end: compiled and plain code find the same ends, however the replies are nested and arrive."""

from __future__ import annotations

import signal
import socket
import threading
import time
from typing import Any

import pytest
from clusterd_consumer import redis_replies
from clusterd_consumer.core.compiled import REPLIES as CORE
from clusterd_consumer.redis_replies import ends, strings
from hypothesis import given
from hypothesis import strategies as st

Reply = tuple[bytes, bool]


def together(replies: list[Reply]) -> Reply:
    """Return a reply that is the list of these."""
    return b"*%d\r\n" % len(replies) + b"".join(one for one, _ in replies), any(refused for _, refused in replies)


LINES = st.sampled_from([b"+OK", b":17", b":-1", b"$-1", b"*-1", b"*0", b"-ERR no", b"$0\r\n"])
STRINGS = st.binary(max_size=30).map(lambda one: (b"$%d\r\n%s\r\n" % (len(one), one), False))
REPLIES: st.SearchStrategy[Reply] = st.recursive(
    LINES.map(lambda one: (one + b"\r\n", one.startswith(b"-"))) | STRINGS,
    lambda inner: st.lists(inner, max_size=4).map(together),
)


def passed(replies: list[bytes], cuts: list[int], before: bytes) -> tuple[int, bool]:
    """Pass replies that arrive in pieces; return where they end, and whether one is an error."""
    buffer = bytearray(before + b"".join(replies) + b"$3\r\nwhat lay there before")
    whole = len(before) + sum(map(len, replies))
    at, left, refused = len(before), len(replies), False
    for end in [*sorted(len(before) + cut % (whole - len(before) + 1) for cut in cuts), whole]:
        at, left, one = ends(buffer, at, end, left)
        refused |= one
        assert at <= end
        assert (left == 0) == (at == whole)
    return at, refused


@pytest.mark.core
@given(st.lists(REPLIES, min_size=1, max_size=4), st.lists(st.integers(0, 999), max_size=5), st.binary(max_size=5))
def test_replies_end_where_they_do_in_whatever_pieces_they_arrive(
    replies: list[Reply], cuts: list[int], before: bytes
) -> None:
    assert CORE is not None
    sent = [one for one, _ in replies]
    found = passed(sent, cuts, before)
    assert found == (len(before) + sum(map(len, sent)), any(refused for _, refused in replies))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redis_replies, "CORE", None)
        assert passed(sent, cuts, before) == found


@pytest.mark.core
@given(st.binary(max_size=20))
def test_noise_is_refused_or_passed_alike(noise: bytes) -> None:
    def answer() -> Any:
        try:
            return ends(noise, 0, len(noise), 1)
        except ValueError:
            return "refused"

    found = answer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redis_replies, "CORE", None)
        assert answer() == found


@given(st.lists(st.none() | st.binary(max_size=9), max_size=5))
def test_strings_are_read_as_they_are(wanted: list[bytes | None]) -> None:
    data = b"".join(b"$-1\r\n" if one is None else b"$%d\r\n%s\r\n" % (len(one), one) for one in wanted)
    assert strings(memoryview(b"*%d\r\n%s" % (len(wanted), data))) == wanted


@pytest.mark.core
def test_replies_are_received_in_pieces_until_all_are_there() -> None:
    assert CORE is not None
    ours, theirs = socket.socketpair()
    reply = b"*2\r\n$5\r\nhello\r\n:1\r\n"
    buffer = bytearray(64)

    def answer() -> None:
        for at in range(0, len(reply), 4):
            time.sleep(0.005)
            theirs.sendall(reply[at : at + 4])

    with ours, theirs:
        sender = threading.Thread(target=answer)
        sender.start()
        assert CORE.receive(ours.fileno(), buffer, 0, 0, 1) == (len(reply), len(reply), 0, False)
        sender.join()
        assert buffer[: len(reply)] == reply
        theirs.sendall(b"-ERR\r\n+O")
        end = len(reply) + 8
        assert CORE.receive(ours.fileno(), buffer, len(reply), len(reply), 1) == (end - 2, end, 0, True)
        theirs.sendall(b"K" * (64 - end))
        assert CORE.receive(ours.fileno(), buffer, end - 2, end, 1) == (end - 2, 64, 1, False)  # the buffer is full
        theirs.close()
        with pytest.raises(ConnectionResetError):
            CORE.receive(ours.fileno(), bytearray(99), 0, 0, 9)


@pytest.mark.core
def test_a_signal_is_handled_while_a_reply_is_waited_for() -> None:
    assert CORE is not None
    order: list[str] = []
    ours, theirs = socket.socketpair()

    def answer() -> None:
        order.append("reply")
        theirs.sendall(b"+OK\r\n")

    before = signal.signal(signal.SIGALRM, lambda *_: order.append("signal"))
    answering = threading.Timer(2.0, answer)
    with ours, theirs:
        try:
            answering.start()
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            assert CORE.receive(ours.fileno(), bytearray(64), 0, 0, 1) == (0, 0, 1, False)
            assert order == ["signal"]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            answering.cancel()
            answering.join()


@pytest.mark.core
def test_what_is_no_reply_and_what_is_no_part_of_the_buffer_is_refused() -> None:
    assert CORE is not None
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.1 400\r\n")
        with pytest.raises(ValueError, match="reply"):
            CORE.receive(ours.fileno(), bytearray(64), 0, 0, 1)
        for at, end in ((0, 65), (-1, 3), (4, 3)):
            with pytest.raises(ValueError, match="part"):
                CORE.receive(ours.fileno(), bytearray(64), at, end, 1)


@pytest.mark.core
def test_more_than_can_be_counted_is_refused() -> None:
    assert CORE is not None
    endless = b"*9223372036854775807\r\n"
    assert CORE.ends(endless, 0, len(endless), 1) == (len(endless), 2**63 - 1, False)
    with pytest.raises(ValueError, match="reply"):
        CORE.ends(2 * endless, 0, 2 * len(endless), 2)


@pytest.mark.core
def test_what_the_system_does_not_take_is_left() -> None:
    assert CORE is not None
    ours, theirs = socket.socketpair()
    with ours, theirs:
        data = bytes(1 << 24)
        sent = CORE.push(ours.fileno(), data)
        assert 0 < sent < len(data)
        assert CORE.push(ours.fileno(), data) == 0
    with pytest.raises(OSError, match="descriptor"):
        CORE.push(ours.fileno(), b"")
