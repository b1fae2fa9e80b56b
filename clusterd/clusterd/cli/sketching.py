"""The options of every command that makes sketches of documents in files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Command = TypeVar("Command", bound=Callable[..., Any])

PROFILE: Final = click.option(
    "--profile", type=click.Choice(["text", "compact", "short"]), help="How a text becomes a sketch."
)
JOBS: Final = click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1),
    default=cores,
    help="Processes that sketch, where there are many pages; default: one for each core.",
)


def sketching(command: Command) -> Command:
    """Give a command the options ``--profile`` and ``--jobs``."""
    return PROFILE(JOBS(command))
