"""Functions on one Redis or on a Redis Cluster: libraries of Lua (Redis 7), loaded where a server does not know them.

A library is parsed once a server, so that its tables and closures live from call to call; what belongs to one call is
set anew by `begin`, below. It is named by the hash of its text: versions live side by side. Replicas get it by
replication. Each function declares one key, the base name of its shard; the other keys begin with it and so share its
hash slot, and Redis refuses one of another slot.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import Any, Final, NamedTuple

import hiredis
from clusterd_crawler.servers.redis_errors import FOREIGN, REPLICA, unreachable
from redis import RedisError
from redis.cluster import RedisCluster
from redis.crc import key_slot
from redis.exceptions import RedisClusterException

from clusterd_consumer.redis_connection import Client, servers, translated, unable
from clusterd_consumer.redis_failover import PAUSE, Failover, Patience, look_around
from clusterd_consumer.redis_lines import RUN_ID, Line, Lines, Refused

#: What a library is wrapped in. While it is loaded Redis lends it nothing but `register_function`, so it is built at
#: its first call. A file defines its functions by `define(name, function(ARGV) … end)`; one that keeps something for
#: the time of a call adds to `resets` how the next call begins.
WRAPPER: Final = """#!lua name={name}
local BASE, call, functions
local resets = {{}}
local function build()
local built = {{}}
local function define(name, run) built[name] = run end
{body}
functions = built
end
local function run(name, keys, arguments)
  BASE, call = keys[1], redis.call
  if not functions then build() end
  for at = 1, #resets do resets[at]() end
  return functions[name](arguments)
end
{registered}
"""
REGISTERED: Final = """redis.register_function{{function_name = '{library}_{name}', flags = {{{flags}}},
  callback = function(keys, ARGV) return run('{name}', keys, ARGV) end}}"""
#: Flags of functions that never write, or that mostly free: a Redis that is full lets them run.
READS: Final = "'no-writes'"
FREES: Final = "'allow-oom'"
#: What a server answers that does not know a function.
UNKNOWN: Final = "Function not found"
#: What the old node of a slot that moves to another answers, of keys that have left, or of which some have.
IN_TRANSIT: Final = ("ASK ", "TRYAGAIN")
#: Commands, and reads of several (`Request.name`), that change nothing.
READ_ONLY: Final = frozenset({"GET", "GETRANGE", "HGETALL", "HMGET", "INFO", "LRANGE", "MGET", "SSCAN", "look"})
#: Tries of what a server could not do before it learnt a library, or which was meant for another node.
TRIES: Final = 5


class Library:
    """Lua functions that share their text: each file in a scope of its own, behind those that all share.

    What they share is one Lua function, which may have 200 locals with those of the longest file; a server refuses the
    library where there are more. What a shared file needs for itself alone stands in a ``do`` block.

    ``questions``: functions that change nothing that anybody is told, beside those that are flagged to write nothing.
    """

    def __init__(
        self,
        name: str,
        shared: Sequence[str],
        functions: Mapping[str, str],
        flags: Mapping[str, str] | None = None,
        questions: Collection[str] = (),
    ) -> None:
        flags = flags or {}
        self.questions = frozenset(questions).union(function for function, flag in flags.items() if flag == READS)
        body = "\n".join((*shared, *(f"do\n{text}\nend" for text in functions.values())))
        digest = hashlib.sha1(f"{WRAPPER}{body}{sorted(flags.items())}".encode(), usedforsecurity=False).hexdigest()
        self.name = f"clusterd_{name}_{digest[:16]}"
        registered = "\n".join(
            REGISTERED.format(library=self.name, name=function, flags=flags.get(function, "")) for function in functions
        )
        self.text = WRAPPER.format(name=self.name, body=body, registered=registered)

    @classmethod
    def of_files(
        cls,
        name: str,
        folder: Traversable,
        shared: Sequence[str],
        functions: Sequence[str],
        before: str = "",
        flags: Mapping[str, str] | None = None,
        questions: Collection[str] = (),
    ) -> Library:
        """Return the library of a folder's Lua files, by their names; ``before``: text of another folder."""

        def text(file: str) -> str:
            return (folder / f"{file}.lua").read_text("utf-8")

        texts = {function: text(function) for function in functions}
        return cls(name, [before, *map(text, shared)], texts, flags, questions)


class Script:
    """A function of a library."""

    def __init__(self, library: Library, name: str) -> None:
        self.library = library
        self.name = name
        self.function = f"{library.name}_{name}".encode()


