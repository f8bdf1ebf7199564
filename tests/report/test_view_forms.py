"""How the values that only one view has are written, sorted and aligned."""

from __future__ import annotations

import math
from datetime import date
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.calibration.view import evaluation, model, predictions
from errcomp.claims.registry import user_claim
from errcomp.claims.replicate.judging import Cell as Printed
from errcomp.claims.verdict import Verdict
from errcomp.claims.view import audit, replication
from errcomp.documents import view_of_rows
from errcomp.drivers import view as drivers
from errcomp.halflife.forecast import Answer, Drop
from errcomp.halflife.panel import HalfLife
from errcomp.halflife.threshold import Threshold
from errcomp.halflife.view import fit, forecast, study
from errcomp.propagation.view import run
from errcomp.report.model import Cell, Form, Table
from errcomp.results import Estimate, Written


def half_life(*ends: float | None, refused: str = "") -> HalfLife:
    return HalfLife("turnbull", *ends, 0.95, "releases", 8, 0.5, refused)


def threshold(source: Any) -> Threshold:
    return Threshold(math.log(1.05), None, None, 0.95, 0.1, 2.0, source, 8)


def answer(*times: float | None, unit: Any = "releases", dates: Any = (None, None, None)) -> Answer:
    return Answer("steps", unit, None, Drop(0.8, *times, unit), dates, "")


DAYS = (date(2026, 3, 1), date(2026, 1, 5), date(2026, 9, 9))


def recomputed(value: Any, unit: str, decimals: int = 1) -> Printed:
    return Printed(
        "t", "Table 1", "1", "row", "column", "", value, unit, "reproduced", "", "", decimals
    )


