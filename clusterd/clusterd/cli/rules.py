"""``clusterd rules list|show|why|retire|pin|export|import``: the URL rules, and what they rest on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click
from clusterd_crawler.clock import iso, now_ms
from clusterd_crawler.errors import NotFound, RuleError, WrongInput

from clusterd.cli.invocation import Invocation
from clusterd.cli.parameters import Host, Place
from clusterd.cli.printing import escaped, printable
from clusterd.cli.replay import replay_crawls
from clusterd.whole_file import write_whole

if TYPE_CHECKING:
    from clusterd_crawler.rules import Rule
    from clusterd_crawler.skipping.known_pages import KnownPages

    from clusterd.learning.contract import Page
    from clusterd.learning.interchange.discarder_export import Exported
    from clusterd.learning.rulebook.contract import Entry
    from clusterd.learning.rulebook.service import RuleService
    from clusterd.services import Services

COLUMNS: Final = ("id", "text", "support", "coverage", "precision", "lower_bound", "state")
#: Fields of ``rules list``, in the order of the interface.
FIELDS: Final = (
    *("id", "host", "text", "context", "transformation", "support", "coverage", "precision", "lower_bound"),
    *("state", "since"),
)
FORMATS: Final = click.Choice(["clusterd", "dud"])


@click.group("rules")
def rules() -> None:
    """List, explain, retire, exchange and replay URL rules."""


rules.add_command(replay_crawls)


@rules.command("list")
@click.option("--host", metavar="H", type=Host(), help="Only the rules of this host.")
@click.option("--all", "every", is_flag=True, help="Retired rules too.")
@click.pass_obj
def list_rules(invocation: Invocation, host: str | None, every: bool) -> None:
    """List the rules in force, host by host, in the order in which they are applied."""
    with opened(invocation) as (_, book):
        found = map(listed, book.entries(spelled(host, book), every=every))
        shown = invocation.show(found, (*COLUMNS, "replaced_by") if every else COLUMNS, empty="")
        if not shown and not invocation.json:
            invocation.hint(none_of(host, book))


@rules.command("show")
@click.argument("rule", metavar="ID")
@click.pass_obj
def show_rule(invocation: Invocation, rule: str) -> None:
    """Show a rule with the pairs of pages that it rests on, and how it came to its state."""
    with opened(invocation) as (_, book):
        entry = book.entry(rule)
        shown = {**rule_record(entry.rule), **entry_record(entry), "skips": book.book.skip_counts().get(rule, 0)}
        invocation.emit(shown, None if invocation.json else entry_text(entry, shown["skips"]))


@rules.command("why")
@click.argument("url", metavar="URL")
@click.pass_obj
def why(invocation: Invocation, url: str) -> None:
    """Say what the rules make of a URL, and whether a crawl that had fetched all known pages would skip it."""
    with opened(invocation) as (services, book):
        invocation.emit(explained(services, book, url))


@rules.command("retire")
@click.argument("rule", metavar="ID")
@click.pass_obj
def retire(invocation: Invocation, rule: str) -> None:
    """Retire a rule: no crawler uses it from now on, and what it kept out is queued again."""
    with changing(invocation) as book:
        invocation.emit(rule_record(book.retire(rule, now_ms())), f"retired {rule}")


@rules.command("pin")
@click.argument("rule", metavar="ID")
@click.pass_obj
def pin(invocation: Invocation, rule: str) -> None:
    """Keep a rule, whatever the pages say that are fetched to watch it."""
    with changing(invocation) as book:
        invocation.emit(rule_record(book.pin(rule, now_ms())), f"pinned {rule}")


@rules.command("export")
@click.argument("file", metavar="[FILE]", type=Place(), default="-")
@click.option("--format", "file_format", type=FORMATS, default="clusterd", show_default=True, help="Of the file.")
@click.option("--host", metavar="H", type=Host(), help="Only the rules of this host.")
@click.option(
    "--universal", metavar="FILE", type=Place(), help="Entries for every domain, to repeat for each host (dud only)."
)
@click.option("--loose", is_flag=True, help="Export rules without their condition on other parameters (dud only).")
@click.pass_obj
def export_rules(
    invocation: Invocation,
    file: str,
    file_format: Literal["clusterd", "dud"],
    host: str | None,
    universal: str | None,
    loose: bool,
) -> None:
    """Write the rules in force to FILE (- for standard output); dud is duplicate-url-discarder's format.

    What the format cannot express is listed with the reason.
    """
    from clusterd.learning.interchange.files import own_file, write_rules

    if file_format != "dud" and (loose or universal):
        raise WrongInput("rules export: --loose and --universal go with --format dud")
    with opened(invocation) as (_, book):
        found = book.rules(spelled(host, book))
        first = list(islice(found, 1))
        if host and not first:  # a backup of before stays
            raise NotFound(none_of(host, book))
        found = chain(first, found)
        if file == "-" and file_format == "clusterd":
            for part in own_file(found, one_line=invocation.json):
                put(part)
            return
        given = list(found)
    with named_in_errors(universal or file):
        text, done = write_rules(given, file_format, read_file(universal) if universal else "", loose=loose)
    if file == "-":
        put(json.dumps(json.loads(text)) + "\n" if invocation.json else text)
        for named, reason in (*done.refused.items(), *done.notes.items()):
            invocation.hint(f"{named}: {reason}")
        return
    write_whole(file, text.encode())
    _tell_written(invocation, given, done, loose)


def _tell_written(invocation: Invocation, given: Iterable[Rule], done: Exported, loose: bool) -> None:
    """Say which rules are in the file, and why others are not."""
    for rule in given:
        if rule.id not in done.refused:
            tell(invocation, rule, done.notes.get(rule.id, ""))
    for refused, reason in done.refused.items():
        invocation.emit({"id": refused, "reason": reason}, printable(f"{refused}  not exported: {reason}"))
    if not loose and any("other parameters" in reason for reason in done.refused.values()):
        invocation.hint("--loose exports them without their condition on other parameters, each with a note")


def none_of(host: str | None, book: RuleService) -> str:
    """Return what is said where no rules (of a host) are in force."""
    if next(book.entries(spelled(host, book), every=True), None) is not None:
        return f"no rules{f' of {host}' if host else ''} are in force; clusterd rules list --all shows the retired ones"
    if host:
        return f"no rules of {host}; a host is named with its port, if it has one (clusterd rules list)"
    return "no rules yet; they are learned from the pages that clusterd has seen"


def tell(invocation: Invocation, rule: Rule, note: str) -> None:
    """Print a rule that was written or read, with a note where there is one."""
    record = rule_record(rule) | ({"note": note} if note else {})
    invocation.emit(record, printable(f"{rule.id}  {rule.text}" + (f"  (note: {note})" if note else "")))


def put(text: str) -> None:
    """Write JSON text to standard output; nothing in it commands a terminal."""
    sys.stdout.write("\n".join(map(escaped, text.split("\n"))))


@rules.command("import")
@click.argument("file", metavar="FILE", type=Place())
@click.option("--format", "file_format", type=FORMATS, default="clusterd", show_default=True, help="Of the file.")
@click.pass_obj
def import_rules(invocation: Invocation, file: str, file_format: Literal["clusterd", "dud"]) -> None:
    """Take the rules of FILE (- for standard input) into use; a file with an error is refused whole."""
    from clusterd.learning.interchange.files import read_rules

    with named_in_errors(file):
        done = read_rules(read_file(file), file_format)
    named = {rule.id for rule in done.rules}
    with changing(invocation) as book:
        for rule in book.import_rules(done.rules, now_ms()):
            note = "" if rule.id in named else "under a new id: that of the file is of a rule that says another thing"
            tell(invocation, rule, done.notes.get(rule.id, note))
    for entry, reason in done.refused:
        invocation.emit({"id": entry, "reason": reason}, printable(f"{entry}  not imported: {reason}"))


def spelled(host: str | None, book: RuleService) -> str:
    """Return a host as its rules spell it; nothing for all hosts."""
    from clusterd.queries.documents import known_host

    return known_host(host, book.book.hosts()) if host else ""


@contextmanager
def opened(invocation: Invocation) -> Iterator[tuple[Services, RuleService]]:
    """Open the rules, with the pages that wait worked off where no daemon does it."""
    with invocation.services() as services:
        invocation.work_off(services)
        yield services, services.rulebook


@contextmanager
def changing(invocation: Invocation) -> Iterator[RuleService]:
    """Open the rules for a change; when it is over the crawlers have been told, or daemons of their log tell them."""
    with opened(invocation) as (services, book):
        if services.of_another_log():
            book.sets.leave_to_others(services.handed_over.add)
        yield book


def explained(services: Services, book: RuleService, url: str) -> dict[str, Any]:
    """Return what the rules make of a URL: the crawl's own decision over all known good pages of its domain."""
    from clusterd_crawler.skipping.known_pages import KnownPages
    from clusterd_crawler.urls import canonical, host_of, registrable

    asked = canonical(url)
    own, domain = host_of(asked), registrable(host_of(asked))
    known = KnownPages(explore=0.0)
    hosts = sorted({own, domain, *(host for host in services.index.hosts() if registrable(host) == domain)})
    in_force: list[Rule] = []
    for host in hosts:
        rules = book.book.load(host).rules
        known.load(rules)
        in_force += rules.rules
    # Without a rule no page is like another; a rule speaks of its own host's, but for those that span hosts, and names.
    across = any(rule.spans or rule.kind == "name" for rule in in_force)
    for host in hosts if across else [own] if in_force else []:
        for page in _of_one_crawl(book.pages(host), known):
            if page.url != asked and page.state == "redirected":
                known.redirected(page.url, page.target)
            elif page.url != asked:
                known.fetched(page.url, page.fetched_at, page.names, page.state == "good", page.content)
    key, applied = known.key(asked)
    skip = known.decide(asked, now_ms())
    named = [skip.rule] if skip and skip.rule not in applied else []
    return {
        "url": asked,
        "key": skip.key if skip else key,
        "rules": [*applied, *named],
        "would_skip": skip is not None,
        "known_url": skip.known_url if skip else None,
    }


