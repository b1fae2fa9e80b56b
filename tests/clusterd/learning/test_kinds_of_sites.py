"""Made-up sites of the kinds that there are, each with what looks like a rule and is none: nothing may be lost there.

Every site has pages that differ only now and then under two URLs (a translation that is missing, a version that was not
changed), since that is what a few clean trials mistake for a rule.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from clusterd.learning.replay import CrawlRow, replay

Site = Iterator[tuple[str, object]]
H = "http://h.com"


def wiki(chance: random.Random) -> Site:
    """Titles under two names, histories and differences (content), edit forms that ask to log in, printable views."""
    for n in range(400):
        yield f"{H}/wiki/Page_{n}", n
        yield f"{H}/index.php?title=Page_{n}", n
        yield f"{H}/index.php?title=Page_{n}&printable=yes", n
        yield f"{H}/index.php?title=Page_{n}&action=edit", "log in"
        yield f"{H}/index.php?title=Page_{n}&action=history", ("history", n)
        for old in range(chance.randrange(3)):
            yield f"{H}/index.php?title=Page_{n}&oldid={n * 10 + old}", n if chance.random() < 0.3 else ("old", n, old)


def shop(chance: random.Random) -> Site:
    """Products under several categories and campaigns; sizes that mostly look the same and sometimes do not."""
    for n in range(300):
        yield f"{H}/product?id={n}", n
        yield f"{H}/product?id={n}&utm_source={chance.choice('abcdef')}{n}", n
        for size in "SML":
            yield f"{H}/product?id={n}&size={size}", n if chance.random() < 0.9 else (n, size)
    for category in range(20):
        for page in range(6):
            for sort in ("price", "name"):
                yield f"{H}/list?cat={category}&page={page}&sort={sort}", (category, page, sort)


def blog(chance: random.Random) -> Site:
    """Entries, their comment pages, archives by day, tags of which some hold one entry."""
    for n in range(400):
        yield f"{H}/{2000 + n % 10}/{n % 12 + 1:02}/entry-{n}/", n
        yield f"{H}/{2000 + n % 10}/{n % 12 + 1:02}/entry-{n}/?replytocom={n * 3}", n
        yield f"{H}/tag/word-{n % 150}/", ("tag", n % 150)
        yield f"{H}/?m={2000 + n % 10}{n % 12 + 1:02}{n % 28 + 1:02}", ("day", n % 10, n % 12, n % 28)
        if n % 3 == 0:
            yield f"{H}/{2000 + n % 10}/{n % 12 + 1:02}/entry-{n}/comment-page-2/", ("comments", n)


def mailing_list(chance: random.Random) -> Site:
    """Messages by date, by thread and by author; a message that was posted twice."""
    for n in range(600):
        yield f"{H}/archive/2001-{n % 12 + 1:02}/msg{n:05}.html", n
        if chance.random() < 0.06:
            yield f"{H}/archive/2001-{n % 12 + 1:02}/msg{n + 50_000:05}.html", n
    for month in range(12):
        for order in ("thread", "date", "author", "subject"):
            yield f"{H}/archive/2001-{month + 1:02}/{order}.html", (month, order)


def code_browser(chance: random.Random) -> Site:
    """Files at revisions, of which most did not change between two; line ranges; raw and annotated views."""
    for n in range(150):
        changed = 0
        for revision in range(8):
            changed = revision if chance.random() < 0.12 else changed
            yield f"{H}/file/src/f{n}.c?rev={revision}", (n, changed)
            if chance.random() < 0.3:
                yield f"{H}/annotate/src/f{n}.c?rev={revision}", ("annotate", n, changed)


def listings(chance: random.Random) -> Site:
    """Folders of an Apache, sorted eight ways: by name and by type look alike, and so does all of a folder of one."""
    for n in range(150):
        single = chance.random() < 0.2
        yield f"{H}/data/d{n}/", (n, "NA")
        for column in "NMSD":
            for order in "AD":
                shown = "NA" if single else ("N" if column in "ND" else column) + order
                yield f"{H}/data/d{n}/?C={column};O={order}".replace(";", "&"), (n, shown)


def calendar(chance: random.Random) -> Site:
    """Days of which most are empty, in three views; a day with an event is found nowhere else."""
    for day in range(700):
        event = chance.random() < 0.08
        for view in ("day", "agenda", "print"):
            content = ("event", day) if event else "nothing on this day"
            yield f"{H}/calendar?date=2020-{day // 28 + 1:02}-{day % 28 + 1:02}&view={view}", content


def versions(chance: random.Random) -> Site:
    """A manual in five versions, most pages of which did not change from one to the next."""
    for n in range(200):
        text = 0
        for version in ("1.0", "1.1", "1.2", "2.0", "latest"):
            text += version != "latest" and chance.random() < 0.12
            yield f"{H}/docs/{version}/chapter-{n % 10}/page-{n}.html", (n, text)


def languages(chance: random.Random) -> Site:
    """Pages in four languages, of which most are not translated and show the English text."""
    for n in range(300):
        yield f"{H}/page/{n}", n
        for language in ("en", "de", "fr", "ja"):
            translated = language != "en" and chance.random() < 0.15
            yield f"{H}/page/{n}?lang={language}", (n, language) if translated else n


def regions(chance: random.Random) -> Site:
    """Pages for three countries, of which a few have a text of their own in each; some in no country's folder."""
    for n in range(300):
        differs = chance.random() < 0.03
        section = chance.choice(("news", "help", "products"))
        for country in ("en-au", "en-ca", "en-gb"):
            yield f"{H}/{country}/{section}/page-{n}", (n, country if differs else "")
    for n in range(150):
        yield f"{H}/about/page-{n}", ("about", n)


