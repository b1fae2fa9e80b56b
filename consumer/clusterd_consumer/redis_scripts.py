"""Lua scripts on one Redis or on a Redis Cluster: called by hash, loaded where a server does not know them.

A script declares one key, the base name of its shard. Its other keys begin with it and so share its hash slot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError

from clusterd_consumer.redis_connection import Client, translated

#: With this line Redis 7 refuses a key of another slot; without it, it only fails when that slot lives elsewhere.
HEADER: Final = "#!lua\n"


class Script:
    """A Lua script and its hash."""

    def __init__(self, name: str, body: str) -> None:
        self.name = name
        self.text = HEADER + body
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class Calls:
    """Runs scripts: one, or one on each of several shards at once."""

    def __init__(self, client: Client) -> None:
        self._spread = isinstance(client, RedisCluster)
        self._client: Any = client  # the client library leaves half of these methods without types

    def run(self, script: Script, base: str, arguments: Sequence[Any] = ()) -> Any:
        """Run a script on the shard named by ``base``."""
        with translated():
            try:
                return self._client.execute_command("EVALSHA", script.sha, 1, base, *arguments)
            except NoScriptError:
                return self._client.execute_command("EVAL", script.text, 1, base, *arguments)

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
        """Run scripts on several shards; a node is asked once for all its shards, and the nodes one after the other."""
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
                pipe.execute_command("EVALSHA", script.sha, 1, base, *arguments)
            return list(pipe.execute(raise_on_error=False))
