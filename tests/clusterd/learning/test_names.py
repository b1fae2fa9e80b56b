"""Names are believed by kind and form, after their own evidence only."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from clusterd.learning import names as learning_names
from clusterd.learning.names import PATHS, RIGHT, RULES, TIMES, NameEvidence, form_of, wide_form_of
from clusterd.learning.pointers import pointers
from clusterd.learning.replay import CrawlRow, replay
from clusterd.learning.trials.bounds import SMALL
from clusterd_crawler.rules import Rule
from clusterd_crawler.sketch import Name
from clusterd_crawler.skipping.bearers import parse_names
from clusterd_crawler.urls import parse

#: Paths of posts and of short addresses, with the number of the first.
POINTING = (("v.php?p=", 1000), ("?s=", 0))
#: Clean coincidences that `OPEN_BOUND` asks for.
BOUND = 52


class Pages(NameEvidence):
    def see(self, url: str, content: int, names: tuple[Name, ...]) -> None:
        self.observe(url, content, names, parse(url))


def rules(evidence: NameEvidence) -> list[Rule]:
    return list(evidence.rules("h.com", "identical", 1))


def blog(posts: int, lies: int = 0) -> Pages:
    evidence = Pages()
    for n in range(posts):
        evidence.see(f"http://h.com/2020/slug{n}/index.html", n, parse_names(f"shortlink=http://h.com/?p={n}"))
        evidence.see(f"http://h.com/?p={n}", 10_000 + n if n < lies else n, ())
    return evidence


def test_a_short_link_is_believed_after_its_own_evidence() -> None:
    assert rules(blog(RIGHT - 1)) == []
    (rule,) = rules(blog(RIGHT))
    assert (rule.kind, rule.name, rule.support, rule.precision) == ("name", "shortlink", RIGHT, 1.0)
    assert str(rule.context[0]) == "?p any"


def test_names_that_lie_are_not_believed() -> None:
    assert rules(blog(100, lies=5)) == []


def test_the_order_in_which_the_two_pages_come_does_not_matter() -> None:
    evidence = Pages()
    for n in range(RIGHT):
        evidence.see(f"http://h.com/?p={n}", n, ())
        evidence.see(f"http://h.com/2020/slug{n}/index.html", n, parse_names(f"shortlink=http://h.com/?p={n}"))
    assert len(rules(evidence)) == 1


def test_anchors_are_believed_for_the_parameter_that_points_to_them() -> None:
    evidence = Pages()
    for n in range(BOUND):
        evidence.see(f"http://h.com/v.php?t={n}", n, parse_names(f"anchor=p{1000 + n}"))
        assert rules(evidence) == []
        evidence.see(f"http://h.com/v.php?p={1000 + n}", n, ())
    (rule,) = rules(evidence)
    assert (rule.name, str(rule.context[0])) == ("anchor", "?p any")


def test_several_anchors_of_one_page_are_several_trials_where_pages_are_many() -> None:
    evidence = Pages()
    for n in range(SMALL):
        evidence.see(f"http://h.com/about/{n}", 10_000 + n, ())
    for n in range(BOUND // TIMES):
        posts = [1000 * post + n for post in range(1, TIMES + 2)]
        evidence.see(f"http://h.com/v.php?t={n}", n, parse_names(" ".join(f"anchor=p{post}" for post in posts)))
        assert rules(evidence) == []
        for post in posts:
            evidence.see(f"http://h.com/v.php?p={post}", n, ())
    (rule,) = rules(evidence)
    assert BOUND <= rule.support < BOUND + TIMES


def test_a_canonical_without_a_parameter_has_to_earn_what_its_deletion_would() -> None:
    # Given: a forum whose topics say that they are the same without the forum; one in twelve shows who is online now.
    forum = Pages()
    for n in range(BOUND - 1):
        name = parse_names(f"canonical=http://h.com/v.php?t={n}")
        forum.see(f"http://h.com/v.php?f={n % 7}&t={n}", n, name)
        forum.see(f"http://h.com/v.php?t={n}", n, name)
    # When, then: believed is what is beyond the luck of one in twelve.
    assert rules(forum) == []
    forum.see("http://h.com/v.php?f=1&t=900", 900, parse_names("canonical=http://h.com/v.php?t=900"))
    forum.see("http://h.com/v.php?t=900", 900, ())
    assert len(rules(forum)) == 1


def test_a_parameter_that_happens_to_meet_anchors_is_not_believed() -> None:
    evidence = Pages()
    for n in range(200):
        evidence.see(f"http://h.com/v.php?t={n}", n, parse_names(f"anchor=p{n + 3}"))
    assert rules(evidence) == []


def test_forms_of_bearers_separate_true_names_from_false_ones() -> None:
    evidence = Pages()
    for n in range(BOUND):
        evidence.see(f"http://h.com/a/{n}.html", n, parse_names(f"og=http://h.com/?p={n}"))
        evidence.see(f"http://h.com/list?x={n}", 5000 + n, parse_names(f"og=http://h.com/?p={n}"))
        evidence.see(f"http://h.com/?p={n}", n, ())
    (rule,) = rules(evidence)
    assert [str(condition) for condition in rule.carrier] == [
        "k(-,1) like '*.html'",
        "2 path components",
        "only a path",
    ]


def test_a_page_that_says_it_is_two_others_is_no_evidence() -> None:
    evidence = Pages()
    for n in range(2 * RIGHT):
        evidence.see(f"http://h.com/?p={n}", n, ())
        names = parse_names(f"shortlink=http://h.com/?p={n} canonical=http://h.com/c{n}")
        evidence.see(f"http://h.com/slug{n}", n, names)
    assert rules(evidence) == []


def test_forms() -> None:
    assert form_of(parse("http://h.com/a/b.php?y=1&x=2")).names == ("x", "y")
    assert form_of(parse("http://h.com/a/slug.html")).path == "*.html"
    assert form_of(parse("http://h.com/a/index.html")).path == "index.html"
    assert form_of(parse("http://h.com/a/slug")).path == "*"
    assert form_of(parse("http://h.com/a/")).depth == 2


def shop(pages: int, wrong_every: int) -> Pages:
    """Return pages with a path of their own, each with a second URL that names the first one."""
    evidence = Pages()
    for n in range(pages):
        canonical = parse_names(f"canonical=http://h.com/item{n}")
        evidence.see(f"http://h.com/item{n}", n, canonical)
        evidence.see(f"http://h.com/item{n}?ref=x", n if n % wrong_every else 10_000 + n, canonical)
    return evidence


def forum(
    topics: int, *, posts: int = 5, own_numbers: bool = False, form: str = "{topic}?post={number}"
) -> Iterator[tuple[str, int, str]]:
    """Yield URL, content and names: topics with a path of their own, each on two pages, and the URL of each post.

    The posts are numbered in all of the forum, or in each topic.
    """
    for n in range(topics):
        topic = f"http://h.com/forum/board-{n % 3}/topic-{n}/"
        for page in (0, 1):
            first = 2 * posts * n * (not own_numbers) + posts * page
            numbers = range(first, first + posts)
            anchors = " ".join(f"anchor={number}" for number in numbers)
            yield f"{topic}?page={page + 1}" if page else topic, 2 * n + page, anchors
            for number in numbers:
                yield form.format(topic=topic, n=n, number=number), 2 * n + page, anchors


def seen(pages: Iterable[tuple[str, int, str]]) -> Pages:
    evidence = Pages()
    for url, content, names in pages:
        evidence.see(url, content, parse_names(names))
    return evidence


def test_posts_are_found_on_topics_each_of_which_has_a_path_of_its_own() -> None:
    on_topics = ["?post any", "k(-,1) like ''", "4 path components", "only ?post", "k(3,-) is 'forum'"]
    found = rules(seen(forum(60)))
    assert [list(map(str, rule.context)) for rule in found] == 3 * [on_topics]
    assert sorted(str(rule.carrier[-2]) for rule in found) == ["only ?page", "only ?post", "only a path"]
    assert {str(rule.carrier[-1]) for rule in found} == {"k(3,-) is 'forum'"}


def test_a_few_long_topics_say_nothing_of_others() -> None:
    assert rules(seen(forum(PATHS - 1, posts=50))) == []
    assert len(rules(seen(forum(PATHS, posts=50)))) == 1


def test_posts_that_each_topic_numbers_anew_are_found_by_no_number() -> None:
    assert rules(seen(forum(60, own_numbers=True))) == []


#: URLs of posts that bear the post's number elsewhere than in a parameter of its own.
POSTS = {
    "letters": "{topic}post-{number}",
    "slash": "http://h.com/posts/{number}/",
    "alone": "http://h.com/comment/{number}",
    "file": "http://h.com/show/{number}.html",
    "value": "http://h.com/index.php?topic={n}.msg{number}",
    "component": "http://h.com/topic,{n}.msg{number}.html",
}


@pytest.mark.parametrize("form", ["{topic}?post={number}", *POSTS.values()], ids=["parameter", *POSTS])
def test_a_crawl_of_a_forum_skips_the_posts_of_topics_that_it_knows(form: str) -> None:
    rows = [CrawlRow(url, content, names=names) for url, content, names in forum(100, form=form)]
    said = replay(rows, "random", 1)
    assert (said["lost_contents"], said["skip_precision"]) == (0, 1)
    assert said["reduction"] > 0.6


@pytest.mark.parametrize("form", POSTS.values(), ids=POSTS)
def test_numbers_in_paths_that_mean_something_else_are_not_believed(form: str) -> None:
    assert rules(seen(forum(60, own_numbers=True, form=form))) == []
    other = (
        (url, content if "board" in url and "post-" not in url else 10_000 + at, names)
        for at, (url, content, names) in enumerate(forum(60, form=form))
    )
    assert rules(seen(other)) == []


def test_where_numbers_of_anchors_stand() -> None:
    def places(url: str) -> list[tuple[str, str]]:
        return [(" and ".join(map(str, place.conditions())), digits) for place, digits in pointers(parse(url))]

    assert places("http://h.com/a?p=12&q=x&r=7.msg456&s=" + "1" * 19) == [
        ("?p any", "12"),
        ("?r numbered '.msg', ''", "456"),
    ]
    assert places("http://h.com/threads/a-title-9.7/post-456") == [("k(-,1) numbered 'post-', ''", "456")]
    assert places("http://h.com/posts/456/") == [("k(-,2) like '#' and k(-,3) is 'posts'", "456")]
    assert places("http://h.com/topic,7.msg456.html") == [("k(-,1) numbered '.msg', '.html'", "456")]
    assert places("http://h.com/456.html") == [("k(-,1) like '#.html'", "456")]
    assert [places(f"http://h.com/{last}") for last in ("", "a-title", "a-title-12", "2020-07", "a.b")] == [[]] * 5


def test_a_form_of_one_page_is_no_rule() -> None:
    assert rules(shop(300, wrong_every=100)) == []


def test_a_form_that_was_right_about_several_urls_is_believed_with_its_kind() -> None:
    evidence = blog(RIGHT)
    for n in (50, 51):
        assert len(rules(evidence)) == 1
        evidence.see(f"http://h.com/news/{n}", n, parse_names(f"shortlink=http://h.com/?p={n}"))
        evidence.see(f"http://h.com/?p={n}", n, ())
    assert len(rules(evidence)) == 2


def test_a_host_has_a_bounded_number_of_rules_and_keeps_the_first() -> None:
    # Given as many forms of bearers as there are topics, each with the posts of its topic …
    evidence = Pages()
    kept: list[str] = []
    for topic in range(2 * RULES):
        posts = range(10 * topic, 10 * topic + 10)
        anchors = " ".join(f"anchor=p{n}" for n in posts)
        evidence.see(f"http://h.com/topic{topic}?page=1", topic, parse_names(anchors))
        for n in posts:
            evidence.see(f"http://h.com/post?p={n}", topic, ())
        found = [rule.id for rule in rules(evidence)]
        # … then no rule gives way to a later one.
        assert set(kept) <= set(found)
        kept = found
    assert len(kept) == RULES


@pytest.mark.parametrize("seed", range(5))
def test_what_was_taken_back_says_nothing(seed: int) -> None:
    # Given topics and their posts, of which some show a captcha that names another page, in any order …
    chance = random.Random(seed)
    pages = [(f"http://h.com/v.php?t={n}", n, f"anchor=p{1000 + n} shortlink=http://h.com/?s={n}") for n in range(120)]
    pages += [(f"http://h.com/{path}{n + offset}", n, "") for n in range(120) for path, offset in POINTING]
    walled = set(chance.sample([url for url, _, _ in pages], 60))
    chance.shuffle(pages)
    told, without = Pages(), Pages()
    for url, content, names in pages:
        if url in walled:
            of = chance.randrange(120)
            told.see(url, 7_000, parse_names(f"canonical=http://h.com/v.php?t={of} anchor=p{1000 + of}"))
        else:
            for evidence in (told, without):
                evidence.see(url, content, parse_names(names))
    assert len(rules(told)) < 2
    # … then what its crawl takes back is as if it had never been met.
    for url in sorted(walled):
        told.take_back(url, "another crawl")
    assert len(rules(told)) < 2
    for url in sorted(walled):
        told.take_back(url, "")
        told.take_back(url, "")
    assert {rule.id for rule in rules(told)} == {rule.id for rule in rules(without)} != set()
    assert {rule.id: rule.support for rule in rules(told)} == {rule.id: rule.support for rule in rules(without)}


def test_a_star_in_a_url_is_no_pattern() -> None:
    assert wide_form_of(parse("http://h.com/a/x.b*c")).path == wide_form_of(parse("http://h.com/a/x")).path
    assert wide_form_of(parse("http://h.com/a/index.*")).path == wide_form_of(parse("http://h.com/a/x")).path


def test_pages_of_forms_of_their_own_have_a_bounded_number_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of 8,000 pages with fifty numbered anchors each, and paths of their own, 2,800,000 took 1.4 GB.
    monkeypatch.setattr(learning_names, "RECORDS", 300)
    evidence = blog(BOUND)
    anchors = parse_names(" ".join(f"anchor=p{n}" for n in range(20)))
    for n in range(100):
        evidence.see(f"http://h.com/t{n}?page={n % 20}", 10_000 + n, anchors)
    assert len(evidence.records) == 300
    (rule,) = rules(evidence)
    assert rule.name == "shortlink"


def test_where_not_all_forms_are_counted_none_is_believed_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = blog(BOUND)
    for n in range(4, 8):  # a form of its own each, right about two URLs
        for m in (100 * n, 100 * n + 1):
            evidence.see(f"http://h.com/{'x/' * n}{m}", m, parse_names(f"shortlink=http://h.com/?p={m}"))
            evidence.see(f"http://h.com/?p={m}", m, ())
    assert len(rules(evidence)) > 1
    monkeypatch.setattr(learning_names, "RECORDS", len(evidence.records))
    assert len(rules(evidence)) == 1
