"""Rule: what a host's URLs may lose without losing content. A rule is data, never a regular expression.

Koppula et al. 2010, definitions 1 and 2. A URL is a function from keys to values; a rule has a context (conditions on
keys) and a transformation (edits of keys). It yields a *key*: a string that equals another URL's key when the rules say
that both show the same content. The key need not be a URL that exists.

How rules are applied to URLs, and how they are written as JSON, is in `rule_language`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final, Literal, Self

from clusterd_crawler.errors import RuleError

State = Literal["candidate", "live", "pinned", "retired"]
#: By what pages count as showing the same: equal main texts, the same words in any order, or but for numbers, or
#: near-duplicates.
Identity = Literal["identical", "words", "unnumbered", "near"]

#: States in which a rule is used.
LIVE: Final[frozenset[State]] = frozenset({"live", "pinned"})
#: Values of a condition that `Rule.text` shows.
SHOWN: Final = 4
#: Position of a path's first component: scheme and host stand before it.
FIRST_COMPONENT: Final = 3
_POSITION: Final = re.compile(r"k\((-|\d{1,4})(?:\.(\d{1,4}))?,(-|\d{1,4})(?:\.(\d{1,4}))?\)")
_QUERY: Final = re.compile(r"\?([^#]+)(?:#([1-9]\d{0,5})(?:\.(\d{1,4})(?:\.(\d{1,4}))?)?)?")


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """One component of a URL (definition 1). Query keys have a ``name``; the others a position.

    ``start`` is x, the position from the start (1 = scheme, 2 = host, 3 = first path component), ``end`` is y, the
    position from the end (1 = last path component); 0 stands for the paper's "-" (not fixed). ``deep`` and
    ``deep_end`` are i and j, the position of a deep token inside its component, 0 where the whole component is meant.
    A trailing slash is an empty last component. ``occurrence`` counts repeated query keys from 1; a key named
    ``;jsessionid`` is a parameter inside a path component, one named ``=`` what has no name in the query
    (`urls.UNNAMED`). With nothing fixed it is the path as a whole.

    Written ``k(3,-)``, ``k(-,1)``, ``k(3.1,1.3)``; a query key ``?sid``, ``?sid#2``, its first deep token ``?sid#1.1``
    (and ``?sid#1.1.3`` where the position from the end counts too).
    """

    name: str = ""
    occurrence: int = 1
    start: int = 0
    end: int = 0
    deep: int = 0
    deep_end: int = 0

    def __str__(self) -> str:
        if self.name:
            deep = f".{self.deep}" + (f".{self.deep_end}" if self.deep_end else "")
            if self.deep or self.deep_end:
                return f"?{self.name}#{self.occurrence}{deep}"
            return f"?{self.name}" if self.occurrence == 1 else f"?{self.name}#{self.occurrence}"
        start = f"{self.start or '-'}" + (f".{self.deep}" if self.deep else "")
        end = f"{self.end or '-'}" + (f".{self.deep_end}" if self.deep_end else "")
        return f"k({start},{end})"

    @property
    def index(self) -> int:
        """The place of a path component that is counted from the start, among all of them from 0."""
        return self.start - FIRST_COMPONENT

    @property
    def is_of_path(self) -> bool:
        """Whether it is a component of the path."""
        return self.start >= FIRST_COMPONENT or self.end > 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a key as it is written.

        >>> Key.parse("k(3.1,1.3)"), str(Key.parse("?sid#2"))
        (Key(name='', occurrence=1, start=3, end=1, deep=1, deep_end=3), '?sid#2')
        """
        if match := _POSITION.fullmatch(text):
            start, deep, end, deep_end = (0 if part in {None, "-"} else int(part) for part in match.groups())
            return cls(start=start, end=end, deep=deep, deep_end=deep_end)
        if match := _QUERY.fullmatch(text):
            return cls(match[1], int(match[2] or 1), deep=int(match[3] or 0), deep_end=int(match[4] or 0))
        raise RuleError(f"{text!r} is not a key; keys are written k(3,-), k(-,1), k(3.1,1.3), ?sid or ?sid#2")


def component(at: int, *, deep: int = 0) -> Key:
    """Return the key of a path component, counted from 0, or of one of its deep tokens.

    >>> str(component(0)), str(component(1, deep=2))
    ('k(3,-)', 'k(4.2,-)')
    """
    return Key(start=FIRST_COMPONENT + at, deep=deep)


#: The keys that are a URL's site.
SCHEME: Final = Key(start=1)
HOST: Final = Key(start=2)


@dataclass(frozen=True, slots=True)
class Condition:
    """A test on one key.

    ``is``: equals ``values[0]``; ``in``: one of ``values``; ``any``: present, whatever its value (the paper's ``*``);
    ``some``: present, and not empty, as the last component of ``/a/`` is; ``absent``: not there (bottom); ``like``:
    matches the deep-token pattern ``values[0]``, in which ``*`` matches any string (``friends-*``) and ``#`` a decimal
    number, or the ``*`` of a key in its place (``thread-#-#.html``), and which defines the component's deep tokens for
    keys with ``deep`` set; ``numbered``: ends with the delimiter ``values[0]``, a decimal number (of ``values[2]``
    digits or more, where that is given) and the ending ``values[1]`` (``title-12.html``), which are deep tokens 2 to 4
    of the component, what stands before them 1; ``depth``: the URL has as many path components as one of ``values``
    says; ``within``: absent, or one of ``values``; ``only``: neither query nor path has a parameter but those in
    ``values`` (the key of the condition does not matter).
    """

    key: Key
    test: Literal["is", "in", "any", "some", "absent", "like", "numbered", "depth", "within", "only"]
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.test == "depth":
            return f"{' or '.join(self.values)} path components"
        if self.test == "only":
            return "only " + (", ".join(f"?{name}" for name in self.values) or "a path")
        shown = ", ".join(map(repr, self.values[:SHOWN]))
        if len(self.values) > SHOWN:
            shown += f", … ({len(self.values)} values)"
        return f"{self.key} {self.test} {shown}".rstrip()


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one key.

    ``delete``: the component goes; ``set``: becomes ``value`` (a ``*`` in it is a placeholder of the key only);
    ``copy``: takes the value of ``source`` (a deep token: where it has a text; else the rule does not hold); ``lower``,
    ``upper``, ``encode``, ``decode``, ``underscore`` (decoded, with spaces written ``_``), ``spaces`` (with ``+`` and
    ``%20`` written ``value``, which is ``_`` or ``%20``, and nothing decoded), ``items`` (with what ``value`` separates
    in order; where that is ``&``, the values of all query keys of this name, or in place of ``f[0]`` of any ``f[1]``),
    ``without`` (less the last ``value`` in it): the value of ``source`` (of the key itself where None) converted;
    ``rename``: the query key is called ``value``, unless there is such a key; ``keep``: of the query, only the keys
    named in ``names`` stay; ``sort``: the order of query keys does not matter, nor that of the parameters of a path
    component; ``family``: every URL of the context shows what others have shown, mostly one page.
    """

    key: Key
    op: Literal[
        "delete",
        "set",
        "copy",
        "lower",
        "upper",
        "encode",
        "decode",
        "underscore",
        "spaces",
        "items",
        "without",
        "rename",
        "keep",
        "sort",
        "family",
    ]
    value: str = ""
    source: Key | None = None
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.op == "family":
            return "nothing new"
        if self.op == "sort":
            return "sort the parameters"
        if self.op == "keep":
            return "of the query keep " + (", ".join(self.names) or "nothing")
        if self.op == "set":
            return f"set {self.key} to {self.value!r}"
        if self.op == "items":
            return f"sort what {self.value!r} separates in {self.key}"
        if self.op == "rename":
            return f"call {self.key} {self.value!r}"
        if self.op == "without":
            return f"take {self.value!r} out of {self.key}"
        said = f"write spaces as {self.value!r} in" if self.op == "spaces" else self.op
        return f"{said} {self.key}" + (f" from {self.source}" if self.source is not None else "")


@dataclass(frozen=True, slots=True)
class Rule:
    """A learned rule with what is known about it (fields of ``clusterd rules list`` in the interface)."""

    #: Stable: a hash of what it says (`rule_id`).
    id: str
    #: Host as it stands in URLs (with a port that is not the scheme's), or a registrable domain where ``spans``.
    host: str
    context: tuple[Condition, ...]
    transformation: tuple[Edit, ...]
    #: ``url``: a function of the URL. ``name``: the known page calls itself so (`names`), ``name`` says which kind.
    kind: Literal["url", "name"] = "url"
    name: str = ""
    #: Of a name rule: what the URL of the known page that bears the name looks like.
    carrier: tuple[Condition, ...] = ()
    #: Where not 0, the identity that the known page has to show: an empty list stays empty however it is sorted.
    shows: int = 0
    #: Where not empty, the crawl whose fetches it speaks of: the next one has fetched nothing of that yet.
    crawl: str = ""
    spans: bool = False
    #: Which identity pages were judged by.
    identity: Identity = "identical"
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

    @property
    def text(self) -> str:
        """The rule in one line, for people."""
        context = " and ".join(map(str, self.context)) or "any URL"
        where = f"{'*.' if self.spans else ''}{self.host}"
        if self.kind == "name":
            bearer = " and ".join(map(str, self.carrier)) or "any page"
            return f"{where}: {context} → known where {bearer} names it by {self.name}"
        shown = f" where the known page shows {self.shows:x}" if self.shows else ""
        crawl = f" in the crawl {self.crawl}" if self.crawl else ""
        return f"{where}: {context} → {', '.join(map(str, self.transformation))}{shown}{crawl}"

    @property
    def said(self) -> tuple[object, ...]:
        """All that the rule says of URLs: what two of one id differ in where one was changed by hand."""
        of_urls = (self.host, self.spans, self.kind, self.context, self.transformation, self.name, self.carrier)
        return (*of_urls, self.shows, self.crawl, self.identity)

    @property
    def made_id(self) -> str:
        """The id that a rule which says this is given where it is learned."""
        return rule_id(
            self.host,
            self.context,
            self.transformation,
            name=self.name,
            carrier=self.carrier,
            identity=self.identity,
            shows=self.shows,
            crawl=self.crawl,
        )


def rule_id(
    host: str,
    context: tuple[Condition, ...],
    transformation: tuple[Edit, ...],
    *,
    name: str = "",
    carrier: tuple[Condition, ...] = (),
    identity: str = "identical",
    shows: int = 0,
    crawl: str = "",
) -> str:
    """Return the stable id of a rule: a hash of what it says, not of what is known about it."""
    said = repr(
        (
            host,
            context,
            transformation,
            name,
            carrier,
            identity,
            *([shows] if shows else []),
            *([crawl] if crawl else []),
        )
    )
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


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

    @property
    def led_to(self) -> frozenset[str]:
        """Return the hosts that its rules put in the place of their mirrors: keys go on by the rules of these."""
        edits = (edit for rule in self.rules if rule.spans for edit in rule.transformation)
        return frozenset(edit.value for edit in edits if edit.op == "set" and edit.key == HOST)

    def within(self, crawl: str | None) -> Self:
        """Return the set without the rules that speak of another crawl (None: with all)."""
        return self if crawl is None else replace(self, rules=tuple(r for r in self.rules if r.crawl in {"", crawl}))
