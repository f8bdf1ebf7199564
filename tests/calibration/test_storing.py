"""Contents of a file that do not make a model are refused, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.calibration.composition import Composition
from errcomp.calibration.fitted import CompositionModel
from errcomp.calibration.modelfile import ModelContent
from errcomp.calibration.storing import content_of, model_of
from errcomp.errors import InputError


@pytest.fixture(scope="module")
def model(runs_of: Any) -> CompositionModel:
    few = runs_of(("A100", "L4", "V100"), ("bert", "gpt2", "opt"))
    return Composition(estimators=("device",)).fit(few).model_


@pytest.fixture
def content(model: CompositionModel) -> ModelContent:
    return content_of(model, created="2026-01-31")


def without(name: str) -> Callable[[ModelContent], ModelContent]:
    return lambda c: replace(c, members=tuple(m for m in c.members if m.name != name))


def extra(**changed: Any) -> Callable[[ModelContent], ModelContent]:
    return lambda c: replace(c, extra={**c.extra, **changed})


def renamed(c: ModelContent) -> ModelContent:
    return replace(c, features=(replace(c.features[0], name="other"), *c.features[1:]))


def doubled(name: str, as_: str) -> Callable[[ModelContent], ModelContent]:
    return lambda c: replace(c, members=(*c.members, replace(c.member(name), name=as_)))


def narrower(c: ModelContent) -> ModelContent:
    at, first = next((i, f) for i, f in enumerate(c.features) if f.low is not None)
    changed = replace(first, high=first.high + 1)  # type: ignore[operator]
    return replace(c, features=(*c.features[:at], changed, *c.features[at + 1 :]))


def no_bands(c: ModelContent) -> ModelContent:
    return replace(c, conformal=({"estimator": "sum"},))


def test_what_is_taken_apart_is_put_together(content: ModelContent, runs_of: Any) -> None:
    found = model_of(content)
    assert found.estimators == ("sum", "global", "device", "linear")
    assert set(found.bands) == {
        (name, regime) for name in found.estimators for regime in ("device", "global")
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("linear"), "it lacks these fitted estimators: linear"),
        (without("training"), "it lacks the runs of the fit"),
        (doubled("device", "kernels"), "its part 'kernels' does not hold kernel corrections"),
        (renamed, "differ from the features of this version of errcomp"),
        (extra(estimators=["oracle"]), "unknown estimator 'oracle'"),
        (extra(typical_spread=-1.0), "typical_spread -1.0 is not a standard deviation"),
        (extra(typical_spread=None), "cannot be restored"),
        (extra(state={}), "settings of the features in this model are invalid"),
        (extra(estimators=["sum", "stack"], weights={}), "'device' is missing"),
        (
            extra(estimators=["sum", "stack"],
                  weights={r: {"bayesian": 0.7, "boosted": 0.7} for r in ("device", "global")}),
            "do not add up to 1, or one of them is negative",
        ),
        (
            extra(estimators=["sum", "stack"],
                  weights={r: {"bayesian": 0.5, "boosted": 0.5} for r in ("device", "global")}),
            "it lacks these fitted estimators: bayesian, boosted",
        ),
        (narrower, "the ranges of its features do not match the runs of its fit"),
        (doubled("device", "flagged"), "its part 'flagged' does not hold runs"),
        (no_bands, "'regime' is missing"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(content: ModelContent, change: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        model_of(change(content), source="gpu.errcomp")
    assert str(caught.value).startswith("gpu.errcomp: ")
    assert str(caught.value).endswith("Fit the model again.")


def test_weights_of_a_stack_come_back(content: ModelContent, model: CompositionModel) -> None:
    weights = {"device": {"bayesian": 0.25, "boosted": 0.75},
               "global": {"bayesian": 1.0, "boosted": 0.0}}  # fmt: skip
    members = {**model.members, "bayesian": model.members["linear"],
               "boosted": model.members["device"]}  # fmt: skip
    whole = replace(
        model,
        weights=weights,
        members=members,
        estimators=(*model.estimators, "stack"),
        held_out=None,
    )
    found = model_of(content_of(whole, created="2026-01-31"))
    assert found.weights == weights
    assert np.isclose(sum(found.weights["device"].values()), 1)


def test_numbers_that_no_fit_makes_are_refused_where_they_are_used(
    content: ModelContent, runs_of: Any
) -> None:
    new = runs_of(("L4",), ("bert",), seed=1)
    sound = model_of(content)
    expected = sound.predict(new, estimator="linear")
    said = "the model holds impossible numbers: predicting with it fails"

    def with_bands(apply: Any) -> CompositionModel:
        band = SimpleNamespace(by_category=False, apply=apply)
        return replace(sound, bands=dict.fromkeys(sound.bands, band))

    same = with_bands(lambda _, low, high, category: (low, high))
    assert np.array_equal(same.predict(new, estimator="linear").predicted, expected.predicted)
    for apply in (
        lambda _, low, high, category: (high, low),
        lambda _, low, high, category: (low - 1e3, high),
    ):
        with pytest.raises(InputError, match=said) as refused:
            with_bands(apply).predict(new, estimator="linear")
        assert str(refused.value) == (
            f"{said} (its bands are not positive and ascending). Fit the model again."
        )
    huge = SimpleNamespace(predict_quantiles=lambda x, q, device: 800 + np.tile(q, (len(x), 1)))
    with pytest.raises(InputError, match=rf"^{said} \(overflow encountered in exp\)\. Fit"):
        replace(sound, members={**sound.members, "linear": huge}).predict(new, estimator="linear")
