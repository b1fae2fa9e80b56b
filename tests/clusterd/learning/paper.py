"""Tokens, transformations and contexts as Koppula et al. 2010 write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from clusterd.learning.koppula.apply import changed_tokens, matches
from clusterd.learning.koppula.deep_tokens import DeepTokenizer, PatternTree
from clusterd.learning.koppula.generalize import GeneralRule, Options, generalize
from clusterd.learning.koppula.pairwise import PairwiseRule
from clusterd.learning.koppula.targets import generate_all_rules
from clusterd.learning.koppula.tokenize import Tokens, UrlParts, join, key_of, split_url, tokenize


def written(tokens: Tokens) -> dict[str, str]:
    """Tokens by key as the paper writes it."""
    return {str(key_of(slot)): value for slot, value in tokens.items()}


def changes_of(rule: PairwiseRule | GeneralRule) -> dict[str, str]:
    """A transformation as the paper writes it: literal, DELETE, Ref(key), Uppercase(key)."""
    return {str(key_of(slot)): _change(slot, change) for slot, change in rule.changes}


def _change(slot, change) -> str:
    if change.op == "delete":
        return "DELETE"
    if change.op == "set":
        return change.value
    return f"{change.op}({key_of(change.source or slot)})"


def learned(
    clusters: Iterable[Sequence[str]], tokenizer: DeepTokenizer | None = None, **options: int
) -> list[GeneralRule]:
    """The whole way: target and source selection, pairwise rules, generalization."""

    def tokens(parts):
        return tokenizer.cut(tokenize(parts)) if tokenizer else tokenize(parts)

    parts = [[split_url(url) for url in cluster] for cluster in clusters]
    return generalize(generate_all_rules(parts, tokens, Random(0)), Options(**options))


def levels(tree: PatternTree) -> list[list[str]]:
    """The patterns level by level (figure 2)."""
    found, level = [], [tree]
    while level:
        found.append([node.pattern.text for node in level])
        level = [child for node in level for child in node.children]
    return found


def transform(rule: GeneralRule, url: str, tokenizer: DeepTokenizer | None = None) -> UrlParts | None:
    """r(u), or None where the rule does not apply."""
    tokens = tokenize(split_url(url))
    if tokenizer is not None:
        tokens = tokenizer.cut(tokens)
    if not matches(rule.context, tokens):
        return None
    changed = changed_tokens(rule.changes, tokens)
    return join(changed) if changed is not None else None


def context_of(rule: GeneralRule) -> dict[str, str | None]:
    return {str(key_of(slot)): test for slot, test in rule.context}


ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def random_name(random: Random) -> str:
    return "".join(random.choice(ALPHABET) for _ in range(12))


def yahoo_clusters() -> list[list[str]]:
    random = Random(360)
    first = ["http://360.yahoo.com/friends-lttU7d6kIuGq", "http://360.yahoo.com/friends-nMfcaJRPUSMQ"]
    return [first + [f"http://360.yahoo.com/friends-{random_name(random)}" for _ in range(20)]]


def yahoo() -> DeepTokenizer:
    random = Random(7)
    urls = [url for cluster in yahoo_clusters() for url in cluster]
    urls += [f"http://360.yahoo.com/blog-{random_name(random)}" for _ in range(20)]
    return DeepTokenizer.learn(map(tokenize, urls))
