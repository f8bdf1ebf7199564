"""Parameters, checked input, and what models that predict from a portable have in common."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.calibration.design import QUANTILES, as_features, as_names, as_targets
from errcomp.calibration.estimators.linear.baselines import DeviceFactor, GlobalFactor, RobustLinear
from errcomp.errors import InputError

X = np.linspace(0, 1, 12)[:, None]
Y = np.sin(7 * X[:, 0]) / 10


class TestParameters:
    def test_are_the_arguments(self):
        assert RobustLinear(ridge=2.0).get_params() == {"ridge": 2.0, "degrees": 4.0}
        assert GlobalFactor().get_params(deep=False) == {}

    def test_can_be_set(self):
        model = RobustLinear()
        assert model.set_params(ridge=3.0) is model
        assert model.ridge == 3.0

    @pytest.mark.parametrize("model", [RobustLinear(), GlobalFactor()])
    def test_unknown_ones_are_named(self, model):
        with pytest.raises(InputError, match="no parameter 'lasso'. Parameters: (ridge|none)"):
            model.set_params(lasso=1.0)

    @pytest.mark.extras
    def test_scikit_learn_clones(self):
        base = pytest.importorskip("sklearn.base")
        assert base.clone(RobustLinear(ridge=5.0)).ridge == 5.0


class TestPredicting:
    model = DeviceFactor().fit(X, Y, device=["A"] * 6 + ["B"] * 6)

    def test_quantiles_by_default_and_ascending(self):
        found = self.model.predict_quantiles(X)
        assert found.shape == (12, len(QUANTILES))
        assert (np.diff(found, axis=1) > 0).all()

    def test_median_is_the_prediction(self):
        device = ["A", "B", "C"] * 4
        found = self.model.predict_quantiles(X, [0.1, 0.5], device=device)
        assert found[:, 1].tolist() == self.model.predict(X, device=device).tolist()

    def test_bands_are_quantiles(self):
        bands = self.model.predict_interval(X, [0.9, 0.5])
        assert bands.shape == (12, 2, 2)
        np.testing.assert_allclose(bands[:, :, 0], self.model.predict_quantiles(X, [0.05, 0.95]))
        np.testing.assert_allclose(bands[:, :, 1], self.model.predict_interval(X, 0.5))

    def test_one_level_has_two_columns(self):
        assert self.model.predict_interval(X).shape == (12, 2)

    @pytest.mark.parametrize("level", [0.0, 1.0, [0.5, 90], [], [[0.5]], float("nan")])
    def test_levels_are_between_0_and_1(self, level):
        with pytest.raises(InputError, match="level must be one or more numbers between 0 and 1"):
            self.model.predict_interval(X, level)

    def test_fit_comes_first(self):
        with pytest.raises(InputError, match="GlobalFactor is not fitted yet"):
            GlobalFactor().predict(X)

    def test_as_many_features_as_in_the_fit(self):
        with pytest.raises(InputError, match="X has 2 features, but DeviceFactor is expecting 1"):
            self.model.predict(np.zeros((3, 2)))

    def test_one_device_per_row(self):
        with pytest.raises(InputError, match=r"device must have one name per row of X"):
            self.model.predict(X, device=["A"])


class TestInput:
    @pytest.mark.parametrize(
        ("x", "message"),
        [
            ([["a"]], "features must be numbers"),
            ([[1j]], "Complex data not supported"),
            ([1.0, 2.0], r"got shape \(2,\)"),
            ([[1.0], [np.inf], [-np.inf]], "got inf in rows 1, 2"),
        ],
    )
    def test_features(self, x, message):
        with pytest.raises(InputError, match=message):
            as_features(x)

    def test_sparse_features(self):
        sparse = pytest.importorskip("scipy.sparse").csr_array([[1.0]])
        with pytest.raises(InputError, match=r"got a sparse one. Use X.toarray\(\)"):
            as_features(sparse)

    def test_unknown_features_are_left_to_the_model(self):
        assert np.isnan(as_features([[np.nan]])).all()

    @pytest.mark.parametrize(
        ("y", "rows", "message"),
        [
            (["a", "b"], 2, "log-ratios must be numbers"),
            (None, 2, "requires y to be passed"),
            ([1.0], 2, r"shape \(2,\), got \(1,\)"),
            ([1.0], 1, "n_samples=1"),
            ([1.0, np.nan, np.inf], 3, "got nan in rows 1, 2"),
        ],
    )
    def test_targets(self, y, rows, message):
        with pytest.raises(InputError, match=message):
            as_targets(y, rows)

    def test_names(self):
        assert as_names(None, 2, "device").tolist() == ["", ""]
        assert as_names(np.array([1, 2]), 2, "device").tolist() == ["1", "2"]
