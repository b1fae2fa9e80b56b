"""duplicate-url-discarder's JSON as rules of ours, where they can say the same; a reason for what they cannot.

A file with an error is refused whole (`RuleError` names the entry and the reason): a wrong type, an unknown key or
processor, a pattern that url-matcher itself would refuse. What is right but has no counterpart here is listed:
patterns for every domain (a rule of ours belongs to one host), wildcards that can swallow a slash, excluded paths, and
edits that would be applied again to their own result (ours are, until nothing changes).

One entry becomes a rule for each of its includes, and for the host with ``www.`` before it, as url-matcher reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from clusterd_crawler.errors import RuleError, WrongInput
from clusterd_crawler.rule_language.json_form import may_have_rules
from clusterd_crawler.rules import SCHEME, Condition, Edit, Key, Rule, component, rule_id
from clusterd_crawler.urls import canonical, capital_escapes, host_of, registrable

from clusterd.learning.interchange.discarder_export import CASE_NOTE
from clusterd.learning.interchange.discarder_paths import Inexpressible

PROCESSORS: Final[Mapping[str, type]] = {
    "queryRemoval": str,
    "queryRemovalExcept": str,
    "subpathRemoval": int,
    "normalizer": str,
}
ENTRY_KEYS: Final = ("order", "processor", "args", "urlPattern")
PATTERN_KEYS: Final = ("include", "exclude", "priority")
LAST: Final = Key(end=1)


@dataclass(frozen=True, slots=True)
class Imported:
    """The rules of a file, first to apply first; what has no counterpart (entry → reason), and notes (id → note)."""

    rules: list[Rule]
    refused: list[tuple[str, str]]
    notes: dict[str, str]


def read_entries(given: Any) -> Imported:
    """Return the rules of a parsed file; `RuleError` where any entry is wrong."""
    if not isinstance(given, list):
        raise RuleError("a rule file of duplicate-url-discarder is a list of entries")
    for number, entry in enumerate(given):
        _check(entry, f"entry {number}")
    rules: dict[str, Rule] = {}
    refused: list[tuple[str, str]] = []
    notes: dict[str, str] = {}
    for number, entry in sorted(enumerate(given), key=lambda pair: -pair[1]["order"]):
        for include in entry["urlPattern"]["include"] or [""]:
            try:
                for rule in _rules(entry, include):
                    rules[rule.id] = rule
                    if any(c.isalpha() for c in include.partition(rule.host)[2]):
                        notes[rule.id] = f"{CASE_NOTE}; this rule takes them as written"
            except (Inexpressible, WrongInput) as reason:
                refused.append((f"entry {number} ({entry['processor']} {include})", str(reason)))
    return Imported(list(rules.values()), refused, notes)


def _check(entry: Any, where: str) -> None:
    _check_keys(entry, where, ENTRY_KEYS, ("order", "processor", "urlPattern"))
    if not isinstance(entry["order"], int) or isinstance(entry["order"], bool):
        raise RuleError(f"{where}: order is {entry['order']!r}; a whole number is expected")
    wanted = PROCESSORS.get(entry["processor"]) if isinstance(entry["processor"], str) else None
    if wanted is None:
        raise RuleError(f"{where}: processor is {entry['processor']!r}; the processors are {', '.join(PROCESSORS)}")
    args = entry.get("args") or []
    if not isinstance(args, list) or any(type(arg) is not wanted for arg in args):
        kind = "numbers of path components" if wanted is int else "texts"
        raise RuleError(f"{where}: args of {entry['processor']} are {args!r}; a list of {kind} is expected")
    if args and entry["processor"] == "normalizer":
        raise RuleError(f"{where}: normalizer takes no args")
    pattern = entry["urlPattern"]
    _check_keys(pattern, f"{where}: urlPattern", PATTERN_KEYS, ("include",))
    for name in ("include", "exclude"):
        given = pattern.get(name) or []
        if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
            raise RuleError(f"{where}: urlPattern: {name} is {given!r}; a list of texts is expected")
    for text in pattern["include"] or []:
        if text and not _split(text, where).host:
            raise RuleError(f"{where}: urlPattern: include {text!r} has no domain")
    for text in pattern.get("exclude") or []:
        _split(text, where)


def _check_keys(value: Any, where: str, known: tuple[str, ...], needed: tuple[str, ...]) -> None:
    if not isinstance(value, dict):
        raise RuleError(f"{where}: {type(value).__name__} where an object is expected")
    for key in value:
        if key not in known:
            raise RuleError(f"{where}: unknown {key!r}; known are {', '.join(known)}")
    for key in needed:
        if key not in value:
            raise RuleError(f"{where}: {key} is missing")


class _Pattern(NamedTuple):
    """A pattern as url-matcher takes it apart; the host has its port."""

    text: str
    scheme: str
    host: str
    path: str
    query: str
    fragment: str


def _split(pattern: str, where: str = "entry") -> _Pattern:
    if pattern.startswith("//"):
        return _Pattern(pattern, "", "", pattern, "", "")
    try:
        parts = urlsplit(pattern if "://" in pattern else f"//{pattern}")
    except ValueError as error:
        raise RuleError(f"{where}: urlPattern: {pattern!r} is no pattern: {error}") from None
    return _Pattern(pattern, parts.scheme.lower(), parts.netloc.lower(), parts.path, parts.query, parts.fragment)


def _rules(entry: Mapping[str, Any], include: str) -> Iterator[Rule]:
    if not include:
        raise Inexpressible("a pattern for every domain; a rule belongs to one host")
    pattern = _split(capital_escapes(include))
    if pattern.fragment:
        raise Inexpressible("a fragment, which never reaches the server")
    host = host_of(canonical(f"{pattern.scheme or 'http'}://{pattern.host}/"))
    if not may_have_rules(host):
        raise Inexpressible(f"{pattern.host!r} has a character that no host has")
    exclude = [_split(capital_escapes(text)) for text in entry["urlPattern"].get("exclude") or []]
    context = (*_scheme(pattern.scheme), *_path(pattern.path), *_query(pattern.query))
    if not pattern.path and not pattern.query:
        if registrable(host) != host:
            raise Inexpressible(f"a pattern for all subdomains of {host}; only a registrable domain's rules span them")
        yield _rule(host, (*context, *_excluded(exclude, "")), entry, spans=True)
        return
    for home in (host, f"www.{host}"):
        if not any(out.host == home and out.path in {"", "/"} and not out.query for out in exclude):
            yield _rule(home, (*context, *_excluded(exclude, home)), entry, spans=False)


def _rule(host: str, context: tuple[Condition, ...], entry: Mapping[str, Any], *, spans: bool) -> Rule:
    args = [capital_escapes(arg) if isinstance(arg, str) else arg for arg in entry.get("args") or []]
    more, transformation = _edits(entry["processor"], args, host, context, spans)
    context = tuple(dict.fromkeys((*context, *more)))
    made = rule_id(host, context, transformation)
    return Rule(made, host, context, transformation, spans=spans, state="live")


def _scheme(scheme: str) -> tuple[Condition, ...]:
    return (Condition(SCHEME, "is", (scheme,)),) if scheme else ()


def _path(path: str) -> tuple[Condition, ...]:
    """Return the conditions that hold exactly where a path pattern does.

    A ``*`` may stand for whole components in one place (``/a/*/b|``), or open the first component of an end
    (``/*.php|``): there what it can swallow are whole components too.
    """
    exact = path.endswith("|")
    parts = path.rstrip("*").split("/")[1:] if path and not exact else path.removesuffix("|").split("/")[1:]
    stars = [number for number, part in enumerate(parts) if part == "*"]
    if stars:
        return _around(parts, stars, exact)
    if exact and parts and parts[0].startswith("*"):
        return _ending(parts)
    if any("*" in part for part in parts):
        raise Inexpressible("a * inside a path component can stand for several components")
    fixed = [Condition(component(number), "is", (part,)) for number, part in enumerate(parts)]
    if exact:
        return (*fixed, Condition(Key(), "depth", (str(len(parts)),)))
    if not fixed:
        return ()
    last = fixed.pop()
    if last.values[0]:
        return (*fixed, Condition(last.key, "like", (last.values[0] + "*",)))
    return (*fixed, Condition(last.key, "any")) if fixed else ()


def _around(parts: list[str], stars: list[int], exact: bool) -> tuple[Condition, ...]:
    """Return the conditions of ``/head/*/*/tail|``, or of ``/head/*/``: how it begins and ends, how long it is."""
    head, tail = parts[: stars[0]], parts[stars[-1] + 1 :]
    in_a_row = len(stars) == stars[-1] - stars[0] + 1
    if not in_a_row or any("*" in part for part in (*head, *tail)) or not tail or (not exact and tail != [""]):
        raise Inexpressible("a * in the path that can stand for several components")
    begins = tuple(Condition(component(number), "is", (part,)) for number, part in enumerate(head))
    long = Condition(component(len(parts) - 1), "any")
    if not exact:
        return (*begins, long)
    return (*begins, long, *_ending(tail))


def _ending(tail: list[str]) -> tuple[Condition, ...]:
    first, *rest = tail
    if any("*" in part for part in rest) or "*" in first[1:]:
        raise Inexpressible("a * in the path that can stand for several components")
    test: Literal["like", "is"] = "like" if first.startswith("*") else "is"
    ends = [Condition(Key(end=len(tail)), test, (first,))]
    ends += [Condition(Key(end=len(rest) - number), "is", (part,)) for number, part in enumerate(rest)]
    return tuple(ends)


def _query(query: str) -> Iterator[Condition]:
    values: dict[str, list[str]] = {}
    for piece in filter(None, query.split("&")):
        name, _, value = piece.partition("=")
        if "*" in name:
            raise Inexpressible("a * in the name of a parameter")
        values.setdefault(name, []).append(value)
    for name, given in values.items():
        if "*" in given:
            yield Condition(Key(name), "any")
        elif len(given) == 1:
            yield Condition(Key(name), "like" if "*" in given[0] else "is", tuple(given))
        elif any("*" in value for value in given):
            raise Inexpressible("several patterns for one parameter")
        else:
            yield Condition(Key(name), "in", tuple(given))


def _excluded(exclude: list[_Pattern], host: str) -> Iterator[Condition]:
    """Say what is excluded on a host: parameters that must not be there; other hosts do not matter."""
    for out in exclude:
        if host and out.host and out.host not in {host, host.removeprefix("www.")}:
            continue
        name, _, value = out.query.partition("=")
        if out.scheme or out.fragment or out.path not in {"", "/"} or not name or value != "*" or "*" in name:
            raise Inexpressible(f"an excluded pattern: {out.text}")
        yield Condition(Key(name), "absent")


def _edits(
    processor: str, args: list[Any], host: str, context: tuple[Condition, ...], spans: bool
) -> tuple[tuple[Condition, ...], tuple[Edit, ...]]:
    """Return the conditions that the processor adds, and its edits."""
    if processor.startswith("queryRemoval"):
        _check_names(args)
    if processor == "queryRemovalExcept":
        return (), (Edit(Key(), "keep", names=tuple(args)),)
    if processor == "normalizer":
        if spans or host.startswith("www"):
            raise Inexpressible("the normalizer takes www with any digits from the host")
        return (Condition(LAST, "is", ("",)),), (Edit(LAST, "delete"),)
    if not args:
        raise Inexpressible("it has no args and does nothing")
    if processor == "queryRemoval":
        return (), tuple(Edit(Key(name), "delete") for name in args)
    if any(place < 0 for place in args):
        raise Inexpressible("it counts components from the end, which does nothing")
    ends = {c.key.index for c in context if c.test in {"is", "like"} and c.key.start > 2}
    if not any(c.test == "depth" for c in context) and not ends & set(args):
        raise Inexpressible("it would be applied again to its own result")
    return (), tuple(Edit(component(place), "delete") for place in sorted(set(args), reverse=True))


def _check_names(names: list[str]) -> None:
    """Refuse names that mean something here: ``a#2`` the second, ``;v`` one of the path, ``=`` what has no name."""
    for name in names:
        if not name or name.startswith(";") or any(mark in name for mark in "#&="):
            raise Inexpressible(f"no parameter of a query is called {name!r}")
