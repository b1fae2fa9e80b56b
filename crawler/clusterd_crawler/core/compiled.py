"""The compiled core, where it was built: the same results as the Python code, several times faster.

``CLUSTERD_PURE=1`` in the environment leaves it aside.
"""

from __future__ import annotations

import os
from html.entities import html5
from types import ModuleType
from typing import Final

from clusterd_crawler import tokens
from clusterd_crawler.html import chrome
from clusterd_crawler.settings import PURE
from clusterd_crawler.token_classes import class_table


def _load() -> ModuleType | None:
    if os.environ.get(PURE) == "1":
        return None
    try:
        from clusterd_crawler.core import _core
    except ImportError:
        return None
    _core.set_classes(class_table())
    _core.set_fold(tokens.fold_block)
    references = {name.encode(): text.encode() for name, text in html5.items() if name.endswith(";")}
    _core.set_markup(chrome.TAGS, chrome.EMBEDDING, chrome.ROLES, chrome.SAID, references)
    return _core


#: The extension module, or None where there is none (then NumPy and pure Python do the work).
CORE = _load()

#: What a crawl and a daemon say in their logs where they run without: an installer does not show that none was built.
LACKING: Final = (
    "clusterd runs without its compiled cores, and a page takes several times the CPU: they are built when clusterd is "
    "installed, by a C compiler with Python's headers"
)
