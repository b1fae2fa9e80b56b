"""The index contract: the same cases in memory, on a Redis, and on a Redis Cluster."""

from __future__ import annotations

import pytest
from clusterd.clusters.contract import DEFAULT_POLICIES, Index, Policy
from clusterd.clusters.memory.index import MemoryIndex
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.transport.contract import SetBack
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.sketch import COMPACT, SHORT, TEXT

from tests.contract.index_world import Opened, World, expected, page, partition, settled, stream

A, B, C, D = (f"http://h.example/{letter}" for letter in "abcd")
BASE = range(100)


def test_identical_text_is_one_cluster_under_every_policy(index: Index) -> None:
    (first,) = index.apply([page(A, 1, BASE)])
    (second,) = index.apply([page(B, 2, BASE)])
    assert first.new
    assert first.identity is None
    assert first.match is None
    assert first.clusters == {}
    assert second.identity == "text"
    assert second.match == A
    assert second.resemblance == 1.0
    for policy in DEFAULT_POLICIES:
        found = index.cluster_of(A, policy.name)
        assert found is not None
        assert found.members == (A, B)
        assert found.representative == A
        assert second.clusters[policy.name] == (found.cluster, 2)
    assert {change.event for change in second.changes} == {"joined"}


def test_equal_sketch_of_another_text_hangs_on_it_and_is_not_identical(index: Index) -> None:
    index.apply([page(A, 1, BASE)])
    (outcome,) = index.apply([page(B, 1, BASE, order="turned")])
    assert outcome.identity == "sketch"
    assert outcome.match == A
    assert set(outcome.clusters) == {"near", "related", "contained"}
    assert partition(index)["identical"] == {frozenset({A}), frozenset({B})}
    assert index.counts()["contents"] == 1


def test_near_related_and_contained(index: Index) -> None:
    near = page(B, 1, range(2, 102))
    related = page(C, 1, range(30, 130))
    part = page(D, 1, range(10))
    index.apply([page(A, 1, BASE), near, related, part])
    settled(index)
    found = partition(index)
    assert found["near"] == {frozenset({A, B}), frozenset({C}), frozenset({D})}
    assert found["related"] == {frozenset({A, B, C}), frozenset({D})}
    assert frozenset({A, B, D}) in found["contained"]


def test_the_best_match_is_told_with_its_resemblance(index: Index) -> None:
    index.apply([page(A, 1, range(50, 150)), page(B, 1, range(5, 105))])
    (outcome,) = index.apply([page(C, 1, BASE)])
    assert outcome.match == B
    assert outcome.resemblance == pytest.approx(95 / 105, abs=0.01)
    assert outcome.identity is None


def test_a_repeated_delivery_changes_nothing(index: Index) -> None:
    batch = [page(A, 1, BASE), page(B, 2, BASE), page(C, 3, range(1, 101))]
    index.apply(batch)
    before, counts = partition(index), index.counts()
    again = index.apply(batch)
    assert not any(outcome.new or outcome.changes for outcome in again)
    assert again[0].clusters == index.apply(batch)[0].clusters != {}
    assert partition(index) == before
    for counter in ("documents", "versions", "contents", "settling"):
        assert index.counts()[counter] == counts[counter]


def test_what_a_page_still_shows_tells_of_its_cluster_when_it_is_delivered_again(index: Index) -> None:
    """Its alerts were lost with the worker that it was delivered to; meanwhile the page was fetched once more."""
    index.apply([page(B, 1, BASE)])
    (lost,) = index.apply([page(A, 1, BASE)])
    index.apply([page(A, 2, BASE)])
    (again,) = index.apply([page(A, 1, BASE)])
    assert again.new is False
    assert again.clusters == lost.clusters != {}
    index.apply([page(A, 3, range(500, 600))])
    (again,) = index.apply([page(A, 1, BASE)])
    assert again.clusters == {}


def test_a_changed_page_leaves_and_joins(index: Index) -> None:
    index.apply([page(A, 1, BASE), page(B, 1, BASE), page(C, 1, range(500, 600))])
    (outcome,) = index.apply([page(B, 2, range(500, 600))])
    assert outcome.new
    assert outcome.identity == "text"
    assert outcome.match == C
    left = [change for change in outcome.changes if change.event == "left"]
    assert {change.policy for change in left} == {policy.name for policy in DEFAULT_POLICIES}
    assert all(change.size == 1 for change in left)
    settled(index)
    assert partition(index)["near"] == {frozenset({A}), frozenset({B, C})}
    assert [version.text for version in index.versions_of([B])[0]] == [
        page(B, 1, BASE).main.text,
        page(C, 1, range(500, 600)).main.text,
    ]


