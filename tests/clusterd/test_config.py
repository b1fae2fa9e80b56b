"""Configuration: later sources win, and a wrong setting is named with what would be right."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from clusterd.clusters.contract import CONTAINED, DEFAULT_POLICIES, IDENTICAL, NEAR, Policy
from clusterd.config import STORE_FOLDER, Config, holds_store
from clusterd.services import open_services
from clusterd_consumer.postings.scheme import Scheme
from clusterd_crawler.errors import SettingError
from clusterd_crawler.settings import daemons_own

BOUNDS = re.compile(r"(?P<least>[\d.]+) (or more|to (?P<most>[\d.]+))")


def toml(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "clusterd.toml"
    file.write_text(text)
    return file


def test_defaults_need_nothing() -> None:
    config = Config.load(environment={})
    assert (config.data, config.redis, config.kafka) == (".clusterd", "", "")
    assert config.policies == DEFAULT_POLICIES
    assert not config.uses_kafka()


def test_anywhere_in_a_scrapy_project_the_folder_of_its_crawls_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    spiders = tmp_path / "shop" / "spiders"
    spiders.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert Config.load(environment={}).data == ".clusterd"
    monkeypatch.chdir(spiders)
    assert Config.load(environment={}).data_folder() == tmp_path / ".clusterd"
    assert Config.load(environment={"CLUSTERD_DATA": "mine"}).data == "mine"
    (spiders / ".clusterd").mkdir()  # somebody has begun a store here
    assert Config.load(environment={}).data == ".clusterd"
    gone = spiders / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Config.load(environment={}).data == ".clusterd"


def test_later_sources_win(tmp_path: Path) -> None:
    file = toml(tmp_path, 'redis = "redis://file:1/0"\nbatch = 10\ngroup = "file"')
    config = Config.load(
        file, {"CLUSTERD_REDIS": "redis://env:1/0", "CLUSTERD_BATCH": "20"}, {"batch": 30, "data": None}
    )
    assert (config.redis, config.batch, config.group) == ("redis://env:1/0", 30, "file")


def test_both_spellings_are_read(tmp_path: Path) -> None:
    assert Config.load(toml(tmp_path, "CLUSTERD_BATCH = 7"), {}).batch == 7
    assert Config.load(toml(tmp_path, "batch = 7"), {}).batch == 7


def test_redis_url_serves_where_nothing_names_a_redis(tmp_path: Path) -> None:
    environment = {"REDIS_URL": "redis://usual:6379/1"}
    assert Config.load(None, environment).redis == "redis://usual:6379/1"
    assert Config.load(None, environment, {"redis": "redis://given:1/0"}).redis == "redis://given:1/0"


def test_the_store_of_a_projects_crawls_goes_before_redis_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As crawls do not go by it, the commands would ask a store that no crawl has written to."""
    environment = {"REDIS_URL": "redis://usual:6379/1"}
    (tmp_path / "scrapy.cfg").touch()
    (tmp_path / ".clusterd" / "spool").mkdir(parents=True)  # as crawls with a Redis have it, too
    (tmp_path / "spiders").mkdir()
    for folder in (tmp_path / "spiders", tmp_path):
        monkeypatch.chdir(folder)
        assert Config.load(environment=environment).redis == "redis://usual:6379/1"
    (tmp_path / ".clusterd" / "appendonlydir").mkdir()
    for folder in (tmp_path / "spiders", tmp_path):
        monkeypatch.chdir(folder)
        config = Config.load(environment=environment)
        assert (config.redis, config.data_folder().resolve()) == ("", tmp_path / ".clusterd")
        assert Config.load(environment=environment, options={"redis": "redis://given:1/0"}).redis == "redis://given:1/0"
    (tmp_path / "scrapy.cfg").unlink()
    assert Config.load(environment=environment).redis == "redis://usual:6379/1"


