"""Contents of a file that do not make a model are refused, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
