from __future__ import annotations

import dataclasses
import subprocess
import sys
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
        InputError, match=f"no figure '{wrong}'. Did you mean '{right}'. .*Figures: mape, "
    ):
        metrics.figure(wrong)


def test_name_like_no_other_gets_no_suggestion() -> None:
    with pytest.raises(InputError, match=r"^no figure 'zzz'\. Figures: mape, .*top_1_regret$"):
        metrics.figure("zzz")


def test_a_figure_cannot_be_changed() -> None:
    figure: Any = metrics.figure("mape")
    with pytest.raises(dataclasses.FrozenInstanceError):
        figure.unit = "ratio"


def test_public_names_exist_and_importing_them_loads_only_numpy() -> None:
    assert all(hasattr(metrics, name) for name in metrics.__all__)
    heavy = ("scipy", "polars", "pandas", "narwhals", "statsmodels")
    code = f"import sys, errcomp.metrics; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
