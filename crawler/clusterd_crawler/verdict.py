"""The daemon's answer for one page (daemon → the crawl that asked, `topics.VERDICTS`): one JSON object."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from clusterd_crawler.errors import MessageError


@dataclass(frozen=True, slots=True)
class Verdict:
    """The daemon's answer for one page: which known page it resembles, and its cluster under a policy."""

    url: str
    fetched_at: int
    crawl: str = ""
    #: The known page that matches best; None where there is none.
    match: str | None = None
    resemblance: float = 0.0
    cluster: str | None = None
    policy: str = "near"
    #: URLs in the cluster.
    size: int = 1
    #: Whether the page differs from its match too much for any rule, and yet little, while their URLs differ in
    #: parameters alone that one of them lacks: it may be a counter or a date that tells the two apart.
    nearly: bool = False


_FIELDS: Final = tuple(f.name for f in fields(Verdict))
#: Types of a verdict's fields, where they are not text.
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "fetched_at": (int,),
    "size": (int,),
    "nearly": (bool,),
    "resemblance": (int, float),
    "match": (str, type(None)),
    "cluster": (str, type(None)),
}


def encode_verdict(verdict: Verdict) -> bytes:
    """Return the JSON of a verdict."""
    return json.dumps(asdict(verdict), ensure_ascii=False, separators=(",", ":")).encode()


def decode_verdict(raw: bytes) -> Verdict:
    """Return the verdict in a JSON object; fields that we do not know are ignored, as later versions may add some."""
    try:
        given = json.loads(raw)
        known = {name: given[name] for name in _FIELDS if name in given}
        _check_verdict(known)
        return Verdict(**known)
    except (ValueError, TypeError, RecursionError) as error:
        raise MessageError(f"not a verdict: {error}", raw) from None


def _check_verdict(known: dict[str, Any]) -> None:
    """Refuse a value of another type than its field's."""
    for name, value in known.items():
        if not isinstance(value, _TYPES.get(name, str)):
            raise TypeError(f"{name} is {value!r}")
