"""The worked examples of Koppula et al. 2010 from target selection on, each with where it stands."""

from __future__ import annotations

from random import Random
from urllib.parse import urlsplit

import pytest
from clusterd.learning.koppula.apply import matches
from clusterd.learning.koppula.deep_tokens import DeepTokenizer, grow
from clusterd.learning.koppula.generalize import GeneralRule, Options, generalize, key_order
from clusterd.learning.koppula.generalize import _viewed as viewed
from clusterd.learning.koppula.pairwise import Change, PairwiseRule, pairwise_rule
from clusterd.learning.koppula.publish import published
from clusterd.learning.koppula.targets import most_normal
from clusterd.learning.koppula.tokenize import key_of, split_url, tokenize
from clusterd_crawler.rules import RuleSet

from tests.clusterd.learning.paper import (
    changes_of,
    context_of,
    learned,
    levels,
    random_name,
    transform,
    yahoo,
    yahoo_clusters,
)
from tests.crawler.made_rules import key_under


class TestTargets:
    """Section 3.2.1, algorithm 4."""

    YOUTUBE = (
        "http://www.youtube.com/watch?v={}&feature=channel",
        "http://www.youtube.com/watch?v={}",
        "http://www.youtube.com/watch?v={}&feature=channel&ytsession=WDxRmlqSR8olo8oVN",
    )

    def test_youtube_target(self):
        cluster = [split_url(url.format("S9_4KMVtgw0")) for url in self.YOUTUBE]
        assert most_normal(cluster) == 1

    def test_a_static_url_is_preferred_to_a_shorter_one(self):
        cluster = [
            split_url("http://en.wikipedia.org/wiki/Casino_Royale"),
            split_url("http://en.wikipedia.org/?t=Casino_Royale"),
        ]
        assert most_normal(cluster) == 0

    def test_youtube_generalized_never_deletes_the_video(self):
        clusters = [[url.format(video) for url in self.YOUTUBE] for video in ("S9_4KMVtgw0", "abc_1", "d-f_2", "g_h3")]
        rules = learned(clusters)
        assert {frozenset(changes_of(rule)) for rule in rules} == {
            frozenset({"?feature"}),
            frozenset({"?feature", "?ytsession"}),
        }
        assert all(context_of(rule)["?v"] == "*" for rule in rules)
        unseen = [transform(rule, self.YOUTUBE[2].format("new")) for rule in rules]
        assert split_url(self.YOUTUBE[1].format("new")) in unseen


