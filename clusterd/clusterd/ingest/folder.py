"""A folder of HTML files, such as ``wget --mirror`` leaves or a documentation package installs.

A page's URL is the address that the folder stands for (``--base``) with the path of the file in it, in which ``?``
begins the query, as it did in what wget named so, and ``%2F`` there is the ``/`` that no name of a file may have; an
address that ends with its scheme (``https://``) takes the folders in it for hosts. Without an address the URL is the
file's own (``file:///…``). When a page was fetched is not said by its file: mirrors set the time of the page's last
change, which is the same in two sweeps. Hidden files are passed over, and of the others those that are not HTML: of
these no more is read than tells so, since one may have no end, as those of ``/proc``. What a mirror calls a page is as
its URL ended (``St._Louis``, ``view.cgi``, ``go.jsp;jsessionid=1``): a file of any name may be one, but for the endings
of other kinds of files.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from clusterd_crawler.errors import WrongInput
from clusterd_crawler.skipping.endings import ending

from clusterd.ingest.contents import (
    LINES,
    PASSED_OVER,
    begins_as_html,
    decompressed,
    is_html,
    type_of,
    unpacked,
)
from clusterd.ingest.frames import MOST
from clusterd.ingest.packings import ENDINGS, packing_of, without_packing
from clusterd.ingest.raw import Broken, RawPage

#: Names of files that are pages, whatever they hold.
NAMED: Final = frozenset((".html", ".htm", ".xhtml"))
#: Names of files that are pages where a tag is near their beginning; one of another name has to begin with it.
SUFFIXES: Final = NAMED | frozenset((".shtml", ".php", ".asp", ".aspx", ".jsp", ""))
#: Endings of the names of copies that Wget (-K) and editors keep beside a page of the name before it.
BACKUPS: Final = (".orig", ".bak", "~")
#: Endings of the names of files that hold pages and are brought in by themselves, or have to become JSON lines before.
COLLECTIONS: Final = (
    ".wacz",
    ".parquet",
    *(kind + packed for kind in (".warc", ".wet", ".arc", *LINES) for packed in ("", *ENDINGS)),
)
#: Beside the folders of hosts lies what a mirror's program makes for itself: its own name would be taken for a host.
HOSTLESS: Final = "lies in no folder that could be its host, as --base {} says; name it by itself if it is wanted"
#: What stays of a name in a URL.
_SAFE: Final = "/~:@!$&()*+,;="


def read_folder(folder: Path, base: str) -> Iterator[RawPage | Broken]:
    """Yield the pages of a folder, in the order of their paths.

    A folder in it that cannot be read is named, and what holds many pages: it may have more than all other files.
    """
    unread: list[OSError] = []
    for file in _files(folder, unread):
        if file.name.lower().endswith(COLLECTIONS):
            yield Broken(str(file), "of a folder the HTML files are read; name what holds many pages by itself")
        elif _is_read(file):
            for item in read_file(file, _url(file, folder, base)):
                hostless = base.endswith("://") and file.parent == folder and isinstance(item, RawPage)
                yield Broken(str(file), HOSTLESS.format(base)) if hostless else item
    yield from (Broken(str(error.filename), f"cannot be read: {error.strerror}") for error in unread)


def _files(folder: Path, unread: list[OSError]) -> Iterator[Path]:
    """Yield all files in a folder that are not hidden; why folders in it cannot be read is put into ``unread``."""
    for parent, folders, names in os.walk(folder, onerror=unread.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent) / name for name in sorted(names) if not name.startswith("."))


def read_file(file: Path, url: str) -> Iterator[RawPage | Broken]:
    """Yield the page in one file, if it is one; of a page of more than `MOST` bytes the beginning."""
    try:
        with file.open("rb") as stream:
            data = stream.read(PASSED_OVER)
            if file.suffix.lower() not in NAMED and not _may_be_page(file, data):
                return
            is_packed = packing_of(data) is not None
            data = unpacked(data + stream.read(MOST - len(data)), "it")
    except OSError as error:
        yield Broken(str(file), f"cannot be read: {error.strerror}")
        return
    except WrongInput as error:
        yield Broken(str(file), str(error))
        return
    if file.suffix.lower() in NAMED or is_html(data):
        url = without_packing(url) if is_packed else url  # a page may be the one about an archive: ``?file=a.tar.xz``
        yield RawPage(url=url, body=data, content_type=type_of(file.name), where=str(file))


def may_be_html(file: Path) -> bool:
    """Whether a file may hold a page, as far as its name tells."""
    suffix = Path(without_packing(file.name)).suffix.lower()
    return suffix in SUFFIXES or "?" in file.name or not suffix.isascii()


def _may_be_page(file: Path, head: bytes) -> bool:
    """Whether a file that begins so may be a page; a packed one whose name promises one has to be unpacked first."""
    if may_be_html(file):
        return packing_of(head) is not None or is_html(head)
    return begins_as_html(decompressed(io.BufferedReader(io.BytesIO(head))).read(PASSED_OVER))


def _is_read(file: Path) -> bool:
    """Whether a file of a folder is read: no pipe that nobody writes to, nor a file of the kernel's that is waited for.

    The latter say that they have no bytes. One that is not there is read, so that it is named.
    """
    try:
        status = file.stat()
    except OSError:
        return may_be_html(file)
    read = stat.S_ISREG(status.st_mode) and (status.st_size > 0 or file.suffix.lower() in NAMED)
    return read and (may_be_html(file) or not (ending(file.name) or file.name.endswith(BACKUPS)))


def _url(file: Path, folder: Path, base: str) -> str:
    """Return the address of a file in a folder."""
    inside = file.relative_to(folder).as_posix()
    if not base:
        return f"{folder.resolve().as_uri()}/{quote(inside, safe=_SAFE, errors='surrogateescape')}"
    path, mark, query = quote(inside, safe=_SAFE + "?", errors="surrogateescape").partition("?")
    root = base if base.endswith("://") else base.rstrip("/") + "/"
    return root + path + mark + query.replace("%252F", "%2F")
