"""Soft errors: pages that say "not found" with status 200. They justify no skip; a false alarm costs one fetch."""

from __future__ import annotations

import re
from typing import Final

#: Bytes of the page in which its title is looked for, and of the longest title that is looked at.
HEAD_BYTES: Final = 4096
TITLE_BYTES: Final = 300

_SAYS_SO: Final = re.compile(
    r"\b(?:40[0134]|410|429|50[0234])\b.{0,40}\b(?:error|not found|forbidden|unavailable|too many|bad request)"
    r"|\berror\s+(?:40\d|410|429|50\d)\b|^\s*(?:404|410|50[0234])\s*$"
    r"|\b(?:page|file|document|topic|article)?\s*(?:was |is |could )?not (?:be )?found\b"
    r"|\bdoes not exist\b|\bno longer (?:available|exists)\b|\btemporarily unavailable\b|\bservice unavailable\b"
    r"|\baccess denied\b|\bunder maintenance\b|\bpage introuvable\b|\bnicht gefunden\b|\bno encontrad[ao]\b"
    r"|\bnão encontrad[ao]\b|\bpagina non trovata\b|\bне найден[ао]?\b|找不到|ページが見つかりません|찾을 수 없",
    re.IGNORECASE,
)
#: One of these is in every title that matches, in lower case: looked for first, as most titles hold none.
_WORDS: Final = (
    *("40", "41", "429", "50", "found", "exist", "no longer", "unavailable", "denied", "maintenance", "introuvable"),
    *("gefunden", "encontrad", "trovata", "найден", "找不到", "見つかりません", "찾을 수 없"),
)


def is_soft_error(body: bytes) -> bool:
    """Whether a page's title says that there is no page.

    >>> is_soft_error(b"<title>404 Not Found</title>"), is_soft_error(b"<title>HTTP in 404 pages</title>")
    (True, False)
    """
    title = _title(body[:HEAD_BYTES].lower()).decode("utf-8", "replace").lower()
    return any(word in title for word in _WORDS) and _SAYS_SO.search(title) is not None


def _title(head: bytes) -> bytes:
    """Return the first title, empty where it has no end or is long."""
    start = head.find(b"<title")
    begin = head.find(b">", start) + 1 if start >= 0 else 0
    end = head.find(b"</title", begin, begin + TITLE_BYTES + len(b"</title")) if begin else -1
    return head[begin:end] if end >= 0 else b""
