"""Sites that show the same pages: what is learned across them, and what no site can bring about for another."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterable

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.mirrors import MirrorLearner
from clusterd.learning.replay import CrawlRow, replay
from clusterd_crawler.rule_language.json_form import rule_set_from_json, rule_set_to_json
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.urls import site_of


def learned(group: str, pages: Iterable[tuple[str, int]]) -> RuleSet:
    """Return the rules that a group's learner makes of (URL, content), learning once at the end."""
    learner = MirrorLearner(group)
    learner.observe(Page(url, content) for url, content in pages)
    return learner.learn(1) or RuleSet(group, 0, ())


def both(first: str, second: str, count: int = 60, differ: int = 0) -> list[tuple[str, int]]:
    """Return the pages of two sites, of which the last few differ."""
    return [
        (f"{site}/docs/page{n}.html", n + 10_000 * (site == second and n >= count - differ))
        for site in (first, second)
        for n in range(count)
    ]


def known(rules: RuleSet) -> KnownPages:
    """Return a decider that has the rules and explores nothing."""
    pages = KnownPages(explore=0)
    pages.load(rule_set_from_json(rule_set_to_json(rules)))
    return pages


PAIRS = [
    ("example.com", "http://example.com", "http://www.example.com"),
    ("example.com", "http://www.example.com", "https://www.example.com"),
    ("example.com", "https://a.example.com", "http://b.example.com:8080"),
    ("127.0.0.1", "http://127.0.0.1:8001", "http://127.0.0.1:8002"),
    ("localhost", "http://localhost:8001", "http://localhost:8002"),
]


@pytest.mark.parametrize(("group", "first", "second"), PAIRS)
def test_a_mirror_is_learned_and_its_pages_are_known_by_those_of_the_site(group: str, first: str, second: str) -> None:
    rules = learned(group, both(first, second))

    pages = known(rules)
    pages.fetched(f"{first}/docs/new.html", 1)
    skip = pages.decide(f"{second}/docs/new.html", 2)

    assert skip is not None
    assert skip.known_url == f"{first}/docs/new.html"
    assert skip.rule in {rule.id for rule in rules.rules if rule.spans}
    assert pages.decide(f"{second}/docs/other.html", 3) is None


@pytest.mark.parametrize(("group", "first", "second"), PAIRS)
def test_a_page_of_the_mirror_stands_for_the_page_of_the_site(group: str, first: str, second: str) -> None:
    pages = known(learned(group, both(first, second)))

    pages.fetched(f"{second}/docs/new.html", 1)

    assert pages.decide(f"{first}/docs/new.html", 2) is not None


def test_rules_of_the_site_hold_on_its_mirror_and_keys_are_fixed_points() -> None:
    from clusterd_crawler.rules import Condition, Edit, Key, Rule

    rules = learned("example.com", both("http://example.com", "http://www.example.com"))
    drop = Rule("d", "example.com", (Condition(Key("sid"), "any"),), (Edit(Key("sid"), "delete"),))
    pages = known(RuleSet("example.com", 2, (*rules.rules, drop)))

    pages.fetched("http://example.com/docs/new.html", 1)

    # The rule names no query key that it has not seen, so a mirrored URL with one stays where it is.
    assert pages.decide("http://example.com/docs/new.html?sid=1", 2) is not None
    key, _ = pages.key("http://www.example.com/docs/new.html")
    assert key == "http://example.com/docs/new.html"
    assert pages.key(key)[0] == key


@pytest.mark.parametrize("differ", [False, True])
def test_mirrors_are_compared_without_a_session_that_each_link_has(differ: bool) -> None:
    from clusterd_crawler.rules import Edit, Key, Rule

    first, second = "http://example.com", "http://www.example.com"
    visits = [(site, n) for site in (first, second) for n in range(60)] * 3
    chosen = random.Random(1)
    pages = [
        (f"{site}/item.php?id={n}&sid={chosen.getrandbits(64):x}", n + 1000 * (differ and site == second))
        for site, n in visits
    ]
    rules = learned("example.com", pages)
    drops = [Rule(host, host, (), (Edit(Key("sid"), "delete"),)) for host in ("example.com", "www.example.com")]
    decider = known(RuleSet("example.com", 2, (*rules.rules, drops[0])))
    decider.load(RuleSet("www.example.com", 1, (drops[1],)))

    decider.fetched(f"{first}/item.php?id=99&sid=a", 1)

    assert (decider.decide(f"{second}/item.php?id=99&sid=b", 2) is None) == differ
    assert all(rule.spans for rule in rules.rules)


def test_sites_that_differ_in_a_folder_are_mirrors_elsewhere() -> None:
    first, second = "http://example.com", "http://www.example.com"
    pages = both(first, second)
    pages += [
        (f"{site}/shop/page{n}.html", 500 + n + 1000 * (site == second)) for site in (first, second) for n in range(60)
    ]

    decider = known(learned("example.com", pages))
    for folder in ("docs", "shop", "unseen"):
        decider.fetched(f"{first}/{folder}/new.html", 1)

    assert decider.decide(f"{second}/docs/new.html", 2) is not None
    assert decider.decide(f"{second}/shop/new.html", 2) is None
    assert decider.decide(f"{second}/unseen/new.html", 2) is None


