"""Documents of audits, searches and replications whose values contradict each other."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import errcomp as ec
from errcomp.claims.auditing import AUDIT_FIGURES
from errcomp.claims.registry import user_claim
from errcomp.claims.replicate.judging import STATUSES, Candidate, PrintedCell, Replication, judge
from errcomp.documents import json_schema, load


def pairs() -> dict[str, Any]:
    """Ten pairs of each mode, with errors of 1 to 10 % and of 21 to 30 %."""
    errors = [k / 100 for k in (*range(1, 11), *range(21, 31))]
    return {
        "mode": ["inference"] * 10 + ["training"] * 10,
        "batch": [*range(20)],
        "measured": [100.0] * 20,
        "predicted": [100 * (1 + error) for error in errors],
    }


@pytest.fixture(scope="module")
def audited() -> Any:
    claim = user_claim("4%", aggregation="mean")
    return json.loads(ec.audit(pairs(), by=["mode"], claims=[claim], unit="ms").to_json())


@pytest.fixture(scope="module")
def searched() -> Any:
    data = {**pairs(), "predicted": [101.0, 103.0] * 5 + [110.0, 130.0] * 5}
    return json.loads(ec.search_claim(ec.Pairs(data), {"": "2%"}).to_json())


def test_an_audit_comes_back_with_its_estimates(audited: Any) -> None:
    found = load(audited)
    assert [(row.tool, row.key, row.n) for row in found.rows] == [
        ("", {"mode": "inference"}, 10),
        ("", {"mode": "training"}, 10),
    ]
    figures = found.rows[1].figures
    assert tuple(figures) == AUDIT_FIGURES
    mape, largest = figures["mape"], figures["max_ape"]
    assert mape.value == pytest.approx(0.255)
    assert (mape.figure, mape.unit, mape.n, mape.level, mape.seed) == ("mape", "fraction", 10, 0.95,
                                                                       0)  # fmt: skip
    assert mape.definition.startswith("Arithmetic mean over pairs of the absolute error")
    assert mape.low is not None
    assert mape.low < 0.255
    assert largest.value == pytest.approx(0.3)
    assert (largest.low, largest.high, largest.level, largest.seed, largest.n) == (
        *(None,) * 4,
        10,
    )
    assert largest.method.startswith("no interval for a maximum")
    assert found.rows[0].figures["within_10"].value == 1.0
    assert [row.verdict.word for row in found.rows] == ["consistent", "overstated"]


AUDITS = [
    ("rows.1.mode", ..., "rows[1] has no key 'mode'"),
    ("rows.0.mape", -0.01, "rows[0].mape must be from 0 to inf, got -0.01"),
    ("rows.0.max_ape", -0.01, "rows[0].max_ape must be from 0 to inf, got -0.01"),
    ("rows.0.within_10", 1.01, "rows[0].within_10 must be from 0 to 1, got 1.01"),
    ("rows.0.methods.bias", 1, "rows[0].methods.bias must be text, got 1"),
    ("rows.0.methods.bias", ..., "rows[0].methods has no key 'bias'"),
    ("rows.0.tool", 1, "rows[0].tool must be text, got 1"),
    ("rows.0.verdict", "overstated", "rows[0].verdict must be 'consistent', which follows from the "
     "interval, got 'overstated'"),
    ("rows.1.verdict", "understated", "rows[1].verdict must be 'overstated', which follows from "
     "the interval, got 'understated'"),
    ("rows.1.claim", None, "rows[1].verdict must be another verdict, or come with both a claim and "
     "a recomputed metric, got 'overstated'"),
    ("rows.1.recomputed", None, "rows[1].verdict must be another verdict, or come with both a "
     "claim and a recomputed metric, got 'overstated'"),
    ("rows.0.claim.printed", "few", "rows[0].claim.printed: cannot read the figure 'few'"),
    ("not_looked_for", ["coverage-differs", "x"], "not_looked_for[1] must be one of "),
    ("rows.0.caveats", [{"code": "x", "message": "", "evidence": {}}], "rows[0].caveats[0].code "
     "must be one of "),
    ("n", 21, "n is 21, but the rest of the document gives 20: part of the document was changed"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "wanted"), AUDITS, ids=[path for path, *_ in AUDITS])
def test_an_audit_that_contradicts_itself_is_refused(
    audited: Any, path: str, value: Any, wanted: str, changed: Any, refusal: Any
) -> None:
    assert refusal(changed(audited, path, value)).startswith(wanted)


def test_only_caveats_about_rows_belong_to_a_row(audited: Any, changed: Any, refusal: Any) -> None:
    caveat = {"code": "coverage-differs", "message": "", "evidence": {}}
    said = refusal(changed(audited, "rows.0.caveats", [caveat]))
    wanted, _, given = said.partition(", got ")
    assert wanted.startswith("rows[0].caveats[0].code must be one of units, affine, ")
    assert wanted.endswith(", p99-few-samples, order-holds")
    codes = wanted.partition("one of ")[2].split(", ")
    assert len(codes) == len({*codes} - {"coverage-differs"})
    assert given == "'coverage-differs'"
    load(changed(audited, "rows.0.caveats", [{**caveat, "code": "units"}]))


def test_a_claim_about_all_pairs_is_there(audited: Any, changed: Any, refusal: Any) -> None:
    left = dict.fromkeys(("claim", "recomputed", "ratio", "verdict_jointly"))
    verdict = {**audited["claims"][0], **left, "verdict": "no claim"}
    said = refusal(changed(audited, "claims.0", verdict))
    assert said == "claims[0].claim must be the claim that was checked, got null"


def test_a_signed_error_may_be_negative_and_a_share_may_be_whole(
    audited: Any, changed: Any
) -> None:
    made = changed(audited, "rows.0.within_10", 1.0)
    for name in ("bias", "total_error"):
        made["rows"][0] |= {name: -0.01, f"{name}_low": -0.02}
    figures = load(made).rows[0].figures
    assert [figures[name].value for name in ("bias", "total_error")] == [-0.01, -0.01]
    made["rows"][0]["within_10"] = 0.0
    assert load(made).rows[0].figures["within_10"].value == 0.0


def test_a_figure_without_an_interval_has_no_level(audited: Any, changed: Any) -> None:
    made = changed(changed(audited, "rows.0.bias_low", None), "rows.0.bias_high", None)
    found = load(made).rows[0].figures
    assert (found["bias"].level, found["bias"].seed) == (None, None)
    assert (found["wape"].level, found["wape"].seed) == (0.95, 0)


def test_the_tool_of_a_row_comes_back() -> None:
    data = {**pairs(), "tool": ["x", "y"] * 10}
    found = load(json.loads(ec.audit(data, by=["tool", "mode"]).to_json()))
    assert [row.tool for row in (*found.rows, *found.by_tool)] == ["x", "x", "y", "y", "x", "y"]


def test_medians_of_an_engine_keep_their_definition() -> None:
    claim = user_claim("4%", aggregation="median")
    table = pl.LazyFrame({**pairs(), "tool": ["x"] * 20})
    found = ec.audit(table, by=["mode"], claims=[claim])
    again = load(json.loads(found.to_json()))
    assert again.engine == found.engine == "Polars"
    assert again.to_json() == found.to_json()
    for row, middle in zip(again.rows, (0.055, 0.255), strict=True):
        median = row.figures["median_ape"]
        assert median.figure == "median_ape_approx"
        assert median.value == pytest.approx(middle, rel=0.02)


SEARCHES = [
    ("figures..text", "few", "figures..text: cannot read the figure 'few'"),
    ("figures..text", 2, "figures..text must be text, got 2"),
    ("figures..text", ..., "figures. has no key 'text'"),
    ("figures..low", 0.01, "figures..low is 0.01, but the rest of the document gives 0.015"),
    ("matches.0.values", {}, "matches[0].values has no key ''"),
    ("searched.subsets", -1, "searched.subsets must be a whole number, not negative, got -1"),
    ("searched.rules", ..., "searched has no key 'rules'"),
    ("searched.configurations", "many", "searched.configurations must be a whole number, not n"),
    ("searched.complete", 1, "searched.complete must be true or false, got 1"),
    (
        "searched.left_out",
        {"x": 1.5},
        "searched.left_out.x must be a whole number, not negative, go",
    ),
    (
        "searched.by_complexity",
        [],
        "searched.by_complexity must be a list of length 1 or more, got a",
    ),
    ("searched.by_complexity.1.expected", "x", "searched.by_complexity[1].expected must be a num"),
]


@pytest.mark.parametrize(("path", "value", "wanted"), SEARCHES)
def test_a_search_that_contradicts_itself_is_refused(
    searched: Any, path: str, value: Any, wanted: str, changed: Any, refusal: Any
) -> None:
    assert refusal(changed(searched, path, value)).startswith(wanted)


def test_a_search_comes_back_with_the_figures_as_printed(searched: Any) -> None:
    figure = load(searched).figures[""]
    assert (figure.text, figure.value, figure.low, figure.high) == ("2%", 0.02, 0.015, 0.025)
    assert json.loads(load(searched).to_json()) == searched


def test_a_replication_counts_every_status(changed: Any, refusal: Any) -> None:
    first = PrintedCell("t", "Table 0", "second", "row", "column", "2%", 0.02, "fraction")
    cell = judge(first, [Candidate("mean", 0.02, stated=True)])
    counted = {"t": dict.fromkeys(STATUSES, 0) | {"reproduced": 3}}
    made = json.loads(Replication((cell,), {"all": counted["t"], **counted}).to_json())
    assert load(made).counts() == {"all": counted["t"], **counted}
    assert refusal(changed(made, "counts", counted)) == "counts has no key 'all'"
    assert refusal(changed(made, "counts.t.no data", ...)) == "counts.t has no key 'no data'"
    said = refusal(changed(made, "counts.t.reproduced", -1))
    assert said == "counts.t.reproduced must be a whole number, not negative, got -1"


def test_the_schemas_of_parts() -> None:
    number = {"type": ["number", "null"]}
    figures = json_schema("search")["properties"]["figures"]
    assert figures["type"] == "object"
    each = figures["additionalProperties"]
    assert each["properties"] == {
        "text": {"type": "string"}, "value": number, "low": number, "high": number
    }  # fmt: skip
    assert each["additionalProperties"] is False
    counts = json_schema("replication")["properties"]["counts"]
    assert counts["additionalProperties"]["additionalProperties"] == {"type": "integer",
                                                                      "minimum": 0}  # fmt: skip
    row = json_schema("audit")["$defs"]["AuditRow"]["properties"]
    assert row["tool"] == {"description": "The predictor.", "type": ["string", "null"]}
    assert "max_ape" in row
    assert "max_ape_low" not in row
    assert row["bias_low"] == row["bias_high"] == number
    assert row["methods"] == {"type": "object", "additionalProperties": {"type": "string"}}
