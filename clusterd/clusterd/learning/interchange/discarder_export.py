"""Rules as entries of duplicate-url-discarder's JSON, where it can say the same; a reason for each where it cannot.

What decides (read from duplicate-url-discarder 0.3 and url-matcher 0.6, and run in the tests):

- An include with a path holds for its host and for ``www.`` before it, which an exclude takes back. It holds for every
  scheme unless one is named, and for no port but the one named. Without a path it holds for all subdomains too.
- A path is a prefix, of characters, not of components; ``|`` ends it; ``*`` stands for anything, slashes too. Hence one
  rule may take two includes: ``/a/`` and ``/a|`` for "the first component is a".
- ``?name=value`` asks for a pair (``*`` for any value, repeated for one of several), an exclude forbids one.
- Every entry whose pattern holds for the URL *as linked* is applied, highest priority first; ours are applied until
  nothing changes. Rules that wait for another rule's edit are told by a note.
- It compares paths, names and values whatever their case; a note says so wherever that can make a difference.

A family (every URL of a context is one page) is exported where dropping the rest of the query says it: one exact path.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from clusterd_crawler.rule_language.conditions import NUMBER
from clusterd_crawler.rules import Condition, Edit, Rule
from clusterd_crawler.urls import UNNAMED

from clusterd.learning.interchange.discarder_paths import INCLUDES_LIMIT, Context, Inexpressible, paths, take_path

#: Most conditions "absent, or one of these" of a rule: each doubles its entries.
WITHIN_LIMIT: Final = 4
#: Entries are numbered from here down, so that the first rule is applied first.
FIRST_ORDER: Final = 100
PRIORITY: Final = 500

CASE_NOTE: Final = "it compares paths, names and values whatever their case"


@dataclass(frozen=True, slots=True)
class Exported:
    """The entries of a file, the rules that are not in it (id → reason), and what is not quite the same (id → note)."""

    entries: list[dict[str, Any]]
    refused: dict[str, str]
    notes: dict[str, str]


def export(rules: Iterable[Rule], universal: Sequence[dict[str, Any]], *, loose: bool) -> Exported:
    """Return the entries of the rules, in their order.

    ``loose``: a rule that holds only where there are no other parameters is exported without that condition, with a
    note, where it would be refused otherwise.
    ``universal``: entries without a domain that are in use beside them. The discarder applies those only to domains
    that have no entry of their own, so they are repeated for every host.
    """
    said: list[tuple[Rule, list[dict[str, Any]]]] = []
    of_host: dict[str, list[Rule]] = defaultdict(list)
    refused: dict[str, str] = {}
    for rule in rules:
        try:
            said.append((rule, list(_entries(rule, loose))))
            of_host[rule.host].append(rule)
        except Inexpressible as reason:
            refused[rule.id] = str(reason)
    notes = {rule.id: note for rule, entries in said if (note := _note(rule, entries, of_host[rule.host]))}
    entries = [entry for _, found in said for entry in found]
    entries += _repeated(universal, [rule for rule, _ in said])
    for number, entry in enumerate(entries):
        entry["order"] = FIRST_ORDER + len(entries) - number
        entry["urlPattern"]["priority"] = PRIORITY + len(entries) - number
    return Exported(entries, refused, notes)


def _entries(rule: Rule, loose: bool) -> Iterator[dict[str, Any]]:
    if rule.kind != "url":
        raise Inexpressible("a name rule is no function of the URL")
    if rule.shows:
        raise Inexpressible("a rule that asks what the known page shows")
    if rule.crawl:
        raise Inexpressible(f"a rule of one crawl: {rule.crawl}")
    if "@" in rule.host or rule.host.startswith("["):
        raise Inexpressible(f"the host {rule.host} cannot stand in a pattern")
    for conditions in _variants(rule.context, loose):
        context = _sorted(rule, conditions)
        pattern = _spanning(rule, context) if rule.spans else _pattern(rule, context)
        for processor, args in _processors(rule, context, pattern):
            entry: dict[str, Any] = {"order": 0, "processor": processor, "urlPattern": dict(pattern)}
            if args:
                entry["args"] = args
            yield entry


def _variants(context: Iterable[Condition], loose: bool) -> Iterator[list[Condition]]:
    """Write out "absent, or one of these" as two contexts of which one holds; together they are the context."""
    choices: list[tuple[Condition, ...]] = []
    for condition in context:
        if condition.test == "within":
            choices.append((replace(condition, test="absent", values=()), replace(condition, test="in")))
        elif condition.test != "only":
            choices.append((condition,))
        elif not loose:
            raise Inexpressible(f"a condition on what other parameters there are: {condition}")
    if sum(len(choice) > 1 for choice in choices) > WITHIN_LIMIT:
        raise Inexpressible(f"more than {WITHIN_LIMIT} conditions of the kind: absent, or one of several values")
    for chosen in product(*choices):
        yield list(chosen)


def _sorted(rule: Rule, conditions: Iterable[Condition]) -> Context:
    context = Context()
    on_path = [c for c in conditions if not c.key.name and (c.key.start > 2 or not c.key.start)]
    for condition in conditions:
        key = condition.key
        if key.deep or key.deep_end:
            raise Inexpressible(f"a condition on a part of a component: {condition}")
        if condition.test == "like" and NUMBER in condition.values[0]:
            raise Inexpressible(f"a number in a pattern: {condition}")
        if key.name:
            _put_query(context, condition)
        elif key.start in {1, 2}:
            _head(condition, rule, context)
    take_path(context, on_path)
    return context


def _put_query(context: Context, condition: Condition) -> None:
    name = condition.key.name
    known = context.query.setdefault(name, _query_condition(condition))
    if known.test == "any" and condition.test in {"is", "in", "like"}:
        context.query[name] = condition
    elif known != condition and not (condition.test == "any" and known.test != "absent"):
        raise Inexpressible(f"two conditions on one parameter: {known} and {condition}")


def _query_condition(condition: Condition) -> Condition:
    if condition.key.name.startswith(";"):
        raise Inexpressible(f"a condition on a parameter of the path: {condition}")
    if condition.key.occurrence != 1:
        raise Inexpressible(f"a condition on a repeated parameter: {condition}")
    if condition.key.name == UNNAMED:
        raise Inexpressible(f"a condition on what has no name: {condition}")
    if condition.test == "some":
        raise Inexpressible(f"a condition that there is a value: {condition}")
    if "*" in condition.key.name or (condition.test != "like" and any("*" in value for value in condition.values)):
        raise Inexpressible(f"a literal * in a condition: {condition}")
    return condition


def _head(condition: Condition, rule: Rule, context: Context) -> None:
    values = set(condition.values)
    if condition.test == "any":
        return
    if condition.key.start == 1 and condition.test in {"is", "in"}:
        if values >= {"http", "https"}:
            return
        if len(values) == 1:
            context.scheme = values.pop() + "://"
            return
    if condition.key.start == 2 and condition.test in {"is", "in"} and values == {rule.host}:
        return
    raise Inexpressible(f"a condition on scheme or host: {condition}")


def _spanning(rule: Rule, context: Context) -> dict[str, Any]:
    if any((context.start, context.end, context.depth, context.whole, context.query, context.scheme)):
        raise Inexpressible("a condition that holds on all subdomains")
    return {"include": [rule.host]}


def _pattern(rule: Rule, context: Context) -> dict[str, Any]:
    home = f"{context.scheme}{rule.host}"
    query = "&".join(_pairs(context))
    include = [f"{home}{path}{'?' + query if query else ''}" for path in paths(context)]
    exclude = [f"www.{rule.host}/"]
    exclude += [f"{rule.host}/?{c.key.name}=*" for c in context.query.values() if c.test == "absent"]
    return {"include": include, "exclude": exclude}


def _pairs(context: Context) -> Iterator[str]:
    for condition in context.query.values():
        if condition.test == "any":
            yield f"{condition.key.name}=*"
        elif condition.test != "absent":
            yield from (f"{condition.key.name}={value}" for value in condition.values)


def _processors(rule: Rule, context: Context, pattern: dict[str, Any]) -> Iterator[tuple[str, list[str] | list[int]]]:
    dropped: list[str] = []
    components: list[int] = []
    places = list(range(INCLUDES_LIMIT))
    for edit in rule.transformation:
        if edit.op == "keep":
            yield "queryRemovalExcept", _kept(edit)
        elif edit.op == "family":
            yield "queryRemovalExcept", _family(context, pattern)
        elif edit.op != "delete" or edit.key.deep or edit.key.deep_end or edit.key.name.startswith(";"):
            raise Inexpressible(f"no processor does this: {edit}")
        elif edit.key.name:
            dropped.append(_dropped(edit))
        elif edit.key.end == 1 and not edit.key.start and not context.depth:
            yield _slash(rule, context)
        else:
            components.append(places.pop(_place(edit, context, len(components))))
    if dropped:
        yield "queryRemoval", dropped
    if components:
        yield "subpathRemoval", sorted(components)


def _kept(edit: Edit) -> list[str]:
    if UNNAMED in edit.names:
        raise Inexpressible(f"no processor keeps what has no name: {edit}")
    return list(edit.names)


def _dropped(edit: Edit) -> str:
    if edit.key.occurrence != 1:
        raise Inexpressible(f"no processor drops one of several parameters of a name: {edit}")
    if edit.key.name == UNNAMED:
        raise Inexpressible(f"no processor drops what has no name: {edit}")
    return edit.key.name


def _place(edit: Edit, context: Context, gone: int) -> int:
    if edit.key.start > 2:
        return edit.key.index
    if edit.key.end and context.depth:
        return context.depth - gone - edit.key.end
    raise Inexpressible(f"no processor counts path components from the end: {edit}")


def _slash(rule: Rule, context: Context) -> tuple[str, list[str]]:
    """The normalizer drops trailing slashes, and ``www`` with digits from the host, which must not be there then."""
    last = context.end.get(1)
    if last is None or last.test != "is" or last.values != ("",) or rule.spans or re.match(r"www\d*\.", rule.host):
        raise Inexpressible("no processor drops the last path component")
    return "normalizer", []


def _family(context: Context, pattern: dict[str, Any]) -> list[str]:
    include = pattern["include"]
    single = all(condition.test == "is" for condition in context.query.values() if condition.test != "absent")
    if len(include) != 1 or "*" in include[0] or not include[0].partition("?")[0].endswith("|") or not single:
        raise Inexpressible("a family of pages that differ in more than their query")
    return [condition.key.name for condition in context.query.values() if condition.test == "is"]


def _note(rule: Rule, entries: list[dict[str, Any]], of_host: Iterable[Rule]) -> str:
    notes = []
    home = rule.host
    said = [text.partition(home)[2] for entry in entries for text in entry["urlPattern"]["include"]]
    if any(c.isalpha() for text in said for c in text):
        notes.append(CASE_NOTE)
    waits = [other.id for other in of_host if other.id != rule.id and _changes_context(other, rule)]
    if waits:
        notes.append(f"it looks at the URL as linked, not at what rule {waits[0]} leaves of it")
    if _leaves_repeated(rule):
        notes.append("of a repeated parameter it drops all")
    notes += [f"it holds with other parameters too, not {c}" for c in rule.context if c.test == "only"]
    if rule.spans:
        notes.append("it leaves out hosts with a port")
    return "; ".join(notes)


def _leaves_repeated(rule: Rule) -> bool:
    """Whether the rule may hold no more once the first of several parameters of a name is gone, and leave the rest."""
    dropped = {edit.key.name for edit in rule.transformation if edit.op == "delete"}
    tests = {condition.test for condition in rule.context if condition.key.name and condition.key.name in dropped}
    return bool(tests - {"any", "absent"}) or (len(dropped) > 1 and ("" in dropped or "any" in tests))


def _changes_context(other: Rule, rule: Rule) -> bool:
    """Whether a rule's edits can decide if another rule's conditions hold."""
    names = {edit.key.name for edit in other.transformation if edit.op == "delete"}
    own = {edit.key.name for edit in rule.transformation if edit.op == "delete"}
    absent = {condition.key.name for condition in rule.context if condition.test == "absent"}
    asked = {condition.key.name for condition in rule.context if condition.key.name} - own
    on_path = any(not condition.key.name for condition in rule.context)
    return bool((absent | asked) & names or (on_path and "" in names))


def _repeated(universal: Sequence[dict[str, Any]], rules: Iterable[Rule]) -> Iterator[dict[str, Any]]:
    hosts = dict.fromkeys(rule.host for rule in rules)
    for entry in universal:
        for host in hosts:
            pattern = {**entry["urlPattern"], "include": [f"{host}/"]}
            yield {**entry, "urlPattern": pattern}
