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
from errcomp.halflife.panel import Panel
from errcomp.stats.significance import holm_adjusted


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


def noisy(series=1, versions=40, seed=0):
    return 0.01 * np.random.default_rng(seed).standard_normal((series, versions))


def test_repeats_by_hand():
    panel = panel_of_rows([0.0, 0.02, 0.01, 0.10], sd=0.03, df=20)
    result = check(panel)
    assert result.shift[0] == pytest.approx(0.09)
    assert result.baseline[0] == pytest.approx(0.01)
    assert (result.noise[0], result.n_baseline[0], result.n_shifted[0]) == ("repeats", 3, 1)
    # What repeats miss is unknown: they count for 6 of their 20. Three versions show no scatter.
    assert result.df[0] == 6
    half = (result.high[0] - result.low[0]) / 2
    se = half / stats.t.isf(0.025, 6)
    assert se == pytest.approx(0.03 * np.sqrt(1 + 1 / 3), rel=0.01)
    assert result.low[0] + half == pytest.approx(0.09)


@pytest.mark.slow
def test_one_value_without_repeats_asks_for_a_repeat():
    error = noisy()
    error[0, -1] = 0.1
    result = check(panel_of_rows(error))
    assert (result.outcome, result.verdict[0]) == ("repeat", "repeat")
    assert (result.noise[0], result.n_baseline[0], result.n_shifted[0]) == ("scatter", 39, 1)
    assert 1 <= result.repeats_needed[0] <= 4
    # So many runs like it decide.
    again = np.ones(error.size)
    again[-1] = 1 + result.repeats_needed[0]
    assert check(panel_of_rows(error), repeats=again).outcome == "regression"
    again[-1] -= 1
    assert check(panel_of_rows(error), repeats=again).outcome == "repeat"


@pytest.mark.slow
def test_a_bad_run_alone_is_forgotten_and_a_step_is_not():
    error = noisy()
    error[0, 30] = 0.1
    assert check(panel_of_rows(error)).outcome == "pass"
    error[0, -4:] = [0.05, 0.06, 0.05, 0.05]
    result = check(panel_of_rows(error))
    assert result.outcome == "regression"
    assert (result.n_shifted[0], result.releases(0)) == (4, "1.35 to 1.36")
    # The median of the four against what came before them.
    assert result.shift[0] == pytest.approx(0.05 - error[0, :36].mean(), abs=0.003)


@pytest.mark.slow
def test_a_step_does_not_enter_its_own_baseline():
    error = noisy(versions=60)
    error[0, 40:] += 0.03
    found = [check(panel_of_rows(error[:, :n]), since=0).verdict[0] for n in (46, 50, 60)]
    assert found == ["error grew"] * 3


def test_a_drift_that_adds_up_is_found():
    error = noisy(versions=150)
    error[0] += np.linspace(0, 0.04, 150)
    # From one version to the next it moves by a fortieth of the noise.
    assert check(panel_of_rows(error), since=0).verdict[0] == "error grew"


def test_frozen_predictions_drop_out_of_the_difference():
    rng = np.random.default_rng(0)
    log_measured = rng.standard_normal(5) * 0.01
    frozen = panel_of_rows(log_measured[0] - log_measured, 0.01, 5, frozen=True)
    other = panel_of_rows(3.0 - log_measured, 0.01, 5)
    assert check(frozen).p[0] == pytest.approx(check(other).p[0])


@pytest.mark.slow
def test_scatter_of_many_series_is_moderated():
    rng = np.random.default_rng(1)
    result = check(panel_of_rows(rng.standard_normal((200, 5))))
    # Series are alike: each borrows from all of them.
    assert result.df.min() > 20
    # One series has nobody to borrow from, however long it is.
    alone = check(panel_of_rows(rng.standard_normal((1, 121))))
    assert 100 < alone.df[0] < 119
    # Two rows say too little of themselves to be pulled.
    two = check(panel_of_rows(rng.standard_normal((200, 3))))
    assert two.outcome == "cannot be told"


def test_series_of_different_noise_are_compared_with_their_own():
    error = noisy(20, 40)
    error[::2] *= 10
    error[1, -2:] += 0.08
    result = check(panel_of_rows(error))
    assert result.blamed().tolist() == [1]
    error[1, -2:] -= 0.08
    error[0, -2:] += 0.08
    assert check(panel_of_rows(error)).outcome == "pass"


