"""Rule files: clusterd's own, and duplicate-url-discarder's.

clusterd's file is one JSON object, ``{"clusterd-rules": 1, "rules": [rule, …]}``, each rule as it is published
(`clusterd_crawler.rule_language.json_form`); it loses nothing. duplicate-url-discarder's is a list of entries; what
cannot be said in it is named rule by rule (`discarder_export`, `discarder_import`), never approximated in silence.

A file with an error in it is refused whole, with the entry and the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, Literal

from clusterd_crawler.errors import RuleError
from clusterd_crawler.rule_language.json_form import rule_from_json, rule_to_json
from clusterd_crawler.rules import Rule
from clusterd_crawler.urls import canonical_hosts, capital_escapes, encode_unsafe, is_text

from clusterd.learning.interchange.discarder_export import Exported, export
from clusterd.learning.interchange.discarder_import import Imported, read_entries

Format = Literal["clusterd", "dud"]
#: The key that names the format, with its version.
MARK: Final = "clusterd-rules"
VERSION: Final = 1
#: What a rule of a file may be: a candidate would be in use nowhere, and counted nowhere.
STATES: Final = ("live", "pinned", "retired")
#: Fields of a rule's JSON that hold keys and values of URLs.
OF_URLS: Final = ("context", "carrier", "transformation")


def write_rules(
    rules: Iterable[Rule], file_format: Format, universal: str = "", *, loose: bool = False
) -> tuple[str, Exported]:
    """Return the text of a rule file, and what of the rules is not in it.

    ``universal``: the text of a discarder's file whose entries for every domain are to be repeated for these hosts;
    ``loose``: as `discarder_export.export` says.
    """
    if file_format == "dud":
        done = export(rules, _universal(universal) if universal else (), loose=loose)
        return _text(done.entries), done
    return "".join(own_file(rules)), Exported([], {}, {})


def own_file(rules: Iterable[Rule], *, one_line: bool = False) -> Iterator[str]:
    """Yield the text of a file of clusterd's own, a rule at a time: whoever writes it need not hold all rules."""
    indent, between, end = (None, " ", "") if one_line else (2, "\n    ", "\n  ")
    before, after = json.dumps({MARK: VERSION, "rules": []}, indent=indent)[:-1].rsplit("]", 1)
    yield before
    mark = "" if one_line else between
    for rule in rules:
        text = json.dumps(rule_to_json(rule), ensure_ascii=one_line, indent=indent)
        yield mark + text.replace("\n", "\n    ")
        mark = f",{between}"
    yield (end if mark.startswith(",") else "") + "]" + after + "}\n"


def read_rules(text: str, file_format: Format) -> Imported:
    """Return the rules of a file; `RuleError` where it, or any entry of it, cannot be read."""
    given = _parsed(text)
    if file_format == "dud":
        return read_entries(given)
    if not isinstance(given, dict) or MARK not in given:
        hint = "; it is a list, as of duplicate-url-discarder: --format dud" if isinstance(given, list) else ""
        raise RuleError(f'not a rule file of clusterd, which begins {{"{MARK}": {VERSION}, "rules": […]}}{hint}')
    if given[MARK] != VERSION:
        raise RuleError(f"a rule file of version {given[MARK]!r}; this clusterd reads version {VERSION}")
    if set(given) != {MARK, "rules"} or not isinstance(given["rules"], list):
        raise RuleError(f"a rule file holds {MARK} and rules, a list, and nothing else")
    rules: dict[str, Rule] = {}
    for number, entry in enumerate(given["rules"]):
        state = entry.get("state", STATES[0]) if isinstance(entry, dict) else STATES[0]
        if state not in STATES:
            raise RuleError(f"entry {number}: state: {state!r} is not one of {', '.join(STATES)}")
        rule = _read(_escaped(_at_home(entry)), f"entry {number}")
        if not canonical_hosts(rule.host):
            raise RuleError(f"entry {number}: host: {rule.host!r} is the host of no URL")
        if rule.id in rules:
            raise RuleError(f"entry {number}: id {rule.id!r} stands twice")
        rules[rule.id] = rule
    return Imported(list(rules.values()), [], {})


def _read(entry: Any, where: str) -> Rule:
    """Read a rule's JSON; one that was written by hand, without an id, has the id that it would be learned under."""
    if not isinstance(entry, dict) or "id" in entry:
        return rule_from_json(entry, where)
    rule = rule_from_json({**entry, "id": "none"}, where)
    return replace(rule, id=rule.made_id)


def _at_home(entry: Any) -> Any:
    """Return a rule's JSON with its host as it stands in URLs: EXAMPLE.org, or münchen.de, would be met by none."""
    host = entry.get("host") if isinstance(entry, dict) else None
    spelled = canonical_hosts(host) if isinstance(host, str) else []
    return entry if host in spelled or not spelled else {**entry, "host": spelled[0]}


def _escaped(entry: Any) -> Any:
    """Return a rule's JSON with its keys and values as they stand in URLs: ?größe, ?gr%c3%b6ße, or a blank, would be
    met in none.
    """
    if not isinstance(entry, dict):
        return entry
    return {**entry, **{part: _escaped_parts(entry[part]) for part in OF_URLS if part in entry}}


def _escaped_parts(value: Any) -> Any:
    """Escape every text of conditions or edits (their other words are ASCII); what is no text is left to the reader."""
    if isinstance(value, dict):
        return {key: _escaped_parts(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_escaped_parts(part) for part in value]
    if not isinstance(value, str) or not is_text(value):
        return value
    encoded = "#".join(map(encode_unsafe, value.split("#")))  # which has a meaning of its own in keys and patterns
    return capital_escapes(encoded)


def _universal(text: str) -> list[dict[str, Any]]:
    given = _parsed(text)
    read_entries(given)
    return [entry for entry in given if not any(entry["urlPattern"]["include"] or [])]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuleError(f"is not JSON: {error}") from None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
