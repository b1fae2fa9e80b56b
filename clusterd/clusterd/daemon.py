"""The daemon: sketches in; clusters, alerts, verdicts and rules out. Startup → main loop → shutdown.

Two threads with connections of their own. The main one works the log into the index and hands on what it said
(`clusterd_consumer.worker`). The other one does what can wait, so that no page waits for it: settling of clusters,
learning, retention (`clusterd.upkeep`). A third beats for `clusterd run --check` (`clusterd.health`).

Asked to stop, the daemon finishes the batch in hand. Where a log or a store that does not answer keeps it from that, it
ends `END_SECONDS` later as it stands: everything that it does may be cut off and is done again (`worker`).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, NoReturn

from clusterd_consumer.insisting import Insisting, StopFlag, Stopped
from clusterd_consumer.interrupts import held_back
from clusterd_consumer.worker import Worker
from clusterd_crawler.core import compiled
from clusterd_crawler.errors import ClusterdError, Unreachable
from clusterd_crawler.servers.kafka_lines import Seldom
from clusterd_crawler.servers.redis_address import shown

from clusterd.clusters.contract import Outcome
from clusterd.config import Config
from clusterd.health import Heart, Report
from clusterd.log_lines import OneLine
from clusterd.services import Services, open_services
from clusterd.upkeep import Upkeep
from clusterd.working import make_worker

log = logging.getLogger(__name__)

#: Seconds between two looks at the parent process.
PARENT_INTERVAL: Final = 0.5
#: Seconds between two looks whether worker processes live. One that died is replaced then, but for one that has lived
#: less than `SETTLED_AFTER`: the next one would hardly live longer, and waits twice as long each time.
RESTART_PAUSE: Final = 1.0
LONGEST_RESTART_PAUSE: Final = 60.0
SETTLED_AFTER: Final = 10.0
#: Seconds for which a stopping one may finish.
STOP_PATIENCE: Final = 15.0
#: Whole seconds after the signal to stop at which a worker process ends whatever it waits for.
END_SECONDS: Final = 6
#: Seconds of these for alerts that wait for a web address.
ALERTS_SECONDS: Final = 2.0
#: Seconds between two looks whether the store would evict pages.
EVICTION_INTERVAL: Final = 1.0


def run(config: Config) -> bool:
    """Run the daemon until SIGTERM, SIGINT or SIGHUP.

    False: a thread is still at a step that was left (`Upkeep.stop`), so that this process should end at once.
    """
    with open_services(config) as services:
        if config.workers > 1:
            supervise(config, services)
            return True
        return serve(config, services.redis_url)


class Orphan(threading.Thread):
    """Asks this process to stop when its parent has ended: a daemon that was killed leaves no worker behind."""

    def __init__(self, parent: int) -> None:
        super().__init__(name="orphan", daemon=True)
        self._parent = parent

    def run(self) -> None:
        """Look at the parent now and then."""
        while os.getppid() == self._parent:
            time.sleep(PARENT_INTERVAL)
        log.info("the daemon that started this worker has ended")
        os.kill(os.getpid(), signal.SIGTERM)


def serve(config: Config, redis_url: str, number: int = 0) -> bool:
    """Run one worker process, which is the so manyth: startup, main loop, shutdown. False as of `run`."""
    report, asked = Report(log=config.log), StopFlag()
    opened = Services(config, redis_url, guest=False)
    with _on_signal(asked, END_SECONDS), opened as services, services.again() as beating:
        if config.metrics_port:
            _serve_metrics(config, config.metrics_port + number, report)
        if not _insist_on_store(lambda: services.index, report, asked):
            return True
        heart = Heart(beating.redis, config.redis_prefix, report)
        heart.start()
        try:
            return not _insist_on_store(services.refuse_eviction, report, asked) or _main_loop(services, report, asked)
        finally:
            report.state = "stopping"
            heart.stop()


def _serve_metrics(config: Config, port: int, report: Report) -> None:
    """Serve the metrics; of the daemons of crawls, which have one setting and share the embedded store, one does."""
    from clusterd.metrics import serve_metrics

    try:
        serve_metrics(config.metrics_host, port, report)
    except ClusterdError as error:
        if config.redis or config.kafka:
            raise
        log.warning("%s; going on without metrics", error)


def _main_loop(services: Services, report: Report, asked: StopFlag) -> bool:
    worker, handing = make_worker(services, report, services.config.poll_timeout, asked)
    due = 0.0

    def look_around() -> None:
        nonlocal due
        _count(report, worker)
        if time.monotonic() >= due:  # a setting may change, and a replica that took over may have another
            worker.insist(services.refuse_eviction)
            due = time.monotonic() + EVICTION_INTERVAL

    upkeep = Upkeep(services.again(), report)
    upkeep.start()
    report.state = "running"
    log.info("daemon %s runs: group %s, store %s", report.id, services.config.group, shown(services.redis_url))
    if compiled.CORE is None:
        log.info(compiled.LACKING)
    try:
        worker.run(look_around)
    finally:
        finished = upkeep.stop()
        handing.close(ALERTS_SECONDS)
        log.info("daemon %s stops after %d messages", report.id, worker.messages)
    return finished


def _count(report: Report, worker: Worker[Outcome]) -> None:
    report.messages = worker.messages
    report.dead_letters = worker.dead_letters
    report.missed = worker.missed
    report.step()


def _insist_on_store(work: Callable[[], object], report: Report, asked: StopFlag) -> bool:
    """Wait for the store: a daemon that starts before its Redis goes on when that is there. False: stopped before."""

    def trouble(what: str) -> None:
        report.state = "waiting" if what else "starting"
        if what:
            report.fail(what)
        report.step()

    try:
        Insisting(trouble, asked)(work)
    except Stopped:
        return False
    return True


def supervise(config: Config, services: Services) -> None:
    """Run ``config.workers`` processes; replace those that die, stop them all when asked."""
    asked = StopFlag()
    context = multiprocessing.get_context("spawn")

    def start(number: int) -> Any:
        arguments = (config, services.redis_url, number, os.getpid())
        process = context.Process(target=serve_quietly, args=arguments, daemon=False)
        with held_back():
            process.start()
        return process

    with _on_signal(asked, END_SECONDS), suppress(Unreachable):  # each of them waits for a store that is away
        _ = services.index  # one that refuses us does so here, not in each of them for ever
    if asked.is_set():
        return
    with _on_signal(asked):
        kept: list[_Kept] = []
        while len(kept) < config.workers and not asked.is_set():  # of very many a signal ends the starting, too
            kept.append(_Kept(partial(start, len(kept))))
        while not asked.wait(RESTART_PAUSE):
            for one in kept:
                one.look()
        _end([one.process for one in kept])


class _Kept:
    """A worker process that is replaced when it dies."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._pause = 0.0
        self._begin()

    def _begin(self) -> None:
        self.process = self._start()
        self._begun = time.monotonic()
        #: When the next one is to be started, once this one has died.
        self._due: float | None = None

    def look(self) -> None:
        """Replace it, if it has died and the next one need not wait."""
        if self.process.is_alive():
            return
        now = time.monotonic()
        if self._due is None:
            longer = min(max(2 * self._pause, RESTART_PAUSE), LONGEST_RESTART_PAUSE)
            self._pause = longer if now - self._begun < SETTLED_AFTER else 0.0
            self._due = now + self._pause
            when = f" in {self._pause:g} s" if self._pause else ""
            log.error(
                "worker process %s ended with %s; starting another%s", self.process.pid, self.process.exitcode, when
            )
        if now >= self._due:
            self._begin()


