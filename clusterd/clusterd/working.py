"""A daemon's work over opened services: messages in, clusters, alerts, verdicts and rules out.

The daemon does it as long as it runs (`clusterd.daemon`); a command, where no daemon does, until nothing is left.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from clusterd_consumer.dead_letters import DeadLetters
from clusterd_consumer.insisting import Insist, StopFlag, once
from clusterd_consumer.worker import Worker

from clusterd.clusters.contract import Outcome
from clusterd.handing import Handing
from clusterd.health import Report
from clusterd.upkeep import LEARN_SECONDS, forget_superseded, learn, tell_splits

if TYPE_CHECKING:
    from clusterd.services import Progress, Services

#: Seconds to wait for pages when working off what is pending: the end is noticed by one empty poll.
LAST_POLL: Final = 0.05


def make_worker(
    services: Services,
    report: Report,
    poll_timeout: float,
    stopping: StopFlag | None = None,
    insist: Insist | None = None,
) -> tuple[Worker[Outcome], Handing]:
    """Return a worker over these services, and what it hands on to."""
    transport = services.transport()
    handing = Handing(services, transport, report)

    def trouble(what: str) -> None:
        report.state = "waiting" if what else "running"
        if what:
            report.fail(what)
        report.step()  # it does not stand still

    def set_back() -> None:
        report.set_backs += 1
        services.rulebook.forget()  # what this thread knows of it; upkeep has a rule book of its own

    dead = DeadLetters(transport, services.redis, services.config.redis_prefix)
    worker = Worker(
        transport,
        services.index,
        handing,
        dead,
        batch=services.config.batch,
        poll_timeout=poll_timeout,
        on_trouble=trouble,
        on_set_back=set_back,
        stopping=stopping,
        insist=insist,
    )
    return worker, handing


def work_off(
    services: Services, progress: Progress | None = None, insist: Insist | None = None, *, more: bool = False
) -> int:
    """Do a daemon's work here until nothing is unread, all has settled, and what is due is forgotten and learned.

    ``more``: pages follow, after which this is called again. Then learning takes no longer than a daemon's lesson: a
    host whose learner is not in memory is learned from its whole log, which for each few new pages of thousands of
    hosts would take ever longer. The last call learns every host that was left.

    ``insist`` says how long a store or a log that does not answer is waited for; without it the worker waits as a
    daemon's does, and nothing else.
    """
    (insist or once)(services.refuse_eviction)
    report = Report()
    worker, handing = make_worker(services, report, LAST_POLL, insist=insist)
    insist, tell = insist or once, progress or (lambda done, left: None)
    try:
        while True:
            if worker.step():
                tell(worker.messages, 0)
            elif left := insist(services.lag):
                tell(worker.messages, left)
            else:
                break
        insist(lambda: forget_superseded(services))  # who never runs a daemon has no other
        while left := insist(lambda: services.index.settle(services.config.settle_steps)):
            if insist(services.index.only_awaits):
                break  # of a worker that died: no page shows it, and what comes next gives it up
            tell(worker.messages, left)
        insist(lambda: tell_splits(services))
        insist(lambda: learn(services, LEARN_SECONDS if more else math.inf))
    finally:
        worker.leave()
        handing.close()
    return worker.messages
