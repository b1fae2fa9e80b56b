"""Values of two parameters that were tried often, and never together: a calendar by days and by weeks."""

from __future__ import annotations

from collections.abc import Iterator

from tests.clusterd.learning.one_host import key, learned

#: The Monday of this week, and this day: by weeks both show this week, by days each its own.
MONDAY, TODAY = "2026-11-23", "2026-11-26"
#: A day of the week after, which both show as it is.
OTHER = "2026-12-02"


def calendars(dated: str) -> Iterator[tuple[str, int]]:
    """Yield the calendars of 60 groups, as they are linked: by days none was asked for Monday so far."""
    for group in range(60):
        for number, (period, dates) in enumerate([("day", [TODAY]), ("week", [MONDAY, TODAY])]):
            content = 2 * group + number
            yield f"group/{group}?period={period}", content
            yield from ((f"group/{group}?{dated.format(date)}&period={period}", content) for date in dates)


def test_what_was_tried_of_weeks_says_nothing_of_days() -> None:
    rules = learned(calendars("date={}"))
    assert key(rules, f"group/7?date={MONDAY}&period=day") != key(rules, "group/7?period=day")


def test_nor_where_the_date_never_comes_alone() -> None:
    rules = learned(calendars("date={}&detail=event"))
    assert key(rules, f"group/7?date={MONDAY}&detail=event&period=day") != key(rules, "group/7?period=day")


def test_what_was_tried_of_both_is_dropped_for_both() -> None:
    for dated in ("date={}", "date={}&detail=event"):
        rules = learned(calendars(dated))
        for period in ("day", "week"):
            date = dated.format(TODAY)
            assert key(rules, f"group/7?{date}&period={period}") == key(rules, f"group/7?period={period}")


def own_dates(others: bool) -> set[tuple[str, str]]:
    """Return of which views which dates are dropped where each has one of its own, and others may be asked of both."""
    views = {"day": TODAY, "week": MONDAY}
    pages = [
        (f"group/{group}?{date}period={view}", 2 * group + number)
        for group in range(60)
        for number, view in enumerate(views)
        for date in ("", f"date={views[view]}&")
    ]
    if others:
        pages += [(f"group/7?date={OTHER}&period={view}", 1000 + number) for number, view in enumerate(views)]
    rules = learned(pages)
    return {
        (view, date)
        for view in views
        for date in views.values()
        if key(rules, f"group/7?date={date}&period={view}") == key(rules, f"group/7?period={view}")
    }


def test_where_each_view_has_a_date_of_its_own_each_loses_its_own() -> None:
    """Both dates and both views were left out, each on account of the other; then one of them was."""
    assert own_dates(others=True) == {("day", TODAY), ("week", MONDAY)}


def test_where_no_page_mixes_values_all_that_were_tried_are_dropped() -> None:
    """Parts of a site that each have a default of their own: of all but one of them nothing was skipped."""
    assert own_dates(others=False) >= {("day", TODAY), ("week", MONDAY)}
