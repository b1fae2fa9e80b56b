"""Index pages, slashes at the end, capitals: ``/About``, ``/about/`` and ``/about/index.html`` are ``/about``."""

from __future__ import annotations

from clusterd_crawler.rules import Condition, Edit, Key

from clusterd.learning.edits.edit import PathEdit


def index_page(name: str) -> PathEdit:
    """``/about/index.html`` is ``/about/``."""
    return PathEdit(
        (Edit(Key(end=1), "set", ""),),
        lambda parts: [*parts[:-1], ""] if parts[-1] == name else None,
        (Condition(Key(end=1), "is", (name,)),),
    )


def last_component(name: str) -> PathEdit:
    """``/about/index.html`` is ``/about``, where a server knows folders without their slash."""
    return PathEdit(
        (Edit(Key(end=1), "delete"),),
        lambda parts: parts[:-1] if len(parts) > 1 and parts[-1] == name else None,
        (Condition(Key(end=1), "is", (name,)), Condition(Key(end=2), "any")),
    )


def lower_case() -> PathEdit:
    """``/About`` is ``/about``."""
    return PathEdit((Edit(Key(), "lower"),), lambda parts: [part.lower() for part in parts])


def last_slash() -> PathEdit:
    """``/about/`` is ``/about``."""
    return PathEdit((Edit(Key(end=1), "delete"),), _without_slash, (Condition(Key(end=1), "is", ("",)),))


def _without_slash(parts: list[str]) -> list[str] | None:
    return parts[:-1] if len(parts) > 1 and parts[-1] == "" else None