def referrers(chance: random.Random) -> Site:
    """Articles under the token of who links to them, which says nothing; partners, that are few, have a page each."""
    for n in range(700):
        yield f"{H}/a/{n}", n
        for _ in range(2):
            partner = chance.random() < 0.02
            token = f"aff{chance.randrange(9999)}" if partner else f"{chance.getrandbits(24):06x}"
            yield f"{H}/a/{n}?ref={token}", (n, "partner") if partner else n


def towns(chance: random.Random) -> Site:
    """Shops as seen from towns: one in twenty offers something else in each; one town is lucky for a hundred shops."""
    for n in range(400):
        differs = chance.random() < 0.05
        yield f"{H}/store/{n}", (n, 0)
        for town in chance.sample(["paris", "rome", "oslo", "bern", "riga"], 3):
            yield f"{H}/store/{n}?city={town}", (n, town if differs else 0)


def hosts(chance: random.Random) -> Site:
    """Articles under four sites, of which the one for print shows more of a few."""
    for n in range(500):
        differs = chance.random() < 0.03
        yield f"http://www.h.com/a/{n}", n
        for share, site in ((0.7, "http://print.h.com"), (0.5, "https://www.h.com"), (0.5, "http://h.com")):
            if chance.random() < share:
                yield f"{site}/a/{n}", (n, "print") if differs and "print" in site else n


def manuals(chance: random.Random) -> Site:
    """A manual under two names, whose pages are all the same."""
    for n in range(300):
        for version in ("current", "2.4"):
            yield f"{H}/docs/{version}/chapter-{n % 10}/page-{n}.html", n


def library(chance: random.Random) -> Site:
    """Records with their branches, of which one in ten differs by branch; searches that lead to the same records."""
    for n in range(240):
        several = chance.random() < 0.1
        yield f"{H}/record?id={n}", n
        yield f"{H}/record?id={n}&from={chance.randrange(9)}", n
        for branch in ("central", "harbour", "north"):
            for tab in ("", "&tab=details"):
                yield f"{H}/record?id={n}&branch={branch}{tab}", (n, branch) if several else n


def magazine(chance: random.Random) -> Site:
    """Articles under titles that changed; pictures behind the number of their gallery; variants that seldom differ."""
    for n in range(400):
        for _ in range(chance.randrange(1, 4)):
            yield f"{H}/news/{n}-title-{chance.randrange(999)}", n
    for n in range(100):
        for picture in "abc":
            yield f"{H}/gallery/{n}-{picture}", ("picture", n, picture)
        yield f"{H}/about/our-{n}", ("about", n)
    for n in range(300):
        differs = chance.random() < 0.1
        for colour in ("red", "blue"):
            yield f"{H}/goods/{n}-{colour}", ("goods", n, colour if differs else "")


