"""``clusterd skips [--rule ID]``, ``clusterd unskip URL|--rule ID``: no skip without a trace, and none for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from clusterd_crawler.clock import iso, now_ms
from clusterd_crawler.errors import WrongInput

from clusterd.cli.invocation import Invocation
from clusterd.cli.rules import changing, opened

if TYPE_CHECKING:
    from clusterd_crawler.message import SkipReport

COLUMNS: Final = ("at", "url", "rule", "known_url")


@click.command("skips")
@click.option("--rule", metavar="ID", default="", help="Only those of this rule.")
@click.pass_obj
def skips(invocation: Invocation, rule: str) -> None:
    """List the requests that were skipped, oldest first; of very many the latest 100,000."""
    with opened(invocation) as (_, book):
        counts = book.book.skip_counts()
        if rule and rule not in counts:
            book.entry(rule)
        listed = map(skip_record, book.book.skips(rule=rule))
        total = counts.get(rule, 0) if rule else sum(counts.values())
        shown = invocation.show(listed, COLUMNS, empty="" if total else "no request has been skipped")
        if total > shown:
            which = f"the latest {shown} are listed" if shown else "so many came later that none of them is listed now"
            invocation.hint(f"{total} were skipped; {which}")


@click.command("unskip")
@click.argument("url", metavar="[URL]", required=False)
@click.option("--rule", metavar="ID", default="", help="Every listed skip of this rule.")
@click.pass_obj
def unskip(invocation: Invocation, url: str | None, rule: str) -> None:
    """Have a skipped URL, or all that a rule kept out, fetched whatever the rules say."""
    if bool(url) == bool(rule):
        raise WrongInput("unskip: give one of URL and --rule ID")
    with changing(invocation) as book:
        undone = book.unskip(url or "", rule, now_ms())
        invocation.show(map(skip_record, undone), COLUMNS, empty=f"rule {rule} has no listed skips")


def skip_record(skip: SkipReport) -> dict[str, Any]:
    """Return a skip as it is printed; a URL that was never skipped has no rule."""
    return {
        "at": iso(skip.at) if skip.rule else None,
        "url": skip.url,
        "rule": skip.rule or None,
        "key": skip.key or None,
        "known_url": skip.known_url or None,
    }
