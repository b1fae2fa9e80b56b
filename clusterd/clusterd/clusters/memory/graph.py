"""The graph of contents in memory: verified pairs, and the clusters that these make under each policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.errors import WrongInput

from clusterd.clusters.acceptance import mask, slot_of
from clusterd.clusters.contract import Policy, Split
from clusterd.clusters.memory.contents import Content, Fetch, neighbours, shown, urls_of
from clusterd.clusters.memory.forest import Forest
from clusterd.clusters.splitting import Search


class Graph:
    """Contents by number, and a forest for each policy by resemblance or containment."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.contents: dict[int, Content] = {}
        self._identical = [policy for policy in policies if policy.identical]
        #: Policies that are decided by a verdict: the bit of each in an edge is its place, and so is its forest's.
        self.graded = [policy for policy in policies if not policy.identical]
        self.forests = [Forest(self._live) for _ in self.graded]

    @property
    def policies(self) -> list[Policy]:
        """All policies."""
        return [*self._identical, *self.graded]

    def add_policy(self, policy: Policy) -> bool:
        """Add a policy; return whether contents are to be looked up again for it."""
        if policy in self.policies:
            return False
        if any(policy.name == known.name for known in self.policies):
            raise WrongInput(f"a policy named {policy.name} exists with another threshold; choose another name")
        if policy.identical:
            self._identical.append(policy)
            return False
        self.graded.append(policy)
        self.forests.append(Forest(self._live))
        return True

    def remove_policy(self, name: str) -> None:
        """Remove a policy: the bits of those behind it move up."""
        self._identical = [policy for policy in self._identical if policy.name != name]
        slot = next((slot for slot, policy in enumerate(self.graded) if policy.name == name), None)
        if slot is None:
            return
        del self.graded[slot], self.forests[slot]
        low = (1 << slot) - 1
        for content in self.contents.values():
            moved = {number: bits & low | bits >> 1 & ~low for number, bits in content.edges.items()}
            content.edges = {number: bits for number, bits in moved.items() if bits}

    def join(self, content: Content, verdicts: Mapping[int, Estimate]) -> None:
        """Join a content with those that a policy accepts."""
        for number, verdict in verdicts.items():
            bits = mask(self.graded, verdict)
            if not bits:
                continue
            content.edges[number] = self.contents[number].edges[content.number] = bits
            for slot, forest in enumerate(self.forests):
                if bits >> slot & 1:
                    forest.join(content.number, number)

    def count(self, content: Content, by: int) -> None:
        """Note that a content is shown by more URLs, or by fewer."""
        content.live += by
        for forest in self.forests:
            forest.changed(content.number, by)

    def dismiss(self, ghost: Content) -> Iterator[Split]:
        """Take a ghost out; where its neighbours no longer hold together, part them, and yield what came off."""
        edges, ghost.edges = ghost.edges, {}
        for number in edges:
            del self.contents[number].edges[ghost.number]
        for slot, forest in enumerate(self.forests):
            forest.remove([ghost.number])
            search = Search(number for number, bits in edges.items() if bits >> slot & 1)
            while not search.done:
                search.feed({node: neighbours(self.contents[node], slot) for node in search.wanted()})
            for side in search.apart:
                forest.leave(side)
            for url in (url for side in search.apart for url in islice(shown(self.contents[min(side)]), 1)):
                rest = self.contents[search.rest]
                yield Split(self.graded[slot].name, self._name(rest, slot), forest.weight(rest.number), url)

    def place(self, fetch: Fetch, policy: str) -> tuple[str, list[str]]:
        """Return the name of a current version's cluster and its URLs."""
        slot = slot_of(self.policies, policy)
        if slot < 0:
            return _name_of_text(fetch, policy), list(fetch.content.texts[fetch.text_key])
        numbers = self.forests[slot].members(fetch.content.number)
        return self._name(fetch.content, slot), [url for number in numbers for url in urls_of(self.contents[number])]

    def standing(self, fetch: Fetch) -> dict[str, tuple[str, int]]:
        """Return name and size of a current version's cluster under each policy in which it has company."""
        content = fetch.content
        standing = {}
        for policy in self._identical:
            standing[policy.name] = _name_of_text(fetch, policy.name), len(content.texts.get(fetch.text_key, ()))
        for slot, policy in enumerate(self.graded):
            standing[policy.name] = self._name(content, slot), self.forests[slot].weight(content.number)
        return {policy: (name, size) for policy, (name, size) in standing.items() if size > 1}

    def first_name(self, content: Content) -> str | None:
        """Return the name of a content's cluster under the first policy by resemblance, where it has company."""
        return self._name(content, 0) if self.forests and self.forests[0].weight(content.number) > 1 else None

    def _name(self, content: Content, slot: int) -> str:
        name = self.forests[slot].name(content.number)
        return f"{self.graded[slot].name}-{f'c{content.number}' if name is None else name}"

    def _live(self, number: int) -> int:
        return content.live if (content := self.contents.get(number)) else 0


def _name_of_text(fetch: Fetch, policy: str) -> str:
    return f"{policy}-{fetch.content.number}.{fetch.text_key.hex()}"