def forum(chance: random.Random) -> Site:
    """Threads of several pages under titles that changed; members' posts; lists whose number says which page it is."""
    for n in range(300):
        for page in range(1, 1 + (n % 3 == 0) * 2 + 1):
            for _ in range(chance.randrange(1, 4)):
                rest = f"page-{page}" if page > 1 else ""
                yield f"{H}/threads/title-{chance.randrange(999)}.{n}/{rest}", ("thread", n, page)
    for n in range(150):
        yield f"{H}/members/name{n}.{n}/", ("member", n)
    for n in range(60):
        for page in range(1, 5):
            yield f"{H}/tags/word{n}.{page}", ("tag", n, page)
            yield f"{H}/tags/word{n}-{page}.html", ("tag", n, page)


def framework(chance: random.Random) -> Site:
    """Names and values in the path: sessions and tabs that do not matter, pages that do, editions that seldom do."""
    for n in range(300):
        item, edited = f"{H}/shop/view/id/{n}", chance.random() < 0.1
        yield item, ("item", n)
        yield f"{item}/sid/{chance.randrange(10**6)}", ("item", n)
        yield f"{item}/edition/new", ("item", n, edited)
        yield f"{item}/tab/{chance.choice(('info', 'text'))}", ("item", n)
    for n in range(60):
        for page in range(1, 5):
            rest = f"/page/{page}"
            yield f"{H}/shop/list/cat/{n}{rest}", ("list", n, page)
            yield f"{H}/shop/list/cat/{n}{rest}/sid/{chance.randrange(10**6)}", ("list", n, page)
        yield f"{H}/shop/list/cat/{n}", ("list", n, 1)


def sessions(chance: random.Random) -> Site:
    """Pages under a session that every link bears; beside no identifier it is what names a page that was shared."""
    for n in range(400):
        for _ in range(chance.randrange(1, 4)):
            yield f"{H}/view.cgi?s=session-{chance.getrandbits(40):x}&id={n}", n
        if n % 4 == 0:
            yield f"{H}/view.cgi?s=shared-{n:04}", ("shared", n)


def boards(chance: random.Random) -> Site:
    """Topics whose first page bears its number or none; a board itself shows what is new, under numbers its topics."""
    for n in range(300):
        topic = f"{H}/forum/board/name-{n % 12}/topic/words-{n}/"
        yield topic, n
        yield f"{topic}?page=1", n
        if n % 4 == 0:
            yield f"{topic}?page=2", (n, 2)
    for board in range(12):
        yield f"{H}/forum/board/name-{board}/", ("new", board)
        yield f"{H}/forum/board/name-{board}/?page=1", ("topics", board)
        yield f"{H}/forum/board/name-{board}/?page=2", ("topics", board, 2)


#: Site, seed of its order, and the share of its pages that rules save at least (0: nothing there is a rule, or little).
#: The last three are in an order in which what differs comes late: 50 trials and more agree before it does.
SITES: tuple[tuple[Callable[[random.Random], Site], int, float], ...] = (
    (wiki, 0, 0.25),
    (shop, 0, 0.05),
    (blog, 0, 0.1),
    (mailing_list, 0, 0.0),
    (code_browser, 0, 0.0),
    (listings, 0, 0.15),
    (calendar, 0, 0.0),
    (versions, 0, 0.0),
    (languages, 0, 0.0),
    (regions, 0, 0.0),
    (manuals, 0, 0.3),
    (library, 0, 0.0),
    (magazine, 0, 0.1),
    (forum, 0, 0.1),
    (framework, 0, 0.2),
    (sessions, 0, 0.2),
    (boards, 0, 0.15),
    (referrers, 2, 0.0),
    (hosts, 1, 0.0),
    (towns, 0, 0.0),
)


def crawl_of(site: Callable[[random.Random], Site], seed: int) -> list[CrawlRow]:
    numbers: dict[object, int] = {}
    rows: dict[str, CrawlRow] = {}
    for url, content in site(random.Random(seed)):
        rows.setdefault(url, CrawlRow(url, numbers.setdefault(content, len(numbers))))
    return list(rows.values())


@pytest.mark.parametrize(("site", "seed", "least"), SITES, ids=[site.__name__ for site, _, _ in SITES])
def test_what_is_skipped_is_known_and_nothing_is_lost(
    site: Callable[[random.Random], Site], seed: int, least: float
) -> None:
    rows = crawl_of(site, seed)
    line = replay(rows, "random", seed)
    assert line["lost_contents"] <= max(0.001, 1 / len({row.content for row in rows}))
    assert line["skip_precision"] >= 0.99
    assert line["reduction"] >= least
