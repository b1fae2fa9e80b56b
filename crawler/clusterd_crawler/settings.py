"""Settings: one frozen dataclass, read once, validated at the edge. The same names in Scrapy, TOML and environment."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Final, Self

from clusterd_crawler.errors import SettingError
from clusterd_crawler.servers.kafka_address import read_address, shown_address
from clusterd_crawler.servers.redis_address import FORMS, read, shown

PREFIX: Final = "CLUSTERD_"

#: Settings of the daemon alone (`clusterd.config.Config`), by short name. One environment and one settings file serve
#: both: a crawl hands them on to the daemon that it starts, if it does. A name that neither knows is an error in both.
DAEMON_ONLY: Final = frozenset(
    [
        "group",
        "workers",
        "batch",
        "poll_timeout",
        "claim_after",
        "session_timeout",
        "kafka_partitions",
        "kafka_replication",
        "settle_steps",
        "retention",
        "whole",
        "candidates",
        "rule_identity",
        "alerts_kept",
        "alert_file",
        "alert_webhook",
        "metrics_port",
        "metrics_host",
        "log_level",
        "policies",
    ]
)
#: What of these is no text or number: one is true or false, one a table.
SWITCH: Final = PREFIX + "WHOLE"
TABLE: Final = PREFIX + "POLICIES"
#: Beginning of the environment variables of our tests.
TEST_PREFIX: Final = PREFIX + "TEST_"
#: Environment variable that leaves the compiled cores aside where it is 1. It is looked at when they are loaded, and is
#: no setting.
PURE: Final = PREFIX + "PURE"

#: Largest number of a setting: in milliseconds it still fits the 64 bits of stores and clocks. Infinity does not.
MOST: Final[Mapping[type, int]] = {int: 10**15, float: 10**9}

#: Value of ``skip_within`` by which only pages of the same crawl count as known.
THIS_CRAWL: Final = "crawl"
#: Of what Kafka takes for the name of a topic (249 characters) the beginning.
TOPIC_PREFIX: Final = re.compile(r"[A-Za-z0-9._-]{0,200}")

#: What is no text, though it can be made one: a folder "False", a crawl "['a', 'b']".
NO_TEXT: Final = (bool, bytes, list, tuple, set, dict)

Check = Callable[[Any], bool]


def setting(
    default: Any,
    help: str,
    check: Check | None = None,
    accepts: str = "",
    shown: Callable[[str], str] | None = None,
    *,
    path: bool = False,
) -> Any:
    """Declare a setting: its default, its line in the settings table, and what values it accepts.

    A check may say more by `ValueError`. ``shown`` is for a value that may hold a password: it returns what of it may
    be told, and the settings' ``repr`` leaves the value out. ``path``: a file or a folder, which may begin with ``~``:
    a shell opens it to no home in ``--data=~/pages``, and a file of settings has no shell.
    """
    metadata = {"help": help, "check": check, "accepts": accepts, "shown": shown, "path": path}
    return field(default=default, repr=shown is None, metadata=metadata)


def _share(value: float) -> bool:
    return 0 <= value <= 1


def _positive(value: float) -> bool:
    return value > 0


def _is_seconds(text: str) -> bool:
    try:
        return 0 <= float(text) < math.inf
    except ValueError:
        return False


def _begins_topics(prefix: str) -> bool:
    return TOPIC_PREFIX.fullmatch(prefix) is not None


def _is_kafka(servers: str) -> bool:
    read_address(servers)
    return True


@dataclass(frozen=True, slots=True)
class Settings:
    """What a crawl and the daemon share, and what the crawl alone needs."""

    enabled: bool = setting(True, "switches the add-on off without removing it")
    data: str = setting(
        ".clusterd",
        "folder of the embedded store, used where neither Redis nor Kafka is given",
        lambda v: v.strip() != "",
        "a folder",
        path=True,
    )
    redis: str = setting(
        "",
        "Redis, Redis Cluster or sentinels to use",
        lambda v: v == "" or bool(read(v)),
        FORMS,
        shown,
    )
    kafka: str = setting(
        "",
        "Kafka to use for messages",
        lambda v: v == "" or _is_kafka(v),
        "kafka://HOST:PORT[,HOST:PORT…], HOST:PORT[,HOST:PORT…] or, for TLS, kafkas://…",
        shown_address,
    )
    redis_prefix: str = setting("clusterd:", "what every Redis key begins with")
    kafka_prefix: str = setting(
        "",
        "what every Kafka topic begins with",
        _begins_topics,
        "letters, digits, . _ and -, 200 at most",
    )
    profile: str = setting(
        "text",
        "how a text becomes a sketch",
        lambda v: v in {"text", "compact", "short"},
        "text, compact or short",
    )
    crawl_id: str = setting("", "name of the crawl; crawlers of one crawl share it (default: a new one each time)")
    sweep: str = setting("", "label of the sweep, for lost & found")
    skip: bool = setting(True, "skip requests whose content a rule says has been fetched")
    skip_within: str = setting(
        THIS_CRAWL,
        "how recent the known page must be",
        lambda v: v == THIS_CRAWL or _is_seconds(v),
        "crawl, or a number of seconds",
    )
    rewrite: bool = setting(False, "rewrite a request to its key's URL where that is a URL that was linked")
    explore: float = setting(0.02, "share of would-be skips that is fetched to watch the rules", _share, "0 to 1")
    verdict_timeout: float = setting(
        0.25,
        "seconds that a response may wait for its verdict; 0: verdicts come by signal only",
        lambda v: v >= 0,
        "0 or more",
    )
    queue: int = setting(1000, "messages in flight before the spool is used", _positive, "1 or more")
    spool: str = setting("", "folder of the spool (default: DATA/spool)", path=True)
    spool_bytes: int = setting(
        256 * 1024 * 1024, "most bytes on the spool before messages are dropped", _positive, "1 or more"
    )
    max_page_bytes: int = setting(
        10_000_000, "longest page that is sketched; of a longer one the beginning", _positive, "1 or more"
    )
    known_limit: int = setting(2_000_000, "most known pages that a crawler remembers", _positive, "1 or more")
    trap_guard: str = setting(
        "report",
        "what happens to families of URLs that show the same few pages over and over",
        lambda v: v in {"off", "report", "sample", "cut"},
        "off, report, sample or cut",
    )

    def counts_for(self) -> float | None:
        """Return the seconds for which known pages of any crawl count; None: those of this crawl do, and no others."""
        return None if self.skip_within == THIS_CRAWL else float(self.skip_within)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], *, source: str) -> Self:
        """Read settings named ``CLUSTERD_…`` from a mapping; strings are converted, None is as if it were not there.

        Raises `SettingError` that names the setting, its value and what would be accepted.
        """
        known = {PREFIX + f.name.upper(): f for f in fields(cls)}
        chosen: dict[str, Any] = {}
        for name, value in values.items():
            if not name.startswith(PREFIX):
                continue
            if name not in known and name.removeprefix(PREFIX).lower() in DAEMON_ONLY:
                continue
            if name not in known:
                near = get_close_matches(name, [*known, *(PREFIX + n.upper() for n in DAEMON_ONLY)], n=1)
                hint = f"; did you mean {near[0]}?" if near else f"; settings are {', '.join(sorted(known))}"
                raise SettingError(f"{source}: there is no setting {name}{hint}")
            declared = known[name]
            if value is None:  # as in ``CLUSTERD_CRAWL_ID = os.environ.get("CRAWL")``
                continue
            chosen[declared.name] = _convert(name, value, declared, source)
        return cls(**chosen)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read settings from environment variables."""
        return cls.from_mapping(ours(environment), source="environment")

    @classmethod
    def from_crawl(cls, given: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Self:
        """Read Scrapy's settings, and from the environment what they do not name."""
        cls.from_environment(environment)  # a fault there is said to be there
        left = {name: value for name, value in ours(environment).items() if given.get(name) is None}
        return cls.from_mapping({**given, **left}, source="Scrapy settings")


def ours(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that are settings."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(PREFIX) and not name.startswith(TEST_PREFIX) and name != PURE
    }


def daemons_own(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the daemon's own settings among a crawl's, as the environment of a daemon that the crawl starts.

    Raises `SettingError` of what an environment cannot hold as it is: ``False`` would be a file of that name.
    """
    own = {name: given.get(name) for name in (PREFIX + short.upper() for short in sorted(DAEMON_ONLY))}
    return {name: _as_text(name, value) for name, value in own.items() if value is not None}


def _as_text(name: str, value: Any) -> str:
    """Return a value as the environment holds it: a table as JSON."""
    if isinstance(value, Mapping) and name == TABLE:
        return json.dumps({key: dict(said) if isinstance(said, Mapping) else said for key, said in value.items()})
    if isinstance(value, bool) and name == SWITCH:
        return json.dumps(value)
    if isinstance(value, (Mapping, *NO_TEXT)):
        accepts = {TABLE: "a table", SWITCH: "true or false"}.get(name, "text or a number")
        raise SettingError(f"Scrapy settings: {name} = {value!r} is not accepted; it takes {accepts}")
    return str(value)


def _convert(name: str, value: Any, declared: Any, source: str) -> Any:
    wanted = type(declared.default)
    kind = {bool: "true or false", int: "a whole number", float: "a number"}.get(wanted, "text")
    accepts = declared.metadata["accepts"] or kind
    shown = declared.metadata["shown"]
    try:
        converted = _as_bool(value) if wanted is bool else _as(value, wanted)
    except (TypeError, ValueError):
        value = value if shown is None else shown(str(value))
        if wanted in MOST and accepts != kind:
            accepts = f"{kind}, {accepts}"  # of 1.5 workers "1 to 1000" says nothing
        raise SettingError(f"{source}: {name} = {value!r} is not accepted; it takes {accepts}") from None
    if wanted in MOST and abs(converted) > MOST[wanted]:
        accepts += f", and {MOST[wanted]:,} at most"
        raise SettingError(f"{source}: {name} = {value!r} is not accepted; it takes {accepts}")
    check = declared.metadata["check"]
    why = ""
    try:
        right = check is None or check(converted)
    except ValueError as error:
        right, why = False, f": {error}"
    if not right:
        value = value if shown is None else shown(converted)
        raise SettingError(f"{source}: {name} = {value!r} is not accepted{why}; it takes {accepts}")
    return os.path.expanduser(str(converted)) if declared.metadata["path"] else converted


def _as(value: Any, wanted: type) -> Any:
    """Return the value as ``wanted``; ``true`` is no number nor text, 2.7 no whole one (as text 3600.0 is ``3600``)."""
    if wanted in (int, float) and isinstance(value, bool):
        raise ValueError(value)
    if wanted is str and isinstance(value, NO_TEXT):
        raise ValueError(value)
    if wanted is int and isinstance(value, float) and not value.is_integer():
        raise ValueError(value)
    if wanted is str and isinstance(value, float) and value.is_integer():
        value = int(value)
    return wanted(value)


def _as_bool(value: Any) -> bool:
    if isinstance(value, (bool, int)):
        return bool(value)
    text = str(value).strip().lower()
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off", ""}:
        return False
    raise ValueError(value)
