"""What is left out, the spread of what is left, and effects of devices."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from errcomp.calibration.estimators.shared.spread import (
    Spread,
    Spreads,
    fit_spread,
    is_number,
    left_out,
    shrunken_effects,
)
from errcomp.errors import InputError


def names(*values: str) -> np.ndarray:
    return np.array(values, dtype=object)


def test_quantiles_are_those_of_student():
    q = [0.01, 0.25, 0.5, 0.9]
    found = Spread(0.3, 2.5).quantiles(q)
    np.testing.assert_allclose(found, 0.3 * stats.t.ppf(q, 2.5), atol=1e-12)
    assert found[2] == 0


def test_density_is_that_of_student():
    at = np.array([-0.4, 0.0, 1.5])
    found = Spread(0.3, 2.5).log_density(at)
    np.testing.assert_allclose(found, stats.t.logpdf(at, 2.5, 0, 0.3))


def test_never_fewer_than_two_degrees():
    # One run in ten is a hundred times as far off as the others: no t has such tails and a scale.
    residuals = 0.01 * np.random.default_rng(0).normal(size=40)
    residuals[::10] *= 100
    assert fit_spread(residuals, np.arange(40) // 10).degrees == 2


def test_probabilities_must_ascend():
    with pytest.raises(InputError, match="ascending"):
        Spread(1.0, 3.0).quantiles([0.9, 0.1])


@pytest.mark.parametrize("degrees", [2.0, 4.0])
def test_scale_and_degrees_are_recovered(degrees):
    residuals = 0.05 * np.random.default_rng(1).standard_t(degrees, size=20_000)
    found = fit_spread(residuals, np.arange(len(residuals)))
    assert found.scale == pytest.approx(0.05, rel=0.03)
    assert found.degrees == pytest.approx(degrees, rel=0.02)


def test_fit_is_the_most_likely_of_its_degrees():
    residuals = 0.1 * np.random.default_rng(2).standard_t(3, size=300)
    found = fit_spread(residuals, np.arange(300))
    degrees = 1 / (1 / found.degrees - 1 / 300)
    densities = [stats.t.logpdf(residuals, degrees, 0, s).sum() for s in found.scale * STEPS]
    assert np.argmax(densities) == 1


STEPS = np.array([0.95, 1.0, 1.05])


def test_unit_of_the_residuals_does_not_matter():
    residuals = np.random.default_rng(3).standard_t(3, size=80)
    one, thousand = (fit_spread(residuals * f, np.arange(80) % 5) for f in (1, 1000))
    assert thousand.scale == pytest.approx(1000 * one.scale)
    assert thousand.degrees == one.degrees


def test_residuals_that_are_alike_in_groups_say_less():
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(5), 16)
    alike = rng.normal(size=5)[group] + 0.1 * rng.normal(size=80)
    assert fit_spread(alike, group).degrees < 0.6 * fit_spread(alike, np.arange(80)).degrees


@pytest.mark.parametrize("n", [12, 300, 10_000])
def test_few_residuals_leave_few_degrees(n):
    found = fit_spread(stats.norm.ppf((np.arange(n) + 0.5) / n), np.arange(n))
    assert found.degrees < n
    left = 1 / (1 / found.degrees - 1 / n)
    assert left == pytest.approx({12: 6, 300: 20, 10_000: 50}[n])  # of the fit itself


@pytest.mark.parametrize("residuals", [np.zeros(4), np.array([0.0, 0.0, 0.0, 1.0])])
def test_residuals_that_coincide_have_a_spread(residuals):
    found = fit_spread(residuals, np.zeros(4, dtype=np.int64))
    assert found.scale > 0
    assert np.isfinite(found.degrees)


def test_whole_models_and_whole_devices_are_left_out():
    found = left_out(names("A", "A", "B", "B"), names("x", "y", "x", "z"), seed=0)
    assert [out.tolist() for _, out in found["known"]] == [[0, 2], [1], [3]]
    assert [rows.tolist() for rows, _ in found["new"]] == [[2, 3], [0, 1]]


def test_many_groups_are_left_out_in_ten_folds():
    device = np.array([f"d{i % 37}" for i in range(200)], dtype=object)
    found = left_out(device, np.full(200, "", dtype=object), seed=0)["new"]
    assert found.fold.max() == 9
    for rows, out in found:
        assert not set(device[rows]) & set(device[out])
    assert found.group.max() == 36


def test_without_names_rows_are_left_out_at_random():
    nobody = np.full(20, "", dtype=object)
    one, other = left_out(nobody, nobody, seed=0), left_out(nobody, nobody, seed=1)
    assert one["known"] is one["new"]
    assert np.bincount(one["known"].fold).tolist() == [4] * 5
    assert one["known"].group.tolist() == list(range(20))
    assert (one["known"].fold != other["known"].fold).any()


def test_predictions_of_rows_left_out_come_from_other_rows():
    split = left_out(names("A", "B", "C"), names("", "", ""), seed=0)["new"]
    y = np.array([1.0, 2.0, 4.0])
    found = split.predict(lambda rows: lambda out: np.full(len(out), y[rows].sum()))
    assert found.tolist() == [6.0, 5.0, 3.0]


def test_effects_are_drawn_to_zero():
    residuals, device = np.array([0.3, 0.3, 0.1, 0.5]), names("A", "A", "B", "")
    assert shrunken_effects(residuals, device, rows=0.0) == {"A": 0.3, "B": 0.1}
    assert shrunken_effects(residuals, device, rows=2.0)["B"] == pytest.approx(0.1 / 3)
    assert shrunken_effects(residuals, device, rows=np.inf) == {"A": 0.0, "B": 0.0}


class TestSpreads:
    spreads = Spreads({"A": 0.1}, known=Spread(0.02, 4.0), new=Spread(0.05, 3.0))

    def test_new_devices_have_no_effect_and_their_own_spread(self):
        found = self.spreads.around(np.zeros(3), [0.5, 0.9], names("A", "B", ""))
        new = 0.05 * stats.t.ppf(0.9, 3)
        known = 0.1 + 0.02 * stats.t.ppf(0.9, 4)
        np.testing.assert_allclose(found, [[0.1, known], [0.0, new], [0.0, new]])

    def test_no_device_is_a_new_one(self):
        without = self.spreads.around(np.zeros(1), [0.9], None)
        assert without == self.spreads.around(np.zeros(1), [0.9], names("B"))

    def test_scale_of_each_run(self):
        found = self.spreads.around(np.ones(2), [0.9], None, np.array([1.0, 3.0]))[:, 0] - 1
        assert found[1] == pytest.approx(3 * found[0])

    def test_one_name_per_run(self):
        with pytest.raises(InputError, match=r"shape \(2,\), got \(1,\)"):
            self.spreads.around(np.zeros(2), [0.5], names("A"))

    def test_round_trip_through_json(self):
        meta = json.loads(json.dumps(self.spreads.to_meta()))
        again = Spreads.from_meta(meta)
        assert again.effects == self.spreads.effects
        assert (again.known, again.new) == (self.spreads.known, self.spreads.new)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"effects": [1]}, "effects must be one number per device"),
            ({"effects": {"A": "1"}}, "effects must be one number per device"),
            ({"effects": {"A": float("nan")}}, "effects must be one number per device"),
            ({"known": None}, "spread 'known'"),
            ({"new": {"scale": 0.0, "degrees": 3.0}}, "spread 'new'"),
            ({"new": {"scale": 1.0}}, "spread 'new'"),
        ],
    )
    def test_damaged_meta_is_refused(self, change, message):
        with pytest.raises(InputError, match=message):
            Spreads.from_meta(self.spreads.to_meta() | change)


def test_truth_values_are_no_numbers():
    assert not is_number(True)
    assert is_number(1)