def test_policies_are_a_table(tmp_path: Path) -> None:
    text = "[policies]\nidentical = {}\nnear = { resemblance = 0.9 }\ncontained = { containment = 0.9 }"
    assert Config.load(toml(tmp_path, text), {}).policies == (IDENTICAL, NEAR, CONTAINED)
    as_json = {"CLUSTERD_POLICIES": '{"half": {"resemblance": 0.5}}'}
    assert Config.load(environment=as_json).policies == (Policy("half", resemblance=0.5),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bacth = 3", r"no setting bacth; did you mean batch\?"),
        ("CLUSTERD_BACTH = 3", r"no setting CLUSTERD_BACTH; did you mean CLUSTERD_BATCH\?"),
        ("zzz = 3", "no setting zzz; settings are"),
        ("batch = 0", r"CLUSTERD_BATCH = 0 is not accepted; it takes 1 to 10000"),
        ('batch = "many"', r"CLUSTERD_BATCH = 'many' is not accepted; it takes a whole number, 1 to 10000"),
        ("workers = 1.5", r"CLUSTERD_WORKERS = 1.5 is not accepted; it takes a whole number, 1 to 1000"),
        ("explore = 'no'", r"CLUSTERD_EXPLORE = 'no' is not accepted; it takes a number, 0 to 1"),
        (
            'redis = "localhost:6379"',
            r"CLUSTERD_REDIS = 'localhost:6379' is not accepted: an address begins with .*; it takes redis://HOST:PORT/DB",
        ),
        ("explore = 1.5", "0 to 1"),
        ("[policies]\nnear = { resemblence = 0.9 }", r"policy near knows no 'resemblence'; did you mean resemblance\?"),
        ("[policies]\nnear = { resemblance = 9 }", r"0 < R, C <= 1"),
        ("[policies]\nnear = { resemblance = true }", r"0 < R, C <= 1"),
        ("policies = 3", "CLUSTERD_POLICIES = 3 is not accepted; it takes a table such as"),
        ("policies = '{'", "CLUSTERD_POLICIES = '{' is not accepted; it takes a table such as"),
        ('[policies]\n"a b" = { resemblance = 0.9 }', "CLUSTERD_POLICIES names a policy 'a b'; a name has letters"),
        ('[policies]\n"" = {}', "CLUSTERD_POLICIES names a policy ''; a name has letters"),
        ('[policies]\n"a{b}:c" = {}', "CLUSTERD_POLICIES names a policy 'a{b}:c'; a name has letters"),
        (f"policies = '{'[' * 9999}'", "it takes a table such as"),
        ("batch = = 3", "is not TOML"),
        (f"batch = {'9' * 5000}", "is not TOML"),
        (f"policies = {'[' * 9999}", "is not TOML"),
        ('redis = "redis://127.0.0.1:port/0"', "it takes redis://HOST:PORT/DB"),
        ('redis = "redis://127.0.0.1:6379/staging"', "it takes redis://HOST:PORT/DB"),
        ('skip_within = "²"', "it takes crawl, or a number of seconds"),
        ('kafka = "127.0.0.1"', "it takes kafka://HOST:PORT"),
        ('kafka = "redis://127.0.0.1:6379"', "it takes kafka://HOST:PORT"),
        ('kafka = "kafka://a:1,b:99999"', "it takes kafka://HOST:PORT"),
        ('kafka_prefix = "a b/"', "CLUSTERD_KAFKA_PREFIX = 'a b/' is not accepted; it takes letters"),
        ("poll_timeout = 60", "it takes 0.01 to 5"),
        ('alert_webhook = "http://.example/"', r"CLUSTERD_ALERT_WEBHOOK = 'http://.example/' is not accepted"),
        (
            'alert_webhook = "http:///alerts"',
            r"CLUSTERD_ALERT_WEBHOOK = 'http:///alerts' is not accepted; it takes http",
        ),
        (
            'alert_webhook = "http://h/a b?token"',
            r"CLUSTERD_ALERT_WEBHOOK = 'http://h/…' is not accepted; it takes http",
        ),
        ('alert_webhook = "http://h:0/"', r"= 'http://h:0/' is not accepted; it takes http"),
        ('alert_webhook = "http://me:to/ken@h/"', r"= 'http://me:\*\*\*@h/' is not accepted; it takes http"),
        ("session_timeout = 10_000_000", "it takes 1 to 86400"),
        ("batch = 1\nCLUSTERD_BATCH = 2", "CLUSTERD_BATCH is given twice, in two spellings"),
    ],
)
def test_a_wrong_setting_is_named_with_what_would_be_right(tmp_path: Path, text: str, said: str) -> None:
    file = toml(tmp_path, text)
    with pytest.raises(SettingError, match=said) as caught:
        Config.load(file, {})
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("name", [field.name for field in fields(Config) if BOUNDS.search(field.metadata["accepts"])])
def test_a_number_may_be_as_small_and_as_large_as_is_said(name: str) -> None:
    (declared,) = (field for field in fields(Config) if field.name == name)
    bounds = BOUNDS.search(declared.metadata["accepts"])
    assert bounds is not None
    number = type(declared.default)
    step = 1 if number is int else 0.001
    least, most = number(bounds["least"]), number(bounds["most"] or bounds["least"])
    for value in (least, most):
        assert getattr(Config.load(environment={f"CLUSTERD_{name.upper()}": str(value)}), name) == value
    for value in (least - step, *([most + step] if bounds["most"] else [])):
        with pytest.raises(SettingError, match="it takes "):
            Config.load(environment={f"CLUSTERD_{name.upper()}": str(value)})


