"""The worked examples that Koppula et al. 2010 print, each with where it stands; hyphens and dots of URLs restored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import pytest
from clusterd.learning.apply_paper import matches, transform
from clusterd.learning.deep_tokens import DeepTokenizer, candidate_anchors, cluster_candidates, grow, select_anchors
from clusterd.learning.deep_tokens import _Member as Member
from clusterd.learning.generalize import GeneralRule, Options, generalize, key_order
from clusterd.learning.generalize import _viewed as viewed
from clusterd.learning.pairwise import PairwiseRule, pairwise_rule
from clusterd.learning.publish import published
from clusterd.learning.targets import generate_all_rules, select_targets
from clusterd.learning.tokenize import Tokens, key_of, split_url, tokenize
from clusterd_crawler.keys import key_under
from clusterd_crawler.rules import RuleSet


def written(tokens: Tokens) -> dict[str, str]:
    """Tokens by key as the paper writes it."""
    return {str(key_of(slot)): value for slot, value in tokens.items()}


def changes_of(rule: PairwiseRule | GeneralRule) -> dict[str, str]:
    """A transformation as the paper writes it: literal, DELETE, Ref(key), Uppercase(key)."""
    return {str(key_of(slot)): _change(slot, change) for slot, change in rule.changes}


def _change(slot, change) -> str:
    if change.op == "delete":
        return "DELETE"
    if change.op == "set":
        return change.value
    return f"{change.op}({key_of(change.source or slot)})"


def learned(
    clusters: Iterable[Sequence[str]], tokenizer: DeepTokenizer | None = None, **options: int
) -> list[GeneralRule]:
    """The whole way: target and source selection, pairwise rules, generalization."""

    def tokens(parts):
        return tokenizer.cut(tokenize(parts)) if tokenizer else tokenize(parts)

    parts = [[split_url(url) for url in cluster] for cluster in clusters]
    return generalize(generate_all_rules(parts, tokens, Random(0)), Options(**options))


def context_of(rule: GeneralRule) -> dict[str, str | None]:
    return {str(key_of(slot)): test for slot, test in rule.context}


class TestRepresentation:
    """Sections 2 and 3.1.1, definition 1."""

    def test_wikipedia_is_keyed_from_both_ends(self):
        assert written(tokenize("http://en.wikipedia.org/wiki?title=Generalized_linear_model")) == {
            "k(1,3)": "http",
            "k(2,2)": "en.wikipedia.org",
            "k(3,1)": "wiki",
            "?title": "Generalized_linear_model",
        }

    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("http://a.org/x/#top", {"k(3,2)": "x", "k(4,1)": ""}),
            ("http://a.org", {}),
            ("http://a.org/", {}),
            ("http://a.org/?a=1&a=2&b", {"?a": "1", "?a#2": "2", "?b": "\0"}),
            ("http://a.org/?C=N;O=D", {"?C": "N", "?O": "D"}),
            ("http://a.org/x;jsessionid=7?a=", {"k(3,1)": "x", "?a": "", "?;jsessionid": "7"}),
            ("http://a.org:80/x", {"k(3,1)": "x"}),
        ],
    )
    def test_what_the_paper_leaves_open_is_settled_as_written(self, url, expected):
        tokens = written(tokenize(url))
        assert {key: value for key, value in tokens.items() if key[:3] not in {"k(1", "k(2"}} == expected

    def test_an_order_of_query_keys_is_not_part_of_the_function(self):
        assert tokenize("http://a.org/?x=1&y=2") == tokenize("http://a.org/?y=2&x=1")
        assert split_url("http://a.org/?y=2&x=1").text(sort=True) == "http://a.org/?x=1&y=2"


FIGURE_2 = [
    "ctattractions-17876002-Austria-Vienna-attractions.html",
    "ctattractions-17826402-Austria-Salzburg-attractions.html",
    "ctattractions-17682302-Austria-Graz-attractions.html",
    "profile-78587305-Austria-Vienna-Belvedere.html",
    "profile-78587306-Austria-Salzburg-Dommuseum.html",
    "profile-78587307-Austria-Salzburg-Eisriesenwelt.html",
]


class TestDeepTokens:
    """Section 3.1.2, algorithms 1 and 2, figure 2."""

    def test_figure_2_tree(self):
        assert list(grow(FIGURE_2, min_tokens=6).levels()) == [
            ["*"],
            ["*-Austria-*.html"],
            ["ctattractions-*-Austria-*.html", "profile-*-Austria-*.html"],
            ["ctattractions-*-Austria-*-attractions.html"],
        ]

    def test_figure_2_deep_tokens(self):
        leaf = next(grow(FIGURE_2, min_tokens=6).leaves())
        deep = leaf.cut(FIGURE_2[0])
        pieces = ("ctattractions", "-", "17876002", "-", "Austria", "-", "Vienna", "-", "attractions", ".", "html")
        assert deep == pieces

    def test_figure_2_clusters_and_selection_of_the_first_iteration(self):
        members = [Member(candidate_anchors(token)) for token in FIGURE_2]
        clusters = cluster_candidates(members)
        assert {frozenset(values) for values in clusters.values()} == {
            frozenset(values.split())
            for values in (
                "Austria",
                "html",
                "ctattractions profile",
                "Vienna Salzburg Graz",
                "attractions Belvedere Dommuseum Eisriesenwelt",
                "17876002 17826402 17682302 78587305 78587306 78587307",
            )
        }
        chosen = {value for place in select_anchors(members) for value in clusters[place]}
        assert chosen == {"Austria", "html"}

    def test_simtel_brackets_are_the_hosts_delimiters(self):
        scripts = [
            "accelerate.php",
            "download.html",
            "ftp.cgi",
            "list.asp",
            "news.jsp",
            "mirror.pl",
            "topten.html",
            "find.cgi",
        ]
        sites = ["softwareoasis", "winsite", "tucows", "nonags", "jumbo", "download32"]
        urls = [
            f"http://www.simtel.net/{script}[id]{100019 + 7 * number}[SiteID]{site}"
            for number, (script, site) in enumerate((script, site) for script in scripts for site in sites)
        ]
        # Brackets may not stand in a path (RFC 3986), but these did; they come as they are or encoded.
        tokenizer = DeepTokenizer.learn(map(tokenize, urls))
        deep = list(tokenizer.cut(tokenize(urls[0])).values())
        assert [piece.replace("%5B", "[").replace("%5D", "]") for piece in deep] == [
            "http",
            "www.simtel.net",
            "accelerate.php",
            *("[", "id", "]"),
            "100019",
            *("[", "SiteID", "]"),
            "softwareoasis",
        ]
        assert written(tokenizer.cut(tokenize(urls[0])))["k(3.8,1.2)"] in {"]", "%5D"}

    def test_ebay_candidates_and_anchors(self):
        token = "The-Grudge_UPC_043396062603_W0QQ_fclsZ1QQ_pcatidZ1QQ_pidZ43973351QQ_tabZ2"
        assert [run.text for run in candidate_anchors(token)] == (
            [
                "The",
                "Grudge",
                "UPC",
                "043396062603",
                "W",
                "0",
                "QQ",
                "fcls",
                "Z",
                "1",
                "QQ",
                "pcatid",
                "Z",
                "1",
                "QQ",
                "pid",
                "Z",
                "43973351",
                "QQ",
                "tab",
                "Z",
                "2",
            ]
        )
        assert [run.text for run in candidate_anchors("TheGrudge", strict=True)] == ["T", "he", "G", "rudge"]

    def test_a_key_with_few_tokens_stays_whole(self):
        assert list(grow(FIGURE_2).levels()) == [["*"]]


class TestPairwise:
    """Sections 1, 1.1, 2.1, algorithm 3."""

    @pytest.mark.parametrize(
        ("source", "target", "expected"),
        [
            (
                "http://en.wikipedia.org/wiki/Casino_Royale",
                "http://en.wikipedia.org/?title=Casino_Royale",
                {"k(3,2)": "DELETE", "k(4,1)": "DELETE", "?title": "copy(k(4,1))"},
            ),
            (
                "http://en.wikipedia.org/?title=Casino_Royale",
                "http://en.wikipedia.org/wiki/Casino_Royale",
                {"?title": "DELETE", "k(3,2)": "wiki", "k(4,1)": "copy(?title)"},
            ),
            (
                "http://www.xyz.com/show.php?sid=71829",
                "http://www.xyz.com/show.php?sid=17628",
                {"?sid": "17628"},
            ),
            (
                "http://www.amazon.com/Lord-Rings/dp/B000634DCW",
                "http://www.amazon.com/dp/B000634DCW",
                {"k(3,3)": "DELETE"},
            ),
            (
                "http://ag.arizona.edu/srnr/about/art/index.html",
                "http://ag.arizona.edu/srnr/about/art",
                {"k(6,1)": "DELETE"},
            ),
            ("http://ag.arizona.edu/art/index.html", "http://ag.arizona.edu/art", {"k(4,1)": "DELETE"}),
            (
                "http://www.wsdm-conference.org/2010/index.html",
                "http://www.wsdm-conference.org/2010/",
                {"k(4,1)": ""},
            ),
            (
                "http://allrecipes.com/Recipe/Smores/default.aspx",
                "http://allrecipes.com/RECIPE/Smores/default.aspx",
                {"k(3,3)": "upper(k(3,3))"},
            ),
            (  # no conversion makes a title case
                "http://allrecipes.com/RECIPE/Smores/default.aspx",
                "http://allrecipes.com/Recipe/Smores/default.aspx",
                {"k(3,3)": "Recipe"},
            ),
            (
                "http://www.youtube.com/watch?v=S9_4KMVtgw0&feature=channel&ytsession=WDxRmlqSR8olo8oVN",
                "http://www.youtube.com/watch?v=S9_4KMVtgw0",
                {"?feature": "DELETE", "?ytsession": "DELETE"},
            ),
            (
                "http://a.org/?n=Caf%C3%A9_x",
                "http://a.org/n/Caf%C3%A9_x",
                {"?n": "DELETE", "k(3,2)": "n", "k(4,1)": "copy(?n)"},
            ),
            ("http://a.org/?p=4&page=4", "http://a.org/?page=4", {"?p": "DELETE"}),
        ],
    )
    def test_transformation(self, source, target, expected):
        rule = pairwise_rule(tokenize(source), tokenize(target))
        assert changes_of(rule) == expected
        assert rule.context == tokenize(source)

    def test_360_yahoo_differs_in_one_deep_token(self):
        tokenizer = yahoo()
        source = tokenizer.cut(tokenize("http://360.yahoo.com/friends-lttU7d6kIuGq"))
        target = tokenizer.cut(tokenize("http://360.yahoo.com/friends-nMfcaJRPUSMQ"))
        assert written(source) == {
            "k(1,3)": "http",
            "k(2,2)": "360.yahoo.com",
            "k(3.1,1.3)": "friends",
            "k(3.2,1.2)": "-",
            "k(3.3,1.1)": "lttU7d6kIuGq",
        }
        assert changes_of(pairwise_rule(source, target)) == {"k(3.3,1.1)": "nMfcaJRPUSMQ"}


ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def random_name(random: Random, size: int = 12) -> str:
    return "".join(random.choice(ALPHABET) for _ in range(size))


def yahoo_clusters() -> list[list[str]]:
    random = Random(360)
    first = ["http://360.yahoo.com/friends-lttU7d6kIuGq", "http://360.yahoo.com/friends-nMfcaJRPUSMQ"]
    return [first + [f"http://360.yahoo.com/friends-{random_name(random)}" for _ in range(20)]]


def yahoo() -> DeepTokenizer:
    random = Random(7)
    urls = [url for cluster in yahoo_clusters() for url in cluster]
    urls += [f"http://360.yahoo.com/blog-{random_name(random)}" for _ in range(20)]
    return DeepTokenizer.learn(map(tokenize, urls))


class TestTargets:
    """Section 3.2.1, algorithm 4."""

    YOUTUBE = (
        "http://www.youtube.com/watch?v={}&feature=channel",
        "http://www.youtube.com/watch?v={}",
        "http://www.youtube.com/watch?v={}&feature=channel&ytsession=WDxRmlqSR8olo8oVN",
    )

    def test_youtube_target(self):
        cluster = [split_url(url.format("S9_4KMVtgw0")) for url in self.YOUTUBE]
        assert select_targets(cluster) == [cluster[1]]

    def test_a_static_url_is_preferred_to_a_shorter_one(self):
        cluster = [
            split_url("http://en.wikipedia.org/wiki/Casino_Royale"),
            split_url("http://en.wikipedia.org/?t=Casino_Royale"),
        ]
        assert select_targets(cluster) == [cluster[0]]

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
        tokenizer = DeepTokenizer.learn(tokenize(url) for cluster in clusters for url in cluster)
        rules = learned(clusters, tokenizer)
        (tree,) = (tree for tree in tokenizer.trees.values() if tree.children)
        assert any("QQ_fclsZ*QQ_pcatidZ" in pattern for level in tree.levels() for pattern in level)
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
        from clusterd.learning.protocol import average_reduction

        assert average_reduction(urls * reduction, rules) == pytest.approx(printed, rel=5e-3)

    def test_table_2_reductions(self):
        from clusterd.learning.protocol import reduction_ratio

        assert reduction_ratio(12.37e6, 93.23e3) == pytest.approx(0.9925, abs=1e-4)
        assert reduction_ratio(93.23e3, 38.83e3) == pytest.approx(0.5835, abs=1e-4)
