"""What Scrapy's settings may hold that neither a file nor the environment does: numbers, None."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from clusterd.config import Config
from clusterd_crawler.errors import SettingError
from clusterd_crawler.settings import Settings


@pytest.mark.parametrize("name", ["CRAWL_ID", "SWEEP", "REDIS", "KAFKA", "SPOOL", "DATA", "EXPLORE", "QUEUE", "SKIP"])
def test_none_is_as_if_it_were_not_there(name: str) -> None:
    """As in ``CLUSTERD_CRAWL_ID = os.environ.get("CRAWL")``: crawls that are to be apart must not be called "None"."""
    assert Settings.from_crawl({f"CLUSTERD_{name}": None}, {}) == Settings()


def test_to_leave_the_compiled_cores_aside_is_no_setting() -> None:
    assert Settings.from_crawl({}, {"CLUSTERD_PURE": "1"}) == Settings()


def test_none_leaves_it_to_the_environment() -> None:
    environment = {"CLUSTERD_SWEEP": "may", "CLUSTERD_DATA": "there"}
    read = Settings.from_crawl({"CLUSTERD_SWEEP": None, "CLUSTERD_DATA": "here"}, environment)
    assert (read.sweep, read.data) == ("may", "here")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(3600, 3600), (0.5 * 86400, 43_200), ("3600", 3600), ("3600.0", 3600), (0.5, 0.5), ("1e5", 100_000), (0, 0)],
)
def test_seconds_may_be_any_number(given: Any, seconds: float) -> None:
    assert Settings.from_crawl({"CLUSTERD_SKIP_WITHIN": given}, {}).counts_for() == seconds


@pytest.mark.parametrize("given", [-1, "-0.5", math.inf, "nan", "1d", "Crawl", "", True])
def test_what_is_no_time_is_refused(given: Any) -> None:
    with pytest.raises(SettingError, match=r"CLUSTERD_SKIP_WITHIN = .* it takes crawl, or a number of seconds"):
        Settings.from_crawl({"CLUSTERD_SKIP_WITHIN": given}, {})


@pytest.mark.parametrize("given", [False, True, ["a", "b"], ("a",), b"a", {"a": 1}, {"a"}])
@pytest.mark.parametrize("name", ["SPOOL", "DATA", "CRAWL_ID", "SWEEP", "REDIS_PREFIX"])
def test_what_is_no_text_is_refused(name: str, given: Any) -> None:
    """It was made one: a spool in the folder "False", one crawl of all that were given a list."""
    with pytest.raises(SettingError, match=rf"CLUSTERD_{name} = .* is not accepted; it takes (text|a folder)$"):
        Settings.from_crawl({f"CLUSTERD_{name}": given}, {})


@pytest.mark.parametrize(("name", "url"), [("REDIS", "redis://me:secret@h"), ("KAFKA", "kafka://me:secret@h:1")])
def test_addresses_in_a_list_are_refused_and_no_password_is_told(name: str, url: str) -> None:
    with pytest.raises(SettingError, match=f"CLUSTERD_{name} = .* is not accepted; it takes ") as raised:
        Settings.from_crawl({f"CLUSTERD_{name}": [url, url]}, {})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "text"), [(Path("/a"), "/a"), (date(2026, 1, 31), "2026-01-31"), (2026, "2026"), (2026.0, "2026")]
)
def test_what_has_a_text_is_one(given: Any, text: str) -> None:
    assert Settings.from_crawl({"CLUSTERD_SWEEP": given}, {}).sweep == text


@pytest.mark.parametrize(
    "url",
    [
        *("redis://h:6379", "redis://h:6379/", "rediss://u:p@h/3", "unix:///run/redis.sock"),
        *("redis+cluster://h:7000", "redis+cluster://u:p@h:7000,g:7001/0", "rediss+cluster://[::1]:7000"),
        *("redis+sentinel://h,g:26380/pages", "rediss+sentinel://u:p@h/pages/3"),
    ],
)
def test_addresses_of_redis(url: str) -> None:
    assert Settings.from_crawl({"CLUSTERD_REDIS": url}, {}).redis == url


@pytest.mark.parametrize(
    ("urls", "why"),
    [
        (
            ("redis:h", "http://h", "me:secret@h", "unix+cluster://h", "redis+x://h"),
            "an address begins with redis://, rediss://",
        ),
        (("redis://h:port", "redis://h:6379,g:6379", "redis://[h/1", "redis+cluster://[h"), "a server is HOST:PORT"),
        (("redis://.example", "redis+cluster://a..b:1", "redis+sentinel://h,.b/x"), "a server is HOST:PORT"),
        (("redis+cluster://h,", "redis+cluster://h:99999", "redis+sentinel:///pages"), "a server is HOST:PORT"),
        (("redis://me:se/cret@h", "redis+cluster://me:se/cret@h", "redis://me:se\u2100cret@h"), "is percent-encoded"),
        (("redis://h/pages", "redis+sentinel://h/pages/three", "redis://h:1/cret@g"), "a database is a number;"),
        (("redis+cluster://h/3",), "a Redis Cluster has one database, 0"),
        (("redis+sentinel://h", "redis+sentinel://h/"), "the name by which the sentinels know the primary is missing"),
    ],
)
def test_what_is_wrong_with_an_address_of_redis(urls: Sequence[str], why: str) -> None:
    """It is told by what is wrong, and no part of a password with it."""
    for url in urls:
        with pytest.raises(SettingError) as raised:
            Settings.from_crawl({"CLUSTERD_REDIS": url}, {})
        _, _, told = str(raised.value).partition(" is not accepted: ")
        assert why in told, url
        assert "; it takes redis://HOST:PORT/DB" in told
        assert "cret" not in told


@pytest.mark.parametrize(
    ("name", "given"),
    [("VERDICT_TIMEOUT", "inf"), ("VERDICT_TIMEOUT", 1e12), ("QUEUE", "9" * 20), ("SPOOL_BYTES", 10**16)],
)
def test_a_number_that_no_store_or_clock_takes_is_refused(name: str, given: Any) -> None:
    with pytest.raises(SettingError, match=f"CLUSTERD_{name} = .* is not accepted; it takes .* at most"):
        Settings.from_crawl({f"CLUSTERD_{name}": given}, {})


@pytest.mark.parametrize("name", ["VERDICT_TIMEOUT", "QUEUE"])
def test_no_number_at_all_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="is not accepted"):
        Settings.from_crawl({f"CLUSTERD_{name}": "nan"}, {})


def test_a_path_may_begin_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    given = {"CLUSTERD_DATA": "~/pages", "CLUSTERD_SPOOL": "~", "CLUSTERD_CRAWL_ID": "~/x"}
    read = Settings.from_crawl(given, {})
    assert (read.data, read.spool, read.crawl_id) == ("/home/me/pages", "/home/me", "~/x")
    daemons = Config.load(environment={"CLUSTERD_ALERT_FILE": "~/alerts"}, options={"data": "~/pages"})
    assert (daemons.alert_file, daemons.data) == ("/home/me/alerts", "/home/me/pages")
    assert Settings.from_crawl({"CLUSTERD_DATA": "~nobody-of-that-name/x"}, {}).data == "~nobody-of-that-name/x"
