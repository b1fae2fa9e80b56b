"""A rule's edits as functions that change a `Url` in place: compiled once, run for every URL.

What an edit writes is escaped where it would be read as structure, so that a value never becomes another parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from clusterd_crawler.rule_language.conditions import (
    Check,
    Reader,
    Tokens,
    component_index,
    deep_index,
    no_tokens,
    parameter_index,
    read_key,
)
from clusterd_crawler.rules import Edit, Key, Rule
from clusterd_crawler.urls import UNNAMED, Url, registrable


class Edited(Enum):
    """What an edit did: changed the URL, or told that it is of a one-page family."""

    CHANGED = 1
    FAMILY = 2


#: None: nothing changed.
Applied = Edited | None
EditFunction = Callable[[Url], Applied]

#: "Whatever value it has": written over a value, never added where there is none, nor over an empty component.
ANY_VALUE: Final = "*"
#: What stands between the values of a query key that is there several times.
BETWEEN_PAIRS: Final = "&"
#: A query key with a number: ``f[0]``.
_NUMBERED: Final = re.compile(r"(.+(?:\[|%5B))(0|[1-9][0-9]{0,2})(\]|%5D)")
#: Longest value that a deep token is written into: rules that copy a value into itself double it, each time they apply.
LONGEST: Final = 8192
#: Characters that stay as they are in a path component and in a query value, as in a canonical URL.
_IN_PATH: Final = "-._~!$&'()*+,=:@%[]|"
_IN_QUERY: Final = "-._~!$'()*+,:@/?%=[]|"


def compile_edit(edit: Edit, rule: Rule, tokens: Mapping[Key, Tokens]) -> EditFunction:
    """Return the function that makes an edit."""
    if edit.op == "family":
        return lambda url: Edited.FAMILY
    if edit.op == "keep":
        return _keep(frozenset(edit.names))
    if edit.op == "sort":
        return _sort
    if edit.op == "items" and edit.value == BETWEEN_PAIRS and edit.key.name:
        return _sort_values(edit.key.name)
    if edit.op == "rename":
        return _rename(edit.key, edit.value)
    if edit.op == "delete":
        return _delete(edit.key) if not (edit.key.deep or edit.key.deep_end) else _write(edit.key, _empty, tokens)
    if edit.key.start in {1, 2}:
        return _head(edit, rule)
    return _write(edit.key, _new_value(edit, tokens), tokens)


def _empty(url: Url) -> str:
    return ""


def _keep(names: frozenset[str]) -> EditFunction:
    def keep(url: Url) -> Applied:
        kept = [pair for pair in url.query if pair[0] in names]
        if len(kept) == len(url.query):
            return None
        url.query = kept
        return Edited.CHANGED

    return keep


def _sort(url: Url) -> Applied:
    query = sorted(url.query, key=lambda pair: pair[0])
    matrix = url.matrix and sorted(url.matrix, key=lambda parameter: parameter[:2])
    if (query, matrix) == (url.query, url.matrix):
        return None
    url.query, url.matrix = query, matrix
    return Edited.CHANGED


def _sort_values(name: str) -> EditFunction:
    """Put in order the values of a query key that is there several times, or numbered; what has none is no list."""
    meant = list_name(name)[0]

    def sort_values(url: Url) -> Applied:
        listed = [(*list_name(known), at) for at, (known, _) in enumerate(url.query)]
        places = [at for _, at in sorted((number, at) for known, number, at in listed if known == meant)]
        values = [value for at in places if (value := url.query[at][1]) is not None]
        ordered = sorted(values)
        if values == ordered or len(values) < len(places):
            return None
        for at, value in zip(places, ordered, strict=True):
            url.query[at] = (url.query[at][0], value)
        return Edited.CHANGED

    return sort_values


def list_name(name: str) -> tuple[str, int]:
    """Return the name of the list that a query key is of, as its first key is called, and the number it has there.

    >>> list_name("f[12]"), list_name("f%5B0%5D"), list_name("tag"), list_name("f[01]")
    (('f[0]', 12), ('f%5B0%5D', 0), ('tag', 0), ('f[01]', 0))
    """
    found = _NUMBERED.fullmatch(name)
    return (f"{found[1]}0{found[3]}", int(found[2])) if found else (name, 0)


def _rename(key: Key, name: str) -> EditFunction:
    def rename(url: Url) -> Applied:
        names = [known for known, _ in url.query]
        if name in names or names.count(key.name) != 1:
            return None
        index = names.index(key.name)
        value = url.query[index][1]
        if value is None:  # a name alone may be read as a value (`query_pair`)
            return None
        url.query[index] = (name, value)
        return Edited.CHANGED

    return rename


def _delete(key: Key) -> EditFunction:
    if key.name:
        return lambda url: _delete_parameter(url, key)

    def delete_component(url: Url) -> Applied:
        index = component_index(key, url)
        if index < 0 or url.path == [""]:
            return None
        del url.path[index]
        if url.matrix is not None:
            url.matrix = [(at - (at > index), name, value) for at, name, value in url.matrix if at != index]
        if not url.path:
            url.path.append("")
        return Edited.CHANGED

    return delete_component


def _delete_parameter(url: Url, key: Key) -> Applied:
    parameters: list[Any] = url.matrix or [] if key.name[0] == ";" else url.query
    index = parameter_index(key, parameters)
    if index < 0:
        return None
    del parameters[index]
    return Edited.CHANGED


def _head(edit: Edit, rule: Rule) -> EditFunction:
    """Set scheme or host; the host stays inside the rule's registrable domain, whatever the rule says."""
    allowed = rule.spans and edit.op == "set" and (edit.key.start == 1 or registrable(edit.value) == rule.host)

    def set_head(url: Url) -> Applied:
        field = "scheme" if edit.key.start == 1 else "authority"
        if not allowed or getattr(url, field) == edit.value:
            return None
        setattr(url, field, edit.value)
        return Edited.CHANGED

    return set_head


