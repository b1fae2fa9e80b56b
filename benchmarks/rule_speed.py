"""How fast rules are applied and learned, on one core (processor time, which other work on the machine leaves alone).

- apply: keys of the URLs of a made-up crawl (a third of them changed) with 1,000 rules on the host and with as many on
  1,000 other hosts beside them; the decision of a crawler that knows 100,000 pages; bytes a rule.
- learn: a million URLs of one host, 100 on each of 10,000 hosts, and one cluster of 100,000 URLs, fed page by page with
  learning whenever it is due, as the daemon does. The paper's Hadoop did about 1,530 URLs a second a node.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import process_time
from typing import Final

from clusterd.learning.contract import Page
from clusterd.learning.learner import Learner
from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.skipping.known_pages import KnownPages

from benchmarks.results import Row, result

#: URLs a second a node: 2.97 billion URLs, 100 nodes, 5 h 24 min (Koppula et al. 2010, section 5.2).
PAPER: Final = 1530
#: URLs a second that learning and applying are to reach on one core.
LEARN: Final = 20_000
APPLY: Final = 200_000
HOST: Final = "forum.example.com"


def run() -> list[Row]:
    """Measure, and return the rows of the results file."""
    return [*applying(), *learning()]


def rules(host: str, count: int) -> RuleSet:
    """Return a host's rules: of each of its folders, parameters that do not matter."""
    made = []
    for number in range(count):
        key = Key(name=("sid", "sort", "view", "ref")[number % 4])
        context = (Condition(key, "any"), Condition(Key(start=3), "is", (f"folder{number // 4}",)))
        edits = (Edit(key, "delete"),)
        made.append(Rule(rule_id(host, context, edits), host, context, edits))
    return RuleSet(host, 1, tuple(made))


def crawl(host: str, count: int) -> Iterator[str]:
    """Yield URLs like those of a forum; a third of them have a parameter that a rule drops."""
    for number in range(count):
        folder = number * 7919 % 250
        more = (f"&sid={number:x}", "", "")[number % 3]
        yield f"http://{host}/folder{folder}/viewtopic.php?t={number // 3}&start={number % 5 * 15}{more}"


def rates(works: Sequence[Callable[[str], object]], urls: list[str]) -> list[float]:
    """Return each work's best of three rates, in URLs a second; they take turns, so that all meet the same machine."""
    best = [0.0] * len(works)
    for _ in range(3):
        for at, work in enumerate(works):
            start = process_time()
            for url in urls:
                work(url)
            best[at] = max(best[at], len(urls) / (process_time() - start))
    return best


def applying() -> list[Row]:
    """Measure keys and decisions."""
    urls = list(crawl(HOST, 100_000))
    own, more = Keys(), Keys()
    for keys in (own, more):
        keys.load(rules(HOST, 1000))
    for number in range(1000):
        more.load(rules(f"h{number}.example.org", 1))
    alone, beside = rates([own.key, more.key], urls)
    known = KnownPages(explore=0)
    known.load(rules(HOST, 1000))
    for number, url in enumerate(urls):
        known.fetched(url, number)
    asked = [url + "&ref=1" for url in urls[::2]]
    tracemalloc.start()
    held = Keys()
    held.load(rules(HOST, 1000))
    held.key(urls[0])
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return [
        result("rules: key of a URL", "1,000 rules on its host", alone, "URLs/s", "the aim", round(alone / APPLY, 2)),
        result("rules: key of a URL", "and 1,000 on other hosts", beside, "URLs/s", "alone", round(beside / alone, 2)),
        result(
            "rules: skip or fetch",
            "1,000 rules, 100,000 known pages",
            rates([lambda u: known.decide(u, 1)], asked)[0],
            "URLs/s",
        ),
        result("rules: memory", "a rule, compiled", used / 1000, "bytes"),
    ]


def one_host(count: int) -> Iterator[Page]:
    """Yield pages of a large host: a fifth of them duplicates under session ids and views."""
    random_ = random.Random(1)
    for number in range(count):
        topic = random_.randrange(count)
        more = ("", "", "", f"&sid={number:x}", "&view=print")[number % 5]
        yield Page(f"http://{HOST}/f{topic // 2 % 50}/viewtopic.php?t={topic // 2}{more}", topic // 2 + 1)


def one_cluster(count: int) -> Iterator[Page]:
    """Yield pages that all show one content."""
    for number in range(count):
        yield Page(f"http://{HOST}/posting.php?mode={('quote', 'reply')[number % 2]}&p={number}", 1)


def learned(pages: Iterable[Page]) -> tuple[int, float]:
    """Feed a learner as the daemon does; return how many pages, and the seconds (without the making of the pages)."""
    pages = list(pages)
    learner = Learner(HOST)
    count = 0
    start = process_time()
    block: list[Page] = []
    for page in pages:
        block.append(page)
        if len(block) == 100:
            count += len(block)
            learner.observe(block)
            block = []
            if learner.due():
                learner.learn(count)
    learner.observe(block)
    if learner.due():
        learner.learn(count)
    return count + len(block), process_time() - start


def learning() -> list[Row]:
    """Measure the learner."""
    found = []
    for subject, pages in (
        ("1,000,000 URLs of one host", one_host(1_000_000)),
        ("one cluster of 100,000 URLs", one_cluster(100_000)),
    ):
        count, seconds = learned(pages)
        found.append(_learning(subject, count / seconds))
    hosts = [learned(one_host(100)) for _ in range(10_000)]
    rate = sum(count for count, _ in hosts) / sum(seconds for _, seconds in hosts)
    found.append(_learning("100 URLs on each of 10,000 hosts", rate))
    return found


def _learning(subject: str, speed: float) -> Row:
    peer = f"the aim (a node of Koppula 2010: {speed / PAPER:.1f})"
    return result("rules: learning", subject, speed, "URLs/s", peer, round(speed / LEARN, 2))
