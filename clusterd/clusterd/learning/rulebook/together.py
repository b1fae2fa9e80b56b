"""Which pages the rules in force bring together: those of one key, or of which one answers for the other by name.

They are what a host's rules are judged by. Where these work that is little of its log: what they keep out is not
fetched, and so most of what is has a key of its own.

Cost: a key or two for each page (about 10 µs each), of a host that has rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.rules import LIVE, RuleSet
from clusterd_crawler.skipping.bearers import NameTable

from clusterd.learning.contract import Page


def brought_together(pages: Sequence[Page], rules: RuleSet) -> Iterator[Page]:
    """Yield the pages that have a key with others (given in the order of their fetches), the latest first.

    One key of each rule in turn, or of rules that work together: of some a crawl brings much more than of others.
    """
    keys = Keys(conditional=True)
    keys.load(rules)
    names = NameTable(rule for rule in rules.rules if rule.kind == "name" and rule.state in LIVE)
    for page in pages:
        names.note(page.url, page.names)
    of_key: dict[str, list[Page]] = {}
    by: dict[str, tuple[str, ...]] = {}
    for page in reversed(pages) if rules.rules else ():
        named = names.find(page.url)
        for url in (page.url, *(named or ())[1:]):
            key, applied = keys.key(url)
            together = of_key.setdefault(key, [])
            if page not in together[-1:]:
                together.append(page)
            by[key] = max(by.get(key, ()), (*applied, *(named or ())[:1]), key=len)
    of_rules: dict[tuple[str, ...], list[list[Page]]] = {}
    for key, together in of_key.items():
        if len(together) > 1:
            of_rules.setdefault(by[key], []).append(together)
    in_turn = chain.from_iterable(zip_longest(*of_rules.values(), fillvalue=[]))
    return iter(dict.fromkeys(chain.from_iterable(in_turn)))
