"""Soft errors: pages that say with status 200 that the page is not there, or that they are to keep robots out.

They justify no skip: they stand under any URL for a while, and say nothing of what it shows at other times. A false
alarm costs one fetch.
"""

from __future__ import annotations

import re
from typing import Final

from clusterd_crawler.html.references import unescape
from clusterd_crawler.text import utf8

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
#: What stands before a site while it takes the crawler for an attack.
_KEEPS_OUT: Final = re.compile(
    r"\bjust a moment\b|\bone moment,? please\b|\battention required\b|\bchecking your browser\b|\bddos[- ]protection\b"
    r"|\bsecurity (?:check|checkpoint|verification)\b|\bare you (?:a |an )?(?:human|robot|bot)\b|\brobot check\b"
    r"|\bhuman verification\b|\b(?:verify|prove|confirm)(?:ing)? (?:that )?you(?:'re|’re| are) (?:a )?(?:human|not a)\b"
    r"|\bbot (?:check|detection|protection|verification)\b|\b(?:re)?captcha\b|\bpardon our interruption\b"
    r"|\bunusual traffic\b|\btoo many requests\b|\brate[- ]limit(?:ed| exceeded)\b|\bwebsite firewall\b"
    r"|\brequest (?:blocked|rejected|unsuccessful)\b"
    r"|\b(?:you have been|has been|access|you are) (?:temporarily )?(?:blocked|denied|banned)\b"
)
#: One of these is in every title that matches, in lower case: looked for first, as most titles hold none.
_WORDS: Final = (
    *("40", "41", "429", "50", "found", "exist", "no longer", "unavailable", "denied", "maintenance", "introuvable"),
    *("gefunden", "encontrad", "trovata", "найден", "找不到", "見つかりません", "찾을 수 없"),
    *("moment", "attention", "browser", "ddos", "security", "robot", "bot ", "human", "captcha", "interruption"),
    *("traffic", "too many", "rate", "blocked", "rejected", "unsuccessful", "banned", "firewall"),
)


def is_soft_error(body: bytes, content_type: str | None = None) -> bool:
    """Whether a page's title says that this is not the page.

    >>> is_soft_error(b"<title>404 Not Found</title>"), is_soft_error(b"<title>HTTP in 404 pages</title>")
    (True, False)
    """
    title = _said(body[:HEAD_BYTES], content_type)
    return any(word in title for word in _WORDS) and bool(_SAYS_SO.search(title) or _KEEPS_OUT.search(title))


def _said(head: bytes, content_type: str | None) -> str:
    """Return the title in lower case. Its charset is asked for only where it is not UTF-8: that takes longer."""
    title = _title(head)
    if b"\0" in head or b"\x1b" in title or not _is_utf8(title):  # UTF-16; ISO-2022-JP, which is ASCII
        title = _title(utf8(head, content_type))
    return unescape(title).decode("utf-8", "replace").lower()


def _is_utf8(title: bytes) -> bool:
    try:
        title.decode()
    except UnicodeDecodeError:
        return False
    return True


def _title(head: bytes) -> bytes:
    """Return the first title, empty where it has no end or is long."""
    lower = head.lower()  # for its tags: the second byte of a character may be one of a letter
    start = lower.find(b"<title")
    begin = lower.find(b">", start) + 1 if start >= 0 else 0
    end = lower.find(b"</title", begin, begin + TITLE_BYTES + len(b"</title")) if begin else -1
    return head[begin:end] if end >= 0 else b""
