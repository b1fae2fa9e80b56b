"""The split protocol: its figures, what it learns from generated sites, and that its two engines agree."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random

import pytest
from clusterd.learning.koppula.columns import MAX_NAMES, Columns, Trial
from clusterd.learning.koppula.generalize import ANY
from clusterd.learning.koppula.pairwise import DELETE, Change
from clusterd.learning.koppula.proposals import KEEP, NAMES, PAIRS, Proposal, pairs_of
from clusterd.learning.koppula.proposals import _query_contexts as query_contexts
from clusterd.learning.koppula.protocol import clusters_of, halves, learn, measure, rules_at, sort_rule, split_protocol
from clusterd.learning.koppula.publish import published
from clusterd.learning.koppula.selection import _worth
from clusterd.learning.koppula.targets import SOURCES, select_sources
from clusterd.learning.koppula.tokenize import split_url
from clusterd_crawler.rules import RuleSet
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crawler.made_rules import key_under


@dataclass(frozen=True)
class Row:
    url: str
    content: int
    near_cluster: int = 0


def forum(topics: int = 60) -> list[Row]:
    """Each topic under a session, a highlight and a start of 0; the topic itself and its pages differ."""
    rows = []
    for n in range(topics):
        topic = f"http://forum.test/viewtopic.php?t={n}"
        rows += [
            Row(url, n) for url in (topic, f"{topic}&sid={n * 7919:08x}", f"{topic}&highlight=", f"{topic}&sid=x{n}")
        ]
        page = f"http://forum.test/viewtopic.php?t={n}&start=15"
        rows += [Row(url, topics + n) for url in (page, f"{page}&sid={n * 7907:08x}")]
    return rows


def wiki(pages: int = 60) -> list[Row]:
    rows = []
    for n in range(pages):
        urls = (f"http://wiki.test/wiki/Title_{n}", f"http://wiki.test/index.php?title=Title_{n}")
        rows += [Row(url, n) for url in urls]
    return rows


def mirror(pages: int = 60) -> list[Row]:
    paths = [f"{'deep/' * (n % 3)}section{n % 7}/page{n}.html" for n in range(pages)]
    return [Row(f"http://docs.test/{prefix}{path}", n) for n, path in enumerate(paths) for prefix in ("", "mirror/")]


def shop(pages: int = 60) -> list[Row]:
    """The paper's amazon.com: a title before the article's number, or none."""
    rows = []
    for n in range(pages):
        title = f"Lord-{n * 7919}"
        rows += [Row(f"http://shop.test/{title}/dp/B{n:05}", n), Row(f"http://shop.test/dp/B{n:05}", n)]
    return rows


def at(lines, precision):
    return next(line for line in lines if line["precision"] == precision)


class TestFigures:
    def test_a_line_for_each_precision_with_the_interfaces_names(self):
        lines = split_protocol(forum(), 0.5, seed=1)
        assert [line["precision"] for line in lines] == [1.0, 0.95, 0.9, 0.8, 0.0]
        names = {"precision", "rules", "reduction", "possible_reduction"}
        assert all(names | {f"average_reduction_{n}" for n in (10, 100, 1000)} <= line.keys() for line in lines)

    def test_possible_reduction_is_one_url_a_cluster(self):
        rows = [*forum(), Row("http://forum.test/alone.php", 10_000)]
        _, test = halves(clusters_of(rows), 0.5, 3)
        (clusters,) = test.values()
        urls = sum(map(len, clusters.values()))
        assert at(split_protocol(rows, 0.5, 3), 1.0)["possible_reduction"] == round((urls - len(clusters)) / urls, 6)

    def test_a_seed_is_a_split(self):
        assert split_protocol(forum(), 0.5, 5) == split_protocol(forum(), 0.5, 5)
        assert halves(clusters_of(forum()), 0.5, 5) != halves(clusters_of(forum()), 0.5, 6)

    def test_average_reduction_is_urls_saved_by_each_rule_of_the_coverage(self):
        line = at(split_protocol(forum(), 0.5, 1), 0.95)
        saved = line["reduction"] * line["urls"]
        assert line["average_reduction_10"] == pytest.approx(saved / line["rules"], abs=0.1)
        assert line["average_reduction_1000"] == 0

    def test_near_clusters_by_policy(self):
        rows = [Row("http://a.test/1", 1, 7), Row("http://a.test/2", 2, 7), Row("http://a.test/3", 3)]
        assert clusters_of(rows) == {}
        assert [len(urls) for urls in clusters_of(rows, "near")["a.test"].values()] == [2]

    @given(st.integers(0, 1000), st.floats(0.1, 0.9))
    @settings(deadline=None, max_examples=25)
    def test_halves_share_no_cluster_and_lose_none(self, seed, split):
        clusters = clusters_of(forum(20))
        train, test = halves(clusters, split, seed)
        parts = [set(half.get("forum.test", {})) for half in (train, test)]
        assert not parts[0] & parts[1]
        assert parts[0] | parts[1] == set(clusters["forum.test"])

    def test_nothing_to_learn_from_is_no_error(self):
        line = at(split_protocol([Row("http://a.test/x", 1), Row("not a url", 2)], 0.5, 0), 0.95)
        assert (line["rules"], line["reduction"], line["possible_reduction"]) == (0, 0.0, 0.0)


class TestLearning:
    @pytest.mark.parametrize(("site", "share"), [(forum, 0.99), (wiki, 1.0), (mirror, 1.0), (shop, 1.0)])
    def test_what_is_regular_is_found_and_nothing_else(self, site, share):
        line = at(split_protocol(site(), 0.5, 2), 0.95)
        assert line["test_precision"] == 1.0
        assert line["reduction"] >= share * line["possible_reduction"]
        assert line["rules"] <= 6

    def test_a_superfluous_component_goes_only_before_what_stood_behind_it(self):
        ((host, clusters),) = clusters_of(shop()).items()
        rules = RuleSet(host, 1, tuple(rules_at(learn(host, clusters, 0), 0.95)))
        assert key_under(rules, "http://shop.test/Dune/dp/B9")[0] == key_under(rules, "http://shop.test/dp/B9")[0]
        reviews = "http://shop.test/Dune/reviews/B9"
        assert key_under(rules, reviews)[0] == reviews

    def test_a_parameter_that_makes_a_page_stays(self):
        (found,) = [learn(host, clusters, 0) for host, clusters in clusters_of(forum()).items()]
        rules = RuleSet("forum.test", 1, tuple(rules_at(found, 0.95)))
        one, two = (key_under(rules, f"http://forum.test/viewtopic.php?t={n}&sid=new")[0] for n in (777, 778))
        assert one != two
        assert key_under(rules, "http://forum.test/viewtopic.php?t=777&start=15")[0] != one

    def test_a_log_in_wall_is_a_family_and_teaches_nothing_else(self):
        wall = [
            Row(f"http://forum.test/posting.php?mode={mode}&p={n}", -1) for n in range(80) for mode in ("quote", "edit")
        ]
        (found,) = [learn(host, clusters, 0) for host, clusters in clusters_of([*forum(), *wall]).items()]
        rules = RuleSet("forum.test", 1, tuple(rules_at(found, 0.95)))
        keys = {key_under(rules, f"http://forum.test/posting.php?mode=quote&p={n}")[0] for n in (5000, 5001)}
        assert len(keys) == 1
        topics = {key_under(rules, f"http://forum.test/viewtopic.php?t={n}")[0] for n in (5000, 5001)}
        assert len(topics) == 2

    def test_the_order_of_keys_needs_evidence(self):
        pairs = [[split_url(f"http://a.test/?x={n}&y=1"), split_url(f"http://a.test/?y=1&x={n}")] for n in range(10)]
        assert sort_rule("a.test", pairs).precision == 1.0
        assert sort_rule("a.test", [[first] for pair in pairs for first in pair]) is None

    def test_at_most_twenty_rules_a_site(self):
        rows = [
            Row(f"http://a.test/app{app}/view?id={n}&v{app}={value}", 1000 * app + n)
            for app in range(40)
            for n in range(12)
            for value in ("", "1")
        ]
        assert at(split_protocol(rows, 0.5, 0), 0.95)["rules"] <= 20

    def test_a_giant_cluster_costs_no_more_pairs_than_a_small_one(self):
        giant = [split_url(f"http://a.test/posting.php?p={n}") for n in range(50_000)]
        assert len(pairs_of(giant, Random(0))) <= PAIRS + 2
        assert len(select_sources(giant, Random(0))) == SOURCES


def slot(name: str):
    return ("?" + name, 1, 0, 0, 0)


FIRST = ("", 3, 0, 0, 0)
RULES = [
    ((), ((slot("sid"), DELETE),)),
    (((slot("mode"), ANY),), ((KEEP, Change("keep", "mode")),)),
    (((slot("mode"), "a"),), ((slot("p"), DELETE), (slot("q"), DELETE))),
    (((("", 3, 0, 0, 0), "x"),), ((("", 3, 0, 0, 0), DELETE),)),
    (((("", 0, 1, 0, 0), "index.html"),), ((("", 0, 1, 0, 0), Change("set", "")),)),
    (((("", 3, 0, 0, 0), "y"),), ((("", 0, 0, 0, 0), Change("family")),)),
    (((slot("p"), ANY), (slot("q"), None)), ((slot("q"), Change("copy", source=slot("p"))), (slot("p"), DELETE))),
    ((), ((FIRST, DELETE), (("", 4, 0, 0, 0), DELETE), (slot("sid"), DELETE))),
]
PATHS = st.lists(st.sampled_from(["x", "y", "z", "index.html"]), max_size=3)
A_PAIR = st.sampled_from(["sid=1", "sid=2", "mode=a", "mode=b", "p=1", "p=2", "q=1"])


def url_of(path: list[str], query: list[str]) -> str:
    return "http://a.test/" + "/".join(path) + ("?" + "&".join(query) if query else "")


URLS = st.builds(url_of, PATHS, st.lists(A_PAIR, max_size=3, unique_by=lambda pair: pair[0]))
#: Of which a key may be repeated, in any order of its values.
REPEATING = st.builds(url_of, PATHS, st.lists(A_PAIR, max_size=5))
OF_REPEATED = [
    *RULES[:3],
    ((), ((KEEP, Change("keep", "p&q")),)),
    ((), ((("?p", 2, 0, 0, 0), DELETE),)),
    (((("?p", 2, 0, 0, 0), ANY),), ((slot("sid"), DELETE),)),
]


class TestEngines:
    @given(st.lists(URLS, min_size=2, max_size=12, unique=True), st.sampled_from(RULES))
    @settings(deadline=None, max_examples=200)
    def test_columns_group_as_published_keys_do(self, urls, said):
        """The learner tries rules on columns; the crawl applies them to URLs. Both must make the same groups."""
        once, settled = self.groups(urls, *said)
        # A crawl applies a rule until nothing changes, the learner once: groups may only be wider.
        assert all(any(group <= wider for wider in settled) for group in once)
        if not any(change.op == "delete" and not place[0] for place, change in said[1]):
            assert once == settled

    @given(st.lists(REPEATING, min_size=2, max_size=12, unique=True), st.sampled_from(OF_REPEATED))
    @settings(deadline=None, max_examples=200)
    def test_a_key_that_is_there_several_times_goes_and_stays_as_in_a_crawl(self, urls, said):
        once, settled = self.groups(urls, *said)
        assert once == settled

    @staticmethod
    def groups(urls, context, changes):
        """Return which URLs a rule makes one on columns, and in a crawl."""
        rule = published("a.test", context, changes)
        # The order of query keys is no part of a URL here (definition 1): compare sorted ones.
        urls = list(dict.fromkeys(split_url(url).text(sort=True) for url in urls))
        columns = Columns([split_url(url) for url in urls], range(len(urls)))
        columns.take(context, changes)
        by_columns, by_keys = defaultdict(set), defaultdict(set)
        for number, url in enumerate(urls):
            by_columns[int(columns.total[number])].add(url)
            key = key_under(RuleSet("a.test", 1, (rule,)), url)[0]
            by_keys[key if key.startswith("family") else split_url(key).text(sort=True)].add(url)
        return {frozenset(group) for group in by_columns.values()}, {frozenset(group) for group in by_keys.values()}

    @given(st.lists(st.tuples(URLS, st.integers(0, 3)), min_size=2, max_size=14, unique_by=lambda row: row[0]))
    @settings(deadline=None, max_examples=150)
    def test_a_trial_counts_what_brute_force_counts(self, rows):
        context, changes = RULES[1]
        columns = Columns([split_url(url) for url, _ in rows], [cluster for _, cluster in rows])
        trial = columns.trial(context, changes)
        before, after = defaultdict(list), defaultdict(list)
        covered = set()
        for url, cluster in rows:
            parts = split_url(url)
            query = dict(parts.query)
            plain = (parts.path, frozenset(query.items()))
            made = (parts.path, frozenset({("mode", query["mode"])})) if "mode" in query else plain
            covered |= {url} if "mode" in query else set()
            before[plain].append((url, cluster))
            after[made].append((url, cluster))
        assert trial.covered == len(covered)
        if len(covered) > 1:
            assert trial.right + trial.wrong == len(before) - len(after)
            false = {key: len(group) - _largest(group) for key, group in after.items()}
            assert trial.false == sum(
                min(false[key], sum(url in covered for url, _ in group)) for key, group in after.items()
            )


def _largest(group) -> int:
    clusters = [cluster for _, cluster in group]
    return max(map(clusters.count, clusters))


@pytest.mark.parametrize(
    ("right", "wrong", "precision", "worth"),
    [(3, 2, 0.9, 1), (5, 4, 0.9, 0), (5, 4, 0.5, 1), (2, 0, 0.9, 2), (1, 0, 0.9, 0)],
)
def test_what_a_rule_adds_must_be_right_in_six_of_ten_merges(right, wrong, precision, worth):
    assert _worth(Trial(20, 0, right, wrong), Proposal((), ()), precision) == worth


def part(i: int, j: int):
    """A deep token of a query value, counted from both ends."""
    return (*slot("t")[:3], i, j)


PARTS = ((part(1, 3), "a"), (part(2, 2), "-"), (part(3, 1), ANY))


class TestPublished:
    def test_a_reference_moves_a_value_from_the_query_to_the_path(self):
        (found,) = [learn(host, clusters, 0) for host, clusters in clusters_of(wiki()).items()]
        rules = rules_at(found, 0.95)
        key, _ = key_under(RuleSet("wiki.test", 1, tuple(rules)), "http://wiki.test/index.php?title=New")
        assert key == key_under(RuleSet("wiki.test", 1, tuple(rules)), "http://wiki.test/wiki/New")[0]

    def test_what_edits_in_turn_cannot_say_is_not_published(self):
        add_and_remove = ((("", 3, 2, 0, 0), DELETE), (("", 4, 2, 0, 0), Change("set", "new")))
        assert published("a.test", (), add_and_remove) is None

    @pytest.mark.parametrize(
        "slots", [(("", 4, 0, 0, 0),), (FIRST, ("", 4, 0, 0, 0)), (("", 0, 1, 0, 0), ("", 0, 2, 0, 0))]
    )
    def test_any_value_is_replaced_where_there_is_one_and_never_added(self, slots):
        changes = tuple((slot, Change("set", ANY)) for slot in slots)
        urls = [f"http://a.test/{path}" for path in ("x", "x/y", "x/z", "u/v/w")]
        columns = Columns([split_url(url) for url in urls], range(len(urls)))
        columns.take((), changes)
        rules = RuleSet("a.test", 1, (published("a.test", (), changes),))
        keys = Columns([split_url(key_under(rules, url)[0]) for url in urls], range(len(urls)))
        assert columns.total.tolist() == keys.total.tolist()

    @pytest.mark.parametrize(
        ("slots", "left"),
        [
            ((("", 3, 4, 0, 0), ("", 4, 3, 0, 0)), "p/q"),
            ((("", 3, 0, 0, 0), ("", 4, 0, 0, 0)), "p/q"),
            ((("", 0, 4, 0, 0), ("", 0, 3, 0, 0)), "p/q"),
            ((("", 0, 1, 0, 0), ("", 0, 2, 0, 0)), "en/us"),
            ((("", 3, 0, 0, 0), ("", 0, 1, 0, 0)), "us/p"),
        ],
    )
    def test_no_deletion_moves_what_another_takes(self, slots, left):
        of_depth = ((("", 3, 4, 0, 0), "en"), (("", 6, 1, 0, 0), "q"))  # what is left is not edited again
        rules = RuleSet("a.test", 1, (published("a.test", of_depth, tuple((slot, DELETE) for slot in slots)),))
        assert key_under(rules, "http://a.test/en/us/p/q")[0] == f"http://a.test/{left}"

    def test_what_is_asked_of_a_replaced_component_is_asked_once(self):
        rule = published("a.test", ((FIRST, "x"),), ((FIRST, Change("set", ANY)),))
        assert [condition.values for condition in rule.context] == [("x",)]

    def test_a_part_of_a_query_value_is_edited(self):
        rule = published("a.test", PARTS, ((part(3, 1), Change("lower")),))
        rules = RuleSet("a.test", 1, (rule,))
        assert key_under(rules, "http://a.test/p?t=a-XY")[0] == "http://a.test/p?t=a-xy"
        assert key_under(rules, "http://a.test/p?t=b-XY")[0] == "http://a.test/p?t=b-XY"

    @pytest.mark.parametrize(
        ("context", "changes"),
        [
            (PARTS, ((part(1, 3), Change("set", "q")),)),  # a literal part has no number in a pattern
            ((), ((part(3, 1), Change("set", ANY)),)),  # nor has one of which the context says nothing
            (PARTS, ((part(1, 2), Change("lower")),)),
            (PARTS, ((slot("u"), Change("copy", source=part(1, 3))),)),
            (((part(1, 2), ANY), (part(2, 1), ANY)), ((part(1, 2), Change("lower")),)),  # "**" is one star
            ((), ((slot("a"), Change("copy", source=slot("b"))), (slot("c"), Change("copy", source=slot("a"))))),
        ],
    )
    def test_what_has_no_key_or_reads_what_is_written_is_not_published(self, context, changes):
        assert published("a.test", context, changes) is None

    def test_measuring_no_rules_saves_nothing(self):
        _, test = halves(clusters_of(forum()), 0.5, 0)
        done = measure({}, test)
        assert done.urls == done.keys
        assert done.false == 0


class TestHostile:
    """Crafted hosts cost bounded time: counted in steps, not in seconds."""

    def test_contexts_of_a_pair_are_bounded_whatever_its_parameters(self):
        query = "&".join(f"p{n}=1" for n in range(500))
        source, target = split_url(f"http://a.test/x/y/z?{query}&q=1"), split_url(f"http://a.test/x/y/z?{query}")
        assert NAMES < len(query_contexts(source, target)) <= 3 * NAMES + 2

    def test_names_made_up_for_every_url_are_learned_from_in_bounded_work(self):
        random = Random(1)
        rows = [
            Row(f"http://a.test/?id={n}&" + "&".join(f"{random.getrandbits(40):x}=1" for _ in range(20)), n)
            for n in range(150)
            for _ in range(3)
        ]
        (found,) = [learn(host, clusters, 0) for host, clusters in clusters_of(rows).items()]
        assert len(found.evidence.columns.columns) <= MAX_NAMES
        assert sum(map(len, found.evidence.proposals)) <= 140 * 48

    @given(st.lists(st.text(max_size=30), min_size=2, max_size=8, unique=True))
    @settings(deadline=None, max_examples=60)
    def test_no_text_is_an_error(self, texts):
        rows = [Row("http://a.test/" + text, n // 2) for n, text in enumerate(texts)]
        assert len(split_protocol([*rows, *forum(8)], 0.5, 1)) == 5
