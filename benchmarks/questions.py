"""How right the questions are on sets with ground truth: lost & found, pairs, containment; and how fast.

Reads the sets of ``../shared/pages`` where they are (`PAGES`); without them it has nothing to measure. The index is in
memory and keeps the same cut sketches as the one on Redis. What is missed is printed with the reason that can be seen.

- `lost_short`: 34,298 pages of 4 to 250 words in five sweeps; git's renames are the truth. A page that git calls gone
  may have been merged into a new one of the same name: those are counted apart ("namesakes").
- `lost_manual`: a manual's version 2.0 against 2.4, pages of all languages as candidates; the truth is the page's name
  and language, of which the search uses the name as a tie-break (`clusterd.queries.addresses`).
- `pairs_…`: against exact Jaccard of 10-shingles, by ``clusterd.batch.pairs``.
- `held`: texts of 150 words put into pages of many times that length; which of these `holders` finds, and which pages
  it names that carry none.
- `plagiarised`: an answer's containment in its source; the signal where resemblance is none.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from clusterd.batch import pairs, whole_profile
from clusterd.clusters.memory.index import MemoryIndex
from clusterd.ingest.raw import RawPage
from clusterd.ingest.reading import read
from clusterd.ingest.sketching import Sketching
from clusterd.queries.addresses import page_name
from clusterd.queries.alike import holders
from clusterd.queries.documents import of_text
from clusterd.queries.elsewhere import Elsewhere
from clusterd.queries.moves import Found, Search
from clusterd_consumer.resemblance import estimate, exact, shingle_set
from clusterd_crawler.page import sketch_plain
from clusterd_crawler.sketch import SHORT, TEXT, Profile, Sketch, StreamSketch
from clusterd_crawler.tokens import tokens

from benchmarks.results import Row, result

PAGES: Final = Path(__file__).resolve().parents[2] / "shared" / "pages"
#: How many times as long a page is as the text that it carries.
TIMES: Final = (2, 4, 8, 16, 32, 64)
LANGUAGES: Final = ("ko", "ja", "fr", "de", "zh-cn")


def run() -> list[Row]:
    """Measure everything; nothing where the sets are not there."""
    if not PAGES.is_dir():
        print(f"no ground truth at {PAGES.name}/: nothing measured")
        return []
    return [*lost_short(), *lost_manual(), *pairs_licences(), *pairs_articles(), *held(), *plagiarised()]


def rows_of(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(PAGES / name, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def filled(sketches: Iterable[Sketch]) -> MemoryIndex:
    index = MemoryIndex()
    batch: list[Sketch] = []
    for sketch in sketches:
        batch.append(sketch)
        if len(batch) == 1000:
            index.apply(batch)
            batch = []
    index.apply(batch)
    return index


def lost_short() -> list[Row]:
    """Lost & found over dated sweeps of very short pages."""
    run = Sketching(TEXT)
    index = filled(run.sketches(read(str(PAGES / "sweeps_tldr_short/pages.jsonl.gz"))))
    urls = {(page["sweep"], page["path"]): page["url"] for page in rows_of("sweeps_tldr_short/pages.jsonl.gz")}
    search = Search(index, TEXT, "tldr.sh", Elsewhere(index, TEXT))
    counts: Counter[str] = Counter()
    started = time.perf_counter()
    for truth in rows_of("sweeps_tldr_short/truth.jsonl.gz"):
        if truth["kind"] == "same_url":
            continue
        url = urls[truth["from_sweep"], truth["from_path"]]
        found = search.one(url, truth["from_sweep"], truth["to_sweep"])
        if found is not None:  # else the later sweep has the URL again
            wanted = urls[truth["to_sweep"], truth["to_path"]] if truth["kind"] == "moved" else None
            counts[verdict(found, wanted)] += 1
    seconds = time.perf_counter() - started
    moved = counts["right"] + counts["wrong"] + counts["missed"]
    gone = sum(counts[name] for name in ("silent", "namesake", "false"))
    return [
        result("find-lost short pages", "moved pages found", counts["right"] / moved, f"of {moved}"),
        result(
            "find-lost short pages", "matches that are right", counts["right"] / (moved - counts["missed"]), "share"
        ),
        result("find-lost short pages", "gone pages with no match", counts["silent"] / gone, f"of {gone}"),
        result(
            "find-lost short pages", "gone pages matched to a new namesake", counts["namesake"] / gone, f"of {gone}"
        ),
        result("find-lost short pages", "gone pages matched to another", counts["false"] / gone, f"of {gone}"),
        result("find-lost short pages", "rate", sum(counts.values()) / seconds, "pages/s"),
    ]


def verdict(found: Found, wanted: str | None) -> str:
    """Name what an answer was, and print a wrong one."""
    if wanted is None:
        if found.match is None:
            return "silent"
        return "namesake" if page_name(found.match) == page_name(found.url) else "false"
    if found.match == wanted:
        return "right"
    print(f"  {found.url} → {found.match} (r {found.resemblance:.3f}, margin {found.margin:.3f}), not {wanted}")
    return "missed" if found.match is None else "wrong"


def lost_manual() -> list[Row]:
    """Lost & found between two versions of a manual in six languages."""
    items = read(str(PAGES / "httpd_manual_versions/pages.jsonl.gz"))
    kept = [
        replace(page, sweep=version_of(page.url))
        for page in items
        if isinstance(page, RawPage) and version_of(page.url) in {"2.0", "2.4"}
    ]
    index = filled(Sketching(TEXT).sketches(kept))
    search = Search(index, TEXT, "httpd.apache.org", Elsewhere(index, TEXT))
    later = search.sweeps.pages["2.4"]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    started = time.perf_counter()
    answers = list(search.all())
    seconds = time.perf_counter() - started
    for found in answers:
        wanted = found.url.replace("/docs/2.0/", "/docs/2.4/")
        counts[language_of(found.url)][verdict(found, wanted if wanted in later else None)] += 1
    measured = []
    for language, count in sorted(counts.items()):
        pages = count["right"] + count["wrong"] + count["missed"]
        if pages:
            measured.append(result("find-lost manual 2.0 → 2.4", language, count["right"], f"right of {pages}"))
    return [*measured, result("find-lost manual 2.0 → 2.4", "rate", len(answers) / seconds, "pages/s")]


def version_of(url: str) -> str:
    return url.split("/docs/", 1)[-1].split("/", 1)[0]


def language_of(url: str) -> str:
    part = url.split("/")[5]
    return part if part in LANGUAGES else "en"


def documents(name: str) -> tuple[list[str], list[list[str]]]:
    rows = list(rows_of(name))
    return [str(row["id"]) for row in rows], [tokens(row["text"]) for row in rows]


def exact_pairs(texts: list[list[str]], w: int, least: float) -> dict[tuple[int, int], float]:
    """Exact resemblance of all pairs that share a shingle and reach ``least``."""
    sets = [shingle_set(text, w) for text in texts]
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, shingles in enumerate(sets):
        for shingle in shingles:
            holders[shingle].append(number)
    common = Counter(pair for numbers in holders.values() for pair in combinations(numbers, 2))
    measured = {(a, b): n / (len(sets[a]) + len(sets[b]) - n) for (a, b), n in common.items()}
    return {pair: r for pair, r in measured.items() if r >= least}


def found_pairs(texts: list[list[str]], profile: Profile, threshold: float) -> dict[tuple[int, int], float]:
    """What ``clusterd pairs`` finds: the sketches are its sieve, the texts decide."""

    def sketched(number: int, kind: Profile) -> Sketch:
        return sketch_plain(f"d:{number}", " ".join(texts[number]), profile=kind, fetched_at=0)

    def again(places: Collection[int]) -> Iterator[tuple[int, StreamSketch]]:
        return ((place, sketched(place, whole_profile(profile)).main) for place in places)

    found = pairs((sketched(number, profile) for number in range(len(texts))), threshold, again=again)
    return {(pair.a, pair.b): pair.estimate.resemblance for pair in found}


def against_exact(work: str, names: list[str], texts: list[list[str]], threshold: float) -> list[Row]:
    """Recall and precision of the pairs at a threshold; a miss is printed with its exact resemblance."""
    truth = exact_pairs(texts, TEXT.w, threshold)
    started = time.perf_counter()
    found = found_pairs(texts, TEXT, threshold)
    seconds = time.perf_counter() - started
    right = truth.keys() & found.keys()
    missed = sorted(truth.keys() - right, key=lambda pair: -truth[pair])
    for a, b in missed[:5]:
        print(f"  missed: {names[a]} {names[b]} exact {truth[a, b]:.4f}: its sketches lie too far below the threshold")
    if missed:
        farthest = truth[missed[0]] - threshold
        print(f"  {len(missed)} of {len(truth)} missed, the farthest {farthest:.4f} above the threshold")
    return [
        result(work, f"recall at r ≥ {threshold}", len(right) / len(truth) if truth else 1.0, f"of {len(truth)} pairs"),
        result(
            work, f"precision at r ≥ {threshold}", len(right) / len(found) if found else 1.0, f"of {len(found)} pairs"
        ),
        result(work, f"rate at r ≥ {threshold}", len(texts) / seconds, "documents/s"),
    ]


def pairs_licences() -> list[Row]:
    """Legal texts: many pairs of different licences are nearly one text."""
    names, texts = documents("licences_spdx/docs.jsonl.gz")
    return [*against_exact("pairs licences", names, texts, 0.5), *against_exact("pairs licences", names, texts, 0.9)]


def pairs_articles() -> list[Row]:
    """News texts with twenty labelled pairs."""
    names, texts = documents("minhash_articles2500/docs.jsonl.gz")
    labelled = [{pair["a"], pair["b"]} for pair in rows_of("minhash_articles2500/pairs.jsonl.gz")]
    found = [{names[a], names[b]} for a, b in found_pairs(texts, TEXT, 0.5)]
    work = "pairs articles"
    return [
        result(work, "labelled pairs found at r ≥ 0.5", sum(pair in found for pair in labelled), f"of {len(labelled)}"),
        result(work, "pairs found that are not labelled", sum(pair not in labelled for pair in found), "pairs"),
        *against_exact(work, names, texts, 0.5),
    ]


def held() -> list[Row]:
    """Texts that stand in long pages: 20 of each length in each of 5 pages, made of articles, beside 2,000 articles."""
    _, texts = documents("minhash_articles2500/docs.jsonl.gz")
    passages = [" ".join(text[:150]) for text in texts if len(text) >= 150][:20]
    rest = [" ".join(text) for text in texts[-2000:]]
    sketches = [sketch_plain(f"http://a.example/{n}", text, fetched_at=1) for n, text in enumerate(rest)]
    carriers: dict[tuple[int, int], set[str]] = defaultdict(set)
    words = " ".join(rest).split()
    for times in TIMES:
        for n, passage in enumerate(passages):
            for copy in range(5):
                url, at = f"http://h.example/{times}/{n}/{copy}", (7919 * len(sketches)) % (len(words) - 150 * times)
                around = words[at : at + 150 * (times - 1)]
                text = " ".join([*around[: len(around) // 2], passage, *around[len(around) // 2 :]])
                sketches.append(sketch_plain(url, text, fetched_at=1))
                carriers[times, n].add(url)
    index = filled(sketches)
    measured = []
    found = [{holder.url for holder in holders(index, of_text(passage, TEXT), TEXT, 0.5)} for passage in passages]
    for times in TIMES:
        right = sum(len(found[n] & carriers[times, n]) for n in range(len(passages)))
        measured.append(result("holders", f"pages of {times} times the length", right / (5 * len(passages)), "recall"))
    named = [(n, int(url.split("/")[4])) for n, urls in enumerate(found) for url in urls if "//h." in url]
    split = [tokens(passage) for passage in passages]
    strays = sum(not exact(split[n], split[other], TEXT.w).resemblance for n, other in named)
    return [*measured, result("holders", "pages named that carry none of it", strays, "pages")]


def plagiarised() -> list[Row]:
    """Answers that were copied with more or less change: containment of the answer in its source."""
    rows = {row["id"]: row for row in rows_of("plagiarised_short_answers/docs.jsonl.gz")}
    measured: list[Row] = []
    for profile in (TEXT, SHORT):
        share: dict[str, list[float]] = defaultdict(list)
        errors = []
        for answer in rows.values():
            if answer["label"] == "orig":
                continue
            a, b = answer["text"], rows[answer["source"]]["text"]
            part, whole = (sketch_plain("d:", text, profile=profile, fetched_at=0).main for text in (a, b))
            contained = estimate(part, whole, profile).a_in_b
            errors.append(abs(contained - exact(tokens(a), tokens(b), profile.w).a_in_b))
            share[answer["label"]].append(contained)
        work = f"plagiarised answers, {profile.name} profile"
        bar = max(share["non"], default=0.0)  # what answers that were not copied reach
        for label, values in sorted(share.items()):
            if label != "non":
                above = sum(value > bar for value in values) / len(values)
                measured.append(
                    result(work, f"{label}: containment above every answer of one's own", above, f"of {len(values)}")
                )
        measured.append(result(work, "largest containment of an answer of one's own", bar, "share"))
        measured.append(result(work, "largest error of the estimate", max(errors), "share"))
    return measured
