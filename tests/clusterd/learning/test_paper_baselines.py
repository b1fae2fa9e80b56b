"""The rules that came before, as the paper's related work prints them."""

from __future__ import annotations

import pytest
from clusterd.learning.koppula.protocol import clusters_of

from benchmarks.baselines.canonical import Canonical
from benchmarks.baselines.contract import measure, normalize
from benchmarks.baselines.dust import Dust
from benchmarks.baselines.hypotheses import Hypotheses
from benchmarks.baselines.rewrite import Rewrite
from benchmarks.url_rules_split import generated, report, rows


class TestDust:
    """Bar-Yossef et al. 2007; section 1.1 of Koppula et al."""

    def test_index_html_goes(self):
        years = range(2000, 2010)
        train = [[f"http://www.wsdm.org/{year}/index.html", f"http://www.wsdm.org/{year}/"] for year in years]
        dust = Dust(train)
        assert ("index.html$", "$") in dust.rules or ("index.html", "") in dust.rules
        chosen = {rule: found for rule, found in measure(dust, train).items() if found.precision == 1}
        assert normalize(dust, chosen, "http://www.wsdm.org/2030/index.html") == "http://www.wsdm.org/2030/"

    def test_of_overlapping_rules_one_is_kept(self):
        hosts = ("a.com", "b.com", "c.com", "d.com")
        train = [[f"http://{host}/story?id=", f"http://{host}/story"] for host in hosts]
        rules = Dust(train).rules
        assert not {(".com/story?id=", ".com/story"), ("story?id=", "story")} <= set(rules)
        assert any(alpha in "http://x.com/story?id=$" and "?id=" in alpha for alpha, _ in rules)


class TestRewrite:
    """Dasgupta et al. 2008."""

    def test_misaligned_clusters_keep_every_specific_rule(self):
        train = [
            ["http://ag.arizona.edu/srnr/about/art/index.html", "http://ag.arizona.edu/srnr/about/art"],
            ["http://ag.arizona.edu/art/index.html", "http://ag.arizona.edu/art"],
        ]
        assert Rewrite(train).rules == 4

    @pytest.mark.parametrize(("sessions", "generalized"), [(20, False), (40, True)])
    def test_a_key_is_a_wildcard_beyond_the_fan_out(self, sessions, generalized):
        train = [
            [f"http://a.test/show.php?id={n}", f"http://a.test/show.php?id={n}&sid={1000 * n}"] for n in range(sessions)
        ]
        rewrites = Rewrite(train).rewrites("http://a.test/show.php?id=77&sid=5")
        assert ("http://a.test/show.php?id=77" in {result for _, result in rewrites}) == generalized


class TestHypotheses:
    """MaybeDont's six."""

    def test_what_five_comparisons_support_is_known(self):
        train = [[f"http://a.test/t?id={n}", f"http://a.test/t?id={n}&sid={n}"] for n in range(6)]
        hypotheses = Hypotheses(train)
        assert ("param", "sid") in hypotheses.known
        figures = measure(hypotheses, train)
        assert figures["param", "sid"].precision == 1
        assert figures["path", "http://a.test/t"].precision < 0.5

    def test_fewer_are_not(self):
        train = [[f"http://a.test/t?id={n}", f"http://a.test/t?id={n}&sid={n}"] for n in range(4)]
        assert ("param", "sid") not in Hypotheses(train).known


def test_w3lib_sorts_and_learns_nothing():
    assert [result for _, result in Canonical().rewrites("http://a.test/?b=1&a=2")] == ["http://a.test/?a=2&b=1"]


def test_precision_counts_urls_joined_with_another_cluster():
    train = [["http://a.test/?x=1&s=1", "http://a.test/?x=1&s=2"], ["http://a.test/?x=1&s=3", "http://a.test/?x=1"]] * 3
    hypotheses = Hypotheses(train)
    figures = measure(hypotheses, train)
    assert figures["param", "s"].precision == pytest.approx(1 / 3, abs=0.34)
    assert figures["param", "s"].precision < 0.95


def test_the_benchmark_ranks_us_first_on_a_generated_site():
    result = report({"generated": clusters_of(generated(80))}, seeds=(0,))
    found = rows(result)
    assert {row["subject"] for row in found} == {
        "clusterd",
        "rewrite rules (fan-out 30)",
        "DUST",
        "MaybeDont",
        "w3lib",
        "clusters",
    }
    ours = [row for row in found if row["subject"] == "clusterd" and row["work"].endswith("≥ 0.95")]
    assert ours[0]["value"] >= 45
    assert ours[0]["ratio"] >= 1
