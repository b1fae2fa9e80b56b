"""The compiled cores under the sanitizers: pages, sketches, postings and replies made at random, and damaged.

``python -m tests.fuzz_cores [SECONDS] [SEED]`` compiles the cores with GCC's sanitizers into ``.fuzz`` and feeds them
for a minute, or so long: what reads or writes beyond its memory, or does what C leaves open, ends it with a report.
Whatever the bytes, a core answers, or raises what says that the input was wrong.
"""

from __future__ import annotations

import os
import random
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / ".fuzz"
FLAGS: Final = "-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined"
PACKAGES: Final = ("clusterd_crawler.core", "clusterd_consumer.core", "clusterd.clusters.redis")
#: What a core raises where its input is wrong.
REFUSED: Final = (ValueError, TypeError, OverflowError, LookupError, MemoryError)

ELEMENTS: Final = (
    *("a", "b", "body", "div", "frameset", "head", "iframe", "li", "main", "math", "meta", "nav", "noscript", "object"),
    *("option", "p", "plaintext", "pre", "script", "select", "style", "svg", "table", "td", "template", "textarea"),
    *("h1", "text", "title", "ul", "video", "x-y"),
)
ATTRIBUTES: Final = (
    *("class='nav menu'", "style=display:none", "id=footer", "hidden", "role=navigation", "href='/x?y=1&amp;z'"),
    *("src=a.png", 'data-x="<p>"', "charset=big5", "content='text/html; charset=utf-16'", "rel=canonical href=/c", ""),
)
ODD: Final = (
    *("&amp;", "&#x41;", "&#65", "&#xD800;", "&#x110000;", "&nbsp", "&notit;", "&", "&#", "&#128;", "&bne;", "<a b='"),
    *("<!--", "-->", "<![CDATA[", "]]>", "<!doctype x>", "<?php", "<", "</", "<!", "\r\n", "\x0c", " " * 40),
)
LETTERS: Final = (
    "abc XYZ 09_-é\u0301漢字ไทยעברمر\u200b\u00ad\ufb01ﾞ\u0345\ud800\udfff\U0001f600\U00020000\u1e9eİß\0\1\2\n\t&<>;'\"="
)


