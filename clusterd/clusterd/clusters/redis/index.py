"""The index on one Redis or on a Redis Cluster, safe with many writers.

A batch of up to `PART` sketches takes three calls: `register` (home shard: versions, texts, contents), `propose` (every
shard: sketches, postings, candidates), `link` (home shard: verified edges, clusters, position). Between them other
workers may do what they like; what keeps the partition right:

- Write first, then look up: of two contents posted at once at least one is proposed the other.
- A content is pending from `register` to `link`. After a crash the log delivers again, and who meets a pending content
  posts and links it again; every step may be repeated.
- Candidates are verified here, by the stored sketches, whatever the postings said. A content that departed meanwhile is
  linked no more, and never lives again.
- Whatever the stream, a page costs a bounded number of steps: of each of its lists (four smallest values and one in 64)
  at most `bound` others are proposed, of a common one `latest`; what departs in the call that brought it is not posted
  at all; and a worker that finds more than `BACKLOG` ghosts waiting, which would be proposed in vain, dismisses some
  itself.
- A ghost is dismissed only when it is not pending, so nobody posts it after it was withdrawn; one that stays pending
  is given up after `PATIENCE`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

from clusterd_consumer.hash_tags import hash_tags
from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.postings.verdict import Verdict
from clusterd_consumer.redis_connection import Client, connect, translated
from clusterd_consumer.redis_scripts import Calls, packed_numbers
from clusterd_crawler.errors import Unreachable, WrongInput
from clusterd_crawler.redis_address import is_cluster
from clusterd_crawler.sketch import Sketch, StreamSketch

from clusterd.clusters.contract import DEFAULT_POLICIES, Cluster, Hit, Look, Outcome, Policy, Split, Version
from clusterd.clusters.redis.edges import packed_edges
from clusterd.clusters.redis.founding import LAYOUT, OLDEST, founded, keeps_whole, scheme_of
from clusterd.clusters.redis.home import ADD_POLICY, LINK, REGISTER, Home
from clusterd.clusters.redis.marks import Marks
from clusterd.clusters.redis.numbers import Numbers
from clusterd.clusters.redis.pending import Pending
from clusterd.clusters.redis.posting import postings_of, verdicts_on
from clusterd.clusters.redis.questions import Questions, slot_of
from clusterd.clusters.redis.registered import (
    CURRENT,
    PLACE,
    Registered,
    matches_of,
    note,
    outcomes_of,
    packed_versions,
    read_answers,
    time_of,
)
from clusterd.clusters.redis.retention import expire, forgotten
from clusterd.clusters.redis.settling import PATIENCE, Settler
from clusterd.clusters.redis.stream import SecondStream, Showing

#: Hash slots that a Redis Cluster's postings and sketches are spread over.
SHARDS: Final = 16
#: Policies by resemblance or containment: an edge has a bit for each (lua/add_policy.lua).
GRADED_MOST: Final = 16
#: Ghosts that may wait for the settler, and steps that a worker does where there are more.
BACKLOG: Final = 64
HELP: Final = 4
#: Sketches that are applied in one call of each script: the server answers others meanwhile.
PART: Final = 64


class RedisIndex:
    """The index on Redis.

    ``policies``: added where the store lacks them; None: a store keeps those that it has, a new one gets the default.
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
    ) -> None:
        self._client = connect(redis_url)
        self._calls = calls(self._client)
        self._home = Home(self._calls, prefix)
        self._scheme = scheme = scheme or scheme_of(self._home)
        self._tags = tags = founded(self._home, scheme, SHARDS if is_cluster(redis_url) else 1)
        self._numbers = Numbers(self._calls, self._home, prefix, tags) if len(tags) > 1 else None
        self._lists = RedisLists(self._calls, prefix, tags, scheme)
        self._policies: list[Policy] = []
        self._reload()
        if policies is None:
            policies = self._policies or DEFAULT_POLICIES
        for policy in policies:
            if policy not in self._policies:
                self.add_policy(policy)
        self._questions = Questions(self._home, self._lists, scheme)
        kept = keeps_whole(self._home, whole)
        self._whole = SecondStream(self._calls, prefix, "whole", tags, scheme) if kept else None
        self._settler = Settler(self._home, self._lists, scheme, patience)
        self._pending = Pending(self._calls, self._home)
        self._marks = (
            Marks(self._calls, self._home, prefix, tags, self._pending, self._numbers) if self._numbers else None
        )
        #: Ghosts that waited when a batch was last registered.
        self._waiting = 0

    # -- writing ---------------------------------------------------------------------------------------------------

    def apply(self, sketches: Sequence[Sketch], position: Mapping[str, str] | None = None) -> list[Outcome]:
        """Apply a batch and, with it, remember how far the log was read.

        A large one goes part by part: while one is linked, the next is posted and verified, the one after registered.
        Each in order: of parts that are posted at once the later might not see the one before in a common list.
        """
        state = self._pending.look()
        if len(sketches) <= PART:
            known = self._register(sketches)
            outcomes = self._finish(sketches, known, lambda: self._post(sketches, known), position or {}, state)
            self._help()
            return outcomes
        parts = [sketches[start : start + PART] for start in range(0, len(sketches), PART)]
        with ThreadPoolExecutor(1) as posting, ThreadPoolExecutor(1) as linking:
            going: list[Future[list[Outcome]]] = []
            for part in parts:
                if len(going) > 2:
                    going[-3].result()
                known = self._register(part)
                posted = posting.submit(self._post, part, known)
                going.append(linking.submit(self._finish, part, known, posted.result, {}, state))
        outcomes = [outcome for part in going for outcome in part.result()]
        self._link([], {}, position or {}, state)
        self._help()
        return outcomes

    def _finish(
        self,
        sketches: Sequence[Sketch],
        registered: Sequence[Registered],
        posted: Callable[[], Mapping[int, dict[int, Verdict]]],
        position: Mapping[str, str],
        state: int,
    ) -> list[Outcome]:
        """Link what was posted and verified; say what came of it. ``state``: the store's when the batch was begun."""
        verdicts = posted()
        self._show_whole(sketches, registered)
        self._link(registered, verdicts, position, state)
        return outcomes_of(self._policies, sketches, registered)

    def _help(self) -> None:
        """Settle a little where ghosts pile up: they would be proposed to every page that resembles them."""
        if self._waiting > BACKLOG:
            self._settler.settle(HELP, self._policies)

    def _register(self, sketches: Sequence[Sketch]) -> list[Registered]:
        while True:
            arguments = packed_versions(self._home, sketches)
            graded = self._graded()
            caller = b"%d %s" % (len(graded), self._home.used(sketches))
            with self._pending.telling() as posted:
                answered, *reply = self._home.run(REGISTER, caller, posted, *arguments)
            if answered == len(graded) and reply:
                self._waiting = reply[0]
                known = read_answers(reply[1], reply[2:], PLACE.size * (1 + len(graded)))
                if self._numbers:
                    self._numbers.note(one.content for one in known)
                return known
            self._catch_up()

    def _post(self, sketches: Sequence[Sketch], registered: Sequence[Registered]) -> dict[int, dict[int, Verdict]]:
        """Post what is new, and verify what that proposed; return the verdicts of each sketch, by its place."""
        postings = postings_of(sketches, registered, self._scheme)
        if not postings:
            return {}
        proposed, stored_of = self._lists.propose(list(postings.values()))
        return {
            place: verdicts_on(posting, sketches[place].profile, numbers, stored_of)
            for (place, posting), numbers in zip(postings.items(), proposed, strict=True)
        }

    def _show_whole(self, sketches: Sequence[Sketch], registered: Sequence[Registered]) -> None:
        """Post the whole pages of current versions, where that stream is kept."""
        if self._whole:
            current = [(one, known) for one, known in zip(sketches, registered, strict=True) if known.flags & CURRENT]
            self._whole.apply([Showing(known.page, time_of(one), one.whole, one.profile) for one, known in current])

    def _link(
        self,
        registered: Sequence[Registered],
        verdicts: Mapping[int, dict[int, Verdict]],
        position: Mapping[str, str],
        state: int,
    ) -> None:
        """Link what was verified, write the position; note what that says of each page."""
        contents = [registered[place].content for place in verdicts]
        found = ((place, matches_of(judged)) for place, judged in verdicts.items() if judged)
        linked = {place: matches for place, matches in found if matches}
        offsets = [word for pair in position.items() for word in pair]
        if not linked:
            self._pending.done(contents, state)
            if offsets:
                self._pending.tell(offsets, state)
            return
        posted = packed_numbers([state, *contents])
        while True:
            graded = self._graded()
            arguments: list[Any] = [len(graded), len(position), *offsets, posted]
            for place, matches in linked.items():
                known = registered[place]
                page = struct.pack("<3I", known.page, known.node, known.content) + packed_numbers(matches)
                arguments += (page, packed_edges(graded, verdicts[place]))
            reply = self._home.run(LINK, *arguments)
            if reply[0] == -1:
                self._pending.position()
                raise Unreachable("the store was set back while a batch was under way, which is to be applied again")
            if reply[0] == len(graded):
                for number, place in enumerate(linked):
                    note(registered[place], verdicts[place], *reply[1 + 3 * number : 4 + 3 * number])
                return
            self._reload()

    def position(self) -> dict[str, str]:
        """Return how far the log had been read when the state was written."""
        return self._pending.position()

    def went_back(self) -> bool:
        """Whether, at the latest `position`, a node had been set back since this was last asked (`marks`)."""
        return self._pending.went_back()

    def settle(self, steps: int | None = None) -> int:
        """Do up to ``steps`` bounded steps of what waits; return how many still settle."""
        self._pending.tell()
        if self._marks:
            self._marks.look()
        waiting = self._settler.settle(steps, self._reload())
        return waiting + (self._whole.settle(steps) if self._whole else 0)

    def splits(self) -> list[Split]:
        """Return the splits that `settle` found and nobody has `told` yet, oldest first; `SPLITS` at most."""
        self._reload()
        return self._settler.splits(self._graded())

    def told(self, splits: Sequence[Split]) -> None:
        """Forget splits that were told to whoever wants to know."""
        self._settler.told(self._graded(), splits)

    def expire(self, before: int) -> int:
        """Forget superseded versions fetched before a time and free what only they held; return how many."""
        gone = expire(self._home, before)
        self._settler.discard()
        return gone

    def forgotten(self) -> int:
        """Return before which time (Unix ms) superseded versions were forgotten; 0: none was."""
        return forgotten(self._home)

    # -- policies --------------------------------------------------------------------------------------------------

    def policies(self) -> list[Policy]:
        """Return the policies in use."""
        return self._reload()

    def add_policy(self, policy: Policy) -> None:
        """Add a policy and build its clusters from the stored sketches (with `settle`)."""
        text = json.dumps(asdict(policy))
        self._take(self._home.run(ADD_POLICY, policy.name, text, 0 if policy.identical else 1))
        if not policy.identical and all(known.name != policy.name for known in self._policies):
            raise WrongInput(
                f"{policy.name} is one policy too many: {GRADED_MOST} by resemblance or containment are kept"
            )
        if policy not in self._policies:
            raise WrongInput(f"a policy named {policy.name} exists with another threshold; choose another name")

    def _reload(self) -> list[Policy]:
        return self._take(self._home.command("LRANGE", "policies", 0, -1))

    def _catch_up(self) -> None:
        """Learn policies and labels anew; a store that was set back, or emptied, is told what it knew of policies."""
        known = self._policies
        if self._numbers:
            self._numbers.go_on()
        self._pending.look_anew()
        self._home.forget_labels()
        names = {policy.name for policy in self._reload()}
        lost = [policy for policy in known if policy.name not in names]
        if lost:
            layout = LAYOUT if self._tags == hash_tags(len(self._tags)) else OLDEST
            founded(self._home, self._scheme, len(self._tags), layout)
            keeps_whole(self._home, self._whole is not None)
        for policy in lost:
            self.add_policy(policy)

    def _take(self, texts: Sequence[bytes]) -> list[Policy]:
        self._policies = [Policy(**json.loads(text)) for text in texts]
        return list(self._policies)

    def _graded(self) -> list[Policy]:
        return [policy for policy in self._policies if not policy.identical]

    # -- asking ----------------------------------------------------------------------------------------------------

    def clusters(self, policy: str, min_size: int = 2, host: str | None = None) -> Iterator[Cluster]:
        """Yield the clusters, largest first; with ``host`` those with a member there."""
        return self._questions.clusters(self._reload(), policy, min_size, host)

    def cluster_of(self, url: str, policy: str) -> Cluster | None:
        """Return the cluster of a URL's current version; None for an unknown URL."""
        return self._questions.cluster_of(self._reload(), url, policy)

    def similar(
        self, query: StreamSketch, profile: int, limit: int = 10, stream: str = "main", look: Look = "clusters"
    ) -> list[Hit]:
        """Return the pages that resemble or contain or are contained in the query, best resemblance first."""
        if self._whole and stream == "whole":
            return self._questions.similar_whole(self._whole, query, profile, limit)
        return self._questions.similar(self._reload(), query, profile, limit, stream, look)

    def versions(self, url: str) -> list[Version]:
        """Return all known versions of a URL, oldest first."""
        return self._questions.versions(url)

    def pages(self, host: str | None = None) -> Iterator[Version]:
        """Yield the versions of all URLs (of a host), those of one URL together, oldest first."""
        return self._questions.pages(host)

    def sketch(self, url: str, fetched_at: int | None = None) -> StreamSketch | None:
        """Return the stored main sketch of a version, its values cut (compare with others from here, or `coarse`)."""
        return self._questions.sketches([(url, fetched_at)])[0]

    def sketches(self, asked: Sequence[tuple[str, int | None]]) -> list[StreamSketch | None]:
        """Return what `sketch` says of each of these URLs and fetch times."""
        return self._questions.sketches(asked)

    def originals(self, policy: str, asked: Sequence[tuple[str, int | None]]) -> list[int | None]:
        """Return for each version the text of the oldest content that is known to resemble it itself."""
        return self._questions.originals(self._reload(), policy, asked)

    def hosts(self) -> list[str]:
        """Return the hosts of which pages are known."""
        return sorted(host.decode() for host in self._home.command("SMEMBERS", "hosts"))

    def counts(self) -> dict[str, int]:
        """Return how much is known; ``store_bytes`` is what the Redis servers use in all."""
        known = self._home.counters()
        return {
            "documents": known.urls,
            "versions": known.versions,
            "contents": known.contents,
            "settling": self._settler.waiting() + (self._whole.waiting() if self._whole else 0),
            "store_bytes": self._calls.used_memory(),
        }

    def cluster_counts(self) -> dict[str, int]:
        """Return how many clusters of two URLs and more each policy has, as the home shard counts them."""
        counted, policies = self._home.counters().clusters, self._reload()
        slots = [slot_of(policies, policy.name) for policy in policies]
        return {p.name: counted[0 if slot < 0 else 2 + slot] for p, slot in zip(policies, slots, strict=True)}

    def close(self) -> None:
        """Free connections."""
        with suppress(Unreachable):
            self._pending.tell()
        self._calls.close()
        with translated():
            self._client.close()
