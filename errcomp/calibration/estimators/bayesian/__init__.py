"""``bayesian``: a hierarchical model of launch costs; `residual` fits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from errcomp.calibration.estimators import Estimator

if TYPE_CHECKING:
    from errcomp.calibration.design import ResidualModel, Task

#: Features in addition to launches: few, because there are few runs.
_FEATURES = {
    "composition": ("slow_kernels", "training", "total_ms"),
    "prediction": ("training", "total_ms", "kernel_correction"),
}
#: Inside a cross-validation.
_QUICK: dict[str, Any] = {
    "draws": 300,
    "tune": 400,
    "chains": 2,
    "target_accept": 0.9,
    "check": "ignore",
}


def _features(task: Task) -> tuple[str, ...]:
    from errcomp.calibration.features import LAUNCHES

    return (*LAUNCHES, *_FEATURES[task])


def _make(task: Task, *, seed: int, n_jobs: int | None, quick: bool) -> ResidualModel:
    from errcomp.calibration.estimators.bayesian.residual import BayesianResidual
    from errcomp.calibration.features import LAUNCHES

    return BayesianResidual(
        launch=tuple(range(len(LAUNCHES))),
        offset=len(LAUNCHES) if task == "composition" else None,
        seed=seed,
        n_jobs=n_jobs,
        **(_QUICK if quick else {}),
    )


ESTIMATORS = (
    Estimator(
        "bayesian",
        _make,
        by_default=True,
        stacked=True,
        needs=(
            ("pymc", "bayes"),
            ("nutpie", "bayes"),
            ("arviz", "bayes"),
            ("sklearn", "calibration"),
        ),
        extra="calibration",
        recorded=("pymc", "nutpie"),
        features=_features,
        # Its messages name features.
        named=True,
        explains=True,
        stored=(
            "hierarchical",
            "errcomp.calibration.estimators.bayesian.hierarchical",
            "HierarchicalModel",
        ),
    ),
)
