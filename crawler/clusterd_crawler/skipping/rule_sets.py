"""The rule sets that a crawl uses, host by host: the keys that they make of URLs, and what is asked of a rule's id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.rules import LIVE, Rule, RuleSet
from clusterd_crawler.skipping.answering import Answering
from clusterd_crawler.urls import host_of, registrable


class RuleSets:
    """The latest set of each host. ``crawl``: rules that speak of another one are not used (None: all are)."""

    def __init__(self, crawl: str | None = None) -> None:
        self._crawl = crawl
        self._keys = Keys()
        self._all_keys = Keys(conditional=True)
        self._answering = Answering()
        #: Domain → host → its rule set: a domain is looked up often, and there may be very many.
        self._sets: dict[str, dict[str, RuleSet]] = {}
        #: Host → its URLs that are fetched whatever the rules say; hosts that have none are not in it.
        self._unskip: dict[str, frozenset[str]] = {}
        #: Id of a rule that asks what the known page shows → the identity of the main text that it asks for.
        self._shows: dict[str, int] = {}
        #: Ids of the rules that were judged by something else than equal texts.
        self._loose: set[str] = set()
        #: Host of a set → ids of its rules that span hosts.
        self._spanning: dict[str, frozenset[str]] = {}

    def of(self, host: str) -> RuleSet | None:
        """Return the rule set in use for a host."""
        return self._sets.get(registrable(host), {}).get(host)

    def load(self, rules: RuleSet) -> tuple[Sequence[Rule], RuleSet] | None:
        """Take a host's rule set; return the rules that it replaces, and what of it is used; None where it is old."""
        sets = self._sets.setdefault(registrable(rules.host), {})
        known = sets.get(rules.host)
        if known is not None and known.version > rules.version:
            return None
        sets[rules.host] = used = rules.within(self._crawl)
        gone = () if known is None else known.rules
        self._unskip.pop(used.host, None)
        if used.unskip:
            self._unskip[used.host] = frozenset(used.unskip)
        for rule in gone:
            self._shows.pop(rule.id, None)
        self._shows.update({rule.id: rule.shows for rule in used.rules if rule.shows})
        self._loose.difference_update(rule.id for rule in gone)
        self._loose.update(rule.id for rule in used.rules if rule.identity != "identical")
        self._spanning[used.host] = frozenset(rule.id for rule in used.rules if rule.spans)
        self._keys.load(used)
        self._all_keys.load(used)
        self._answering.load(gone, used.rules)
        return gone, used

    def key(self, url: str) -> tuple[str, tuple[str, ...]]:
        """Return the key of a URL (canonical), and the ids of the rules that made it, in order."""
        return self._keys.key_of_canonical(url)

    def key_under_all(self, url: str) -> tuple[str, tuple[str, ...]]:
        """Return the same under all rules, those included that ask what the known page shows."""
        return self._all_keys.key_of_canonical(url)

    def deciding(self, url: str, known: str, applied: Sequence[str]) -> str:
        """Return the rule that answers for a skip: one that spans hosts, which only the pages of both can watch."""
        spanning = self._spanning.get(registrable(host_of(url)), ())
        return next((rule for rule in applied if rule in spanning), None) or self._answering.choose(url, known, applied)

    def names(self, domain: str) -> list[Rule]:
        """Return the rules of a domain that believe what pages call themselves."""
        sets = self._sets.get(domain, {}).values()
        return [rule for rules in sets for rule in rules.rules if rule.kind == "name" and rule.state in LIVE]

    def is_unskipped(self, url: str) -> bool:
        """Whether a URL (canonical) is fetched whatever the rules say."""
        return bool(self._unskip) and url in self._unskip.get(host_of(url), ())

    @property
    def any_asks(self) -> bool:
        """Whether some rule asks what the known page shows."""
        return bool(self._shows)

    def asking(self, applied: Iterable[str]) -> str | None:
        """Return the first of the rules that asks what the known page shows."""
        return next((rule for rule in applied if rule in self._shows), None)

    def allow(self, applied: Iterable[str], content: int) -> bool:
        """Whether a page of this content shows what the rules ask for."""
        return all(self._shows.get(rule, content) == content for rule in applied)

    def go_by_text(self, applied: Iterable[str]) -> bool:
        """Whether all these rules were judged by equal texts."""
        return self._loose.isdisjoint(applied)
