"""Names of estimators, and what each sees."""

from __future__ import annotations

import re

import pytest

from errcomp.calibration.estimators.members import (
    ESTIMATORS,
    FEATURE_NAMES,
    check_estimators,
    columns_of,
    fit_member,
    seen_by,
)
from errcomp.errors import InputError


def test_estimators_come_in_order_each_once() -> None:
    assert check_estimators(["stack", "sum", "stack"]) == ("sum", "stack")
    assert check_estimators(ESTIMATORS) == ESTIMATORS


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["oracle"], "unknown estimator 'oracle'. Known: sum, global"),
        (["a", "sum", "b"], "unknown estimators 'a', 'b'. Known"),
        ([], "unknown estimator"),
    ],
)
def test_unknown_estimators_are_named(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        check_estimators(names)


def test_what_estimators_see() -> None:
    assert columns_of("boosted", "prediction") == tuple(range(len(FEATURE_NAMES)))
    assert [FEATURE_NAMES[i] for i in columns_of("bayesian", "composition")][:5] == [
        "launch_idle",
        "launch_work",
        "launch_work_training",
        "run_start",
        "slow_kernels",
    ]
    assert seen_by("device", "prediction") == ()
    assert seen_by("linear", "prediction") == columns_of("linear", "prediction")
    assert seen_by("stack", "prediction") == seen_by("boosted", "prediction")


@pytest.mark.parametrize("name", ["sum", "global", "device", "linear"])
def test_baselines_are_fitted(runs_of, name: str) -> None:
    from errcomp.calibration.features import design

    found = design(runs_of(), task="composition")
    model = fit_member(name, found, seed=0, cores=1)
    x = found.x[:, columns_of(name, "composition")]
    said = model.predict(x, device=found.device)
    assert said.shape == (40,)
    assert (said == 0).all() == (name == "sum")
