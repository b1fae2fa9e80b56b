"""Start a crawl in a process of its own, and read what it published from a real Redis."""

from __future__ import annotations

import atexit
import gc
import json
import multiprocessing
import os
import sys
import time
import traceback
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import redis
from clusterd_crawler import topics
from clusterd_crawler.core.compiled import PURE
from clusterd_crawler.message import Message, decode
from clusterd_crawler.rule_language.json_form import rule_set_to_json
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet

from tests.crawler.site import Site

#: Crawls are forked from one process that has imported what they need: half of the processor time of a short one.
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.crawler.spider"])
#: Of one that is to import otherwise, each imports all.
SPAWNED = multiprocessing.get_context("spawn")

#: Settings: the loops that a crawl may run in.
MODES = {
    "asyncio": {},
    "reactorless": {"TWISTED_REACTOR_ENABLED": False},
    "select": {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
}
#: A step: what was asked for before has come and is known, and the rules of its hosts are in use.
REST = {"rest": True}
#: As well, and the daemon has answered for all of it.
ANSWERED = {"answered": True}
#: What was asked for before has come and is known, and rules have been learned and are in use.
LEARNED = {"learned": True}
#: Settings: pages are fetched to watch rules where that is owed, and none by chance, which goes by the URL: the site's
#: port is in it, so of a share of .0001 one run in fifty had fetched another page.
SELDOM = {"CLUSTERD_EXPLORE": 1e-9}
#: Two URLs of one content that are on their way at once are both fetched.
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1}
#: Settings: pages of any status reach the spider, at the first attempt.
ALL_STATUS = {"HTTPERROR_ALLOW_ALL": True, "RETRY_ENABLED": False}


@dataclass
class Crawled:
    """What a crawl left behind."""

    code: int
    log: str
    seen: list[dict[str, Any]]
    skipped: list[list[str]]
    heard: list[dict[str, Any]]
    stats: dict[str, Any]
    seconds: float

    def paths(self) -> list[str]:
        return ["/" + page["url"].split("/", 3)[3] for page in self.seen]

    def stat(self, name: str) -> int:
        return int(self.stats.get(f"clusterd/{name}", 0))


class Crawling:
    """A crawl that runs; `result` waits for its end."""

    def __init__(self, folder: Path, steps: list[Any], settings: dict[str, Any], **job: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.job = folder / f"job-{time.monotonic_ns()}.json"
        steps = [{"url": step} if isinstance(step, str) else step for step in steps]
        self.job.write_text(json.dumps({"steps": steps, "settings": settings, **job}))
        self.job.with_suffix(".log").touch()
        self.started = time.monotonic()
        self.process = _start(self.job, dict(os.environ))

    def log(self) -> str:
        return self.job.with_suffix(".log").read_text(errors="replace")

    def result(self, timeout: float = 120.0) -> Crawled:
        try:
            self.process.join(timeout)
            code = self.process.exitcode
        finally:
            if self.process.is_alive():
                self.process.kill()
                self.process.join()
        if code is None:
            raise TimeoutError(f"the crawl has not ended in {timeout} s: {self.log()[-3000:]}")
        out = self.job.with_suffix(".out")
        found = json.loads(out.read_text()) if out.exists() else {"seen": [], "skipped": [], "heard": [], "stats": {}}
        return Crawled(code=code, log=self.log(), seconds=time.monotonic() - self.started, **found)


def _start(job: Path, environment: dict[str, str]) -> BaseProcess:
    context: Any = SPAWNED if PURE in environment else FORKED
    # A daemon: where a test fails meanwhile, the tests' end does not wait for its crawl.
    process: BaseProcess = context.Process(target=_crawl, args=(job, environment), daemon=True)
    process.start()
    return process


def _crawl(job: Path, environment: dict[str, str]) -> None:
    """Be the process of a crawl: in its folder, with its environment, its log, and an end as every process has it."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(job.parent)
    sys.path.insert(0, str(job.parent))
    with job.with_suffix(".log").open("ab") as log:
        for said in (1, 2):
            os.dup2(log.fileno(), said)
    from tests.crawler import spider

    failed = False
    try:
        spider.main(str(job))
    except Exception:
        failed = True
        traceback.print_exc()
    gc.collect()  # as at an interpreter's end: Twisted says which failures nobody has looked at
    atexit._run_exitfuncs()
    sys.exit(failed)


def crawl(folder: Path, steps: list[Any], settings: dict[str, Any], **job: Any) -> Crawled:
    crawled = Crawling(folder, steps, settings, **job).result()
    assert crawled.code == 0, crawled.log[-3000:]
    assert "Traceback" not in crawled.log, crawled.log[-5000:]
    return crawled


def published(url: str, prefix: str) -> list[Message]:
    """Return the messages that crawls have put into the log."""
    with redis.Redis.from_url(url) as client:
        entries = client.xrange(topics.stream(prefix, topics.SKETCHES))
        return [decode(fields[topics.FIELD_VALUE]) for _, fields in entries]


def publish_rules(url: str, prefix: str, rules: RuleSet) -> None:
    """Publish a rule set as the daemon does."""
    raw = json.dumps(rule_set_to_json(rules)).encode()
    with redis.Redis.from_url(url) as client:
        client.hset(f"{prefix}rules", rules.host, raw)
        tell(client, prefix, topics.RULES, rules.host.encode(), raw)


def tell(client: Any, prefix: str, topic: str, key: bytes, value: bytes) -> None:
    client.xadd(topics.stream(prefix, topic), {topics.FIELD_KEY: key, topics.FIELD_VALUE: value})


def sid_rule(host: str, name: str = "r1") -> Rule:
    """Return the rule that ``sid`` does not matter."""
    sid = Key(name="sid")
    return Rule(id=name, host=host, context=(Condition(sid, "any"),), transformation=(Edit(sid, "delete"),))


def sid_rules(site: Site, version: int = 1, **fields: Any) -> RuleSet:
    """Return the rule set that holds `sid_rule` alone."""
    return RuleSet(site.host, version, (sid_rule(site.host),), **fields)


def at(site: Site, steps: list[Any]) -> list[Any]:
    """Return the steps with the site's address."""
    placed: list[Any] = []
    for step in steps:
        if isinstance(step, str):
            placed.append(site.url + step)
        elif "url" in step:
            placed.append({**step, "url": site.url + step["url"]})
        else:
            placed.append(step)
    return placed
