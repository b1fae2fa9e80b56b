"""The compiled core, where it was built: the same results as the Python code, several times faster."""

from __future__ import annotations

from types import ModuleType

from clusterd_crawler import chrome
from clusterd_crawler.token_classes import class_table


def _load() -> ModuleType | None:
    try:
        from clusterd_crawler import _core
    except ImportError:
        return None
    _core.set_classes(class_table())
    _core.set_markup(chrome.TAGS, chrome.ROLES, chrome.NAMES)
    return _core


#: The extension module, or None where there is none (then NumPy and pure Python do the work).
CORE = _load()
