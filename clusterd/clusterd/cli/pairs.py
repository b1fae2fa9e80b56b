"""``clusterd pairs FILE…`` and ``clusterd batch cluster FILE…``: whole collections, without the store."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from shutil import copyfileobj
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import TYPE_CHECKING, Final

import click
from clusterd_crawler.errors import WrongInput

from clusterd.cli.clusters import CLUSTER_COLUMNS, DEFAULT_POLICY, cluster_record
from clusterd.cli.invocation import Invocation
from clusterd.cli.parameters import Place, Share
from clusterd.cli.progress import Tell, begun, watched
from clusterd.cli.sketching import Rejections, items_of, sketching, tell_shortened, tell_unresolved

if TYPE_CHECKING:
    from clusterd_crawler.sketch import Sketch, StreamSketch

    from clusterd.ingest.raw import RawPage
    from clusterd.ingest.reading import Item

#: Where Linux has a path for each open file, also for one that has no name any more.
OPEN_FILES: Final = "/proc/self/fd"
PAIR_COLUMNS: Final = ("resemblance", "a_in_b", "b_in_a", "a", "b")


@click.command("pairs")
@click.argument("files", metavar="FILE…", type=Place(), nargs=-1, required=True)
@click.option("--threshold", metavar="T", type=Share(min_open=True), required=True, help="r ≥ T.")
@click.option("--containment", is_flag=True, help="c ≥ T in one of the two directions instead.")
@sketching
@click.pass_obj
def pairs(
    invocation: Invocation, files: tuple[str, ...], threshold: float, containment: bool, profile: str | None, jobs: int
) -> None:
    """Find all pairs of alike documents in files of JSON lines (or others that ingest takes).

    Sketches find them; the texts, which are read once more for it, decide: the ratios are exact. A document is named by
    its "id", else by its "url".
    """
    from clusterd import batch

    with all_kept(files) as paths, watched(paths) as tell:
        read = Rows(invocation, dict(zip(paths, files, strict=True)), profile, jobs, tell)
        every = batch.pairs(read.sketches(), threshold, containment, again=read.again)
        found = begun(batch.ranked(every, containment))
    records = (
        {
            "a": read.names[pair.a],
            "b": read.names[pair.b],
            "resemblance": pair.estimate.resemblance,
            "a_in_b": pair.estimate.a_in_b,
            "b_in_a": pair.estimate.b_in_a,
        }
        for pair in found
    )
    invocation.show(records, PAIR_COLUMNS, empty=f"no pair reaches {threshold}")


@click.group("batch")
def batch() -> None:
    """Work on whole files at once, without the store."""


@batch.command("cluster")
@click.argument("files", metavar="FILE…", type=Place(), nargs=-1, required=True)
@click.option("--policy", metavar="P", default=DEFAULT_POLICY, show_default=True, help="Under which policy.")
@click.option("--min-size", metavar="N", type=click.IntRange(1), default=2, show_default=True, help="Least size.")
@sketching
@click.pass_obj
def batch_cluster(
    invocation: Invocation, files: tuple[str, ...], policy: str, min_size: int, profile: str | None, jobs: int
) -> None:
    """Cluster files by the paper's four-phase algorithm, in bounded memory: what is long lies in files of TMPDIR."""
    from clusterd_consumer.postings.scheme import DEFAULT

    from clusterd import batch as algorithms

    known = {one.name: one for one in invocation.config.policies}
    if policy not in known:
        named = ", ".join(known)
        raise WrongInput(f"there is no policy {policy}; the policies are {named} (CLUSTERD_POLICIES; not the store's)")
    with watched(files) as tell:
        read = Rows(invocation, {file: file for file in files}, profile, jobs, tell)
        scheme = invocation.config.scheme() or DEFAULT
        sketches = (sketch for _, _, sketch in read.documents())
        found = begun(algorithms.clusters(sketches, [known[policy]], scheme=scheme, least=min_size))
    invocation.show(map(cluster_record, found), CLUSTER_COLUMNS, empty="no clusters")


