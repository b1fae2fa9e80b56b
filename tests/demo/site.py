"""A web site on loopback with the habits of real ones. It knows nothing of clusterd.

What it shows is a function of `resolve`: a URL → the page's content and how it is dressed. The harness asks the same
function which content a URL has, so that a skip can be judged.

Habits: session ids in links (forum), tracking parameters (everywhere), a sort order that links carry along (shop
items), printable views (blog), index.html and case variants (docs), moved pages with a redirect and without, a login
wall (forum), and what must not be merged: paginated lists, lists sorted another way, look-alike product pages.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qsl, urlsplit

TOPICS = 60
ITEMS = 80
POSTS = 70
GUIDES = 50
#: Different session ids that the forum hands out, and places that tracked links come from.
SESSIONS = 24
SOURCES = ("newsletter", "home", "feed", "partner")
SORTS = ("price", "name", "newest")
PER_LIST = 10

SYLLABLES = tuple("kalomirentushavorbelinaostdrafengulhepjinquasedwylzanpre"[n : n + 3] for n in range(0, 54, 3))


@dataclass(frozen=True)
class Shown:
    """What a URL answers: a status, the content's name, and how it is dressed."""

    content: str
    title: str = ""
    paragraphs: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    #: Without navigation and footer: a printable view.
    bare: bool = False
    status: int = 200
    location: str = ""


MISSING = Shown("missing", "Not found", ("There is no such page.",), status=404)


@cache
def prose(name: str, paragraphs: int = 4) -> tuple[str, ...]:
    """Return text that belongs to a name: the same name, the same words."""
    chance = random.Random(name)
    words = ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 3))) for _ in range(400)]
    return tuple(" ".join(chance.choices(words, k=chance.randint(40, 70))) + "." for _ in range(paragraphs))


def session(chance: str) -> str:
    """Return the session id that a visitor gets on a page: one of a few, as if several robots came."""
    return f"{random.Random(hash_of(chance) % SESSIONS).getrandbits(128):032x}"


def hash_of(text: str) -> int:
    """Return a number that depends on the text alone."""
    return sum(ord(letter) * (place + 7) for place, letter in enumerate(text))


