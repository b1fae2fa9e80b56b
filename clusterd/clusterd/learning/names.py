"""Which names are believed: what a page calls itself, against what the URL so named showed when it was fetched.

A *coincidence* is a fetched URL and a fetched page that bears a name which means that URL: its canonical, shortlink or
og:url is the URL, or one of its anchors is the value of one of the URL's parameters. It is right where both show one
content. Coincidences are counted by kind of name, form of the URL, and form of the bearing page; a form is the path
with the names of the query keys, or for a URL without a query its depth and the ending of its last component. Taken all
together names lie (on one blog a third of them); by form the true ones separate cleanly. Believed is what was right
`RIGHT` times at a share of `TRUE`; with a kind of name that all forms of bearers together make believed, every form is
that was right so far about several URLs. (Where every page has a path of its own, ``/slug?ref=…`` is a form of one
page: as many rules as pages, each of which says what is known.) Of more than `RULES` the first to be found stay.

Where each topic of a forum has a path of its own, no form of ``/board/topic/?post=N`` ever has the record that
``viewtopic.php?p=N`` has. So what an anchor is right about is counted a second time by wide forms: of URLs with such
query keys, and of bearers, on paths of that depth and ending. These are believed by the same bound, if what they were
right about lies on `PATHS` paths, and in the folders that all of these have in common.

A number that stands for an address, as ``/?p=7`` for ``/slug/``, is the site's own table, and a few coincidences tell.
All other names speak of parameters with values never seen, as a deletion of them would, and have to earn the same
bound (`OPEN_BOUND`): of a forum's canonicals without ``f`` one in twelve was wrong, since pages show who is online, and
15 clean ones come before the first of these in 28 % of orders.

Cost: a few look-ups a name when a page is observed; tables are bounded by `TABLE`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from clusterd_crawler.names import anchor_hash
from clusterd_crawler.rules import Condition, Identity, Key, Rule, component, rule_id
from clusterd_crawler.sketch import Name
from clusterd_crawler.skipping.bearers import witnessed
from clusterd_crawler.urls import Url, hash_of, parse

from clusterd.learning.pointers import Pointer, pointers
from clusterd.learning.trials.agreement import lower_bound
from clusterd.learning.trials.bounds import OPEN_BOUND, SMALL

#: Contents that a number has to be right about that stands for an address (other names: 52, by `OPEN_BOUND`) …
RIGHT: Final = 15
#: … and the share of coincidences that have to be right.
TRUE: Final = 0.98
#: Paths on which names have to be right that are believed of paths with values never seen.
PATHS: Final = 15
#: How often one content counts, of which several names were right: the posts of one topic.
TIMES: Final = 2
#: As many as the bound asks for: enough on a host that is not small, where a later page that differs is counted too.
MANY: Final = 52
#: Most names and URLs of a host that are remembered.
TABLE: Final = 1_000_000
#: Most pairs of forms of which coincidences are counted (about .5 kB each): where each page has a form of its own they
#: would be as many as coincidences. Of more, forms are believed by their own record alone.
RECORDS: Final = 100_000
#: Most pages remembered for one name.
BEARERS: Final = 8
#: Most rules of a host: every URL of the host is compared with each of them.
RULES: Final = 64
#: Most coincidences kept as a rule's evidence, of each kind.
PAIRS: Final = 6


class Form(NamedTuple):
    """What kind of URL it is: the path, or (``depth`` not 0) its depth and ending, and the query's names."""

    path: str
    names: tuple[str, ...]
    depth: int = 0

    def conditions(self) -> tuple[Condition, ...]:
        """Return the form as a rule's context."""
        present = tuple(Condition(Key(name=name), "any") for name in self.names)
        only = Condition(Key(), "only", self.names)
        if self.depth:
            ending = Condition(Key(end=1), "like", (self.path,))
            return (*present, ending, Condition(Key(), "depth", (str(self.depth),)), only)
        return (*present, Condition(Key(), "is", (self.path,)), only)


def form_of(url: Url) -> Form:
    """Return the form of a URL: without a query the wide one."""
    return Form("/".join(url.path), _names(url)) if url.query else wide_form_of(url)