def _new_value(edit: Edit, tokens: Mapping[Key, Tokens]) -> Reader:
    if edit.op == "set":
        return lambda url: edit.value
    source = edit.source or edit.key
    read = read_key(source, _tokens_of(source, tokens))
    convert = _conversion(edit)
    return lambda url: None if (value := read(url)) is None else convert(value)


def says_something(edit: Edit, tokens: Mapping[Key, Tokens]) -> Check | None:
    """Return the function that tells whether the deep token that an edit copies has a text; None for other edits.

    Where it has none, as before the ``-`` of ``-2``, the whole rule says nothing: what is left of ``?id=-1`` and of
    ``?id=-2`` would be one.
    """
    source = edit.source
    if source is None or not (source.deep or source.deep_end):
        return None
    read = read_key(source, _tokens_of(source, tokens))
    return lambda url: bool(read(url))


def _conversion(edit: Edit) -> Callable[[str], str]:
    if edit.op == "items":
        return lambda value: edit.value.join(sorted(value.split(edit.value)))
    if edit.op == "without":
        return lambda value: "".join(value.rpartition(edit.value)[::2])
    if edit.op == "spaces":
        return lambda value: value.replace("+", edit.value).replace("%20", edit.value)
    return _CONVERSIONS[edit.op]


def _tokens_of(key: Key, tokens: Mapping[Key, Tokens]) -> Tokens:
    return tokens.get(Key(key.name, key.occurrence, key.start, key.end), no_tokens)


def _decoded(value: str) -> str:
    """Decode every escape of UTF-8, once: ``%2541`` is the text ``%41``, and no ``A``.

    What would be structure is escaped again when it is written; a ``%`` here, since it stays as it is there. ``%2B``
    stays: a ``+`` is a space to forms, and to some servers in a path as well.
    """
    try:
        parts = [unquote_to_bytes(part).decode("utf-8").replace("%", "%25") for part in value.split("%2B")]
        return "%2B".join(parts)
    except UnicodeDecodeError:
        return value


def _underscored(value: str) -> str:
    """Write the spaces of a query value as wikis do in paths: ``Some+Title`` is ``Some_Title``."""
    return _decoded(value.replace("+", " ")).replace(" ", "_")


def as_component(op: str, value: str) -> str:
    """Return a query value as an edit of this kind writes it into the path."""
    return _component(_CONVERSIONS[op](value))


def written(edit: Edit, value: str) -> str:
    """Return the value of a query key, or a component, as a conversion of it leaves it."""
    converted = _conversion(edit)(value)
    return quote(converted, safe=_safe(edit.key)) if edit.key.name else _component(converted)


def _component(value: str) -> str:
    """Return a value as it is written into the path: ``..`` would take the folder with it, escaped once as well."""
    return value.replace(".", "%252E") if value in {".", ".."} else quote(value, safe=_IN_PATH)


def _safe(key: Key) -> str:
    """Return what stays as it is in the value of a query key; in one without a name a ``=`` would make it one."""
    return _IN_QUERY if key.name != UNNAMED else _IN_QUERY.replace("=", "")


_CONVERSIONS: Final[Mapping[str, Callable[[str], str]]] = {
    "copy": str,
    "lower": lambda value: "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in value),
    "upper": lambda value: "".join(chr(ord(c) - 32) if "a" <= c <= "z" else c for c in value),
    "encode": lambda value: quote(value, safe=""),
    "decode": _decoded,
    "underscore": _underscored,
}


def _write(key: Key, new: Reader, tokens: Mapping[Key, Tokens]) -> EditFunction:
    """Write a value to a query key, a component, a deep token of either, or the whole path."""
    found = _tokens_of(key, tokens)

    def write(url: Url) -> Applied:
        value = new(url)
        if value is None:
            return None
        if key.deep or key.deep_end:
            value = _with_deep(key, found, read_whole(url), value)
            if value is None:
                return None
        return _write_query(url, key, value) if key.name else _write_path(url, key, value)

    read_whole = read_key(Key(key.name, key.occurrence, key.start, key.end))
    return write


def _with_deep(key: Key, tokens: Tokens, whole: str | None, value: str) -> str | None:
    spans = None if whole is None else tokens(whole)
    at = spans and deep_index(key, len(spans))
    if whole is None or not spans or not at or len(whole) + len(value) > LONGEST:
        return None
    start, end = spans[at - 1]
    return whole[:start] + value + whole[end:]


def _write_query(url: Url, key: Key, value: str) -> Applied:
    if key.name.startswith(";"):
        return None
    value = quote(value, safe=_safe(key))
    index = parameter_index(key, url.query)
    if index >= 0:
        if (url.query[index][1] or "") == value:
            return None
        url.query[index] = (key.name, value)
        return Edited.CHANGED
    before = sum(name == key.name for name, _ in url.query)
    if before != key.occurrence - 1 or value == ANY_VALUE:
        return None
    url.query.append((key.name, value))
    return Edited.CHANGED


def _write_path(url: Url, key: Key, value: str) -> Applied:
    if not key.start and not key.end:
        parts = [quote(part, safe=_IN_PATH) for part in value.split("/")]
        if parts == url.path:
            return None
        url.path = parts
        return Edited.CHANGED
    value = _component(value)
    index = component_index(key, url)
    if index >= 0:
        if url.path[index] == value or (value == ANY_VALUE and not url.path[index]):
            return None
        url.path[index] = value
        return Edited.CHANGED
    if key.start == len(url.path) + 3 and not key.end:
        url.path.append(value)
        return Edited.CHANGED
    return None
