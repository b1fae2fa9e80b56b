"""Which edits are worth judging: those that would take away what pages of one content differ in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Final, cast

from clusterd.learning.differences import COMPARED, PROPOSED, Difference, differences, duplicates
from clusterd.learning.edits.aliases import aliases, renamed, renamed_page, without_part
from clusterd.learning.edits.both import BothAtIndex, BothThere
from clusterd.learning.edits.deep import cuts, other_ending, without_ending, without_infix
from clusterd.learning.edits.edit import Blank, CandidateEdit, Drop, DropUnordered, PathEdit, Replace
from clusterd.learning.edits.fixed_values import FixedPairs, fixed_edits
from clusterd.learning.edits.item_orders import item_orders, item_orders_in_paths
from clusterd.learning.edits.path_ends import index_page, last_component, last_slash, lower_case
from clusterd.learning.edits.path_fields import path_fields
from clusterd.learning.edits.path_pairs import path_pairs
from clusterd.learning.edits.path_references import path_references
from clusterd.learning.edits.path_titles import path_titles
from clusterd.learning.edits.path_values import path_values
from clusterd.learning.edits.proposing import ValuePair, differing_paths
from clusterd.learning.edits.references import Plans, compared, references
from clusterd.learning.edits.repeated import repeated
from clusterd.learning.edits.spellings import (
    cases,
    decoded,
    escapes_in_path,
    form_spaces,
    spaces_in_path,
    wiki_spaces,
)
from clusterd.learning.edits.synonyms import synonyms
from clusterd.learning.evidence.arrays import Rows
from clusterd.learning.evidence.columns import VALUELESS
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.trials.pooled import pools

#: Most candidates judged at a time.
CANDIDATES: Final = 80
#: Candidates besides, of the kinds that have the fewest among these.
ADDED: Final = 16
#: Most deletions that are looked at where they are but a step to something else.
DELETIONS: Final = 12
#: Clean trials that a kind of edit brings along: that order and spelling do not matter is what RFC 3986 and every
#: framework's query parser suggest; dropping something has to earn all of it.
PRIORS: Final = {"order": 17, "decode": 14, "escapes": 14, "form": 14, "index": 5, "slash": 5}

#: A candidate edit, with the clean trials that its kind brings along.
Candidate = tuple[CandidateEdit, int]


def proposals(snapshot: Snapshot) -> tuple[list[Candidate], list[Candidate]]:
    """Return the deletions of all parameters that together do not matter, and the others, the best supported first."""
    clusters = list(duplicates(snapshot))
    counted = differences(snapshot, clusters)
    found = [*_of_differences(snapshot, counted), *_of_pages(snapshot, clusters, counted)]
    pooled = _pools(snapshot, counted)
    return pooled, fairly([offer for offer in found if offer not in pooled], CANDIDATES - len(pooled))


def deletions(snapshot: Snapshot) -> list[Candidate]:
    """Return the best supported deletions among the proposals, also of pages whose parameters have another order."""
    counted = differences(snapshot, list(duplicates(snapshot)))
    found = (offer for offer in _of_differences(snapshot, counted) if isinstance(offer[0], Drop))
    return list(islice(dict.fromkeys(chain(_pools(snapshot, counted), found)), DELETIONS))


def _of_differences(snapshot: Snapshot, counted: Counter[Difference]) -> Iterator[Candidate]:
    """Yield the edits that take away what pages differ in, the best supported first, and the joint deletions."""
    names: list[tuple[ColumnKey, ...]] = []
    for (kind, what), support in sorted(counted.items(), key=lambda item: (-item[1], repr(item[0]))):
        if kind != "order" and support < (2 if kind in PRIORS else PROPOSED):
            continue
        if kind == "query":
            names.append(what)
        if kind == "value":
            yield from ((edit, 0) for edit in _replacements(snapshot, *what))
        elif kind in EDITS:
            yield EDITS[kind](*what), PRIORS.get(kind, 0)
    yield from ((Drop(keys), 0) for keys in joint(names))


def _of_pages(snapshot: Snapshot, clusters: list[Rows], counted: Counter[Difference]) -> Iterator[Candidate]:
    """Yield the edits that are found by the pages of one content, each kind in its own way."""
    elsewhere = [rows for rows in clusters if (snapshot.path[rows] != snapshot.path[rows[0]]).any()]
    differing = differing_paths(snapshot, elsewhere)
    plans = Plans(snapshot)
    compared_pages = [list(compared(snapshot, rows, plans)) for rows in clusters]
    values: list[ValuePair] = [(*what, count) for (kind, what), count in counted.items() if kind == "value"]
    edits: Iterable[CandidateEdit] = chain(
        _fixed(snapshot, counted),
        aliases(differing),
        references(snapshot, compared_pages),
        path_references(snapshot, clusters),
        path_values(snapshot, elsewhere),
        synonyms(snapshot, compared_pages),
        path_titles(snapshot, differing),
        path_pairs(differing),
        path_fields(differing),
        item_orders_in_paths(differing),
        item_orders(snapshot, values),
        cases(snapshot, values),
        wiki_spaces(snapshot, values),
        repeated(snapshot),
    )
    yield from ((edit, 0) for edit in edits)
    yield from ((spelling, PRIORS["form"]) for spelling in form_spaces(snapshot))
    yield from ((decoded(key), PRIORS["decode"]) for key in _escaped(snapshot))
    yield from ((cut, 0) for cut in cuts(snapshot, values))


def fairly(offers: list[Candidate], room: int) -> list[Candidate]:
    """Return the first offers, and of those that there is no room for the best of each kind of edit in turn."""
    kinds: Counter[type] = Counter()
    ranks: list[tuple[int, int]] = []
    for place, (edit, _) in enumerate(offers):
        ranks.append((kinds[type(edit)], place))
        kinds[type(edit)] += 1
    added = sorted(place for _, place in sorted(ranks[room:])[:ADDED])
    return offers[:room] + [offers[place] for place in added]


def _pools(snapshot: Snapshot, counted: Counter[Difference]) -> list[Candidate]:
    """Return the deletions of all parameters that together do not matter, where there are several."""
    differing: Counter[ColumnKey] = Counter()
    unordered = False
    for (kind, what), support in counted.items():
        if kind in {"query", "unordered"}:
            unordered |= kind == "unordered"
            for key in what:
                differing[key] += support
    found = pools(snapshot, Counter({key: count for key, count in differing.items() if count >= PROPOSED}))
    return [(DropUnordered(keys) if unordered else Drop(keys), 0) for keys in found]


def _replacements(snapshot: Snapshot, key: ColumnKey, first: int, second: int) -> list[CandidateEdit]:
    """Return the edit that writes one of two values as the other: always in one direction, so that rules stay."""
    texts = snapshot.columns[key].column
    first, second = sorted((first, second), key=texts.text)
    kept, gone = texts.text(first), texts.text(second)
    if VALUELESS in {kept, gone}:
        return []
    return [Replace((key,), second, gone, kept)]


def joint(names: list[tuple[ColumnKey, ...]]) -> list[tuple[ColumnKey, ...]]:
    """Return sets of parameters to drop together that were not seen so: unions of those seen, where they overlap."""
    found: dict[tuple[ColumnKey, ...], None] = {}
    for first in names[:12]:
        for second in names[:12]:
            union = tuple(sorted({*first, *second}))
            if len(union) <= 6 and set(first) & set(second) and union not in names:
                found[union] = None
    return list(found)


def _fixed(snapshot: Snapshot, counted: Counter[Difference]) -> Iterator[CandidateEdit]:
    """Yield the edits of parameters at stated values."""
    fixed: Counter[tuple[str, FixedPairs]] = Counter()
    for (kind, what), support in counted.items():
        if kind == "fixed":
            fixed[what[0], what[1]] = support
    index = {name: index_page(name) for name, _ in fixed if name}
    return fixed_edits(snapshot, fixed, index)


def _escaped(snapshot: Snapshot) -> list[ColumnKey]:
    return [
        key
        for key, column in snapshot.columns.items()
        if len(column.column.numbers) <= COMPARED * 10
        and not key[0].startswith(";")
        and any("%" in text for text in column.column.numbers)
    ]


#: By the kind of a difference the edit that takes it away, made of what differs.
EDITS: Final[dict[str, Callable[..., CandidateEdit]]] = {
    "order": lambda: DropUnordered(()),
    "query": lambda *names: Drop(names),
    "unordered": lambda *names: DropUnordered(names),
    "index and query": lambda name, *names: BothAtIndex(index_page(name), Drop(names)),
    "values": lambda *names: Blank(names),
    "case": lower_case,
    "slash": last_slash,
    "index": index_page,
    "last": last_component,
    "part": without_part,
    "ending": without_ending,
    "infix": without_infix,
    "other ending": other_ending,
    "spaces": spaces_in_path,
    "escapes": escapes_in_path,
    "swap": lambda kept, gone: renamed(gone, kept),
    "page": lambda kept, gone: renamed_page(gone, kept),
    "both": lambda kind, what, names: BothThere(cast(PathEdit, EDITS[kind](*what)), Drop(names)),
}
