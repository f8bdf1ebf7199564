"""The regression against statsmodels' own formula interface, and each way it can fall back."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from errcomp.drivers import _table_of, error_drivers
from errcomp.drivers.matching import outcomes_of
from errcomp.drivers.regression import clustered_least_squares, variance_ratio
from errcomp.errors import InputError
from errcomp.tables import Pairs

pytestmark = pytest.mark.extras


def simulated(seed=0, devices=10, device_spread=0.1, **more):
    rng = np.random.default_rng(seed)
    rows = []
    for d in range(devices):
        bias = device_spread * rng.normal()
        for model in ("m", "n"):
            for mode in ("inference", "training"):
                for batch in (1, 2, 4):
                    error = bias + 0.05 * (mode == "training") + 0.05 * rng.normal()
                    rows.append((f"d{d}", model, mode, batch, float(np.exp(error))))
    names = ("device", "model", "mode", "batch", "predicted")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return Pairs({**columns, "measured": [1.0] * len(rows), **more})


def regressions_of(pairs, *, level=0.95, factors=None):
    pytest.importorskip("statsmodels")
    from errcomp.drivers.regression import regress

    return regress(_table_of(pairs, None, factors), level=level)


def test_mixed_model_equals_the_formula_interface():
    formula = pytest.importorskip("statsmodels.formula.api")
    pd = pytest.importorskip("pandas")
    pairs = simulated()
    frame = pd.DataFrame({k: pairs.column(k) for k in ("device", "model", "mode")})
    frame["doublings"] = np.log2(pairs.column("batch").astype(float))
    out = outcomes_of(pairs)
    absolute, signed = regressions_of(pairs)
    for got, y in ((absolute, out.log_ape), (signed, out.signed)):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The MLE may be on the boundary of the ")
            fit = formula.mixedlm(
                "y ~ C(model) + C(mode, Treatment('inference')) + doublings",
                frame.assign(y=y),
                groups="device",
            ).fit(reml=True)
        terms = {t.name: t for t in got.terms}
        assert got.method == "mixed model"
        assert set(terms) == {"mode[training]", "log2(batch)"}
        beta, doubling = fit.params.iloc[2], fit.params["doublings"]
        if got.outcome == "absolute":
            beta, doubling = np.exp(beta), np.exp(doubling)
        assert terms["mode[training]"].effect.value == pytest.approx(beta, rel=1e-4)
        assert terms["log2(batch)"].effect.value == pytest.approx(doubling, rel=1e-4)
        effect = terms["mode[training]"].effect
        width = effect.high - effect.low
        if got.outcome == "absolute":
            width = np.log(effect.high) - np.log(effect.low)
        # t with 10 devices - 1 degrees of freedom.
        assert width == pytest.approx(2 * 2.262157 * fit.bse.iloc[2], rel=1e-3)
    assert (absolute.n, absolute.clusters, absolute.df) == (120, 10, 9)
    assert absolute.adjusted_for == ("model",)
    assert absolute.cluster_key == "device"


@pytest.mark.parametrize(
    "changed", [{"converged": False}, {"bse_fe": np.full(4, np.nan)}, {"bse_fe": np.zeros(4)}]
)
def test_a_fit_without_usable_errors_falls_back(monkeypatch, changed):
    sm = pytest.importorskip("statsmodels.api")
    good = {
        "cov_re": [[1.0]],
        "scale": 1.0,
        "fe_params": np.ones(4),
        "bse_fe": np.ones(4),
        "converged": True,
    }
    monkeypatch.setattr(sm.MixedLM, "fit", lambda *_, **__: SimpleNamespace(**good))
    assert {r.method for r in regressions_of(simulated())} == {"mixed model"}
    monkeypatch.setattr(sm.MixedLM, "fit", lambda *_, **__: SimpleNamespace(**good | changed))
    absolute, _ = regressions_of(simulated())
    assert absolute.method == "least squares, cluster-robust"
    assert "did not converge" in absolute.caveats[-1].message


@pytest.mark.parametrize("seed", range(8))
def test_zero_variance_between_devices_falls_back_with_a_note(seed):
    # In this design (devices of equal size, all terms within them) the estimate is zero where the
    # mean square between devices is below that within them.
    pairs = simulated(seed=seed, device_spread=0.0)
    out = outcomes_of(pairs)
    modes = pairs.column("mode") == "training"
    terms = [pairs.column("model") == "n", modes, np.log2(pairs.column("batch").astype(float))]
    inside = np.column_stack([np.ones(pairs.n), *terms]).astype(float)
    devices = (pairs.column("device")[:, None] == np.unique(pairs.column("device"))).astype(float)
    for found, y in zip(regressions_of(pairs), (out.log_ape, out.signed), strict=True):
        total, rest = (
            np.sum((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2)
            for x in (inside, np.column_stack([inside, devices]))
        )
        if (total - rest) / 9 > rest / (120 - 10 - 3):
            assert found.method == "mixed model"
            assert [c.code for c in found.caveats] == ["few-clusters"]
            continue
        assert found.method == "least squares, cluster-robust"
        assert [c.code for c in found.caveats] == ["few-clusters", "mixed-model-fallback"]
        assert "variance between devices is zero" in found.caveats[1].message


@pytest.mark.parametrize("rows", [1, 6])
def test_variances_that_cannot_be_told_apart_fall_back_with_a_note(rows):
    rng = np.random.default_rng(2)
    n = 12 * rows
    pairs = Pairs(
        {
            "predicted": np.exp(0.1 * rng.normal(size=12)).repeat(rows),
            "measured": np.ones(n),
            "device": [f"d{i // rows}" for i in range(n)],
            "mode": ["inference", "training"] * (n // 2),
        }
    )
    absolute, signed = regressions_of(pairs)
    assert absolute.method == signed.method == "least squares, cluster-robust"
    why = {
        1: "the variances between and within devices are not distinguishable",
        6: "the variance within devices is zero",
    }[rows]
    assert why in absolute.caveats[-1].message
    if rows > 1:
        assert signed.terms[0].effect.method == "none: no spread"


def test_fallback_equals_statsmodels_least_squares_with_clustered_errors(monkeypatch):
    sm = pytest.importorskip("statsmodels.api")

    def broken(*_, **__):
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(sm.MixedLM, "fit", broken)
    pairs = simulated()
    absolute, signed = regressions_of(pairs)
    x = np.column_stack(
        [
            np.ones(pairs.n),
            pairs.column("model") == "n",
            pairs.column("mode") == "training",
            np.log2(pairs.column("batch").astype(float)),
        ]
    ).astype(float)
    _, groups = np.unique(pairs.column("device").astype(str), return_inverse=True)
    fit = sm.OLS(outcomes_of(pairs).signed, x).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    term = {t.name: t for t in signed.terms}["mode[training]"]
    assert term.effect.value == pytest.approx(fit.params[2])
    assert (term.effect.low, term.effect.high) == pytest.approx(tuple(fit.conf_int()[2]))
    assert term.p_value == pytest.approx(fit.pvalues[2])
    assert "did not converge" in absolute.caveats[-1].message


@pytest.mark.slow
def test_large_tables_are_fitted_by_least_squares_and_this_is_said():
    absolute, signed = regressions_of(simulated(devices=420, device_spread=0.3))
    assert absolute.n == 5040
    assert absolute.method == signed.method == "least squares, cluster-robust"
    assert [c.code for c in absolute.caveats] == ["mixed-model-fallback"]
    assert "above 5000 rows" in absolute.caveats[0].message
    term = {t.name: t for t in signed.terms}["mode[training]"]
    assert term.effect.low < 0.05 < term.effect.high


@pytest.mark.parametrize("most", [71, 72])
def test_the_mixed_model_has_a_largest_table(monkeypatch, most):
    monkeypatch.setattr("errcomp.drivers.regression._MAX_MIXED_ROWS", most)
    absolute, signed = regressions_of(simulated(devices=6, device_spread=0.3))
    assert absolute.n == 72
    if most == 72:
        assert absolute.method == signed.method == "mixed model"
        return
    assert absolute.method == signed.method == "least squares, cluster-robust"
    assert absolute.caveats[-1].message == (
        "Least squares with standard errors clustered by device: the mixed model takes minutes "
        "above 71 rows."
    )


def test_terms_that_say_the_same_are_reported_not_dropped_silently():
    n = 120
    pairs = simulated(
        seq_len=[128 if i // 6 % 2 == 0 else 512 for i in range(n)],
        site=["x" if i < 60 else "y" for i in range(n)],
        country=["p" if i < 60 else "q" for i in range(n)],
    )
    absolute, _ = regressions_of(pairs)
    assert [str(a) for a in absolute.aliased] == [
        f"{term} was left out: its effect cannot be distinguished from the effect of {other}"
        for term, other in (("log2(seq_len)", "model[n]"), ("country[q]", "site[y]"))
    ]
    assert "country[q]" not in {t.name for t in absolute.terms}
    assert absolute.to_dict()["aliased"][1] == {"term": "country[q]", "with": ["site[y]"]}
    # A term that never varies within a device costs a degree of freedom.
    assert absolute.df == 10 - 1 - 1


def test_the_first_term_costs_a_degree_of_freedom_if_it_never_varies_within_a_device():
    rng = np.random.default_rng(4)
    n = 60
    columns = {
        "predicted": np.exp(0.1 * rng.normal(size=n)),
        "measured": np.ones(n),
        "device": [f"d{i // 6}" for i in range(n)],
        "site": ["x" if i < 30 else "y" for i in range(n)],
        "mode": ["inference", "training"] * 30,
    }
    for factors in (["site", "mode"], ["mode", "site"]):
        absolute, _ = regressions_of(Pairs(columns), factors=factors)
        assert [t.name[:4] for t in absolute.terms] == factors
        assert (absolute.clusters, absolute.df) == (10, 10 - 1 - 1)


def test_a_level_that_two_devices_have_gets_no_interval():
    pairs = simulated()
    rare = ["special" if d in ("d0", "d1") else "base" for d in pairs.column("device")]
    absolute, _ = regressions_of(simulated(variant=rare))
    term = {t.name: t for t in absolute.terms}["variant[special]"]
    assert (term.effect.low, term.p_value, term.p_holm) == (None, None, None)
    assert term.effect.method == "none: one side of the comparison occurs in only 2 clusters"


def test_with_a_single_device_the_models_are_the_clusters_and_not_adjusted_for():
    rng = np.random.default_rng(2)
    n = 60
    pairs = Pairs(
        {
            "predicted": np.exp(0.1 * rng.normal(size=n)),
            "measured": np.ones(n),
            "model": [f"m{i % 10}" for i in range(n)],
            "device": ["only one"] * n,
            "mode": ["inference", "training", "training"] * 20,
        }
    )
    absolute, _ = regressions_of(pairs)
    assert (absolute.cluster_key, absolute.clusters, absolute.adjusted_for) == ("model", 10, ())


def test_rows_stand_for_themselves_where_nothing_repeats():
    rng = np.random.default_rng(3)
    n = 40
    pairs = Pairs(
        {
            "predicted": np.exp(0.1 * rng.normal(size=n)),
            "measured": np.ones(n),
            "mode": ["inference", "training"] * 20,
            "load": np.arange(n) - 5.0,
        }
    )
    absolute, _ = regressions_of(pairs, factors=["mode", "load"])
    assert absolute.method == "least squares, HC3"
    assert (absolute.cluster_key, absolute.clusters, absolute.df) == ("row", n, n - 3)
    assert [(t.name, t.level) for t in absolute.terms] == [
        ("mode[training]", "training"),
        ("load", "per unit"),
    ]


def test_too_many_models_to_adjust_for_is_said():
    pairs = simulated(devices=3)
    models = [f"m{i}" for i in range(18)] * 2
    pairs = Pairs(
        {
            "predicted": pairs.predicted,
            "measured": pairs.measured,
            "mode": pairs.column("mode"),
            "device": pairs.column("device"),
            "model": models,
        }
    )
    absolute, _ = regressions_of(pairs)
    assert absolute.adjusted_for == ()
    (caveat,) = (one for one in absolute.caveats if one.code == "model-not-adjusted")
    assert "36 rows are too few to adjust for 18 models" in caveat.message
    assert caveat.evidence == {"rows": 36, "models": 18}


@pytest.mark.parametrize(("n", "adjusted"), [(50, ("model",)), (49, ())])
def test_models_are_adjusted_for_from_five_rows_a_column(n, adjusted):
    # One constant, one factor, eight models that differ from the first: ten columns.
    rng = np.random.default_rng(0)
    pairs = Pairs(
        {
            "predicted": np.exp(rng.normal(0, 0.1, n)),
            "measured": np.ones(n),
            "mode": np.where(rng.permutation(n) % 2, "a", "b"),
            "device": [f"d{i % 5}" for i in range(n)],
            "model": [f"m{i % 9}" for i in range(n)],
        }
    )
    absolute, _ = regressions_of(pairs)
    assert absolute.adjusted_for == adjusted


def test_more_terms_than_rows_is_an_error_here_and_a_caveat_in_drivers():
    pairs = Pairs({"predicted": [1.1, 1.2, 1.4], "measured": [1.0] * 3, "dtype": ["a", "b", "c"]})
    with pytest.raises(InputError, match="two more rows than terms, got 3 rows for 3 terms"):
        regressions_of(pairs)
    result = error_drivers(pairs)
    assert result.regressions == ()
    assert [c.code for c in result.caveats] == ["no-regression"]


def test_a_tool_with_the_same_error_everywhere_has_no_spread():
    pairs = simulated()
    same = Pairs(
        {
            "predicted": np.full(pairs.n, 1.1),
            "measured": np.ones(pairs.n),
            **{k: pairs.column(k) for k in ("mode", "batch")},
        }
    )
    absolute, _ = regressions_of(same)
    assert [t.effect.method for t in absolute.terms] == ["none: no spread"] * 2
    assert [t.p_value for t in absolute.terms] == [None, None]


@pytest.mark.parametrize("seed", range(6))
def test_small_and_odd_tables_never_crash_or_warn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 25))
    columns = {
        "device": rng.choice(list("AB"), n),
        "model": rng.choice(list("mnop"), n),
        "mode": rng.choice(["inference", "training"], n),
        "batch": rng.choice([1, 2, 4], n),
        "variant": rng.choice(["base", "fusion", "dp4"], n),
    }
    errors = np.where(rng.random(n) < 0.3, 0.0, 0.2 * rng.normal(size=n))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = error_drivers(
            Pairs({**columns, "predicted": np.exp(errors), "measured": np.ones(n)})
        )
    for row in result.rows():
        assert row["low"] is None or row["low"] <= row["value"] <= row["high"]


def test_a_level_without_scatter_leaves_the_error_of_the_comparison():
    # All devices of the reference mode agree: the constant has the standard error 0.
    devices, modes = list("ABCDEF" * 7)[:40], list("ab" * 20)
    columns = {"predicted": [1.1] * 39 + [5e-324], "measured": [1.0] * 40}
    _, signed = regressions_of(Pairs({**columns, "device": devices, "mode": modes}))
    effect = signed.terms[0].effect
    assert effect.value == pytest.approx((np.log(5e-324) - np.log(1.1)) / 20)
    assert effect.low < 0 < effect.high


def balanced(seed, spread, *, groups=10, rows=12):
    """Rows of groups of one size, with two columns that vary in the same way within each."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(groups), rows)
    x = np.column_stack([np.ones(len(codes)), np.tile([0.0, 1.0], len(codes) // 2)])
    y = spread * rng.normal(size=groups)[codes] + 0.3 * x[:, 1] + rng.normal(size=len(codes))
    return y, x, codes


def residual_sum(y, x):
    return np.sum((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("spread", [0.0, 0.2, 1.0, 30.0])
def test_ratio_of_a_balanced_design_is_that_of_the_analysis_of_variance(seed, spread):
    y, x, groups = balanced(seed, spread)
    within = residual_sum(y, np.column_stack([np.eye(10)[groups], x[:, 1]]))
    between = (residual_sum(y, x) - within) / 9
    within /= 120 - 10 - 1
    expected = max(0.0, (between / within - 1) / 12)
    assert variance_ratio(y, x, groups) == pytest.approx(expected, rel=1e-9)


def test_ratio_of_unequal_groups_is_where_statsmodels_has_its_highest_likelihood():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(7), [2, 3, 5, 8, 1, 13, 4])
    x = np.column_stack([np.ones(36), rng.normal(size=(36, 2)), groups % 2])
    y = rng.normal(size=7)[groups] + rng.normal(size=36)
    ratio = variance_ratio(y, x, groups)
    model = sm.MixedLM(y, x, groups=groups)
    model.reml, model.cov_pen, model.fe_pen = True, None, None

    def likelihood(at):
        return model.loglike(np.array([math.sqrt(at)]), profile_fe=True)

    best = likelihood(ratio)
    assert 0.1 < ratio < 10
    assert best > likelihood(ratio * 1.001)
    assert best > likelihood(ratio / 1.001)
    assert best > max(likelihood(at) for at in np.geomspace(1e-3, 1e3, 40))


def test_ratio_does_not_depend_on_the_units_nor_on_the_order_of_rows():
    y, x, groups = balanced(3, 0.5)
    ratio = variance_ratio(y, x, groups)
    order = np.random.default_rng(0).permutation(len(y))
    assert variance_ratio(y[order], x[order], groups[order]) == pytest.approx(ratio, rel=1e-9)
    assert variance_ratio(1e6 * y, x * [1.0, 1e-6], groups) == pytest.approx(ratio, rel=1e-9)


def test_ratio_is_unknown_where_the_groups_explain_no_more_than_the_columns():
    y, x, groups = balanced(1, 1.0)
    assert variance_ratio(y, x, np.arange(len(y))) is None
    assert variance_ratio(y, np.column_stack([np.eye(10)[groups], x[:, 1]]), groups) is None


def test_ratio_is_infinite_where_nothing_varies_within_groups():
    _, x, groups = balanced(1, 1.0)
    means = np.random.default_rng(5).normal(size=10)
    assert variance_ratio(means[groups], x, groups) == math.inf
    assert variance_ratio(np.full(len(x), 0.3), x, groups) == math.inf
    assert variance_ratio(np.zeros(len(x)), x, groups) == math.inf


def test_clustered_errors_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(6)
    groups = rng.integers(0, 9, 80)
    x = np.column_stack([np.ones(80), rng.normal(size=(80, 3)), groups > 4]).astype(float)
    y = rng.normal(size=9)[groups] + x @ [1.0, 2.0, 0.0, -1.0, 0.5] + rng.normal(size=80)
    fit = sm.OLS(y, x).fit(cov_type="cluster", cov_kwds={"groups": groups})
    coefficients, errors = clustered_least_squares(y, x, groups)
    assert coefficients == pytest.approx(fit.params, rel=1e-10)
    assert errors == pytest.approx(fit.bse, rel=1e-10)


def test_a_coefficient_that_no_group_moves_has_no_error():
    # Groups 0 to 2 agree with each other, so that the mean of their level is known exactly.
    groups = np.repeat(np.arange(6), 4)
    level = (groups > 2).astype(float)
    y = np.where(level == 0, 0.1, 0.1 * groups)
    coefficients, errors = clustered_least_squares(y, np.column_stack([1 - level, level]), groups)
    assert coefficients == pytest.approx([0.1, 0.4])
    assert errors[0] < 1e-15
    # Means of 0.3, 0.4 and 0.5: 6/5 for six groups, 23/22 for the two columns.
    assert errors[1] == pytest.approx(math.sqrt(6 / 5 * 23 / 22 * 2 * (0.1 / 3) ** 2))
