"""Algorithm 3 of Koppula et al. 2010: a pairwise rule converts its source URL to its target, with what it prefers."""

from __future__ import annotations

from itertools import permutations

import pytest
from clusterd.learning.koppula.apply import changed_tokens
from clusterd.learning.koppula.deep_tokens import DeepTokenizer
from clusterd.learning.koppula.pairwise import pairwise_rule
from clusterd.learning.koppula.tokenize import Slot, join, key_of, tokenize

from tests.clusterd.learning.paper import changes_of

HOST = "http://shop.org"
PATHS = ("", "a", "a/", "a/a", "a/b", "b/a", "A/b", "a/x/b", "x/a/b", "a/x/y/b", "wiki/casino", "casino", "casino/b")
QUERIES = ("", "?q", "?q=", "?q=1", "?q=casino", "?q=Casino", "?q=1&r=2", "?r=1&q=2", "?q=1&q=2", "?q=%2Fb")
FRIENDS, BLOG, OTHER = "friends-7", "blog-x-7", "plain"
DEEP = (FRIENDS, "friends-8", BLOG, "blog-x-8", "blog-y-8", OTHER, "Friends-7")


def deep() -> DeepTokenizer:
    """Patterns ``friends-*`` and ``blog-x-*``, of the first path component and of the query key q."""
    values = [f"{head}-{n}" for head in ("friends", "blog-x") for n in range(30)]
    return DeepTokenizer.learn(tokenize(HOST + place + value) for place in ("/", "/?q=") for value in values)


def test_deep_tokens_together_are_the_url_again() -> None:
    tokenizer = deep()
    for url in (f"{HOST}/{FRIENDS}?q={BLOG}", f"{HOST}/{BLOG}/x?p=1&q={FRIENDS}&z"):
        cut = tokenizer.cut(tokenize(url))
        assert len(cut) > len(tokenize(url))
        assert join(cut).text() == url


@pytest.mark.parametrize(
    ("urls", "tokenizer"),
    [
        ([f"{HOST}/{path}{query}" for path in PATHS for query in ("", "?q=casino", "?q=1&r=2")], None),
        ([f"{HOST}/{path}{query}" for path in ("", "a/b", "casino") for query in QUERIES], None),
        ([f"{HOST}/{value}" for value in ("", *DEEP, f"{FRIENDS}/b", f"b/{FRIENDS}")], deep()),
        ([f"{HOST}/{value}" for value in ("", *(f"?q={value}" for value in DEEP), f"?p=1&q={FRIENDS}")], deep()),
    ],
    ids=["paths", "queries", "deep paths", "deep queries"],
)
def test_a_pairwise_rule_converts_the_source_url_to_the_target_url(
    urls: list[str], tokenizer: DeepTokenizer | None
) -> None:
    """Section 3.2.1, for every pair of URLs; the order of query keys is no part of a URL (definition 1)."""
    wrong = []
    for source, target in permutations(urls, 2):
        mine, theirs = (tokenizer.cut(tokenize(url)) if tokenizer else tokenize(url) for url in (source, target))
        became = changed_tokens(pairwise_rule(mine, theirs).changes, mine)
        if became is None or tokenize(join(became)) != tokenize(target):
            wrong.append((source, target, became and join(became).text()))
    assert wrong == []


def test_what_is_behind_an_addition_is_referred_to() -> None:
    """Lines 4 and 5: the value of a key occurs with a different key in the target."""
    rule = pairwise_rule(tokenize(f"{HOST}/casino"), tokenize(f"{HOST}/wiki/casino"))
    assert changes_of(rule) == {"k(3,1)": "DELETE", "k(3,2)": "wiki", "k(4,1)": "copy(k(3,1))"}


def test_what_is_behind_a_deletion_keeps_its_key() -> None:
    rule = pairwise_rule(tokenize(f"{HOST}/a/x/y/b"), tokenize(f"{HOST}/a/z/b"))
    assert changes_of(rule) == {"k(4,2)": "z", "k(4,3)": "DELETE", "k(5,2)": "DELETE"}


def cut(*pieces: str) -> dict[Slot, str]:
    """The first path component in deep tokens."""
    return {("", 3, 1, n + 1, len(pieces) - n): piece for n, piece in enumerate(pieces)}


def test_deep_tokens_that_the_target_lacks_are_deleted_and_the_others_stay() -> None:
    film, asked = cut("Ring", "-", "W0"), cut("Ring", "-", "W0", "QQ_fclsZ", "1")
    assert changes_of(pairwise_rule(asked, film)) == {"k(3.4,1.2)": "DELETE", "k(3.5,1.1)": "DELETE"}
    assert changes_of(pairwise_rule(film, asked)) == {"k(3.4,1.2)": "QQ_fclsZ", "k(3.5,1.1)": "1"}


