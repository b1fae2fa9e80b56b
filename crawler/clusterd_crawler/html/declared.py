"""What a page declares about itself in its markup, as `markup` meets it: URLs that name it, its base, its anchors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

from clusterd_crawler.html import chrome

#: Most ids and names of one page whose trailing digits are looked at, and most different ones of these that are kept.
MAX_ANCHORS: Final = 256
MAX_ANCHORS_KEPT: Final = 64
#: Longest declared value that is kept, in bytes.
MAX_DECLARED_BYTES: Final = 2048

_ENDING_DIGITS: Final = re.compile(rb"[0-9]{1,20}\Z")

UrlKind = Literal["canonical", "shortlink", "og"]
#: What a page declares: ("canonical" | "shortlink" | "og" | "base" | "anchor", the raw value or the anchor's digits),
#: or shows besides its text (`embedded_content`): ("embedded", an attribute's raw value) or ("script", its content).
Declared = tuple[str, bytes]


@dataclass(slots=True)
class Declarations:
    """What one page has declared so far."""

    declared: list[Declared] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    #: How many have been met, and the endings that are kept.
    anchors: int = 0
    endings: set[bytes] = field(default_factory=set)

    def take(self, name: bytes, bits: int, attributes: dict[bytes, bytes]) -> None:
        """Take what the attributes of one element declare."""
        self._anchor(attributes.get(b"id", b""))
        if bits & chrome.LINK:
            self._anchor(attributes.get(b"name", b""))
        if not bits & chrome.DECLARES:
            return
        if name == b"link":
            rels = attributes.get(b"rel", b"").lower().split()
            for kind in ("canonical", "shortlink"):
                if kind.encode() in rels:
                    self._keep(kind, attributes.get(b"href", b""))
        elif name == b"base":
            self._keep("base", attributes.get(b"href", b""))
        elif b"og:url" in (attributes.get(b"property", b"").lower(), attributes.get(b"name", b"").lower()):
            self._keep("og", attributes.get(b"content", b""))

    def _anchor(self, value: bytes) -> None:
        if not value[-1:].isdigit() or self.anchors == MAX_ANCHORS or len(self.endings) == MAX_ANCHORS_KEPT:
            return
        digits = _ENDING_DIGITS.search(value)
        if digits:
            self.anchors += 1
            if digits[0] not in self.endings:
                self.endings.add(digits[0])
                self.declared.append(("anchor", digits[0]))

    def _keep(self, kind: str, value: bytes) -> None:
        """Keep the first declaration of a kind."""
        if value and len(value) <= MAX_DECLARED_BYTES and kind not in self.kinds:
            self.kinds.add(kind)
            self.declared.append((kind, value))
