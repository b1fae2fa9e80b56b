"""The daemon's configuration: the crawl's settings and the daemon's own, one frozen dataclass, read once.

Sources, the later wins: defaults, ``--config FILE`` (TOML), environment (``CLUSTERD_…``; ``REDIS_URL`` where nothing
names a Redis or a data folder, and we are in no project whose crawls have a store of their own), options of the command
line. A TOML file gives settings by their short or long name:

    redis = "redis://127.0.0.1:6379/0"        # or CLUSTERD_REDIS
    batch = 200

    [policies]                                # replaces the four defaults
    identical = {}
    near = { resemblance = 0.9 }
    contained = { containment = 0.9 }
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Self, cast, get_args
from urllib.parse import urlsplit

from clusterd_consumer.postings.scheme import Candidates, Scheme
from clusterd_crawler.errors import SettingError
from clusterd_crawler.rules import Identity
from clusterd_crawler.servers.redis_address import may_be_host, shown_host
from clusterd_crawler.settings import PREFIX, Settings, ours, setting
from clusterd_crawler.topics import GROUP

from clusterd.clusters.contract import DEFAULT_POLICIES, NEAR, POLICY_NAME, POLICY_NAME_IS, Policy

LAST_PORT: Final = 65535
#: Seconds of the longest poll: a daemon that is asked to stop ends after six, and Redis has thirty for an answer.
LONGEST_POLL: Final = 5
DAY: Final = 86_400
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
POLICY_TABLE: Final = 'a table such as {"identical": {}, "near": {"resemblance": 0.9}}'
POLICY_KEYS: Final = ("resemblance", "containment")
#: By which Scrapy knows the folder of a project.
PROJECT_FILE: Final = "scrapy.cfg"
#: What a data folder has that holds an embedded store, and no spool only (`clusterd_consumer.embedded`).
STORE_FOLDER: Final = "appendonlydir"


def _at_least(least: float) -> Any:
    return lambda value: value >= least


def _is_web_address(text: str) -> bool:
    """Whether alerts can be posted there: who cannot later says so with parts of what may be a token."""
    try:
        parts = urlsplit(text)
        host = parts.hostname if parts.port != 0 else None
        may_be_host(host or "")
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(host) and text.isprintable() and " " not in text


@dataclass(frozen=True, slots=True)
class Config(Settings):
    """What the daemon and every command of ``clusterd`` are told. Field metadata makes the settings table."""

    group: str = setting(GROUP, "consumer group; the daemons of one group share the work", bool, "a name")
    workers: int = setting(1, "worker processes of this daemon", lambda v: 1 <= v <= 1_000, "1 to 1000")
    batch: int = setting(256, "most pages applied in one call", lambda v: 1 <= v <= 10_000, "1 to 10000")
    poll_timeout: float = setting(
        0.5, "seconds to wait for pages before other work", lambda v: 0.01 <= v <= LONGEST_POLL, "0.01 to 5"
    )
    claim_after: float = setting(
        10.0,
        "seconds after which the pages of a consumer that died are taken over (Redis Streams)",
        _at_least(1),
        "1 or more",
    )
    session_timeout: float = setting(
        10.0, "seconds after which a consumer counts as dead (Kafka)", lambda v: 1 <= v <= DAY, "1 to 86400"
    )
    kafka_partitions: int = setting(8, "partitions of a topic that the daemon creates", _at_least(1), "1 or more")
    kafka_replication: int = setting(1, "replicas of a topic that the daemon creates", _at_least(1), "1 or more")
    settle_steps: int = setting(50, "steps of settling (splits, new policies) at a time", _at_least(1), "1 or more")
    retention: float = setting(
        0.0, "days from their fetch that superseded versions of pages are kept; 0: for ever", _at_least(0), "0 or more"
    )
    whole: bool = setting(
        False, "keep whole pages beside their main texts, for `similar --whole`; decided when a store is begun"
    )
    candidates: str = setting(
        "",
        "how near-duplicates are looked for: by the smallest and some sampled values of sketches (prefix), or by "
        "super-shingles (super: no containment, little of short texts, less than half of the pairs of r = .5); "
        "default: as the store was begun, else prefix",
        lambda v: v in ("", *get_args(Candidates)),
        "prefix or super",
    )
    rule_identity: str = setting(
        "identical",
        "when pages count as the same in learning rules: by equal main texts; by their words in any order (listings "
        "sorted another way); by their words without numbers (sites that write a counter or the time into each "
        "answer); as near-duplicates (sites that write other words into each)",
        lambda v: v in get_args(Identity),
        "identical, words, unnumbered or near",
    )
    alerts_kept: int = setting(100_000, "alerts that stay readable", _at_least(1), "1 or more")
    alert_file: str = setting("", "file to which every alert is appended as a JSON line", path=True)
    alert_webhook: str = setting(
        "",
        "address to which alerts are posted as JSON lines",
        lambda v: v == "" or _is_web_address(v),
        "http://… or https://…",
        shown_host,
    )
    metrics_port: int = setting(
        0,
        "port of the Prometheus metrics, of the first worker; the others take the following ones; 0: none",
        lambda v: 0 <= v <= LAST_PORT,
        "0 to 65535",
    )
    metrics_host: str = setting("127.0.0.1", "address that the metrics are served on")
    log_level: str = setting("info", "least level that is logged", lambda v: v in LOG_LEVELS, ", ".join(LOG_LEVELS))
    policies: tuple[Policy, ...] = setting(DEFAULT_POLICIES, "when pages belong together", accepts=POLICY_TABLE)

    @classmethod
    def load(
        cls,
        file: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Read every source; ``options`` are the command line's, by short name, None where not given."""
        chosen: dict[str, Any] = {}
        for source, values in (
            (str(file), _read_toml(file) if file else {}),
            ("environment", ours(environment)),
            ("command line", {k: v for k, v in (options or {}).items() if v is not None}),
        ):
            chosen.update(cls._checked(values, source))
        if not chosen.keys() & {"redis", "data"}:
            project = _project()
            data = _crawls_data(project, cls().data)
            url = environment.get("REDIS_URL")
            if url and not (project and holds_store(Path(data))):  # no crawl goes by REDIS_URL
                chosen.update(cls._checked({"redis": url}, "environment (REDIS_URL)"))
            else:
                chosen["data"] = data
        made = cls(**chosen)
        if made.rule_identity == NEAR.name and not any(p.name == NEAR.name and p.resemblance for p in made.policies):
            raise SettingError("rule_identity = near goes by the policy near: policies have to name it, by resemblance")
        if made.metrics_port and made.metrics_port + made.workers - 1 > LAST_PORT:
            raise SettingError(
                f"metrics_port = {made.metrics_port} leaves no ports for {made.workers} workers; "
                f"it takes {LAST_PORT - made.workers + 1} or less"
            )
        return made

    @classmethod
    def _checked(cls, values: Mapping[str, Any], source: str) -> dict[str, Any]:
        """Return the values of one source, converted; only what the source names."""
        long: dict[str, Any] = {}
        for name, value in values.items():
            if (known := _long(name, cls, source)) in long:
                raise SettingError(f"{source}: {known} is given twice, in two spellings; one is enough")
            long[known] = value
        if PREFIX + "POLICIES" in long:
            long[PREFIX + "POLICIES"] = read_policies(long[PREFIX + "POLICIES"], source)
        read = cls.from_mapping(long, source=source)
        return {name: getattr(read, name) for name in (key.removeprefix(PREFIX).lower() for key in long)}

    def data_folder(self) -> Path:
        """Return the folder of the embedded store."""
        return Path(self.data)

    def scheme(self) -> Scheme | None:
        """Return how candidates are found, None where it is left to the store."""
        return Scheme(candidates=cast(Candidates, self.candidates)) if self.candidates else None

    def uses_kafka(self) -> bool:
        """Whether messages travel over Kafka."""
        return bool(self.kafka)

    @property
    def log(self) -> str:
        """Return where messages travel: ``redis``, or ``kafka`` and what its topics begin with."""
        return f"kafka {self.kafka_prefix}".rstrip() if self.kafka else "redis"


