"""URLs taken apart and written in canonical form: what is equivalent becomes one, what may be content stays."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.urls import canonical, host_of, parse, registrable
from hypothesis import given, settings
from hypothesis import strategies as st
from publicsuffixlist import PSLFILE, PublicSuffixList


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:8080/a", "http://example.com:8080/a"),
        ("http://example.com:/a", "http://example.com/a"),
        ("http://example.com:0080/a", "http://example.com/a"),
        ("http://h/a/./b/../c", "http://h/a/c"),
        (r"http://h\a/./b", "http://h/%5Ca/b"),
        ("http://h/%7e%2e%2e/%zz/../b", "http://h/~../b"),
        ("http://h/a/%2e%2e/%zz/../b", "http://h/b"),
        ("http://h/../../a/..", "http://h/"),
        ("http://h/a/%2e%2E/b", "http://h/b"),
        ("http://h/%7Euser/%41", "http://h/~user/A"),
        ("http://h/%2f%3f", "http://h/%2F%3F"),
        ("http://h/ä?ü=ö", "http://h/%C3%A4?%C3%BC=%C3%B6"),
        ("http://h/a b", "http://h/a%20b"),
        ("http://h/a#top", "http://h/a"),
        ("  http://h/a\n", "http://h/a"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://[::1]:80/x", "http://[::1]/x"),
        ("http://h:443/x", "http://h:443/x"),
        ("https://h:443/x", "https://h/x"),
        ("https://h:80/x", "https://h:80/x"),
        ("http://h:800/x", "http://h:800/x"),
        ("http://h:59999/x", "http://h:59999/x"),
        ("http://User:Pw@H/", "http://User:Pw@h/"),
        ("http://h?x=1", "http://h/?x=1"),
    ],
)
def test_equivalent_spellings_become_one(url: str, form: str) -> None:
    assert canonical(url) == form


@pytest.mark.parametrize(
    "url",
    [
        "http://h/Path/CASE",
        "http://h/?a=+",
        "http://h/?a=%2B",
        "http://h/?b=1&a=2",
        "http://h/?a",
        "http://h/?a=",
        "http://h/?",
        "http://h//a//b/",
        "http://h/a;jsessionid=1/b",
        "http://h/?C=N;O=D",
        "http://h/%%34%31",
        "http://h:65535/",
        "http://[::1]/",
        "file:///a",
        "http://h/%zz",
    ],
)
def test_what_may_be_content_stays(url: str) -> None:
    assert canonical(url) == url


@pytest.mark.parametrize(
    "url",
    [
        *("", "h/a", "mailto:a@b", "http:/a", "http://", "http:///a", "http://a..b ü/"),
        *("http://h:port/", "http://h:65536/"),
        *("http://[:::::]/", "http://[1.2.3]/", "http://[", "http://[]/", "http://[::1%25eth0]/"),
    ],
)
def test_what_is_no_url_is_refused_with_one_error(url: str) -> None:
    with pytest.raises(WrongInput):
        canonical(url)


def test_a_host_longer_than_names_may_be_is_refused() -> None:
    with pytest.raises(WrongInput, match="not a host name"):
        canonical("http://" + "ä" * 100_000 + "/")


@pytest.mark.parametrize("host", ["a." * 127, "a" * 254, "a." * 200 + "example:81"])
@pytest.mark.parametrize("written", ["http://{}/b", "HTTP://{}/b", "http://{}/a/../b"])
def test_it_is_refused_however_its_url_is_spelled(written: str, host: str) -> None:
    with pytest.raises(WrongInput, match="not a host name"):
        canonical(written.format(host))
    longest = host[:249] + ".org" if "." in host else host[:253]
    assert canonical(written.format(longest)) == f"http://{longest}/b"


@settings(deadline=None, max_examples=400)
@given(st.text(alphabet="htp:/?#&=;.%+aeA2F[]@\\ \tü\ud800\x00", max_size=40).map(lambda tail: "http://h" + tail))
def test_canonical_is_a_fixed_point_and_parse_loses_nothing(url: str) -> None:
    try:
        form = canonical(url)
    except WrongInput:
        return
    assert canonical(form) == form
    assert str(parse(form)) == form
    assert form.isascii()


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_a_url_or_the_one_error(text: str) -> None:
    with suppress(WrongInput):
        assert "://" in canonical(text)


def test_a_url_of_100_kilobytes_is_taken_apart_whole() -> None:
    url = "http://h/" + "a/../" * 10_000 + "x?" + "&".join(f"k{n}=v" for n in range(10_000))
    taken = parse(canonical(url))
    assert taken.path == ["x"]
    assert len(taken.query) == 10_000


def test_semicolons_separate_where_every_piece_is_a_pair() -> None:
    assert parse("http://h/?C=N;O=D").query == [("C", "N"), ("O", "D")]
    assert parse("http://h/?a=x;y").query == [("a", "x;y")]
    assert parse("http://h/?a=x;b=1&c=2").query == [("a", "x;b=1"), ("c", "2")]


def test_path_parameters_are_keys_of_their_own() -> None:
    taken = parse("http://h/a;jsessionid=9F;x/b.jsp;y=2?z=1")
    assert taken.path == ["a", "b.jsp"]
    assert taken.matrix == [(0, ";jsessionid", "9F"), (0, ";x", None), (1, ";y", "2")]


def test_keys_without_a_value_are_told_from_empty_ones() -> None:
    assert parse("http://h/?a&b=&b").query == [("a", None), ("b", ""), ("b", None)]


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("example.com:8080", "example.com"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:80", "[::1]"),
        ("localhost", "localhost"),
        ("github.io", "github.io"),
    ],
)
def test_registrable_domain(host: str, domain: str) -> None:
    assert registrable(host) == domain


def test_the_rules_of_one_ending_say_what_the_whole_list_says() -> None:
    whole = PublicSuffixList()
    rules = [line.split()[0] for line in Path(PSLFILE).read_text("utf-8").splitlines() if line[:1] not in ("", "/")]
    for rule in rules[::3]:
        suffix = rule.lstrip("!").replace("*", "any")
        for host in (suffix, f"a.{suffix}", f"c.b.a.{suffix}".upper(), f"a.{suffix}."):
            assert registrable(host) == (whole.privatesuffix(host) or host)


def test_the_host_has_its_port() -> None:
    assert host_of("http://h:81/a") == "h:81"


@pytest.mark.parametrize("rest", ["", "/a", "?next=/a", "#/a", "?a#b", "\\a/b"])
def test_a_host_ends_where_its_url_goes_on(rest: str) -> None:
    assert host_of(f"http://h:81{rest}") == "h:81"
