"""``clusterd similar``, ``holders``, ``compare``, ``group``: questions about documents, known or never seen before."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import click
from clusterd_crawler.errors import WrongInput

from clusterd.cli.clusters import check_policy
from clusterd.cli.invocation import Invocation
from clusterd.cli.parameters import Place, Share

if TYPE_CHECKING:
    from clusterd_crawler.sketch import Profile

    from clusterd.clusters.contract import Stream
    from clusterd.queries.documents import Document
    from clusterd.services import Services

SIMILAR_COLUMNS: Final = ("resemblance", "query_in_match", "match_in_query", "url", "cluster")
HOLDER_COLUMNS: Final = ("query_in_match", "resemblance", "host", "url")
GROUP_COLUMNS: Final = ("representative", "members")


@click.command("similar")
@click.argument("asked", metavar="URL|FILE|-", type=Place())
@click.option("--limit", metavar="N", type=click.IntRange(1), default=10, show_default=True, help="Most matches.")
@click.option("--all", "everything", is_flag=True, help="Look at every page, of more than 200,000 different ones too.")
@click.option("--whole", is_flag=True, help="By all words of pages, navigation and all (needs CLUSTERD_WHOLE).")
@click.pass_obj
def similar(invocation: Invocation, asked: str, limit: int, everything: bool, whole: bool) -> None:
    """Find the pages that resemble a page of the store, a file (HTML or text) or standard input, best first."""
    from clusterd import queries

    if everything and whole:
        raise WrongInput("--all looks at main texts, --whole at whole pages: give one of them")
    stream: Stream = "whole" if whole else "main"
    profile = invocation.profile
    with invocation.caught_up() as services:
        document = _with_words(asked, services, profile, stream)
        hits = queries.similar(services.index, document, profile, limit, "all" if everything else None, stream)
        records = [
            {
                "url": hit.url,
                "resemblance": hit.resemblance,
                "query_in_match": hit.query_in_match,
                "match_in_query": hit.match_in_query,
                "cluster": hit.cluster,
            }
            for hit in hits
        ]
        invocation.show(records, SIMILAR_COLUMNS, empty="no page of the store resembles it")


@click.command("holders")
@click.argument("asked", metavar="URL|FILE|-", type=Place())
@click.option(
    "--least",
    metavar="SHARE",
    type=Share(),
    default=0.1,
    show_default=True,
    help="Least share of the text that a page must carry.",
)
@click.pass_obj
def holders(invocation: Invocation, asked: str, least: float) -> None:
    """Find the sites that carry a text, whole or in part, most complete first.

    Every page of the store is looked at: a million take some ten seconds.
    """
    from clusterd import queries

    profile = invocation.profile
    with invocation.caught_up() as services:
        found = queries.holders(services.index, _with_words(asked, services, profile), profile, least)
        records = (
            {"host": h.host, "url": h.url, "query_in_match": h.query_in_match, "resemblance": h.resemblance}
            for h in found
        )
        shown = invocation.counted(records, "holders")
        invocation.show(shown, HOLDER_COLUMNS, empty="no page of the store carries it")


@click.command("compare")
@click.argument("a", metavar="A", type=Place())
@click.argument("b", metavar="B", type=Place())
@click.option("--w", metavar="N", type=click.IntRange(1, 1_000_000), help="Tokens of a shingle; default the profile's.")
@click.pass_obj
def compare(invocation: Invocation, a: str, b: str, w: int | None) -> None:
    """Compare two documents: each a URL of the store, a file, - or a text written text:….

    Where both texts are at hand, the exact figures stand beside those that the sketches estimate.
    """
    from clusterd import queries

    if a == b == "-":
        raise WrongInput("compare - -: standard input is one document; give the other as a file, a URL or text:…")
    profile = invocation.profile
    with nullcontext() if _at_hand(a) and _at_hand(b) else invocation.caught_up() as services:
        first, second = _document(a, services, profile), _document(b, services, profile)
        compared = queries.compare(first, second, profile, w)
    record: dict[str, Any] = {
        "resemblance": compared.estimated.resemblance,
        "a_in_b": compared.estimated.a_in_b,
        "b_in_a": compared.estimated.b_in_a,
    }
    if compared.exact is not None:
        record["exact_resemblance"] = compared.exact.resemblance
        record["exact_a_in_b"] = compared.exact.a_in_b
        record["exact_b_in_a"] = compared.exact.b_in_a
        record["error"] = compared.estimated.resemblance - compared.exact.resemblance
    elif compared.doubtful:
        invocation.hint(
            "few values tell how much of the shorter is in the longer; give both as files to have it counted"
        )
    invocation.emit(record)


def _at_hand(given: str) -> bool:
    """Whether a document is known without the store: a text, standard input or a file that exists."""
    return given == "-" or given.startswith("text:") or os.path.isfile(given) or "://" not in given


def _with_words(given: str, services: Services, profile: Profile, stream: Stream = "main") -> Document:
    """Return what is looked for; `WrongInput` where it has no words: an answer without a match would mislead."""
    document = _document(given, services, profile, stream)
    if document.url is None and not document.sketch.tokens:
        name = "the input" if given == "-" else given
        raise WrongInput(f"{name}: has no words, so that no page can be found by it; give HTML or plain text")
    return document


def _document(given: str, services: Services | None, profile: Profile, stream: Stream = "main") -> Document:
    from clusterd import queries

    return queries.document(given, None if services is None else services.index, profile, stream)


@click.command("group")
@click.argument("urls", metavar="URL…|-", nargs=-1, required=True)
@click.option("--policy", metavar="P", default="related", show_default=True, help="When results count as alike.")
@click.pass_obj
def group(invocation: Invocation, urls: tuple[str, ...], policy: str) -> None:
    """Fold a list of results: one line for each group of alike pages, in the order given. - reads URLs line by line."""
    from clusterd import queries

    given = [line.strip() for url in urls for line in (sys.stdin if url == "-" else [url]) if line.strip()]
    with invocation.caught_up() as services:
        check_policy(services.index, policy)
        groups = queries.group(services.index, given, policy)
        records = ({"representative": g.representative, "members": list(g.members)} for g in groups)
        invocation.show(records, GROUP_COLUMNS, empty="no URLs were given")