class Request(NamedTuple):
    """Packed commands for the server that holds a key, how many replies they have, and the library that they need.

    ``parse`` makes of the bytes of these replies, which it must not keep, what is returned for them.
    """

    name: str
    key: str
    data: bytes
    replies: int = 1
    library: Library | None = None
    parse: Callable[[memoryview], Any] | None = None

    @property
    def asks(self) -> bool:
        """Whether nothing is changed by it: it may be asked again, whatever became of it."""
        return self.name in (self.library.questions if self.library else READ_ONLY)


def function(script: Script, base: str, arguments: Sequence[Any] = ()) -> Request:
    """Return the call of a function on the shard named by ``base``."""
    data = hiredis.pack_command((b"FCALL", script.function, 1, base, *arguments))
    return Request(script.name, base, data, 1, script.library)


def command(name: str, key: str, *arguments: Any) -> Request:
    """Return a command whose first argument is its key."""
    return Request(name, key, hiredis.pack_command((name, key, *arguments)))


def process(key: str) -> Request:
    """Return the question which process answers for a key: a text that another one's differs from."""
    return Request("INFO", key, b"INFO server\r\n", parse=_run_id)


def packed_numbers(numbers: Sequence[int]) -> bytes:
    """Return numbers as functions read them: 4 bytes each."""
    return struct.pack(f"<{len(numbers)}I", *numbers)


