"""The plot of ``clusterd changes``: what happened to the pages, sweep by sweep, and how much they changed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from io import BytesIO
from math import ceil
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Final

from clusterd_crawler.errors import ClusterdError, WrongInput

from clusterd.queries.changes import Changes
from clusterd.whole_file import write_whole

FORMATS: Final = (".png", ".svg")
#: Field of `Changes` → colour; distinguishable without red and green.
PARTS: Final = {
    "unchanged": "#b8c4ce",
    "revised": "#3b6ea8",
    "moved": "#e6a532",
    "vanished": "#8c2d40",
    "appeared": "#5aa87b",
}
#: Inches of the picture, at a hundred pixels each, and of a bar where there is room: browsers show no picture of 32,768
#: pixels, and older matplotlibs draw none of 65,536.
NARROWEST: Final = 7.0
WIDEST: Final = 300.0
BAR: Final = 1.1
#: Characters of a host or label that are shown: a name of 100, written aslant, leaves no room for the bars.
LONGEST: Final = 40


def check(file: Path) -> None:
    """Refuse what cannot be drawn before any work is done: no PNG or SVG, no such folder, no matplotlib."""
    if file.suffix.lower() not in FORMATS:
        raise WrongInput(f"{file}: the plot is written as PNG or SVG; give a name that ends in .png or .svg")
    try:
        there = S_ISDIR(file.parent.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        there = False
    except OSError as error:
        raise WrongInput(f"{file}: cannot be written: {error.strerror}") from None
    if not there:
        raise WrongInput(f"{file}: cannot be written: there is no folder {file.parent}")
    if find_spec("matplotlib") is None:
        raise ClusterdError("the plot needs matplotlib: pip install 'clusterd[plot]'")


def plot(periods: Sequence[Changes], file: Path) -> None:
    """Draw the periods as stacked bars, with the resemblance of revised pages below where there are any, into a file.

    Raises as `check` and `write_whole` do.
    """
    check(file)
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    labels = [_label(period, periods) for period in periods]
    ratios = (3, 2) if any(period.resemblance_quantiles for period in periods) else (3,)
    size = min(max(NARROWEST, BAR * len(periods)), WIDEST), 1.4 * sum(ratios)
    step = ceil(BAR * len(periods) / WIDEST)
    figure, rows = pyplot.subplots(
        len(ratios), 1, figsize=size, sharex=True, height_ratios=ratios, layout="constrained", squeeze=False
    )
    drawn = rows[:, 0]
    _bars(drawn[0], periods)
    for boxes in drawn[1:]:
        _boxes(boxes, periods)
    drawn[-1].set_xticks(
        range(0, len(periods), step),
        labels[::step],
        rotation=45 if len(periods) > 4 else 0,
        ha="right" if len(periods) > 4 else "center",
        parse_math=False,  # hosts and labels may have a $
    )
    drawing = BytesIO()
    try:
        with warnings.catch_warnings():
            # A label of a sweep in a script that the font lacks is drawn as boxes.
            warnings.filterwarnings("ignore", "Glyph", UserWarning)
            figure.savefig(drawing, format=file.suffix[1:].lower())
    finally:
        pyplot.close(figure)
    write_whole(file, drawing.getvalue())


def _label(period: Changes, periods: Sequence[Changes]) -> str:
    lines = [f"{_short(period.from_sweep)} →", _short(period.to_sweep)]
    if len({p.host for p in periods}) > 1:
        lines.insert(0, _short(_drawable(period.host)))
    # Of a character that is none to be shown an SVG would be no XML.
    return "\n".join("".join(c if c.isprintable() else "\ufffd" for c in line) for line in lines)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[1 - LONGEST // 2 :]}"


def _drawable(host: str) -> str:
    """Return a host as it is, or as it is asked for (xn--) where the font has not all of its characters."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties()))
    if all(font.get_char_index(ord(c)) for c in host):
        return host
    name, colon, port = host.partition(":")
    with suppress(UnicodeError):
        name = name.encode("idna").decode()
    return name + colon + port


def _bars(axes: Any, periods: Sequence[Changes]) -> None:
    bottom = [0] * len(periods)
    for name, colour in PARTS.items():
        heights = [getattr(period, name) for period in periods]
        axes.bar(range(len(periods)), heights, bottom=bottom, color=colour, label=name, width=0.7)
        bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    axes.set_ylabel("pages")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def _boxes(axes: Any, periods: Sequence[Changes]) -> None:
    known = [(at, *of.resemblance_quantiles.values()) for at, of in enumerate(periods) if of.resemblance_quantiles]
    places, lowest, low, middle, high, highest = zip(*known, strict=True)
    axes.vlines(places, lowest, highest, color=PARTS["revised"], linewidth=1)
    axes.vlines(places, low, high, color=PARTS["revised"], linewidth=10)
    # Where all pages resemble equally, this line is all that is drawn.
    axes.hlines(middle, [at - 0.12 for at in places], [at + 0.12 for at in places], color="black", linewidth=2)
    axes.set_ylim(0, 1)
    axes.set_ylabel("resemblance of revised pages\n(5, 25, 50, 75, 95 %)")
    axes.spines[["top", "right"]].set_visible(False)
