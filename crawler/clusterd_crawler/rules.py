"""Rule: what a host's URLs may lose without losing content. A rule is data, never a regular expression.

Koppula et al. 2010, definitions 1 and 2. A URL is a function from keys to values; a rule has a context (conditions on
keys) and a transformation (edits of keys). It yields a *key*: a string that equals another URL's key when the rules say
that both show the same content. The key need not be a URL that exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["candidate", "live", "pinned", "retired"]


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """One component of a URL (definition 1). Query keys have a ``name``; the others a position.

    ``start`` is x, the position from the start (1 = scheme, 2 = host, 3 = first path component), ``end`` is y, the
    position from the end (1 = last path component); 0 stands for the paper's "-" (not fixed). ``deep`` and
    ``deep_end`` are i and j, the position of a deep token inside its component, 0 where the whole component is meant.
    A trailing slash is an empty last component. ``occurrence`` counts repeated query keys from 1.

    Written ``k(3,-)``, ``k(-,1)``, ``k(3.1,1.3)``; a query key ``?sid``, ``?sid#2``.
    """

    name: str = ""
    occurrence: int = 1
    start: int = 0
    end: int = 0
    deep: int = 0
    deep_end: int = 0


@dataclass(frozen=True, slots=True)
class Condition:
    """A test on one key.

    ``is``: equals ``values[0]``; ``in``: one of ``values``; ``any``: present, whatever its value (the paper's ``*``);
    ``absent``: not there (bottom); ``like``: matches the deep-token pattern ``values[0]``, in which ``*`` matches any
    string (``friends-*``), and which defines the component's deep tokens for keys with ``deep`` set;
    ``depth``: the URL has ``values[0]`` path components.
    """

    key: Key
    test: Literal["is", "in", "any", "absent", "like", "depth"]
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one key.

    ``delete``: the component goes; ``set``: becomes ``value`` (a ``*`` in it is a placeholder of the key only);
    ``copy``: takes the value of ``source``; ``lower``, ``upper``, ``encode``, ``decode``: the value of ``source`` (of
    the key itself where None) converted; ``keep``: of the query, only the keys named in ``names`` stay; ``sort``: the order
    of query keys does not matter; ``family``: every URL of the context is one page.
    """

    key: Key
    op: Literal["delete", "set", "copy", "lower", "upper", "encode", "decode", "keep", "sort", "family"]
    value: str = ""
    source: Key | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A learned rule with what is known about it (fields of ``clusterd rules list`` in the interface)."""

    #: Stable: a hash of host, context and transformation.
    id: str
    #: Host as it stands in URLs (with a port that is not the scheme's), or a registrable domain where ``spans``.
    host: str
    context: tuple[Condition, ...]
    transformation: tuple[Edit, ...]
    #: ``url``: a function of the URL. ``name``: the known page calls itself so (`names`), ``name`` says which kind.
    kind: Literal["url", "name"] = "url"
    name: str = ""
    spans: bool = False
    #: Which identity pages were judged by.
    identity: Literal["identical", "near"] = "identical"
    #: Pages that agreed; URLs that the rule applies to; agreed ÷ tried, and its one-sided 95 % lower bound.
    support: int = 0
    coverage: int = 0
    precision: float = 0.0
    lower_bound: float = 0.0
    state: State = "live"
    #: Unix time in milliseconds when the state was entered.
    since: int = 0
    #: Pairs of URLs that agreed, or did not: (a, b, agreed).
    evidence: tuple[tuple[str, str, bool], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A host's live rules, as published on `topics.RULES`: version rises with every change; no rules = all retired."""

    host: str
    version: int
    rules: tuple[Rule, ...]
    #: Ids retired since the version before, with the reason; the crawl queues what they kept out again.
    retired: tuple[tuple[str, str], ...] = ()
    #: URLs that the operator wants fetched whatever the rules say (``clusterd unskip``).
    unskip: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that is published."""
        raise NotImplementedError
