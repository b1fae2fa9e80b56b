"""The type of an argument that may be a file: shells complete it as they complete files."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


class Place(click.types.StringParamType):
    """The path of a file or a folder, or whatever else the command takes in its place; nothing is asked of it here."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type="file")]
