"""Contexts closed to what their evidence has seen: how often a value has to be seen before it is let through."""

from __future__ import annotations

import pytest

from tests.clusterd.learning.one_host import key, learned


@pytest.mark.parametrize(("seen", "goes"), [(1, False), (2, True)])
def test_a_value_of_the_edited_parameter_goes_that_agreed_twice(seen: int, goes: bool) -> None:
    views = ["a"] * 40 + ["b"] * 30 + ["c"] * seen
    pages = [(f"page-{at}{form}", at) for at, view in enumerate(views) for form in ("", f"?view={view}")]
    rules = learned(pages)
    assert key(rules, "page-700?view=a") == key(rules, "page-700")
    assert (key(rules, "page-700?view=c") == key(rules, "page-700")) is goes


@pytest.mark.parametrize(("seen", "goes"), [(0, False), (1, True)])
def test_a_value_of_another_parameter_passes_that_agreed_once(seen: int, goes: bool) -> None:
    languages = ["en"] * 40 + ["fr"] * 30 + ["de"] * seen
    pages = [
        (f"page-{at}?lang={language}{form}", at) for at, language in enumerate(languages) for form in ("", "&view=a")
    ]
    rules = learned([*pages, ("page-600?lang=de", 600)])
    assert key(rules, "page-700?lang=fr&view=a") == key(rules, "page-700?lang=fr")
    assert (key(rules, "page-700?lang=de&view=a") == key(rules, "page-700?lang=de")) is goes
