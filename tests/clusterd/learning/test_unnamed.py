"""What stands in a query without a name: ``showthread.php?12-any-title``, ``index.html?org/example/Page.html``."""

from __future__ import annotations

from collections.abc import Iterator

from tests.clusterd.learning.one_host import key, learned

#: More pages than names of parameters are looked at.
THREADS = 700


def test_a_session_beside_a_title_without_a_name_is_dropped_of_every_thread() -> None:
    def pages() -> Iterator[tuple[str, int]]:
        for n in range(THREADS):
            yield f"showthread.php?{n}-Title-of-{n}", n
            yield f"showthread.php?{n}-Title-of-{n}&s={n:032x}", n
            yield f"showthread.php?{n}-Title-of-{n}&page=2", -n - 1

    rules = learned(pages())
    assert key(rules, "showthread.php?9999-New&s=ab12") == key(rules, "showthread.php?9999-New")
    assert key(rules, "showthread.php?9999-New&page=2") != key(rules, "showthread.php?9999-New")
    assert key(rules, "showthread.php?9999-New") != key(rules, "showthread.php?8888-New")


def test_a_parameter_that_comes_after_many_such_pages_is_still_looked_at() -> None:
    threads = [(f"showthread.php?{n}-Title-of-{n}", n) for n in range(THREADS)]
    members = [(f"member.php?u={n}{tab}", -n - 1) for n in range(100) for tab in ("", "&tab=posts")]
    rules = learned([*threads, *members])
    assert key(rules, "member.php?u=9999&tab=posts") == key(rules, "member.php?u=9999")


def test_frames_that_show_one_page_whatever_follows_are_a_family() -> None:
    frames = [(f"api/index.html?org/example/Page{n}.html", 1) for n in range(THREADS)]
    pages = [(f"api/org/example/Page{n}.html", n + 2) for n in range(THREADS)]
    rules = learned([*frames, *pages])
    assert key(rules, "api/index.html?org/example/New.html") == key(rules, "api/index.html?org/example/Other.html")
    assert key(rules, "api/index.html?print") != key(rules, "api/index.html?org/example/Other.html")


def test_a_number_in_that_place_is_called_by_the_name_it_has_elsewhere() -> None:
    rules = learned((form.format(n), n) for n in range(120) for form in ("thread?{}", "thread?t={}", "thread?t={}&n=1"))
    assert key(rules, "thread?9999") == key(rules, "thread?t=9999")


def test_what_begins_with_a_semicolon_in_the_query_is_no_parameter_of_the_path() -> None:
    """``?id=7&;ref=a``, of links whose ``&amp;`` was spoilt."""
    rules = learned([(f"item?id={n}{form}", n) for n in range(120) for form in ("", "&;ref=a", "&;ref=b")])
    assert key(rules, "item?id=900&;ref=a") == key(rules, "item?id=900")
    assert key(rules, "item?id=900&;ref=z") != key(rules, "item?id=900")
