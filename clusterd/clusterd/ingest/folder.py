"""A folder of HTML files, such as ``wget --mirror`` leaves or a documentation package installs.

A page's URL is the address that the folder stands for (``--base``) with the path of the file in it, in which ``?``
begins the query, as it did in what wget named so; without an address the file's own (``file:///…``). When a page was
fetched is not said by its file: mirrors set the time of the page's last change, which is the same in two sweeps. Hidden
files are passed over, and of the others those that are not HTML.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from clusterd_crawler.errors import WrongInput

from clusterd.ingest.contents import is_html, type_of, unpacked
from clusterd.ingest.raw import Broken, RawPage

#: Names of HTML files; a file of another name is looked into where it has no known media suffix.
SUFFIXES: Final = frozenset((".html", ".htm", ".xhtml", ".shtml", ".php", ".asp", ".aspx", ".jsp", ""))


def read_folder(folder: Path, base: str = "") -> Iterator[RawPage | Broken]:
    """Yield the pages of a folder, in the order of their paths."""
    root = base.rstrip("/") if base else folder.resolve().as_uri()
    safe = "/~:@!$&()*+,;=" + "?" * bool(base)
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(parent) / name
            if not name.startswith(".") and _may_be_html(file):
                inside = file.relative_to(folder).as_posix()
                yield from read_file(file, f"{root}/{quote(inside, safe=safe, errors='surrogateescape')}")


def read_file(file: Path, url: str) -> Iterator[RawPage | Broken]:
    """Yield the page in one file, if it is one."""
    try:
        data = unpacked(file.read_bytes(), str(file))
    except OSError as error:
        yield Broken(str(file), f"cannot be read: {error.strerror}")
        return
    except WrongInput as error:
        yield Broken(str(file), str(error))
        return
    if is_html(data) or file.suffix.lower() in {".html", ".htm", ".xhtml"}:
        yield RawPage(url=url.removesuffix(".gz"), body=data, content_type=type_of(file.name), where=str(file))


def _may_be_html(file: Path) -> bool:
    if os.path.exists(file) and not os.path.isfile(file):  # a pipe that nobody writes to would be waited for
        return False
    suffix = file.suffix.lower() if file.suffix.lower() != ".gz" else Path(file.stem).suffix.lower()
    return suffix in SUFFIXES or "?" in file.name or not suffix.isascii()