def _of_one_crawl(pages: Sequence[Page], known: KnownPages) -> Iterator[Page]:
    """Yield pages as a crawl would know them, which meets all of a key as they are by then.

    What a page showed to an earlier crawl than the last one that fetched a page of its key says nothing of these: the
    site may have changed, and the crawl have skipped this page.
    """
    from clusterd_crawler.skipping.known_page import UNKNOWN

    if len({page.crawl for page in pages}) < 2:
        yield from pages
        return
    latest = {known.key(page.url)[0]: page.crawl for page in pages if page.state == "good"}
    for page in pages:
        passed = page.state == "good" and latest[known.key(page.url)[0]] != page.crawl
        yield replace(page, content=UNKNOWN) if passed else page


def rule_record(rule: Rule) -> dict[str, Any]:
    """Return a rule as it is printed."""
    from clusterd_crawler.rule_language.json_form import rule_to_json

    whole = rule_to_json(rule) | {"since": iso(rule.since)}
    more = {name: whole[name] for name in ("kind", "name", "carrier", "spans", "crawl", "identity") if whole[name]}
    return {name: whole[name] for name in FIELDS} | more


def listed(entry: Entry) -> dict[str, Any]:
    """Return a rule as ``rules list`` has it: of one that another took the place of, which did."""
    return rule_record(entry.rule) | ({"replaced_by": entry.replaced_by} if entry.replaced_by else {})


