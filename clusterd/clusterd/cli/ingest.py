"""``clusterd ingest PATH…``: pages from files into the store, through the messages that a crawl sends.

Where no daemon works on the store, the pages are processed here; where one does, it is waited for: either way the
command ends when all is settled, and the next one sees these pages.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import click
from clusterd_crawler.errors import ClusterdError, WrongInput

from clusterd.cli.interruptions import Outages, ended_soon
from clusterd.cli.invocation import Invocation
from clusterd.cli.parameters import Place
from clusterd.cli.printing import pages
from clusterd.cli.progress import READING, Tell, watched
from clusterd.cli.sketching import Rejections, items_of, sketching, tell_shortened, tell_unresolved

if TYPE_CHECKING:
    from clusterd_consumer.insisting import Insist

    from clusterd.ingest.reading import Item
    from clusterd.ingest.sketching import Sketching
    from clusterd.services import Services

#: Pages that wait in the log before they are processed, where no daemon does it: bounds the log.
CHUNK: Final = 10_000
#: Pages that a daemon may have left before more are read: reading and processing overlap, the log stays bounded.
AHEAD: Final = 5 * CHUNK
#: Seconds for which a store or a broker is waited for that stops answering in the middle of a run.
PATIENCE: Final = 60.0


@click.command("ingest")
@click.argument("paths", metavar="PATH…", type=Place(), nargs=-1, required=True)
@click.option("--sweep", metavar="LABEL", default="", help="Label of the sweep, for lost & found (a date, a version).")
@click.option(
    "--base", metavar="URL", default="", help="The address of a folder (https://: of its folders); default file:///…."
)
@sketching
@click.pass_obj
def ingest(
    invocation: Invocation, paths: tuple[str, ...], sweep: str, base: str, profile: str | None, jobs: int
) -> int:
    """Bring in pages from files.

    A PATH is a WARC or ARC file, a WACZ, JSON lines or a table in Parquet with "url" and one of "html", "html_b64",
    "text" and optionally "fetched_at", "sweep", "content_type"; an HTML file; a folder of HTML files; or - for JSON
    lines on standard input. Each may be packed (.gz, .zst, .bz2, .xz), but for WACZ and Parquet.
    """

    from clusterd_consumer.insisting import Insisting

    from clusterd.ingest.reading import kind_of
    from clusterd.ingest.revisits import Revisits
    from clusterd.ingest.sketching import Sketching

    kinds = [(path, kind_of(path)) for path in paths]
    if base and "://" not in base:
        raise WrongInput(f"--base {base}: takes an address such as https://example.com/docs")
    config = invocation.config
    run = Sketching(invocation.profile_named(profile), sweep or config.sweep, config.crawl_id, config.max_page_bytes)
    run.jobs, run.rejecting = jobs, Rejections(invocation, run)
    revisits = Revisits([path for path, kind in kinds if kind == "warc"])
    started = time.monotonic()
    with ended_soon(config.uses_kafka()), invocation.services() as services:
        insisting = Insisting(Outages(invocation, PATIENCE), None, PATIENCE, logging.INFO)
        left = _work(
            services, run, paths, lambda tell: items_of(paths, revisits, tell, base=base, beside=run.beside), insisting
        )
        refused = services.publisher.refused
        run.sketched, run.rejected = run.sketched - refused, run.rejected + refused
    seconds = time.monotonic() - started
    record = {"pages": run.pages, "sketched": run.sketched, "rejected": run.rejected, "seconds": round(seconds, 3)}
    invocation.emit(record, f"{run.sketched} of {run.pages} pages in {seconds:.1f} s; {run.rejected} rejected")
    if not (run.pages or revisits.unresolved):
        _tell_empty(invocation, kinds)
    if refused:
        invocation.hint(f"Kafka takes {pages(refused)} not: its topic of sketches needs a larger max.message.bytes")
    tell_shortened(invocation, run)
    tell_unresolved(invocation, revisits)
    _tell_ahead(invocation, run)
    if left:
        invocation.hint(
            f"the daemon has {left} messages still to do and makes no headway; clusterd run --check asks it"
        )
    return 1 if run.pages and not run.sketched else 0


def _tell_empty(invocation: Invocation, kinds: Sequence[tuple[str, str]]) -> None:
    folder = any(kind == "folder" for _, kind in kinds)
    more = "; of a folder the HTML files are read: name files of JSON lines one by one" if folder else ""
    invocation.hint(f"no page is in {' '.join(path for path, _ in kinds)}{more}")


def _tell_ahead(invocation: Invocation, run: Sketching) -> None:
    if run.ahead:
        invocation.hint(
            f"{pages(run.ahead)} dated in the future; what is fetched of the same URL before that date counts as older"
        )


def _work(
    services: Services, run: Sketching, paths: Sequence[str], items: Callable[[Tell], Iterator[Item]], insist: Insist
) -> int:
    """Publish the pages in chunks and see them through; return how many a daemon that stands still has left.

    A store or a broker that cannot be reached at the first page ends the run: its address may be wrong.
    """
    from clusterd.services import publish_sketches, see_through

    with watched(paths) as tell:

        def processing(_: int, left: int) -> None:
            tell(f"processing {left}" if left else "processing", None)

        messages = run.messages(items(tell))
        _ = services.index
        services.refuse_another_log()
        before = services.taken()
        publish_sketches(services, islice(messages, 1))
        while publish_sketches(services, islice(messages, CHUNK), insist):
            processing(0, 0)
            see_through(services, AHEAD, processing, insist=insist)
            tell(READING, None)
        left = see_through(services, 0, processing, insist=insist)
        after = insist(services.taken)
        if before is not None and after is not None and (lost := before + run.sketched + run.told - after) > 0:
            raise ClusterdError(
                f"the store came back without {lost} pages that it had taken; bring them in again, and let Redis keep "
                "what it takes (appendonly yes)"
            )
        return left
