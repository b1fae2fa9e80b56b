"""Endings of URLs that name files. What rules say of pages need not hold of the files that lie beside them: a rule that
``/p/12/any-title`` is ``/p/12`` is learned from pages alone, and ``/p/12/manual.pdf`` is no title.
"""

from __future__ import annotations

from mimetypes import MimeTypes
from typing import Final

_TYPES: Final = MimeTypes()
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
#: Endings of programs that make pages.
_PROGRAMS: Final = frozenset({".dll", ".exe", ".pl", ".py"})
_FILES: Final = (
    frozenset(ending for ending, kind in _TYPES.types_map[True].items() if kind not in _PAGES)
    | {*_TYPES.encodings_map, *_TYPES.suffix_map, ".7z", ".atom", ".docx", ".epub", ".pptx", ".rar", ".rss", ".xlsx"}
) - _PROGRAMS


def ending(url: str) -> str:
    """Return the ending of a URL's path, in lower case, where it is that of a file; else "".

    >>> ending("http://h.com/p/12/manual.PDF?page=3"), ending("http://h.com/a.html"), ending("http://h.com/v1.2")
    ('.pdf', '', '')
    """
    path = url.partition("?")[0]
    found = path[path.rfind(".") :].lower()
    return found if found in _FILES else ""


def may_show_file(url: str, known: str) -> bool:
    """Whether a known page may show what a URL names: where that is a file, the page's URL names one of its kind."""
    found = ending(url)
    return not found or found in known.lower()
