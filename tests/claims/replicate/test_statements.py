"""What the text states: each verdict, and that other tables or pairs would change it."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from scipy import stats

from errcomp import datasets
from errcomp.claims import replicate_survey
from errcomp.claims.replicate import STATUSES, _packaged
from errcomp.claims.replicate.statements import _NO_DATA, _RULES

R, A, N, D = STATUSES


@pytest.fixture(scope="module")
def found():
    return {cell.row: cell for cell in replicate_survey().tables()["statements"]}


@pytest.fixture(autouse=True)
def no_search(monkeypatch):
    """Leave out the search for the published figures, which takes a second or two."""
    monkeypatch.setattr("errcomp.claims.replicate.neusight._search", lambda source: None)
    # A result without the search must not be kept for other tests.
    monkeypatch.setattr("errcomp.claims.replicate._packaged", _packaged.__wrapped__)


@pytest.fixture(scope="module")
def errors():
    """The APE of each configuration of NeuSight by its keys."""
    frame = datasets.load("neusight").where({"tool": "neusight"})
    names = ("device", "model", "mode", "seq_len", "batch", "variant", "vendor")
    rows = zip(*(frame.column(name).tolist() for name in names), strict=True)
    ape = np.abs(frame.predicted - frame.measured) / frame.measured
    return dict(zip(rows, ape.tolist(), strict=True))


def _again(table, row, column, **values):
    """Recompute the statements with one printed cell changed."""
    tables = datasets.tables("survey")
    hit = (pl.col("row") == row) & (pl.col("column") == column)
    assert tables[table].filter(hit).height == 1
    changed = [
        pl.when(hit).then(pl.lit(v)).otherwise(pl.col(k)).alias(k) for k, v in values.items()
    ]
    tables = {**tables, table: tables[table].with_columns(changed)}
    cells = replicate_survey(printed=tables).tables()["statements"]
    return {cell.row: cell for cell in cells}


def test_every_statement_has_a_rule_or_a_reason(found):
    assert set(found) == {*_RULES, *_NO_DATA}
    assert not {*_RULES} & {*_NO_DATA}
    assert {row for row, cell in found.items() if cell.status == D} == {*_NO_DATA}


@pytest.mark.parametrize(
    ("row", "status", "recomputed"),
    [
        ("tools surveyed", R, 25),
        ("tools surveyed, first edition", R, 22),
        ("types of models for GPUs", N, 4),
        ("research gaps", N, 12),
        ("least studied platform", N, 3),
        ("tools that validate only on CNNs, %", R, 9 / 14),
        ("categories of the suite", N, 10),
        ("tools evaluated for each type of model", N, 3),
        ("tools with a container, quick and repeatable", R, 2),
        ("NVIDIA GPUs of NeuSight", A, 7),
        ("GPUs of ASTRA-sim's runs", N, (4, 8)),
        ("error on T4 and P4 over the claim, at most", A, 8.74 / 2.3),
        ("error outside the training distribution, times", N, (18.51 / 5.87, 27.1 / 5.87)),
        ("communication from 4 to 8 GPUs", N, 2.27 / 1.17),
        ("communication overhead", R, 6),
        ("inference scenarios that VIDUR covers", A, 6),
        ("nn-Meter's claim among all tools", N, 2),
        ("tools that cover T4, I5 or D1", N, 1),
        ("scenarios that ASTRA-sim leaves open, %", R, 0.75),
        ("scenarios that two tools predict", N, 4),
        ("categories without full support", N, 4),
        ("ranking by reliability", N, 8),
        ("composition error", N, 0.05 - 0.09),
        ("kernel-level error, first edition", R, (0.02, 0.09)),
        ("relative error of a model", N, 0.1),
        ("GPUs of the worked example", R, 64),
    ],
)
def test_verdicts(found, row, status, recomputed):
    cell = found[row]
    assert cell.status == status, cell.describe()
    assert cell.recomputed == pytest.approx(recomputed, abs=1e-12, rel=1e-12)


def _counterparts(errors, change):
    return [errors[other] / ape for key, ape in errors.items() if (other := change(key)) in errors]


def test_batch_sizes_that_double_the_error_by_hand(found, errors):
    ratios = _counterparts(errors, lambda k: (*k[:4], 2 * k[4], *k[5:]))
    cell = found["error after doubling the batch size"]
    assert cell.recomputed == pytest.approx(np.mean([r >= 2 for r in ratios]))
    assert (cell.status, len(ratios)) == (N, 32)
    assert f"In {sum(r < 1 for r in ratios)} cases the APE becomes smaller" in cell.note


def test_fused_configurations_by_hand(found, errors):
    ratios = _counterparts(errors, lambda k: (*k[:5], "fusion", k[6]) if k[5] == "base" else None)
    cell = found["error of fused kernels"]
    assert (cell.status, cell.recomputed) == (R, np.mean([ratio > 1 for ratio in ratios]))


def test_modes_of_each_device_by_hand(found, errors):
    by = defaultdict(list)
    for key, ape in errors.items():
        by[key[0], key[2]].append(ape)
    devices = [d for d, mode in by if mode == "training" and (d, "inference") in by]
    better = [d for d in devices if np.mean(by[d, "inference"]) < np.mean(by[d, "training"])]
    cell = found["inference against training"]
    assert (cell.status, cell.recomputed) == (N, len(better))
    assert f"devices, of {len(devices)} with both modes, whose" in cell.rule
    assert "H100 inference 8.74 %, training 6.60 %" in cell.note
    assert found["training error on AMD devices"].recomputed == 3
    assert {"MI100", "MI210", "MI250"} <= {*better}


def test_the_spread_of_the_mixture_of_experts_by_hand(found):
    pairs = datasets.load("neusight").where({"tool": "neusight", "variant": "base"})
    logs = np.log(pairs.predicted / pairs.measured)
    moe = pairs.column("model") == "switchxl4"
    cell = found["prediction variance of MoE models"]
    assert cell.recomputed == pytest.approx(logs[moe].std(ddof=1) / logs[~moe].std(ddof=1))
    assert cell.status == N
    assert "One model, with 10 configurations" in cell.note


def test_the_rank_correlation_is_that_of_scipy(found):
    reliability = [5, 4, 1.5, 3, 1.5]  # nn-Meter, NeuSight, VIDUR, Timeloop, ASTRA-sim
    cell = found["claimed accuracy and reliability"]
    assert cell.recomputed == pytest.approx(stats.spearmanr(range(5), reliability).statistic)
    every = [
        stats.spearmanr(range(5), order).statistic for order in itertools.permutations(reliability)
    ]
    share = np.mean(np.abs(every) >= abs(cell.recomputed) - 1e-9)
    assert f"in {100 * share:.0f} % of all orders" in cell.note
    assert cell.status == R


def test_a_lowest_error_elsewhere_is_found():
    cell = _again("statements", "device with the lowest error", "stated", printed="H100")
    assert cell["device with the lowest error"].status == N


@pytest.mark.parametrize(
    ("table", "row", "column", "values", "statement", "status"),
    [
        ("table1_taxonomy", "trace-driven", "GPU", 1, "types of models for GPUs", R),
        ("table1_taxonomy", "trace-driven", "GPU", 1, "platforms of trace-driven methods", N),
        ("table1_taxonomy", "hybrid", "edge", 1, "hybrid tools for edge devices", N),
        ("table1_taxonomy", "hybrid", "edge", 1, "least studied platform", R),
        ("table3_suite", "T1", "scenarios", 5, "scenarios of the suite", N),
        ("table7_astrasim", "communication scaling 4 to 8 GPUs", "ratio", 1.17,
         "communication from 4 to 8 GPUs", R),
        ("text_neusight", "composition error, low", "value", 10, "composition error", R),
        ("error_by_level", "kernel", "low", 1, "kernel-level error, first edition", N),
    ],
)  # fmt: skip
def test_another_figure_changes_the_verdict(table, row, column, values, statement, status):
    cells = _again(table, row, column, printed=str(values), value=float(values))
    assert cells[statement].status == status, cells[statement].describe()


@pytest.mark.parametrize(
    ("table", "row", "column", "printed", "statement", "status"),
    [
        ("table9_coverage", "T4", "astrasim", "—", "tools that cover T4, I5 or D1", R),
        ("statements", "categories without full support", "stated", "T4, I4, I5, D1",
         "categories without full support", R),
        ("table11_12_deployment", "Timeloop", "deterministic", "no",
         "tools with identical output in three runs", N),
        ("table11_12_deployment", "VIDUR", "docker", "no",
         "tools with a container, quick and repeatable", N),
        ("statements", "GPUs of the worked example", "stated", "8 × 4 × 3 = 64",
         "GPUs of the worked example", N),
        ("statements", "communication overhead at 8 GPUs", "stated", "below 0.31%",
         "communication overhead at 8 GPUs", R),
        ("statements", "GPUs of ASTRA-sim's runs", "stated", "4–8", "GPUs of ASTRA-sim's runs", R),
        ("statements", "error outside the training distribution, times", "stated", "3–5",
         "error outside the training distribution, times", R),
    ],
)  # fmt: skip
def test_another_word_changes_the_verdict(table, row, column, printed, statement, status):
    cells = _again(table, row, column, printed=printed)
    assert cells[statement].status == status, cells[statement].describe()


def test_table_1_counts_rows_of_table_2():
    cells = {(c.row, c.column): c for c in replicate_survey().tables()["table1_taxonomy"]}
    assert cells["analytical", "GPU"].status == A
    assert (
        cells["analytical", "distributed"].status,
        cells["analytical", "distributed"].recomputed,
    ) == (N, 1)
    assert "Table 1 add up to 30, but Table 2 lists 25 tools" in cells["hybrid", "GPU"].note
    assert {cells[method, "CPU"].status for method in ("cycle-accurate", "ML-augmented")} == {A}
    assert "(gem5)" in cells["cycle-accurate", "CPU"].rule