def wide_form_of(url: Url) -> Form:
    """Return the form of a URL that is one of many such paths."""
    last = url.path[-1]
    stem, dot, ending = last.rpartition(".")
    named = last if stem == "index" or not last else f"*{dot}{ending}" if dot else "*"
    if "*" in ending:  # in a pattern it would stand for whatever there is
        named = "*"
    return Form(named, _names(url), len(url.path))


def _names(url: Url) -> tuple[str, ...]:
    """Return the names of the parameters, of those in the path, too: a rule may hold beside no others (``only``)."""
    return tuple(sorted({*(name for name, _ in url.query), *(name for _, name, _ in url.matrix or ())}))


@dataclass(slots=True)
class Record:
    """Coincidences of one kind of name, form of URL and form of bearer."""

    #: Content → how often the name was right about it.
    right: Counter[int] = field(default_factory=Counter)
    wrong: int = 0
    #: The first URL that a name was right about, and whether there are others.
    first: str = ""
    several: bool = False
    pairs: list[tuple[str, str, bool]] = field(default_factory=list)

    def note(self, url: str, bearer: str, content: int, agreed: bool) -> None:
        """Count one coincidence."""
        if agreed:
            self.right[content] += 1
            self.first = self.first or url
            self.several |= url != self.first
        else:
            self.wrong += 1
        if sum(pair[2] is agreed for pair in self.pairs) < PAIRS:
            self.pairs.append((bearer, url, agreed))

    def forget(self, url: str, bearer: str, content: int, agreed: bool) -> None:
        """Count one coincidence no more."""
        if not agreed:
            self.wrong = max(0, self.wrong - 1)
        elif self.right[content] > 1:
            self.right[content] -= 1
        else:
            del self.right[content]
            if not self.right:
                self.first, self.several = "", False
        self.pairs = [pair for pair in self.pairs if pair != (bearer, url, agreed)]


#: The components of a path; and those that several paths have in common, None where two differ.
Path = tuple[str, ...]
Shared = tuple[str | None, ...]


@dataclass(slots=True)
class WideRecord(Record):
    """Coincidences of wide forms, on paths of one depth."""

    #: Paths of URLs that a name was right about, `PATHS` at most.
    paths: set[Path] = field(default_factory=set)
    #: What the paths of all these have in common, and those of the bearers.
    shared: Shared = ()
    borne_in: Shared = ()

    def note_paths(self, path: Path, bearer: Path) -> None:
        """Take the paths of a URL and of a bearer that was right about it."""
        if len(self.paths) < PATHS:
            self.paths.add(path)
        self.shared, self.borne_in = _common(self.shared, path), _common(self.borne_in, bearer)


def _common(before: Shared, path: Path) -> Shared:
    return tuple(one if one == other else None for one, other in zip(before or path, path, strict=True))


def _folders(shared: Shared) -> tuple[Condition, ...]:
    """Return the condition that each component but the last is what all paths have there."""
    return tuple(Condition(component(at), "is", (part,)) for at, part in enumerate(shared[:-1]) if part is not None)


class NamedPage(NamedTuple):
    """A fetched page, as a bearer of names or as what they mean."""

    url: str
    content: int
    form: Form
    wide: Form
    path: Path
    crawl: str
    #: Kind and hash of those of its names that it is a witness for.
    names: tuple[tuple[str, int], ...] = ()


#: Kind and hash of a name → pages that bear it, or that it may mean, each with the number by which it does (or None).
Table = dict[tuple[str, int], list[tuple[Pointer | None, NamedPage]]]
AnyRecord = TypeVar("AnyRecord", bound=Record)
#: Kind of name, the number that points to an anchor (else None), form of the URL, form of the bearer.
RecordKey = tuple[str, Pointer | None, Form, Form]


class Believed(NamedTuple):
    """A kind of name that pages of the carrier's form are believed to bear for URLs of the context's form."""

    #: Whether the form has a record of its own that suffices.
    alone: bool
    kind: str
    context: tuple[Condition, ...]
    carrier: tuple[Condition, ...]
    right: int
    wrong: int
    pairs: list[tuple[str, str, bool]]

    def rule(self, host: str, identity: Identity, at: int) -> Rule:
        """Return the rule that says so."""
        tried = self.right + self.wrong
        return Rule(
            id=rule_id(host, self.context, (), name=self.kind, carrier=self.carrier, identity=identity),
            host=host,
            context=self.context,
            transformation=(),
            kind="name",
            name=self.kind,
            carrier=self.carrier,
            identity=identity,
            support=self.right,
            coverage=tried,
            precision=round(self.right / tried, 4),
            lower_bound=round(lower_bound(self.right, tried), 4),
            since=at,
            evidence=tuple(sorted(self.pairs, key=lambda pair: pair[2])),
        )


