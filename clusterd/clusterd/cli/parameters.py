"""The types of arguments and options that click has not."""

from __future__ import annotations

from math import isnan
from typing import Any

import click
from click.shell_completion import CompletionItem


class Place(click.types.StringParamType):
    """The path of a file or a folder, or whatever else the command takes in its place; nothing is asked of it here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty name, as of a shell's variable that is not set: `Path` takes it for the working folder."""
        if not value:
            self.fail("the name is empty; it takes a folder or a file", param, ctx)
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave it to the shell, which completes it as it completes files."""
        return [CompletionItem(incomplete, type="file")]


class Host(click.types.StringParamType):
    """The name of a host. An empty one, as of a shell's variable that is not set, would stand for all of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty name."""
        if not value:
            self.fail("the name is empty; it takes a host", param, ctx)
        return super().convert(value, param, ctx)


class Share(click.FloatRange):
    """A number from 0 to 1, which ``nan`` is not; ``min_open`` and ``max_open`` leave out the ends."""

    def __init__(self, *, min_open: bool = False, max_open: bool = False) -> None:
        super().__init__(0, 1, min_open=min_open, max_open=max_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what is no number, too: `click.FloatRange` lets it through."""
        share: float = super().convert(value, param, ctx)
        if isnan(share):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return share