def resolve(url: str) -> Shown:
    """Return what the site shows under a URL (path and query)."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    path = parts.path
    if path.startswith("/forum/"):
        return _forum(path, query)
    if path.startswith("/shop/"):
        return _shop(path, query)
    if path.startswith("/blog/"):
        return _blog(path, query)
    if path.lower().startswith("/docs/"):
        return _docs(path.lower())
    if path.startswith("/old/"):
        return Shown("moved", status=301, location=f"/docs/guide{path.removeprefix('/old/')}/")
    return _home() if path in {"/", "/index.html"} else MISSING


def _home() -> Shown:
    links = ["/forum/index.php", "/shop/list?page=1", "/blog/?page=1", "/docs/", "/index.html"]
    links += [f"/blog/post-{n}?utm_source={SOURCES[n % 4]}&utm_medium=link" for n in range(0, POSTS, 5)]
    return Shown("home", "A site like others", prose("home"), tuple(links))


def _forum(path: str, query: dict[str, str]) -> Shown:
    sid = session(path + str(sorted(query.items())))
    if path == "/forum/index.php":
        links = [f"/forum/viewtopic.php?t={n}&sid={sid}" for n in range(TOPICS)]
        return Shown("forum", "Forum", prose("forum"), (*links, f"/forum/index.php?sid={sid}"))
    if path == "/forum/viewtopic.php" and query.get("t", "").isdigit() and int(query["t"]) < TOPICS:
        topic = int(query["t"])
        near = [(topic + step) % TOPICS for step in (1, 7, 31)]
        links = [f"/forum/viewtopic.php?t={n}&sid={sid}" for n in near]
        links += [f"/forum/posting.php?mode=reply&t={topic}&sid={sid}", f"/forum/viewtopic.php?t={topic}"]
        return Shown(f"topic {topic}", f"Topic {topic}", prose(f"topic {topic}"), tuple(links))
    if path == "/forum/posting.php":
        words = prose("login", 1)[0]
        return Shown("login", "Log in", (f"You must be logged in to post. {words}",), (f"/forum/index.php?sid={sid}",))
    return MISSING


def _shop(path: str, query: dict[str, str]) -> Shown:
    pages = -(-ITEMS // PER_LIST)
    if path == "/shop/list" and query.get("page", "").isdigit() and 1 <= int(query["page"]) <= pages:
        page, sort = int(query["page"]), query.get("sort", "newest")
        items = list(range((page - 1) * PER_LIST, page * PER_LIST))
        items.sort(key=lambda n: {"price": hash_of(f"{n} p") % 97, "name": hash_of(f"{n} n") % 89}.get(sort, n))
        links = [f"/shop/item?id={n}&sort={sort}&page={page}" for n in items]
        links += [f"/shop/list?page={page}&sort={other}" for other in SORTS]
        links += [f"/shop/list?page={step}" for step in (page - 1, page + 1) if 1 <= step <= pages]
        text = tuple(f"Article {n}: {prose(f'item {n}', 1)[0]}" for n in items)
        return Shown(f"list {page} by {items}", f"Articles, page {page}", text, tuple(links))
    if path == "/shop/item" and query.get("id", "").isdigit() and int(query["id"]) < ITEMS:
        number = int(query["id"])
        # Look-alikes: one text for all, the name and the measures differ.
        text = (
            *prose("warranty", 3),
            f"{prose(f'item {number}', 1)[0]}",
            f"Length {number + 11} cm, weight {3 * number + 7} g, price {number}.99.",
        )
        links = (f"/shop/item?id={(number + 1) % ITEMS}&sort=related", f"/shop/item?id={number}&ref=mail")
        return Shown(f"item {number}", f"Article {number}", text, links)
    return MISSING


def _blog(path: str, query: dict[str, str]) -> Shown:
    pages = -(-POSTS // PER_LIST)
    if path == "/blog/" and query.get("page", "1").isdigit() and 1 <= int(query.get("page", "1")) <= pages:
        page = int(query.get("page", "1"))
        posts = range((page - 1) * PER_LIST, min(POSTS, page * PER_LIST))
        links = [f"/blog/post-{n}?utm_source={SOURCES[n % 4]}" for n in posts] + [f"/blog/post-{n}" for n in posts]
        links += [f"/blog/?page={step}" for step in range(1, pages + 1)]
        return Shown(f"blog {page}", f"Blog, page {page}", tuple(prose(f"post {n}", 1)[0] for n in posts), tuple(links))
    number = path.removeprefix("/blog/post-").removeprefix("/blog/archive/post-")
    if number.isdigit() and int(number) < POSTS:
        post = int(number)
        links = [f"/blog/post-{post}?print=1", f"/blog/archive/post-{post}"]
        links += [f"/blog/post-{(post + step) % POSTS}?utm_source={SOURCES[(post + step) % 4]}" for step in (1, 9)]
        links += [f"/blog/post-{(post + 3) % POSTS}?utm_source=feed&utm_medium=rss"]
        text = prose(f"post {post}", 5)
        return Shown(f"post {post}", f"Post {post}", text, tuple(links), bare=query.get("print") == "1")
    return MISSING


def _docs(path: str) -> Shown:
    name = path.removeprefix("/docs/").removesuffix("index.html").strip("/")
    if not name:
        links = [f"/docs/guide{n}/" for n in range(GUIDES)] + [f"/old/{n}" for n in range(0, GUIDES, 4)]
        return Shown("docs", "Documentation", prose("docs"), (*links, "/docs/index.html"))
    number = name.removeprefix("guide")
    if number.isdigit() and int(number) < GUIDES:
        guide = int(number)
        links = [
            f"/docs/guide{guide}/index.html",
            f"/Docs/Guide{guide}/",
            f"/docs/guide{(guide + 1) % GUIDES}/index.html",
        ]
        links += [f"/Docs/Guide{(guide + 5) % GUIDES}/"]
        return Shown(f"guide {guide}", f"Guide {guide}", prose(f"guide {guide}", 6), tuple(links))
    return MISSING


NAVIGATION = '<nav><a href="/">Home</a> <a href="/forum/index.php">Forum</a> <a href="/shop/list?page=1">Shop</a></nav>'


def render(shown: Shown) -> bytes:
    """Return the page as HTML."""
    text = "\n".join(f"<p>{paragraph}</p>" for paragraph in shown.paragraphs)
    links = "".join(f'<li><a href="{link.replace("&", "&amp;")}">more</a></li>' for link in shown.links)
    head = f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>{shown.title}</title></head><body>"
    main = f"<main><h1>{shown.title}</h1>\n{text}</main>"
    if shown.bare:
        return f"{head}{main}</body></html>".encode()
    tail = f"<aside class='sidebar'><ul>{links}</ul></aside><footer>All rights reserved.</footer></body></html>"
    return f"{head}{NAVIGATION}{main}{tail}".encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without this, small answers wait for the client's delayed acknowledgement (40 ms a page).
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        shown = resolve(self.path)
        body = b"" if shown.status == 301 else render(shown)
        self.send_response(shown.status)
        if shown.location:
            self.send_header("Location", shown.location)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the terminal for the demo."""


@contextmanager
def serve(port: int = 0) -> Iterator[str]:
    """Serve the site on loopback; yield its address without a trailing slash."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
