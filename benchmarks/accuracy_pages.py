"""How right the sketches are, on the real pages of ``../shared/pages``: against exact Jaccard, and against known truth.

- pairs: 5,298 pages and articles, with 1,500 edited copies of them (words replaced, inserted, dropped, parts moved),
  every pair by exact sets of 10-shingles of the main text; recall and precision at r ≥ .5 and ≥ .9 of the estimate from
  sketches alone (what the postings miss is another benchmark's), with and without the pairs of equal text, which
  identities find; and of ``clusterd pairs``, which reads the texts again.
- manual: best match of each page of version 2.0 among all pages of all languages of 2.4, by the resemblance of the main
  texts, then (where no page shares a shingle of it) of the whole.
- boost: pairs of different items that the main sketches call near (r ≥ .9) though the words of their bodies differ.
- CJK: containment of the chapters of the Debian Developer's Reference, in Japanese, in its edition on one page, as
  Debian ships both (``apt-get install developers-reference-ja``); left out where the package is not installed.
- wrapped: containment of CJK chapters in a book that is put together from them and wrapped anew.
- licences, articles, answers, tldr: what a threshold finds, and what it misses.

Nothing here chooses a setting: the profiles are those of `clusterd_crawler.sketch`.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from clusterd.batch import pairs, whole_profile
from clusterd_consumer.resemblance import Estimate, estimate, ratios
from clusterd_crawler import text
from clusterd_crawler.fingerprints import Values, fingerprints
from clusterd_crawler.page import sketch_page, sketch_plain
from clusterd_crawler.sketch import COMPACT, SHORT, TEXT, Profile, Sketch, StreamSketch, sketch_hashes
from clusterd_crawler.token_hashes import hash_text

from benchmarks.results import Row, result

PAGES = Path(__file__).resolve().parent.parent.parent / "shared" / "pages"
#: Of Debian's package developers-reference-ja: one file a chapter, and the book in one file.
REFERENCE = Path("/usr/share/developers-reference/ja")
NO_CHAPTERS = {"developers-reference.html", "index.html", "search.html"}
EDITED = 1500
#: Pairs below this cannot be told r ≥ .5 by 192 values, nor by 64 but once in a million.
LOOKED_AT = 0.2


def rows_of(name: str, file: str) -> Iterator[Row]:
    with gzip.open(PAGES / name / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def body_of(row: Row) -> bytes:
    return base64.b64decode(row["raw_b64"]) if row.get("raw_b64") else str(row["html"]).encode()


def main_text(row: Row) -> str:
    marked, _ = text.marked_text(text.utf8(body_of(row), None))
    return text.main_part(marked)


def full(document: str, w: int = TEXT.w) -> Values:
    """All distinct shingles of a text: the exact set, by 40-bit fingerprints."""
    hashes = hash_text(document)
    return np.unique(fingerprints(hashes, w)) if len(hashes) else np.empty(0, np.uint64)


def exact_of(a: Values, b: Values) -> Estimate:
    common = len(np.intersect1d(a, b, assume_unique=True))
    return ratios(common, len(a) - common, len(b) - common)


def sketched(document: str, profile: Profile) -> StreamSketch:
    return sketch_hashes(hash_text(document), profile)


# --- pairs against exact Jaccard


def edited(document: str, chosen: random.Random) -> str:
    """A copy as editors leave it: some share of its words changed, perhaps a part dropped or moved."""
    words = document.split()
    for _ in range(int(len(words) * chosen.choice([0.002, 0.005, 0.01, 0.02, 0.04, 0.06]))):
        at = chosen.randrange(len(words))
        words[at : at + chosen.randint(0, 2)] = chosen.choices(words, k=chosen.randint(0, 2))
    if chosen.random() < 0.5:
        start = chosen.randrange(len(words) or 1)
        part = words[start : start + chosen.randint(1, 1 + len(words) // 3)]
        del words[start : start + len(part)]
        if chosen.random() < 0.5:
            at = chosen.randrange(len(words) + 1)
            words[at:at] = part
    return " ".join(words)


def collection() -> list[str]:
    documents = [
        main_text(row) for name in ("httpd_manual_versions", "boost_distinct") for row in rows_of(name, "pages")
    ]
    documents += [row["text"] for row in rows_of("minhash_articles2500", "docs")]
    chosen = random.Random(5)
    return documents + [edited(document, chosen) for document in chosen.sample(documents, EDITED)]


def intersections(sets: list[Values]) -> np.ndarray[Any, np.dtype[np.int32]]:
    """How many shingles each two sets share: exact, all pairs at once, by the groups of holders of a shingle."""
    documents = np.repeat(np.arange(len(sets)), [len(s) for s in sets])
    shingles = np.concatenate(sets)
    order = np.argsort(shingles, kind="stable")
    documents, shingles = documents[order], shingles[order]
    edges = np.flatnonzero(np.append(True, shingles[1:] != shingles[:-1]))
    holders: dict[bytes, int] = defaultdict(int)
    for group in np.split(documents, edges[1:]):
        if len(group) > 1:
            holders[group.tobytes()] += 1
    common = np.zeros((len(sets), len(sets)), np.int32)
    for key, weight in holders.items():
        group = np.frombuffer(key, documents.dtype)
        common[np.ix_(group, group)] += weight
    return common


def pair_accuracy() -> list[Row]:
    documents = collection()
    sets = [full(document) for document in documents]
    common = intersections(sets)
    sizes = np.array([len(s) for s in sets])
    union = sizes[:, None] + sizes[None, :] - common
    jaccard = np.where(union > 0, common / np.maximum(union, 1), 0)
    alike = np.argwhere(np.triu(jaccard >= LOOKED_AT, 1)).tolist()
    truth = np.array([jaccard[i, j] for i, j in alike])
    rows = []
    for profile in (TEXT, COMPACT, Profile(98, "200 values", 10, "min", 200)):
        sketches = [sketched(document, profile) for document in documents]
        equal = np.array([sketches[i].text == sketches[j].text for i, j in alike])
        told = np.array([estimate(sketches[i], sketches[j], profile).resemblance for i, j in alike])
        for threshold in (0.5, 0.9):
            for which, chosen in (("", ~equal | equal), (", equal texts left out", ~equal)):
                real, found = (set(np.flatnonzero((r >= threshold) & chosen).tolist()) for r in (truth, told))
                subject = f"{profile.name}, r ≥ {threshold}, {len(documents)} documents, {len(real)} pairs{which}"
                rows += _told("pairs", subject, real, found)
        error = float(np.sqrt(np.mean((told - truth)[~equal] ** 2)))
        rows.append(result("pairs: error of the estimate", f"{profile.name}, equal texts left out", error, "rms"))
    for profile in (TEXT, COMPACT):
        rows += _by_command(documents, {(i, j): float(jaccard[i, j]) for i, j in alike}, profile)
    return rows


def _by_command(documents: list[str], truth: dict[tuple[int, int], float], profile: Profile) -> list[Row]:
    """What ``clusterd pairs`` finds: sketches are the sieve, the texts decide."""
    sketches = [sketch_plain("", document, profile=profile, fetched_at=0) for document in documents]

    def again(places: Collection[int]) -> Iterator[tuple[int, StreamSketch]]:
        return ((place, sketched(documents[place], whole_profile(profile))) for place in places)

    rows = []
    for threshold in (0.5, 0.9):
        real = {pair for pair, r in truth.items() if r >= threshold}
        found = {(pair.a, pair.b) for pair in pairs(sketches, threshold, again=again)}
        subject = f"{profile.name}, r ≥ {threshold}, {len(real)} pairs, texts read again"
        rows += _told("pairs", subject, real, found)
    return rows


def _told(work: str, subject: str, real: set[Any], found: set[Any]) -> list[Row]:
    """How many of the real pairs were found, and how many of those found are real."""
    right = len(real & found)
    return [
        result(f"{work}: recall", subject, right / max(1, len(real)), "of pairs"),
        result(f"{work}: precision", subject, right / max(1, len(found)), "of pairs"),
    ]


# --- sets with known truth


def manual() -> list[Row]:
    pages = [row for row in rows_of("httpd_manual_versions", "pages") if row["version"] in ("2.0", "2.4")]
    sketches = [sketch_page(row["url"], body_of(row), None, fetched_at=0) for row in pages]
    later = [n for n, row in enumerate(pages) if row["version"] == "2.4"]
    there = {(row["lang"], row["page"]) for row in pages if row["version"] == "2.4"}
    right: dict[str, int] = defaultdict(int)
    asked: dict[str, int] = defaultdict(int)
    missed: dict[str, list[str]] = defaultdict(list)
    for n, row in enumerate(pages):
        if row["version"] == "2.0" and (row["lang"], row["page"]) in there:
            found = max(later, key=partial(_match, sketches, n))
            asked[row["lang"]] += 1
            if (pages[found]["lang"], pages[found]["page"]) == (row["lang"], row["page"]):
                right[row["lang"]] += 1
            else:
                missed[row["lang"]].append(row["page"])
    rows = []
    for lang in sorted(asked):
        subject = f"{right[lang]}/{asked[lang]}, missed {missed[lang]}"
        rows.append(result(f"manual: best match 2.0 → 2.4, {lang}", subject, right[lang] / asked[lang], "of pages"))
    return rows


def _match(sketches: list[Sketch], query: int, candidate: int) -> tuple[float, float]:
    a, b = sketches[query], sketches[candidate]
    return estimate(a.main, b.main, TEXT).resemblance, estimate(a.whole, b.whole, TEXT).resemblance


def boost() -> list[Row]:
    """Count pairs of different items that are near.

    Three are: pages that differ in one qualifier (``v1::view_interface``), all of whose visible words but the site's
    menu are main text. Their exact resemblance is .908, .960 and .984, of the main text as of the whole (± .01), so
    that no choice of main text tells them apart: at r ≥ .9 they are pairs that `pair_accuracy` asks to be found.
    """
    pages = list(rows_of("boost_distinct", "pages"))
    bodies = [body_of(row) for row in pages]
    sketches = [sketch_page(row["url"], body, None, fetched_at=0) for row, body in zip(pages, bodies, strict=True)]
    words = [sketch_page("", re.sub(rb"(?is)<title.*?</title>", b"", body), None, fetched_at=0) for body in bodies]
    rows = []
    for stream in ("main", "whole"):
        streams: list[StreamSketch] = [getattr(sketch, stream) for sketch in sketches]
        near = [pair for pair in _pairs(len(streams)) if _is_near(streams[pair[0]], streams[pair[1]])]
        wrong = [(pages[i]["id"], pages[j]["id"]) for i, j in near if words[i].whole.text != words[j].whole.text]
        subject = f"{stream} text; {len(near) - len(wrong)} more whose bodies have equal words; {wrong[:3]}"
        rows.append(result("boost: different items with r ≥ .9", subject, len(wrong), "pairs"))
    return rows


def _is_near(a: StreamSketch, b: StreamSketch) -> bool:
    return estimate(a, b, TEXT).resemblance >= 0.9


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    return ((i, j) for i in range(count) for j in range(i + 1, count))


def cjk() -> list[Row]:
    """Chapters in their book, as two editions of one package; the profile of pages beside one that keeps no more."""
    chapters = [path.read_bytes() for path in sorted(REFERENCE.glob("*.html")) if path.name not in NO_CHAPTERS]
    if not chapters:
        return []
    book = (REFERENCE / "developers-reference.html").read_bytes()
    rows = []
    for stream, text_of in (("main", text.main_part), ("whole", text.plain)):
        texts = [text_of(text.marked_text(text.utf8(body, None))[0]) for body in (*chapters, book)]
        sets = [full(document) for document in texts]
        exact = [exact_of(chapter, sets[-1]).a_in_b for chapter in sets[:-1]]
        about = f"{stream} text, ja, {len(chapters)} chapters in a book of {len(sets[-1])} shingles"
        rows.append(
            result("CJK: containment, exact", f"{about}; least {min(exact):.3f}", statistics.median(exact), "median")
        )
        for profile in (TEXT, Profile(99, "400 values", 10, "min", 400)):
            *parts, whole = [sketched(document, profile) for document in texts]
            found = [estimate(part, whole, profile).a_in_b for part in parts]
            error = float(np.sqrt(np.mean((np.array(found) - exact) ** 2)))
            few = min(len(np.frombuffer(part.values, "<u8")) for part in map(partial(_judged, whole), parts))
            subject = f"{about}; {profile.name}, least chapter judged by {few} values; error {error:.4f} rms"
            rows.append(result("CJK: containment, estimated", subject, statistics.median(found), "median"))
    return rows


def _judged(book: StreamSketch, chapter: StreamSketch) -> StreamSketch:
    """The chapter's sketch, as far as the book's reaches."""
    values = np.frombuffer(chapter.values, "<u8")
    known = values[values <= np.frombuffer(book.values, "<u8")[-1]]
    return StreamSketch(known.tobytes(), chapter.shingles, chapter.tokens, chapter.text)


def wrapped() -> list[Row]:
    rows = []
    for lang in ("ja", "ko", "zh-cn"):
        chapters = [
            main_text(row)
            for row in rows_of("httpd_manual_versions", "pages")
            if row["lang"] == lang and row["version"] == "2.4"
        ]
        chapters = [chapter for chapter in chapters if len(chapter) > 2000][:40]
        if not chapters:
            continue
        book = _wrapped((" " if lang == "ko" else "").join(chapters))
        book_set, book_sketch = full(book), sketched(book, TEXT)
        exact = [exact_of(full(chapter), book_set).a_in_b for chapter in chapters]
        told = [estimate(sketched(chapter, TEXT), book_sketch, TEXT).a_in_b for chapter in chapters]
        subject = f"{lang}, {len(chapters)} chapters in a book wrapped every 38 characters"
        rows.append(result("wrapped: containment, exact", subject, statistics.median(exact), "median"))
        rows.append(result("wrapped: containment, estimated", subject, statistics.median(told), "median"))
    return rows


def _wrapped(document: str) -> str:
    """The text with lines of some 38 characters: broken between any two letters of these scripts, else at blanks."""
    lines, length = [""], 0
    for part in re.findall(r"[\x21-\x7e]+|[^\x21-\x7e]", " ".join(document.split())):
        if length + len(part) > 38:
            lines.append("")
            length = 0
        lines[-1] += part
        length += len(part)
    return "\n".join(lines)


def licences() -> list[Row]:
    documents = [row["text"] for row in rows_of("licences_spdx", "docs")]
    return _all_pairs("licences", documents, TEXT, (0.5, 0.9))


def _all_pairs(work: str, documents: list[str], profile: Profile, thresholds: Iterable[float]) -> list[Row]:
    sets = [full(document, profile.w) for document in documents]
    sketches = [sketched(document, profile) for document in documents]
    real = {(i, j): exact_of(sets[i], sets[j]).resemblance for i, j in _pairs(len(sets))}
    told = {(i, j): estimate(sketches[i], sketches[j], profile).resemblance for i, j in real}
    rows = []
    for threshold in thresholds:
        true = {pair for pair, r in real.items() if r >= threshold}
        found = {pair for pair, r in told.items() if r >= threshold}
        worst = max((abs(real[pair] - told[pair]) for pair in true ^ found), default=0.0)
        subject = f"r ≥ {threshold}, {len(true)} pairs; farthest from the truth of those told wrongly: {worst:.3f}"
        rows += _told(work, subject, true, found)
    return rows


def articles() -> list[Row]:
    texts = {row["id"]: row["text"] for row in rows_of("minhash_articles2500", "docs")}
    known = [(row["a"], row["b"]) for row in rows_of("minhash_articles2500", "pairs")]
    sketches = {name: sketched(document, TEXT) for name, document in texts.items()}
    scores = [estimate(sketches[a], sketches[b], TEXT).resemblance for a, b in known]
    share = sum(score >= 0.5 for score in scores) / len(scores)
    return [result("articles: labelled pairs found", f"r ≥ .5; lowest {min(scores):.2f}", share, "of 20 pairs")]


def answers() -> list[Row]:
    docs = list(rows_of("plagiarised_short_answers", "docs"))
    sources = {row["id"]: row for row in docs}
    shares: dict[str, list[float]] = defaultdict(list)
    for row in docs:
        source = sources.get(row.get("source"))
        if source is not None and source is not row:
            seen = estimate(sketched(row["text"], SHORT), sketched(source["text"], SHORT), SHORT)
            shares[row["label"]].append(seen.a_in_b)
    rows = []
    for label, found in sorted(shares.items()):
        subject = f"{label}, {len(found)} answers, profile short"
        rows.append(result("answers: containment in the source", subject, statistics.median(found), "median"))
    return rows


def tldr() -> list[Row]:
    """Pages of one sweep found again in the next, by best match among the pages that the next sweep has."""
    truth = [row for row in rows_of("sweeps_tldr_short", "truth") if row["kind"] != "same_url" and row["to_path"]]
    pages: dict[tuple[str, str], StreamSketch] = {}
    postings: dict[str, dict[int, list[str]]] = defaultdict(partial(defaultdict, list))
    wanted = {row["from_sweep"] for row in truth} | {row["to_sweep"] for row in truth}
    for row in rows_of("sweeps_tldr_short", "pages"):
        if row["sweep"] in wanted:
            sketch = pages[row["sweep"], row["path"]] = sketched(row["text"], SHORT)
            for value in _values(sketch):
                postings[row["sweep"]][value].append(row["path"])
    right, unlike = 0, 0
    for row in truth:
        query = pages[row["from_sweep"], row["from_path"]]
        held = postings[row["to_sweep"]]
        candidates = {p for v in _values(query) for p in held.get(v, ()) if len(held[v]) < 200}
        found = {p: estimate(query, pages[row["to_sweep"], p], SHORT) for p in candidates}
        scored = {p: (one.resemblance, one.a_in_b + one.b_in_a) for p, one in found.items()}
        best = max(scored, key=lambda p: scored[p], default=None)
        same_words = (
            best is not None and pages[row["to_sweep"], best].text == pages[row["to_sweep"], row["to_path"]].text
        )
        right += best == row["to_path"] or same_words
        unlike += scored.get(row["to_path"], (0.0, 0.0))[0] < 0.1
    subject = f"{len(truth)} moved pages; {unlike} of them resemble their new self by less than .1"
    return [result("tldr: moved pages found by best match", subject, right / len(truth), "of pages")]


def _values(sketch: StreamSketch) -> list[int]:
    return np.frombuffer(sketch.values, "<u8").tolist()


def run() -> list[Row]:
    """Measure all; nothing where the page sets are not there."""
    if not PAGES.exists():
        return []
    return [
        row
        for part in (pair_accuracy, manual, boost, cjk, wrapped, licences, articles, answers, tldr)
        for row in part()
    ]


if __name__ == "__main__":
    parts = [globals()[name] for name in sys.argv[1:]] or [run]
    for part in parts:
        for measured in part():
            sys.stdout.write(json.dumps(measured, ensure_ascii=False) + "\n")
