"""Which parts of a walked page are its main text: decided at its end, from the page alone.

1. elements that call themselves chrome (landmarks, roles, whole-word ids and classes) are not main text, save by an id
   that says no more than the heading they begin with, where they are not mostly links (``languages`` of a section
   "Languages", as generators name them); nor are those of a name that content bears too (``tabs``, ``menu``), where
   they are short or mostly links; nor is a ``sidebar``, save one with the title that boxes in books have, where it is
   not mostly links; nor is what a site is searched with, where it is so short that it does not hold what was found,
   too;
2. where ``<main>`` or ``role=main`` holds a quarter of what is left, the rest of the page is not main text;
3. blocks of five links and more, in which links hold 85 % of the letters, are not main text, as long as what remains
   is at least twice as much as all of them (a listing is content);
4. the title is main text, unless a first heading (``h1``) is and the rest is as long as a sentence: many a
   system titles its login form, its search and its lists with the name of the page that they were reached from. The
   title's own length has no say in it: one form under short names and under long ones is one text;
5. where nothing would remain, everything is main text.

The result is the text in which \\1 … \\2 enclose what is not main text. Linear in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

CHROME_BEGINS: Final = b"\x01"
CHROME_ENDS: Final = b"\x02"

MAIN_SHARE: Final = 4  # <main> counts where it has at least 1/4 of the letters
DENSE_REST: Final = 3  # dense blocks go where they have at most 1/3 of the letters
TITLE_REST: Final = 48  # a title gives way to a heading where the rest has so many letters

Span = tuple[int, int]


@dataclass(slots=True)
class Found:
    """What a walk found: bounds in the text, and how many letters lie between them outside chrome."""

    #: What calls itself chrome.
    cut: list[Span] = field(default_factory=list)
    #: Blocks of links.
    dense: list[tuple[int, int, int]] = field(default_factory=list)
    mains: list[tuple[int, int, int]] = field(default_factory=list)
    title: Span = (-1, -1)
    title_letters: int = 0
    #: Whether a first heading outside chrome has letters; and one within a main element.
    headed: bool = False
    headed_in_main: bool = False


def other_spans(out: bytearray, letters: int, found: Found) -> list[Span]:
    """Return what is not main text (steps 1 to 5), sorted and apart; ``letters``: those outside chrome."""
    letters -= found.title_letters
    spans = list(found.cut)
    dense = found.dense
    headed = found.headed
    in_mains = sum(count for _, _, count in found.mains)
    if in_mains and in_mains * MAIN_SHARE >= letters:
        letters = in_mains
        headed = found.headed_in_main
        spans += _gaps(out, found)
        dense = [d for d in dense if any(start <= d[0] and d[1] <= end for start, end, _ in found.mains)]
    in_dense = sum(count for _, _, count in dense)
    if in_dense * DENSE_REST <= letters:
        letters -= in_dense
        spans += [(start, end) for start, end, _ in dense]
    if headed and found.title_letters and letters >= TITLE_REST:
        spans.append(found.title)
    return united(sorted(spans)) if letters > 0 else []


def with_marks(out: bytearray, spans: list[Span]) -> bytes:
    """Return the text with marks around sorted spans."""
    marked = bytearray()
    at = 0
    for start, end in spans:
        marked += out[at:start] + CHROME_BEGINS + out[start:end] + CHROME_ENDS
        at = end
    return bytes(marked + out[at:])


def _gaps(out: bytearray, found: Found) -> list[Span]:
    """What lies outside the main elements, save the title."""
    gaps, at = [], 0
    for start, end, _ in [*found.mains, (len(out), 0, 0)]:
        if at <= found.title[0] and found.title[1] <= start:
            gaps.append((at, found.title[0]))
            at = found.title[1]
        gaps.append((at, start))
        at = end
    return [gap for gap in gaps if gap[1] > gap[0]]


def united(spans: list[Span]) -> list[Span]:
    """Return sorted spans with those that overlap or touch made one."""
    made: list[Span] = []
    for start, end in spans:
        if made and start <= made[-1][1]:
            made[-1] = (made[-1][0], max(end, made[-1][1]))
        else:
            made.append((start, end))
    return made