def test_ports_of_the_metrics_that_would_be_none_are_refused() -> None:
    assert Config.load(environment={}, options={"metrics_port": 65534, "workers": 2}).workers == 2
    with pytest.raises(
        SettingError, match="metrics_port = 65535 leaves no ports for 2 workers; it takes 65534 or less"
    ):
        Config.load(environment={"CLUSTERD_WORKERS": "2"}, options={"metrics_port": 65535})


def test_rules_by_near_duplicates_want_the_policy_near() -> None:
    assert Config.load(environment={"CLUSTERD_RULE_IDENTITY": "near"}).rule_identity == "near"
    for policies in ('{"identical": {}, "half": {"resemblance": 0.5}}', '{"near": {"containment": 0.9}}'):
        with pytest.raises(SettingError, match="rule_identity = near goes by the policy near"):
            Config.load(environment={"CLUSTERD_RULE_IDENTITY": "near", "CLUSTERD_POLICIES": policies})


def test_how_candidates_are_found_is_left_to_the_store_or_said() -> None:
    assert Config().scheme() is None
    assert Config.load(environment={"CLUSTERD_CANDIDATES": "super"}).scheme() == Scheme(candidates="super")
    with pytest.raises(SettingError, match="CLUSTERD_CANDIDATES = 'lsh' is not accepted; it takes prefix or super"):
        Config.load(environment={"CLUSTERD_CANDIDATES": "lsh"})


def test_the_daemons_settings_reach_it_from_scrapys() -> None:
    given = {
        "CLUSTERD_POLICIES": {"near": {"resemblance": 0.8}},
        "CLUSTERD_WHOLE": True,
        "CLUSTERD_RETENTION": 0.5,
        "CLUSTERD_BATCH": 100,
        "CLUSTERD_ALERT_FILE": "alerts of möbius.jsonl",
        "CLUSTERD_GROUP": None,
        "CLUSTERD_DATA": "the crawl's own",
        "BOT_NAME": "x",
    }
    config = Config.load(environment=daemons_own(given))
    assert (config.policies, config.whole, config.retention) == ((Policy("near", resemblance=0.8),), True, 0.5)
    assert (config.batch, config.alert_file, config.group) == (100, "alerts of möbius.jsonl", "clusterd")
    assert config.data == Config().data


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "clusterd.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingError, match=r"clusterd\.toml: is not TOML"):
        Config.load(file, {})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be read: No such file"):
        Config.load(tmp_path / "none.toml", {})


def test_settings_of_the_tests_are_nobodys_business() -> None:
    assert Config.load(environment={"CLUSTERD_TEST_REDIS": "x"}).redis == ""


def test_who_names_no_policies_takes_those_of_the_store(redis_url: str, prefix: str) -> None:
    def policies(**more: Any) -> list[str]:
        with open_services(Config(redis=redis_url, redis_prefix=prefix, **more)) as services:
            return [policy.name for policy in services.index.policies()]

    two = tuple(policy for policy in DEFAULT_POLICIES if policy.name in {"identical", "near"})
    loose = Policy("loose", resemblance=0.2)
    assert policies(policies=two) == policies() == ["identical", "near"]
    assert policies(policies=(loose,)) == policies() == ["identical", "near", "loose"]


def test_a_new_store_gets_the_default_policies(redis_url: str, prefix: str) -> None:
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:
        assert services.index.policies() == list(DEFAULT_POLICIES)


def test_a_folder_that_may_not_be_looked_into_is_somebodys_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "store" / STORE_FOLDER).mkdir(parents=True)
    folders = {"absent": False, "file": False, ".": False, "store": True, "x" * 300: True}
    assert {name: holds_store(tmp_path / name) for name in folders} == folders
