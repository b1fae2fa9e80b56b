"""The rule book on Redis or Redis Cluster. What belongs to one host lies in one slot; nothing needs two hosts at once.

    <prefix>rb:{host}:log      LIST    blocks of pages (`evidence`), oldest first
    <prefix>rb:{host}:meta     HASH    generation: when the log was begun (Unix ms), plus the times it was
                                       rewritten; pages: pages in it; shared: fetch time up to which they were
                                       published to the crawls
    <prefix>rb:{host}:met      HASH    generation and crawl, as 7:CRAWL → what it has met on pages that were cut from
                                       the log then (`met`); nothing in 0:CRAWL, where that is kept no more
    <prefix>rb:{host}:lease    STRING  who learns the host, expires by itself
    <prefix>rb:{host}:book     HASH    version, rules (the published set), entries (`entries`), revision: times saved;
                                       announced: the version that has arrived in the log
    <prefix>rb:{host}:sites    SET     scheme and host of the sites of a group, which is named by its domain
    <prefix>rb:changed         HASH    host with evidence that no learner has looked at → pages of it
    <prefix>rb:ids             HASH    rule id → host
    <prefix>rb:identity        STRING  by what pages are the same, as daemons were told last (`services`)
    <prefix>rb:{:skips}:…      log, counts, seen, before (lua/skips.lua)
    <prefix>rules              HASH    host → the published set, where crawlers load it from at their start

``host`` is percent-encoded, so that no host name can end the hash tag or be taken for ``:skips``; where there is none,
as of ``file:///a``, it is a ``%``, since an empty hash tag is none.
What is asked for each page of a batch, or for each host that is learned, goes by `Calls`, which take a fifth of the
client library's time; so do the functions (`lua`).
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from hashlib import blake2b
from importlib.resources import files
from itertools import accumulate
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from urllib.parse import quote

from clusterd_consumer.insisting import Insist, once
from clusterd_consumer.redis_connection import Client, translated
from clusterd_consumer.redis_scripts import READS, Calls, Library, Script, command
from clusterd_crawler.clock import now_ms
from clusterd_crawler.errors import MessageError, WrongInput
from clusterd_crawler.message import SkipReport, decode, encode
from clusterd_crawler.rules import RuleSet

from clusterd.learning.contract import Page
from clusterd.learning.rulebook.blocks import BLOCK_PAGES, pack, unpack
from clusterd.learning.rulebook.contract import SKIPS_LIMIT, Entry, Evidence, HostRules
from clusterd.learning.rulebook.entries import entries_from_bytes, entries_to_bytes, rules_from_bytes, rules_to_bytes
from clusterd.learning.rulebook.met import BYTES
from clusterd.portions import portions

log = logging.getLogger(__name__)

FUNCTIONS: Final = ("evidence", "lease", "looked_at", "offer", "rewrite", "save", "skips")
LIBRARY: Final = Library.of_files(
    "rules", files("clusterd.learning.rulebook") / "lua", (), FUNCTIONS, flags={"evidence": READS}
)
SCRIPTS: Final = {name: Script(LIBRARY, name) for name in FUNCTIONS}
#: Seconds after its last page that a host's evidence is forgotten (90 days): hosts seen once do not pile up. Its
#: rules stay.
EVIDENCE_SECONDS: Final = 90 * 86_400
#: Entries of the skip log, hosts and rules fetched at a time (all of a broad crawl's at once would hold Redis up), and
#: skips applied in one call.
PAGE: Final = 1_000
#: Hosts whose entries are fetched at a time: an entry holds up to some kB of evidence, a host 500 retired ones.
HOSTS: Final = 100
#: Bytes of a skip's identity in the set of those seen.
IDENTITY_BYTES: Final = 12

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def _asked(
    question: Callable[Concatenate[RuleBook, Given], Answer],
) -> Callable[Concatenate[RuleBook, Given], Answer]:
    """Let a question be asked as the book is told to (`RuleBook.insist`)."""
    once_asked = translated()(question)

    @wraps(question)
    def asked(book: RuleBook, /, *given: Given.args, **named: Given.kwargs) -> Answer:
        return book.insist(lambda: once_asked(book, *given, **named))

    return asked


class RuleBook:
    """Where evidence, rules and skips are kept. Client-library errors leave as `errors.Unreachable`.

    Safe with many workers: every change is one function, or appends, and may be repeated after a crash (at-least-once
    delivery).
    """

    def __init__(
        self,
        client: Client,
        prefix: str,
        *,
        skips_limit: int = SKIPS_LIMIT,
        insist: Insist = once,
        transit: float = 0.0,
    ) -> None:
        """``insist``: how what changes nothing is asked; what was asked for in parts, from the beginning.

        ``transit``: seconds for which a slot that moves to another node of a Redis Cluster is waited for.
        """
        #: The client's types say "awaitable or value" of every answer; here it is always the value.
        self._client: Any = client
        self._calls = Calls(client, transit)
        self._prefix = prefix
        self._skips_limit = skips_limit
        self.insist = insist
        self._changed, self._skips = f"{prefix}rb:changed", f"{prefix}rb:{{:skips}}"

    def close(self) -> None:
        """Free its connections, but for the client's."""
        self._calls.close()

    def _base(self, host: str) -> str:
        return f"{self._prefix}rb:{{{quote(host, safe='') or '%'}}}"

    def _key(self, host: str, kind: str) -> str:
        return f"{self._base(host)}:{kind}"

    def _skip_key(self, kind: str) -> str:
        return f"{self._skips}:{kind}"

    def _run(self, function: str, base: str, *args: str | int | bytes) -> Any:
        return self._calls.run(SCRIPTS[function], base, args)

    def add_pages(self, pages: Mapping[str, Sequence[Page]]) -> None:
        """Append to the evidence of hosts (host → pages) and mark the hosts as changed."""
        asked = []
        for host, added in pages.items():
            base = self._base(host)
            log, meta, met = f"{base}:log", f"{base}:meta", f"{base}:met"
            asked += [
                command("RPUSH", log, pack(added)),
                # Of a log that expired, or that the store has lost, no mark may be taken for one of that which follows.
                command("HSETNX", meta, "generation", now_ms()),
                command("HINCRBY", meta, "pages", len(added)),
                *(command("EXPIRE", key, EVIDENCE_SECONDS) for key in (log, meta, met)),
                command("HINCRBY", self._changed, host, len(added)),
            ]
        self._calls.ask(asked)

    @_asked
    def evidence(self, host: str, after: str = "") -> Evidence:
        """Return what was added after a mark (all, where the mark is empty or the log was rewritten since).

        A mark is ``generation:blocks:pages``.
        """
        generation, _, rest = after.partition(":")
        start = rest.partition(":")[0] or "0"
        found = self._run("evidence", self._base(host), generation, start)
        now, total, blocks, continued, read, was_cut, version = found
        pages = tuple(page for block in read for page in _readable(host, block))
        mark = f"{now.decode()}:{blocks}:{total.decode()}"
        saved = int(version) if version else None
        return Evidence(pages, mark, bool(continued), int(total), blocks, bool(was_cut), saved)

    @_asked
    def grown(self, marks: Mapping[str, str]) -> list[str]:
        """Return the hosts whose evidence is another than at these marks (host → mark), in one round trip."""
        pipe = self._client.pipeline(transaction=False)
        for host in marks:
            pipe.hmget(self._key(host, "meta"), "generation", "pages")
        found = [[(value or b"0").decode() for value in values] for values in pipe.execute()]
        return [host for (host, mark), now in zip(marks.items(), found, strict=True) if mark.split(":")[::2] != now]

    @translated()
    def rewrite(self, host: str, upto: str, pages: Sequence[Page], gone: Mapping[str, bytes] | None = None) -> str:
        """Put ``pages`` in the place of the log up to a mark; return the mark after them.

        ``gone``: what crawls have met on pages that these lack (`met.cut_contents`), which is kept of them. Empty, with
        nothing done, where another has rewritten the log since.
        """
        generation, replaced_blocks, replaced_pages = upto.split(":")
        blocks = [pack(some) for some in portions(pages, BLOCK_PAGES)]
        met = [part for crawl, contents in (gone or {}).items() for part in (crawl, contents)]
        given = (len(pages), len(met), *met, *blocks)
        if not self._run("rewrite", self._base(host), generation, replaced_blocks, replaced_pages, *given):
            return ""
        self._forget_met(host)
        return f"{int(generation) + 1}:{len(blocks)}:{len(pages)}"

    def _forget_met(self, host: str) -> None:
        """Keep what was met by the crawls of which pages were cut last, and of those before them their names."""
        key = self._key(host, "met")
        names: list[bytes] = self._client.hkeys(key)
        pipe = self._client.pipeline(transaction=False)
        for name in names:
            pipe.hstrlen(key, name)
        of: dict[bytes, list[tuple[int, int, bytes]]] = {}
        for name, size in zip(names, pipe.execute(), strict=True):
            cut_in, _, crawl = name.partition(b":")
            of.setdefault(crawl, []).append((int(cut_in), size, name))
        latest = sorted(of, key=lambda crawl: max(of[crawl]), reverse=True)
        held = accumulate(sum(size for _, size, _ in of[crawl]) for crawl in latest)
        for crawl, size in list(zip(latest, held, strict=True))[1:]:
            if size > BYTES and (gone := [name for cut_in, _, name in of[crawl] if cut_in]):
                self._client.hset(key, b"0:" + crawl, b"")
                self._client.hdel(key, *gone)

    @_asked
    def met(self, host: str) -> dict[str, list[bytes]]:
        """Return what crawls have met on pages that were cut from the log, part by part.

        It is kept up to `met.BYTES`, of the crawls of which pages were cut last; of one before them a part is empty.
        """
        found: dict[str, list[bytes]] = {}
        for name, contents in self._client.hgetall(self._key(host, "met")).items():
            found.setdefault(name.partition(b":")[2].decode(), []).append(contents)
        return found

    @_asked
    def shared(self, host: str) -> int:
        """Return up to which fetch time (Unix ms) the host's pages were published to the crawls, 0 where none were."""
        return int(self._client.hget(self._key(host, "meta"), "shared") or 0)

    @translated()
    def note_shared(self, host: str, upto: int) -> None:
        """Note up to which fetch time the host's pages have been published."""
        self._client.hset(self._key(host, "meta"), "shared", upto)

    @_asked
    def changed(self) -> dict[str, int]:
        """Return the hosts with evidence that no learner has looked at, and how many pages of it each has."""
        found = self._client.hscan_iter(self._changed, count=PAGE)
        return {host.decode(): int(pages) for host, pages in found}

    def looked_at(self, host: str, pages: int) -> None:
        """Take so many pages off what is `changed` of a host, and the host where none is left."""
        self._run("looked_at", self._changed, host, pages)

    def lease(self, host: str, owner: str, seconds: float) -> bool:
        """Take or prolong the sole right to learn a host; False while another owner has it."""
        return bool(self._run("lease", self._base(host), owner, max(1, int(seconds * 1000))))

    def release(self, host: str, owner: str) -> None:
        """Give a lease back; nothing happens where it is another's by now."""
        self._run("lease", self._base(host), owner, 0)

    @_asked
    def load(self, host: str) -> HostRules:
        """Return what the book holds of a host's rules (`HostRules.empty` where nothing)."""
        rules, entries, revision = self._client.hmget(self._key(host, "book"), "rules", "entries", "revision")
        if rules is None:
            return HostRules.empty(host)
        return HostRules(rules_from_bytes(rules), entries_from_bytes(entries), int(revision or 0))

    def entries(self, hosts: Sequence[str]) -> Iterator[Entry]:
        """Yield every entry of these hosts, host by host, many hosts in a round trip."""
        for some in portions(hosts, HOSTS):
            for host, packed in zip(some, self._of_books(some, "entries"), strict=True):
                if packed is not None:
                    yield from _entries(host, packed)

    @_asked
    def version(self, host: str) -> int:
        """Return the version of a host's rules, 0 where there are none."""
        return int(self._client.hget(self._key(host, "book"), "version") or 0)

    def versions(self, hosts: Sequence[str]) -> list[int]:
        """Return the version of each host's rules, at once."""
        return [int(version or 0) for version in self._of_books(hosts, "version")]

    @_asked
    def _of_books(self, hosts: Sequence[str], field: str) -> list[bytes | None]:
        """Return a field of each host's book, in one round trip."""
        pipe = self._client.pipeline(transaction=False)
        for host in hosts:
            pipe.hget(self._key(host, "book"), field)
        found: list[bytes | None] = pipe.execute()
        return found

    @translated()
    def save(self, state: HostRules, before: HostRules) -> bool:
        """Store a host's rules where nobody has saved any since ``before`` was loaded; False where somebody has.

        The version stays where nothing that is published changed, and rises where the crawlers must be told (`turns`).
        Ids are added first and taken away last: a crash in between leaves ids too many, which the next save repeats.
        """
        host, ids = state.rules.host, f"{self._prefix}rb:ids"
        added = [rule for rule in state.entries if rule not in before.entries]
        if added:
            self._client.hset(ids, mapping=dict.fromkeys(added, host))
        rules, entries = rules_to_bytes(state.rules), entries_to_bytes(state)
        if not self._run("save", self._base(host), before.revision, state.rules.version, rules, entries):
            return False
        dropped = [rule for rule in before.entries if rule not in state.entries]
        if dropped:
            self._client.hdel(ids, *dropped)
        return True

    def offer(self, rules: RuleSet) -> None:
        """Put a rule set where crawlers load it from at their start, unless a later version lies there already."""
        self._run("offer", f"{self._prefix}rules", rules.host, rules.version, rules_to_bytes(rules))

    @_asked
    def offered(self) -> list[str]:
        """Return the hosts of which a set lies there, be it of exempted URLs alone."""
        return [host.decode() for host in self._client.hkeys(f"{self._prefix}rules")]

    @translated()
    def note_site(self, group: str, site: str) -> None:
        """Note that a group (a registrable domain) has a site (scheme and host)."""
        self._client.sadd(self._key(group, "sites"), site)

    @_asked
    def sites(self, group: str) -> list[str]:
        """Return the sites of a group, sorted."""
        return sorted(site.decode() for site in self._client.smembers(self._key(group, "sites")))

    @_asked
    def site_counts(self, groups: Sequence[str]) -> list[int]:
        """Return how many sites each group has, in one round trip."""
        pipe = self._client.pipeline(transaction=False)
        for group in groups:
            pipe.scard(self._key(group, "sites"))
        counts: list[int] = pipe.execute()
        return counts

    @translated()
    def note_announced(self, host: str, version: int) -> None:
        """Note that a version of a host's rules has arrived in the log."""
        self._client.hset(self._key(host, "book"), "announced", version)

    @_asked
    def announced(self, host: str) -> int:
        """Return the version of a host's rules that is known to have arrived in the log, 0 where none is."""
        return int(self._client.hget(self._key(host, "book"), "announced") or 0)

    @_asked
    def hosts(self) -> list[str]:
        """Return the hosts of which rules are known, retired ones included, sorted."""
        found = self._client.hscan_iter(f"{self._prefix}rb:ids", count=PAGE)
        return sorted({host.decode() for _, host in found})

    @_asked
    def host_of(self, rule: str) -> str | None:
        """Return the host of a rule id."""
        found = self._client.hget(f"{self._prefix}rb:ids", rule)
        return None if found is None else found.decode()

    def add_skips(self, reports: Sequence[SkipReport]) -> int:
        """Log and count skips, each once however often it is delivered; return how many were new."""
        new = 0
        for some in portions(reports, PAGE):
            args: list[str | int | bytes] = [self._skips_limit]
            for report in some:
                message = encode(report)
                args += (blake2b(message, digest_size=IDENTITY_BYTES).digest(), report.rule, message)
            new += int(self._run("skips", self._skips, *args))
        return new

    def skips(self, rule: str = "") -> Iterator[SkipReport]:
        """Yield the skips that can still be listed, in the order in which they arrived (of one rule)."""
        start, name = b"-", rule.encode()
        while entries := self._skip_entries(start):
            start = b"(" + entries[-1][0]
            for _, fields in entries:
                if name not in fields[b"m"]:  # most are of other rules; to read them would be most of the work
                    continue
                skip = decode(fields[b"m"])
                if isinstance(skip, SkipReport) and rule in {"", skip.rule}:
                    yield skip

    @_asked
    def _skip_entries(self, start: bytes) -> list[tuple[bytes, dict[bytes, bytes]]]:
        found: list[tuple[bytes, dict[bytes, bytes]]] = self._client.xrange(
            self._skip_key("log"), min=start, count=PAGE
        )
        return found

    @_asked
    def skip_counts(self) -> dict[str, int]:
        """Return the number of skips by rule since the beginning; no bound ever drops one."""
        counts = self._client.hscan_iter(self._skip_key("counts"), count=PAGE)
        return {rule.decode(): int(count) for rule, count in counts}


def _entries(host: str, packed: bytes) -> Iterable[Entry]:
    """Return a host's entries, none of those that cannot be read, as of a later version: nobody else's are lost."""
    try:
        return entries_from_bytes(packed).values()
    except (WrongInput, ValueError, zlib.error) as error:
        log.error("the rules of %s are passed over: %s", host, error)
        return ()


def _readable(host: str, block: bytes) -> Sequence[Page]:
    """Return the pages of a block, none of one that cannot be read: a host would learn nothing more for its sake."""
    try:
        return unpack(block)
    except MessageError as error:
        log.error("a block of the pages that %s learns from is passed over: %s", host, error)
        return ()
