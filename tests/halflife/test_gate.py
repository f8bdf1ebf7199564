"""Tests of the gate by hand: statistics, spending, verdicts, what moved, bad input.

False alarms and power are simulated in tests/statistical.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.gate import VERDICTS, check, since_last_step, spent
from errcomp.halflife.gate.shifts import Law, critical, fit_law, holm_adjusted, p_values
from errcomp.halflife.panel import Panel


def panel_of_rows(error, sd=np.nan, df=0.0, *, frozen=False, names=None):
    """Make a panel of a matrix of series by versions; NaN is a version that was not validated."""
    error = np.atleast_2d(np.asarray(error, dtype=float))
    s, n = error.shape
    validated = ~np.isnan(error)
    return Panel(
        versions=tuple(f"1.{k}" for k in range(n)),
        months=np.arange(float(n)),
        names=tuple(names or (f"op{i}" for i in range(s))),
        clusters=np.arange(s),
        starts=np.concatenate([[0], np.cumsum(validated.sum(axis=1))]),
        version=np.tile(np.arange(n), (s, 1))[validated],
        error=error[validated],
        sd=np.broadcast_to(np.asarray(sd, dtype=float), error.shape)[validated],
        noise_df=np.broadcast_to(np.asarray(df, dtype=float), s).copy(),
        frozen_at_first=frozen,
    )


# The statistic


def test_repeats_by_hand():
    panel = panel_of_rows([0.0, 0.02, 0.01, 0.10], sd=[0.03, 0.02, 0.02, 0.04], df=7)
    result = check(panel)
    se = np.sqrt(0.04**2 + (0.03**2 + 2 * 0.02**2) / 9)
    assert result.shift[0] == pytest.approx(0.09)
    assert result.p[0] == pytest.approx(2 * stats.t.sf(0.09 / se, 7))
    assert result.df[0] == 7
    assert result.noise[0] == "repeats"
    half = stats.t.isf(0.025, 7) * se
    assert (result.low[0], result.high[0]) == pytest.approx((0.09 - half, 0.09 + half))
    assert result.detectable[0] == pytest.approx(stats.t.isf(result.level / 2, 7) * se)


def test_scatter_is_the_t_test_of_one_new_value():
    base = np.array([0.0, 0.02, 0.01, -0.02, 0.005])
    result = check(panel_of_rows([*base, 0.06]))
    t = (0.06 - base.mean()) / (base.std(ddof=1) * np.sqrt(1 + 1 / 5))
    assert result.p[0] == pytest.approx(2 * stats.t.sf(t, 4))
    assert (result.df[0], result.noise[0], result.n_baseline[0]) == (4, "scatter", 5)


def test_frozen_predictions_drop_out_of_the_difference():
    rng = np.random.default_rng(0)
    log_measured = rng.standard_normal(5) * 0.01
    frozen = panel_of_rows(log_measured[0] - log_measured, 0.01, 5, frozen=True)
    other = panel_of_rows(3.0 - log_measured, 0.01, 5)
    assert check(frozen).p[0] == pytest.approx(check(other).p[0])


def test_scatter_of_many_series_is_moderated():
    rng = np.random.default_rng(1)
    result = check(panel_of_rows(rng.standard_normal((200, 5))))
    # Series are alike: each borrows from all of them.
    assert result.df.min() > 20
    few = check(panel_of_rows(rng.standard_normal((9, 5))))
    assert (few.df == 3).all()
    differ = check(
        panel_of_rows(rng.standard_normal((200, 5)) * np.exp(rng.standard_normal(200))[:, None])
    )
    assert 3 < np.median(differ.df) < 10
    # One series has nobody to borrow from, however long it is.
    assert check(panel_of_rows(rng.standard_normal((1, 121)))).df[0] == 119
    # Two rows say too little of themselves to be pulled.
    two = check(panel_of_rows(rng.standard_normal((200, 3))))
    assert (two.df == 1).all()


def test_a_row_without_noise_takes_that_of_the_noisiest_of_its_series():
    sd = [[0.01, 0.03, 0.02, np.nan]]
    se = np.sqrt(0.03**2 + (0.01**2 + 0.03**2 + 0.02**2) / 9)
    result = check(panel_of_rows([0.0, 0.0, 0.0, 0.1], sd, 5))
    assert result.high[0] - result.shift[0] == pytest.approx(stats.t.isf(0.025, 5) * se)


def test_margin_is_tested_not_subtracted():
    panel = panel_of_rows([0.0, 0.0, 0.0, 0.05], 0.01, np.inf)
    se = 0.01 * np.sqrt(1 + 1 / 3)
    result = check(panel, margin=0.03)
    assert result.p[0] == pytest.approx(stats.norm.sf(0.02 / se) + stats.norm.sf(0.08 / se))
    assert check(panel, look=1).outcome == "regression"
    assert check(panel, look=1, margin=0.05).outcome == "pass"
    # No shift is no evidence at all.
    assert check(panel_of_rows([0.0, 0.0], 0.01, np.inf), margin=0.03).p[0] == 1


def test_no_noise_at_all_is_believed_only_where_it_was_given():
    exact = check(panel_of_rows([0.1, 0.1, 0.2], 0.0, np.inf))
    assert exact.p[0] == 0
    assert exact.outcome == "regression"
    assert check(panel_of_rows([0.1, 0.1, 0.1], 0.0, np.inf)).p[0] == 1
    estimated = check(panel_of_rows([0.1, 0.1, 0.2], 0.0, 5))
    assert estimated.why[0] == "noise unknown: all repeats are equal, probably rounded"
    assert estimated.outcome == "cannot be told"
    assert not estimated.passed


# Many series, many looks


@pytest.mark.extras
def test_holm_is_that_of_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(3).random(30) ** 3
    assert holm_adjusted(p) == pytest.approx(multitest.multipletests(p, method="holm")[1])
    assert np.isnan(holm_adjusted(np.array([np.nan]))).all()


def test_all_looks_together_spend_alpha():
    assert sum(spent(k, 0.1) for k in range(1, 100_001)) == pytest.approx(0.1, rel=2e-5)
    assert spent(np.int64(3)) == pytest.approx(0.05 / 12)


def test_look_is_counted_from_the_first_version():
    panel = panel_of_rows([0.0, 0.01, -0.01, 0.02, 0.0], 0.01, 9)
    assert check(panel).look == 4
    assert check(panel, version="1.2").look == 2
    assert check(panel, version="1.2").level == pytest.approx(0.05 / 6)
    assert check(panel, look=1).level == pytest.approx(0.025)
    assert check(panel, look=1, alpha=0.2).level == pytest.approx(0.1)


def test_series_that_cannot_be_told_do_not_cost_the_others():
    error = np.full((50, 4), np.nan)
    error[0] = [0.0, 0.01, -0.01, 0.05]
    error[1:, 2:] = 0.0
    result = check(panel_of_rows(error, [[0.01]] + [[np.nan]] * 49, [10.0] + [0.0] * 49))
    assert result.p_adjusted[0] == result.p[0]
    assert result.counts()["cannot be told"] == 49


# The law of comparisons under no change


def test_normal_baselines_leave_the_law_alone():
    rng = np.random.default_rng(4)
    result = check(panel_of_rows(rng.standard_normal((50, 12)), 1.0, np.inf))
    assert (result.law.scale, result.law.df) == (1, np.inf)
    assert result.law.n == pytest.approx(50 * 10)


def test_heavy_tails_of_baselines_widen_the_law():
    rng = np.random.default_rng(5)
    error = rng.standard_t(3, (200, 12)) / np.sqrt(3)
    result = check(panel_of_rows(error, 1.0, np.inf))
    assert 2 <= result.law.df <= 6
    assert 0.4 < result.law.scale < 0.8
    assert result.outcome == "pass"
    nominal = p_values(
        result.shift, np.full(200, np.sqrt(1 + 1 / 11)), result.df, margin=0, law=Law()
    )
    assert (result.p >= nominal * (1 - 1e-9)).all()


def test_a_machine_that_differs_from_day_to_day_widens_the_law():
    rng = np.random.default_rng(6)
    # Repeats within a validation scatter by 1, validations by 3.
    result = check(panel_of_rows(3 * rng.standard_normal((40, 9)), 1.0, np.inf))
    assert result.law.scale == pytest.approx(3, rel=0.2)
    assert result.outcome == "pass"


def test_few_rows_leave_the_law_alone():
    none = np.full(40, np.inf)
    assert fit_law(np.full(29, 9.0), none[:29], np.ones(29)) == Law(n=29.0)
    assert fit_law(np.full(40, 9.0), none, np.ones(40)).scale == pytest.approx(9, rel=0.01)


def test_the_law_is_fitted_by_maximum_likelihood():
    rng = np.random.default_rng(8)
    t = 2 * rng.standard_t(4, 3000)
    df, scale = stats.t.fit(t, floc=0)[::2]
    law = fit_law(t, np.full(3000, np.inf), np.ones(3000))
    assert law.df == 4
    assert df == pytest.approx(4, rel=0.15)
    assert law.scale == pytest.approx(scale, rel=0.02)
    # The tail of the estimated noise is not taken for one of the noise.
    estimated = 3 * rng.standard_t(8, 3000)
    law = fit_law(estimated, np.full(3000, 8.0), np.ones(3000))
    assert law.df == np.inf
    assert law.scale == pytest.approx(3, rel=0.03)
    # Noise smaller than it says is believed to be no smaller.
    quiet = 0.2 * rng.standard_normal(3000)
    assert fit_law(quiet, np.full(3000, np.inf), np.ones(3000)) == Law(n=3000.0)


@pytest.mark.parametrize("law", [Law(), Law(0.6, 3.0), Law(2.0, np.inf)])
@pytest.mark.parametrize("df", [3.0, 50.0, np.inf])
def test_critical_values_invert_p(law, df):
    at = critical(np.array([df]), 0.01, law)
    p = p_values(at, np.ones(1), np.array([df]), margin=0.0, law=law)
    assert p[0] == pytest.approx(0.01, rel=1e-6)


# Verdicts


def moved_panel():
    rows = [
        [0.00, 0.01, -0.01, 0.50],  # grew
        [0.00, 0.01, -0.01, 0.00],  # as before
        [0.50, 0.51, 0.49, 0.10],  # smaller
        [0.00, 0.01, -0.01, np.nan],  # not validated
        [0.10, 0.11, 0.09, 0.20],  # grew, within 0.25
        [np.nan, np.nan, np.nan, 0.1],  # no baseline
    ]
    return panel_of_rows(rows, 0.01, 20)


def test_every_verdict():
    result = check(moved_panel(), promised=0.25)
    assert result.verdict.tolist() == [
        "error grew",
        "as before",
        "error no larger",
        "not validated",
        "moved within the promise",
        "cannot be told",
    ]
    assert set(result.verdict) == set(VERDICTS)
    assert result.counts() == dict.fromkeys(VERDICTS, 1)
    assert result.why[5] == "no version in the baseline"
    assert (result.outcome, result.passed) == ("regression", False)
    assert result.blamed().tolist() == [0]
    assert result.releases(0) == "1.2 to 1.3"
    assert result.releases(5) == "1.3"
    assert check(moved_panel()).blamed().tolist() == [0, 4]


def test_a_release_that_was_left_out_is_blamed_with_the_new_one():
    result = check(panel_of_rows([0.0, 0.01, np.nan, 0.5], 0.01, 9))
    assert result.releases(0) == "1.1 to 1.3"


def test_since_begins_the_baseline():
    panel = panel_of_rows([0.0, 0.01, 0.5, 0.51, 0.5], 0.01, 20)
    assert check(panel, since=2).verdict[0] == "as before"
    assert check(panel, since=[2]).n_baseline[0] == 2
    # The step in the baseline hides behind its own scatter, unless noise is known by repeats.
    assert check(panel).verdict[0] == "error grew"


def test_steps_that_were_found_are_accepted_in_a_replay():
    rows = [
        [0.0, 0.01, 0.5, 0.51, 0.5, 0.5],
        [0.0, 0.01, 0.0, -0.01, 0.0, 0.01],
        [np.nan, np.nan, 0.0, 0.01, 0.9, np.nan],
        [0.0, 0.01, 0.9, 0.0, 0.01, 0.0],  # one bad release
    ]
    panel = panel_of_rows(rows, 0.01, 20)
    assert since_last_step(panel).tolist() == [2, 0, 4, 3]
    assert since_last_step(panel, version="1.4").tolist() == [2, 0, 2, 3]
    assert since_last_step(panel, version="1.4", since=3).tolist() == [3, 3, 3, 3]
    assert since_last_step(panel, margin=2.0).tolist() == [0, 0, 2, 0]
    gap = panel_of_rows([[0.0, np.nan, 0.5, 0.5]], 0.01, 20)
    assert since_last_step(gap).tolist() == [2]


def test_a_step_in_one_baseline_does_not_blind_the_others():
    rng = np.random.default_rng(7)
    error = 0.01 * rng.standard_normal((10, 12))
    error[0, 6:] += 0.7
    error[1, -1] += 0.12
    result = check(panel_of_rows(error, 0.01, 20), look=1)
    assert 1 in result.blamed()
    assert np.median(result.detectable) < 0.12


def test_noise_that_is_not_known():
    two = check(panel_of_rows([0.0, 0.5]))
    assert two.why[0] == "noise unknown: one version in the baseline and no repeats"
    equal = check(panel_of_rows([0.1, 0.1, 0.1, 0.5]))
    assert equal.why[0] == "all values of the baseline are equal and the noise is unknown"
    assert {two.outcome, equal.outcome} == {"cannot be told"}
    assert np.isnan(equal.p).all()
    assert equal.shift[0] == pytest.approx(0.4)


# What moved


def parts_of(panel, predictor):
    first = np.repeat(panel.error[panel.starts[:-1]], np.diff(panel.starts))
    return {"predictor": predictor, "reference": panel.error - first - predictor}


def test_reference_and_predictor_are_told_apart():
    error = np.tile([0.0, 0.01, -0.01, 0.0], (4, 1))
    error[0, 3], error[1, 3], error[3, 3] = 0.5, 0.5, 0.9
    predictor = np.zeros((4, 4))
    predictor[:, 3] = [0.0, 0.5, 0.3, 0.5]
    panel = panel_of_rows(error, 0.01, 20)
    result = check(panel, **parts_of(panel, predictor.ravel()))
    assert result.moved_by.tolist() == ["reference", "predictor", "both", "both"]
    # Both moved, and cancel.
    assert result.verdict[2] == "as before"
    assert result.reference[2] == pytest.approx(-0.3)
    assert result.reference + result.predictor == pytest.approx(result.shift)


def test_where_neither_part_is_beyond_noise_the_larger_one_moved():
    panel = panel_of_rows([0.0, 0.0, 0.0, 0.05], 0.01, np.inf)
    for share, name in ((0.6, "predictor"), (0.4, "reference")):
        parts = parts_of(panel, np.array([0, 0, 0, 0.05 * share]))
        # Neither is larger than the margin, their sum is.
        result = check(panel, margin=0.031, look=1, alpha=0.3, **parts)
        assert (result.verdict[0], result.moved_by[0]) == ("error grew", name)


def test_what_moved_is_not_known_without_its_parts():
    assert check(moved_panel()).moved_by.tolist() == ["unknown", "", "unknown", "", "unknown", ""]
    assert np.isnan(check(moved_panel()).reference).all()
    frozen = check(panel_of_rows([0.0, 0.01, 0.5], 0.01, 20, frozen=True))
    assert frozen.moved_by[0] == "reference"
    assert frozen.predictor[0] == 0


# Plain values


def test_result_is_json():
    document = check(moved_panel(), groups=list("aabbcc"), promised=np.full(6, 0.25)).to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    first = document["series"][0]
    assert (first["series"], first["group"], first["last_version"]) == ("op0", "a", "1.2")
    assert document["series"][5]["p"] is None
    assert document["series"][5]["last_version"] is None
    assert document["noise_df"] is None


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": "9"}, "unknown version '9'. Versions: 1.0, 1.1"),
        (
            {"version": "1.0"},
            r"version 1\.0 is the first: there is no earlier version to compare it with",
        ),
        ({"alpha": 0.0}, "alpha must be between 0 and 1"),
        ({"look": 0}, "look must be a whole number, 1 for the first"),
        ({"look": 1.5}, "look must be a whole number, 1 for the first"),
        ({"look": True}, "look must be a whole number, 1 for the first"),
        ({"margin": -0.1}, "margin must be 0 or larger"),
        ({"margin": np.nan}, "margin must be 0 or larger"),
        ({"promised": 0.0}, "promised must be positive finite errors"),
        ({"promised": [0.1, 0.1]}, "one for each of the 6 series"),
        ({"since": 0.5}, "since must be positions of versions"),
        ({"since": [0, 1]}, "since must be positions of versions"),
        ({"groups": ["a"]}, "groups must be 6 names, one per series, got 1"),
        ({"reference": np.zeros(3)}, "reference and predictor must be given together"),
        (
            {"reference": np.zeros(3), "predictor": np.zeros(3)},
            "reference and predictor must have 20 values",
        ),
        (
            {"reference": np.zeros(20), "predictor": np.zeros(20)},
            "they do not in 3 series: op0, op2, op4",
        ),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        check(moved_panel(), **options)


def test_a_version_without_validations():
    panel = panel_of_rows([[0.0, 0.1, np.nan], [0.0, 0.1, np.nan]], 0.01, 5)
    with pytest.raises(InputError, match="no series was validated under version 1.2"):
        check(panel)


@pytest.mark.shared
def test_operators_that_onnx_runtime_changed_are_blamed(shared_data):
    import polars as pl

    from errcomp.halflife.panel import panel_of
    from errcomp.tables import History

    rows = pl.read_csv(shared_data / "longitudinal/ort_cpu_preview/ops.csv")
    rows = rows.filter(pl.col("sum_median_us") >= 20)
    history = History(
        rows.select(
            "version",
            series=pl.col("model") + "/" + pl.col("op_type"),
            measured="sum_median_us",
            repeat="round",
        )
    )
    panel = panel_of(history).panel
    blamed = {}
    for version in ("1.24.4", "1.25.1", "1.30.0", "1.31.1"):
        begin = since_last_step(panel, version=version)
        result = check(panel, version=version, since=begin, look=1)
        blamed[version] = [(panel.names[i], result.releases(i)) for i in result.blamed()]
    assert blamed == {
        "1.24.4": [],
        "1.25.1": [("tfm/Gelu", "1.24.4 to 1.25.1")],
        "1.30.0": [("tfm/SkipLayerNormalization", "1.29.0 to 1.30.0")],
        "1.31.1": [],
    }
