"""The questions that the store answers, from Python as from the command line.

    from clusterd.config import Config
    from clusterd.queries import document, similar
    from clusterd.services import open_services
    from clusterd_crawler.sketch import TEXT

    with open_services(Config.load()) as services:
        for hit in similar(services.index, document("page.html", services.index, TEXT), TEXT):
            print(hit.url, hit.resemblance)

All are functions over the `Index` contract (in memory or on Redis); none needs a daemon.
"""

from __future__ import annotations

from clusterd.queries.alike import Comparison, Holder, compare, holders, similar
from clusterd.queries.changes import Changes, changes
from clusterd.queries.documents import Document, document
from clusterd.queries.grouping import Group, alternatives, group
from clusterd.queries.lost import find_lost
from clusterd.queries.moves import Found

__all__ = [
    "Changes",
    "Comparison",
    "Document",
    "Found",
    "Group",
    "Holder",
    "alternatives",
    "changes",
    "compare",
    "document",
    "find_lost",
    "group",
    "holders",
    "similar",
]