class TestGeneralization:
    """Sections 2.1 and 3.2.2, algorithm 5."""

    IMDB = tuple(
        [f"http://www.imdb.com/title/tt{film}/photogallery", f"http://www.imdb.com/title/tt{film}/mediaindex"]
        for film in ("0810900", "0053198")
    )

    def imdb_tokenizer(self) -> DeepTokenizer:
        films = [f"http://www.imdb.com/title/tt{1000000 + 7919 * n}/mediaindex" for n in range(30)]
        return DeepTokenizer.learn(map(tokenize, films))

    def imdb_rules(self) -> list[PairwiseRule]:
        cut = self.imdb_tokenizer().cut
        return [
            pairwise_rule(cut(tokenize(source)), cut(tokenize(target)), number)
            for number, (source, target) in enumerate(self.IMDB)
        ]

    def test_imdb_context_takes_a_wildcard_for_the_id(self):
        (rule,) = generalize(self.imdb_rules(), Options(threshold=1))
        assert context_of(rule) == {
            "k(1,-)": "http",
            "k(2,-)": "www.imdb.com",
            "k(3,3)": "title",
            "k(4.1,2.2)": "tt",
            "k(4.2,2.1)": "*",
            "k(5,1)": "photogallery",
        }
        assert changes_of(rule) == {"k(5,1)": "mediaindex"}

    def test_imdb_id_is_selected_first(self):
        first = key_order(viewed(self.imdb_rules()))[0]
        assert str(key_of(first)) == "k(4.2,2.1)"

    def test_agarizona_one_rule_for_every_depth(self):
        clusters = [
            ["http://ag.arizona.edu/srnr/about/art/index.html", "http://ag.arizona.edu/srnr/about/art"],
            ["http://ag.arizona.edu/art/index.html", "http://ag.arizona.edu/art"],
        ]
        (rule,) = learned(clusters)
        assert context_of(rule) == {"k(1,-)": "http", "k(2,-)": "ag.arizona.edu", "k(-,1)": "index.html"}
        assert changes_of(rule) == {"k(-,1)": "DELETE"}
        for source, target in [
            ("http://ag.arizona.edu/x/y/z/index.html", "http://ag.arizona.edu/x/y/z"),
            ("http://ag.arizona.edu/index.html", "http://ag.arizona.edu"),
        ]:
            assert transform(rule, source) == split_url(target)

    def test_360_yahoo_rule_holds_for_friends_only(self):
        tokenizer = yahoo()
        (rule,) = learned(yahoo_clusters(), tokenizer, min_clusters=1)
        assert context_of(rule) == {
            "k(1,-)": "http",
            "k(2,-)": "360.yahoo.com",
            "k(3.1,1.3)": "friends",
            "k(3.2,1.2)": "-",
            "k(3.3,1.1)": "*",
        }
        for url in ("http://360.yahoo.com/blog-abc", "http://360.yahoo.com/anything"):
            assert not matches(rule.context, tokenizer.cut(tokenize(url)))

    def test_360_yahoo_transformation_is_a_wildcard_once_targets_differ(self):
        """Several owners, each with several names: no single target, so the token is irrelevant in friends-* only."""
        random = Random(5)
        clusters = [[f"http://360.yahoo.com/friends-{random_name(random)}" for _ in range(6)] for _ in range(6)]
        (rule,) = learned(clusters, yahoo())
        assert context_of(rule)["k(3.3,1.1)"] == "*"
        assert changes_of(rule) == {"k(3.3,1.1)": "*"}
        said = published("360.yahoo.com", rule.context, rule.changes)
        assert said is not None
        assert [(str(c.key), c.test, c.values) for c in said.context] == [("k(3,1)", "like", ("friends-*",))]
        key = key_under(RuleSet("360.yahoo.com", 1, (said,)), "http://360.yahoo.com/friends-new")[0]
        assert key == "http://360.yahoo.com/friends-*"

    @staticmethod
    def sessions(dropped: int, fixed: int) -> list[PairwiseRule]:
        """Pairs of so many clusters that lose ``?s``, and of so many in which it becomes 1: one context for both."""
        key = ("?s", 1, 0, 0, 0)
        changes = [((key, Change("delete")),)] * dropped + [((key, Change("set", "1")),)] * fixed
        return [PairwiseRule({key: f"v{number}"}, change, number) for number, change in enumerate(changes)]

    @pytest.mark.parametrize(("dropped", "fixed", "change"), [(6, 5, "DELETE"), (5, 6, "1")])
    def test_of_two_transformations_at_one_context_that_of_most_clusters_stays(self, dropped, fixed, change):
        (rule,) = generalize(self.sessions(dropped, fixed))
        assert context_of(rule) == {"?s": "*"}
        assert changes_of(rule) == {"?s": change}
        assert (rule.clusters, rule.pairs) == (6, 6)

    @pytest.mark.parametrize(("purity", "rules"), [(0.6, 1), (0.7, 0)])
    def test_a_context_whose_pairs_disagree_too_much_makes_no_rule(self, purity, rules):
        assert len(generalize(self.sessions(6, 4), Options(purity=purity))) == rules

    def test_rules_of_most_clusters_are_first_then_those_of_most_pairs(self):
        def dropped(name: str, pairs: int, clusters: int) -> list[PairwiseRule]:
            key = (name, 1, 0, 0, 0)
            changes = ((key, Change("delete")),)
            return [PairwiseRule({key: f"v{number}"}, changes, number % clusters) for number in range(pairs)]

        rules = generalize([*dropped("?a", 4, 4), *dropped("?c", 6, 5), *dropped("?b", 6, 5), *dropped("?d", 7, 5)])
        assert [next(iter(changes_of(rule))) for rule in rules] == ["?d", "?b", "?c", "?a"]

    def test_one_cluster_is_not_enough(self):
        assert learned(yahoo_clusters(), yahoo()) == []

    def test_parameters_are_no_components(self):
        last = ("", 0, 1, 0, 0)
        rule = GeneralRule(((last, "b"),), ((last, Change("delete")),), clusters=1, pairs=1)
        query = "&".join(["x=1"] * 5)
        assert transform(rule, f"http://a.com/a/b?{query}") == split_url(f"http://a.com/a?{query}")

    def test_without_deep_tokens_the_whole_component_is_a_wildcard(self):
        (rule,) = learned(yahoo_clusters(), min_clusters=1)
        assert context_of(rule)["k(3,1)"] == "*"
        assert matches(rule.context, tokenize("http://360.yahoo.com/anything"))

    def test_amazon_superfluous_component(self):
        titles = ("Lord-Rings", "Dune", "Emma", "Ulysses", "Hamlet")
        clusters = [
            [f"http://www.amazon.com/{title}/dp/B00063{n}", f"http://www.amazon.com/dp/B00063{n}"]
            for n, title in enumerate(titles)
        ]
        (rule,) = learned(clusters)
        assert changes_of(rule) == {"k(3,3)": "DELETE"}
        assert (context_of(rule)["k(3,3)"], context_of(rule)["k(4,2)"], context_of(rule)["k(5,1)"]) == ("*", "dp", "*")
        unseen = "http://www.amazon.com/Middlemarch/dp/B0009"
        assert transform(rule, unseen) == split_url("http://www.amazon.com/dp/B0009")
        assert transform(rule, "http://www.amazon.com/Middlemarch/reviews/B0009") is None

    def test_wikipedia_reference_under_a_wildcard(self):
        titles = ("Casino_Royale", "Paris", "Berlin_Wall", "London", "Tea")
        clusters = [[f"http://en.wikipedia.org/wiki/{t}", f"http://en.wikipedia.org/?title={t}"] for t in titles]
        (rule,) = learned(clusters)
        assert context_of(rule)["?title"] == "*"
        assert changes_of(rule) == {"?title": "DELETE", "k(3,2)": "wiki", "k(4,1)": "copy(?title)"}
        assert transform(rule, "http://en.wikipedia.org/?title=New") == split_url("http://en.wikipedia.org/wiki/New")

    def test_stanford_session_is_dropped_and_the_category_stays(self):
        clusters = [
            [f"http://cs.stanford.edu/degrees/{degree}/faq/index.php?sid={10_000 * n + 17 * k}&cat=8" for k in range(6)]
            for n, degree in enumerate(("mscs", "phd", "bs"), start=1)
        ]
        rules = learned(clusters, min_clusters=1)
        assert len(rules) == 3
        for rule in rules:
            assert context_of(rule)["?sid"] == "*"
            assert context_of(rule)["?cat"] == "8"
            assert changes_of(rule) == {"?sid": "*"}

    def test_ebay_custom_delimiters_become_references(self):
        clusters = ebay_clusters()
        tree = grow(sorted({urlsplit(url).path[1:] for cluster in clusters for url in cluster}))
        assert any("QQ_fclsZ*QQ_pcatidZ" in pattern for level in levels(tree) for pattern in level)
        tokenizer = DeepTokenizer.learn(tokenize(url) for cluster in clusters for url in cluster)
        rules = learned(clusters, tokenizer)
        held = "http://catalog.ebay.com/The-Fog_UPC_04339606777_W0?_fcls=3&_pcatid=9&_pid=43979999&_tab=7"
        static = "http://catalog.ebay.com/The-Fog_UPC_04339606777_W0QQ_fclsZ3QQ_pcatidZ9QQ_pidZ43979999QQ_tabZ7"
        assert split_url(static) in {transform(rule, held, tokenizer) for rule in rules}


