"""Rules as JSON: what is published, stored, exported. Reading is strict: one error refuses the whole, and is named.

    {"host": "example.com", "version": 3, "retired": [["1f…", "reason"]], "unskip": ["http://…"], "rules": [
      {"id": "9c…", "host": "example.com", "kind": "url", "state": "live", "identity": "identical", "spans": false,
       "context": [{"key": "?sid", "test": "any", "values": []}],
       "transformation": [{"key": "?sid", "op": "delete"}], "carrier": [], "name": "", "text": "…",
       "support": 40, "coverage": 50, "precision": 1.0, "lower_bound": 0.93, "since": 0,
       "evidence": [["a", "b", true]]}]}

A rule's host is its set's. What reaches over hosts (``spans``) belongs to a registrable domain and stays within it, so
that no host's rules touch another's pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar, get_args, get_type_hints

from clusterd_crawler.errors import RuleError
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.urls import canonical_hosts, is_text, registrable

#: Keys that are remembered: most rules are of few.
KEYS: Final = 4096

T = TypeVar("T")

_TESTS: Final = get_args(get_type_hints(Condition)["test"])
_OPS: Final = get_args(get_type_hints(Edit)["op"])
_CHOICES: Final = {name: get_args(get_type_hints(Rule)[name]) for name in ("kind", "identity", "state")}
_WORD: Final = re.compile(r"[^\s/?#@*\\\x00-\x1f]+")
#: Values that a test takes, where it is not any number of them.
_VALUES: Final = {"is": 1, "like": 1, "numbered": 2}
_NUMBERS: Final = {1: "one value", 2: "two values"}
#: What a query key may be called.
_NAME: Final = re.compile(r"[^&=;#\s]+")
#: What the edit ``spaces`` may write.
_SPACES: Final = ("_", "%20")
_RULE_FIELDS: Final = frozenset(get_type_hints(Rule)) | {"text"}
_SET_FIELDS: Final = frozenset(get_type_hints(RuleSet))


def rule_set_to_json(rules: RuleSet) -> dict[str, Any]:
    """Return the JSON object of a rule set."""
    return {
        "host": rules.host,
        "version": rules.version,
        "rules": [rule_to_json(rule) for rule in rules.rules],
        "retired": [list(pair) for pair in rules.retired],
        "unskip": list(rules.unskip),
    }


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """Return the JSON object of a rule."""
    return {
        "id": rule.id,
        "host": rule.host,
        "text": rule.text,
        "kind": rule.kind,
        "name": rule.name,
        "context": [_condition_to_json(condition) for condition in rule.context],
        "transformation": [_edit_to_json(edit) for edit in rule.transformation],
        "carrier": [_condition_to_json(condition) for condition in rule.carrier],
        "spans": rule.spans,
        "shows": rule.shows,
        "crawl": rule.crawl,
        "identity": rule.identity,
        "support": rule.support,
        "coverage": rule.coverage,
        "precision": rule.precision,
        "lower_bound": rule.lower_bound,
        "state": rule.state,
        "since": rule.since,
        "evidence": [list(pair) for pair in rule.evidence],
    }


def _condition_to_json(condition: Condition) -> dict[str, Any]:
    return {"key": str(condition.key), "test": condition.test, "values": list(condition.values)}


def _edit_to_json(edit: Edit) -> dict[str, Any]:
    value: dict[str, Any] = {"key": str(edit.key), "op": edit.op}
    if edit.value:
        value["value"] = edit.value
    if edit.source is not None:
        value["source"] = str(edit.source)
    if edit.names:
        value["names"] = list(edit.names)
    return value


def rule_set_from_json(value: Mapping[str, Any]) -> RuleSet:
    """Read a rule set; `RuleError` names the entry and the reason."""
    _object(value, "rule set", _SET_FIELDS)
    host = _text(value.get("host"), "rule set: host")
    where = f"rule set of {host}"
    rules = _list(value.get("rules", []), f"{where}: rules", rule_from_json)
    ids: set[str] = set()
    for number, rule in enumerate(rules):
        if rule.host != host:
            raise RuleError(f"{where}: rules[{number}]: host is {rule.host!r}; a set holds its own host's rules only")
        if rule.id in ids:
            raise RuleError(f"{where}: rules[{number}]: id {rule.id!r} stands twice")
        ids.add(rule.id)
    return RuleSet(
        host=host,
        version=_number(value.get("version"), f"{where}: version"),
        rules=tuple(rules),
        retired=tuple(_list(value.get("retired", []), f"{where}: retired", _pair)),
        unskip=tuple(_list(value.get("unskip", []), f"{where}: unskip", _text)),
    )


def version_of(published: bytes) -> int:
    """Return the version of a rule set as bytes, -1 where none can be read; an eighth of the cost of reading it all."""
    try:
        return _number(json.loads(published)["version"], "version")
    except (ValueError, TypeError, KeyError, RecursionError, RuleError):
        return -1


def may_have_rules(host: str) -> bool:
    """Whether a rule of a host, as it stands in URLs, can be read: of ``me@h.com`` or ``*.h.com`` it cannot.

    >>> may_have_rules("h.com:8080"), may_have_rules("me@h.com"), may_have_rules("*.h.com")
    (True, False, False)
    """
    return _WORD.fullmatch(host) is not None


def rule_from_json(value: Any, where: str = "rule") -> Rule:
    """Read one rule; ``where`` opens the message of an error."""
    _object(value, where, _RULE_FIELDS)
    fields: dict[str, Any] = {name: _word(value.get(name), f"{where}: {name}") for name in ("id", "host")}
    for name, choices in _CHOICES.items():
        fields[name] = _choice(
            value.get(name, choices[1] if name == "state" else choices[0]), f"{where}: {name}", choices
        )
    for name in ("context", "carrier"):
        fields[name] = tuple(_list(value.get(name, []), f"{where}: {name}", _condition))
    fields["transformation"] = tuple(_list(value.get("transformation", []), f"{where}: transformation", _edit))
    for name in ("name", "crawl"):
        fields[name] = _string(value.get(name, ""), f"{where}: {name}")
    fields["spans"] = _flag(value.get("spans", False), f"{where}: spans")
    for name in ("support", "coverage", "since", "shows"):
        fields[name] = _number(value.get(name, 0), f"{where}: {name}")
    for name in ("precision", "lower_bound"):
        fields[name] = _share(value.get(name, 0.0), f"{where}: {name}")
    fields["evidence"] = tuple(_list(value.get("evidence", []), f"{where}: evidence", _evidence))
    rule = Rule(**fields)
    check_rule(rule, where)
    return rule


def check_rule(rule: Rule, where: str) -> None:
    """Refuse a rule that could reach beyond its host, or that says nothing."""
    if rule.spans and registrable(rule.host) != rule.host:
        raise RuleError(
            f"{where}: spans is for a registrable domain; that of {rule.host!r} is {registrable(rule.host)!r}"
        )
    if rule.kind == "name":
        if not rule.name or rule.transformation:
            raise RuleError(f"{where}: a name rule has a name and no transformation")
        return
    if not rule.transformation:
        raise RuleError(f"{where}: transformation is empty; a rule edits at least one key")
    for number, edit in enumerate(rule.transformation):
        if edit.key.start not in {1, 2} and edit.op != "family":
            continue
        place = f"{where}: transformation[{number}]"
        if edit.op == "family" and not rule.context:
            raise RuleError(f"{place}: a family needs a context; without one it would be the whole host")
        if edit.op != "family" and not rule.spans:
            raise RuleError(f"{place}: only a rule that spans a registrable domain edits scheme or host")
        if edit.op != "family" and not (edit.op == "set" and _within(edit, rule.host)):
            raise RuleError(
                f"{place}: scheme and host can only be set, to http or https and to a host within {rule.host!r} as "
                f"URLs have it, not to {edit.value!r}"
            )


def _within(edit: Edit, domain: str) -> bool:
    """Whether what is set is a scheme of the web, or a host of the domain: a key of another is no URL at all."""
    if edit.key.start == 1:
        return edit.value in {"http", "https"}
    return registrable(edit.value) == domain and edit.value in canonical_hosts(edit.value)


def _condition(value: Any, where: str) -> Condition:
    _object(value, where, {"key", "test", "values"})
    test = _choice(value.get("test"), f"{where}: test", _TESTS)
    values = tuple(_list(value.get("values", []), f"{where}: values", _string))
    wanted = _VALUES.get(test, len(values))
    if test == "numbered" and len(values) == wanted + 1:
        wanted += 1
        if not (values[2].isascii() and values[2].isdecimal() and len(values[2]) < 3):
            raise RuleError(f"{where}: numbered: {values[2]!r} is not a number of digits")
    if len(values) != wanted:
        raise RuleError(f"{where}: test {test!r} takes exactly {_NUMBERS[wanted]}, not {len(values)}")
    if test == "numbered" and not values[0]:
        raise RuleError(f"{where}: numbered needs a delimiter before the number")
    if test == "depth":
        _check_depths(values, where)
    return Condition(_key(value.get("key"), f"{where}: key"), test, values)  # type: ignore[arg-type]


def _check_depths(values: tuple[str, ...], where: str) -> None:
    if not values:
        raise RuleError(f"{where}: test 'depth' takes one value or more")
    for value in values:
        if not (value.isascii() and value.isdigit() and len(value) < 6):
            raise RuleError(f"{where}: depth {value!r} is not a number of path components")


def _edit(value: Any, where: str) -> Edit:
    _object(value, where, {"key", "op", "value", "source", "names"})
    op = _choice(value.get("op"), f"{where}: op", _OPS)
    source = value.get("source")
    if op == "copy" and source is None:
        raise RuleError(f"{where}: copy needs a source")
    if op in {"items", "without"} and not value.get("value"):
        raise RuleError(f"{where}: {op} needs a value: {'what separates items' if op == 'items' else 'what goes'}")
    if op == "rename" and not (str(value.get("key")).startswith("?") and _NAME.fullmatch(str(value.get("value", "")))):
        raise RuleError(f"{where}: rename is for a query key, and its value is the name of one")
    if op == "spaces" and value.get("value") not in _SPACES:
        raise RuleError(f"{where}: spaces are written {' or '.join(_SPACES)}, not {value.get('value')!r}")
    return Edit(
        key=_key(value.get("key"), f"{where}: key"),
        op=op,  # type: ignore[arg-type]
        value=_string(value.get("value", ""), f"{where}: value"),
        source=None if source is None else _key(source, f"{where}: source"),
        names=tuple(_list(value.get("names", []), f"{where}: names", _string)),
    )


def _key(value: Any, where: str) -> Key:
    try:
        return _parsed(_string(value, where))
    except RuleError as error:
        raise RuleError(f"{where}: {error}") from None


@lru_cache(KEYS)
def _parsed(text: str) -> Key:
    """Return a key, one for all rules that mean it."""
    return Key.parse(text)


def _evidence(value: Any, where: str) -> tuple[str, str, bool]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise RuleError(f"{where}: {value!r} is not [url, url, agreed]")
    return _string(value[0], where), _string(value[1], where), _flag(value[2], where)


def _pair(value: Any, where: str) -> tuple[str, str]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise RuleError(f"{where}: {value!r} is not [id, reason]")
    return _text(value[0], where), _string(value[1], where)


def _object(value: Any, where: str, known: frozenset[str] | set[str]) -> None:
    if not isinstance(value, Mapping):
        raise RuleError(f"{where}: {type(value).__name__} where an object is expected")
    unknown = sorted(map(str, set(value) - known))
    if unknown:
        raise RuleError(f"{where}: unknown {unknown[0]!r}; known are {', '.join(sorted(known))}")


def _list(value: Any, where: str, read: Callable[[Any, str], T]) -> list[T]:
    if not isinstance(value, list | tuple):
        raise RuleError(f"{where}: {type(value).__name__} where a list is expected")
    return [read(entry, f"{where}[{number}]") for number, entry in enumerate(value)]


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str) or not is_text(value):
        raise RuleError(f"{where}: {value!r} is not text")
    return value


def _text(value: Any, where: str) -> str:
    if not _string(value, where):
        raise RuleError(f"{where}: is empty")
    return str(value)


def _word(value: Any, where: str) -> str:
    """Return a text that may stand in an address: a typo must not make a rule that no URL ever meets."""
    if not _WORD.fullmatch(_text(value, where)):
        raise RuleError(f"{where}: {value!r} has a character that no id and no host has")
    return str(value)


def _choice(value: Any, where: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise RuleError(f"{where}: {value!r} is not one of {', '.join(choices)}")
    return str(value)


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise RuleError(f"{where}: {value!r} is not true or false")
    return value


def _number(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RuleError(f"{where}: {value!r} is not a whole number of 0 or more")
    return value


def _share(value: Any, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise RuleError(f"{where}: {value!r} is not a share from 0 to 1")
    return float(value)