class Calls:
    """Asks servers: all that is asked together is sent at once, to every node, and then read from every node.

    ``transit``: seconds for which a slot that moves to another node is waited for, and, by what changes nothing, a
    primary of a cluster or behind sentinels that is away, until it is back or its replica has taken its place. 0:
    whoever asks is told, and waits.
    """

    def __init__(self, client: Client, transit: float = 0.0) -> None:
        self._cluster: Any = client if isinstance(client, RedisCluster) else None
        self._client: Any = client  # the client library leaves half of these methods without types
        self._lines: dict[Any, Lines] = {}
        #: Slot → node.
        self._nodes: dict[int, Any] = {}
        self._transit = transit
        self._failover = Failover(client, transit)

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        """Return the reply to each request, for one of several replies their list.

        A server does in order what it is asked. Where one does not know a function, or a slot has moved, what it
        refused is asked again, with all that was asked behind it of the same shard; what another shard did is done.
        """
        patience = Patience(self._client, self._transit)
        while True:
            try:
                return self._answers(requests, TRIES, patience.until)
            except (RedisError, RedisClusterException) as failure:  # as `translated` does, at a tenth of its cost
                if not unable(failure):
                    raise
                if not (all(request.asks for request in requests) and patience.outlasts(failure)):
                    raise unreachable(failure) from failure
            self._look_around()

    def run(self, script: Script, base: str, arguments: Sequence[Any] = ()) -> Any:
        """Run a function on the shard named by ``base``."""
        return self.ask([function(script, base, arguments)])[0]

    def command(self, name: str, key: str, *arguments: Any) -> Any:
        """Run a command on one key."""
        return self.ask([command(name, key, *arguments)])[0]

    def run_all(self, calls: Iterable[tuple[Script, str, Sequence[Any]]]) -> list[Any]:
        """Run functions on several shards."""
        return self.ask([function(*call) for call in calls])

    def used_memory(self) -> int:
        """Return the bytes that the server, or all primaries of the cluster, use."""

        def used() -> int:
            return sum(int(server.info("memory")["used_memory"]) for server in servers(self._client))

        with translated():
            return self._failover(used)

    def processes(self, keys: Sequence[str]) -> list[str]:
        """Return which process of a server answers for each key: another one after a restart or a failover."""
        with translated():
            nodes = [self._node(key) if self._cluster else self._client for key in keys]
            known = {node: str(node.info("server")["run_id"]) for node in set(nodes)}
        return [known[node] for node in nodes]

    def process(self) -> str:
        """Return which process of the one server answers, as far as its lines tell; "" for a cluster."""
        if self._cluster:
            return ""
        lines = self._lines_to(self._client)
        with translated():
            lines.give(lines.take())  # a line at rest is looked at: who was restarted has closed it
        return lines.server

    def close(self) -> None:
        """Free the connections."""
        for lines in list(self._lines.values()):
            lines.close()

    def _answers(self, requests: Sequence[Request], tries: int, until: float) -> list[Any]:
        """Ask, and again what is refused, so many tries at most; a slot that moves is waited for ``until`` a time."""
        replies = self._exchange_all(requests)
        asked: Sequence[int] = range(len(requests))
        part, answers = requests, replies
        while refused := _refused(part, answers):
            if str(refused[0][1]).startswith(IN_TRANSIT) and time.monotonic() < until:
                time.sleep(PAUSE)
            elif tries > 1:
                self._learn(refused)
                tries -= 1
            else:
                raise refused[0][1]
            asked = [asked[place] for place in _from_the_first_refused(part, answers)]
            part = [requests[place] for place in asked]
            answers = self._exchange_all(part)
            for place, answer in zip(asked, answers, strict=True):
                replies[place] = answer
        return replies

    def _exchange_all(self, requests: Sequence[Request]) -> list[Any]:
        return self._exchange(requests) if self._cluster else self._exchange_with_one(requests)

    def _exchange(self, requests: Sequence[Request]) -> list[Any]:
        """Send everything to all nodes of a cluster, then read from all nodes."""
        parts = self._by_node(requests)
        taken: list[tuple[Lines, Line, list[int]]] = []
        try:
            for lines, places in parts:
                taken.append((lines, lines.take(), places))
            for _, line, places in taken:
                line.send(b"".join([requests[place].data for place in places]))
            replies: list[Any] = [None] * len(requests)
            for _, line, places in taken:
                line.wait(sum([requests[place].replies for place in places]))
                for place in places:
                    replies[place] = line.read(requests[place].replies, requests[place].parse)
        except BaseException as error:
            for _, line, _ in taken:
                line.close()
            if isinstance(error, RedisError):
                self._look_around()
            raise
        for lines, line, _ in taken:
            lines.give(line)
        return replies

    def _exchange_with_one(self, requests: Sequence[Request]) -> list[Any]:
        """Send everything to the one server, then read."""
        if not requests:
            return []
        lines = self._lines_to(self._client)
        line = lines.take()
        try:
            if len(requests) > 1:
                line.send(b"".join([request.data for request in requests]))
                line.wait(sum([request.replies for request in requests]))
            else:
                line.send(requests[0].data)
            replies = [line.read(request.replies, request.parse) for request in requests]
        except BaseException:
            line.close()
            raise
        lines.give(line)
        return replies

    def _by_node(self, requests: Sequence[Request]) -> list[tuple[Lines, list[int]]]:
        groups: dict[Any, list[int]] = {}
        for place, request in enumerate(requests):
            groups.setdefault(self._node(request.key), []).append(place)
        return [(self._lines_to(node), places) for node, places in groups.items()]

    def _node(self, key: str) -> Any:
        """Return the client of the node of a cluster that holds a key's slot."""
        slot = key_slot(key.encode())
        node = self._nodes.get(slot)
        if node is None:
            node = self._cluster.get_redis_connection(self._cluster.get_node_from_key(key))
            self._nodes[slot] = node
        return node

    def _lines_to(self, node: Any) -> Lines:
        lines = self._lines.get(node)
        if lines is None:
            lines = self._lines.setdefault(node, Lines(node.connection_pool))
        return lines

    def _learn(self, refused: Sequence[tuple[Request, Refused]]) -> None:
        """Learn what servers lacked that refused something, or where it is now; raise what cannot be learnt."""
        request, error = refused[0]
        if UNKNOWN in str(error):
            self._load([request for request, other in refused if UNKNOWN in str(other)])
        elif self._cluster and str(error).startswith("MOVED"):
            self._look_around()
        elif str(error).startswith(FOREIGN):
            raise unreachable(error, key=request.key) from error
        else:
            if str(error).startswith(REPLICA):  # it was the primary: whoever connects anew is told who is now
                self.close()
            raise error

    def _look_around(self) -> None:
        self._nodes.clear()
        look_around(self._cluster)

    def _load(self, requests: Sequence[Request]) -> None:
        """Teach every node the functions that it was asked for: a new cluster has as many that know none as nodes."""
        wanted = {
            (self._node(request.key) if self._cluster else self._client, request.library.text)
            for request in requests
            if request.library
        }
        for node, text in wanted:
            node.execute_command("FUNCTION", "LOAD", "REPLACE", text)


def _refused(requests: Sequence[Request], replies: Sequence[Any]) -> list[tuple[Request, Refused]]:
    """Return the requests that were answered by an error, and the errors."""
    if Refused not in map(type, replies):
        return []
    return [(request, reply) for request, reply in zip(requests, replies, strict=True) if reply.__class__ is Refused]


def _from_the_first_refused(requests: Sequence[Request], replies: Sequence[Any]) -> list[int]:
    """Return the places of refused requests, and of those behind one of the same shard: each shard keeps its order."""
    places, shards = [], set()
    for place, (request, reply) in enumerate(zip(requests, replies, strict=True)):
        if reply.__class__ is Refused or _shard(request.key) in shards:
            places.append(place)
            shards.add(_shard(request.key))
    return places


def _run_id(reply: memoryview) -> str:
    found = RUN_ID.search(reply)
    return found[1].decode() if found else ""


def _shard(key: str) -> str:
    """Return what of a key says which slot it is in: up to its hash tag's end, or all."""
    return key[: key.find("}") + 1] or key
