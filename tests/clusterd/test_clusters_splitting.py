"""Splitting: the lockstep search finds the sides that lie apart, and costs what the smaller ones cost."""

from __future__ import annotations

import random

from clusterd.clusters.memory.forest import Forest
from clusterd.clusters.splitting import WIDTH, Search
from hypothesis import given
from hypothesis import strategies as st

Graph = dict[int, set[int]]


def graph(edges: list[tuple[int, int]], nodes: int) -> Graph:
    near: Graph = {node: set() for node in range(nodes)}
    for a, b in edges:
        if a != b:
            near[a].add(b)
            near[b].add(a)
    return near


def component(near: Graph, start: int) -> set[int]:
    seen, waiting = {start}, [start]
    while waiting:
        for node in near[waiting.pop()] - seen:
            seen.add(node)
            waiting.append(node)
    return seen


def searched(near: Graph, starts: list[int]) -> tuple[list[set[int]], int]:
    """Return the sides that lie apart, and how many nodes were asked for their neighbours."""
    search, asked = Search(starts), 0
    while not search.done:
        wanted = search.wanted()
        asked += len(wanted)
        search.feed({node: near[node] for node in wanted})
    return search.apart, asked


@given(
    st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=25), st.sets(st.integers(0, 14), max_size=6)
)
def test_all_sides_but_one_are_found(edges: list[tuple[int, int]], starts: set[int]) -> None:
    near = graph(edges, 15)
    apart, _ = searched(near, sorted(starts))
    sides = {frozenset(component(near, start)) for start in starts}
    assert {frozenset(side) for side in apart} <= sides
    assert len(apart) == max(0, len(sides) - 1)


def test_an_edge_that_comes_to_a_side_that_was_found_apart_is_left_to_the_next_search() -> None:
    """Links come between two rounds: 15, which was found to lie apart, is a neighbour of both other sides then."""
    near = graph([(0, 7), (7, 8), (8, 9), (20, 21), (21, 22), (22, 23)], 24)
    search = Search([0, 15, 20])
    for _ in range(2):
        search.feed({node: near[node] for node in search.wanted()})
    assert search.apart == [{15}]
    for a, b in ((8, 15), (22, 15)):
        near[a].add(b)
        near[b].add(a)
    while not search.done:
        search.feed({node: near[node] for node in search.wanted()})
    assert len(search.apart) == 2


def test_the_cost_is_that_of_the_smaller_side() -> None:
    size = 20_000
    near = graph([(n, n + 1) for n in range(10)] + [(n, n + 1) for n in range(100, size)], size + 1)
    apart, asked = searched(near, [0, 100])
    assert [len(side) for side in apart] == [11]
    assert asked <= 2 * WIDTH * 11


def test_in_a_dense_cluster_the_sides_meet_at_once() -> None:
    dice = random.Random(1)
    near = graph([(a, dice.randrange(5000)) for a in range(5000) for _ in range(8)], 5000)
    apart, asked = searched(near, [dice.randrange(5000) for _ in range(10)])
    assert apart == []
    assert asked < 1000


def test_forest_weights_follow_joins_and_leaves() -> None:
    weights = {1: 2, 2: 3, 3: 1, 4: 7}
    forest = Forest(lambda node: weights.get(node, 0))
    forest.join(1, 2)
    forest.join(3, 4)
    forest.join(1, 4)
    assert forest.weight(3) == 13
    assert forest.members(2) == {1, 2, 3, 4}
    weights[4] += 1
    forest.changed(4, 1)
    forest.leave([3, 4])
    assert (forest.weight(4), forest.weight(1)) == (9, 5)
    assert forest.name(4) != forest.name(1)
    forest.remove([4])
    assert forest.weight(3) == 1
