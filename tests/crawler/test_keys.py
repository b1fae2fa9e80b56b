"""Which rules are looked at for a URL, and how often: filed where none is missed, applied until nothing changes."""

from __future__ import annotations

import gc
import random

from clusterd_crawler.rule_language.conditions import read_key
from clusterd_crawler.rule_language.json_form import rule_set_from_json, rule_set_to_json
from clusterd_crawler.rule_language.keys import PASSES, CompiledRule, HostRules, Keys
from clusterd_crawler.rules import Condition, Edit, Key
from clusterd_crawler.urls import Url, parse

from tests.crawler.made_rules import DROP_SID, HOST, SID, key_under, rule, rule_set


def test_a_spanning_rule_that_comes_later_reaches_hosts_whose_keys_were_asked_for_before() -> None:
    keys = Keys()
    for host in ("www.example.com", "example.com"):
        keys.load(rule_set(rule([Condition(SID, "any")], [Edit(SID, "delete")], host=host), host=host))
        assert keys.key(f"http://{host}/a?sid=1")[0] == f"http://{host}/a"
    keys.load(rule_set(rule([], [Edit(Key(start=2), "set", "example.com")], spans=True), DROP_SID))
    assert keys.key("http://www.example.com/a?sid=1")[0] == "http://example.com/a"
    # Of a domain of which all rules are withdrawn, those of its hosts stay.
    keys.load(rule_set())
    assert keys.key("http://www.example.com/a?sid=1")[0] == "http://www.example.com/a"


def test_a_url_may_lose_more_than_there_are_passes() -> None:
    names = [f"p{number}" for number in range(2 * PASSES)]
    dropping = [rule([Condition(Key(name=name), "any")], [Edit(Key(name=name), "delete")]) for name in names]
    url = "http://example.com/a?x=1&" + "&".join(f"{name}=1" for name in names)
    assert key_under(rule_set(*dropping), url) == ("http://example.com/a?x=1", tuple(one.id for one in dropping))


PLACES = [
    *(Key(name=name) for name in ("sid", "t", "x", ";j")),
    *(Key(start=start, end=end) for start in (0, 2, 3, 4) for end in (0, 0, 1, 2)),
]
VALUES = ["a", "b", "1", "2", ""]


def asked(dice: random.Random, url: Url) -> Condition:
    """Return a condition, mostly one that holds for the URL."""
    place, others = dice.choice(PLACES), tuple(dice.sample(VALUES, 2))
    there = read_key(place)(url)
    value = dice.choice(VALUES) if there is None or dice.random() < 0.2 else there
    return dice.choice(
        [
            Condition(place, "is", (value,)),
            Condition(place, "in", (*others, value)),
            Condition(place, "within", (*others, value)),
            Condition(place, "absent" if there is None else "any"),
            Condition(place, "depth", (str(len(url.path)),)),
            Condition(place, "only", ("sid", "t", "x")),
        ]
    )


def change(dice: random.Random) -> Edit:
    if dice.random() < 0.1:
        return dice.choice([Edit(Key(), "sort"), Edit(Key(), "keep", names=("t",))])
    op = dice.choice(["delete", "delete", "delete", "set", "upper"])
    return Edit(dice.choice(PLACES), op, value=dice.choice(VALUES))  # type: ignore[arg-type]


def test_no_rule_is_missed_for_the_place_that_it_is_filed_in() -> None:
    dice = random.Random(7)
    applied = 0
    for _ in range(3000):
        path = [dice.choice(["a", "b", "1", "a;j=1"]) for _ in range(dice.randrange(4))]
        query = [dice.choice(["sid=1", "sid=2", "sid", "t=b", "t=1", "x=a"]) for _ in range(dice.randrange(4))]
        url = f"http://{HOST}/" + "/".join(path) + ("?" + "&".join(query) if query else "")
        rules = [
            rule(
                [asked(dice, parse(url)) for _ in range(dice.randrange(3))],
                [change(dice) for _ in range(dice.choice([1, 1, 2]))],
            )
            for _ in range(dice.randrange(1, 8))
        ]
        filed = HostRules(rules)
        found = [known.order for known in filed.candidates(parse(url))]
        assert found == sorted(set(found))
        for order, known in enumerate(rules):
            if CompiledRule(known, order).apply(parse(url)) is not None:
                applied += 1
                assert order in found, (known, url)
                assert filed.needed is None or filed.needed.search(url) is not None, (known, url)
    assert applied > 2000


def test_rules_that_ask_for_the_same_share_what_tells_it() -> None:
    """The garbage collector goes through all of it while the loop stands still; 26 objects a rule where they do not."""
    folders = [Condition(Key(start=3), "is", (f"folder{number}",)) for number in range(1000)]
    made = [rule([Condition(SID, "any"), folder], [Edit(SID, "delete")]) for folder in folders]
    published = rule_set_to_json(rule_set(*made))
    gc.collect()
    before = len(gc.get_objects())
    keys = Keys()
    keys.load(rule_set_from_json(published))
    assert keys.key(f"http://{HOST}/folder7/a?sid=1")[0] == f"http://{HOST}/folder7/a"
    gc.collect()
    assert (len(gc.get_objects()) - before) / len(made) < 21
