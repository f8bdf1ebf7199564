"""Documents of half-lives: what they keep, what they refuse, and what their schemas say."""

from __future__ import annotations

import copy
import json
import re
from datetime import date
from math import exp, inf
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.documents import json_schema, load
from errcomp.errors import InputError
from errcomp.halflife.forecast import AHEAD, HalfLifeForecast, forecast_half_life
from errcomp.halflife.gate.checking import ValidationCheck, check_validation
from errcomp.halflife.results import HalfLives
from errcomp.report.writing import plain


def table(first: int = 0, last: int = 8, slow_from: int = 5) -> dict[str, list[Any]]:
    """Five series of two operators; both of the first take twice as long from a version on.

    The last series begins so late that it cannot be searched for steps.
    """
    rng = np.random.default_rng(first)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("version", "op", "shape", "repeat", "released", "measured")
    }
    for version in range(first, last):
        for i, (op, shape) in enumerate((("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3))):
            if i == 4 and version < last - 2:
                continue
            for repeat in range(2):
                time = (i + 1.0) * (2 if i < 2 and version >= slow_from else 1)
                values = (
                    f"1.{version}",
                    op,
                    str(shape),
                    repeat,
                    f"2024-{version + 1:02d}-01",
                    time * exp(rng.normal(0, 0.01)),
                )
                for name, value in zip(columns, values, strict=True):
                    columns[name].append(value)
    return columns


def written(result: Any) -> dict[str, Any]:
    return dict(json.loads(json.dumps(plain(result.to_dict()), allow_nan=False)))


@pytest.fixture(scope="module")
def forecast() -> HalfLifeForecast:
    return forecast_half_life(table(), by="op", error=0.1, below=0.7, level=0.9)


@pytest.fixture(scope="module")
def half_lives() -> HalfLives:
    return ec.half_life(table(), by="op", error=0.1)


@pytest.fixture(scope="module")
def check() -> ValidationCheck:
    return check_validation(table(), table(8, 9), by="op", recalibrated=True)


def test_a_forecast_is_read_as_it_was_written(forecast: HalfLifeForecast) -> None:
    document = written(forecast)
    found = load(document)
    assert isinstance(found, HalfLifeForecast)
    assert written(found) == document
    assert found.clocks == ("releases", "months")
    assert [group.key for group in found.groups] == [{"op": "a"}, {"op": "b"}]
    seen = set()
    for before, after in zip(forecast.groups, found.groups, strict=True):
        assert after.date == before.date == date(2024, 8, 1)
        assert len(after.answers) == 6
        for old, new in zip(before.answers, after.answers, strict=True):
            assert (new.method, new.unit, new.refused) == (old.method, old.unit, old.refused)
            assert new.dates == old.dates
            if old.forecast is None or old.drop is None:
                assert new.refused
                assert (new.forecast, new.drop, new.dates) == (None, None, (None, None, None))
                continue
            assert new.forecast is not None
            assert new.drop is not None
            assert (new.forecast.method, new.forecast.unit) == (old.method, old.unit)
            assert new.forecast.ahead.tolist() == list(AHEAD[old.unit])
            assert (new.forecast.level, new.drop.below) == (0.9, 0.7)
            assert new.forecast.assumptions == old.forecast.assumptions
            assert new.drop.unit == old.unit
            assert new.drop.refused == old.drop.refused
            ends = [(one.time, one.low, one.high) for one in (old.drop, new.drop)]
            assert ends[1] == ends[0]
            seen |= {inf in ends[0], any(isinstance(day, date) for day in new.dates)}
    # Some drops have no end, and some have a date.
    assert seen == {True, False}
    assert any(row["drop"]["endless"] == ["high"] for row in document["rows"] if row["drop"])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("rows.0.within", lambda ahead: [ahead[0], *ahead[3:]],
         r"rows\[0\]\.within must be the times ahead 1, 2 too, got a list of length 3"),
        ("rows", [], "rows must be a list of length 1 or more, got a list of length 0"),
        ("groups", [], "groups must be a list of length 1 or more"),
        ("groups.1.key.op", ..., r"groups\[1\]\.key has no key 'op'"),
        ("groups.1.key", {"op": "c"},
         r"rows must be rows of every group, including \{'op': 'c'\}"),
        ("rows", lambda rows: rows[:6],
         r"rows must be rows of every group, including \{'op': 'b'\}"),
        ("rows.0.drop.endless", ["never"],
         r"rows\[0\]\.drop\.endless\[0\] must be"),
        ("rows.0.drop.not_reached", 1, r"rows\[0\]\.drop\.not_reached must be"),
        ("rows.0.drop.time", "soon", r"rows\[0\]\.drop\.time must be"),
        ("rows.0.drop.date", "soon", r"rows\[0\]\.drop\.date must be"),
        ("rows.0.assumptions", [1], r"rows\[0\]\.assumptions\[0\] must be"),
        ("rows.0.drop", None, r"rows\[0\]\.refused must be"),
    ],
)  # fmt: skip
def test_forecasts_that_contradict_themselves_are_refused(
    forecast: HalfLifeForecast, path: str, value: Any, message: str, changed: Any, refusal: Any
) -> None:
    assert re.search(message, refusal(changed(written(forecast), path, value)))


def test_the_schema_of_a_forecast() -> None:
    schema = json_schema("half-life-forecast")
    group = schema["properties"]["groups"]["items"]
    assert (group["required"], group["additionalProperties"]) == (["key", "notes"], False)
    assert group["properties"]["notes"] == {"type": "array", "items": {"type": "string"}}
    kinds = ["string", "integer", "number", "boolean", "null"]
    assert group["properties"]["key"] == {
        "type": "object",
        "additionalProperties": {"anyOf": [{"type": kind} for kind in kinds]},
    }
    assert schema["properties"]["groups"]["type"] == "array"
    assert schema["properties"]["rows"] == {"type": "array", "items": {"$ref": "#/$defs/_Row"}}
    row = schema["$defs"]["_Row"]["properties"]
    assert row["within"]["items"]["required"] == ["ahead", "probability", "low", "high"]
    assert row["refused"] == {"type": ["string", "null"]}
    assert row["assumptions"] == {"type": "array", "items": {"type": "string"}}
    drop, none = row["drop"]["anyOf"]
    assert none == {"type": "null"}
    day = {"type": ["string", "null"], "format": "date"}
    number = {"type": ["number", "null"]}
    assert drop["properties"] == {
        **dict.fromkeys(("time", "low", "high"), number),
        **dict.fromkeys(("date", "date_low", "date_high"), day),
        "not_reached": {"type": ["string", "null"]},
        "endless": {"type": "array", "items": {"enum": ["high", "low", "time"]}},
    }
    assert drop["required"] == list(drop["properties"])
    assert drop["additionalProperties"] is False


def test_half_lives_are_read_as_they_were_written(half_lives: HalfLives) -> None:
    document = written(half_lives)
    found = load(document)
    assert isinstance(found, HalfLives)
    assert written(found) == document
    assert {group["key"]["op"]: group["not_searched"] for group in document["groups"]} == {
        "a": {},
        "b": {next(iter(document["groups"][1]["not_searched"])): 1},
    }
    for before, after in zip(half_lives.groups, found.groups, strict=True):
        assert after.panel.n_series == before.panel.n_series
        assert after.steps == before.steps
        assert sorted(one.refused for one in after.series_steps) == sorted(
            one.refused for one in before.series_steps
        )
        assert after.expiry.keys() == before.expiry.keys()
        for clock, old in before.expiry.items():
            new = after.expiry[clock]
            assert new.n == old.n
            over = old.right[np.isfinite(old.right)]
            # Of those that have not expired, only the number is known.
            rest = [inf] if len(over) < old.n else []
            assert new.right.tolist() == [*over.tolist(), *rest]
        ends = [[(e.method, e.unit, e.half_life, e.low, e.high) for e in g.estimates]
                for g in (before, after)]  # fmt: skip
        assert ends[1] == ends[0]
    assert [step.version for step in found.groups[0].steps] == ["1.5"]
    assert any(e.half_life == inf for group in found.groups for e in group.estimates)


def test_a_document_of_half_lives_says_where_single_series_are(half_lives: HalfLives) -> None:
    group = load(written(half_lives)).groups[0]
    for of, name, what in (
        (group.panel, "error", "the errors of single series"),
        (group.trajectory, "median", "errors by release"),
        (group.variogram, "v", "how far errors drift"),
        (group.series_steps[0], "steps", "the steps of single series"),
        (group.expiry["releases"], "left", "when single series expired"),
    ):
        with pytest.raises(InputError, match=f"does not hold {what}.*fit HISTORY --figure NAME="):
            getattr(of, name)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("groups.0.n_series", 0,
         r"groups\[0\]\.n_series must be from 1 to 10,000,000, got 0"),
        ("groups.0.n_series", 10_000_001,
         r"groups\[0\]\.n_series must be from 1 to 10,000,000, got 10000001"),
        ("groups.1.expired.releases", {"n": 1, "surely": [1, 2]},
         r"groups\[1\]\.expired\.releases\.surely must be at most the 1 series, got a list"),
        ("groups.0.expired", {"weeks": {"n": 1, "surely": []}},
         r"groups\[0\]\.expired must be .*'weeks'"),
        ("groups.1.not_searched", {"noise": 2, "few": 2},
         r"groups\[1\]\.not_searched must be at most the total number of series"),
        ("groups.0.key.op", ..., r"groups\[0\]\.key has no key 'op'"),
        ("rows.0.op", ..., r"rows\[0\] has no key 'op'"),
        ("groups", [], "groups must be a list of length 1 or more"),
        ("rows", lambda rows: [row for row in rows if row["op"] == "a"],
         r"rows must be rows of every group, including \{'op': 'b'\}"),
        ("rows.2.details.held_out_score", "good",
         r"rows\[2\]\.details\.held_out_score must be"),
    ],
)  # fmt: skip
def test_half_lives_that_contradict_themselves_are_refused(
    half_lives: HalfLives, path: str, value: Any, message: str, changed: Any, refusal: Any
) -> None:
    document = written(half_lives)
    assert "held_out_score" in document["rows"][2]["details"]
    assert re.search(message, refusal(changed(document, path, value)))


