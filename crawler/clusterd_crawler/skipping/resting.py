"""Skips by rules that hold on pages of any path, or on all that one script shows: how many may rest on how few trials.

A print view shows what the page does until somebody writes more into it, and so does a site for phones. That is what
folders of regions do (`renaming`, which has the argument: of s skips on n trials at most s/(en) are wrong, whatever
share of the pages differs), only seldomer; so half as many skips again may rest on each trial. One program may answer
for all pages of a script, but what it shows hangs on what is in its tables: that ``limit=500`` changes nothing of 29
histories of a wiki says little of the longest. A rule for stated paths is not tried further. Nor is another scheme or
port of a host, or ``www.``, which is a matter of how a server is set up, nor what somebody wrote, which rests on no
trials. Families are explored by their own share (`exploring`), and what drops all that its context does not state by
that of all rules: that every ``posting.php?mode=quote&p=…`` shows the log-in form.
"""

from __future__ import annotations

from typing import Final

from clusterd_crawler.rules import HOST, SCHEME, Key, Rule
from clusterd_crawler.skipping.trial_budget import TrialBudget
from clusterd_crawler.urls import without_port

#: Skips for each trial.
SKIPS: Final = 6
#: Of the one-sided 95 % bound by Wilson's score.
Z: Final = 1.645
#: A bound that no record of trials passes.
HIGHEST: Final = 0.99999


class Resting(TrialBudget):
    """The rules in use that hold on pages of any path or of a script, and how many skips rest on each."""

    each = SKIPS

    def agreed(self, rule: Rule) -> float | None:
        """Return the clean trials that the rule's lower bound stands for."""
        return _trials(rule) if rule.lower_bound and _says_much(rule) else None


def _trials(rule: Rule) -> float:
    """Return how many clean trials a rule's lower bound stands for, with those that its kind brings along."""
    bound = min(rule.lower_bound, HIGHEST)
    return Z**2 * bound / (1 - bound)


def _says_much(rule: Rule) -> bool:
    """Whether a rule holds on other pages than stated ones, and says more than how a server is set up."""
    if rule.kind == "name" or rule.crawl or is_one_server(rule):
        return False
    return not any(known.key == Key() and known.test == "in" for known in rule.context) and not _is_one_page(rule)


def _is_one_page(rule: Rule) -> bool:
    """Whether a rule drops all parameters that its context does not state: by their keys its pages are few."""
    paths = any(known.key == Key() and known.test == "is" for known in rule.context)
    names = {name for known in rule.context if known.test == "only" for name in known.values}
    stated = {known.key.name for known in rule.context if known.test in {"is", "in", "within"}}
    dropped = {edit.key.name for edit in rule.transformation if edit.op == "delete"}
    return paths and bool(names) and names <= stated | dropped


def is_one_server(rule: Rule) -> bool:
    """Whether a rule exchanges nothing but the scheme and the port, or ``www.host`` and ``host``."""
    if not rule.transformation or not all(edit.key in {SCHEME, HOST} for edit in rule.transformation):
        return False
    hosts = [edit.value for edit in rule.transformation if edit.key == HOST]
    hosts += [host for known in rule.context if known.key == HOST for host in known.values]
    return len({without_port(host).removeprefix("www.") for host in hosts}) <= 1