class NameEvidence:
    """The coincidences of one host."""

    def __init__(self) -> None:
        self._bearers: Table = {}
        self._meant: Table = {}
        self.records: dict[RecordKey, Record] = {}
        self._wide: dict[RecordKey, WideRecord] = {}
        self._pages = 0

    def observe(self, url: str, content: int, names: Iterable[Name], taken: Url, crawl: str = "") -> None:
        """Take a page that a crawl fetched (its URL canonical, and taken apart)."""
        witness = tuple((name.kind, name.hash) for name in witnessed(url, names)) if names else ()
        page = NamedPage(url, content, form_of(taken), wide_form_of(taken), tuple(taken.path), crawl, witness)
        self._pages += 1
        for name in page.names:
            for key, meant in self._meant.get(_table(*name), ()):
                self._coincide(name[0], key, meant, page)
            _remember(self._bearers, name, None, page)
        for key, hashed in _meanings(url, taken):
            for kind, bearer in self._bearing(key, hashed):
                self._coincide(kind, key, page, bearer)
            _remember(self._meant, ("anchor" if key else "", hashed), key, page)

    def _bearing(self, key: Pointer | None, hashed: int) -> Iterator[tuple[str, NamedPage]]:
        """Yield the pages that bear a name of this hash, each with the kind of name."""
        for kind in (("anchor",) if key else ("canonical", "shortlink", "og")) if self._bearers else ():
            yield from ((kind, bearer) for _, bearer in self._bearers.get((kind, hashed), ()))

    def take_back(self, url: str, crawl: str) -> None:
        """Let a page (its URL canonical) say nothing more, if this crawl was the last to fetch it."""
        known = (page for _, page in self._meant.get(("", hash_of(url)), ()))
        page = next((page for page in known if (page.url, page.crawl) == (url, crawl)), None)
        if page is None:
            return
        self._pages -= 1
        for name in page.names:
            _forget(self._bearers, name, page)
            for key, meant in self._meant.get(_table(*name), ()):
                self._uncount(name[0], key, meant, page)
        for key, hashed in _meanings(url, parse(url)):
            _forget(self._meant, ("anchor" if key else "", hashed), page)
            for kind, bearer in self._bearing(key, hashed):
                self._uncount(kind, key, page, bearer)

    def _uncount(self, kind: str, key: Pointer | None, meant: NamedPage, bearer: NamedPage) -> None:
        """Count a coincidence no more of which a page was taken back."""
        if meant.url == bearer.url or meant.crawl != bearer.crawl:
            return
        keys = ((kind, key, meant.form, bearer.form), (kind, key, meant.wide, bearer.wide))
        for record in (self.records.get(keys[0]), self._wide.get(keys[1])):
            if record is not None:
                record.forget(meant.url, bearer.url, meant.content, meant.content == bearer.content)

    def _coincide(self, kind: str, key: Pointer | None, meant: NamedPage, bearer: NamedPage) -> None:
        # Of two crawls the later one may find both pages changed, and have fetched one of them (`crawls`).
        if meant.url == bearer.url or meant.crawl != bearer.crawl:
            return
        agreed = meant.content == bearer.content
        if key is None or key.name:
            record = _record_of(self.records, (kind, key, meant.form, bearer.form), Record)
            if record is not None:
                record.note(meant.url, bearer.url, meant.content, agreed)
        wide = None
        if kind == "anchor":
            wide = _record_of(self._wide, (kind, key, meant.wide, bearer.wide), WideRecord)
        if wide is not None:
            wide.note(meant.url, bearer.url, meant.content, agreed)
            if agreed:
                wide.note_paths(meant.path, bearer.path)

    def rules(self, host: str, identity: Identity, at: int) -> Iterator[Rule]:
        """Yield the name rules that the coincidences bear out, at most `RULES`: those of wide forms first, then those
        with a record of their own.

        The order is that in which the forms were found, so that no rule gives way to a later one of its kind.
        """
        found = [*self._widely_borne_out(), *sorted(self._borne_out(), key=lambda believed: not believed.alone)]
        yield from (believed.rule(host, identity, at) for believed in found[:RULES])

    def _borne_out(self) -> Iterator[Believed]:
        together: dict[tuple[str, Pointer | None, Form, bool], list[tuple[Form, Record]]] = {}
        for (kind, key, form, bearer), record in self.records.items():
            numbered = not key and bool(form.names) is not bool(bearer.names)
            together.setdefault((kind, key, form, numbered), []).append((bearer, record))
        for (kind, key, form, numbered), records in together.items():
            contents: Counter[int] = Counter()
            for _, record in records:
                contents.update(record.right)
            right = self._units(contents)
            wrong = sum(record.wrong for _, record in records)
            fewest = RIGHT if numbered else 0
            together_believed = len(self.records) < RECORDS and self._believed(right, wrong, fewest)
            for bearer, record in records:
                units = self._units(record.right)
                alone = self._believed(units, record.wrong)
                if alone or (together_believed and record.several and not record.wrong):
                    counts = (units, record.wrong) if alone else (right, wrong)
                    yield Believed(alone, kind, _context(key, form), bearer.conditions(), *counts, record.pairs)

    def _widely_borne_out(self) -> Iterator[Believed]:
        for (kind, key, form, bearer), record in self._wide.items():
            units = self._units(record.right)
            if len(record.paths) == PATHS and self._believed(units, record.wrong):
                context = _context(key, form) + _folders(record.shared)
                carrier = bearer.conditions() + _folders(record.borne_in)
                yield Believed(True, kind, context, carrier, units, record.wrong, record.pairs)

    def _believed(self, right: int, wrong: int, fewest: int = 0) -> bool:
        """Whether so many coincidences make a kind of name believed: ``fewest``, or (0) what the bound asks for."""
        if right < TRUE * (right + wrong):
            return False
        if not fewest and self._pages < SMALL:
            return lower_bound(right, right + wrong) >= OPEN_BOUND
        return right >= (fewest or MANY)

    def _units(self, right: Counter[int]) -> int:
        """Count what was right: a content once, or up to `TIMES` times on hosts that are not small.

        That several posts lead to one topic is as many trials; of a few topics, the one that changes weighs too much.
        """
        return sum(min(times, TIMES if self._pages >= SMALL else 1) for times in right.values())


