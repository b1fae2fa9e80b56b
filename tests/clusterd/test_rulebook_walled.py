"""A wall that a site shows for a while, as the rule service takes it back: by the evidence log, once."""

from __future__ import annotations

from clusterd.learning.contract import Page
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService

from tests.clusterd.learning.test_walled import ARTICLES, HOST, H, crawled


def test_the_service_writes_into_the_log_what_is_taken_back(book: RuleBook) -> None:
    service = RuleService(book)
    book.add_pages({HOST: crawled()})
    for _ in range(3):
        service.learn_due(1)
    assert sum(page.state == "failed" for page in book.evidence(HOST).pages) == ARTICLES // 2
    # … and what comes then finds its rule again.
    more = [Page(f"{H}/a?t={n}&sid=v{n}", 1_000 + n, fetched_at=9_000 + n, crawl="one") for n in range(20)]
    book.add_pages({HOST: more})
    service.learn_due(1)
    assert {str(rule.transformation[0]) for rule in service.rules(HOST)} == {"delete ?sid"}
    assert not book.changed()
    log = book.evidence(HOST).pages
    # Another worker, which reads the whole of it, says the same, and adds nothing.
    service.close()
    other = RuleService(book)
    book.add_pages({HOST: [Page(f"{H}/b", 5, fetched_at=9_999, crawl="one")]})
    other.learn_due(2)
    assert len(book.evidence(HOST).pages) == len(log) + 1
    assert {str(rule.transformation[0]) for rule in other.rules(HOST)} == {"delete ?sid"}
    other.close()
