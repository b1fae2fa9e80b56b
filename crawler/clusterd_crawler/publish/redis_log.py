"""Redis Streams as the log: one XADD a message to the topic's stream (`topics.stream`).

A stream lies in memory, so it is bounded. The daemon trims what it has read; while the stream holds `STREAM_LIMIT`
entries all the same, it takes no more and messages wait on the crawl's spool. A crawl never cuts off what is unread.
Nor is anything sent to a server that would evict the stream, or for its sake what the daemon keeps.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.publish.spool import Entry
from clusterd_crawler.servers.redis_address import is_cluster, shown
from clusterd_crawler.servers.redis_client import Held, connect, refuse_evicting, translated

#: Entries of the stream beyond which it counts as full: about 1 GB of pages with the default profile.
STREAM_LIMIT: Final = 500_000
#: Seconds between two looks whether the server would evict: its settings may change.
EVICTION_SECONDS: Final = 1.0


class RedisLog:
    """One client on one stream."""

    def __init__(self, url: str, stream: str, limit: int = STREAM_LIMIT) -> None:
        self._url = url
        self._stream = stream
        self._limit = limit
        #: Entries of the stream after the last batch; not known before the first. Who asks for it then does not send to
        #: a server that is loading its data, which may refuse the beginning of a batch and take the rest.
        self._length: int | None = None
        self._looked = -EVICTION_SECONDS
        self._client = connect(url)
        self._held = None if is_cluster(url) else Held(self._client)

    def send(self, entries: Sequence[Entry]) -> None:
        """See the contract; no entries only ask whether the server answers."""
        with translated(self._url):
            length = self._length
            if not entries or length is None or length + len(entries) > self._limit:
                length = self._length = int(self._client.xlen(self._stream))
            if length + len(entries) > self._limit:
                raise Unreachable(f"the stream {self._stream} is full: {length} entries that no daemon has read")
            self._refuse_eviction()
            if not entries:
                return
            added = (
                ("XADD", self._stream, "*", topics.FIELD_KEY, key, topics.FIELD_VALUE, value) for key, value in entries
            )
            self._length = int(self._execute([*added, ("XLEN", self._stream)]))

    def _refuse_eviction(self) -> None:
        """Look at the server now and then; on a cluster at the one that has the stream."""
        now, client = time.monotonic(), self._client
        if now - self._looked >= EVICTION_SECONDS:
            of_cluster = self._held is None
            server = client.get_redis_connection(client.get_node_from_key(self._stream)) if of_cluster else client
            refuse_evicting(server, f"Redis at {shown(self._url)}")
            self._looked = now

    def _execute(self, commands: Sequence[tuple[Any, ...]]) -> Any:
        """Return the answer to the last of some commands, having sent all of them at once."""
        if self._held is not None:
            return self._held.execute(*commands)
        with self._client.pipeline(transaction=False) as pipe:  # a cluster: its client finds the node
            for command in commands:
                pipe.execute_command(*command)
            return pipe.execute()[-1]

    def close(self) -> None:
        """See the contract."""
        with translated(self._url):
            self._client.close()  # and the connection that is held
