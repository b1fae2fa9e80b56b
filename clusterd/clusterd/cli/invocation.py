"""One call of the command line: its settings, the services that it opens, and how it prints."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clusterd.cli import printing, progress
from clusterd.log_lines import OneLine

if TYPE_CHECKING:
    from clusterd_crawler.sketch import Profile

    from clusterd.config import Config
    from clusterd.services import Services

Record = Mapping[str, Any]

#: Seconds for which a question waits for a store or a log that does not take part.
PATIENCE: Final = 5.0
#: Seconds for which a command waits for a slot of a Redis Cluster that moves to another node, each time it needs it.
TRANSIT: Final = 60.0
#: What to do where a store is empty that was not meant to be.
ANOTHER: Final = "--data DIR or --redis URL names another"


@dataclass
class Invocation:
    """What every command gets (``@click.pass_obj``)."""

    #: Settings given as options: ``data``, ``redis``, ``kafka``.
    given: Mapping[str, str]
    #: The TOML file of ``--config``, or None.
    config_file: str | None
    json: bool = False
    debug: bool = False

    def __post_init__(self) -> None:
        level = logging.DEBUG if self.debug else logging.WARNING
        logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        for handler in logging.getLogger().handlers:
            handler.addFilter(OneLine())
        if not self.debug:
            logging.getLogger("kafka").setLevel(logging.CRITICAL)  # of a broker that is away it writes a page a second

    @cached_property
    def config(self) -> Config:
        """Return the settings: options first, then the environment, then the file of ``--config``."""
        from clusterd.config import Config

        return Config.load(Path(self.config_file) if self.config_file else None, options=self.given)

    @property
    def profile(self) -> Profile:
        """Return the profile that documents are sketched with."""
        return self.profile_named(None)

    def profile_named(self, name: str | None) -> Profile:
        """Return the profile that an option names, else that of the settings."""
        from clusterd_crawler.sketch import PROFILES

        return next(profile for profile in PROFILES.values() if profile.name == (name or self.config.profile))

    @contextmanager
    def services(self) -> Iterator[Services]:
        """Open the store and the transport for the time of a ``with``; say so where a folder's store is empty.

        Also where it is not new: who asks in the wrong folder, or of crawls that have a Redis in Scrapy's settings,
        has begun it by asking, and would take its next answers for what the crawl has found.
        """
        from clusterd.config import holds_store
        from clusterd.services import open_services

        folder = self.config.data_folder().absolute()
        begun = not holds_store(folder)
        with open_services(self.config, TRANSIT) as services:
            yield services
            if self.config.redis or services.index.counts()["documents"]:
                return
            if begun:
                self.hint(f"there was no store in {folder}: this one is new and empty; {ANOTHER}")
            elif not services.rulebook.book.hosts():
                self.hint(f"the store in {folder} has neither pages nor rules; {ANOTHER}")

    @contextmanager
    def caught_up(self) -> Iterator[Services]:
        """Open the store for a question, with what waits worked off first where no daemon does it.

        Messages wait, and clusters that are not settled, where an ingest or the building of a policy was interrupted.
        Over Kafka a daemon does it: a question to the store must not need Kafka.
        """
        with self.services() as services:
            if not self.config.uses_kafka() and not services.daemon_alive():
                if waiting := services.lag():
                    self.hint(f"{waiting} messages wait and no daemon runs: working them off")
                    self.work_off(services)
                elif services.index.counts()["settling"]:
                    self.hint("clusters are not settled and no daemon runs: settling them")
                    self.work_off(services)
            yield services

    def work_off(self, services: Services) -> None:
        """Work off the messages that wait, where no daemon does it and the store and the log let us.

        Where one of them does not for `PATIENCE` seconds, what waits is left for later: a store that is full or whose
        Kafka is away still answers, and one that is away says so to who asks next.
        """
        from clusterd_consumer.insisting import Insisting
        from clusterd_crawler.errors import Unreachable

        from clusterd.services import process_pending

        try:
            with progress.watched(()) as tell:

                def processing(_: int, left: int) -> None:
                    tell(f"{left} to do" if left else "processing", None)

                process_pending(services, processing, Insisting(patience=PATIENCE, level=logging.INFO))
        except Unreachable as error:
            self.hint(f"{error}; messages that wait are left for later, and are no part of what follows")

    def show(self, records: Iterable[Record], columns: Sequence[str], empty: str = "nothing found") -> int:
        """Print records, as JSON lines or as a table of these columns; return how many there were."""
        return printing.show(records, columns, json=self.json, empty=empty)

    def counted(self, records: Iterable[Record], what: str) -> Iterable[Record]:
        """Show how many records there are so far; not where they show so themselves, line by line on a terminal."""
        return records if self.json and sys.stdout.isatty() else progress.counted(records, what)

    def emit(self, record: Record, text: str | None = None) -> None:
        """Print one record at once: as a JSON line, or as ``text`` (``name: value`` lines where None)."""
        printing.emit(record, text, json=self.json)

    def hint(self, message: str) -> None:
        """Say something to a person; never on standard output."""
        print(printing.printable(message), file=sys.stderr, flush=True)
