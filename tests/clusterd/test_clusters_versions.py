"""The compiled core and Python pack a batch of fetches into the same bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from clusterd.clusters.redis import registered as redis_registered
from clusterd.clusters.redis.registered import CORE, URL_PLACES, VERSION, packed_versions
from clusterd_crawler.sketch import EMPTY, PROFILES, Sketch, StreamSketch
from clusterd_crawler.urls import host_of
from hypothesis import given, settings
from hypothesis import strategies as st

WORDS = 2**64 - 1


class Labels:
    """Six bytes for each two labels that were ever asked for."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}

    def labels(self, crawl: str, sweep: str) -> bytes:
        return self._known.setdefault((crawl, sweep), len(self._known)).to_bytes(6, "little")


letters = st.characters(codec="utf-8", exclude_categories=["Cs"])
urls = st.one_of(
    st.builds(
        "{}://{}{}".format,
        st.sampled_from(["http", "https"]),
        st.text(letters, max_size=30),
        st.one_of(
            st.just(""), st.builds("{}{}".format, st.sampled_from(["/", "?", "#"]), st.text(letters, max_size=80))
        ),
    ),
    st.text(letters, max_size=20),
)
streams = st.builds(
    lambda values, more, tokens, text, parity: StreamSketch(values, len(values) // 8 + more, tokens, text, parity),
    st.binary(max_size=100).map(lambda b: b[: len(b) // 8 * 8]),
    st.sampled_from([0, 0, 7, 2**24, 2**40]),
    st.integers(0, 2**30),
    st.integers(0, WORDS),
    st.sampled_from([b"", bytes(range(128))]),
)
sketches = st.builds(
    Sketch,
    url=urls,
    fetched_at=st.one_of(st.integers(0, 2**41), st.integers(-(2**70), 2**70)),
    profile=st.sampled_from(sorted(PROFILES)),
    content=st.integers(0, WORDS),
    main=streams,
    whole=st.just(EMPTY),
    bag=st.integers(0, WORDS),
    status=st.integers(-5, 70_000),
    crawl=st.sampled_from(["", "c1", "c2"]),
    sweep=st.sampled_from(["", "spring"]),
)


def packed(batch: list[Sketch], *, compiled: bool) -> tuple[bytes, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redis_registered, "CORE", CORE if compiled else None)
        return packed_versions(cast(Any, Labels()), batch)


@pytest.mark.core
@settings(deadline=None)
@given(st.lists(sketches, max_size=5))
def test_both_give_the_same_bytes(batch: list[Sketch]) -> None:
    assert CORE is not None
    assert packed(batch, compiled=True) == packed(batch, compiled=False)


@given(st.lists(sketches, max_size=5))
def test_urls_and_hosts_are_where_the_places_say(batch: list[Sketch]) -> None:
    heads, identities, versions, places, text = packed(batch, compiled=False)
    found = [
        (text[url - 1 : url_end].decode(), text[host - 1 : host_end].decode())
        for url, url_end, host, host_end in URL_PLACES.iter_unpack(places)
    ]
    assert found == [(one.url, host_of(one.url)) for one in batch]
    assert len(versions) == VERSION.size * len(batch)
    assert len(heads) == len(identities) == 4 * len(batch)


@pytest.mark.core
def test_what_is_no_sketch_is_refused(crawled: Sketch) -> None:
    assert CORE is not None
    for wrong in (object(), replace(crawled, url=cast(Any, 5)), replace(crawled, content=-1)):
        with pytest.raises((AttributeError, TypeError, OverflowError)):
            CORE.pack([crawled, wrong], Labels().labels)
    with pytest.raises(ValueError, match="six bytes"):
        CORE.pack([crawled], lambda _crawl, _sweep: b"short")


@pytest.fixture
def crawled() -> Sketch:
    return Sketch("http://a.example/", 1, min(PROFILES), 2, EMPTY, EMPTY, 3)
