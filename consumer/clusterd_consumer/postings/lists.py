"""Posting lists in memory: key → documents. The reference for `redis_lists`.

A list that grew beyond its bound is **common** from then on: it keeps the latest ``bound`` documents and proposes to a
document only ``latest`` of those before it, so that a giant cluster still grows while no page costs more for it: the
last ones, and one ``bound`` back, so that neighbours may depart. The document that makes it common is proposed the
whole list. A list is forgotten as soon as it is empty.
"""

from __future__ import annotations

from collections.abc import Iterable


class Lists:
    """Bounded lists of documents, latest last."""

    def __init__(self, bound: int, latest: int) -> None:
        self._bound = bound
        self._latest = latest
        self._lists: dict[int, list[int]] = {}
        self._common: set[int] = set()

    def propose(self, keys: Iterable[int], document: int) -> list[int]:
        """Write the document under its keys, then look up who else is there; each once, in order."""
        found: dict[int, None] = {}
        for key in keys:
            documents = self._lists.setdefault(key, [])
            if document not in documents:
                documents.append(document)
            found.update(dict.fromkeys(self._before(key, documents.index(document))))
            if len(documents) > self._bound:
                self._common.add(key)
                del documents[0]
        found.pop(document, None)
        return sorted(found)

    def common(self, keys: Iterable[int], document: int) -> int:
        """Return under how many of its keys a document stands in a common list, or in none any more."""
        return sum(key in self._common or document not in self._lists.get(key, ()) for key in keys)

    def look_up(self, keys: Iterable[int]) -> list[int]:
        """Return the documents that the lists of these keys propose."""
        return sorted({document for key in keys for document in self._proposed(key)})

    def withdraw(self, keys: Iterable[int], document: int) -> None:
        """Take the document out of its lists."""
        for key in keys:
            documents = self._lists.get(key, [])
            if document in documents:
                documents.remove(document)
            if not documents:
                self._lists.pop(key, None)
                self._common.discard(key)

    def _before(self, key: int, place: int) -> list[int]:
        """Return what the list proposes to the document in a place: in a common one at the front, those behind, too."""
        documents = self._lists[key]
        if key not in self._common:
            return documents
        if place < self._latest:
            return documents[: self._latest + 1]
        far = max(0, place - self._bound)
        return [documents[far], *documents[place - self._latest + 1 : place]]

    def _proposed(self, key: int) -> list[int]:
        documents = self._lists.get(key, [])
        # One more than the latest: the asking document itself may be among them.
        return documents[-self._latest - 1 :] if key in self._common else documents
