"""How fast a page becomes a sketch, beside the parser alone and beside the peers, in one run.

Each round runs every subject once over the same pages, so that what else the machine does falls on all alike; the
figures are medians of the rounds. Pages: the manual and API pages of ``../shared/pages`` where they are, else pages
generated here. Texts: the visible text of those pages, for the peers cut into 10-word shingles in their own way.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from clusterd_crawler import text
from clusterd_crawler.core import compiled
from clusterd_crawler.page import sketch_page
from clusterd_crawler.sketch import TEXT, sketch_text
from selectolax.lexbor import LexborHTMLParser

from benchmarks.results import Row, result

PAGES = Path(__file__).resolve().parent.parent.parent / "shared" / "pages"
ROUNDS = 7
COUNT = 600
#: Values in a peer's signature. Fewer than ours (192 to 400), which favours the peers.
PERMUTATIONS = 128


def pages() -> list[bytes]:
    """Pages to sketch, in UTF-8 and English, so that words are what every peer takes them for."""
    found = []
    for name in ("httpd_manual_versions", "boost_distinct"):
        path = PAGES / name / "pages.jsonl.gz"
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                rows = [row for row in map(json.loads, lines) if row.get("lang", "en") == "en" and "html" in row]
            found += [row["html"].encode() for row in rows[: COUNT // 2]]
    return found or generated(COUNT)


def generated(count: int) -> list[bytes]:
    """Documentation-like pages: about 1,000 words, headings, lists, links, a menu."""
    chosen = random.Random(1)
    words = ["".join(chosen.choices("etaoinshrdlucmfwypvbgk", k=chosen.randint(2, 10))) for _ in range(8000)]

    def sentence() -> str:
        return " ".join(chosen.choices(words, k=12)).capitalize() + "."

    def section(number: int) -> str:
        items = "".join(f'<li><a href="p{n}.html">{sentence()}</a></li>' for n in range(4))
        body = "".join(f"<p>{sentence()} <code>{chosen.choice(words)}</code> {sentence()}</p>" for _ in range(4))
        return f'<div class="section"><h2 id="s{number}">{sentence()}</h2>{body}<ul>{items}</ul></div>'

    menu = "<nav><ul>" + "".join(f'<li><a href="{n}.html">{words[n]}</a></li>' for n in range(30)) + "</ul></nav>"
    return [
        f"<!DOCTYPE html><html><head><title>{sentence()}</title></head><body>{menu}"
        f"{''.join(section(n) for n in range(7))}<footer>{words[0]}</footer></body></html>".encode()
        for _ in range(count)
    ]


def measure(subjects: dict[str, Callable[[Any], object]], inputs: dict[str, Sequence[Any]]) -> dict[str, float]:
    """Documents a second of each subject, medians of alternating rounds; processor time, not the clock's."""
    seconds: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(ROUNDS):
        for name, subject in subjects.items():
            started = time.process_time()
            for one in inputs[name]:
                subject(one)
            seconds[name].append((time.process_time() - started) / len(inputs[name]))
    return {name: 1 / statistics.median(values) for name, values in seconds.items()}


def _rensa() -> Callable[[str], object]:
    from rensa import RMinHash

    def sketch(document: str) -> object:
        words = document.split()
        made = RMinHash(num_perm=PERMUTATIONS, seed=42)
        made.update([" ".join(words[i : i + 10]) for i in range(max(1, len(words) - 9))])
        return made.digest()

    return sketch


def _gaoya() -> Callable[[str], object]:
    from gaoya.minhash import MinHashStringIndex

    index = MinHashStringIndex(
        hash_size=64,
        jaccard_threshold=0.5,
        num_bands=32,
        band_size=4,
        analyzer="word",
        lowercase=True,
        ngram_range=(10, 10),
    )
    return index.query  # on an empty index: tokens, shingles and signature, nothing to find


def _datasketch() -> Callable[[str], object]:
    from datasketch import MinHash

    def sketch(document: str) -> object:
        words = document.split()
        made = MinHash(num_perm=PERMUTATIONS)
        made.update_batch([" ".join(words[i : i + 10]).encode() for i in range(max(1, len(words) - 9))])
        return made

    return sketch


def _page(body: bytes) -> object:
    return sketch_page("http://example.org/page", body, "text/html; charset=utf-8", fetched_at=0)


def _without_core(function: Callable[[Any], object]) -> Callable[[Any], object]:
    def called(argument: Any) -> object:
        core, compiled.CORE = compiled.CORE, None
        try:
            return function(argument)
        finally:
            compiled.CORE = core

    return called


def run() -> list[Row]:
    """Measure; returns rows for ``.bench/results.json``."""
    bodies = pages()
    texts = [text.plain(text.marked_text(body)[0]) for body in bodies]
    few = texts[: len(texts) // 3]

    def ours(document: str) -> object:
        return sketch_text(document, TEXT)

    subjects: dict[str, Callable[[Any], object]] = {
        "parse": LexborHTMLParser,
        "page": _page,
        "compiled": ours,
        "numpy": _without_core(ours),
        "rensa": _rensa(),
        "gaoya": _gaoya(),
        "datasketch": _datasketch(),
    }
    inputs: dict[str, Sequence[Any]] = {"parse": bodies, "page": bodies, "compiled": few * 3, "numpy": few}
    inputs |= {"rensa": few, "gaoya": few, "datasketch": few[:40]}
    rates = measure(subjects, inputs)
    rows = [_row("HTML → sketch", "page", rates, "parse", "lexbor's bare parse")]
    for ours_name in ("compiled", "numpy"):
        rows += [_row("text → sketch", ours_name, rates, peer, peer) for peer in ("rensa", "gaoya", "datasketch")]
    return rows


def _row(work: str, subject: str, rates: dict[str, float], peer: str, called: str) -> Row:
    ratio = round(rates[subject] / rates[peer], 2)
    return result(
        work, f"clusterd, {subject}", round(rates[subject]), "documents/s", f"{called}: {round(rates[peer])}", ratio
    )


if __name__ == "__main__":
    for row in run():
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
