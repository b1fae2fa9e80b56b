"""WACZ files (Web Archive Collection Zipped 1.1.1), as Browsertrix and ArchiveWeb.page write them: a zip archive whose
folder ``archive`` holds WARC files. Its indexes, lists of pages and logs say nothing that these do not.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from clusterd_crawler.errors import WrongInput

from clusterd.ingest.contents import ZIP

#: Where a WACZ keeps its WARC files, and how their names go on.
FOLDER: Final = "archive/"
NAMED: Final = (".warc", ".warc.gz", ".warc.zst")


def is_wacz(path: str) -> bool:
    """Whether a zip archive holds WARC files as a WACZ does; `WrongInput` where they cannot be read."""
    try:
        with zipfile.ZipFile(path) as packed:
            held = _warcs(packed)
            for one in held:
                packed.open(one).close()
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError) as error:
        # Broken (the system says so of a place before the file's beginning, Python of a name that is not the UTF-8
        # that it says it is); packed otherwise, or encrypted.
        raise WrongInput(f"{path}: is a zip archive that cannot be read: {error}") from None
    return bool(held)


def warc_files(path: str) -> Iterator[tuple[str, io.BufferedReader, int]]:
    """Yield the WARC files in a path, itself or those of a WACZ: name, content, and the bytes of the path before it."""
    with Path(path).open("rb") as stream:
        is_packed = stream.read(len(ZIP)) == ZIP
        stream.seek(0)
        if not is_packed:
            yield path, stream, 0
            return
        before = 0
        with zipfile.ZipFile(stream) as packed:
            for held in _warcs(packed):
                with packed.open(held) as content:
                    yield f"{path}/{held.filename}", cast(io.BufferedReader, content), before  # it can peek, too
                before += held.compress_size


def _warcs(packed: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the WARC files, in the order in which they lie there."""
    return [held for held in packed.infolist() if held.filename.startswith(FOLDER) and held.filename.endswith(NAMED)]