def test_all_series_may_have_no_search(half_lives: HalfLives) -> None:
    document = written(half_lives)
    document["groups"][1]["not_searched"] = {"noise": 3}
    found = load(document).groups[1]
    assert [one.refused for one in found.series_steps] == ["noise"] * 3


def test_a_group_may_have_one_series(half_lives: HalfLives) -> None:
    document = written(half_lives)
    document["groups"][0] |= {"n_series": 1, "not_searched": {}}
    assert load(document).groups[0].panel.n_series == 1


def test_the_schema_of_half_lives() -> None:
    schema = json_schema("half-lives")
    assert schema["properties"]["groups"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/GroupHalfLife"},
    }
    assert schema["properties"]["rows"] == {"type": "array", "items": {"$ref": "#/$defs/_Row"}}
    group = schema["$defs"]["GroupHalfLife"]["properties"]
    assert group["n_series"] == {"type": "integer", "minimum": 1, "maximum": 10_000_000}
    assert group["not_searched"] == {
        "type": "object",
        "additionalProperties": {"type": "integer", "minimum": 0},
    }
    assert group["expired"]["type"] == "object"
    clock = group["expired"]["additionalProperties"]
    assert clock["properties"] == {
        "n": {"type": "integer", "minimum": 0},
        "surely": {"type": "array", "items": {"type": "number"}},
    }
    assert clock["required"] == ["n", "surely"]


