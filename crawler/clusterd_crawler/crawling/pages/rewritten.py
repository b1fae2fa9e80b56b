"""Requests that were rewritten to their key (`rewriting`), once the page has come: what becomes of their links."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from clusterd_crawler.crawling.pages.reporter import Page, Seen
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.kept import KeptOut
from clusterd_crawler.crawling.requests.purposes import Purposes
from clusterd_crawler.crawling.requests.rewriting import Rewriting, original
from clusterd_crawler.crawling.rule_changes import RuleChanges
from clusterd_crawler.skipping.skip import Skip


@dataclass(frozen=True, slots=True)
class Linked:
    """A request as it was linked, and its skip where its key led to a page that nothing else had shown."""

    kept: KeptOut
    skip: Skip | None


class Rewritten:
    """For the loop's thread. ``rewriting``: None where nothing is rewritten."""

    def __init__(
        self,
        rewriting: Rewriting | None,
        decisions: Decisions,
        purposes: Purposes,
        changes: RuleChanges,
        explores: Callable[[str, Skip], bool],
    ) -> None:
        self._rewriting = rewriting
        self._decisions = decisions
        self._purposes = purposes
        self._changes = changes
        self._explores = explores
        self._deciding = 0

    @property
    def busy(self) -> bool:
        """Whether it is being decided about a link, which may be asked for."""
        return self._deciding > 0

    def linked(self, page: Page, seen: Seen) -> Linked | None:
        """Return the link for which a good page was asked, before the page is known; None where none was rewritten.

        What is bad, or has turned out to be before `came` is called, answers for no link.
        """
        if self._rewriting is None:
            return None
        if not seen.good:
            self._rewriting.broke_off(page.request)
            return None
        linked = original(page.request)
        if linked is None:
            return None
        rule = (self._decisions.key(linked.url)[1] or ("rewritten",))[-1]
        self._rewriting.came(page.request, rule, page.purpose)
        was_led = "redirect_urls" in page.request.meta
        skip = self._decisions.led_elsewhere(linked.url, page.url, seen.content) if was_led else None
        return Linked(KeptOut(rule, linked, True), skip)

    def came(self, page: Page, linked: Linked) -> Coroutine[Any, Any, None]:
        """Decide about the link of a page that is known by now."""
        self._deciding += 1
        return self._decide(page, linked)

    async def _decide(self, page: Page, linked: Linked) -> None:
        request, skip = linked.kept.request, linked.skip
        try:
            self._purposes.take(request, page.purpose)
            if skip is not None:
                self._explores(request.url, skip)
            await self._changes.rewritten(linked.kept, skip)
        finally:
            self._deciding -= 1
