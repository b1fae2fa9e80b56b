"""How fast the paper's way learns: a million URLs on one host, a cluster of 100,000 in it, and many small hosts.

Seconds of one core (`time.process_time`), from strings to chosen rules. The peer's figure is the paper's own: 2.97
billion URLs on 100 nodes in 5 h 24 min.
"""

from __future__ import annotations

from random import Random
from time import process_time

from clusterd.learning.koppula.selection import Evidence
from clusterd.learning.koppula.tokenize import split_url

from benchmarks.results import Row, result

#: URLs a second and node (section 5.2).
PAPER = 2.97e9 / (5.4 * 3600) / 100
#: URLs a second that are to be reached.
AIM = 20_000
PRECISION = 0.95
SIZES = ((10_000, 0), (100_000, 0), (1_000_000, 100_000))
#: Hosts, and URLs of each.
HOSTS, HOST_URLS = 10_000, 100


def site(host: str, urls: int, giant: int, random: Random) -> list[list[str]]:
    """A forum, a wiki under two names, a shop with referrers, documentation under three prefixes, a log-in wall."""
    clusters: list[list[str]] = []
    made = giant
    while made < urls:
        n = random.randrange(10**7)
        topic = f"http://{host}/forum/viewtopic.php?t={n}"
        cluster = (
            [topic, f"{topic}&sid={random.getrandbits(128):032x}", f"{topic}&highlight=", f"{topic}&start=0"],
            [f"http://{host}/wiki/Page_{n}", f"http://{host}/index.php?title=Page_{n}"],
            [f"http://{host}/shop/item-{n}.html?ref={k}" for k in random.sample(range(99), 4)],
            [f"http://{host}/{version}/docs/a{n}/index.html" for version in ("en", "latest", "v2")],
        )[random.randrange(4)]
        clusters.append(cluster)
        made += len(cluster)
    if giant:
        clusters.append([f"http://{host}/posting.php?mode=quote&p={n}" for n in range(giant)])
    return clusters


def seconds(hosts: list[list[list[str]]]) -> float:
    """Learn each host's rules; return the processor time."""
    begun = process_time()
    for clusters in hosts:
        Evidence([[split_url(url) for url in cluster] for cluster in clusters], Random(0)).select(PRECISION)
    return process_time() - begun


def run() -> list[Row]:
    """Measure each size."""
    random = Random(1)
    rows = []
    for urls, giant in SIZES:
        rows.append(_row(f"one host, {urls:,} URLs", urls, seconds([site("a.test", urls, giant, random)])))
    hosts = [site(f"h{n}.test", HOST_URLS, 0, random) for n in range(HOSTS)]
    rows.append(
        _row(f"{HOSTS:,} hosts of {HOST_URLS} URLs", sum(len(c) for host in hosts for c in host), seconds(hosts))
    )
    return rows


def _row(subject: str, urls: int, spent: float) -> Row:
    rate = urls / spent
    peer = f"the aim (a node of Koppula et al.: {rate / PAPER:.1f})"
    work = "learn URL rules from clusters (split protocol)"
    return result(work, subject, round(rate), "URLs/s on one core", peer, round(rate / AIM, 2))


if __name__ == "__main__":
    for row in run():
        print(row)
