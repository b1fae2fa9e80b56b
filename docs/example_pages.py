"""Make the small collection that `docs/questions.md` asks about: ``python3 docs/example_pages.py FOLDER``.

The texts are those of the licence of this repository, so that there is something to read and nothing to download. The
folder then has

    2025.jsonl   first sweep: a manual of nine sections, a mirror of it, a blog that quotes it, and a shop
    2026.jsonl   second sweep of the manual: moved to other addresses, one section edited, one gone, one added
    asked.txt    a text that no page shows just so: the third section of the manual without its heading
    shop.tsv     the shop as a recorded crawl: URL and content of each page, in the order of the crawl
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LICENCE = (Path(__file__).resolve().parents[1] / "LICENSE").read_text("utf-8")
#: The text before the numbered sections, the nine sections, and the appendix.
BEGINNING, *SECTIONS = re.split(r"\n   (?=\d\. )", LICENCE.partition("   END OF TERMS")[0])
APPENDIX = LICENCE.partition("APPENDIX: ")[2]
ITEMS = 60
#: Where links to the shop's items come from; the shop shows the same item whatever it says.
SOURCES = ("mail", "home", "feed", "ads")


def manual(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the sections of the manual: address and text."""
    for number, section in enumerate(SECTIONS, 1):
        yield f"http://manual.example/{folder}/{number}", section


def first() -> Iterator[tuple[str, str]]:
    """Yield the pages of the first sweep."""
    yield "http://manual.example/", "The manual. It explains a licence, section by section."
    yield "http://manual.example/about", BEGINNING
    yield from manual("terms")
    yield "http://manual.example/terms/4?print=1", SECTIONS[3]
    yield "http://mirror.example/licence.html", LICENCE
    yield "http://blog.example/patents", f"What does a licence say about patents? {SECTIONS[2]} I find that clear."
    yield from ((url, text) for url, text, _ in shop())


def second() -> Iterator[tuple[str, str]]:
    """Yield the pages of the second sweep."""
    yield "http://manual.example/", "The manual. It explains a licence, section by section."
    yield "http://manual.example/about", BEGINNING.replace("Version 2.0", "Version two")
    for url, text in manual("legal"):
        if not url.endswith("/9"):
            yield url, text.replace("Derivative Works", "derived works") if url.endswith("/4") else text
    yield "http://manual.example/legal/appendix", APPENDIX


def shop() -> Iterator[tuple[str, str, int]]:
    """Yield the shop's pages: address, text, and a number that is the same for pages of the same content."""
    words = sorted(set(re.findall(r"[a-z]{4,}", LICENCE.lower())))
    pages = []
    for item in range(ITEMS):
        text = " ".join(random.Random(item).choices(words, k=80))
        source = SOURCES[item % len(SOURCES)]
        pages += [(f"http://shop.example/item?id={item}{more}", text, item) for more in ("", f"&ref={source}")]
    random.Random(0).shuffle(pages)
    yield from pages


def main(folder: Path) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for year, pages in ((2025, first()), (2026, second())):
        with (folder / f"{year}.jsonl").open("w", encoding="utf-8") as file:
            for url, text in pages:
                row = {"url": url, "text": text, "fetched_at": f"{year}-06-01T12:00:00Z"}
                file.write(json.dumps(row) + "\n")
    (folder / "asked.txt").write_text(SECTIONS[2].partition(". ")[2].partition(". ")[2], "utf-8")
    rows = ["url\tcontent", *(f"{url}\t{content}" for url, _, content in shop())]
    (folder / "shop.tsv").write_text("\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
