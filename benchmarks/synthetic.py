"""Synthetic sketches with the duplicate structure of a crawl, made from a seed.

Of the pages, 25 % have the text of an earlier page, 10 % are near duplicates of one (2 to 40 % of the shingles are
others), 5 % are recrawls of an earlier URL with a new text of which 10 to 100 % changed; the rest share nothing.
A page has 401 to 6,000 shingles (log-normal, median 1,100), so that none is kept entire: the smallest of so many
uniform numbers below 2^40, drawn by their exponential spacings, and the parity of so many. A host has 200 pages,
fetched one after the other; the earlier page is one of any host, or (``within``) of the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from clusterd_crawler.sketch import PARITY_BITS, TEXT, Profile, Sketch, StreamSketch, cells_parity, parity_of, smallest

Values = np.typing.NDArray[np.uint64]

SPACE: Final = 2.0**40
#: Fewest shingles of a page.
LEAST: Final = TEXT.entire + 1
EXACT, NEAR, RECRAWLED = 0.25, 0.10, 0.05
#: Pages that later ones may copy.
RECENT: Final = 20_000
#: Pages of a host.
HOST: Final = 200


def crawl(pages: int, seed: int = 1, profile: Profile = TEXT, *, within: bool = False) -> Iterator[Sketch]:
    """Yield so many fetched pages; ``within``: pages copy those of their own hosts."""
    dice = np.random.default_rng(seed)
    made: list[tuple[str, StreamSketch]] = []
    for number in range(pages):
        url = f"http://host{number // HOST}.example/section/{number % 7}/page-{number}.html"
        if within and number % HOST == 0:
            made.clear()
        fate = dice.random() if made else 1.0
        if fate < EXACT:
            stream = made[int(dice.integers(len(made)))][1]
        elif fate < EXACT + NEAR:
            stream = edited(made[int(dice.integers(len(made)))][1], dice.uniform(0.02, 0.4), dice, profile)
        elif fate < EXACT + NEAR + RECRAWLED:
            url, before = made[int(dice.integers(len(made)))]
            stream = edited(before, dice.uniform(0.1, 1.0), dice, profile)
        else:
            stream = fresh(dice, profile)
        if len(made) < RECENT:
            made.append((url, stream))
        else:
            made[int(dice.integers(RECENT))] = (url, stream)
        text = stream.text
        yield Sketch(url, 1_700_000_000_000 + number, profile.code, text ^ number, stream, stream, text ^ 5, crawl="c1")


def fresh(dice: np.random.Generator, profile: Profile = TEXT) -> StreamSketch:
    """Return the sketch of a page that shares nothing with any other."""
    shingles = int(min(6000, max(LEAST, profile.size, dice.lognormal(7.0, 0.6))))
    values = _distinct(np.cumsum(dice.exponential(SPACE / shingles, smallest(shingles, profile))))
    return _stream(values, shingles, _parity(values, shingles, dice) if profile.parity else b"", dice)


def edited(before: StreamSketch, share: float, dice: np.random.Generator, profile: Profile = TEXT) -> StreamSketch:
    """Return the sketch of a page in which a share of the shingles was replaced by others."""
    values = np.frombuffer(before.values, "<u8")
    kept = values[dice.random(len(values)) >= share]
    spacing = SPACE / max(1.0, before.shingles * share)
    size = smallest(before.shingles, profile)
    others = np.cumsum(dice.exponential(spacing, size)).astype(np.uint64)
    # Beyond the old threshold the kept shingles are not known: fill up with others, at the density of the page.
    beyond = int(values[-1]) + np.cumsum(dice.exponential(SPACE / before.shingles, size)).astype(np.uint64)
    others = np.concatenate([others[others <= values[-1]], beyond])
    chosen = _distinct(np.concatenate([kept, others]))[:size]
    turned = _parity(np.setxor1d(values, chosen), round(2 * share * before.shingles), dice) if profile.parity else b""
    return _stream(chosen, before.shingles, _differ(before.parity, turned), dice)


def _parity(values: Values, shingles: int, dice: np.random.Generator) -> bytes:
    """Return the parity of so many shingles: of these values, and of others, each in a cell of its own chance."""
    others = dice.integers(0, PARITY_BITS, max(0, shingles - len(values)))
    return _differ(parity_of(values), cells_parity(others))


def _differ(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def _distinct(values: np.typing.NDArray[Any]) -> Values:
    return np.unique(np.minimum(values.astype(np.uint64), np.uint64(2**40 - 1)))


def _stream(values: Values, shingles: int, parity: bytes, dice: np.random.Generator) -> StreamSketch:
    return StreamSketch(values.astype("<u8").tobytes(), shingles, shingles + 9, int(dice.integers(1, 2**63)), parity)