def test_rows_with_more_repeats_are_less_noisy():
    sd = np.full(12, 0.02)
    sd[-1] = 0.005
    error = np.array([*np.resize([0.01, -0.01, 0.02, -0.02], 11), 0.05])
    many = check(panel_of_rows(error, sd, 20)).p[0]
    few = check(panel_of_rows(error, 0.02, 20)).p[0]
    assert many < few / 10


def test_a_reference_with_many_repeats_is_known_well():
    # One look at it, with 16 repeats, and a new validation with one sixteenth of its precision.
    sd = np.array([0.01, 0.04])
    result = check(panel_of_rows([0.0, 0.4], sd, 30), repeats=[16, 2])
    half = (result.high[0] - result.low[0]) / 2
    typical = stats.t.isf(0.025, result.df[0])
    assert half == pytest.approx(typical * np.hypot(0.01, 0.04), rel=0.02)
    assert result.outcome == "regression"
    # The same shift from a reference that is as uncertain as the new validation.
    assert check(panel_of_rows([0.0, 0.4], 0.04, 30)).p[0] > 4 * result.p[0]


@pytest.mark.slow
def test_the_margin_is_what_a_shift_must_exceed():
    panel = panel_of_rows([0.0, 0.0, 0.0, 0.05], 0.01, np.inf)
    assert check(panel, look=1).outcome == "regression"
    assert check(panel, look=1, margin=0.03).p[0] > check(panel, look=1).p[0]
    assert check(panel, look=1, margin=0.05).outcome == "pass"
    # No shift is no evidence at all.
    assert check(panel_of_rows([0.0, 0.0], 0.01, np.inf), margin=0.03).p[0] == 1
    # Windows, too: three values 5 % slower.
    error = noisy()
    error[0, -3:] = 0.05
    assert check(panel_of_rows(error)).outcome == "regression"
    assert check(panel_of_rows(error), margin=0.05).outcome == "pass"
    assert check(panel_of_rows(error), margin=0.02).outcome == "regression"


def test_no_noise_at_all_is_believed_only_where_it_was_given():
    exact = check(panel_of_rows([0.1, 0.1, 0.2], 0.0, np.inf))
    assert exact.p[0] == 0
    assert exact.outcome == "regression"
    assert check(panel_of_rows([0.1, 0.1, 0.1], 0.0, np.inf)).p[0] == 1
    estimated = check(panel_of_rows([0.1, 0.1, 0.2], 0.0, 5))
    assert estimated.why[0] == "noise unknown: all repeats are equal, probably rounded"
    assert estimated.outcome == "cannot be told"
    assert not estimated.passed


@pytest.mark.slow
def test_what_is_detectable_is_detected_half_of_the_time():
    found = []
    for seed in range(60):
        error = noisy(20, 105, seed)
        result = check(panel_of_rows(error[:, :101]))
        error[0, 100:] += result.detectable[0]
        found.append(check(panel_of_rows(error), since=0).verdict[0] == "error grew")
    # 60 cases: one binomial error is 0.065.
    assert 0.35 < np.mean(found) < 0.7


# Many series, many looks


@pytest.mark.slow
@pytest.mark.extras
def test_holm_is_that_of_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(3).random(30) ** 3
    assert holm_adjusted(p) == pytest.approx(multitest.multipletests(p, method="holm")[1])
    assert np.isnan(holm_adjusted(np.array([np.nan]))).all()


def test_a_thousand_looks_together_spend_alpha():
    thousand = sum(spent(k, 0.1) for k in range(1, 1001))
    assert 0.098 < thousand <= 0.1
    later = sum(spent(k, 0.1) for k in range(5001, 6001))
    assert later == pytest.approx(0.07, rel=0.02)
    assert spent(np.int64(3)) == pytest.approx(0.05 * (6 / (22 * 23) + 0.0007))


def test_look_is_counted_from_the_first_version():
    panel = panel_of_rows([0.0, 0.01, -0.01, 0.02, 0.0], 0.01, 9)
    assert check(panel).look == 4
    assert check(panel, version="1.2").look == 2
    assert check(panel, version="1.2").level == pytest.approx(spent(2))
    assert check(panel, look=1, alpha=0.2).level == pytest.approx(4 * spent(1))


def test_series_that_cannot_be_told_do_not_cost_the_others():
    error = np.full((50, 4), np.nan)
    error[0] = [0.0, 0.01, -0.01, 0.05]
    error[1:, 2:] = 0.0
    result = check(panel_of_rows(error, [[0.01]] + [[np.nan]] * 49, [10.0] + [0.0] * 49))
    assert result.p_adjusted[0] == result.p[0]
    assert result.counts()["cannot be told"] == 49