def _end(processes: Sequence[Any]) -> None:
    """Ask worker processes to stop; kill those that do not in time: what they had in hand comes again."""
    for process in processes:
        process.terminate()
    until = time.monotonic() + STOP_PATIENCE
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
        if process.is_alive():
            log.error("worker process %s does not stop and is killed; what it had in hand comes again", process.pid)
            process.kill()
            process.join()


def serve_quietly(config: Config, redis_url: str, number: int, parent: int) -> None:
    """Be a worker process of `supervise`, and end with it in whatever way it ends, be it before we began."""
    configure_logging(config)
    Orphan(parent).start()
    try:
        finished = serve(config, redis_url, number)
    except ClusterdError as error:
        log.error("%s", error)
        sys.exit(1)
    if not finished:
        end_at_once()


def end_at_once() -> NoReturn:
    """End this process without waiting for its threads; everything is closed but what they work with."""
    logging.shutdown()
    sys.stderr.flush()
    os._exit(0)


def configure_logging(config: Config) -> None:
    """Log to standard error; Kafka's client says little below a warning that is worth reading."""
    logging.basicConfig(
        level=config.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    logging.getLogger("kafka").setLevel(max(logging.WARNING, logging.getLogger().level))
    for handler in logging.getLogger().handlers:
        handler.addFilter(Seldom())
        handler.addFilter(OneLine())


@contextmanager
def _on_signal(stopping: StopFlag, seconds: int = 0) -> Iterator[None]:
    """Set the flag on SIGTERM, SIGINT and SIGHUP; end the process where this lasts so many seconds longer (0: ever so).

    Only in a main thread. A SIGHUP that is ignored (nohup) stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(*_: Any) -> None:
        if not stopping.is_set():
            signal.alarm(seconds)
        stopping.set()

    def too_long(*_: Any) -> None:
        log.warning("stopping takes longer than %d s: ended as it stands, what was in hand comes again", seconds)
        end_at_once()

    handlers = {signal.SIGTERM: asked, signal.SIGINT: asked, signal.SIGALRM: too_long}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = asked
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)
