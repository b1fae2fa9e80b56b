"""Query keys without ``=`` (``?print``), as servers of documents and of repositories link them."""

from __future__ import annotations

import pytest

from tests.clusterd.learning.one_host import key, learned


@pytest.mark.parametrize("page", ["article{}?print", "view?id={}&print"])
def test_a_key_without_a_value_is_dropped_where_it_does_not_matter(page: str) -> None:
    plain, separator = page.removesuffix("print")[:-1], page.removesuffix("print")[-1]
    rules = learned((address.format(n), n) for n in range(60) for address in (plain, f"{plain}{separator}print"))
    assert key(rules, page.format(999)) == key(rules, plain.format(999))


@pytest.mark.parametrize("matters", ["?print", "?print="])
def test_where_it_means_another_thing_with_nothing_after_it_neither_is_dropped(matters: str) -> None:
    # Given what no condition can tell apart, of which one shows the page and one shows another.
    forms = ("", "?print", "?print=")
    rules = learned((f"article{n}{form}", -n - 1 if form == matters else n) for n in range(60) for form in forms)
    assert key(rules, f"article7{matters}") != key(rules, "article7")


def test_both_are_dropped_where_neither_matters() -> None:
    rules = learned((f"article{n}{form}", n) for n in range(60) for form in ("", "?print", "?print="))
    assert key(rules, "article99?print") == key(rules, "article99?print=") == key(rules, "article99")


#: Pages beside the family: a host that is nothing else shows one page whatever is asked for.
OTHERS = [(f"article{n}", 50_000 + n) for n in range(200)]


@pytest.mark.parametrize("form", ["x?login&back={}", "wiki/Page{}?edit"])
def test_a_family_of_one_page_is_asked_for_by_a_key_without_a_value(form: str) -> None:
    rules = learned([*((form.format(n), 1) for n in range(600)), *OTHERS])
    assert key(rules, form.format(7777)) == key(rules, form.format(8888))
    assert key(rules, form.format(7777).replace("login", "login=1").replace("edit", "edit=1")) != key(
        rules, form.format(8888).replace("login", "login=1").replace("edit", "edit=1")
    )


@pytest.mark.parametrize("form", ["x?login&back={}", "x?login=&back={}", "wiki/Page{}?edit", "wiki/Page{}?edit="])
def test_a_family_is_not_asked_for_by_what_brings_other_pages_with_nothing_after_it(form: str) -> None:
    bare = "=" not in form.partition("&")[0]
    flag = form.partition("?")[2].partition("&")[0]
    other = form.replace(flag, flag + "=" if bare else flag.removesuffix("="))
    rules = learned([*((form.format(n), 1) for n in range(600)), (other.format(3), -3), *OTHERS])
    assert key(rules, other.format(3)) != key(rules, other.format(4))