def test_a_page_that_is_fetched_again_unchanged_is_no_match_of_its_own(index: Index) -> None:
    index.apply([page(A, 1, BASE), page(B, 1, range(500, 600))])
    (again,) = index.apply([page(A, 2, BASE)])
    assert (again.new, again.identity, again.match) == (True, None, None)
    index.apply([page(C, 1, range(500, 600))])
    for at, (url, other) in enumerate([(C, B), (B, C)], 2):
        (again,) = index.apply([page(url, at, range(500, 600))])
        assert (again.new, again.identity, again.match) == (True, "text", other)


def test_the_latest_fetch_is_current_whatever_comes_last(index: Index) -> None:
    index.apply([page(A, 5, BASE), page(B, 1, range(500, 600))])
    (late,) = index.apply([page(A, 3, range(500, 600))])
    assert late.new
    assert not late.changes
    assert late.clusters == {}
    assert partition(index)["near"] == {frozenset({A}), frozenset({B})}
    assert [version.fetched_at for version in index.versions_of([A])[0]] == [3, 5]


def test_versions_of_one_moment_are_ordered_by_their_text(index: Index) -> None:
    versions = [page(A, 5, range(n, n + 50)) for n in (0, 200, 400)]
    index.apply(versions)
    latest = max(versions, key=lambda version: version.main.text)
    assert index.versions_of([A])[0][-1].text == latest.main.text


def test_a_cluster_that_a_departed_page_held_together_falls_apart(index: Index) -> None:
    bridge = [*range(100), *range(1000, 1100)]
    index.apply([page(A, 1, BASE), page(B, 1, bridge), page(C, 1, range(1000, 1100))])
    assert partition(index)["contained"] == {frozenset({A, B, C})}
    index.apply([page(B, 2, range(7000, 7100))])
    settled(index)
    assert partition(index)["contained"] == {frozenset({A}), frozenset({B}), frozenset({C})}
    index.apply([page(D, 1, bridge)])
    assert frozenset({A, C, D}) in partition(index)["contained"]
    found = index.cluster_of(A, "contained")
    assert found is not None
    assert found.members == (A, C, D)


def test_a_split_waits_to_be_told(index: Index) -> None:
    bridge = [*range(100), *range(1000, 1100)]
    index.apply([page(A, 1, BASE), page(B, 1, bridge), page(C, 1, range(1000, 1100)), page(D, 1, range(3, 100))])
    settled(index)
    assert index.splits() == []
    held = index.cluster_of(A, "contained")
    assert held is not None
    index.apply([page(B, 2, range(7000, 7100))])
    settled(index)
    found = index.splits()
    (split,) = [one for one in found if one.policy == "contained"]
    kept = next(one for one in index.clusters("contained", min_size=1) if one.cluster == held.cluster)
    assert (split.policy, split.cluster, split.size) == ("contained", kept.cluster, kept.size)
    assert split.url in {A, C, D} - set(kept.members)
    index.told([split])
    assert index.splits() == [one for one in found if one != split]


def test_neighbours_that_depart_together_leave_nothing_joined(index: Index) -> None:
    chain = [range(start, start + 100) for start in range(0, 200, 40)]
    urls = [f"http://h.example/{n}" for n in range(len(chain))]
    policies = {"related"}
    index.apply([page(url, 1, text) for url, text in zip(urls, chain, strict=True)])
    index.apply([page(urls[n], 2, range(9000 + 200 * n, 9100 + 200 * n)) for n in (1, 2, 3)])
    settled(index)
    current = [page(urls[0], 1, chain[0]), page(urls[4], 1, chain[4])]
    current += [page(urls[n], 2, range(9000 + 200 * n, 9100 + 200 * n)) for n in (1, 2, 3)]
    assert {p: partition(index)[p] for p in policies} == {p: expected(current)[p] for p in policies}


def test_neighbours_that_depart_together_from_a_chain_of_parts_and_wholes_leave_its_ends_apart(index: Index) -> None:
    """A lies in the first of them, the second in the first and in C: what held A and C touched but each other."""
    crawl = [page(A, 1, BASE), page(B, 1, [*BASE, *range(1000, 1100)])]
    crawl += [page(D, 1, range(1000, 1100)), page(C, 1, range(1000, 1200))]
    index.apply(crawl)
    assert partition(index)["contained"] == {frozenset({A, B, C, D})}
    gone = [page(B, 2, range(7000, 7100)), page(D, 2, range(8000, 8100))]
    index.apply(gone)
    settled(index)
    assert partition(index) == expected([*crawl, *gone])


