from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from errcomp import metrics
from errcomp.errors import InputError
from errcomp.metrics._registry import FigureKind, FigureUnit


def test_every_scalar_figure_is_registered() -> None:
    assert set(metrics.FIGURES) == {
        *("mape", "median_ape", "gmape", "gm_ratio", "wape", "bias", "total_error", "smape"),
        *("mae", "rmse", "rmspe", "rmsle", "max_ape", "p90_ape", "p95_ape", "p99_ape"),
        *("median_ape_approx", "p90_ape_approx", "p95_ape_approx", "p99_ape_approx"),
        *("within_5", "within_10", "within_20"),
        *("r2", "pearson", "spearman", "kendall", "top_1_regret"),
    }


@pytest.mark.parametrize("figure", metrics.FIGURES.values(), ids=lambda f: f.name)
def test_a_figure_says_what_it_is(figure: metrics.Figure) -> None:
    assert metrics.FIGURES[figure.name] is metrics.figure(figure.name) is figure
    assert figure.unit in get_args(FigureUnit)
    assert figure.kind in get_args(FigureKind)
    for sentence in (figure.definition, figure.misleads):
        assert sentence[0].isupper()
        assert sentence.endswith((".", ")."))
        assert "  " not in sentence
    value = figure.function(predicted=[1.0, 2.5, 3.5], measured=[1.0, 2.0, 4.0])
    assert isinstance(value, float)


def test_labels_are_distinct() -> None:
    labels = [figure.label for figure in metrics.FIGURES.values()]
    assert len(set(labels)) == len(labels)
    assert metrics.figure("mape").label == "MAPE"
    assert metrics.figure("gmape").label == "GMAPE"
    assert metrics.figure("p95_ape").label == "P95 APE"


@pytest.mark.parametrize(("percent", "expected"), [(5, 0.25), (10, 0.5), (20, 0.75)])
def test_ready_shares(percent: int, expected: float) -> None:
    pairs = {"predicted": [1.05, 1.1, 0.8, 1.3], "measured": [1.0] * 4}
    assert metrics.figure(f"within_{percent}").function(**pairs) == expected


@pytest.mark.parametrize("percent", [90, 95, 99])
def test_ready_percentiles(percent: int) -> None:
    pairs = {"predicted": [1 + i / 100 for i in range(101)], "measured": [1.0] * 101}
    value = metrics.figure(f"p{percent}_ape").function(**pairs)
    assert value == pytest.approx(percent / 100, rel=1e-14)


def test_top_1_regret_is_that_of_the_lowest_prediction() -> None:
    figure = metrics.figure("top_1_regret")
    assert figure.function(predicted=[1.0, 2.0], measured=[15.0, 10.0]) == 0.5


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("MAPE", "mape"), ("median-APE", "median_ape"), ("rmsel", "rmsle"), ("kendal", "kendall")],
)
def test_unknown_name_suggests_the_closest(wrong: str, right: str) -> None:
    with pytest.raises(
        InputError, match=f"no metric '{wrong}'. Did you mean '{right}'. .*Metrics: mape, "
    ):
        metrics.figure(wrong)


def test_name_like_no_other_gets_no_suggestion() -> None:
    with pytest.raises(InputError, match=r"^no metric 'zzz'\. Metrics: mape, .*top_1_regret$"):
        metrics.figure("zzz")


def test_a_figure_cannot_be_changed() -> None:
    figure: Any = metrics.figure("mape")
    with pytest.raises(dataclasses.FrozenInstanceError):
        figure.unit = "ratio"


@pytest.mark.core
def test_public_names_exist_and_importing_them_loads_only_numpy() -> None:
    assert all(hasattr(metrics, name) for name in metrics.__all__)
    heavy = ("scipy", "polars", "pandas", "narwhals", "statsmodels")
    code = f"import sys, errcomp.metrics; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


DUMMY = '''
"""Errors as points."""

from errcomp.metrics.pointwise import checked, mean, relative_error
from errcomp.metrics._registry import Means, declare


def _too_high(data):
    return abs(relative_error(data))


@declare(
    "error_points",
    "points",
    unit="fraction",
    kind="mean",
    order=15,
    definition="Mean of the absolute error of each pair, as a share of its measurement.",
    misleads="Is the MAPE by another name.",
    means=Means(_too_high, ("ape",)),
)
def error_points(*, predicted, measured, zeros="raise"):
    """Mean absolute percentage error."""
    data = checked(predicted, measured, None, zeros)
    return mean(_too_high(data), data.weights)
'''
USED = """
import json
import polars as pl
from errcomp import summarize
from errcomp.cli import main
from errcomp.metrics import FIGURES
columns = {"predicted": [11.0, 19.0, 36.0, 43.0, 40.0], "measured": [10.0, 20.0, 30.0, 40.0, 50.0]}
figures = ["mape", "error_points"]
rows = [summarize(t, figures=figures).pooled for t in (columns, pl.LazyFrame(columns))]
print(json.dumps({"names": list(FIGURES), "rows": [row.to_dict() for row in rows]}))
for command in (
    "metrics table.csv --figures error_points --json",
    "metrics table.csv --figures mape,error_points",
    "metrics list",
):
    print("-- next")
    assert main(command.split()) == 0
"""


@pytest.mark.core
def test_a_figure_is_added_by_one_file(run_with_file: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("predicted,measured\n11,10\n18,20\n", encoding="utf-8")
    told = run_with_file("metrics/points.py", DUMMY, "-c", USED)
    used, document, shown, listed = told.split("-- next\n")
    found = json.loads(used)
    assert found["names"][:3] == ["mape", "error_points", "median_ape"]
    for row in found["rows"]:  # in memory and from sums in an engine
        assert row["error_points"] == pytest.approx(row["mape"])
        assert row["mape_low"] is not None
        # An interval is only offered where its coverage was simulated.
        assert row["error_points_low"] is None
    assert json.loads(document)["rows"][0]["error_points"] == pytest.approx(0.1)
    assert "MAPE   Points" in shown
    assert "Is the MAPE by another name." in " ".join(listed.split())
