"""``boosted``: boosted trees around what physics says; `residual` fits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errcomp.calibration.estimators import Estimator

if TYPE_CHECKING:
    from errcomp.calibration.design import ResidualModel, Task


def _make(task: Task, *, seed: int, cores: int, quick: bool) -> ResidualModel:
    from errcomp.calibration.estimators.boosted.residual import BoostedResidual
    from errcomp.calibration.features import FEATURE_NAMES

    # Predicted kernels need not contain what launches cost: physics has no say.
    offset = FEATURE_NAMES.index("hidden_launches") if task == "composition" else None
    return BoostedResidual(offset=offset, seed=seed)


ESTIMATORS = (
    Estimator(
        "boosted",
        _make,
        by_default=True,
        stacked=True,
        needs=(("xgboost", "boost"), ("sklearn", "boost")),
        extra="calibration",
        recorded=("xgboost", "scikit-learn"),
        stored=("trees", "errcomp.calibration.estimators.boosted.trees", "TreeModel"),
    ),
)