def test_a_deep_token_may_be_converted() -> None:
    rule = pairwise_rule(cut("Smores", "-", "Recipe"), cut("Smores", "-", "RECIPE"))
    assert changes_of(rule) == {"k(3.3,1.1)": "upper(k(3.3,1.1))"}


def test_deep_tokens_of_equal_number_are_compared_one_by_one() -> None:
    tokenizer = deep()
    source, target = (tokenizer.cut(tokenize(f"{HOST}/?q={value}")) for value in ("blog-x-7", "blog-x-8"))
    assert changes_of(pairwise_rule(source, target)) == {"?q#1.5.1": "8"}


@pytest.mark.parametrize(
    ("source", "target", "change"),
    [
        # a conversion of the same key before a reference to another
        ("c=ABC&b=abc", "c=abc&b=abc", "lower(?c)"),
        ("c=abc&b=ABC", "c=ABC&b=ABC", "upper(?c)"),
        ("c=%2Fabc&b=/abc", "c=/abc&b=/abc", "decode(?c)"),
        ("c=a/b/c&b=a%2Fb%2Fc", "c=a%2Fb%2Fc&b=a%2Fb%2Fc", "encode(?c)"),
        ("c=AB", "c=ab", "lower(?c)"),
        # a reference before a conversion of another key
        ("a=ABC&b=abc", "a=ABC&b=abc&c=abc", "copy(?b)"),
        # a conversion of another key before a literal
        ("a=Abc", "a=Abc&c=abc", "lower(?a)"),
        ("a=Abc", "a=Abc&c=ABC", "upper(?a)"),
        ("a=a%2Fc", "a=a%2Fc&c=a/c", "decode(?a)"),
        ("a=a/c", "a=a/c&c=a%2Fc", "encode(?a)"),
        # what two keys explain is a literal
        ("a=abc&b=abc", "a=abc&b=abc&c=abc", "abc"),
        ("a=Abc&b=aBC", "a=Abc&b=aBC&c=abc", "abc"),
        ("a=abc&b=abc&d=ABC", "a=abc&b=abc&d=ABC&c=abc", "abc"),
        # and so is what is short enough to match by accident
        ("a=en", "a=en&c=en", "en"),
        ("a=EN", "a=EN&c=en", "en"),
        # or what the scheme or the host says
        ("a=1", "a=1&c=http", "http"),
        ("a=1", "a=1&c=HTTP", "HTTP"),
        ("a=1", "a=1&c=shop.org", "shop.org"),
    ],
)
def test_what_explains_a_value_first(source: str, target: str, change: str) -> None:
    """A10 and A10b."""
    rule = pairwise_rule(tokenize(f"{HOST}/?{source}"), tokenize(f"{HOST}/?{target}"))
    assert changes_of(rule)["?c"] == change


@pytest.mark.parametrize(
    ("source", "value", "keys"),
    [
        ("a=en&b=en", "en", ("?a", "?b")),
        ("a=en", "en", ("?a",)),
        ("a=abc&b=abc", "abc", ("?a", "?b")),
        ("a=abc", "abc", None),
        ("a=EN", "en", None),
        ("a=1", "http", None),
    ],
)
def test_a_reference_that_may_be_by_accident_is_a_candidate(
    source: str, value: str, keys: tuple[str, ...] | None
) -> None:
    """A10b."""
    rule = pairwise_rule(tokenize(f"{HOST}/?{source}"), tokenize(f"{HOST}/?{source}&c={value}"), cluster=7)
    named = [(str(key_of(slot)), tuple(str(key_of(other)) for other in others)) for slot, others in rule.candidates]
    assert named == ([] if keys is None else [("?c", keys)])
    assert rule.cluster == 7


def test_letters_beyond_ascii_are_not_converted() -> None:
    """A12; URLs have none, but a value may be handed over decoded."""
    for mine, value in (("École", "école"), ("école", "ÉCOLE")):
        slot = ("?q", 1, 0, 0, 0)
        assert changes_of(pairwise_rule({slot: mine}, {slot: value})) == {"?q": value}


def test_a_transformation_is_the_same_in_whatever_order_keys_stand() -> None:
    """Transformations are the classes of algorithm 5: two orders of one would be two classes."""
    first, second = (
        pairwise_rule(tokenize(f"{HOST}/x?{query}"), tokenize(f"{HOST}/x")) for query in ("a=1&b=2", "b=2&a=1")
    )
    assert first.changes == second.changes
