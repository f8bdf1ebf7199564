"""Fitted errors: examples by hand, small tables, and what must not change them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp import Kernels
from errcomp.errors import InputError
from errcomp.propagation import correlation, fit_errors
from errcomp.propagation.errors.fitting import huber, locate
from errcomp.propagation.errors.residuals import NOT_MODELLED, residuals
from errcomp.propagation.sums import total_moments


def on_devices(ratios, **columns):
    """One kernel of one class, predicted 1, on each of several devices."""
    n = len(ratios)
    data = {
        "run": [f"r{i}" for i in range(n)],
        "device": [f"d{i}" for i in range(n)],
        "kernel": ["k"] * n,
        "kernel_class": ["c"] * n,
        "predicted": np.ones(n),
    } | columns
    return Kernels(data | {"measured": np.asarray(ratios) * np.asarray(data["predicted"])})


def simulated(rng, *, devices=12, runs=4, kernels=10, exponent=0.0, classes=2):
    """Independent log errors of spread 0.2 (size 1) times a power of the predicted time."""
    n = devices * runs * kernels
    d, r, k = (
        i.ravel() for i in np.meshgrid(*map(np.arange, (devices, runs, kernels)), indexing="ij")
    )
    p = np.exp(rng.uniform(-2, 2, n))
    e = 0.2 * p**-exponent * rng.standard_normal(n)
    return {
        "run": np.char.add(np.char.add(d.astype(str), "/"), r.astype(str)),
        "device": d.astype(str),
        "kernel": k.astype(str),
        "kernel_class": (k % classes).astype(str),
        "count": rng.integers(1, 30, n),
        "predicted": p,
        "measured": p * np.exp(e),
    }


# Ratios 1.1 and 0.9: the location is 1; each is judged by the other one, so that the relative
# residuals are 1.1 / 0.9 − 1 = 2/9 and 0.9 / 1.1 − 1 = −2/11.
CV = math.sqrt(((2 / 9) ** 2 + (2 / 11) ** 2) / 2)


# --- by hand ---


def test_two_devices_and_one_class_relative():
    found = fit_errors(on_devices([1.1, 0.9]), kind="relative")
    error = found.classes["c"]
    assert (error.bias, error.spread) == pytest.approx((0.0, CV))
    assert (error.n, error.n_clusters, found.n_runs) == (2, 2, 2)
    assert math.isnan(error.size)


def test_two_devices_and_one_class_log_ratio():
    error = fit_errors(on_devices([1.1, 0.9])).classes["c"]
    assert error.spread == pytest.approx(math.sqrt(math.log1p(CV**2)))
    # The log-normal has mean 1, the location.
    assert error.bias + error.spread**2 / 2 == pytest.approx(0.0)


def test_two_devices_and_one_class_absolute():
    found = fit_errors(on_devices([1.1, 0.9]), kind="absolute")
    assert (found.classes["c"].bias, found.classes["c"].spread) == pytest.approx((0.0, 0.2))
    assert found.floor == 0.0


def test_a_constant_factor_is_bias_alone():
    found = fit_errors(on_devices([1.3, 1.3, 1.3]))
    assert found.classes["c"].bias == pytest.approx(math.log(1.3))
    assert found.classes["c"].spread == pytest.approx(0, abs=1e-9)


def test_the_variance_of_totals_is_met_on_average():
    kernels = Kernels(simulated(np.random.default_rng(1)))
    found = fit_errors(kernels, kind="relative", level=None)
    totals = kernels.totals()
    terms = [
        total_moments(found.terms(kernels.take(kernels.run == run), correlation("estimated")))
        for run in totals.run
    ]
    z = [(m - t.mean) / t.sd for m, t in zip(totals.measured, terms, strict=True)]
    assert np.mean(np.square(z)) == pytest.approx(1.0, abs=0.1)


def test_spread_counts_kernels_with_their_time():
    # The long kernel errs by ±0.1, the short one by ±0.4 about a location of 1.
    kernels = Kernels(
        {"run": ["a", "a", "b", "b"], "device": ["x", "x", "y", "y"], "kernel": ["k", "l"] * 2,
         "kernel_class": ["c", "d"] * 2, "predicted": [9.0, 1.0] * 2,
         "measured": [9.9, 1.4, 8.1, 0.6]}
    )  # fmt: skip
    found = fit_errors(kernels, kind="relative")
    long, short = CV, math.sqrt(((1.4 / 0.6 - 1) ** 2 + (0.6 / 1.4 - 1) ** 2) / 2)
    assert found.classes["c"].spread == pytest.approx(long * found.components.scale)
    assert found.classes["d"].spread == pytest.approx(short * found.components.scale)
    pooled = math.sqrt(0.9 * long**2 + 0.1 * short**2)
    assert found.other.spread == pytest.approx(pooled * found.components.scale)


# --- classes of their own kind ---


def with_overhead(overhead):
    """Three devices whose runs have a kernel that is predicted to take no time."""
    n = len(overhead)
    return Kernels(
        {"run": np.repeat(np.arange(n), 2), "device": np.repeat(np.arange(n), 2),
         "kernel": ["k", "reshape"] * n, "kernel_class": ["c", "reshape"] * n,
         "count": [1, 10] * n, "predicted": [2.0, 0.0] * n,
         "measured": np.ravel([[2.0, o] for o in overhead])}
    )  # fmt: skip


def test_what_is_not_modelled_is_a_share_of_the_run():
    found = fit_errors(with_overhead([0.01, 0.01, 0.01]), kind="relative")
    assert sorted(found.classes) == [NOT_MODELLED, "c"]
    # 10 · 0.01 of 2: the ratio is 0.05, and 1 + bias is that ratio.
    assert found.classes[NOT_MODELLED].bias == pytest.approx(0.05 - 1)
    assert "reshape" not in found.classes


def test_the_total_includes_what_is_not_modelled():
    kernels = with_overhead([0.01, 0.02, 0.03])
    found = fit_errors(kernels, kind="relative")
    total = total_moments(found.terms(kernels.take(kernels.run == "0"), correlation("estimated")))
    assert total.mean == pytest.approx(2.0 + 0.2)


def test_a_class_measured_as_0_adds_nothing():
    kernels = Kernels(
        {"run": ["a", "a", "b", "b"], "device": ["x", "x", "y", "y"], "kernel": ["k", "l"] * 2,
         "kernel_class": ["c", "free"] * 2, "predicted": [9.0, 1.0] * 2,
         "measured": [9.0, 0.0, 9.0, 0.0]}
    )  # fmt: skip
    for kind in ("log-ratio", "relative"):
        found = fit_errors(kernels, kind=kind)
        terms = found.terms(kernels.take(kernels.run == "a"), correlation("estimated"))
        assert total_moments(terms).mean == pytest.approx(9.0)


def test_classes_never_seen_have_the_error_of_all_classes_together():
    found = fit_errors(on_devices([1.1, 0.9]), kind="relative")
    assert found.error("new") is found.other
    assert (found.other.bias, found.other.spread) == pytest.approx((0.0, CV))


# --- small tables ---


def test_a_single_run_has_a_location_and_what_its_kernels_differ_by():
    kernels = Kernels(
        {"kernel": ["k", "l"], "kernel_class": ["c", "c"], "predicted": [1.0, 1.0],
         "shape": ["1", "2"], "measured": [1.2, 0.8]}
    )  # fmt: skip
    found = fit_errors(kernels, kind="relative")
    assert found.components.cluster == "run"
    assert (found.classes["c"].bias, found.classes["c"].spread) == pytest.approx((0.0, 0.2))


def test_a_single_kernel_has_no_spread():
    found = fit_errors(Kernels({"kernel": ["k"], "predicted": [1.0], "measured": [1.2]}))
    assert found.classes["k"].bias == pytest.approx(math.log(1.2))
    assert found.classes["k"].spread == 0.0


def test_on_a_single_device_the_runs_are_the_clusters():
    found = fit_errors(on_devices([1.1, 0.9, 1.0], device=["x"] * 3))
    assert (found.components.cluster, found.components.n_clusters) == ("run", 3)


# --- size ---


@pytest.mark.parametrize("exponent", [0.0, 0.3, 0.6])
def test_how_the_spread_falls_with_size_is_recovered(exponent):
    kernels = Kernels(simulated(np.random.default_rng(3), exponent=exponent))
    found = fit_errors(kernels, by_size=True, level=None)
    assert found.size_exponent == pytest.approx(exponent, abs=0.08)
    for error in found.classes.values():
        there = 0.2 * error.size**-exponent * found.components.scale
        assert error.spread == pytest.approx(there, rel=0.2)


def test_small_kernels_get_the_larger_spread():
    kernels = Kernels(simulated(np.random.default_rng(3), exponent=0.4))
    found = fit_errors(kernels, by_size=True, level=None)
    terms = found.terms(kernels.take(kernels.run == "0/0"), correlation("independent"))
    order = np.argsort(terms.value)
    of_one_class = terms.classes[order] == "0"
    assert np.all(np.diff(terms.spread[order][of_one_class]) < 0)


def test_without_by_size_there_is_no_size():
    found = fit_errors(on_devices([1.1, 0.9]))
    assert found.size_exponent == 0.0
    assert math.isnan(found.classes["c"].size)


def test_what_is_not_modelled_has_no_size():
    found = fit_errors(with_overhead([0.01, 0.02, 0.03]), by_size=True)
    assert math.isnan(found.classes[NOT_MODELLED].size)
    assert found.classes["c"].size == pytest.approx(2.0)


# --- what must not change the errors ---


def same(a, b):
    assert b.components.correlation == pytest.approx(a.components.correlation, abs=1e-9)
    assert b.tails.df == pytest.approx(a.tails.df, rel=1e-4)
    assert b.tails.variance_df == pytest.approx(a.tails.variance_df, rel=1e-6)
    assert sorted(a.classes) == sorted(b.classes)
    for name, error in a.classes.items():
        assert (b.classes[name].bias, b.classes[name].spread) == pytest.approx(
            (error.bias, error.spread)
        )


@pytest.fixture(scope="module")
def columns():
    return simulated(np.random.default_rng(9), devices=5, runs=3)


@pytest.mark.parametrize("kind", ["log-ratio", "relative"])
@pytest.mark.parametrize("by_size", [False, True])
def test_invariant_to_units(columns, kind, by_size):
    scaled = columns | {n: 1e-6 * columns[n] for n in ("predicted", "measured")}
    first, second = (
        fit_errors(Kernels(c), kind=kind, by_size=by_size, level=None) for c in (columns, scaled)
    )
    same(first, second)
    assert second.floor == pytest.approx(1e-6 * first.floor)
    assert second.size_exponent == pytest.approx(first.size_exponent, abs=1e-4)


def test_absolute_errors_have_the_unit_of_the_times(columns):
    scaled = columns | {n: 1e3 * columns[n] for n in ("predicted", "measured")}
    first, second = (fit_errors(Kernels(c), kind="absolute", level=None) for c in (columns, scaled))
    assert second.classes["0"].spread == pytest.approx(1e3 * first.classes["0"].spread)
    assert second.components.correlation == pytest.approx(first.components.correlation)


@pytest.mark.parametrize("kind", ["log-ratio", "relative", "absolute"])
def test_invariant_to_the_order_of_rows(columns, kind):
    order = np.random.default_rng(10).permutation(len(columns["run"]))
    shuffled = {name: np.asarray(values)[order] for name, values in columns.items()}
    same(*(fit_errors(Kernels(c), kind=kind, level=None) for c in (columns, shuffled)))


@pytest.mark.parametrize("kind", ["log-ratio", "relative", "absolute"])
def test_invariant_to_splitting_a_row_in_two(columns, kind):
    split = np.flatnonzero(columns["count"] > 1)
    rows = np.concatenate([np.arange(len(columns["run"])), split])
    halves = {name: np.asarray(values)[rows] for name, values in columns.items()}
    count = columns["count"].copy()
    count[split] //= 2
    halves["count"] = np.concatenate([count, columns["count"][split] - count[split]])
    assert Kernels(halves).totals().predicted == pytest.approx(Kernels(columns).totals().predicted)
    same(*(fit_errors(Kernels(c), kind=kind, level=None) for c in (columns, halves)))


# --- tails ---


def test_tails_are_those_of_the_totals():
    rng = np.random.default_rng(12)
    light = on_devices(np.exp(0.1 * rng.standard_normal(80)))
    heavy = on_devices(np.exp(0.05 * rng.standard_t(2.5, 80)))
    df_light, df_heavy = (fit_errors(k, level=None).tails.df for k in (light, heavy))
    assert df_heavy < 5 < df_light


def test_tails_hold_the_errors_of_the_totals_as_the_other_devices_see_them():
    found = fit_errors(on_devices([1.1, 0.9]), level=None)
    observed = found.tails.observed
    assert (observed.n_clusters, observed.number, observed.below) == (2, 2.0, (0.5, 1.0))
    # Each is off by ln(1.1 / 0.9) of the other, about the median of a log-normal with mean 1.
    sd = math.sqrt(math.log1p(CV**2))
    off = [abs(sign * math.log(1.1 / 0.9) + sd**2 / 2) / sd for sign in (-1, 1)]
    assert observed.sizes == pytest.approx(tuple(sorted(off)))


def test_one_run_has_no_others_to_be_judged_by():
    kernels = Kernels({"run": ["a", "a"], "kernel": ["k", "l"], "kernel_class": ["c", "d"],
                       "predicted": [1.0, 2.0], "measured": [1.1, 1.8]})  # fmt: skip
    assert fit_errors(kernels, level=None).tails.observed is None


def test_a_run_that_was_measured_as_0_has_a_finite_size():
    kernels = on_devices([1.1, 0.9, 1.0, 0.0])
    assert math.isfinite(fit_errors(kernels, level=None).tails.observed.sizes[-1])


def test_no_error_has_normal_tails():
    found = fit_errors(on_devices([1.0, 1.0, 1.0]))
    assert (found.tails.df, found.tails.variance_df) == (math.inf, math.inf)


# --- bad input ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "percent"}, "kind must be one of log-ratio, relative, absolute, got 'percent'"),
        ({"level": 1.5}, "level must be between 0 and 1, or None, got 1.5"),
        ({"level": 0}, "level must be between 0 and 1"),
        ({"level": "high"}, "level must be between 0 and 1, or None, got 'high'"),
        ({"kind": "absolute", "by_size": True}, "by_size is for errors relative"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(InputError, match=message):
        fit_errors(on_devices([1.1, 0.9]), **options)


def test_something_else_than_kernels():
    with pytest.raises(InputError, match="expected a dataframe"):
        fit_errors([1.0, 2.0])


@pytest.mark.parametrize("ratios", [[0.0, 0.0], [0.0, 0.0, 1.0]], ids=["all", "most"])
def test_devices_measured_as_0_have_no_ratio(ratios):
    with pytest.raises(InputError, match="were measured as 0, .*absolute errors"):
        fit_errors(on_devices(ratios))


def test_absolute_errors_of_devices_measured_as_0():
    assert fit_errors(on_devices([0.0, 0.0]), kind="absolute").classes["c"].bias == -1.0


def table(**columns):
    """Return one kernel of one class on each of several devices, unless told otherwise."""
    n = len(columns["measured"])
    default = {
        "run": [f"r{i}" for i in range(n)],
        "device": [f"d{i}" for i in range(n)],
        "kernel": ["k"] * n,
        "predicted": [1.0] * n,
    }
    return Kernels(default | columns)


def located(kernels, kind="log-ratio"):
    found, _ = residuals(kernels, kind, 0.0)
    return found, locate(found, kind)


def test_two_values_have_their_mean():
    assert huber(np.array([1.0, 3.0])) == 2.0


def test_one_value_is_itself():
    assert huber(np.array([4.0])) == 4.0


def test_the_median_where_more_than_half_are_equal():
    assert huber(np.array([2.0, 2.0, 2.0, 900.0])) == 2.0


def test_the_estimating_equation_is_solved():
    x = np.random.default_rng(1).standard_t(3, size=200)
    found = huber(x)
    scale = 1.4826 * np.median(np.abs(x - np.median(x)))
    assert np.clip((x - found) / scale, -1.345, 1.345).sum() == pytest.approx(0, abs=1e-8)


def test_the_last_step_is_returned_where_there_are_no_more(monkeypatch):
    monkeypatch.setattr("errcomp.propagation.errors.fitting._STEPS", 1)
    x = np.array([0.0, 1.0, 2.0, 9.0])
    assert 1.5 < huber(x) < x.mean()


def test_one_outlier_moves_the_location_by_a_bounded_amount():
    x = np.linspace(-1, 1, 11)
    near, far = huber(np.append(x, 50.0)), huber(np.append(x, 5e9))
    assert far == pytest.approx(near)
    assert abs(far) < 0.3


def test_equivariant_to_shift_and_scale():
    x = np.random.default_rng(2).standard_normal(9)
    assert huber(3 * x + 7) == pytest.approx(3 * huber(x) + 7)


def test_each_row_is_judged_by_the_other_devices():
    found, where = located(table(measured=[1.1, 0.9]))
    assert where.of_class.tolist() == pytest.approx([1.0])
    assert where.of_row.tolist() == pytest.approx([0.9, 1.1])
    assert where.n_clusters.tolist() == [2]
    assert where.overall == pytest.approx(1.0)
    assert found.clusters.tolist() == ["d0", "d1"]


def test_kernels_of_one_device_count_with_their_time():
    # 3 · 10 at ratio 1.2 and 1 · 10 at ratio 0.8 on one device: (36 + 8) / 40 = 1.1.
    kernels = table(
        run=["a", "a", "b"],
        device=["x", "x", "y"],
        kernel=["k", "l", "k"],
        kernel_class=["c", "c", "c"],
        count=[3, 1, 1],
        predicted=[10.0, 10.0, 10.0],
        measured=[12.0, 8.0, 10.0],
    )
    _, where = located(kernels)
    assert where.of_row.tolist() == pytest.approx([1.0, 1.0, 1.1])


def test_a_class_of_one_device_is_judged_by_all_classes_of_the_others():
    kernels = table(
        run=["a", "a", "b"],
        device=["x", "x", "y"],
        kernel=["k", "l", "k"],
        kernel_class=["c", "only", "c"],
        measured=[1.2, 2.0, 0.9],
    )
    _, where = located(kernels)
    # Other devices are y alone, where all classes together have 0.9.
    assert where.of_row[1] == pytest.approx(0.9)


def test_with_one_cluster_there_are_no_others():
    kernels = table(
        run=["a", "a"], device=["x", "x"], kernel=["k", "l"], kernel_class=["c", "c"],
        measured=[1.2, 0.8],
    )  # fmt: skip
    _, where = located(kernels)
    assert where.of_row.tolist() == pytest.approx([1.0, 1.0])


def test_many_clusters_are_not_left_out_one_by_one():
    rng = np.random.default_rng(3)
    _, where = located(table(measured=np.exp(0.1 * rng.standard_normal(130))))
    assert set(where.of_row.tolist()) == {where.of_class[0]}


def test_a_class_that_others_measured_as_nothing_is_judged_by_all_classes():
    kernels = table(
        run=["a", "a", "b", "b"],
        device=["x", "x", "y", "y"],
        kernel=["k", "l"] * 2,
        kernel_class=["c", "zero"] * 2,
        measured=[1.0, 0.5, 1.0, 0.0],
    )
    _, where = located(kernels)
    overall = (0.75 + 0.5) / 2
    # On x the others (y) have 0; on y the others have 0.5.
    assert where.of_row.tolist() == pytest.approx([1.0, overall, 1.0, 0.5])


def test_an_absolute_location_of_0_is_a_location():
    kernels = table(
        run=["a", "a", "b", "b", "c", "c"],
        device=["x", "x", "y", "y", "z", "z"],
        kernel=["k", "l"] * 3,
        kernel_class=["exact", "slow"] * 3,
        measured=[1.0, 6.0, 1.0, 6.0, 4.0, 6.0],
    )
    _, where = located(kernels, "absolute")
    assert where.overall == pytest.approx(2.5)
    assert where.of_row.tolist() == pytest.approx([1.5, 5.0, 1.5, 5.0, 0.0, 5.0])


def test_what_is_not_modelled_is_judged_by_itself_alone():
    kernels = table(
        run=["a", "a", "b"],
        device=["x", "x", "y"],
        kernel=["k", "small", "k"],
        predicted=[1.0, 0.0, 1.0],
        measured=[1.0, 0.25, 1.0],
    )
    found, where = located(kernels)
    at = found.labels[found.label] == NOT_MODELLED
    assert where.of_row[at].tolist() == pytest.approx([0.25])
    # Its share of the time is no ratio of measured to predicted: it has no part in the overall.
    assert where.overall == pytest.approx(1.0)
    assert math.isfinite(where.of_class.sum())
