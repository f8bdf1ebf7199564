"""Metrics as scorers of scikit-learn: sign, values, refusals."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from errcomp.errors import InputError, MissingExtraError
from errcomp.metrics import FIGURES, mape, scorer

pytestmark = pytest.mark.extras

UPWARD = {"r2", "pearson", "spearman", "kendall", "within_5", "within_10", "within_20"}


@pytest.fixture
def sample() -> tuple[np.ndarray, np.ndarray]:
    """Times that follow two features, with 5 % noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(1.0, 4.0, (60, 2))
    return x, (3.0 + x @ [2.0, 1.0]) * np.exp(rng.normal(0.0, 0.05, 60))


def score_of(name: str, predicted: list[float], measured: list[float], **options: Any) -> float:
    """Score a model whose predictions are the first feature."""
    base = pytest.importorskip("sklearn.base")

    class First(base.RegressorMixin, base.BaseEstimator):  # type: ignore[misc]
        def predict(self, x: Any) -> Any:
            return x[:, 0]

    return scorer(name)(First(), np.c_[predicted], np.array(measured), **options)


def test_cross_validation_gives_minus_the_metric_of_each_fold(sample: Any) -> None:
    model = pytest.importorskip("sklearn.linear_model").LinearRegression()
    selection = pytest.importorskip("sklearn.model_selection")
    x, y = sample
    folds = selection.KFold(3)
    scores = selection.cross_val_score(model, x, y, cv=folds, scoring=scorer("mape"))
    expected = [
        -mape(predicted=model.fit(x[a], y[a]).predict(x[b]), measured=y[b])
        for a, b in folds.split(x)
    ]
    assert scores == pytest.approx(expected, rel=1e-12)
    assert np.all(scores > -0.08)


@pytest.mark.parametrize("name", ["mape", "r2", "bias"])
def test_a_search_prefers_the_better_model(sample: Any, name: str) -> None:
    ridge = pytest.importorskip("sklearn.linear_model").Ridge()
    selection = pytest.importorskip("sklearn.model_selection")
    # An enormous penalty, without an intercept, predicts next to nothing.
    ridge.set_params(fit_intercept=False)
    grid = {"alpha": [1e9, 1e-3]}
    search = selection.GridSearchCV(ridge, grid, scoring=scorer(name), cv=3, n_jobs=1)
    assert search.fit(*sample).best_params_ == {"alpha": 1e-3}


@pytest.mark.parametrize("name", FIGURES)
def test_a_perfect_prediction_has_the_best_score(name: str) -> None:
    pytest.importorskip("sklearn")
    measured = [1.0, 2.0, 4.0, 8.0]
    best = 1.0 if name in UPWARD else 0.0
    worse = score_of(name, [3.0, 1.0, 3.0, 4.0], measured)
    assert score_of(name, measured, measured) == pytest.approx(best, abs=1e-12)
    assert worse < best
    assert (scorer(name)._sign == 1) == (name in UPWARD)  # type: ignore[attr-defined]


def test_a_metric_with_a_sign_counts_in_both_directions() -> None:
    pytest.importorskip("sklearn")
    for factor in (1.25, 0.8):
        assert score_of("gm_ratio", [factor, factor], [1.0, 1.0]) == pytest.approx(-math.log(1.25))
        assert score_of("bias", [factor, factor], [1.0, 1.0]) == pytest.approx(-abs(factor - 1))
        assert score_of("total_error", [factor], [1.0]) == pytest.approx(-abs(factor - 1))


def test_weights_are_those_of_the_metric() -> None:
    pytest.importorskip("sklearn")
    weighted = score_of("mape", [1.1, 1.4], [1.0, 1.0], sample_weight=[3.0, 1.0])
    assert weighted == pytest.approx(-0.175)
    with pytest.raises(InputError, match="kendall takes no weights. Leave sample_weight out"):
        score_of("kendall", [1.0, 2.0], [1.0, 3.0], sample_weight=[1.0, 1.0])


def test_an_unknown_metric_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="no metric 'mapee'. Did you mean 'mape'"):
        scorer("mapee")


def test_measurements_that_are_not_positive_are_refused(sample: Any) -> None:
    model = pytest.importorskip("sklearn.linear_model").LinearRegression()
    selection = pytest.importorskip("sklearn.model_selection")
    with pytest.raises(InputError, match="measured must be"):
        score_of("mape", [1.0, 2.0], [1.0, -2.0])
    with pytest.raises(InputError, match="predicted must be positive for a logarithm"):
        score_of("rmsle", [1.0, -2.0], [1.0, 2.0])
    x, y = sample
    with pytest.raises(InputError, match="measured must be"):
        selection.cross_val_score(model, x, -y, scoring=scorer("mape"), error_score="raise")


def test_without_scikit_learn_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    with pytest.raises(MissingExtraError, match=r"needs scikit-learn.*errcomp\[boost\]"):
        scorer("mape")