def _record_of(records: dict[RecordKey, AnyRecord], key: RecordKey, make: Callable[[], AnyRecord]) -> AnyRecord | None:
    """Return the record of two forms; None where there are too many for another one."""
    known = records.get(key)
    if known is None and len(records) < RECORDS:
        known = records[key] = make()
    return known


def _context(key: Pointer | None, form: Form) -> tuple[Condition, ...]:
    return tuple(dict.fromkeys((*(key.conditions() if key else ()), *form.conditions())))


def _remember(table: Table, name: tuple[str, int], key: Pointer | None, page: NamedPage) -> None:
    """Note a page, in the place of its earlier fetch, or, where the table has no room, of an earlier crawl's page."""
    known = table.get(name)
    if known is None:
        if len(table) < TABLE:
            table[name] = [(key, page)]
        return
    again = (at for at, (other, before) in enumerate(known) if (other, before.url) == (key, page.url))
    stale = (at for at, (_, before) in enumerate(known) if before.crawl != page.crawl)
    at = next(again, None)
    if at is None and len(known) < BEARERS:
        known.append((key, page))
    elif at is not None or (at := next(stale, None)) is not None:
        known[at] = key, page


def _forget(table: Table, name: tuple[str, int], page: NamedPage) -> None:
    """Drop a page that was noted under a name."""
    left = [entry for entry in table.get(name, ()) if entry[1] is not page]
    if left:
        table[name] = left
    else:
        table.pop(name, None)


def _table(kind: str, hashed: int) -> tuple[str, int]:
    return ("anchor" if kind == "anchor" else "", hashed)


def _meanings(url: str, taken: Url) -> Iterator[tuple[Pointer | None, int]]:
    """Yield what names may mean this URL: itself, and the numbers in it that anchors may have."""
    yield None, hash_of(url)
    for pointer, digits in pointers(taken):
        yield pointer, anchor_hash(digits)
