"""The type of an argument that may be a file: shells complete it as they complete files."""

from __future__ import annotations

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
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type="file")]
