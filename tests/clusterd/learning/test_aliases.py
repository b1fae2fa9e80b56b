"""One folder under several names: what is learned, and what pages that differ forbid."""

from __future__ import annotations

import pytest

from tests.clusterd.learning.one_host import key, learned
from tests.crawler.made_rules import key_under

REGIONS = ("en-au", "en-ca", "en-gb")


@pytest.mark.parametrize("other", ["docs/2.4", "docs/current", "guide", "a/b/c/d"])
def test_a_second_name_of_a_folder_is_learned_for_files_in_it_and_in_folders_below(other: str) -> None:
    pages = [
        (f"{name}/{folder}page{n}.html", 100 * len(folder) + n)
        for name in ("manual", other)
        for folder in ("", "mod/")
        for n in range(30)
    ]

    rules = learned(pages)

    assert key(rules, f"{other}/new.html") == key(rules, "manual/new.html")
    assert key(rules, f"{other}/mod/new.html") == key(rules, "manual/mod/new.html")


def test_folders_in_which_no_page_was_compared_stay_apart() -> None:
    pages = [(f"{name}/mod/page{n}.html", n) for name in ("manual", "docs/2.4") for n in range(40)]

    rules = learned(pages)

    assert rules.rules
    assert key(rules, "docs/2.4/howto/page1.html") != key(rules, "manual/howto/page1.html")
    assert key(rules, "docs/2.4/index.html") != key(rules, "manual/index.html")


def test_an_old_version_that_agrees_on_half_of_the_pages_is_no_alias() -> None:
    pages = [("current", f"page{n}.html", n) for n in range(200)]
    pages += [("old", f"page{n}.html", n if n % 2 else 1000 + n) for n in range(200)]

    rules = learned((f"docs/{version}/{page}", content) for version, page, content in pages)

    fresh = [f"fresh{n}.html" for n in range(50)]
    assert not [page for page in fresh if key(rules, f"docs/old/{page}") == key(rules, f"docs/current/{page}")]
    differing = [f"page{n}.html" for n in range(0, 200, 2)]
    assert not [page for page in differing if key(rules, f"docs/old/{page}") == key(rules, f"docs/current/{page}")]


def test_of_an_old_version_the_folders_that_agree_are_merged_and_the_others_are_not() -> None:
    pages = []
    for version in ("current", "old"):
        pages += [(f"docs/{version}/stable/page{n}.html", n) for n in range(60)]
        pages += [(f"docs/{version}/changed/page{n}.html", 100 + n + 1000 * (version == "old")) for n in range(60)]

    rules = learned(pages)

    assert key(rules, "docs/old/stable/new.html") == key(rules, "docs/current/stable/new.html")
    assert key(rules, "docs/old/changed/new.html") != key(rules, "docs/current/changed/new.html")


@pytest.mark.parametrize(("agree", "same"), [(90, False), (110, True)])
def test_of_an_alias_no_more_than_one_page_in_a_hundred_may_differ(agree: int, same: bool) -> None:
    pages = [
        (f"{region}/page{n}.html", n + 1000 * (n == 7 and region == "en-ca"))
        for region in REGIONS[:2]
        for n in range(agree)
    ]

    rules = learned(pages)

    assert (key(rules, "en-ca/new.html") == key(rules, "en-au/new.html")) is same


@pytest.mark.parametrize(("differing", "same"), [(0, True), (4, False)])
def test_the_luckiest_of_several_regions_is_no_alias(differing: int, same: bool) -> None:
    """Given three regions of which two pages in fifty differ, but for one pair in which none has so far."""
    pages = [(f"{region}/page{n}.html", n) for region in REGIONS[:2] for n in range(50)]
    pages += [(f"en-gb/page{n}.html", n + 1000 * (n < differing)) for n in range(50)]

    rules = learned(pages)

    assert (key(rules, "en-ca/new.html") == key(rules, "en-au/new.html")) is same


def test_a_region_beside_which_another_differs_is_an_alias_by_a_record_too_long_for_luck() -> None:
    pages = [(f"{region}/page{n}.html", n) for region in REGIONS[:2] for n in range(150)]
    pages += [(f"en-gb/page{n}.html", n + 1000 * (n % 10 == 0)) for n in range(50)]

    rules = learned(pages)

    assert key(rules, "en-ca/new.html") == key(rules, "en-au/new.html")
    assert key(rules, "en-gb/new.html") != key(rules, "en-au/new.html")


def test_an_error_page_under_both_names_is_no_evidence() -> None:
    pages = [(f"{name}/mod/page{n}.html", 7) for name in ("manual", "docs/2.4") for n in range(200)]

    rules = learned(pages)

    assert key(rules, "docs/2.4/other/a.html") != key(rules, "manual/other/a.html")


def test_keys_are_fixed_points() -> None:
    pages = [
        (f"{name}/mod/page{n}.html", n) for name in ("manual", "docs/2.4", "docs/current", "doc") for n in range(40)
    ]

    rules = learned(pages)

    keys = {key(rules, f"{name}/mod/new.html") for name in ("manual", "docs/2.4", "docs/current", "doc")}
    assert len(keys) == 1
    (found,) = keys
    assert key_under(rules, found)[0] == found
