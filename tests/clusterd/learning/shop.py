"""A shop of sixteen parameters, of which a URL bears any six: filters matter to its lists, nothing to its products."""

from __future__ import annotations

import random

from clusterd.learning.replay import CrawlRow

#: What narrows a list, and what does not change what any page says.
FILTERS = ["color", "size", "brand", "price", "stock", "material", "page"]
VIEWS = ["sort", "order", "limit", "view", "currency", "lang", "sid", "ref", "utm_source"]


def shop(host: str, pages: int, seed: int = 0) -> list[CrawlRow]:
    """Return a crawl of lists and products, as many of the one as of the other, in random order."""
    dice = random.Random(seed)
    urls: dict[str, tuple[object, ...]] = {}
    for _ in range(pages):
        path = f"list/{dice.randrange(30)}" if dice.random() < 0.5 else f"product/{dice.randrange(pages // 3)}"
        names = dice.sample(FILTERS + VIEWS, dice.randrange(7))
        query = [(name, dice.randrange(60 if name == "sid" else 6)) for name in names]
        narrowed = sorted(pair for pair in query if pair[0] in FILTERS) if path.startswith("list") else []
        text = "&".join(f"{name}={value}" for name, value in query)
        urls[f"{path}?{text}" if text else path] = (path, *narrowed)
    numbers = {content: number for number, content in enumerate(dict.fromkeys(urls.values()))}
    return [CrawlRow(f"http://{host}/{url}", numbers[content]) for url, content in urls.items()]
