"""No work on a page, however large, keeps the interpreter's lock from the crawl's loop for long."""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from clusterd_crawler.core import compiled
from clusterd_crawler.message import encode
from clusterd_crawler.page import sketch_page

#: Milliseconds of waiting for the lock that are let pass: a tenth of a second is what one lapse on 5 MB would be.
BOUND = 25
MEGABYTES = 4 << 20


@pytest.fixture
def short_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.001)
    yield
    sys.setswitchinterval(before)


def repeated(row: str, charset: str = "utf-8") -> bytes:
    return (row.encode(charset)) * (MEGABYTES // len(row.encode(charset)))


@pytest.mark.core
@pytest.mark.usefixtures("short_turns")
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (repeated("<p>words of a <b>large</b> page, and <a id=p7 href=x>links</a>"), None),
        (repeated("<p>words <b>and <i>more</b></i><table><tr><div>x</div></table>"), None),
        (repeated("<p>много разных слов на странице"), None),
        (repeated("<p>déjà vu, à la carte"), "text/html; charset=iso-8859-1"),
        (repeated("<p>漢字的文本很長"), "text/html; charset=gbk"),
        (repeated("<p>de\u0301compose\u0301, "), None),
    ],
    ids=["plain", "to be parsed", "Cyrillic", "Latin 1", "GBK", "decomposed"],
)
def test_a_large_page_never_holds_the_lock_for_long(body: bytes, content_type: str | None) -> None:
    assert compiled.CORE is not None
    done = threading.Event()

    def work() -> None:
        encode(sketch_page("http://a.test/", body, content_type, fetched_at=0))
        done.set()

    # A thread that waits for the lock asks for it anew once in a switch interval, whatever else the machine does:
    # that is counted, since time itself tells nothing on a machine that is busy.
    longest = 0
    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        time.sleep(0.0002)
        longest = max(longest, resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before - 1)
    thread.join()
    assert longest < BOUND
