"""What a page shows besides words, as `markup` meets it: embedded content (HTML standard, section 4.8) and inline data.

Of each element that embeds a file the attributes that may name it are kept, those of lazy loading too: where ``src`` is
a placeholder, ``data-src`` is the picture. A picture of at most `PIXEL` pixels counts visits and shows nothing. Inline
scripts are kept of a page of hardly any letters: it is made from them in the browser. What stands in chrome or is
hidden is not kept, nor is what `main_text` decides not to be main text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from clusterd_crawler.html.declared import Declared

#: Most elements that embed something, and most inline scripts, of one page that are kept.
MAX_EMBEDDED: Final = 64
MAX_SCRIPTS: Final = 64
#: Letters of a page from which on its scripts are not kept.
SHELL_LETTERS: Final = 512
#: Longest side of a picture that is not looked at.
PIXEL: Final = 2

#: Attributes that name what is embedded, in the order in which they are kept.
NAMING: Final = (b"src", b"data", b"poster", b"srcset", b"data-src", b"data-original", b"data-lazy-src")
_SIDES: Final = frozenset(str(side).encode() for side in range(PIXEL + 1))


@dataclass(slots=True)
class Embedded:
    """What one page has embedded so far."""

    #: Where in the text each element stands, and what it embeds.
    files: list[tuple[int, tuple[bytes, ...]]] = field(default_factory=list)
    #: The contents of inline scripts.
    scripts: list[bytes] = field(default_factory=list)

    def take(self, attributes: dict[bytes, bytes], at: int) -> None:
        """Take what an element embeds that stands at a place of the text."""
        if len(self.files) == MAX_EMBEDDED or {attributes.get(b"width"), attributes.get(b"height")} & _SIDES:
            return
        named = tuple(attributes[name] for name in NAMING if attributes.get(name))
        if named:
            self.files.append((at, named))

    def take_script(self, content: bytes) -> None:
        """Take an inline script."""
        if len(self.scripts) < MAX_SCRIPTS:
            self.scripts.append(content)

    def shown(self, spans: Sequence[tuple[int, int]], letters: int) -> list[Declared]:
        """Return what is embedded outside of sorted spans of a text of so many letters, in its order."""
        found: list[Declared] = []
        last = 0
        for at, named in self.files:
            while last < len(spans) and spans[last][1] <= at:
                last += 1
            if last == len(spans) or at <= spans[last][0]:
                found += [("embedded", value) for value in named]
        if letters < SHELL_LETTERS:
            found += [("script", content) for content in self.scripts]
        return found
