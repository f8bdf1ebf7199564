"""``boosted``: boosted trees around a physical offset; `residual` fits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errcomp.calibration.estimators import Estimator

if TYPE_CHECKING:
    from errcomp.calibration.design import ResidualModel, Task


def _make(task: Task, *, seed: int, n_jobs: int | None, quick: bool) -> ResidualModel:
    from errcomp.calibration.estimators.boosted.residual import BoostedResidual
    from errcomp.calibration.features import FEATURE_NAMES

    # Predicted kernels may lack launch costs, so there is no physical offset.
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
