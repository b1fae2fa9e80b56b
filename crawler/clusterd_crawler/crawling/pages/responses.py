"""Which responses hold a whole page, so that a skip may rest on them."""

from __future__ import annotations

from typing import Final

from scrapy.http import Response

from clusterd_crawler.soft_errors import is_soft_error

#: Scrapy's flags of a body that is not whole: the connection ended too early (``DOWNLOAD_FAIL_ON_DATALOSS`` is off), or
#: the spider wanted no more (`StopDownload`). ("partial" is only a body whose length nobody told.)
CUT: Final = frozenset({"dataloss", "download_stopped"})


def is_part(response: Response) -> bool:
    """Whether only a part of the page came. What two pages show in their beginnings says nothing of the rest."""
    return response.status == 206 or not CUT.isdisjoint(response.flags)


def is_good(response: Response) -> bool:
    """Whether a page came, whole: not an error, nor one that only its title tells, nor an empty answer."""
    if not 200 <= response.status < 300 or is_part(response):
        return False
    content_type = (response.headers.get("Content-Type") or b"").decode("latin-1")
    return bool(response.body.strip()) and not is_soft_error(response.body, content_type)
