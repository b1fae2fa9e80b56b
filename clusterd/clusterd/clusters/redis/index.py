"""The index on one Redis or on a Redis Cluster, safe with many writers.

A batch of up to `PART` sketches takes three calls: `register` (homes of the pages' hosts: versions, texts, contents),
`propose` (every shard: sketches, postings, candidates), `link` (homes: verified edges, clusters, position; `linking`
and `spans` where there are several). Between them other workers may do what they like; what keeps the partition right:

- Write first, then look up: of two contents posted at once at least one is proposed the other.
- A content is pending from `register` to `link`. After a crash the log delivers again, and who meets a pending content
  posts and links it again; every step may be repeated.
- Candidates are verified here, by the stored sketches, whatever the postings said. A content that departed meanwhile is
  linked no more, and never lives again.
- Whatever the stream, a page costs a bounded number of steps: of each of its lists (6 or 8 smallest values, one in 64)
  at most `bound` others are proposed, of a common one `latest`; what departs in the call that brought it is not posted
  at all; and a worker that finds more than `BACKLOG` ghosts waiting, which would be proposed in vain, dismisses some
  itself.
- A ghost is dismissed only when it is not pending, so nobody posts it after it was withdrawn; one that stays pending
  is given up after `PATIENCE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Final

from clusterd_consumer.hash_tags import HOME
from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.redis_connection import Client, connect, translated
from clusterd_consumer.redis_scripts import Calls
from clusterd_consumer.resemblance import Estimate
from clusterd_consumer.transport.contract import Position
from clusterd_crawler.errors import Unreachable, WrongInput
from clusterd_crawler.servers.redis_address import is_cluster
from clusterd_crawler.sketch import Sketch, StreamSketch

from clusterd.clusters.contract import (
    DEFAULT_POLICIES,
    WITHOUT_WHOLE,
    Cluster,
    Hit,
    Look,
    Outcome,
    Policy,
    Split,
    Stream,
    Version,
)
from clusterd.clusters.redis.asking.questions import Questions
from clusterd.clusters.redis.founding import LAYOUT, SPREAD, founded, keeps_whole, scheme_of
from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.linking import Linker
from clusterd.clusters.redis.marks import Marks
from clusterd.clusters.redis.numbers import Numbers, go_on
from clusterd.clusters.redis.pending import Pending, moves_of, positions, tell
from clusterd.clusters.redis.policies import Policies
from clusterd.clusters.redis.posting import Stored, post, postings_of
from clusterd.clusters.redis.registered import (
    PLACE,
    Registered,
    outcomes_of,
    packed_versions,
    read_answers,
)
from clusterd.clusters.redis.retention import expire, forgotten
from clusterd.clusters.redis.settling.parting import forget_splits, splits_of
from clusterd.clusters.redis.settling.settler import PATIENCE, Settler
from clusterd.clusters.redis.spans.beyond import Beyond
from clusterd.clusters.redis.spans.steps import Spans
from clusterd.clusters.redis.stream import SecondStream
from clusterd.clusters.redis.wholes import show_whole, similar_whole, whole_sketch
from clusterd.portions import portions

#: Hash slots that a Redis Cluster's postings and sketches are spread over.
SHARDS: Final = 16
#: Ghosts that may wait for the settler, and steps that a worker does where there are more.
BACKLOG: Final = 64
HELP: Final = 4
#: Sketches that are applied in one call of each script: the server answers others meanwhile. Of several homes each is
#: called for its own of so many times as many: a call costs as much as some pages.
PART: Final = 64
SPREAD_PART: Final = 4


class RedisIndex:
    """The index on Redis.

    ``policies``: added where the store lacks them; None: a store keeps those that it has, a new one gets the default.
    ``shards``: of a new store; each is a home, too (`homes`). None: one on one Redis, `SHARDS` on a Redis Cluster.
    """

    def __init__(
        self,
        redis_url: str,
        prefix: str = "clusterd:",
        policies: Sequence[Policy] | None = None,
        scheme: Scheme | None = None,
        calls: Callable[[Client], Calls] = Calls,
        patience: float = PATIENCE,
        whole: bool = False,
        shards: int | None = None,
    ) -> None:
        self._client = connect(redis_url)
        self._calls = calls(self._client)
        self._home = Home(self._calls, prefix)
        self._scheme = scheme = scheme_of(self._home, scheme)
        shards = shards or (SHARDS if is_cluster(redis_url) else 1)
        self._tags, self._layout = tags, layout = founded(self._home, scheme, shards, SPREAD if shards > 1 else LAYOUT)
        self._homes = homes = Homes(self._calls, prefix, tags if layout == SPREAD else (HOME,))
        homes.seed()
        alone = len(homes) == 1
        self._home = homes.first
        self._numbers = [Numbers(self._calls, one, prefix, tags, alone) for one in homes.all] if len(tags) > 1 else []
        go_on(self._calls, self._numbers)
        self._lists = RedisLists(self._calls, prefix, tags, scheme)
        self._policies = Policies(homes)
        if policies is None:
            policies = self._policies.state.in_use or DEFAULT_POLICIES
        if not set(policies) <= set(self._policies.state.entries):
            self._policies.add(policies)
        self._spans = Spans(homes)
        self._questions = Questions(homes, self._policies, self._spans, self._lists, scheme)
        kept = keeps_whole(self._home, whole)
        self._whole = SecondStream(self._calls, prefix, "whole", tags, scheme) if kept else None
        self._patience = patience
        self._settler = Settler(homes, self._spans, self._lists, scheme, patience)
        self._pending = [Pending(self._calls, one, len(tags) == 1) for one in homes.all]
        self._marks = Marks(self._calls, homes, prefix, tags, self._pending, self._numbers) if self._numbers else None
        if self._marks:
            self._marks.begin()
        self._linker = Linker(homes, self._spans, self._pending, self._policies)
        #: Ghosts that waited when a batch was last registered.
        self._waiting = 0

    # -- writing ---------------------------------------------------------------------------------------------------

    def apply(
        self, sketches: Sequence[Sketch], position: Position | None = None, known: Position | None = None
    ) -> list[Outcome]:
        """Apply a batch and, with it, remember how far the log was read; `SetBack` where that is not as ``known``.

        A large one goes part by part: while one is linked, the next is posted and verified, the one after registered.
        Each in order: of parts that are posted at once the later might not see the one before in a common list.
        """
        states = [pending.look() for pending in self._pending]
        moves = None if position is None else moves_of(position, known or {})
        size = PART * min(len(self._homes), SPREAD_PART)
        if len(sketches) <= size:
            registered = self._register(sketches)
            outcomes = self._finish(sketches, registered, lambda: self._post(sketches, registered), moves, states)
            self._help()
            return outcomes
        with ThreadPoolExecutor(1) as posting, ThreadPoolExecutor(1) as linking:
            going: list[Future[list[Outcome]]] = []
            for part in portions(sketches, size):
                if len(going) > 2:
                    going[-3].result()
                registered = self._register(part)
                posted = posting.submit(self._post, part, registered)
                going.append(linking.submit(self._finish, part, registered, posted.result, None, states))
        outcomes = [outcome for part in going for outcome in part.result()]
        self._linker.link([], [], {}, moves, states)
        self._help()
        return outcomes

    def _finish(
        self,
        sketches: Sequence[Sketch],
        registered: Sequence[Registered],
        posted: Callable[[], Mapping[int, dict[int, Estimate]]],
        moves: Sequence[str] | None,
        states: Sequence[int],
    ) -> list[Outcome]:
        """Link what was posted; say what came of it. ``moves``, ``states``: as `Linker.link` has them."""
        verdicts = posted()
        if self._whole:
            show_whole(self._homes, self._whole, sketches, registered)
        united = self._linker.link(sketches, registered, verdicts, moves, states)
        if len(self._homes) > 1:
            Beyond(self._homes, self._spans, self._policies.state.graded).tell(sketches, registered, united)
        return outcomes_of(self._policies.state.entries, sketches, registered)

    def _help(self) -> None:
        """Settle a little where ghosts pile up: they would be proposed to every page that resembles them."""
        if self._waiting > BACKLOG:
            self._settler.settle(HELP, self._policies.state)

    def _register(self, sketches: Sequence[Sketch]) -> list[Registered]:
        known: list[Registered | None] = [None] * len(sketches)
        left = self._homes.places(sketches)
        waiting = 0
        while left:
            policies = self._policies.state
            with ExitStack() as stack:
                calls = {}
                for home, of in left.items():
                    own = [sketches[place] for place in of]
                    caller = b"%d %s" % (policies.number, self._homes.all[home].used(own))
                    posted = stack.enter_context(self._pending[home].telling())
                    calls[home] = (caller, posted, *packed_versions(self._homes.all[home], own))
                replies = self._homes.each("register", calls)
            for home, (answered, *reply) in replies.items():
                if answered == policies.number and reply:
                    waiting += reply[0]
                    found = read_answers(reply[1], reply[2:], PLACE.size * (1 + len(policies.graded)))
                    for place, one in zip(left.pop(home), found, strict=True):
                        known[place] = one
                    if self._numbers:
                        self._numbers[home].note(one.content for one in found)
            if left:
                self._catch_up()
        self._waiting = waiting
        return [one for one in known if one is not None]

    def _post(self, sketches: Sequence[Sketch], registered: Sequence[Registered]) -> dict[int, dict[int, Estimate]]:
        """Post what is new, and verify what that proposed; return the verdicts of each sketch, by its place."""
        several = len(self._homes) > 1
        postings = postings_of(sketches, registered, self._scheme, several)
        if not postings:
            return {}
        contents = {one.number: Stored(one.stored, sketches[place].profile) for place, one in postings.items()}
        verdicts = post(self._lists, list(postings.values()), contents, self._scheme, several)
        return dict(zip(postings, verdicts, strict=True))

    def position(self) -> dict[str, str]:
        """Return how far the log had been read when the state was written."""
        return positions(self._homes, self._pending)[0]

    def went_back(self) -> bool:
        """Whether, at the latest `position`, a node had been set back since this was last asked (`marks`)."""
        went = [pending.went_back() for pending in self._pending]
        return any(went)

    def settle(self, steps: int | None = None) -> int:
        """Do up to ``steps`` bounded steps of what waits; return how many still settle."""
        tell(self._homes, self._pending)
        if self._marks:
            self._marks.look()
        policies = self._policies.reload()
        if len(self._homes) > 1 and any(one.policies != policies.number for one in self._homes.counters()):
            policies = self._policies.agree()  # who added or removed one died at it, or a home was set back
        waiting = self._settler.settle(steps, policies)
        return waiting + (self._whole.settle(steps) if self._whole else 0)

    def only_awaits(self) -> bool:
        """Whether nothing is left to `settle` but for ghosts that are pending, which are given up after `PATIENCE`."""
        return self._settler.only_awaits() and not (self._whole and self._whole.waiting())

    def splits(self) -> list[Split]:
        """Return the splits that `settle` found and nobody has `told` yet, oldest first; `SPLITS` at most."""
        return splits_of(self._homes, self._policies.reload().graded)

    def told(self, splits: Sequence[Split]) -> None:
        """Forget splits that were told to whoever wants to know."""
        forget_splits(self._homes, self._policies.state.graded, splits)

    def expire(self, before: int) -> int:
        """Forget superseded versions fetched before a time and free what only they held; return how many."""
        return sum(self.expiring(before))

    def expiring(self, before: int) -> Iterator[int]:
        """Do what `expire` does, call by call; yield how many each has forgotten. Who stops in between begins anew."""
        for home in self._homes.all:
            yield from expire(home, before, self._patience)
        self._settler.discard()

    def forgotten(self) -> int:
        """Return before which time (Unix ms) superseded versions were forgotten; 0: none was."""
        return max(forgotten(home) for home in self._homes.all)

    # -- policies --------------------------------------------------------------------------------------------------

    def policies(self) -> list[Policy]:
        """Return the policies in use."""
        return self._policies.reload().in_use

    def add_policy(self, policy: Policy) -> None:
        """Add a policy and build its clusters from the stored sketches (with `settle`)."""
        self._policies.add([policy])

    def remove_policy(self, name: str) -> None:
        """Remove a policy, if there is one of this name; what its clusters took is freed (with `settle`)."""
        self._policies.remove(name)

    def _catch_up(self) -> None:
        """Learn policies and labels anew; a store that was set back, or emptied, is told what it knew of policies."""
        go_on(self._calls, self._numbers)
        for pending in self._pending:
            pending.look_anew()
        for home in self._homes.all:
            home.forget_labels()
        if self._policies.are_lost():
            founded(self._home, self._scheme, len(self._tags), self._layout)
            keeps_whole(self._home, self._whole is not None)
        self._homes.seed()
        self._policies.agree()

    # -- asking ----------------------------------------------------------------------------------------------------

    def clusters(self, policy: str, min_size: int = 2, host: str | None = None) -> Iterator[Cluster]:
        """Yield the clusters, largest first; with ``host`` those with a member there."""
        return self._questions.clusters(policy, min_size, host)

    def cluster_of(self, url: str, policy: str) -> Cluster | None:
        """Return the cluster of a URL's current version; None for an unknown URL."""
        return self._questions.cluster_of(url, policy)

    def cluster_names(self, urls: Sequence[str], policy: str) -> list[str | None]:
        """Return the name of each URL's cluster; None for an unknown URL."""
        return self._questions.cluster_names(urls, policy)

    def similar(
        self, query: StreamSketch, profile: int, limit: int = 10, stream: Stream = "main", look: Look = "clusters"
    ) -> list[Hit]:
        """Return the pages that resemble or contain or are contained in the query, best resemblance first."""
        if stream == "whole":
            return similar_whole(self._homes, self._kept_whole(), query, profile, limit)
        return self._questions.similar(query, profile, limit, look)

    def listed(self, queries: Sequence[StreamSketch], profile: int, limit: int = 10) -> list[list[Hit]]:
        """Return what `similar` says of each of these by the lists alone."""
        return self._questions.listed(queries, profile, limit)

    def matches(self, sketches: Sequence[Sketch]) -> list[Hit | None]:
        """Return for each page the other one that resembles it best; None where there is none."""
        return self._questions.matches(sketches)

    def versions_of(self, urls: Sequence[str]) -> list[list[Version]]:
        """Return all known versions of each of these URLs; a round trip for `CHUNK` or fewer of a home."""
        return self._questions.versions_of(urls)

    def pages(self, host: str | None = None, *, revised: bool = False) -> Iterator[Version]:
        """Yield the versions of all URLs (of a host; ``revised``: of several texts), those of a URL together."""
        return self._questions.pages(host, revised)

    def pages_of(self, hosts: Sequence[str]) -> Iterator[tuple[str, list[Version]]]:
        """Yield each of these hosts with what `pages` says of it; two round trips for `CHUNK` hosts or pages."""
        return self._questions.pages_of(hosts)

    def sketch(self, url: str, fetched_at: int | None = None) -> StreamSketch | None:
        """Return the stored main sketch of a version, its values cut: to be compared with others from here."""
        return self._questions.sketches([(url, fetched_at)])[0]

    def sketches(self, asked: Sequence[tuple[str, int | None]]) -> list[StreamSketch | None]:
        """Return what `sketch` says of each of these URLs and fetch times."""
        return self._questions.sketches(asked)

    def whole_sketch(self, url: str) -> StreamSketch | None:
        """Return the stored sketch of a whole page; None for an unknown URL."""
        return whole_sketch(self._homes, self._kept_whole(), url)

    def _kept_whole(self) -> SecondStream:
        if self._whole is None:
            raise WrongInput(WITHOUT_WHOLE)
        return self._whole

    def originals(self, policy: str, asked: Sequence[tuple[str, int | None]]) -> list[int | None]:
        """Return for each version the text of the oldest content that is known to resemble it itself."""
        return self._questions.originals(policy, asked)

    def hosts(self) -> list[str]:
        """Return the hosts of which pages are known."""
        return sorted(host.decode() for hosts in self._homes.scan("hosts") for host in hosts)

    def counts(self) -> dict[str, int]:
        """Return how much is known; ``store_bytes`` is what the Redis servers use in all."""
        known = self._homes.counters()
        return {
            "documents": sum(one.urls for one in known),
            "versions": sum(one.versions for one in known),
            "contents": sum(one.contents for one in known),
            "settling": self._settler.waiting() + (self._whole.waiting() if self._whole else 0),
            "store_bytes": self._calls.used_memory(),
        }

    def cluster_counts(self) -> dict[str, int]:
        """Return how many clusters of two URLs and more each policy has, as they are counted."""
        return self._questions.cluster_counts()

    def close(self) -> None:
        """Free connections."""
        with suppress(Unreachable):
            tell(self._homes, self._pending)
        self._calls.close()
        with translated():
            self._client.close()
