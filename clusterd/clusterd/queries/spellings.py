"""The spellings under which a store may have a URL: pages are kept as they were named by crawls, archives and files.

Who asks gives the canonical form more often than not. What links, browsers and archives write in its place is few:
``%7E`` for ``~``, escapes in small letters, letters and blanks that were never escaped, the letters of an IDN, the port
that goes without saying, no path. Those are tried, 64 at most; a host in capitals is found as given only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Final

import idna
from clusterd_crawler.urls import DEFAULT_PORTS, canonical_if_any, host_of, is_text

_ESCAPES: Final = re.compile(r"(?:%[0-9A-F]{2})+")
#: What stands in a URL only escaped: of a stored one somebody forgot to.
_NEVER_RAW: Final = re.compile(r"[^\x00-\x1f\x7f!#$%&'()*+,/:;=?@\[\\\]|\w.~-]|[^\x00-\x7f]")


def spellings(url: str) -> tuple[list[str], list[str]]:
    """Return a URL as given and in its canonical form; and as others may have spelled that.

    None with half a character, which no stored URL has.
    """
    if not (form := canonical_if_any(url)):
        return [url] if is_text(url) else [], []
    first = [one for one in dict.fromkeys((url, form)) if is_text(one)]
    return first, [one for one in dict.fromkeys(_others(form)) if one not in first and canonical_if_any(one) == form]


def _others(form: str) -> Iterator[str]:
    scheme, _, rest = form.partition("://")
    host = host_of(form)
    end = rest.removeprefix(host)
    ends = [spelled.replace("~", tilde) for spelled in (end, _raw(end)) for tilde in ("~", "%7E")]
    ends += [_ESCAPES.sub(lambda match: match[0].lower(), one) for one in ends]
    ends += [one[1:] for one in ends if one == "/" or one.startswith("/?")]
    for name, one in product(_hosts(scheme, host), ends):
        yield f"{scheme}://{name}{one}"


def _hosts(scheme: str, host: str) -> list[str]:
    names = [host]
    if "xn--" in host:
        name, colon, port = host.partition(":")
        with suppress(idna.IDNAError, UnicodeError):
            names.append(f"{idna.decode(name)}{colon}{port}")
    default = DEFAULT_PORTS.get(scheme)
    return names if default is None else [*names, *(f"{name}:{default}" for name in names)]


def _raw(text: str) -> str:
    """Return a path and query with nothing escaped that is no URL's character anyway, where that is UTF-8."""

    def unescaped(match: re.Match[str]) -> str:
        try:
            characters = bytes.fromhex(match[0].replace("%", "")).decode()
        except UnicodeDecodeError:
            return match[0]
        return "".join(
            one if _NEVER_RAW.match(one) else "".join(f"%{byte:02X}" for byte in one.encode()) for one in characters
        )

    return _ESCAPES.sub(unescaped, text)
