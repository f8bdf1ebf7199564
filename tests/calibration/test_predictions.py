"""Quantiles that agree with calibrated bands, and rows for people and machines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.predictions import Predictions, between_levels
from errcomp.errors import InputError


def ends(sign: int) -> list[int]:
    return [QUANTILES.index(round(0.5 + sign * level / 2, 3)) for level in LEVELS]


def normal(n: int) -> np.ndarray:
    scale = np.linspace(0.5, 2, n)[:, None]
    return 1 + scale * stats.norm.ppf(np.asarray(QUANTILES))


def test_quantiles_at_the_ends_of_bands_become_these_ends() -> None:
    raw = normal(5)
    low, high = raw[:, ends(-1)] - 0.3, raw[:, ends(1)] * 2
    median = raw[:, QUANTILES.index(0.5)]
    found = between_levels(low, high, raw)
    np.testing.assert_allclose(found[:, ends(-1)], low)
    np.testing.assert_allclose(found[:, ends(1)], high)
    np.testing.assert_allclose(found[:, QUANTILES.index(0.5)], median)
    assert (np.diff(found, axis=1) >= 0).all()


def test_bands_of_the_model_leave_its_quantiles_as_they_are() -> None:
    raw = normal(3)
    same = between_levels(raw[:, ends(-1)], raw[:, ends(1)], raw)
    np.testing.assert_allclose(same, raw, atol=1e-12)


def test_a_model_without_spread_gets_that_of_the_bands() -> None:
    raw = np.ones((2, len(QUANTILES)))
    low, high = 1 - np.outer([1, 2], LEVELS), 1 + np.outer([1, 2], LEVELS)
    found = between_levels(low, high, raw)
    np.testing.assert_allclose(found[:, ends(1)], high)
    assert (np.diff(found, axis=1) >= 0).all()


def made() -> Predictions:
    two = np.array([1.0, 2.0])
    return Predictions(
        run=np.array(["a", "b"], dtype=object),
        total=two,
        predicted=2 * two,
        low=two[:, None] * [1.8, 1.6, 1.5, 1.2],
        high=two[:, None] * [2.2, 2.4, 2.5, 2.8],
        quantiles=np.outer(two, np.linspace(1, 3, len(QUANTILES))),
        parts={"launches": -0.1 * two, "other": 1.1 * two},
        fallback=np.array(["device", "global"], dtype=object),
        calibrated=np.array([True, False]),
        warnings=((), ("device 'x' was not in the fit",)),
        estimator="device",
        unit="ms",
    )


def test_rows_have_bands_parts_and_warnings() -> None:
    found = made()
    assert len(found) == 2
    row = found.rows()[1]
    assert row["run"] == "b"
    assert row["predicted"] == 4
    assert (row["low_90"], row["high_95"]) == (3.0, 5.6)
    assert row["total"] + sum(row["parts"].values()) == pytest.approx(row["predicted"])
    assert row["calibrated"] is False
    assert row["warnings"] == ["device 'x' was not in the fit"]
    assert found.relative_width == pytest.approx([0.5, 0.5])
    assert found.band(0.5)[0].tolist() == [1.8, 3.6]


def test_runs_with_wide_bands_are_left_out_with_the_reason() -> None:
    found = made()
    found = replace(found, high=found.high + np.array([[0.0], [1.2]]))
    assert found.relative_width == pytest.approx([0.5, 0.8])
    sure, unsure = found.at_most(0.5)
    assert sure.run.tolist() == ["a"]
    assert unsure == {"b": "its 90 % band is wider than 50 % of the prediction (80 %)"}
    assert len(found.at_most(1)[0]) == 2
    for width in (0.0, -0.1, np.nan):
        with pytest.raises(InputError) as refused:
            found.at_most(width)
        assert str(refused.value) == (
            f"the largest width must be above 0, got {width!r}. Write 20% or 0.2."
        )
    with pytest.raises(InputError) as none:
        found.at_most(0.125)
    assert str(none.value) == (
        "the 90 % band of every run is wider than 12.5 % of its prediction (narrowest: 50 %). "
        "Allow wider bands (--max-width), or measure runs on their device (errcomp plan runs "
        "chooses them) and adapt the model to them."
    )
