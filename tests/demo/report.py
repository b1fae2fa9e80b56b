"""What the two crawls amount to, and which figures the demo promises. Judged by what the site says its pages are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.demo.site import resolve

#: The demo's promises. The share of fetches that must be saved is well under what is measured (about a half).
SKIP_PRECISION = 0.99
MOST_FETCHED = 0.75


@dataclass
class Report:
    """The figures, as `INTERFACE` names them."""

    fetches_without: int
    fetches_with: int
    skipped: int
    skip_precision: float
    lost_contents: int
    rules: list[dict[str, Any]]
    clusters: int = 0
    alerts: int = 0
    #: A skipped URL, to ask ``clusterd rules why`` about.
    example: str = field(default="")

    def as_json(self) -> dict[str, Any]:
        """Return the object that is written."""
        return {name: value for name, value in asdict(self).items() if name != "example"}


def judge(
    site: str,
    without: Sequence[str],
    fetched: Sequence[str],
    skips: Sequence[dict[str, Any]],
    rules: Sequence[dict[str, Any]],
) -> Report:
    """Compare the two crawls: what was skipped, whether its content had been fetched, what was never fetched."""
    contents = {_content(site, url) for url in fetched}
    lost = {_content(site, url) for url in without} - contents
    right = sum(_content(site, skip["url"]) in contents for skip in skips)
    counts = Counter(skip["rule"] for skip in skips)
    told = [
        {
            "id": rule["id"],
            "text": rule["text"],
            "skipped": counts.get(rule["id"], 0),
            "state": "replaced" if "replaced_by" in rule else rule["state"],
        }
        for rule in rules
    ]
    return Report(
        fetches_without=len(without),
        fetches_with=len(fetched),
        skipped=len(skips),
        skip_precision=right / len(skips) if skips else 0.0,
        lost_contents=len(lost),
        rules=sorted(told, key=lambda rule: -rule["skipped"]),
        example=skips[0]["url"] if skips else site + "/",
    )


def broken_promises(report: Report) -> list[str]:
    """Return what the demo promises and does not keep."""
    kept = {
        f"skip precision {report.skip_precision:.4f} ≥ {SKIP_PRECISION}": report.skip_precision >= SKIP_PRECISION,
        f"lost contents {report.lost_contents} = 0": report.lost_contents == 0,
        f"fetches {report.fetches_with} ≤ {MOST_FETCHED} × {report.fetches_without}": (
            report.fetches_with <= MOST_FETCHED * report.fetches_without
        ),
        f"rules {len(report.rules)} > 0": len(report.rules) > 0,
        f"clusters {report.clusters} > 0": report.clusters > 0,
        f"alerts {report.alerts} > 0": report.alerts > 0,
    }
    return [promise for promise, holds in kept.items() if not holds]


def _content(site: str, url: str) -> str:
    return resolve(url.removeprefix(site)).content
