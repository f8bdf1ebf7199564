"""From a table of kernels to the time of each run: sums by hand, graphs, caveats, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp import Kernels
from errcomp.errors import InputError
from errcomp.propagation import (
    ClassError,
    ErrorModel,
    correlation,
    fit_errors,
    given_errors,
    propagate,
)
from errcomp.propagation.graph import (
    Constant,
    Dag,
    Kernel,
    Overlap,
    Parallel,
    Quantity,
    Queue,
    Repeat,
    Serial,
)
from errcomp.propagation.propagating import LEVELS_SHOWN

MODEL = ErrorModel({"gemm": ClassError(0.0, 0.1), "soft": ClassError(0.1, 0.4)}, kind="relative")


def table(**columns):
    data = {
        "kernel": ["g", "s"],
        "kernel_class": ["gemm", "soft"],
        "count": [4, 9],
        "predicted": [10.0, 2.0],
    } | columns
    return Kernels({name: v for name, v in data.items() if v is not None}, unit="ms")


def measured_runs(n=6, seed=1):
    """Runs of a table on as many devices, measured."""
    rng = np.random.default_rng(seed)
    p = np.tile([10.0, 2.0], n) * np.repeat(rng.uniform(1, 3, n), 2)
    return Kernels(
        {
            "run": np.repeat([f"r{i}" for i in range(n)], 2),
            "device": np.repeat([f"d{i}" for i in range(n)], 2),
            "kernel": ["g", "s"] * n,
            "kernel_class": ["gemm", "soft"] * n,
            "count": [4, 9] * n,
            "predicted": p,
            "measured": p * np.exp(0.1 * rng.standard_normal(2 * n)),
        },
        unit="ms",
    )


def codes(caveats):
    return [caveat.code for caveat in caveats]


# --- sums by hand ---
# One gemm: 10 ± 1; one soft: 2 (1 + 0.1) ± 0.8. All: 40 + 19.8 = 59.8; 4 · 1 and 9 · 0.8 if alike.

A, B = 4.0, 7.2
SD = {
    "independent": math.sqrt(4 * 1.0 + 9 * 0.64),
    "repeats": math.hypot(A, B),
    "classes": math.hypot(A, B),
    "devices": A + B,
    "comonotonic": A + B,
}


@pytest.mark.parametrize(("assumption", "sd"), SD.items())
def test_a_sum_under_each_assumption(assumption, sd):
    outcome = propagate(table(), errors=MODEL, correlation=assumption).of()
    assert outcome.prediction == 58.0
    assert outcome.mean == pytest.approx(59.8)
    assert outcome.sd == pytest.approx(sd)
    assert outcome.bias == pytest.approx(1.8 / 58)
    assert outcome.relative_sd == pytest.approx(sd / 59.8)
    assert outcome.kernel_sd == pytest.approx((A + B) / 59.8)
    assert outcome.growth == pytest.approx(sd / (A + B))
    assert outcome.effective_number == pytest.approx(((A + B) / sd) ** 2)
    assert outcome.median == pytest.approx(59.8)
    assert outcome.band(0.9).high == pytest.approx(59.8 + 1.6448536 * sd)


@pytest.mark.parametrize("rho", [-1.0, -0.3, 0.0, 0.7, 1.0])
def test_a_matrix_by_hand(rho):
    wanted = correlation("matrix", matrix=np.array([[1, rho], [rho, 1]]))
    outcome = propagate(table(), errors=MODEL, correlation=wanted).of()
    assert outcome.sd == pytest.approx(math.sqrt(A**2 + B**2 + 2 * rho * A * B))
    assert outcome.assumption == "matrix"


def test_a_correlation_within_classes_by_hand():
    outcome = propagate(table(), errors=MODEL, correlation=correlation("classes", 0.25)).of()
    assert outcome.sd == pytest.approx(math.sqrt(0.25 * (A**2 + B**2) + 0.75 * (4 + 9 * 0.64)))


def test_absolute_errors_by_hand():
    model = ErrorModel(
        {"gemm": ClassError(0.5, 1.0), "soft": ClassError(0.0, 0.8)}, kind="absolute"
    )
    outcome = propagate(table(), errors=model, correlation="repeats").of()
    assert (outcome.mean, outcome.sd) == pytest.approx((60.0, math.hypot(A, B)))


def test_log_ratio_errors_by_hand():
    model = given_errors(0.2, 0.05)
    outcome = propagate(table(), errors=model, correlation="comonotonic").of()
    mean = 58 * math.exp(0.05 + 0.02)
    assert outcome.mean == pytest.approx(mean)
    assert outcome.sd == pytest.approx(mean * math.sqrt(math.expm1(0.04)))
    assert outcome.median == pytest.approx(58 * math.exp(0.05))
    assert outcome.growth == pytest.approx(1.0)


def test_the_budget_by_hand():
    outcome = propagate(table(), errors=MODEL, correlation="repeats").of()
    rows = {row["name"]: row for row in outcome.by_class.to_dict()["rows"]}
    assert rows["soft"]["share_of_time"] == pytest.approx(19.8 / 59.8)
    assert rows["soft"]["first_order"] == pytest.approx(B**2 / (A**2 + B**2))
    assert [str(name) for name in outcome.by_kernel.names] == ["run/s", "run/g"]


def test_bounds_hold_whatever_is_assumed():
    found = propagate(table(), errors=MODEL, correlation=["unknown", *SD])
    bounds = found.of(assumption="unknown")
    for level in LEVELS_SHOWN:
        for name in SD:
            assert bounds.band(level).low <= found.of(assumption=name).band(level).low
            assert found.of(assumption=name).band(level).high <= bounds.band(level).high
    assert (bounds.mean, bounds.sd, bounds.growth, bounds.by_class) == (None,) * 4
    assert bounds.kernel_sd == found.of(assumption="devices").kernel_sd


def test_no_spread_is_no_error():
    outcome = propagate(table(), errors=given_errors(0.0), correlation="independent").of()
    assert (outcome.mean, outcome.sd, outcome.growth) == (58.0, 0.0, None)
    assert outcome.by_class is outcome.effective_number is None
    assert outcome.band(0.95).low == outcome.band(0.95).high == pytest.approx(58.0)


# --- runs and assumptions ---


def test_each_run_is_propagated_for_itself():
    kernels = measured_runs(3)
    found = propagate(kernels, errors=MODEL, correlation="independent")
    assert found.runs == kernels.runs
    for run in kernels.runs:
        alone = propagate(kernels.take(kernels.run == run), errors=MODEL, correlation="independent")
        assert alone.of().sd == found.of(run).sd


def test_runs_keep_their_order_even_where_rows_are_mixed():
    kernels = table(run=["b", "a"])
    assert propagate(kernels, errors=MODEL, correlation="repeats").runs == ("b", "a")


def test_what_was_measured_goes_with_the_run_and_changes_no_band():
    kernels = table(measured=[11.0, 3.0])
    known = propagate(kernels, errors=MODEL, correlation="repeats").of()
    blind = propagate(table(), errors=MODEL, correlation="repeats").of()
    assert known.measured == pytest.approx(71.0)
    assert blind.measured is None
    assert known.bands == blind.bands


def test_given_errors_are_taken_as_repeated_by_default():
    assert propagate(table(), errors=MODEL).assumptions == (
        "repeats", "independent", "comonotonic", "unknown",
    )  # fmt: skip


def test_fitted_errors_are_taken_as_estimated_by_default():
    kernels = measured_runs()
    found = propagate(table(), errors=fit_errors(kernels))
    assert found.assumptions == ("estimated", "independent", "comonotonic", "unknown")


def test_bounds_of_many_runs_are_not_computed_unless_asked_for():
    assert "unknown" not in propagate(measured_runs(2), errors=MODEL).assumptions


def test_estimated_lies_between_the_extremes():
    found = propagate(table(), errors=fit_errors(measured_runs(), level=None))
    sds = [found.of(assumption=a).sd for a in ("independent", "estimated", "comonotonic")]
    assert sds == sorted(sds)


def test_levels_in_increasing_order():
    found = propagate(table(), errors=MODEL, correlation="repeats", levels=(0.9, 0.5, 0.9, 0.99))
    assert [band.level for band in found.of().bands] == [0.5, 0.9, 0.99]


def test_progress_is_counted_by_outcome():
    seen = []
    propagate(
        measured_runs(2),
        errors=MODEL,
        correlation=["repeats", "independent"],
        progress=lambda done, of: seen.append((done, of)),
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


# --- graphs ---


def graph_outcome(graph, assumption="repeats", errors=MODEL, **options):
    return propagate(table(), errors=errors, correlation=assumption, graph=graph, **options).of()


def test_a_graph_that_is_the_sum_agrees_with_the_moments():
    graph = Serial([Kernel("g", 4), Repeat(Kernel("s"), 9)])
    for name in ("independent", "repeats", "comonotonic"):
        exact = propagate(table(), errors=MODEL, correlation=name).of()
        drawn = graph_outcome(graph, name)
        assert drawn.prediction == exact.prediction
        assert drawn.mean == pytest.approx(exact.mean, rel=0.005)
        assert drawn.sd == pytest.approx(exact.sd, rel=0.03)
        assert drawn.band(0.9).low == pytest.approx(exact.band(0.9).low, rel=0.01)
        assert drawn.kernel_sd == pytest.approx(exact.kernel_sd)
        assert drawn.by_class is drawn.effective_number is None


def test_the_count_of_the_table_does_not_matter_in_a_graph():
    assert graph_outcome(Kernel("g")).prediction == 10.0


def test_kernels_side_by_side_take_as_long_as_the_longer():
    model = given_errors(1.0, kind="absolute")
    outcome = propagate(
        table(predicted=[10.0, 10.0]), errors=model, correlation="independent",
        graph=Parallel([Kernel("g"), Kernel("s")]),
    ).of()  # fmt: skip
    # max(10 ± 1, 10 ± 1) in closed form.
    assert outcome.mean == pytest.approx(10 + 1 / math.sqrt(math.pi), abs=0.02)
    assert outcome.sd == pytest.approx(math.sqrt(1 - 1 / math.pi), abs=0.02)


def test_names_of_a_graph_may_be_those_with_the_run():
    assert graph_outcome(Kernel("run/g")).prediction == 10.0


def test_kernels_of_one_name_are_known_by_their_ids():
    kernels = table(kernel=["g", "g"])
    graph = Serial([Kernel("run/g"), Kernel("run/g#2")])
    found = propagate(kernels, errors=MODEL, correlation="repeats", graph=graph)
    assert found.of().prediction == 12.0


def test_each_run_goes_through_the_graph():
    found = propagate(
        measured_runs(2), errors=MODEL, correlation="repeats", graph=Kernel("g", 4), draws=512
    )
    assert found.of("r0").mean != found.of("r1").mean
    assert found.of("r0").measured is None


def test_quantities_of_the_graph_go_the_same_way_if_everything_does():
    graph = Serial([Kernel("g"), Quantity("wire", 10.0, 0.1, kind="relative")])
    together, apart = (graph_outcome(graph, name).sd for name in ("comonotonic", "independent"))
    assert together == pytest.approx(2.0, rel=0.02)
    assert apart == pytest.approx(math.sqrt(2), rel=0.02)


def test_kernels_that_the_graph_leaves_out_are_named():
    outcome = graph_outcome(Kernel("g"))
    assert codes(outcome.caveats) == ["not-in-graph"]
    assert "1 of 2 kernels: s" in outcome.caveats[0].message


def test_a_queue_that_may_be_saturated_is_a_result():
    outcome = graph_outcome(Queue(Kernel("g"), 0.09))
    # 10 ± 1 at 0.09 per ms: 1 is reached at 11.1.
    assert outcome.saturated == pytest.approx(0.133, abs=0.01)
    assert outcome.mean is outcome.sd is outcome.growth is None
    assert math.isfinite(outcome.median)
    assert math.isinf(outcome.band(0.9).high)


def test_a_saturated_queue_under_estimated_keeps_its_finite_half():
    model = fit_errors(measured_runs(), level=None)
    for rate in (0.08, 0.099, 0.2):
        outcome = graph_outcome(Queue(Kernel("g"), rate), "estimated", model, draws=4096)
        lows = [band.low for band in outcome.bands]
        assert not np.isnan(lows).any()
        assert all(low > 0 for low in lows)


def test_a_graph_without_error():
    errors = fit_errors(measured_runs())
    outcome = graph_outcome(Constant(3.0), "estimated", errors)
    assert (outcome.prediction, outcome.mean, outcome.sd) == (3.0, 3.0, 0.0)
    assert outcome.kernel_sd == 0.0
    nothing = graph_outcome(Constant(0.0), "estimated", errors)
    assert (nothing.mean, nothing.bias, nothing.relative_sd) == (0.0, None, None)


def test_events_of_a_dag_have_a_probability_to_be_critical():
    dag = Dag({"a": "g", "b": Kernel("s", 5), "end": 1.0}, edges=[("a", "end"), ("b", "end")])
    critical = graph_outcome(dag).critical
    assert set(critical) == {"a", "b", "end"}
    assert critical["end"] == 1.0
    # 10 ± 1 against 11 ± 4.
    assert critical["a"] == pytest.approx(0.40, abs=0.02)
    assert critical["a"] + critical["b"] == pytest.approx(1.0)


def test_growth_above_1_where_the_graph_amplifies():
    outcome = graph_outcome(Queue(Kernel("g"), 0.04))
    assert outcome.growth > 1.2


def test_bounds_of_a_graph_hold():
    graph = Overlap(Kernel("g", 4), Kernel("s", 9), 0.1)
    bounds = graph_outcome(graph, "unknown")
    assert bounds.method.startswith("bounds that hold if every kernel is within its own band")
    for name in ("independent", "comonotonic"):
        band = graph_outcome(graph, name).band(0.9)
        assert bounds.band(0.9).low < band.low < band.high < bounds.band(0.9).high


def test_the_same_seed_gives_the_same_draws():
    first, again, other = (
        graph_outcome(Parallel([Kernel("g"), Kernel("s", 5)]), seed=seed) for seed in (3, 3, 4)
    )
    assert first.bands == again.bands
    assert first.bands != other.bands


def test_drawing_until_quantiles_are_precise():
    rough = graph_outcome(Kernel("g", 4), draws=512)
    fine = graph_outcome(Kernel("g", 4), draws=512, precision=0.001)
    assert int(fine.method.split()[2]) > int(rough.method.split()[2])


# --- caveats ---


def test_errors_from_the_same_table_are_in_sample():
    found = propagate(measured_runs())
    assert codes(found.caveats) == ["in-sample"]
    assert "6 measured runs of this table" in found.caveats[0].message
    assert codes(propagate(table(), errors=fit_errors(measured_runs())).caveats) == []


def test_few_devices_are_said():
    found = propagate(table(), errors=fit_errors(measured_runs(3)), correlation="estimated")
    assert "few-clusters" in codes(found.caveats)
    alone = propagate(table(measured=[11.0, 2.0]), correlation="estimated")
    text = " ".join(caveat.message for caveat in alone.caveats)
    assert 'only 1 run: the bands under "estimated" are too narrow for other runs' in text
    assert "the 1 measured run of this table" in text


def test_classes_that_were_not_measured_are_named():
    new = table(kernel_class=["gemm", "new"])
    outcome = propagate(new, errors=fit_errors(measured_runs()), correlation="estimated").of()
    assert codes(outcome.caveats) == ["unknown-class"]
    assert "no error was measured for new (31.0 % of the predicted time)" in (
        outcome.caveats[0].message
    )


def test_one_given_error_for_all_classes_is_no_gap():
    assert propagate(table(), errors=given_errors(0.1), correlation="repeats").of().caveats == ()


def test_kernels_that_are_predicted_to_take_no_time_are_counted():
    outcome = propagate(
        table(predicted=[10.0, 0.0]), errors=MODEL, correlation=["repeats", "unknown"]
    )
    for assumption in ("repeats", "unknown"):
        assert codes(outcome.of(assumption=assumption).caveats) == ["not-modelled"]
        assert "9 kernels are predicted to take no time and counted as 0" in (
            outcome.of(assumption=assumption).caveats[0].message
        )


def test_kernels_whose_prediction_failed_are_counted():
    outcome = propagate(table(status=["ok", "failed"]), errors=MODEL, correlation="repeats").of()
    assert codes(outcome.caveats) == ["failed-kernels"]
    assert outcome.prediction == 40.0
    assert outcome.measured is None


def test_runs_that_failed_altogether_are_named():
    kernels = table(run=["a", "b"], status=["ok", "failed"])
    found = propagate(kernels, errors=MODEL, correlation="repeats")
    assert found.runs == ("a",)
    assert codes(found.caveats) == ["lost-runs"]
    assert "1 run has no predicted kernel (status) and is left out: b" in found.caveats[0].message


# --- bad input ---


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.5, math.nan, "0.9", True, None])
def test_levels_outside_0_to_1(level):
    with pytest.raises(InputError, match="a level must be a number between 0 and 1"):
        propagate(table(), errors=MODEL, levels=[0.5, level])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": []}, "levels is empty"),
        ({"correlation": []}, "no assumption about the correlation"),
        ({"correlation": ["repeats", "repeats"]}, "assumption 'repeats' is given twice"),
        ({"correlation": "alike"}, "assumption 'alike' is unknown"),
        ({"correlation": "estimated"}, "needs an error model fitted"),
        (
            {"correlation": correlation("matrix", matrix=np.eye(3))},
            "3 rows, but run 'run' has 2 ker",
        ),
        ({"errors": 0.1}, "errors must be an ErrorModel, got float"),
        ({"errors": ErrorModel({"gemm": ClassError(0, 0.1)})}, "no error for .*'soft'"),
        ({"errors": given_errors(60.0)}, "spread is so large that the variance overflows"),
        ({"graph": {"node": "kernel"}}, "graph must be a node .* got dict"),
        ({"graph": Kernel("nope")}, "no kernel or quantity is named 'nope'. Kernels: g, s"),
        ({"graph": Quantity("g", 1.0, kind="relative")}, "'g' is the name of both a quantity and"),
        ({"graph": Quantity("q", 1.0, 0.1)}, "has log-ratio errors, but the kernels have relative"),
        ({"graph": Kernel("g"), "draws": 3}, "draws must be a whole number of at least 512, got 3"),
        ({"graph": Kernel("g"), "seed": -1}, "seed must be a whole number"),
        ({"graph": Kernel("g"), "precision": 2}, "precision must be a fraction"),
    ],
)
def test_what_cannot_be_propagated(options, message):
    with pytest.raises(InputError, match=message):
        propagate(table(), **({"errors": MODEL} | options))


def test_something_else_than_kernels():
    with pytest.raises(InputError, match="expected a dataframe"):
        propagate([1.0, 2.0])


def test_a_table_that_was_not_measured_has_no_errors_of_its_own():
    with pytest.raises(InputError, match="no run has predictions and measurements"):
        propagate(table())


@pytest.mark.parametrize("kind", ["log-ratio", "relative", "absolute"])
def test_a_table_that_was_not_predicted(kind):
    kernels = table(predicted=None, measured=[1.0, 2.0])
    with pytest.raises(InputError, match="measured but not predicted, so .*errcomp join"):
        propagate(kernels, errors=given_errors(0.1, kind=kind), correlation="independent")


@pytest.mark.slow
@pytest.mark.extras
def test_processes_change_nothing():
    pytest.importorskip("joblib")
    graph = Dag({"a": "g", "b": "s", "c": "g"}, [("a", "b")])
    one, two = (
        propagate(
            measured_runs(2), errors=MODEL, correlation="repeats", graph=graph, draws=512,
            n_jobs=n_jobs,
        )
        for n_jobs in (None, 2)
    )  # fmt: skip
    assert one.of("r1").critical
    assert one.to_dict() == two.to_dict()
