"""``sum``, ``global``, ``device`` and ``linear``: the baselines of a model of runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from errcomp.calibration.estimators import Estimator

if TYPE_CHECKING:
    from errcomp.calibration.design import ResidualModel, Task

_BASELINES = "errcomp.calibration.estimators.linear.baselines"


def _features(task: Task) -> tuple[str, ...]:
    from errcomp.calibration.features import KERNEL_LAUNCHES

    if task == "composition":
        return (*KERNEL_LAUNCHES, "slow_kernels", "total_ms")
    return (*KERNEL_LAUNCHES, "total_ms", "kernel_correction")


def _make(kind: str, task: Task, *, seed: int, n_jobs: int | None, quick: bool) -> ResidualModel:
    from errcomp.calibration.estimators.linear import baselines

    made: ResidualModel = getattr(baselines, kind)()
    return made


def _baseline(name: str, kind: str, *, looks: bool = False) -> Estimator:
    return Estimator(
        name,
        partial(_make, kind),
        role="baseline",
        features=_features if looks else None,
        looks=looks,
        stored=("linear", _BASELINES, "LinearModel"),
    )


ESTIMATORS = (
    _baseline("sum", "SumOfKernels"),
    _baseline("global", "GlobalFactor"),
    _baseline("device", "DeviceFactor"),
    _baseline("linear", "RobustLinear", looks=True),
)