def test_neighbours_that_depart_together_split_no_cluster_but_those_that_they_were_both_in(index: Index) -> None:
    """A and B, like C and D, are near; B and C are related alone: nothing near has come apart."""
    texts = {A: range(100), B: range(5, 105), C: range(35, 135), D: range(40, 140)}
    index.apply([page(url, 1, text) for url, text in texts.items()])
    index.apply([page(B, 2, range(7000, 7100)), page(C, 2, range(8000, 8100))])
    settled(index)
    assert {split.policy for split in index.splits()} == {"related"}


def test_a_page_that_returns_to_its_old_text_returns_to_its_cluster(index: Index) -> None:
    index.apply([page(A, 1, BASE), page(B, 1, range(2, 102))])
    for at in range(2, 10):
        index.apply([page(B, at, BASE if at % 2 else range(500, 600))])
    settled(index)
    assert partition(index)["near"] == {frozenset({A, B})}
    assert partition(index)["identical"] == {frozenset({A, B})}


@pytest.mark.parametrize(("r", "c"), [(float("nan"), None), (0.0, None), (None, 1.5), (0.5, 0.5)])
def test_a_policy_without_a_threshold_is_refused(r: float | None, c: float | None) -> None:
    with pytest.raises(WrongInput, match="above 0, at most 1"):
        Policy("odd", r, c)


def test_a_url_that_is_no_text_is_an_unknown_one(index: Index) -> None:
    index.apply([page(A, 1, BASE)])
    assert index.cluster_of("http://h.example/\udcff", "near") is None
    assert index.versions_of(["http://h.example/\udcff"])[0] == []
    assert index.sketch("http://h.example/\udcff") is None


def test_profiles_do_not_compare(index: Index) -> None:
    index.apply([page(A, 1, BASE), page(B, 1, BASE, profile=COMPACT), page(C, 1, BASE, profile=SHORT)])
    assert all(len(clusters) == 3 for clusters in partition(index).values())


def test_a_page_without_a_token_stands_alone(index: Index) -> None:
    index.apply([page(A, 1, []), page(B, 1, []), page(A, 2, [])])
    settled(index)
    assert all(clusters == {frozenset({A}), frozenset({B})} for clusters in partition(index).values())
    assert index.similar(stream([]), TEXT.code) == []


def test_expiry_forgets_what_was_superseded_and_only_that(index: Index) -> None:
    for at in range(1, 6):
        index.apply([page(A, at, range(at * 1000, at * 1000 + 100)), page(B, at, range(at * 1000, at * 1000 + 100))])
    settled(index)
    assert (index.expire(1), index.forgotten()) == (0, 0)
    assert (index.expire(4), index.forgotten()) == (6, 4)
    settled(index)
    assert [version.fetched_at for version in index.versions_of([A])[0]] == [4, 5]
    assert index.counts()["versions"] == 4
    assert index.counts()["contents"] == 2
    assert index.sketch(A, 4) is not None
    assert index.sketch(A, 2) is None
    assert index.expire(10**12) == 2
    assert index.expire(10**12 + 1) == 0
    assert index.forgotten() == 10**12
    index.apply([page(A, 3, range(3000, 3100))])  # late, and forgotten once more
    assert (index.expire(4), index.forgotten()) == (1, 10**12)
    assert partition(index)["near"] == {frozenset({A, B})}


def test_a_policy_added_later_is_built_from_the_stored_sketches(opened: Opened) -> None:
    crawl = World(7).crawl(60)
    index = opened(DEFAULT_POLICIES[:2])
    index.apply(crawl)
    extra = (*DEFAULT_POLICIES[2:], Policy("loose", resemblance=0.2))
    for policy in extra:
        index.add_policy(policy)
    assert index.settle(0) > 0
    settled(index)
    assert index.policies() == [*DEFAULT_POLICIES, extra[-1]]
    assert partition(index, index.policies()) == expected(crawl, index.policies())
    with pytest.raises(WrongInput, match="loose"):
        index.add_policy(Policy("loose", resemblance=0.3))
    with pytest.raises(WrongInput, match="unheard"):
        list(index.clusters("unheard"))


def test_a_policy_too_many_is_refused_in_words(redis_url: str, prefix: str) -> None:
    index = RedisIndex(redis_url, prefix)
    for number in range(13):
        index.add_policy(Policy(f"r{number}", resemblance=0.3 + 0.01 * number))
    index.add_policy(Policy("same", None, None))
    with pytest.raises(WrongInput, match="16"):
        index.add_policy(Policy("r13", resemblance=0.29))
    crawl = World(7).crawl(60)
    index.apply(crawl)
    settled(index)
    assert partition(index, index.policies()) == expected(crawl, index.policies())
    index.close()


