"""Functions on one Redis or on a Redis Cluster: libraries of Lua (Redis 7), loaded where a server does not know them.

A library is parsed once a server, so that its tables and closures live from call to call; what belongs to one call is
set anew by `begin`, below. It is named by the hash of its text: versions live side by side. Replicas get it by
replication. Each function declares one key, the base name of its shard; the other keys begin with it and so share its
hash slot, and Redis refuses one of another slot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from redis.cluster import RedisCluster
from redis.exceptions import ResponseError

from clusterd_consumer.redis_connection import Client, translated

#: What a library is wrapped in. While it is loaded Redis lends it nothing but `register_function`, so it is built at
#: its first call. A file defines its functions by `define(name, function(ARGV) … end)`; one that keeps something for the
#: time of a call adds to `resets` how the next call begins.
WRAPPER: Final = """#!lua name={name}
local BASE, call, functions
local resets = {{}}
local function define(name, run) functions[name] = run end
local function build()
functions = {{}}
{body}
end
local function run(name, keys, arguments)
  BASE, call = keys[1], redis.call
  if not functions then build() end
  for at = 1, #resets do resets[at]() end
  return functions[name](arguments)
end
{registered}
"""
REGISTERED: Final = (
    """redis.register_function('{library}_{name}', function(keys, ARGV) return run('{name}', keys, ARGV) end)"""
)
#: What a server answers that does not know a function.
_UNKNOWN: Final = "Function not found"


class Library:
    """Lua functions that share their text: each file in a scope of its own, behind those that all share."""

    def __init__(self, name: str, shared: Sequence[str], functions: Mapping[str, str]) -> None:
        body = "\n".join((*shared, *(f"do\n{text}\nend" for text in functions.values())))
        digest = hashlib.sha1((WRAPPER + body).encode(), usedforsecurity=False).hexdigest()
        self.name = f"clusterd_{name}_{digest[:16]}"
        registered = "\n".join(REGISTERED.format(library=self.name, name=function) for function in functions)
        self.text = WRAPPER.format(name=self.name, body=body, registered=registered)


class Script:
    """A function of a library."""

    def __init__(self, library: Library, name: str) -> None:
        self.library = library
        self.name = name
        self.function = f"{library.name}_{name}"


class Calls:
    """Runs functions: one, or one on each of several shards at once."""

    def __init__(self, client: Client) -> None:
        self._spread = isinstance(client, RedisCluster)
        self._client: Any = client  # the client library leaves half of these methods without types

    def run(self, script: Script, base: str, arguments: Sequence[Any] = ()) -> Any:
        """Run a function on the shard named by ``base``."""
        with translated():
            node = self._node(base)
            try:
                return node.execute_command("FCALL", script.function, 1, base, *arguments)
            except ResponseError as error:
                if _UNKNOWN not in str(error):
                    raise
            node.execute_command("FUNCTION", "LOAD", "REPLACE", script.library.text)
            return node.execute_command("FCALL", script.function, 1, base, *arguments)

    def command(self, name: str, key: str, *arguments: Any) -> Any:
        """Run a command on one key."""
        with translated():
            return self._client.execute_command(name, key, *arguments)

    def used_memory(self) -> int:
        """Return the bytes that the server, or all primaries of the cluster, use."""
        with translated():
            if not self._spread:
                return int(self._client.info("memory")["used_memory"])
            nodes = [self._client.get_redis_connection(node) for node in self._client.get_primaries()]
            return sum(int(node.info("memory")["used_memory"]) for node in nodes)

    def run_all(self, calls: Iterable[tuple[Script, str, Sequence[Any]]]) -> list[Any]:
        """Run functions on several shards; a node is asked once for all its shards, the nodes one after the other."""
        todo = list(calls)
        if len(todo) == 1:
            return [self.run(*todo[0])]
        groups: dict[Any, list[int]] = {}
        for place, (_, base, _) in enumerate(todo):
            groups.setdefault(self._node(base), []).append(place)
        replies: list[Any] = [None] * len(todo)
        for node, places in groups.items():
            for place, reply in zip(places, self._pipelined(node, [todo[p] for p in places]), strict=True):
                known = not isinstance(reply, Exception)
                replies[place] = reply if known else self.run(*todo[place])
        return replies

    def _node(self, base: str) -> Any:
        if self._spread:
            node = self._client.get_node_from_key(base)
            return self._client.get_redis_connection(node)
        return self._client

    def _pipelined(self, node: Any, calls: Sequence[tuple[Script, str, Sequence[Any]]]) -> list[Any]:
        with translated(), node.pipeline(transaction=False) as pipe:
            for script, base, arguments in calls:
                pipe.execute_command("FCALL", script.function, 1, base, *arguments)
            return list(pipe.execute(raise_on_error=False))