def holds_store(folder: Path) -> bool:
    """Whether an embedded store was begun in a folder. One that we may not look into is somebody's."""
    return may_be_there(folder / STORE_FOLDER, stat.S_ISDIR)


def may_be_there(path: Path, is_kind: Callable[[int], bool] = bool) -> bool:
    """Whether a path is there, of a kind (by its mode), or cannot be looked at: whoever opens it says why."""
    try:
        return is_kind(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # which `is_dir` takes for no folder, from Python 3.14 on
        return True


def _project() -> Path | None:
    """Return the folder of the Scrapy project that we are in, None outside of one."""
    try:
        here = Path.cwd()
        return next((folder for folder in (here, *here.parents) if (folder / PROJECT_FILE).is_file()), None)
    except OSError:  # a folder that is gone, or one above it that we may not look into
        return None


def _crawls_data(project: Path | None, default: str) -> str:
    """Return the data folder that the crawls of this project use, wherever in it somebody asks.

    A folder of this name that is here already is meant, and outside of a project the working folder.
    """
    if project is None or project == Path.cwd() or Path(default).is_dir():
        return default
    return str(project / default)


def read_policies(given: Any, source: str) -> tuple[Policy, ...]:
    """Read the policies table (of TOML, or as JSON text), or raise `SettingError`."""
    if isinstance(given, tuple) and all(isinstance(policy, Policy) for policy in given):
        return given
    table = given
    if isinstance(given, str):
        try:
            table = json.loads(given)
        except (ValueError, RecursionError):
            table = None
    if not isinstance(table, dict) or not table:
        raise SettingError(f"{source}: {PREFIX}POLICIES = {given!r} is not accepted; it takes {POLICY_TABLE}")
    return tuple(_policy(str(name), said, source) for name, said in table.items())


def _policy(name: str, said: Any, source: str) -> Policy:
    if isinstance(said, dict):
        unknown = [key for key in said if key not in POLICY_KEYS]
        if unknown:
            near = get_close_matches(str(unknown[0]), POLICY_KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else "a policy has resemblance or containment"
            raise SettingError(f"{source}: {PREFIX}POLICIES: policy {name} knows no {unknown[0]!r}; {hint}")
    if not POLICY_NAME.fullmatch(name):
        raise SettingError(f"{source}: {PREFIX}POLICIES names a policy {name!r}; {POLICY_NAME_IS}")
    if not isinstance(said, dict) or len(said) > 1 or not all(_threshold(value) for value in said.values()):
        raise SettingError(
            f"{source}: {PREFIX}POLICIES: policy {name} = {said!r} is not accepted; it takes {{}} (identical text), "
            "{resemblance = R} or {containment = C} with 0 < R, C <= 1"
        )
    return Policy(name, **{key: float(value) for key, value in said.items()})


def _threshold(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))  # editors of Windows begin it with a mark
    except OSError as error:
        raise SettingError(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also of a number of thousands of digits, of lists in lists
        raise SettingError(f"{file}: is not TOML: {error}") from error


def _long(name: str, config: type[Settings], source: str) -> str:
    """Return the setting's name with its prefix: both spellings are accepted, a wrong one is named as written."""
    known = [field.name for field in fields(config)]
    short = name.removeprefix(PREFIX).lower()
    if short in known:
        return PREFIX + short.upper()
    near = get_close_matches(short, known, n=1)
    right = near[0] if near else ""
    hint = (
        f"did you mean {PREFIX + right.upper() if name.startswith(PREFIX) else right}?"
        if right
        else f"settings are {', '.join(sorted(known))}"
    )
    raise SettingError(f"{source}: there is no setting {name}; {hint}")
