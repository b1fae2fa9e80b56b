"""The type of an option that is a share: a number from 0 to 1. (`click.FloatRange` lets ``nan`` through.)"""

from __future__ import annotations

from math import isnan
from typing import Any

import click


class Share(click.FloatRange):
    """A number from 0 to 1; ``min_open`` and ``max_open`` leave out the ends."""

    def __init__(self, *, min_open: bool = False, max_open: bool = False) -> None:
        super().__init__(0, 1, min_open=min_open, max_open=max_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what is no number, too."""
        share: float = super().convert(value, param, ctx)
        if isnan(share):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return share