@contextmanager
def all_kept(files: Sequence[str]) -> Iterator[list[str]]:
    """Yield a path for each of these that can be read twice (`kept`)."""
    with ExitStack() as stack:
        yield [stack.enter_context(kept(file)) for file in files]


@contextmanager
def kept(file: str) -> Iterator[str]:
    """Yield a path that can be read twice; standard input or a pipe is copied to a file for it.

    Where the system has a path for an open file without a name (Linux), nothing of it stays if the process is killed.
    """
    from clusterd.ingest.reading import is_pipe

    if not is_pipe(file):
        yield file
        return
    nameless = os.path.isdir(OPEN_FILES)
    with TemporaryFile() if nameless else NamedTemporaryFile(prefix="clusterd-pairs-", suffix=".jsonl") as copy:
        with nullcontext(sys.stdin.buffer) if file == "-" else open(file, "rb") as pipe:
            copyfileobj(pipe, copy)
        copy.flush()
        yield f"{OPEN_FILES}/{copy.fileno()}" if nameless else copy.name


class Rows:
    """The documents of some files and what they are called in an answer."""

    def __init__(
        self, invocation: Invocation, files: Mapping[str, str], profile: str | None, jobs: int, tell: Tell
    ) -> None:
        """``files``: paths, and what the user calls each."""
        from clusterd.ingest.sketching import Sketching

        self._invocation = invocation
        self._files = files
        self._profile = invocation.profile_named(profile)
        most = invocation.config.max_page_bytes
        self._run = Sketching(self._profile, max_page_bytes=most, nameless=True, jobs=jobs)
        tell_of = Rejections(invocation, self._run)
        self._run.rejecting = lambda broken: tell_of(replace(broken, where=self._called(broken.where)))
        #: The id of each sketched document, else its URL; and which record of the files it is.
        self.names: list[str | int] = []
        self._records = array("q")
        self._tell = tell

    def sketches(self) -> Iterator[Sketch]:
        """Yield the sketches of the documents, and keep what they are called."""
        for number, page, sketch in self.documents():
            self.names.append(page.url if page.id is None else page.id)
            self._records.append(number)
            yield sketch

    def documents(self) -> Iterator[tuple[int, RawPage, Sketch]]:
        """Yield the number, the page and the sketch of each document; `WrongInput` where there is none."""
        from clusterd.ingest.revisits import Revisits

        revisits = Revisits(self._archives)
        try:
            yield from self._run.named(items_of(self._files, revisits, self._tell))
        except WrongInput as error:
            raise WrongInput(self._called(str(error))) from None
        tell_shortened(self._invocation, self._run)
        tell_unresolved(self._invocation, revisits)
        if not self._run.sketched:
            where = " ".join(self._files.values())
            raise WrongInput(f"{where}: has no document; a row has id or url, and one of html, html_b64, text")
        self._tell("comparing", None)

    def again(self, places: Collection[int]) -> Iterator[tuple[int, StreamSketch]]:
        """Sketch the documents at these places once more, keeping every shingle, in the order of the files."""
        from clusterd.batch import whole_profile
        from clusterd.ingest.revisits import Revisits

        wanted = {self._records[place]: place for place in places}
        numbers: list[int] = []

        def items() -> Iterator[Item]:
            again = items_of(self._files, Revisits(self._archives), self._tell, "counting")
            for number, item in enumerate(again, 1):
                if number in wanted:
                    numbers.append(number)
                    yield item

        run = replace(self._run, profile=whole_profile(self._profile), pages=0, rejecting=lambda broken: None)
        for place, _, sketch in run.named(items()):
            yield wanted[numbers[place - 1]], sketch.main

    @cached_property
    def _archives(self) -> list[str]:
        """The web archives among the files; `WrongInput` where one of these cannot be read at all."""
        from clusterd.ingest.reading import kind_of

        try:
            return [file for file in self._files if kind_of(file) == "warc"]
        except WrongInput as error:
            raise WrongInput(self._called(str(error))) from None

    def _called(self, said: str) -> str:
        """Return what is said of a place in one of the files, as the user calls it."""
        file = max(filter(said.startswith, self._files), key=len, default="")  # /proc/self/fd/5 begins as …/51 does
        return said.replace(file, self._files[file], 1) if file else said
