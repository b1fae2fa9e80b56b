"""The worked examples of Koppula et al. 2010 up to pairwise rules, each with where it stands; hyphens and dots of URLs
restored.
"""

from __future__ import annotations

import pytest
from clusterd.learning.koppula.deep_tokens import (
    DeepTokenizer,
    Pattern,
    candidate_anchors,
    cluster_candidates,
    grow,
    select_anchors,
)
from clusterd.learning.koppula.deep_tokens import _Member as Member
from clusterd.learning.koppula.pairwise import pairwise_rule
from clusterd.learning.koppula.tokenize import split_url, tokenize

from tests.clusterd.learning.paper import (
    changes_of,
    levels,
    written,
    yahoo,
)


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

    def test_components_beyond_forty_are_one_and_none_is_lost(self):
        url = "http://a.org/" + "/".join(map(str, range(50)))
        parts = split_url(url)
        assert len(parts.path) == 40
        assert parts.path[-1] == "/".join(map(str, range(39, 50)))
        assert parts.text() == url

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
        assert levels(grow(FIGURE_2, min_tokens=6)) == [
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
        assert [run.text for run in candidate_anchors("TheGrudge")] == ["The", "Grudge"]

    def test_a_delimiter_may_stand_first(self):
        urls = [f"http://a.com/_item-{100019 + 7 * number}" for number in range(30)]
        deep = DeepTokenizer.learn(map(tokenize, urls)).cut(tokenize(urls[0]))
        assert list(deep.values()) == ["http", "a.com", "_", "item", "-", "100019"]

    def test_tokens_without_the_anchor_of_the_others_are_of_no_child(self):
        tree = grow([*(f"item-{number}" for number in range(36)), "_1", "_2", "_3"])
        assert levels(tree)[:2] == [["*"], ["item-*"]]

    def test_a_pattern_without_a_star_cuts_its_own_token_alone(self):
        pattern = Pattern(("item", "-", "new"))
        assert pattern.cut("item-new") == ("item", "-", "new")
        assert pattern.cut("item-newer") is None

    def test_a_key_with_few_tokens_stays_whole(self):
        assert levels(grow(FIGURE_2)) == [["*"]]


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

    def test_a_value_that_is_cut_in_the_target_alone_is_compared_as_a_whole(self):
        whole, deep = {("?q", 1, 0, 0, 0): "a-1"}, {("?q", 1, 0, 1, 2): "a-", ("?q", 1, 0, 2, 1): "1"}
        assert pairwise_rule(whole, deep).changes == ()
        ((_, change),) = pairwise_rule({("?q", 1, 0, 0, 0): "a-2"}, deep).changes
        assert change.value == "a-1"