@pytest.mark.parametrize(
    ("form", "value", "cell"),
    [
        (fit.HALF_LIFE, half_life(14.0, 12.0, 17.0),
         Cell("14 [12, 17]", 14.0, Written("14", "", "12", "17"))),
        (fit.HALF_LIFE, half_life(14.0, 12.0, math.inf),
         Cell("14 [12, ∞]", 14.0, Written("14", "", "12", "∞"))),
        (fit.HALF_LIFE, half_life(math.inf, 60.0, math.inf), Cell("> 60", 60.0)),
        (fit.HALF_LIFE, half_life(None, None, None, refused="why"), Cell("cannot be determined")),
        (fit.HALF_LIFE, None, Cell("–")),
        (fit._THRESHOLD, threshold("measured"),
         Cell("5.00 %", pytest.approx(0.05), Written("5.00", " %"))),
        (fit._THRESHOLD, threshold("given"), Cell("5.00 % (given)", pytest.approx(0.05))),
        (fit._THRESHOLD, threshold("assumed"), Cell("5.00 % (assumed)", pytest.approx(0.05))),
        (study._OF, (44, 117), Cell("44 of 117", 44.0)),
        (study._OF, (0, 117), Cell("0 of 117", 0.0)),
        (study._OF, (0, 0), Cell("–")),
        (forecast._PROBABILITY, (0.97, 0.9, 0.992),
         Cell("97 % [90, 99.2]", 0.97, Written("97", " %", "90", "99.2"))),
        (forecast._PROBABILITY, (0.9999, 0.9999, 0.9999),
         Cell("99.9 %", 0.9999, Written("99.9", " %"))),
        (forecast._PROBABILITY, (math.nan, math.nan, math.nan), Cell("–")),
        (forecast._PROBABILITY, None, Cell("–")),
        (forecast._DROP, answer(5.0, 3.0, math.inf),
         Cell("5 [3, ∞]", 5.0, Written("5", "", "3", "∞"))),
        (forecast._DROP, answer(0.0, 0.0, 5.0), Cell("now [now, 5]", 0.0)),
        (forecast._DROP, answer(0.0, 0.0, 0.0), Cell("now", 0.0)),
        (forecast._DROP, answer(None, 5.0, None), Cell("later [5, later]")),
        (forecast._DROP, answer(math.inf, 5.0, math.inf), Cell("∞ [5, ∞]")),
        (forecast._DROP, answer(3.46, 2.0, None, unit="months"),
         Cell("3.5 months [2 months, later]", 3.46,
              Written("3.5", " months", "2 months", "later"))),
        (forecast._DROP, answer(4.5, 2.5, 10.5, unit="months", dates=DAYS),
         Cell("2026-03 [2026-01, 2026-09]", 4.5)),
        (forecast._DROP, Answer("steps", "releases", None, None, (None, None, None), "why"),
         Cell("cannot be determined")),
        (run._AROUND, (-0.124, 0.153), Cell("-12/+15 %", -0.124)),
        (run._CORRELATIONS, (np.float64(-0.05), 0.351), Cell("-0.05 … 0.35", -0.05)),
        (drivers._CLUSTERS, (7, "device"), Cell("7 device", 7.0, Written("7", " device"))),
        (model._FACTOR, {"calibrated": False}, Cell("–")),
        (model._FACTOR, {"calibrated": True, "factor_90": 1.234, "factor_90_by_mode": {}},
         Cell("1.2", 1.234, Written("1.2"))),
        (model._FACTOR,
         {"calibrated": True, "factor_90": 1.234, "factor_90_by_mode": {"training": 2.0}},
         Cell("1.2, training 2", 1.234)),
        (model._OF_FEATURE, (3.0, "log10 ms"), Cell("1e+03 ms", 1000.0, Written("1e+03", " ms"))),
        (model._OF_FEATURE, (0.25, "1"), Cell("0.25", 0.25, Written("0.25"))),
        (model._OF_FEATURE, (-0.25, "ln"), Cell("-0.25 ln", -0.25, Written("-0.25", " ln"))),
        (model._OF_FEATURE, (None, "1"), Cell("–")),
        (predictions._STEP, (2.5, True), Cell("+2.5", 2.5, Written("+2.5"))),
        (predictions._STEP, (-2.5, True), Cell("-2.5", -2.5, Written("-2.5"))),
        (predictions._STEP, (2.5, False), Cell("2.5", 2.5, Written("2.5"))),
        (replication._RECOMPUTED, recomputed(0.0587, "fraction"),
         Cell("5.87 %", 0.0587, Written("5.87", " %"))),
        (replication._RECOMPUTED, recomputed(57426.0, "cycles"),
         Cell("57426", 57426.0, Written("57426"))),
        (replication._RECOMPUTED, recomputed(0.1767, "s", 2),
         Cell("0.177 s", 0.1767, Written("0.177", " s"))),
        (replication._RECOMPUTED, recomputed((0.05, 0.1), "fraction"),
         Cell("5.00 % to 10.00 %", 0.05)),
        (replication._RECOMPUTED, recomputed(None, "text"), Cell("")),
    ],
)  # fmt: skip
def test_a_value_is_written_sorted_and_aligned(form: Form, value: Any, cell: Cell) -> None:
    assert form.right
    assert form.write(value) == cell


@pytest.mark.parametrize(
    ("printed", "cell"),
    [
        ("2.3%", Cell("2.3 %", 0.023, Written("2.3", " %"))),
        ("<5%", Cell("<5 %", 0.05)),
        ("5–10%", Cell("5–10 %", 0.05)),
    ],
)
def test_a_claim_is_sorted_by_its_own_number(printed: str, cell: Cell) -> None:
    verdict = Verdict("consistent", "", user_claim(printed))
    assert audit._CLAIM.write(verdict) == cell


def test_what_is_not_claimed_has_no_number() -> None:
    assert audit._CLAIM.write(Verdict("no claim", "")) == Cell("—")


def test_a_printed_cell_that_is_words_has_no_number() -> None:
    assert replication._number("5.87–27.1%") == 0.0587
    assert replication._number("Overstated 2–4×") is None


