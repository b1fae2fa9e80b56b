"""A page as a browser reads it: parsed by lexbor and written again, every element closed where a browser closes it.

selectolax writes with the interpreter's lock held, 9 ms a MB, which would stop the crawl's loop for that long. So a
large page goes to the same library past selectolax, through `ctypes`, which lets go of the lock for each call. Where
the extension module does not export its library, large pages take the usual way.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import selectolax.lexbor
from selectolax.lexbor import LexborHTMLParser

#: Bytes of a page from which on the lock is let go of: 2 ms of writing.
LARGE: Final = 256 * 1024

#: A parser that runs no scripts reads what stands for them as markup, and so does lexbor: an unclosed comment in it
#: would swallow the page, and what a head does not hold would be shown. What stands for plug-ins is never markup.
_NOSCRIPT: Final = re.compile(rb"(</?)noscript(?=[\t\n\f\r />])", re.IGNORECASE)


class _Text(ctypes.Structure):
    """``lexbor_str_t``: its memory is the document's."""

    _fields_ = (("data", ctypes.c_void_p), ("length", ctypes.c_size_t))


def well_nested(page: bytes) -> bytes:
    """Return UTF-8 markup as lexbor writes it after parsing it, every ``noscript`` a ``noembed``."""
    page = b"".join(_NOSCRIPT.sub(rb"\1noembed", piece) for piece in _pieces(page))
    library = _library() if len(page) >= LARGE else None
    written = None if library is None else _without_lock(library, page)
    return (LexborHTMLParser(page).html or "").encode("utf-8", "surrogatepass") if written is None else written


def _pieces(page: bytes) -> Iterator[bytes]:
    """Return a page in parts, no tag's name in two of them: between two, other threads get their turn."""
    begin = 0
    while len(page) - begin > LARGE and (cut := page.find(b"<", begin + LARGE)) >= 0:
        yield page[begin:cut]
        begin = cut
    yield page[begin:]


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(selectolax.lexbor.__file__)
        library.lxb_html_document_create.restype = ctypes.c_void_p
        library.lxb_html_document_create.argtypes = ()
        library.lxb_html_document_parse.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
        library.lxb_html_serialize_tree_str.argtypes = (ctypes.c_void_p, ctypes.POINTER(_Text))
        library.lxb_html_document_destroy.argtypes = (ctypes.c_void_p,)
    except (OSError, AttributeError):
        return None
    return library


def _without_lock(library: ctypes.CDLL, page: bytes) -> bytes | None:
    """Parse and write; None where the library fails."""
    document = library.lxb_html_document_create()
    if not document:
        return None
    try:
        text = _Text()
        if library.lxb_html_document_parse(document, page, len(page)) != 0:
            return None
        if library.lxb_html_serialize_tree_str(document, ctypes.byref(text)) != 0:
            return None
        return ctypes.string_at(text.data, text.length) if text.data else b""
    finally:
        library.lxb_html_document_destroy(document)