@pytest.mark.parametrize("path", ["", "p", "x/p"])
def test_sites_may_be_mirrors_in_one_page_under_many_parameters(path: str) -> None:
    first, second = "http://example.com", "http://www.example.com"
    pages = [(f"{site}/{path}?id={n}", n) for site in (first, second) for n in range(100)]
    pages += [(f"{site}/q?id={n}", 500 + n + 1000 * (site == second)) for site in (first, second) for n in range(100)]

    decider = known(learned("example.com", pages))
    for other in (path, "q", "unseen"):
        decider.fetched(f"{first}/{other}?id=777", 1)

    assert decider.decide(f"{second}/{path}?id=777", 2) is not None
    assert decider.decide(f"{second}/q?id=777", 2) is None
    assert decider.decide(f"{second}/unseen?id=777", 2) is None


def test_subdomains_with_pages_of_their_own_under_equal_paths_are_no_mirrors() -> None:
    rules = learned("example.com", both("http://alice.example.com", "http://bob.example.com", 60, differ=20))

    decider = known(rules)
    decider.fetched("http://alice.example.com/docs/new.html", 1)

    assert decider.decide("http://bob.example.com/docs/new.html", 2) is None


def test_a_parking_page_under_every_name_is_no_evidence() -> None:
    pages = [(f"http://{site}.example.com/page{n}", 7) for site in "ab" for n in range(300)]

    assert learned("example.com", pages).rules == ()


@pytest.mark.parametrize("victim", ["http://victim.org", "http://bob.github.io", "http://example.com.evil.net"])
def test_a_copy_of_another_groups_pages_changes_nothing(victim: str) -> None:
    rules = learned("example.com", [*both(victim, "http://example.com"), *both("http://example.com", victim)])

    assert rules.rules == ()


def test_neighbours_under_a_public_suffix_are_not_of_one_group() -> None:
    pages = both("http://alice.github.io", "http://bob.github.io")

    assert learned("alice.github.io", pages).rules == ()
    assert learned("github.io", pages).rules == ()


def test_a_host_cannot_name_another_in_its_user_information_or_path() -> None:
    pages = both("http://example.com", "http://victim.org@www.example.com")
    pages += both("http://example.com", "http://www.example.com/http%3A%2F%2Fvictim.org")

    rules = learned("example.com", pages)

    assert not any("victim" in edit.value for rule in rules.rules for edit in rule.transformation)


def test_thousands_of_names_cost_no_more_than_some_dozens() -> None:
    pages = [(f"http://s{n % 3000}.example.com/page{n // 3000}", n // 3000) for n in range(30_000)]

    learner = MirrorLearner("example.com")
    learner.observe(Page(url, content) for url, content in pages)

    assert len(learner.sites) == 64
    assert len(learner.evidence) == 640


def test_what_is_no_url_is_no_page_of_a_group() -> None:
    learner = MirrorLearner("example.com")
    learner.observe([Page("http://example.com:port/", 1)])
    assert len(learner.evidence) == 0


def test_a_full_group_takes_pages_that_it_has_again_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterd.learning.mirrors.PAGES", 2)
    learner = MirrorLearner("example.com")
    learner.observe(Page(f"http://example.com/{n}", n) for n in (1, 2, 3, 2))
    assert len(learner.evidence) == 2
    assert any(url.endswith("/2") for url in learner.evidence.row_of)


def test_a_site_is_scheme_and_host() -> None:
    assert site_of("http://127.0.0.1:80/") == "http://127.0.0.1:80"
    assert site_of("https://example.com") == "https://example.com"


def test_a_replayed_crawl_of_a_site_and_its_mirror_fetches_each_content_once_more_or_less() -> None:
    rows = [
        CrawlRow(f"http://{host}/docs/page{n}", n) for n in range(300) for host in ("example.com", "www.example.com")
    ]

    found = replay(rows, explore=0)

    assert found["lost_contents"] == 0
    assert found["skip_precision"] == 1
    assert found["skipped"] > 250


def files(differ_from: int) -> list[CrawlRow]:
    """Return folders in folders with files in each, under http and https, which differ from a depth on."""
    chance = random.Random(7)
    folders = [""]
    for _ in range(200):
        parent = chance.choice([folder for folder in folders if folder.count("/") < 5])
        folders.append(f"{parent}d{chance.randrange(5)}/")
    paths = {folder + name for folder in folders for name in ("", *(f"{chance.randrange(10_000)}.txt" for _ in "123"))}
    return [
        CrawlRow(f"{scheme}://example.com/{path}", 2 * number + deep * (scheme == "https"))
        for number, path in enumerate(sorted(paths))
        for deep in [path.count("/") + 1 >= differ_from]
        for scheme in ("http", "https")
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_mirror_that_differs_in_deep_folders_is_one_on_paths_of_the_depths_above(seed: int) -> None:
    rows = files(differ_from=5)
    differing = len({row.content for row in rows}) - len(rows) // 2

    found = replay(rows, order="random", seed=seed)

    assert (found["skip_precision"], found["lost_contents"]) == (1, 0)
    assert found["skipped"] > 0.6 * (len(rows) // 2 - differing)


def test_a_group_remembers_nothing_of_what_names_may_mean() -> None:
    """That is learned by each host; here it took more memory than all else."""
    learner = MirrorLearner("example.com")
    pages = [Page(url, content) for url, content in both("http://example.com", "http://www.example.com", 2000)]
    tracemalloc.start()
    try:
        learner.observe(pages)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_400 * len(pages)
