"""What crawls leave behind in a process that goes on: nothing that the garbage collector cannot reach."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

from clusterd_crawler.crawling.collector import Frozen

from tests.crawler.site import Site

#: Crawls three times in one loop, as a notebook does, twice at once; prints which spiders are left.
AGAIN = """
import asyncio, gc, sys, weakref
import scrapy
from scrapy.crawler import AsyncCrawlerRunner

gc.collect()
of_interpreter = gc.get_freeze_count()  # Python 3.12 freezes what is immortal
left = weakref.WeakSet()

class Page(scrapy.Spider):
    name = "page"

    def __init__(self, url, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [url]
        left.add(self)

    def parse(self, response):
        print("meanwhile frozen:", gc.get_freeze_count() > 10_000)

async def main():
    settings = {"ADDONS": {"clusterd_crawler.Addon": 500}, "TWISTED_REACTOR_ENABLED": False}
    settings |= {"TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False}
    settings |= {"CLUSTERD_REDIS": "unix:///nowhere.sock"}
    runner = AsyncCrawlerRunner(settings)
    await runner.crawl(Page, url=sys.argv[1])
    await asyncio.gather(runner.crawl(Page, url=sys.argv[1]), runner.crawl(Page, url=sys.argv[1]))

asyncio.run(main())
gc.collect()
print("left:", len(left), "frozen:", gc.get_freeze_count() - of_interpreter)
"""


def test_a_process_that_crawls_again_keeps_no_crawl_that_has_ended(site: Site, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, f"{site.url}/page/1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=dict(os.environ),
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first, *_, last = done.stdout.splitlines()
    assert (first, last) == ("meanwhile frozen: True", "left: 0 frozen: 0"), done.stderr[-3000:]


def test_what_the_program_itself_froze_stays_so() -> None:
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        frozen = Frozen()
        frozen.freeze()
        frozen.thaw()
        assert gc.get_freeze_count() > 0.9 * before  # what is let go of meanwhile is counted no more, frozen or not
    finally:
        gc.unfreeze()
