"""What a crawl of a test runs: it takes the steps of a job and writes down what the spider saw (`crawling`)."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from clusterd_crawler import SkippedDuplicate, signals
from clusterd_crawler.middleware import _CRAWLS
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import CloseSpider, StopDownload
from scrapy.http import HtmlResponse, Response
from twisted.python.failure import Failure

#: Seconds that a step waits for what is to happen.
PATIENCE = 60.0
#: Seconds between two looks whether it has: calls that other threads have asked for have come by then.
LOOK = 0.05
#: Of a job's settings: seconds between two looks of Scrapy what there is to do, beside those when a request is done.
HEARTBEAT = "HEARTBEAT"


class Job(scrapy.Spider):
    """Takes the job's steps: fetches URLs, each with its options, and the links on them; pauses; waits."""

    name = "job"

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__()
        self.job = job
        self.allowed_domains = job.get("allowed", [])
        self.seen: list[dict[str, Any]] = []
        self.skipped: list[list[str]] = []
        self.heard: list[dict[str, Any]] = []
        self.longest_pause = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Job:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.hear_near, signals.near_duplicate)
        crawler.signals.connect(spider.hear_skip, signals.request_skipped)
        crawler.signals.connect(spider.hear_learned, signals.rule_learned)
        crawler.signals.connect(spider.hear_retired, signals.rule_retired)
        if spider.job.get("stop"):
            crawler.signals.connect(spider.stop_download, scrapy.signals.bytes_received)
        return spider

    def stop_download(self) -> None:
        """Want no more of a page than its beginning."""
        raise StopDownload(fail=False)

    async def start(self) -> AsyncIterator[scrapy.Request]:
        from clusterd_crawler.crawling.older_scrapy import sleep

        for step in self.job["steps"]:
            if "pause" in step:
                await sleep(step["pause"])
            elif "url" in step:
                yield self.request(step["url"], **step.get("options", {}))
            else:
                given_up, times = time.monotonic() + PATIENCE, 0
                while times < 2 and time.monotonic() < given_up:  # at two looks, one after the other
                    await sleep(LOOK)
                    times = times + 1 if self.is_time(step) else 0
                assert times, f"waited in vain: {step}"

    def is_time(self, step: dict[str, Any]) -> bool:
        """Whether a file is there, so much was heard, or the crawl is at rest (with rules), as the step waits for."""
        if "file" in step:
            return Path(step["file"]).exists()
        if "heard" in step:
            return len(self.heard) >= step["heard"]
        if "learned" in step and not _CRAWLS[self.crawler]._decisions._has_rules:
            return False
        return self.is_at_rest() and not ("answered" in step and _CRAWLS[self.crawler]._verdicts._asked)

    def is_at_rest(self) -> bool:
        """Whether every page asked for so far has come and is known, and the rules of the hosts met are in use."""
        engine, crawl = self.crawler.engine, _CRAWLS[self.crawler]
        assert engine is not None
        assert engine._slot is not None
        asked = engine._slot.inprogress or engine._slot.scheduler.has_pending_requests()
        scraped = engine.scraper.slot is None or engine.scraper.slot.is_idle()
        link = crawl._link
        assert link._subscriber is not None
        assert link._meeting is not None
        told = link._subscriber.caught_up.is_set() and not link._meeting._asking and not crawl._changes.busy
        return told and scraped and not asked and not crawl._pages._gathered and not crawl.unread._unseen

    def request(self, url: str, callback: str = "parse", errback: str = "fail", **options: Any) -> scrapy.Request:
        return scrapy.Request(url, callback=getattr(self, callback), errback=getattr(self, errback), **options)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[scrapy.Request | dict[str, Any]]:
        assert response.request is not None
        seen = {"url": response.url, "flags": response.flags, "status": response.status, "at": time.time()}
        asked = response.request
        self.seen.append(seen | {"priority": asked.priority, "dont_filter": asked.dont_filter})
        if self.job.get("follow") and isinstance(response, HtmlResponse):
            for href in response.css("a::attr(href)").getall():
                yield self.request(response.urljoin(href))
        if self.job.get("files"):
            yield {"file_urls": [response.urljoin(href) for href in response.css("a::attr(href)").getall()]}
        if self.job.get("images"):
            yield {"image_urls": [response.urljoin("/image.png")]}
        assert self.crawler.stats is not None
        if self.crawler.stats.get_value("clusterd/skipped", 0) >= self.job.get("enough", math.inf):
            raise CloseSpider("enough was skipped")

    def read_otherwise(self, response: Response) -> Iterator[scrapy.Request | dict[str, Any]]:
        yield from self.parse(response)

    def break_off(self, response: Response) -> Iterator[dict[str, Any]]:
        """Raise in the middle of the first page."""
        self.seen.append({"url": response.url, "flags": response.flags, "status": response.status, "at": time.time()})
        if len(self.seen) == 2:
            raise KeyError("a fault of the spider")
        yield {"url": response.url}

    def read_strictly(self, response: Response) -> Iterator[scrapy.Request | dict[str, Any]]:
        """Raise where something else is shown than a page."""
        yield from self.parse(response)
        if "log in" in response.text:
            raise KeyError("no title")

    async def read_late(self, response: Response) -> AsyncIterator[scrapy.Request | dict[str, Any]]:
        """Do the same, once something has been looked up elsewhere."""
        from clusterd_crawler.crawling.older_scrapy import sleep

        for one in self.parse(response):
            yield one
        await sleep(1)
        if "log in" in response.text:
            raise KeyError("no title")

    def ask_again(self, response: Response) -> Iterator[scrapy.Request]:
        """Ask for a page again, as where it is none, until that has been tried often enough."""
        self.seen.append({"url": response.url, "flags": response.flags, "status": response.status, "at": time.time()})
        assert response.request is not None
        again = get_retry_request(response.request, spider=self, reason="no page") if "bad" in response.url else None
        if again is not None:
            yield again

    def post_back(self, response: Response) -> Iterator[scrapy.Request | dict[str, Any]]:
        """Read a page, and send its form to its own address, as that of ASP.NET goes."""
        yield from self.parse(response)
        yield scrapy.FormRequest(
            response.url, formdata={"page": "2"}, callback=self.parse, meta=response.meta, dont_filter=True
        )

    def pass_meta_on(self, response: Response) -> Iterator[scrapy.Request | dict[str, Any]]:
        """Read a page, and ask for others with all that its request held, as many spiders do."""
        yield from self.parse(response)
        for url in self.job["more"]:
            yield self.request(url, meta=response.meta)

    async def await_more(self, response: Response) -> None:
        """Gather what other pages say before the page's own item is made."""
        assert self.crawler.engine is not None
        for url in self.job["more"]:
            await self.crawler.engine.download_async(scrapy.Request(url))
        self.seen.append({"url": response.url, "flags": response.flags, "status": response.status, "at": time.time()})

    def fail(self, failure: Failure) -> None:
        error = failure.value
        if isinstance(error, SkippedDuplicate):
            self.skipped.append([failure.request.url, error.rule, error.key, error.known_url])

    async def fail_slowly(self, failure: Failure) -> None:
        """Write a failure down somewhere, which takes a while."""
        from clusterd_crawler.crawling.older_scrapy import sleep

        await sleep(5.0)
        self.fail(failure)

    async def hear_near(self, response_url: str, cluster: str, match: str, resemblance: float) -> None:
        self.heard.append({"near": response_url, "cluster": cluster, "match": match, "resemblance": resemblance})

    def hear_skip(self, request: scrapy.Request, rule: str, known_url: str) -> None:
        self.heard.append({"skip": request.url, "rule": rule, "known_url": known_url})

    def hear_learned(self, rule: Any, host: str) -> None:
        self.heard.append({"learned": rule.id, "host": host})

    def hear_retired(self, rule: str, reason: str, host: str) -> None:
        self.heard.append({"retired": rule, "reason": reason, "host": host})


def main(path: str) -> None:
    job = json.loads(Path(path).read_text())
    # Scrapy's cookies ask it for the public suffixes; offline it says so with a traceback, and takes those that it has.
    logging.getLogger("tldextract").setLevel(logging.ERROR)
    settings = {"LOG_LEVEL": "DEBUG", "ADDONS": {"clusterd_crawler.Addon": 500}}
    # Of each crawl that is killed the remote control leaves a file in the home; where it can write none, a traceback.
    settings |= {"TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, **job["settings"]}
    kind = AsyncCrawlerProcess if settings.get("TWISTED_REACTOR_ENABLED") is False else CrawlerProcess
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = settings.pop(HEARTBEAT, ExecutionEngine._SLOT_HEARTBEAT_INTERVAL)
    process = kind(settings)
    crawler = process.create_crawler(Job)
    process.crawl(crawler, job=job)
    process.start()
    spider, stats = crawler.spider, crawler.stats
    assert isinstance(spider, Job)
    assert stats is not None
    found = {"seen": spider.seen, "skipped": spider.skipped, "heard": spider.heard, "stats": stats.get_stats()}
    Path(path).with_suffix(".out").write_text(json.dumps(found, default=str))