# The noise between looks


def test_normal_noise_is_seen_as_normal():
    rng = np.random.default_rng(4)
    result = check(panel_of_rows(rng.standard_normal((50, 40)), 1.0, np.inf))
    assert result.law.scale == pytest.approx(1, abs=0.05)
    assert result.law.df > 20
    assert result.autocorrelation < 0.05


def test_heavy_tails_are_seen():
    rng = np.random.default_rng(5)
    error = rng.standard_t(3, (100, 40))
    result = check(panel_of_rows(error))
    assert 1.5 <= result.law.df <= 6
    assert result.outcome == "pass"


def test_a_machine_that_differs_from_day_to_day_is_seen():
    rng = np.random.default_rng(6)
    # Repeats within a validation scatter by 1, validations by 3.
    result = check(panel_of_rows(3 * rng.standard_normal((40, 12)), 1.0, 20))
    assert result.law.scale == pytest.approx(3, rel=0.2)
    assert result.outcome == "pass"


def test_noise_that_swings_is_seen():
    rng = np.random.default_rng(6)
    error = rng.standard_normal((20, 120))
    for k in range(1, 120):
        error[:, k] = 0.5 * error[:, k - 1] + np.sqrt(0.75) * error[:, k]
    assert check(panel_of_rows(error)).autocorrelation == pytest.approx(0.5, abs=0.08)


# Verdicts


def moved_panel():
    rows = [
        [0.00, 0.01, -0.01, 0.50],  # grew
        [0.00, 0.01, -0.01, 0.00],  # as before
        [0.50, 0.51, 0.49, 0.10],  # smaller
        [0.00, 0.01, -0.01, np.nan],  # not validated
        [0.10, 0.11, 0.09, 0.24],  # grew, within 0.25
        [np.nan, np.nan, np.nan, 0.1],  # no baseline
    ]
    return panel_of_rows(rows, 0.01, 20)


def repeats_of(panel, single):
    """Three repeats everywhere but in the last row of one series."""
    repeats = np.full(len(panel.error), 3.0)
    repeats[panel.starts[single + 1] - 1] = 1
    return repeats


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
    single = check(moved_panel(), repeats=repeats_of(moved_panel(), 0), promised=0.25)
    assert single.verdict[0] == "repeat"
    assert single.outcome == "repeat"
    assert set(result.verdict) | {"repeat"} == set(VERDICTS)
    assert result.counts() == dict.fromkeys(VERDICTS[:-1], 1)
    assert single.counts()["repeat"] == 1
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
    # A step that nobody accepted is still one, and one that the gate found is accepted.
    assert check(panel, since=0).verdict[0] == "error grew"
    assert check(panel, since=0).releases(0) == "1.1 to 1.2"
    assert check(panel).verdict[0] == "as before"


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


def test_a_step_in_one_series_does_not_blind_the_others():
    rng = np.random.default_rng(7)
    error = 0.01 * rng.standard_normal((10, 12))
    error[0, 6:] += 0.7
    error[1, -1] += 0.12
    result = check(panel_of_rows(error, 0.01, 20), look=1)
    assert 1 in result.blamed()
    assert np.nanmedian(result.detectable) < 0.12


def test_noise_that_is_not_known():
    two = check(panel_of_rows([0.0, 0.5]))
    assert two.why[0] == "too few validations to know the noise: 5 more needed"
    error = noisy(1, 7)
    assert [check(panel_of_rows(error[:, :n])).outcome for n in (5, 6)] == [
        "cannot be told",
        "cannot be told",
    ]
    assert check(panel_of_rows(error[:, :6])).why[0].endswith(": 1 more needed")
    assert check(panel_of_rows(error)).outcome == "pass"
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
    panel = panel_of_rows([0.0, 0.0, 0.0, 0.05], 0.005, np.inf)
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
            "they do not in 5 series: op0, op1, op2",
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
    for version in ("1.22.1", "1.25.1", "1.30.0", "1.31.1"):
        result = check(panel, version=version)
        blamed[version] = [(panel.names[i], result.releases(i)) for i in result.blamed()]
    assert blamed == {
        "1.22.1": [("tfm/Reshape", "1.19.2 to 1.21.1")],
        "1.25.1": [("tfm/Gelu", "1.24.4 to 1.25.1")],
        "1.30.0": [("tfm/SkipLayerNormalization", "1.29.0 to 1.30.0")],
        "1.31.1": [],
    }