def test_a_check_is_read_as_it_was_written(check: ValidationCheck) -> None:
    document = written(check)
    found = load(document)
    assert isinstance(found, ValidationCheck)
    assert written(found) == document
    old, new = check.result, found.result
    assert new.last.tolist() == old.last.tolist()
    assert new.begin is not None
    assert old.begin is not None
    assert new.begin.tolist() == old.begin.tolist()
    assert found.recalibration is not None
    assert check.recalibration is not None
    assert found.recalibration.factor.tolist() == check.recalibration.factor.tolist()
    assert found.recalibration.helps.tolist() == check.recalibration.helps.tolist()


_LATER = ("n_shifted", "repeats_needed", "first_version")


def test_a_check_of_an_older_version_does_not_say_since_when(check: ValidationCheck) -> None:
    document = written(check)
    document["series"] = [
        {name: value for name, value in row.items() if name not in _LATER}
        for row in document["series"]
    ]
    found = load(document)
    assert (found.result.begin, found.result.n_shifted) == (None, None)
    assert found.result.repeats_needed is None
    assert found.result.last.tolist() == check.result.last.tolist()
    assert written(found) == document


def test_a_series_without_an_earlier_version(check: ValidationCheck) -> None:
    document = written(check)
    document["series"][0] |= {"last_version": None, "first_version": None}
    found = load(document).result
    assert found.last.tolist()[:2] == [-1, check.result.last.tolist()[1]]
    assert found.begin.tolist()[0] == -1
    assert written(load(document)) == document


@pytest.mark.parametrize("name", ["last_version", "first_version"])
def test_a_version_that_the_check_does_not_have_is_refused(
    check: ValidationCheck, name: str
) -> None:
    document = written(check)
    document["series"][1][name] = "9.9"
    known = r"1\.0, 1\.1, 1\.2, 1\.3, 1\.4, 1\.5, 1\.6, 1\.7, 1\.8"
    with pytest.raises(
        InputError, match=rf": series\[1\]\.{name} must be one of {known}, got '9.9'"
    ):
        load(document)


def test_where_one_series_says_since_when_all_must(check: ValidationCheck) -> None:
    for name in _LATER:
        document = copy.deepcopy(written(check))
        for row in document["series"][1:]:
            for one in _LATER:
                del row[one]
        del document["series"][0][name]
        with pytest.raises(InputError, match=r"series\[\d\] has no key '\w+'"):
            load(document)


def test_the_schema_of_a_check() -> None:
    schema = json_schema("half-life-check")
    row = schema["properties"]["series"]["items"]
    assert row["properties"]["last_version"] == {"type": ["string", "null"]}
    assert row["properties"]["first_version"] == {"type": ["string", "null"]}
    assert row["properties"]["n_shifted"] == {"type": "integer", "minimum": 0}
    assert not set(_LATER) & set(row["required"])
    assert {"series", "verdict", "last_version", "promised"} <= set(row["required"])
    groups = schema["$defs"]["Recalibration"]["properties"]["groups"]
    assert groups["items"]["properties"]["helps"] == {"type": "boolean"}
    assert "factor" in groups["items"]["required"]
