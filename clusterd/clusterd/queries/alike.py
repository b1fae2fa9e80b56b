"""On-the-fly resemblance (paper, section 6.1) and holders of a widely distributed text (section 6.4).

Both ask the index with a sketch, so that a document need not be in the store. What resembles a document has posted
values in common with it. A long page that carries a short text often has not: some ten values are posted of it. So
holders are looked for at all stored sketches, some 10 µs a page of the store, and so is what is similar while the store
is small. Found like that is a text of twenty words and more in a page up to some 16 times its length, in half of those
of 24 times, in hardly any of more than 40; in pages of 4,000 words and more up to 24 times, in half of those of 40 to
50 (measured on random sets); in books of 100,000 words and more up to a hundred times, in half of those of two hundred
(907 pages found whole in six such books of Debian's manuals); less in a store of many millions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from clusterd_consumer.resemblance import Estimate, exact
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.sketch import PROFILES, Profile, sketch_text
from clusterd_crawler.urls import host_of

from clusterd.clusters.contract import Hit, Index, Look, Stream
from clusterd.queries.documents import Document
from clusterd.queries.likeness import likeness, with_containment

#: Contents of a store up to which `similar` looks at all of them: a second or two.
SMALL: Final = 200_000
#: Most holders of one text, those that resemble it most; some 300 bytes each. Copies of one site must not hide the
#: sites that quote it.
MOST_HOLDERS: Final = 1_000_000
#: Least share of a text that a page must carry to count as its holder.
LEAST_PART: Final = 0.1


@dataclass(frozen=True, slots=True)
class Holder:
    """A page that carries a text, whole or in part."""

    host: str
    url: str
    query_in_match: float
    resemblance: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two documents compared: by their sketches, and exactly where both texts are at hand."""

    estimated: Estimate
    exact: Estimate | None
    #: A containment is seen through so few values that no two pages would be joined for it.
    doubtful: bool


def similar(
    index: Index,
    asked: Document,
    profile: Profile,
    limit: int = 10,
    look: Look | None = None,
    stream: Stream = "main",
) -> list[Hit]:
    """Return the pages that resemble, contain or are contained in a document, best resemblance first.

    Only sketches of one profile compare: a page of the store is looked for among those of its own profile, a text
    among the pages of each (a store of tweets is asked like any other). ``look``: where, by default at all pages of a
    store that is `SMALL`, and elsewhere in the clusters of what the posting lists propose; of whole pages (``stream``,
    with a `document` of the same) at the lists alone.
    """
    if look is None:
        look = "lists" if stream == "whole" else "all" if index.counts()["contents"] <= SMALL else "clusters"
    own = asked.profile
    if own is not None or asked.text is None:
        hits = index.similar(asked.sketch, (own or profile).code, limit + 1, stream, look)
        return [hit for hit in hits if hit.url != asked.url][:limit]
    hits = []
    for one in PROFILES.values():
        sketch = asked.sketch if one is profile else sketch_text(asked.text, one)
        hits += index.similar(sketch, one.code, limit, stream, look)
    return sorted(hits, key=lambda hit: hit.rank)[:limit]


def holders(
    index: Index, asked: Document, profile: Profile, least: float = LEAST_PART, limit: int = MOST_HOLDERS
) -> Iterator[Holder]:
    """Yield the pages that carry at least the share ``least`` of a document, most complete first.

    Of those that carry as much of it, to the sixth place, the one that carries least besides comes first.
    """
    hits = [hit for hit in similar(index, asked, profile, limit, "all") if hit.query_in_match >= least]
    for hit in sorted(hits, key=lambda hit: (-round(hit.query_in_match, 6), -hit.resemblance, hit.url)):
        yield Holder(host_of(hit.url), hit.url, hit.query_in_match, hit.resemblance)


def compare(a: Document, b: Document, profile: Profile, w: int | None = None) -> Comparison:
    """Compare two documents, by shingles of ``w`` tokens where another than the profile's is asked for.

    A page of the store is known by its sketch only, which has its profile's ``w``; `WrongInput` for another.
    """
    kept = {one.profile.name: one.profile for one in (a, b) if one.profile is not None}
    if len(kept) > 1:
        raise WrongInput(
            f"{a.url} and {b.url} were sketched with the profiles {' and '.join(kept)}, which do not compare; "
            "give one of them as a file"
        )
    if kept and profile.name not in kept:
        (profile,) = kept.values()
        a, b = (_resketched(one, profile) if one.text is not None else one for one in (a, b))
    if w is not None and w != profile.w:
        profile = replace(profile, w=w)
        a, b = _resketched(a, profile), _resketched(b, profile)
    found = None if a.text is None or b.text is None else exact(a.tokens or (), b.tokens or (), profile.w)
    claimed = likeness(a.sketch, b.sketch, profile)
    estimated = with_containment(claimed, a.sketch, b.sketch)
    return Comparison(estimated, found, estimated != claimed)


def _resketched(asked: Document, profile: Profile) -> Document:
    if asked.text is None:
        raise WrongInput(
            f"the text of {asked.url} is not kept, so that it cannot be compared with --w {profile.w}; "
            "leave --w out, or give the page as a file"
        )
    return Document(asked.url, sketch_text(asked.text, profile), asked.text)
