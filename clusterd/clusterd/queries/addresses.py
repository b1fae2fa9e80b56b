"""What the addresses of two pages say: a page tends to keep its name when it moves.

Between pages whose texts say the same, the address decides. An equal last part of the path is worth `SAME_NAME`, and
`SAME_PLACE` more where one folder of the path was renamed and no more (``/docs/2.0/filter.html`` →
``/docs/2.4/filter.html``): together a twentieth of a full match. Such a page is the match where no text is near: it was
rewritten in its place, and its resemblance says so.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import Final

from clusterd_crawler.urls import host_of

#: What an equal page name adds to a score of at most 1, and what a path that differs in one part at most adds to that.
SAME_NAME: Final = 0.03
SAME_PLACE: Final = 0.02

#: Page names that name only their folder.
_NAMELESS: Final = ("index.", "default.", "home.", "main.")


@lru_cache(maxsize=4)  # of one query it is asked for each candidate
def page_name(url: str) -> str:
    """Return the last part of a URL's path, with its query; with the folder before it where it says only "index"."""
    path, query = _path_and_query(url)
    folder, _, name = path.rstrip("/").rpartition("/")
    if name.lower().startswith(_NAMELESS):
        name = f"{folder.rpartition('/')[2]}/{name}"
    return f"{name}?{query}" if query else name


def address_bonus(a: str, b: str) -> float:
    """Return what the addresses add to the score of two pages."""
    name = page_name(a)
    if not name or name != page_name(b):
        return 0.0
    first, second = _path_and_query(a)[0].split("/"), _path_and_query(b)[0].split("/")
    in_place = len(first) == len(second) and sum(x != y for x, y in zip(first, second, strict=True)) <= 1
    return SAME_NAME + SAME_PLACE * in_place


def spots(url: str) -> list[int]:
    """Return a number for each part of a URL's path: with paths that differ in this part at most it is in common."""
    parts = _path_and_query(url)[0].split("/")
    before = accumulate(parts, _following, initial=len(parts))
    behind = list(accumulate(reversed(parts), _following, initial=len(parts)))
    return [hash((n, one, behind[-2 - n])) for n, one in zip(range(len(parts)), before, strict=False)]


def _following(number: int, part: str) -> int:
    return hash((number, part))


def _path_and_query(url: str) -> tuple[str, str]:
    """Return both of any URL, also of one that Python takes for none (``http://a[b]@h/``)."""
    head, mark, rest = url.partition("#")[0].partition("://")
    path, _, query = (rest[len(host_of(url)) :] if mark else head).partition("?")
    return path, query
