"""Redis as the feed: the hash ``<prefix>rules`` for what is known, the streams of rules and verdicts for what is new.

Known pages are read from the time asked for on: an entry's id begins with the time at which it was published. The
streams' ends are noted before the hash is asked, so that no change falls between the two. Hosts are asked for when the
crawl meets them: a store may know very many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from clusterd_crawler import topics
from clusterd_crawler.servers.redis_address import is_cluster
from clusterd_crawler.servers.redis_client import ANSWER_SECONDS, Held, connect, translated
from clusterd_crawler.subscribe.contract import News

#: Entries of a stream read together.
PORTION: Final = 500

#: Entries of a stream: the offset and the fields of each.
Entries = Sequence[tuple[bytes, dict[bytes, bytes]]]


class RedisFeed:
    """One client that follows the streams."""

    def __init__(
        self, url: str, prefix: str, known_since: int | None = None, ends: dict[str, bytes] | None = None
    ) -> None:
        """``ends``: stream → up to where it was read, by earlier clients and from now on by this one."""
        self._url = url
        self._prefix = prefix
        self._in_turn = is_cluster(url)
        self._topics = {topics.stream(prefix, topic): topic for topic in (topics.RULES, topics.VERDICTS)}
        self._client: Any = connect(url)
        self._held = None if self._in_turn else Held(self._client)
        self._ends = {} if ends is None else ends
        with translated(url):
            for stream in self._topics.keys() - self._ends.keys():
                self._ends[stream] = self._end(stream)
        if known_since is not None:
            stream = topics.stream(prefix, topics.KNOWN)
            self._topics[stream] = topics.KNOWN
            self._ends.setdefault(stream, f"{known_since}-0".encode())

    def poll(self, seconds: float) -> Sequence[News]:
        """See the contract."""
        with translated(self._url):
            return self._read(min(seconds, ANSWER_SECONDS / 2))

    def _end(self, stream: str) -> bytes:
        last = self._client.xrevrange(stream, count=1)
        return last[0][0] if last else b"0-0"

    def known(self, hosts: Sequence[str]) -> list[bytes | None]:
        """See the contract."""
        with translated(self._url):
            rules: list[bytes | None] = self._client.hmget(f"{self._prefix}rules", hosts)
            return rules

    def _read(self, seconds: float) -> list[News]:
        """Wait on the streams: together, or in turn on a cluster, whose slots they do not share."""
        turns = [[stream] for stream in self._ends] if self._in_turn else [list(self._ends)]
        news: list[News] = []
        reached: dict[str, bytes] = {}
        for streams in turns:
            wait = 1 if news else max(1, int(1000 * seconds / len(turns)))
            ends = {stream: self._ends[stream] for stream in streams}
            for name, entries in self._entries(ends, wait):
                stream = name.decode()
                news.extend(self._news(stream, entry) for _, entry in entries)
                reached[stream] = entries[-1][0]
        self._ends.update(reached)  # only now: where one stream does not answer, the others are read again
        return news

    def _entries(self, ends: dict[str, bytes], wait: int) -> Iterable[tuple[bytes, Entries]]:
        """Return what streams hold behind these ends, after so many milliseconds where that is nothing."""
        if self._held is None:
            found: Iterable[tuple[bytes, Entries]] = self._client.xread(ends, count=PORTION, block=wait)
            return found
        asked = ("XREAD", "COUNT", PORTION, "BLOCK", wait, "STREAMS", *ends, *ends.values())
        streams = self._held.execute(asked) or ()
        return [
            (stream, [(offset, dict(zip(fields[::2], fields[1::2], strict=True))) for offset, fields in entries])
            for stream, entries in streams
        ]

    def _news(self, stream: str, entry: dict[bytes, bytes]) -> News:
        return News(self._topics[stream], entry.get(topics.FIELD_KEY, b""), entry.get(topics.FIELD_VALUE, b""))

    def close(self) -> None:
        """See the contract."""
        with translated(self._url):
            self._client.close()  # and the connection that is held
