"""Redis as the feed: the hash ``<prefix>rules`` for what is known, the streams of rules and verdicts for what is new.

Known pages are read from the time asked for on: an entry's id begins with the time at which it was published. The
streams' ends are noted before the hash is asked, so that no change falls between the two. One host is read at a
time, when the crawl meets it: a store may know very many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from clusterd_crawler import topics
from clusterd_crawler.redis_client import ANSWER_SECONDS, connect, translated
from clusterd_crawler.subscribe.contract import News

#: Entries of a stream read together.
PORTION: Final = 500


class RedisFeed:
    """One client that follows two streams."""

    def __init__(self, url: str, prefix: str, known_since: int | None = None) -> None:
        self._url = url
        self._prefix = prefix
        self._in_turn = url.startswith("redis+cluster://")
        self._topics = {topics.stream(prefix, topic): topic for topic in (topics.RULES, topics.VERDICTS)}
        self._client: Any = connect(url)
        with translated(url):
            self._ends = {stream: self._end(stream) for stream in self._topics}
        if known_since is not None:
            stream = topics.stream(prefix, topics.KNOWN)
            self._topics[stream] = topics.KNOWN
            self._ends[stream] = f"{known_since}-0".encode()

    def poll(self, seconds: float) -> Sequence[News]:
        """See the contract."""
        with translated(self._url):
            return self._read(min(seconds, ANSWER_SECONDS / 2))

    def _end(self, stream: str) -> bytes:
        last = self._client.xrevrange(stream, count=1)
        return last[0][0] if last else b"0-0"

    def known(self, host: str) -> bytes | None:
        """See the contract."""
        with translated(self._url):
            rules: bytes | None = self._client.hget(f"{self._prefix}rules", host)
            return rules

    def _read(self, seconds: float) -> list[News]:
        """Wait on the streams: together, or in turn on a cluster, whose slots they do not share."""
        turns = [[stream] for stream in self._ends] if self._in_turn else [list(self._ends)]
        news: list[News] = []
        for streams in turns:
            wait = 1 if news else max(1, int(1000 * seconds / len(turns)))
            ends = {stream: self._ends[stream] for stream in streams}
            for name, entries in self._client.xread(ends, count=PORTION, block=wait):
                news.extend(self._taken(name.decode(), entries))
        return news

    def _taken(self, stream: str, entries: Sequence[tuple[bytes, dict[bytes, bytes]]]) -> Iterator[News]:
        for offset, entry in entries:
            self._ends[stream] = offset
            key, value = entry.get(topics.FIELD_KEY, b""), entry.get(topics.FIELD_VALUE, b"")
            yield News(self._topics[stream], key, value)

    def close(self) -> None:
        """See the contract."""
        with translated(self._url):
            self._client.close()
