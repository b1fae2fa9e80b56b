"""A small web site on loopback that writes down every request; what it shows is a function of the URL alone."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

PAGES = 30
#: Seconds that a slow page takes.
SLOW = 1.5

ODD = {
    "/odd/empty": b"",
    "/odd/nul": b"<html><body>\0\0a\0b</body></html>" * 10,
    "/odd/binary": bytes(range(256)) * 200,
    "/odd/png": b"\x89PNG\r\n\x1a\n" + bytes(1000),
    "/odd/latin": "<p>Größe für alle und immer wieder</p>".encode("latin-1"),
    "/odd/deep": b"<div>" * 50_000 + b"text",
    "/odd/unclosed": b"<html><body><a href='/<<<' <p",
    "/odd/long": b"<p>" + b"word " * 2_000_000,
}
LONG = "/page/1?long=" + "x" * 9_000


def prose(name: str, paragraphs: int = 3) -> str:
    chance = random.Random(name)
    words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(3, 9))) for _ in range(300)]
    return "".join(f"<p>{' '.join(chance.choices(words, k=60))}.</p>" for _ in range(paragraphs))


def html(title: str, body: str, links: list[str]) -> bytes:
    anchors = "".join(f'<li><a href="{link}">a link</a></li>' for link in links)
    return (
        f"<html><head><title>{title}</title></head><body><main>{body}</main><ul>{anchors}</ul></body></html>".encode()
    )


class Site:
    """The running site: its address, how often each path was asked for, and when last (Unix seconds)."""

    def __init__(self) -> None:
        self.hits: Counter[str] = Counter()
        self.asked_at: dict[str, float] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.hits[self.path] += 1
                site.asked_at[self.path] = time.time()
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path.startswith("/slow/"):
                    time.sleep(SLOW)
                status, headers, body = answer(self.path)
                self.send_response(status)
                length = str(len(body) + (1000 if self.path.startswith("/cut") else 0))
                for name, value in {"Content-Type": "text/html", **headers, "Content-Length": length}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.url = f"http://{self.host}"

    def pages(self) -> Counter[str]:
        """Return the hits on pages by their query's ``sid`` (or "")."""
        found: Counter[str] = Counter()
        for path, hits in self.hits.items():
            if path.startswith("/page/"):
                found[parse_qs(urlsplit(path).query).get("sid", [""])[0]] += hits
        return found


def answer(path: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of a path."""
    parts = urlsplit(path)
    name = parts.path
    if name == "/":
        return 200, {}, html("start", prose("start"), [f"/page/{n}" for n in range(PAGES)] + ["/second"])
    if name == "/second":
        return 200, {}, html("second", prose("second"), [f"/page/{n}?sid=s{n}" for n in range(PAGES)])
    if name.startswith("/slow/") and "bad" in parts.query:
        return 404, {}, html("missing", "<p>nothing here</p>", [])
    if name == "/slow/redir":
        return 302, {"Location": "/page/5"}, b""
    if "file=image" in parts.query:
        return 200, {"Content-Type": "image/png"}, b"\x89PNG\r\n\x1a\n" + bytes(200)
    if name == "/leave":  # all alike, and each leads to another page
        return 200, {}, html("leave", "<p>You are about to leave this part of our site.</p>", [f"/{parts.query[3:]}"])
    if name == "/leaves":
        return 200, {}, html("leaves", prose("leaves"), [f"/leave?to=page/{n}" for n in range(PAGES)])
    if name == "/downloads":
        return 200, {}, html("leaves", prose("leaves"), [f"/leave?to=image.png?{n}" for n in range(PAGES)])
    if name.startswith("/calendar/"):
        return 200, {}, html("calendar", prose(name if name.endswith("-31") else "calendar"), [])
    if name.startswith("/members/") and not parts.query:  # for who has no session
        return 302, {"Location": "/login"}, b""
    if name.startswith("/round/") and not parts.query:  # to itself by way of another page, as no session is taken
        return 302, {"Location": "/members/round?to=" + name.removeprefix("/round/")}, b""
    if name == "/members/round":
        return 302, {"Location": "/round/" + parts.query[3:]}, b""
    if name.startswith("/page/") and parts.query == "sid=asked-too-often":
        return 200, {}, html("slow down", prose("slow down"), [])
    if name.startswith(("/page/", "/slow/", "/members/", "/round/")):
        return 200, {}, html(name, prose(name), [])
    if name.startswith("/near/"):
        return 200, {}, html("near", prose("near", 12) + f"<p>{name}</p>", [])
    if name.startswith("/redir/"):
        return 302, {"Location": f"/page/{name.rsplit('/', 1)[1]}?{parts.query}"}, b""
    if name.startswith("/edit/"):
        return 302, {"Location": f"/login?next={name}"}, b""
    if name.startswith("/vote/"):
        return 303, {"Location": "/login#form"}, b""
    if name.startswith(("/refresh/", "/late/")):  # sends its reader on, at once or after a while
        seconds = 0 if name.startswith("/refresh/") else 1000
        refresh = f'<meta http-equiv="refresh" content="{seconds}; url=/page/{name.rsplit("/", 1)[1]}">'
        return 200, {}, f"<html><head>{refresh}</head><body>{prose(name)}</body></html>".encode()
    if name == "/refresh-to-nothing":
        return 200, {}, b'<meta http-equiv="refresh" content="0; url=http://[">'
    if name == "/in-no-charset":
        return 200, {"Content-Type": "text/html; charset=zip"}, prose(name).encode()
    if name == "/login":
        return 200, {}, html("members", prose("login"), [])
    if name == "/to-image":
        return 302, {"Location": "/image.png?led"}, b""
    if name == "/abroad":
        return 302, {"Location": "http://elsewhere.example/"}, b""
    if name == "/nowhere":
        return 302, {"Location": "http://["}, b""
    if name == "/robots.txt":
        return 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /private\n"
    if name == "/image.png":
        return 200, {"Content-Type": "image/png"}, b"\x89PNG\r\n\x1a\n" + bytes(100)
    if name == "/cut":  # the server promises more than comes
        return 200, {"Connection": "close"}, html("cut", prose("cut"), [])
    if name == "/range":
        return 206, {}, html("range", prose("range"), [])
    if name == "/empty":
        return 200, {}, b""
    if name == "/soft":
        return 200, {}, html("404 Not Found", "<p>There is no such page here, sorry.</p>", [])
    if name == "/broken":
        return 500, {}, html("broken", prose("broken"), [])
    if name in ODD:
        return 200, {}, ODD[name]
    return 404, {}, html("missing", "<p>nothing here</p>", [])


@contextmanager
def running() -> Iterator[Site]:
    site = Site()
    thread = Thread(target=site.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        site.server.server_close()
