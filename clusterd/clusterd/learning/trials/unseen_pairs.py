"""Pairs of values that were never tried together, though each was tried often: a context lets no such pair through.

A context lists the values of each key by itself. That ``period=week&date=23`` and ``period=week&date=26`` show this
week, and ``period=day&date=26`` this day, says nothing about ``period=day&date=23``. Where two values would have met in
so many agreeing pages that their never doing so is no luck, the one of fewer pages is left out; what had met nothing
else goes with it. Only where values mix at all: where each part of a site has a default of its own
(``news?sort=date``, ``shop?sort=price``), no page of it asks for that of another.

Cost: a table of the values of two keys, from all their pages.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition

from clusterd.learning.evidence.arrays import Flags, Rows
from clusterd.learning.trials.attributes import Attribute
from clusterd.learning.trials.narrowing import Trials

#: Pages in which two values would have met by chance, from which on their never meeting is no luck (e^-3 is 5 %).
NO_LUCK: Final = 3.0


def leave_out(trials: Trials, one: Attribute, edited: Attribute, conditions: list[Condition]) -> None:
    """Leave values of a key, or of an edited parameter, out of a context until no pair is left that never met."""
    rows = trials.agreeing
    ones, at = np.unique(one.values[rows], return_inverse=True)
    others, beside = np.unique(edited.values[rows], return_inverse=True)
    met = np.zeros((len(ones), len(others)), np.int64)
    np.add.at(met, (at, beside), 1)
    met = met[:, others > 0]
    kept, of_edited = _kept(met, _mixing(one, edited, ones))
    absent = others[others == 0]
    _narrow(trials, one, conditions, ones[kept], kept)
    _narrow(trials, edited, conditions, np.concatenate([absent, others[others > 0][of_edited]]), of_edited)


def _mixing(one: Attribute, edited: Attribute, ones: Rows) -> Flags:
    """Return which values of a key come with values of the parameter in common, directly or over others."""
    rows = np.isin(one.values, ones) & (edited.values > 0)
    values, at = np.unique(edited.values[rows], return_inverse=True)
    seen = np.zeros((len(ones), len(values)), np.bool_)
    seen[np.searchsorted(ones, one.values[rows]), at] = True
    mixing, further = np.eye(len(ones), dtype=np.bool_), seen @ seen.T
    while not np.array_equal(mixing, further):
        mixing, further = further, further @ further
    return mixing


def _kept(met: Rows, mixing: Flags) -> tuple[Flags, Flags]:
    """Return which rows and columns of a table are kept for no pair to be left that should have met and did not."""
    rows, columns = np.ones(met.shape[0], np.bool_), np.ones(met.shape[1], np.bool_)
    expected = np.outer(met.sum(1), met.sum(0)) / max(1, int(met.sum()))
    expected[(met > 0) | ~(mixing @ (met > 0))] = 0
    while expected.max(initial=0) >= NO_LUCK:
        row, column = np.unravel_index(int(np.argmax(expected)), expected.shape)
        if met[row, columns].sum() < met[rows, column].sum():
            rows[row] = False
            expected[row] = 0
        else:
            columns[column] = False
            expected[:, column] = 0
    return rows, columns


def _narrow(trials: Trials, of: Attribute, conditions: list[Condition], values: Rows, kept: Flags) -> None:
    if kept.all():
        return
    for at, known in enumerate(conditions):
        if known.key == of.key:
            if known.test == "within":
                values = np.union1d(values, [0])
            left = of.written(values)
            conditions[at] = of.condition(left) or known
            trials.narrow(np.isin(of.values, left))
            return