class Maker:
    """Makes inputs of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, *choices: Any) -> Any:
        """Return one of these."""
        return self.random.choice(choices)

    def bytes(self, *sizes: int) -> bytes:
        """Return random bytes, as many as one of these sizes."""
        return self.random.randbytes(self.of(*sizes))

    def word(self) -> str:
        """Return letters of several scripts, some of them such as change what stands beside them."""
        return "".join(self.random.choices(LETTERS, k=self.random.randint(1, 12)))

    def piece(self) -> str:
        """Return a piece of markup."""
        element = self.of(*ELEMENTS)
        return str(self.of(self.word(), f"<{element} {self.of(*ATTRIBUTES)}>", f"</{element}>", self.of(*ODD)))

    def page(self) -> bytes:
        """Return a page, now and then damaged."""
        text = "".join(self.piece() for _ in range(self.of(0, 3, 30, 300, 2000)))
        return self.damaged(text.encode(self.of("utf-8", "utf-16-le"), "surrogatepass"))

    def damaged(self, data: bytes) -> bytes:
        """Return these bytes with some of them changed, cut off, or others behind them."""
        made = bytearray(data)
        for _ in range(self.of(0, 0, 1, 3, 30) if made else 0):
            made[self.random.randrange(len(made))] ^= 1 << self.random.randrange(8)
        end = self.random.randint(0, len(made)) if self.random.random() < 0.2 else len(made)
        return bytes(made[:end]) + (self.bytes(1, 9) if self.random.random() < 0.1 else b"")

    def reply(self) -> bytes:
        """Return what Redis may answer to reads of several keys, now and then damaged."""
        found = [
            self.of(None, self.bytes(0, 1, 4, 7, 14, 70, 257, 711), b"\xff" * 8) for _ in range(self.of(0, 1, 9, 60))
        ]
        strings = [b"$-1\r\n" if one is None else b"$%d\r\n%b\r\n" % (len(one), one) for one in found]
        return self.damaged(b"*%d\r\n%b" % (len(found), b"".join(strings)))


def feed(make: Maker) -> None:
    """Feed each function of each core once or some times."""
    for core in (_pages, _sketches, _postings):
        core(make)


def _tried(function: Callable[..., Any], *arguments: Any) -> Any:
    with suppress(*REFUSED):
        return function(*arguments)
    return None


def _pages(make: Maker) -> None:
    from clusterd.clusters.redis import _versions
    from clusterd_crawler.core import _core
    from clusterd_crawler.page import sketch_page

    page = make.page()
    made = _tried(sketch_page, "http://h/x", page, make.of("text/html", "application/xhtml+xml", "text/plain"))
    if made:
        _tried(_versions.pack, [made] * make.of(1, 3), lambda crawl, sweep: make.bytes(6, 6, 5))
    for text in (page, make.word() * make.of(0, 50), make.bytes(0, 300)):
        kept = (
            make.of(0, 1, 2),
            make.of(1, 25, 192, 1 << 20),
            make.of(0, 3, 400),
            make.of(0, 1600),
            make.of(True, False),
        )
        _tried(_core.sketch, text, make.of(True, False), make.of(True, False), make.of(1, 2, 10, 1 << 20), *kept)
    _tried(_core.walk, page, make.of(True, False), lambda value: make.of(b"", b"x", "é".encode() * 20))
    _tried(_core.at_hand, page)
    _tried(_core.pack, make.bytes(0, 8, 400, 401))


def _sketches(make: Maker) -> None:
    from clusterd_consumer.core import _verify
    from clusterd_crawler.sketch import StreamSketch

    size, width = make.of(0, 1, 2, 7, 190, 400, 1000), make.of(4, 12, 40, 64)
    values = [make.random.getrandbits(width) for _ in range(size)]
    packed = b"".join(value.to_bytes(8, "little") for value in make.of(sorted(set(values)), sorted(values), values))
    stream = StreamSketch(make.damaged(packed), make.of(len(packed) // 8, 10**6), 5, 1, make.bytes(0, 128, 5))
    bits = make.of(11, 15, make.random.randint(10, 24))
    posted = make.of(0, 6, 8), make.of(0, 8), make.of(0, 64), make.of(0, 1, 63, 64)
    stored = _tried(_verify.pack, [stream], bits, make.of(0, 1), make.of(1, 3), *posted)
    for _ in range(8):
        query = make.damaged(stored[0][0]) if stored else make.bytes(0, 4, 8, 200)
        others = [make.damaged(query), make.bytes(4, 90)]
        _tried(_verify.judge, query, others, bits)
        _tried(_verify.counts, query, others, bits)
        _tried(_verify.values, query, bits)
        _tried(_verify.keys, query, bits, make.of(0, 6), make.of(0, 1, 64), 1)
        _tried(_verify.supers, query, bits, make.of(1, 2, 100), make.of(0, 6, 50), 1)


def _postings(make: Maker) -> None:
    from clusterd_consumer.core import _buckets, _replies

    documents = [
        (make.random.getrandbits(make.of(8, 32)), make.bytes(0, 4, 40, 80, 9)) for _ in range(make.of(0, 1, 6))
    ]
    plan = _tried(_buckets.plan, b"p:", b"l", documents, make.of(1, 16, 1 << 20), make.of(0, 3), make.of(1, 4))
    for steps in [part for part in plan or () if isinstance(part, bytes)]:
        _tried(
            _buckets.find, make.damaged(steps), make.reply(), len(documents), make.of(0, 1, 16), make.of(True, False)
        )
        _tried(_buckets.strikes, make.damaged(steps), make.reply())
    _tried(_buckets.split, make.of(None, make.bytes(0, 7, 64)), make.random.getrandbits(31), make.random.randint(0, 31))
    sketches = [(make.random.getrandbits(32), make.bytes(0, 4, 90, 2000)) for _ in range(make.of(0, 1, 9))]
    _tried(_buckets.fill, sketches, make.of(1, 64, 4096))
    _tried(_buckets.pick, make.bytes(0, 4, 40, 41), make.of(1, 64, 4096), make.reply())
    reply = make.reply()
    _tried(_replies.ends, reply, make.of(0, len(reply) // 2), len(reply), make.of(0, 1, 9))


def _sanitized() -> None:
    """Compile the cores with the sanitizers and begin anew with these: their own memory has to be there first."""
    os.environ["CFLAGS"] = FLAGS
    build = runpy.run_path(str(ROOT / "crawler" / "build_core.py"))
    sources = [source for package in build["PACKAGES"] for source in (ROOT / package).glob("_*.c")]
    if len(build["compile_cores"](ROOT, FOLDER)) < len(sources):
        sys.exit("a core does not compile with the sanitizers, and what would be fed in its place has none")
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    # (Python frees little when it ends, and a page may ask for more than there is.)
    told = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "PYTHONMALLOC": "malloc"}
    environment = os.environ | told | {"LD_PRELOAD": library.stdout.strip()}
    os.execve(sys.executable, [sys.executable, "-m", "tests.fuzz_cores", *sys.argv[1:]], environment)


def _take_the_sanitized() -> None:
    """Let the packages find their cores in the folder of those."""
    for name in PACKAGES:
        package = import_module(name)
        place = Path(package.__path__[0]).relative_to(ROOT)
        package.__path__.insert(0, str(FOLDER / place))


def main(seconds: float = 60, seed: int = 1) -> None:
    """Feed the cores for so long."""
    _take_the_sanitized()
    make, until, rounds = Maker(int(seed)), time.monotonic() + float(seconds), 0
    while time.monotonic() < until:
        feed(make)
        rounds += 1
    print(f"{rounds} rounds: nothing beyond its memory, and nothing that C leaves open")


if __name__ == "__main__":
    if "PYTHONMALLOC" not in os.environ:
        _sanitized()
    main(*map(float, sys.argv[1:]))
