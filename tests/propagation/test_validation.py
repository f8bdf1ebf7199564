"""Bands against measured totals: on the built-in operators, on tables that can be done by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from errcomp import Kernels, datasets
from errcomp.errors import InputError
from errcomp.propagation import correlation, fit_errors, given_errors, validate
from errcomp.propagation.validation import COMPARED, LEVELS_SHOWN

#: All but the bounds, which take most of the time.
WITHOUT_BOUNDS = tuple(name for name in COMPARED if name != "unknown")


# --- what is promised of the NeuSight operators ---


@pytest.fixture(scope="module")
def neusight():
    return validate(datasets.load("neusight-kernels"), correlation=WITHOUT_BOUNDS)


@pytest.fixture(scope="module")
def some():
    """Return the half of the runs that train, for what holds of any runs."""
    kernels = datasets.load("neusight-kernels").where({"mode": "training"})
    return kernels, validate(kernels, correlation=WITHOUT_BOUNDS)


def keeps_the_promise(found) -> None:
    """Check what is said of 87 runs on 8 devices, each device left out in turn."""
    nine, half = found.row("estimated", 0.9), found.row("estimated", 0.5)
    assert 0.87 <= nine.coverage <= 0.95
    assert 0.45 <= half.coverage <= 0.58
    assert (nine.n, nine.n_clusters) == (87, 8)
    # 8 devices do not say more than that.
    assert nine.coverage_low < 0.87
    assert nine.coverage_high > 0.93
    assert nine.mean_width < 0.6 * found.row("comonotonic", 0.9).mean_width
    assert 0.2 <= found.row("independent", 0.9).coverage <= 0.3


@pytest.mark.slow
def test_bands_hold_on_devices_that_had_no_part_in_them(neusight) -> None:
    keeps_the_promise(neusight)
    assert neusight.left_out == neusight.cluster == "device"
    assert neusight.total == "sum of the measured kernels"
    assert neusight.not_judged == ()


@pytest.mark.slow
def test_estimated_scores_better_than_either_extreme(neusight) -> None:
    for level in (0.9, 0.95):
        score = {name: neusight.row(name, level).interval_score for name in WITHOUT_BOUNDS}
        assert score["estimated"] < score["comonotonic"] < score["independent"]


def test_bands_widen_with_what_errors_share(some) -> None:
    _, found = some
    for level in LEVELS_SHOWN:
        widths = [
            found.row(name, level).mean_width
            for name in ("independent", "repeats", "classes", "comonotonic")
        ]
        assert widths == sorted(widths)


def test_there_is_a_row_for_each_assumption_and_level(some) -> None:
    _, found = some
    assert [(row.assumption, row.level) for row in found.rows] == [
        (name, level) for name in WITHOUT_BOUNDS for level in LEVELS_SHOWN
    ]


def test_each_model_was_fitted_without_the_device(some) -> None:
    kernels, found = some
    devices = set(kernels.device)
    runs = [kernels.n_runs - sum(kernels.per_run("device") == d) for d in devices]
    assert sorted(model.n_runs for model in found.models) == sorted(runs)
    assert {model.components.n_clusters for model in found.models} == {len(devices) - 1}


def test_where_totals_stand_agrees_with_the_coverage(some) -> None:
    kernels, found = some
    for name in WITHOUT_BOUNDS:
        stands = found.pit[name]
        assert len(stands) == len(found.runs) == kernels.n_runs
        for level in LEVELS_SHOWN:
            share = np.mean(np.abs(2 * stands - 1) <= level)
            assert share == pytest.approx(found.row(name, level).coverage)


@pytest.mark.slow
def test_leaving_out_models() -> None:
    kernels = datasets.load("neusight-kernels")
    found = validate(kernels, leave_out="model", correlation=["estimated", "comonotonic"])
    row = found.row("estimated", 0.9)
    assert (row.n, found.cluster) == (87, "model")
    assert row.n_clusters == len(set(kernels.column("model")))
    assert row.coverage > 0.8
    assert row.mean_width < found.row("comonotonic", 0.9).mean_width


@pytest.mark.slow
@pytest.mark.shared
def test_the_same_on_the_artifact(shared_data: Path) -> None:
    from errcomp.readers import kernels as reader

    found = validate(
        reader.read(shared_data / "neusight-artifact"),
        correlation=("estimated", "independent", "comonotonic"),
    )
    keeps_the_promise(found)
    # Some runs have no file of operators, or were fused into others.
    assert len(found.not_judged) > 10


# --- by hand ---


def table(**columns) -> Kernels:
    """Return three devices with one run each: measured 1.1, 1.0 and 1.3 of what is predicted."""
    data = {
        "run": ["a", "a", "b", "b", "c", "c"],
        "device": ["x", "x", "y", "y", "z", "z"],
        "kernel": ["k", "l"] * 3,
        "kernel_class": ["k", "l"] * 3,
        "count": [2, 1] * 3,
        "predicted": [1.0, 3.0, 2.0, 6.0, 4.0, 12.0],
        "measured": [1.1, 3.3, 2.0, 6.0, 5.2, 15.6],
    } | columns
    return Kernels({name: v for name, v in data.items() if v is not None})


def test_given_errors_by_hand() -> None:
    # Totals are 1.1, 1.0 and 1.3 of a prediction with sd 10 %: 1, 0 and 3 sd off.
    model = given_errors(0.1, kind="relative")
    found = validate(table(), errors=model, correlation=["comonotonic"], levels=[0.5, 0.9])
    half, nine = found.rows
    assert (half.coverage, nine.coverage) == pytest.approx((1 / 3, 2 / 3))
    assert nine.mean_width == pytest.approx(2 * 1.6448536 * 0.1)
    low, high = 1 - 0.16448536, 1 + 0.16448536
    missed = (1.3 - high) * 2 / 0.1
    expected = (3 * (high - low) + missed) / 3
    assert nine.interval_score == pytest.approx(expected)
    assert found.pit["comonotonic"].tolist() == pytest.approx([0.8413447, 0.5, 0.9986501])
    assert found.runs == ("a", "b", "c")
    assert (found.left_out, found.models) == ("", (model,))


def test_the_width_of_an_assumption_does_not_hang_on_the_others() -> None:
    model = given_errors(0.3)
    alone = validate(table(), errors=model, correlation="independent", levels=[0.9])
    beside = validate(
        table(), errors=model, correlation=["comonotonic", "independent"], levels=[0.9]
    )
    assert alone.rows[0] == beside.rows[1]


def test_bounds_alone() -> None:
    found = validate(table(), errors=given_errors(0.1, kind="relative"), correlation=["unknown"])
    assert found.pit == {}
    row = found.row("unknown", 0.9)
    comonotonic = validate(
        table(), errors=given_errors(0.1, kind="relative"), correlation="comonotonic"
    )
    assert row.mean_width > comonotonic.row("comonotonic", 0.9).mean_width


def test_a_perfect_predictor_is_inside_bands_without_width() -> None:
    kernels = table(measured=[1.0, 3.0, 2.0, 6.0, 4.0, 12.0])
    for kind in ("log-ratio", "relative", "absolute"):
        found = validate(kernels, kind=kind, correlation=WITHOUT_BOUNDS)
        assert {row.coverage for row in found.rows} == {1.0}
        assert max(row.mean_width for row in found.rows) < 1e-6


def test_what_is_left_out_has_no_part_in_the_bands() -> None:
    # Whatever z measured, it is judged by x and y; they are judged by z among others.
    found = [
        validate(table(measured=[1.1, 3.3, 2.0, 6.0, z, 3 * z]), correlation=["estimated"])
        for z in (5.2, 400.0)
    ]
    judged = [f.pit["estimated"][2] for f in found]
    assert judged[1] > judged[0]
    (x, _, z), (other_x, _, other_z) = ([m.classes["k"].spread for m in f.models] for f in found)
    assert other_z == z
    assert other_x > 2 * x


@pytest.mark.parametrize("kind", ["log-ratio", "relative", "absolute"])
def test_kinds(kind) -> None:
    found = validate(table(), kind=kind, correlation=["estimated"])
    assert {model.kind for model in found.models} == {kind}


def test_a_correlation_that_is_set() -> None:
    half = correlation("classes", 0.5)
    found = validate(table(), errors=given_errors(0.1), correlation=[half, "comonotonic"])
    assert list(found.pit) == ["classes", "comonotonic"]
    full = validate(table(), errors=given_errors(0.1), correlation=["classes"])
    assert found.row("classes", 0.9).mean_width < full.row("classes", 0.9).mean_width


def test_given_errors_are_not_compared_as_estimated() -> None:
    found = validate(table(), errors=given_errors(0.1), levels=[0.9])
    assert [row.assumption for row in found.rows] == list(COMPARED[1:])


def test_errors_from_elsewhere() -> None:
    model = fit_errors(table())
    found = validate(table(), errors=model, correlation=["estimated"], leave_out="run")
    assert (found.left_out, found.cluster, found.rows[0].n_clusters) == ("", "run", 3)


def test_runs_without_a_measured_total_are_not_judged() -> None:
    kernels = table(measured=[1.1, None, 2.0, 6.0, 5.2, 15.6])
    found = validate(kernels, errors=given_errors(0.1), correlation=["independent"])
    assert (found.runs, found.not_judged) == (("b", "c"), ("a",))
    failed = table(status=["ok", "ok", "ok", "failed", "ok", "ok"])
    found = validate(failed, errors=given_errors(0.1), correlation=["independent"])
    assert (found.runs, found.not_judged) == (("a", "c"), ("b",))


def test_end_to_end_where_no_kernel_was_measured() -> None:
    kernels = table(measured=None, run_measured=[5.5, 5.5, 10.0, 10.0, 26.0, 26.0])
    model = given_errors(0.1, kind="relative")
    found = validate(kernels, errors=model, correlation=["comonotonic"])
    assert found.total == "measured end to end"
    assert found.row("comonotonic", 0.9).coverage == pytest.approx(2 / 3)


def test_progress_is_counted_by_total() -> None:
    seen: list[tuple[int, int]] = []
    step: Callable[[int, int], None] = lambda done, of: seen.append((done, of))  # noqa: E731
    validate(table(), errors=given_errors(0.1), correlation="independent", progress=step)
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_as_plain_values() -> None:
    found = validate(table(), errors=given_errors(0.1), correlation=["independent", "unknown"])
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["rows"][0].keys() == {
        "assumption", "level", "coverage", "coverage_low", "coverage_high", "n", "n_clusters",
        "mean_width", "interval_score",
    }  # fmt: skip
    assert list(plain["pit"]) == ["independent"]
    assert plain["runs"] == ["a", "b", "c"]
    assert (plain["cluster"], plain["not_judged"]) == ("device", [])


# --- bad input ---


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.5, math.nan, "0.9"])
def test_levels_outside_0_to_1(level) -> None:
    with pytest.raises(InputError, match="a level must be a number between 0 and 1"):
        validate(table(), levels=[0.5, level])


@pytest.mark.parametrize(
    ("kernels", "options", "message"),
    [
        (table(), {"levels": []}, "levels is empty"),
        (table(), {"correlation": []}, "no assumption about the correlation"),
        (table(), {"correlation": ["repeats", "repeats"]}, "assumption 'repeats' is given twice"),
        (table(), {"correlation": "alike"}, "assumption 'alike' is unknown"),
        (table(), {"correlation": ["matrix"]}, "needs a matrix"),
        (table(), {"leave_out": "colour"}, "no column 'colour'"),
        (table(), {"leave_out": "kernel"}, "kernel differs within run 'a'"),
        (
            table(device=["x"] * 6),
            {},
            "all measured runs have the same device, 'x'.*--train and --test",
        ),
        (table(device=None), {}, "all measured runs lack a device, so holding it out leaves"),
        (table(measured=None), {}, "no run has both a prediction and a measured total"),
        (table(predicted=None), {}, "no run has both a prediction and a measured total"),
        (table(), {"kind": "percent"}, "kind must be one of"),
        (
            table(),
            {"errors": given_errors(0.1), "correlation": ["estimated"]},
            "needs an error model fitted",
        ),
    ],
)
def test_what_cannot_be_validated(kernels, options, message) -> None:
    with pytest.raises(InputError, match=message):
        validate(kernels, **options)


def test_a_row_that_is_not_there() -> None:
    found = validate(table(), errors=given_errors(0.1), correlation="independent")
    with pytest.raises(InputError, match=r"no row for assumption 'independent' at level 0\.99"):
        found.row("independent", 0.99)


def test_something_else_than_kernels() -> None:
    with pytest.raises(InputError, match="expected a dataframe"):
        validate("kernels.csv")
