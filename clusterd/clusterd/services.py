"""What a command or a daemon works with, opened from the configuration: store, index, transport, rule book, alerts.

    with open_services(Config.load()) as services:
        publish_sketches(services, sketches)
        process_pending(services)
        services.index.clusters("near")

Everything is opened when it is first asked for, and closed in the opposite order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast, get_args

from clusterd_consumer.insisting import Insist, once
from clusterd_consumer.redis_connection import Client, connect, greet, refuse_eviction, translated
from clusterd_consumer.redis_failover import Failover
from clusterd_consumer.transport.contract import Position, Transport
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable, WrongInput
from clusterd_crawler.message import Message, encode
from clusterd_crawler.rules import Identity
from clusterd_crawler.servers.redis_address import shown

from clusterd.clusters.contract import DEFAULT_POLICIES, Index
from clusterd.config import Config

if TYPE_CHECKING:
    from clusterd.alerts import Alerts
    from clusterd.handed_over import HandedOver
    from clusterd.learning.rulebook.service import RuleService

#: Called with what has been done and what is left.
Progress = Callable[[int, int], None]

#: Seconds without headway after which a daemon is waited for no longer, and between two looks at it.
DAEMON_PATIENCE: Final = 30.0
DAEMON_LOOK: Final = 0.1
#: Seconds that publishing may take before Kafka or Redis counts as unreachable.
PUBLISH_TIMEOUT: Final = 60.0
#: The same for one of several attempts.
PUBLISH_ATTEMPT: Final = 10.0
#: The same for one rule set.
ANNOUNCE_TIMEOUT: Final = 30.0


class Services:
    """The opened parts. Not for several threads at once: each thread opens its own with `again`."""

    def __init__(self, config: Config, redis_url: str = "", transit: float = 0.0, guest: bool = True) -> None:
        """``transit`` as of `open_index`, ``guest`` as of `RedisStreamTransport`: a daemon is none."""
        self._guest = guest
        self.config = config
        self._given_url = redis_url
        self._transit = transit
        self._stack = ExitStack()

    @cached_property
    def redis_url(self) -> str:
        """Return the store's address; the embedded store of the data folder is started where none is configured."""
        if self._given_url or self.config.redis:
            return self._given_url or self.config.redis
        from clusterd_consumer.embedded import embedded

        return self._stack.enter_context(embedded(self.config.data_folder()))

    @cached_property
    def redis(self) -> Client:
        """Return a client of the store."""
        greet(self.redis_url, self._transit)
        client = connect(self.redis_url)
        self._stack.callback(client.close)
        return client

    @cached_property
    def asking(self) -> Insist:
        """Return what asks the store: again, where a replica takes the place of a primary meanwhile."""
        return Failover(self.redis, self._transit) if self._transit else once

    def refuse_eviction(self) -> None:
        """Raise `Unreachable` where the store may lose pages on its own: nobody should write to it."""
        refuse_eviction(self.redis, shown(self.redis_url))

    @cached_property
    def index(self) -> Index:
        """Return the index of all pages."""
        from clusterd.clusters.opening import open_index

        _ = self.redis  # says what is wrong with the address
        config = self.config
        # Whoever says nothing of policies, as a question mostly does, adds none to a store that others have begun.
        policies = None if config.policies == DEFAULT_POLICIES else config.policies
        # To open a store anew changes nothing but what the first time was to change.
        index = self.asking(
            lambda: open_index(
                self.redis_url, config.redis_prefix, policies, config.scheme(), config.whole, transit=self._transit
            )
        )
        self._stack.callback(index.close)
        return index

    @cached_property
    def rulebook(self) -> RuleService:
        """Return the rules of all hosts; what changes is published."""
        from clusterd.learning.rulebook.identity import shown_by
        from clusterd.learning.rulebook.redis import RuleBook
        from clusterd.learning.rulebook.service import RuleService

        publisher = self.publisher
        identity = self.rule_identity
        rules = RuleService(
            RuleBook(self.redis, self.config.redis_prefix, insist=self.asking, transit=self._transit),
            publisher.publish,
            flush=lambda: publisher.flush(ANNOUNCE_TIMEOUT),
            identity=identity,
            shown=shown_by(identity, lambda: self.index),
        )
        self._stack.callback(rules.close)
        return rules

    @cached_property
    def rule_identity(self) -> Identity:
        """Return by what pages are the same in learning rules: where nothing is said here, as daemons were told last.

        Else a command that works off what a daemon has left would judge it otherwise, and teach other rules. What a
        command is told holds for itself alone.
        """
        said, default = self.config.rule_identity, Config().rule_identity
        store, key = cast(Any, self.redis), f"{self.config.redis_prefix}rb:identity"
        kept = (self.asking(translated()(partial(store.get, key))) or default.encode()).decode()
        if self._guest:
            return cast(Identity, kept if said == default and kept in get_args(Identity) else said)
        if said != kept:
            with suppress(Unreachable), translated():  # one that is full takes it from the next daemon that starts
                store.set(key, said)
        return cast(Identity, said)

    @cached_property
    def handed_over(self) -> HandedOver:
        """Return what daemons are to tell the crawls in the place of others."""
        from clusterd.handed_over import HandedOver

        return HandedOver(self.redis, self.config.redis_prefix)

    @cached_property
    def alerts(self) -> Alerts:
        """Return the alerts: readable here, published to their sinks."""
        from clusterd.alerts import Alerts

        publisher = self.publisher if self.config.uses_kafka() else None
        alerts = Alerts(self.redis, self.config, publisher, self.asking)
        self._stack.callback(alerts.close)
        return alerts

    @cached_property
    def publisher(self) -> Transport:
        """Return the transport of this process for what it only publishes."""
        return self.transport()

    def transport(self) -> Transport:
        """Return a new transport; it joins the consumer group when it is first polled."""
        transport: Transport
        if self.config.uses_kafka():
            from clusterd_consumer.transport.kafka import KafkaTransport

            transport = KafkaTransport(
                self.config.kafka,
                prefix=self.config.kafka_prefix,
                group=self.config.group,
                session_timeout=self.config.session_timeout,
                partitions=self.config.kafka_partitions,
                replication=self.config.kafka_replication,
                remembered=self._position,
            )
        else:
            from clusterd_consumer.transport.redis_streams import RedisStreamTransport

            transport = RedisStreamTransport(
                self.redis,
                prefix=self.config.redis_prefix,
                group=self.config.group,
                claim_after=self.config.claim_after,
                guest=self._guest,
            )
        self._stack.callback(transport.close)
        return transport

    def _position(self) -> Position:
        return self.index.position()

    def again(self) -> Services:
        """Return services of the same store and transport with connections of their own, for another thread."""
        return Services(self.config, self.redis_url, self._transit, self._guest)

    def reports(self) -> list[dict[str, Any]]:
        """Return the reports of the daemons that work on this store."""
        from clusterd.health import daemons

        return self.asking(lambda: daemons(self.redis, self.config.redis_prefix))

    def daemons(self) -> int:
        """Return how many daemons work on this store."""
        return len(self.reports())

    def of_another_log(self) -> list[dict[str, Any]]:
        """Return the reports of the daemons that work on this store, where none takes messages from where ours go."""
        reports = self.reports()
        return [] if any(report.get("log", "") in {"", self.config.log} for report in reports) else reports

    def refuse_another_log(self) -> None:
        """Raise `WrongInput` where pages that are published here reach no daemon that works on this store."""
        theirs = {str(report["log"]) for report in self.of_another_log()}
        if not theirs:
            return
        on_kafka = max(theirs - {"redis"}, default="")
        if not self.config.uses_kafka():
            source, ours, remedy = "Kafka", "elsewhere", "name it, too (--kafka SERVERS, or CLUSTERD_KAFKA)"
        elif on_kafka:
            prefix = on_kafka.removeprefix("kafka").strip()
            source, ours, remedy = "other topics", "to these", f"they have CLUSTERD_KAFKA_PREFIX = {prefix!r}"
        else:
            source, ours, remedy = "Redis Streams", "to Kafka", "leave out --kafka, or CLUSTERD_KAFKA"
        raise WrongInput(
            f"the daemons of this store take their messages from {source}, and would hear of no page that goes {ours}: "
            f"{remedy}"
        )

    def daemon_alive(self) -> bool:
        """Whether a daemon works on this store."""
        return self.daemons() > 0

    def lag(self) -> int:
        """Return how many messages no daemon has worked on yet."""
        return self.asking(self.publisher.backlog)

    def taken(self) -> int | None:
        """Return how many messages were ever appended to the log, where the store keeps it; None where Kafka does."""
        if self.config.uses_kafka():
            return None
        from clusterd_consumer.transport.redis_streams import RedisStreamTransport

        return self.publisher.taken() if isinstance(self.publisher, RedisStreamTransport) else None

    def rules_written(self) -> Mapping[str, int]:
        """Return where Kafka's topic of rules ends, by partition; nothing where the store keeps them."""
        if not self.config.uses_kafka():
            return {}
        from clusterd_consumer.transport.kafka import KafkaTransport

        publisher = self.publisher
        return dict(publisher.ends(topics.RULES).values()) if isinstance(publisher, KafkaTransport) else {}

    def dead_letters(self) -> int:
        """Return how many messages became dead letters."""
        from clusterd_consumer.dead_letters import counted

        return self.asking(lambda: counted(self.redis, self.config.redis_prefix))

    def close(self) -> None:
        """Close whatever was opened; the last user of the embedded store shuts it down."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_services(config: Config, transit: float = 0.0) -> Services:
    """Return the services of a configuration; use them in a ``with``, or call ``close``. ``transit``: `open_index`."""
    return Services(config, transit=transit)


def publish_sketches(services: Services, sketches: Iterable[Message], insist: Insist = once) -> int:
    """Publish sketches, and other messages, as a crawl does, keyed by URL; return how many, once all have arrived."""
    if not services.config.uses_kafka():  # beside the store they take its room
        insist(services.refuse_eviction)
    count = 0
    for message in sketches:
        insist(partial(services.publisher.publish, topics.SKETCHES, message.url.encode(), encode(message)))
        count += 1
    timeout = PUBLISH_TIMEOUT if insist is once else PUBLISH_ATTEMPT
    insist(lambda: services.publisher.flush(timeout))
    return count


def process_pending(
    services: Services, progress: Progress | None = None, insist: Insist | None = None, *, more: bool = False
) -> int:
    """Where no daemon is alive, do its work here until nothing is unread and all has settled; return messages done.

    ``more`` as of `working.work_off`.
    """
    if (insist or once)(services.daemon_alive):
        return 0
    from clusterd.working import work_off

    return work_off(services, progress, insist, more=more)


def see_through(
    services: Services,
    allowed: int = 0,
    progress: Progress | None = None,
    patience: float = DAEMON_PATIENCE,
    insist: Insist | None = None,
) -> int:
    """Return when what was published has been worked on: by the daemon where one is alive, else here.

    A daemon is waited for as long as it makes headway, until at most ``allowed`` messages are left; returned is how
    many are left beyond that when it makes none any more, else 0. What others publish from now on is not waited for,
    where the store knows which that is (`Services.taken`). ``insist`` as of `working.work_off`, and where some may be
    left, more follows.
    """
    until = (insist or once)(services.taken) or None  # none is known before a daemon has read there
    least, deadline = None, 0.0
    while True:
        asked = time.monotonic()
        left = (insist or once)(lambda: _left(services, until))
        if left is None:
            process_pending(services, progress, insist, more=allowed > 0)
            return 0
        if left <= allowed:
            return 0
        deadline += time.monotonic() - asked  # an outage is not the daemon's standing still
        if least is None or left < least:
            least, deadline = left, time.monotonic() + patience
        elif time.monotonic() > deadline:
            return left
        if progress is not None:
            progress(0, left)
        time.sleep(DAEMON_LOOK)


def _left(services: Services, until: int | None) -> int | None:
    """Return what the daemon has left to do of so many messages that the log ever took; None where no daemon is alive.

    Messages are worked on in their order.
    """
    if not services.daemon_alive():
        return None
    later = 0 if until is None else max(0, (services.taken() or until) - until)
    return max(0, services.lag() - later) or services.index.counts()["settling"]
