"""Few general rules out of many pairwise ones (Koppula et al. 2010, section 3.2.2, algorithm 5, lemma 3).

Transformations are the classes of a decision tree, keys its attributes; bottom-up, key by key, a node becomes a
wildcard where no single value of the key holds the majority, else one node a value. All paths of the tree are the
contexts. Cost: O(k · r) for the gains and O(k · r) for the tree: r pairwise rules of a host, k keys, of which at most
`MAX_KEYS` count.

Chosen where the paper is silent:
  A0c  a transformation is indexed under three views of its path keys (from the start, from the end, both), and takes
       the one that most clusters share. Where the URLs of a class differ in depth, only scheme, host, query keys and
       the path keys that the transformation touches are its context (the paper's own ag.arizona rule accepts any
       depth).
  A14  gain first, then more distinct values (so that wildcards come first), then the order of keys.
  A15  wildcard where no value has more than `MAJORITY` and there are more than `threshold` values.
  A16  of several classes at one context the one with most support stays, if it has `purity` of the context's rules.
  A17  an absent key is a value of its own, which no wildcard covers.
  A18  a rule needs `min_clusters` distinct clusters.
  A19  transformation generalization: literals that replace a key's value and differ from cluster to cluster become
       ``*`` before the tree is built: a class for each literal would leave the tree nothing to generalize from.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2

from clusterd.learning.koppula.pairwise import DELETE, Change, PairwiseRule, Transformation
from clusterd.learning.koppula.tokenize import Slot, View, in_view, slots_of

MAJORITY, THRESHOLD = 0.5, 3
MAX_KEYS = 64
#: Keys whose gain is computed: a host that makes up names for every URL costs no more.
MAX_RANKED = 256
#: Tests of a generalized context besides a literal value.
ANY, ABSENT = "*", None
#: What stands for any value where values do not matter.
STAR = Change("set", ANY)

Context = tuple[tuple[Slot, str | None], ...]


def standing(context: Context, changes: Transformation) -> Context:
    """Return a rule's context with what its transformation takes for granted: that its path components are there.

    An edit of any value would append a component that is missing, and of several changes those that can would be made.
    """
    if len(changes) == 1 and changes[0][1] != STAR:
        return context
    said = {slot for slot, _ in context}
    return context + tuple(
        [
            (slot, ANY)
            for slot, change in changes
            if change in {STAR, DELETE} and not slot[0] and not slot[3] and slot not in said
        ]
    )


@dataclass(frozen=True, slots=True)
class Options:
    """The thresholds that the paper names without numbers."""

    threshold: int = THRESHOLD
    min_clusters: int = 2
    purity: float = 0.5


@dataclass(frozen=True, slots=True)
class GeneralRule:
    """A path of the tree: what a URL must be, and what is done to it; from how many clusters and pairs."""

    context: Context
    changes: Transformation
    clusters: int
    pairs: int


@dataclass(frozen=True, slots=True)
class _Example:
    """A pairwise rule under the view and the class that it was given."""

    context: dict[Slot, str]
    changes: Transformation
    cluster: int


def generalize(rules: Sequence[PairwiseRule], options: Options | None = None) -> list[GeneralRule]:
    """GeneralizePairwiseRules: contexts by decision tree, transformations before them (A19)."""
    options = options or Options()
    examples = _literals_generalized(_viewed([rule for rule in rules if rule.changes]))
    classes: dict[Transformation, list[_Example]] = defaultdict(list)
    for example in examples:
        classes[example.changes].append(example)
    order = {slot: rank for rank, slot in enumerate(key_order(examples))}
    paths: dict[Context, list[tuple[Transformation, list[_Example]]]] = defaultdict(list)
    for changes, members in classes.items():
        for context, leaf in _paths(members, order, options):
            paths[context].append((changes, leaf))
    return _settled(paths, options)


def _settled(paths: dict[Context, list[tuple[Transformation, list[_Example]]]], options: Options) -> list[GeneralRule]:
    """Return one rule for each context: the class with most support, where it is pure enough (A16)."""
    found = []
    for context, leaves in paths.items():
        total = sum(len(leaf) for _, leaf in leaves)
        changes, best = max(leaves, key=lambda leaf: (len(leaf[1]), leaf[0]))
        clusters = len({example.cluster for example in best})
        if len(best) >= options.purity * total and clusters >= options.min_clusters:
            found.append(GeneralRule(context, changes, clusters, len(best)))
    return _ranked(found)


def _ranked(rules: Iterable[GeneralRule]) -> list[GeneralRule]:
    """Order rules by clusters, then pairs, the most first; only those that have as many are written out."""
    alike: dict[tuple[int, int], list[GeneralRule]] = defaultdict(list)
    for rule in rules:
        alike[-rule.clusters, -rule.pairs].append(rule)
    for several in alike.values():
        if len(several) > 1:
            several.sort(key=lambda rule: repr(rule.context))
    return [rule for place in sorted(alike) for rule in alike[place]]


# Views (A0c)

_VIEWS: tuple[View, ...] = ("both", "end", "start")


@lru_cache(maxsize=4096)
def viewed_changes(changes: Transformation, view: View) -> Transformation:
    """Return a transformation with its path keys in one view."""
    return tuple(
        sorted(
            (in_view(slot, view), change._replace(source=in_view(change.source, view)) if change.source else change)
            for slot, change in changes
        )
    )


def shape(changes: Transformation, context: Iterable[Slot]) -> Transformation:
    """Return a transformation without the literals that replace a value."""
    literals = {slot for slot, change in changes if change.op == "set"}.intersection(context)
    if not literals:
        return changes
    return tuple([(slot, STAR if slot in literals else change) for slot, change in changes])


def _viewed(rules: Sequence[PairwiseRule]) -> list[_Example]:
    """Give each rule the view of its transformation that most clusters share; ties stay with the most specific."""
    shared: dict[Transformation, set[int]] = defaultdict(set)
    plain = [shape(rule.changes, rule.context) for rule in rules]
    shapes = [[viewed_changes(changes, view) for view in _VIEWS] for changes in plain]
    for rule, forms in zip(rules, shapes, strict=True):
        for form in forms:
            shared[form].add(rule.cluster)
    depths: dict[Transformation, set[int]] = defaultdict(set)
    chosen: list[tuple[PairwiseRule, View, Transformation]] = []
    for rule, forms in zip(rules, shapes, strict=True):
        best = max(range(len(_VIEWS)), key=lambda n: (len(shared[forms[n]]), -n))
        chosen.append((rule, _VIEWS[best], forms[best]))
        depths[forms[best]].add(_depth(rule.context))
    return [_example(rule, view, len(depths[form]) > 1) for rule, view, form in chosen]


def _depth(context: Iterable[Slot]) -> int:
    return max((slot[1] for slot in context if not slot[0]), default=0)


def _example(rule: PairwiseRule, view: View, any_depth: bool) -> _Example:
    """Return a rule in its view; at any depth, path keys that the transformation does not touch are left out."""
    touched = {slot for slot, _ in rule.changes} | {change.source for _, change in rule.changes}
    kept = {
        in_view(slot, view if any_depth else "both"): value
        for slot, value in rule.context.items()
        if slot[0] or slot[1] <= 2 or not any_depth or slot in touched
    }
    return _Example(kept, viewed_changes(rule.changes, view if any_depth else "both"), rule.cluster)


# Literals (A19)


def _literals_generalized(examples: Sequence[_Example]) -> list[_Example]:
    """Replace literals that no majority of a transformation's clusters shares by ``*``."""
    literals: dict[tuple[Transformation, Slot], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    forms = [shape(example.changes, example.context) for example in examples]
    for example, form in zip(examples, forms, strict=True):
        for slot, change in example.changes:
            if change.op == "set" and slot in example.context:
                literals[form, slot][change.value].add(example.cluster)
    stays: dict[tuple[Transformation, Slot], str] = {}
    for place, values in literals.items():
        value, clusters = max(values.items(), key=lambda item: (len(item[1]), item[0]))
        if len(clusters) > MAJORITY * sum(len(found) for found in values.values()):
            stays[place] = value
    return [
        _Example(example.context, _kept_literals(example, form, stays), example.cluster)
        for example, form in zip(examples, forms, strict=True)
    ]


def _kept_literals(
    example: _Example, form: Transformation, stays: dict[tuple[Transformation, Slot], str]
) -> Transformation:
    return tuple(
        (slot, own if stays.get((form, slot)) == own.value else general)
        for (slot, own), (_, general) in zip(example.changes, form, strict=True)
    )


# The tree


def entropy(counts: Iterable[int]) -> float:
    """Return the entropy of a distribution, in bits."""
    numbers = list(counts)
    total = sum(numbers)
    return -sum(n / total * log2(n / total) for n in numbers if n)


def key_order(examples: Sequence[_Example]) -> list[Slot]:
    """Return the keys in the order in which the tree takes them: by information gain, then by distinct values (A14)."""
    tables: dict[Slot, dict[str, Counter[Transformation]]] = defaultdict(lambda: defaultdict(Counter))
    frequent = Counter(slot for example in examples for slot in example.context).most_common(MAX_RANKED)
    ranked = {slot for slot, _ in frequent}
    for example in examples:
        for slot, value in example.context.items():
            if slot in ranked:
                tables[slot][value][example.changes] += 1
    whole = Counter(example.changes for example in examples)
    base = entropy(whole.values())

    def gain(slot: Slot) -> float:
        left, rest = len(examples), dict(whole)
        spent = 0.0
        for classes in tables[slot].values():
            size = sum(classes.values())
            spent += size / len(examples) * entropy(classes.values())
            left -= size
            for changes, count in classes.items():
                rest[changes] -= count
        return base - spent - (left / len(examples) * entropy(rest.values()) if left else 0.0)

    return sorted(tables, key=lambda slot: (-round(gain(slot), 9), -len(tables[slot]), slot))


def _paths(members: list[_Example], order: dict[Slot, int], options: Options) -> list[tuple[Context, list[_Example]]]:
    """Return the tree's paths for one class: the contexts, with the rules that follow each."""
    frequent = Counter(slot for example in members for slot in example.context).most_common(MAX_KEYS)
    touched = {slot for slot, _ in members[0].changes}
    counted = {slot for slot, count in frequent if count > 1 or len(members) == 1}
    keys = sorted(
        counted | (touched & slots_of([members[0].context])), key=lambda slot: (order.get(slot, len(order)), slot)
    )
    nodes: list[tuple[Context, list[_Example]]] = [((), members)]
    for slot in keys:
        grown: list[tuple[Context, list[_Example]]] = []
        for context, node in nodes:
            grown += [((*context, (slot, test)), part) for test, part in _branches(node, slot, options)]
        nodes = grown
    return [(tuple(sorted(context)), node) for context, node in nodes]


def _branches(node: list[_Example], slot: Slot, options: Options) -> list[tuple[str | None, list[_Example]]]:
    """Split a node by one key: absent (A17), then a wildcard or a branch for each value (A15)."""
    values: dict[str | None, list[_Example]] = {}
    for example in node:
        value = example.context.get(slot, ABSENT)
        if value in values:
            values[value].append(example)
        else:
            values[value] = [example]
    absent = values.pop(ABSENT, [])
    branches: list[tuple[str | None, list[_Example]]] = [(ABSENT, absent)] if absent else []
    present = len(node) - len(absent)
    if len(values) > options.threshold and max(map(len, values.values())) <= MAJORITY * present:
        return [*branches, (ANY, [example for part in values.values() for example in part])]
    return [*branches, *values.items()]