def test_rows_of_a_document_have_their_numbers_with_all_digits() -> None:
    rows = [
        {"x": 0.1234567, "n": 3, "yes": True, "name": "7 %"},
        {"x": -1e-07, "n": None, "yes": None, "name": None},
    ]
    (table,) = view_of_rows({"schema": "errcomp.claims/1", "rows": rows}, "f.json").tables
    assert [column.right for column in table.columns] == [True, True, True, False]
    assert [[column.cell(row) for column in table.columns] for row in table.rows] == [
        [
            Cell("0.1234567", 0.1234567, Written("0.1234567")),
            Cell("3", 3.0, Written("3")),
            Cell("True"),
            Cell("7 %"),
        ],
        [Cell("-1e-07", -1e-07, Written("-1e-07")), Cell("–"), Cell("–"), Cell("–")],
    ]


def texts_and_values(table: Table) -> list[list[tuple[str, float | None]]]:
    rows = [[column.cell(row) for column in table.columns if column.right] for row in table.rows]
    return [[(cell.text, cell.value) for cell in row] for row in rows]


def test_costs_of_launches_are_sorted_by_their_medians() -> None:
    cost = {"median_us": 2.44, "low_90_us": -1.0, "high_90_us": 7.16}
    other = {"median_us": -0.04, "low_90_us": -1.0, "high_90_us": 1.0}
    rows = [
        {"device": "A", "launches": "run_start", **cost},
        {"device": None, "launches": "run_start", **other},
    ]
    table = model._overhead({"overhead": rows})
    assert texts_and_values(table) == [[("2.4 [-1.0, 7.2]", 2.44)], [("-0.0 [-1.0, 1.0]", -0.04)]]
    assert [table.columns[1].cell(row).figure for row in table.rows] == [
        Written("2.4", "", "-1.0", "7.2"),
        None,  # a paper would lose the sign
    ]


def test_a_transfer_is_told_in_points_with_the_sign_of_each_end() -> None:
    cost = SimpleNamespace(difference=Estimate("mape", 0.0312, low=-0.0051, high=0.07))
    one = SimpleNamespace(
        estimator="sum", vendor="V", n_unseen=3, unseen=0.2, seen=0.15, gap=0.0504, cost=cost
    )
    table = evaluation._transfer(SimpleNamespace(transfer=[one]))  # type: ignore[arg-type]
    assert texts_and_values(table) == [
        [("20.00 %", 0.2), ("15.00 %", 0.15), ("+5.0", 0.0504), ("+3.1 [-0.5, +7.0]", 0.0312)]
    ]


def test_what_leads_to_a_run_has_signs_between_the_ends() -> None:
    found = SimpleNamespace(
        total=[10.0], predicted=[9.5], parts={"launches": [1.5], "shared_work": [-2.0]}
    )
    table = predictions._parts(found, " ms")  # type: ignore[arg-type]
    assert [[column.cell(row).text for column in table.columns] for row in table.rows] == [
        ["sum of kernels", "10", "100.0 %"],
        ["launches", "+1.5", "15.00 %"],
        ["shared work", "-2", "-20.00 %"],
        ["predicted", "9.5", "95.00 %"],
    ]


def test_bands_around_the_first_median_are_changes_of_it() -> None:
    def outcome(name: str, low: float, high: float, median: float | None) -> SimpleNamespace:
        band = SimpleNamespace(level=0.9, low=low, high=high)
        return SimpleNamespace(
            run="r", assumption=name, prediction=50.0, median=median, measured=None, caveats=(),
            bands=(band,), band=lambda level: band,
        )  # fmt: skip

    for median, shown in ((100.0, ("-20/+10 %", -0.2)), (None, ("+60/+120 %", 0.6))):
        outcomes = [outcome("a", 90.0, 120.0, median), outcome("b", 80.0, 110.0, 95.0)]
        found = SimpleNamespace(assumptions=("a", "b"), outcomes=outcomes, unit=None, caveats=())
        found.of = lambda first=outcomes[0]: first
        (cells,) = texts_and_values(run._runs(found, "T"))  # type: ignore[arg-type]
        assert cells[2] == ("90 … 120", 90.0)
        assert cells[3] == (shown[0], pytest.approx(shown[1]))
