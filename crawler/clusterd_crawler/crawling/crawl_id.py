"""Which crawl this is, and whose pages it takes as known.

A crawl that is named by setting is shared by all crawlers that bear the name. One without a name is its own, and keeps
its identity in its JOBDIR where it has one, so that what was fetched before it was paused is known after.
"""

from __future__ import annotations

import logging
import uuid
from pathlib import Path
from typing import Final

from clusterd_crawler.settings import Settings
from clusterd_crawler.subscribe.others_pages import Wanted

logger = logging.getLogger(__name__)

#: File of a JOBDIR that holds the crawl's id.
FILE: Final = "clusterd-crawl"
#: Longest id that is believed.
LONGEST: Final = 200


def identify(settings: Settings, spider: str, job: str | None) -> Wanted:
    """Return the crawl's id and whose pages count in it."""
    within = settings.counts_for()
    if settings.crawl_id:
        return Wanted(settings.crawl_id, within, own=True)
    new = f"{spider}-{uuid.uuid4().hex[:12]}"
    if not job:
        return Wanted(new, within)
    resumed = _read(Path(job) / FILE)
    if not resumed:
        _write(Path(job) / FILE, new)
    return Wanted(resumed or new, within, own=bool(resumed))


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()[:LONGEST]
    except (OSError, UnicodeDecodeError):
        return ""


def _write(path: Path, crawl: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{crawl}\n", "utf-8")
    except OSError as error:
        logger.warning("The crawl's id cannot be kept for a resume: %s", error)