def ebay_clusters() -> list[list[str]]:
    random = Random(11)
    films = [
        "Grudge",
        "Ring",
        "Host",
        "Others",
        "Eye",
        "Omen",
        "Thing",
        "Birds",
        "Mist",
        "Shining",
        "Village",
        "Descent",
    ]
    clusters = []
    for film in films:
        head = f"http://catalog.ebay.com/The-{film}_UPC_0{random.randrange(10**10)}_W0"
        values = [random.randrange(1, 5), random.randrange(5, 9), random.randrange(10**7, 10**8), random.randrange(9)]
        long = head + "QQ_fclsZ{}QQ_pcatidZ{}QQ_pidZ{}QQ_tabZ{}".format(*values)
        clusters.append([long, head + "?_fcls={}&_pcatid={}&_pid={}&_tab={}".format(*values)])
    return clusters


class TestMetrics:
    """Section 5: the definitions against the printed tables."""

    @pytest.mark.parametrize(
        ("urls", "reduction", "rules", "printed"),
        [
            (7.87e6, 0.2642, 1707, 1218.78),
            (2.97e9, 0.0763, 439_919, 515.11),
            (2.97e9, 0.2902, 810_611, 1062.91),
            (7.87e6, 0.03, 1149, 205.6),
            (7.87e6, 0.16, 21_894, 57.5),
        ],
    )
    def test_average_reduction_per_rule(self, urls, reduction, rules, printed):
        from clusterd.learning.koppula.protocol import average_reduction

        assert average_reduction(urls * reduction, rules) == pytest.approx(printed, rel=5e-3)

    def test_table_2_reductions(self):
        from clusterd.learning.koppula.protocol import reduction_ratio

        assert reduction_ratio(12.37e6, 93.23e3) == pytest.approx(0.9925, abs=1e-4)
        assert reduction_ratio(93.23e3, 38.83e3) == pytest.approx(0.5835, abs=1e-4)
