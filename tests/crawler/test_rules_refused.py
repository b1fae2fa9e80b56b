"""One wrong value of a rule refuses it, and is named with what would be right."""

from __future__ import annotations

from typing import Any

import pytest
from clusterd_crawler.errors import RuleError
from clusterd_crawler.rule_language.json_form import rule_from_json, rule_set_from_json

from tests.crawler.made_rules import HOST

RULE: dict[str, Any] = {"id": "x", "host": HOST, "transformation": [{"key": "?sid", "op": "delete"}]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": ""}, "rule: id: is empty"),
        ({"id": None}, "rule: id: None is not text"),
        ({"spans": 1}, "rule: spans: 1 is not true or false"),
        ({"evidence": [["http://a/", "http://b/", "yes"]]}, "rule: evidence[0]: 'yes' is not true or false"),
        ({"precision": 1.5}, "rule: precision: 1.5 is not a share from 0 to 1"),
        ({"precision": True}, "rule: precision: True is not a share from 0 to 1"),
        ({"lower_bound": "0.9"}, "rule: lower_bound: '0.9' is not a share from 0 to 1"),
        ({"lower_bound": float("nan")}, "rule: lower_bound: nan is not a share from 0 to 1"),
        ({"support": -1}, "rule: support: -1 is not a whole number of 0 or more"),
        (
            {"host": f"www.{HOST}", "spans": True},
            f"rule: spans is for a registrable domain; that of 'www.{HOST}' is '{HOST}'",
        ),
        ({"kind": "name"}, "rule: a name rule has a name and no transformation"),
        ({"kind": "name", "name": "canonical"}, "rule: a name rule has a name and no transformation"),
        ({"kind": "name", "transformation": []}, "rule: a name rule has a name and no transformation"),
        ({"transformation": []}, "rule: transformation is empty; a rule edits at least one key"),
    ],
)
def test_a_wrong_value_is_named(change: dict[str, Any], says: str) -> None:
    assert rule_from_json(RULE).id == "x"
    with pytest.raises(RuleError) as refused:
        rule_from_json({**RULE, **change})
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"host": ""}, "rule set: host: is empty"),
        ({"unskip": [""]}, f"rule set of {HOST}: unskip[0]: is empty"),
        ({"retired": [["", "why"]]}, f"rule set of {HOST}: retired[0]: is empty"),
    ],
)
def test_a_rule_set_names_what_is_empty(change: dict[str, Any], says: str) -> None:
    with pytest.raises(RuleError) as refused:
        rule_set_from_json({"host": HOST, "version": 1, **change})
    assert str(refused.value) == says