def entry_record(entry: Entry) -> dict[str, Any]:
    """Return what ``rules show`` adds."""
    evidence = [{"a": a, "b": b, "agreed": agreed} for a, b, agreed in entry.rule.evidence]
    return {"evidence": evidence, "history": [asdict(turn) | {"at": iso(turn.at)} for turn in entry.history]}


def entry_text(entry: Entry, skips: int) -> str:
    """Return a rule for people; nothing that was imported begins a line of its own."""
    rule = entry.rule
    lines = [
        f"{rule.id}  {rule.text}",
        f"  {rule.state}; {skips} requests skipped",
        f"  {rule.support} pages agreed, it applies to {rule.coverage} URLs, "
        f"precision {rule.precision:.3f} (at least {rule.lower_bound:.3f})",
        *(f"  {'=' if agreed else '≠'}  {a}  {b}" for a, b, agreed in rule.evidence),
        *(f"  {iso(turn.at)}  {turn.state} ({turn.by}) {turn.reason}".rstrip() for turn in entry.history),
    ]
    return "\n".join(map(printable, lines))


def read_file(name: str) -> str:
    """Return the text of a file, or of standard input for ``-``."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongInput(f"{name}: cannot be read: {reason}") from None


@contextmanager
def named_in_errors(name: str) -> Iterator[None]:
    """Put the name of a rule file before what is wrong with it."""
    try:
        yield
    except RuleError as error:
        raise WrongInput(f"{name}: {error}") from None
