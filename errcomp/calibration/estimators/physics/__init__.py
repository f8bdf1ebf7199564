"""``physics``: launch costs, the host that issues them, and devices; `residual` fits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from errcomp.calibration.estimators import Estimator

if TYPE_CHECKING:
    from errcomp.calibration.design import ResidualModel, Task


def _features(task: Task) -> tuple[str, ...]:
    from errcomp.calibration.features import HOST, LAUNCHES

    offset = "slow_kernels" if task == "composition" else "kernel_correction"
    return (*LAUNCHES, "launch_matmul", *HOST, offset)


def _make(task: Task, *, seed: int, n_jobs: int | None, quick: bool) -> ResidualModel:
    from errcomp.calibration.estimators.physics.residual import PhysicsResidual
    from errcomp.calibration.features import HOST, LAUNCHES

    costs = len(LAUNCHES) + 1
    host = tuple(range(costs, costs + len(HOST)))
    made = PhysicsResidual(launch=tuple(range(costs)), host=host, offset=costs + len(HOST))
    return cast("ResidualModel", made)


ESTIMATORS = (
    Estimator(
        "physics",
        _make,
        features=_features,
        stacked=True,
        explains=True,
        stored=("physics", "errcomp.calibration.estimators.physics.model", "PhysicsModel"),
    ),
)