@pytest.mark.parametrize("refused", [Policy("near", resemblance=0.8), Policy("r13", resemblance=0.29)])
def test_of_policies_of_which_one_is_refused_a_store_gets_none(redis_url: str, prefix: str, refused: Policy) -> None:
    RedisIndex(redis_url, prefix).close()
    more = [Policy(f"r{number}", resemblance=0.3 + 0.01 * number) for number in range(13)]
    with pytest.raises(WrongInput, match=refused.name):
        RedisIndex(redis_url, prefix, [*more, refused])
    index = RedisIndex(redis_url, prefix)
    assert index.policies() == list(DEFAULT_POLICIES)
    index.close()


def test_similar_finds_copies_parts_and_wholes_of_a_text_never_seen(index: Index) -> None:
    index.apply([page(A, 1, BASE), page(B, 1, BASE), page(C, 1, range(40)), page(D, 1, range(300))])
    hits = index.similar(stream(range(3, 100)), TEXT.code)
    assert [hit.url for hit in hits[:2]] == [A, B]
    assert hits[0].resemblance == pytest.approx(0.97, abs=0.01)
    assert hits[0].query_in_match == 1.0
    assert hits[0].cluster == hits[1].cluster is not None
    measured = {hit.url: hit for hit in hits}
    assert measured[C].match_in_query == pytest.approx(37 / 40, abs=0.02)
    assert measured[D].query_in_match == pytest.approx(1.0, abs=0.05)
    assert [hit.url for hit in index.similar(stream(range(3, 100)), TEXT.code, limit=1)] == [A]


def test_what_is_known_of_pages(index: Index) -> None:
    other = "http://other.example/x"
    index.apply([page(A, 1, BASE, sweep="spring"), page(A, 2, range(5), sweep="autumn"), page(other, 1, BASE)])
    assert index.hosts() == ["h.example", "other.example"]
    first, second = index.pages("h.example")
    assert (first.sweep, second.sweep) == ("spring", "autumn")
    assert first.bag == page(A, 1, BASE).bag
    assert first.content == page(A, 1, BASE).content
    assert first.status == 200
    assert [version.url for version in index.pages()] == [A, A, other]
    assert index.versions_of([B])[0] == []
    assert index.cluster_of(B, "near") is None
    assert index.sketch(B) is None
    known = index.sketch(A)
    assert known is not None
    assert known.complete
    assert known.shingles == 5
    assert known.text == page(A, 2, range(5)).main.text
    assert [cluster.members for cluster in index.clusters("near", host="other.example")] == []
    index.apply([page(B, 1, BASE)])
    assert [cluster.members for cluster in index.clusters("near", host="other.example")] == [(B, other)]


def test_the_position_is_kept_with_the_state(opened: Opened) -> None:
    index = opened()
    index.apply([page(A, 1, BASE)], {"0": "12", "1": "7"})
    index.apply([page(B, 1, BASE)], {"1": "8"}, index.position())
    assert index.position() == {"0": "12", "1": "8"}
    index.apply([page(C, 1, range(2, 102))], {"1": "9", "2": "4"}, {"1": "8"})  # one that resembles: it is linked
    assert index.position() == {"0": "12", "1": "9", "2": "4"}
    if not isinstance(index, MemoryIndex):
        assert opened().position() == {"0": "12", "1": "9", "2": "4"}


@pytest.mark.parametrize("linked", [False, True], ids=["nothing_linked", "linked"])
@pytest.mark.parametrize("held", ["15", "8"], ids=["others_went_on", "set_back"])
def test_a_position_is_moved_only_from_where_it_is_known_to_be(opened: Opened, held: str, linked: bool) -> None:
    """A reader that stood still puts none back, and a store that came back from the past is told none beyond that."""
    index = opened()
    index.apply([page(A, 1, BASE)], {"0": held, "1": "7"})
    crawl = [page(B, 1, range(2, 102) if linked else range(500, 600))]
    with pytest.raises(SetBack):
        index.apply(crawl, {"0": "13", "1": "9"}, {"0": "12", "1": "7"})
    with pytest.raises(SetBack):
        index.apply([], {"0": "13"})
    assert index.position() == {"0": held, "1": "7"}
    settled(index)
    assert partition(index) == expected([page(A, 1, BASE), *crawl])
    for told in ("13", "13", "3"):  # the same again; and an older one on purpose, of a log that lost its end
        index.apply(crawl, {"0": told}, {"0": held})
        held = told
        assert index.position() == {"0": told, "1": "7"}
