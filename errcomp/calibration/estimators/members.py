"""The models that can be fitted to a design, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from errcomp.calibration.design import Design, ResidualModel, Task
from errcomp.calibration.features import FEATURES, KERNEL_LAUNCHES, LAUNCHES
from errcomp.errors import InputError, offer

__all__ = [
    "BASELINES",
    "ESTIMATORS",
    "FEATURE_NAMES",
    "MEMBERS",
    "check_estimators",
    "columns_of",
    "fit_member",
    "seen_by",
]

#: Not fitted to features: what a model has to beat.
BASELINES = ("sum", "global", "device", "linear")
#: Models that are fitted; ``stack`` weighs these.
MEMBERS = ("bayesian", "boosted")
ESTIMATORS = (*BASELINES, *MEMBERS, "stack")

#: Of the columns of a design.
FEATURE_NAMES = tuple(feature.name for feature in FEATURES)
#: What models with a form of their own see: few features, for there are few runs.
_CHOSEN: dict[tuple[str, Task], tuple[str, ...]] = {
    ("bayesian", "composition"): (*LAUNCHES, "slow_kernels", "training", "total_ms"),
    ("bayesian", "prediction"): (*LAUNCHES, "training", "total_ms", "kernel_correction"),
    ("linear", "composition"): (*KERNEL_LAUNCHES, "slow_kernels", "total_ms"),
    ("linear", "prediction"): (*KERNEL_LAUNCHES, "total_ms", "kernel_correction"),
}


def check_estimators(names: Sequence[str]) -> tuple[str, ...]:
    """Return the estimators in order, each once.

    Raises
    ------
    InputError
        A name is not known; the message lists those that are.
    """
    unknown = [name for name in names if name not in ESTIMATORS]
    if unknown or not names:
        raise InputError(
            f"unknown estimator{'s' if len(unknown) > 1 else ''} {', '.join(map(repr, unknown))}. "
            f"{offer('Known', ESTIMATORS, wanted=''.join(unknown[:1]))}."
        )
    return tuple(name for name in ESTIMATORS if name in names)


def columns_of(name: str, task: Task) -> tuple[int, ...]:
    """Return the columns of the design that a model sees."""
    chosen = _CHOSEN.get((name, task), FEATURE_NAMES)
    return tuple(FEATURE_NAMES.index(column) for column in chosen)


def seen_by(estimator: str, task: Task) -> tuple[int, ...]:
    """Return the columns of the design that what an estimator says depends on."""
    if estimator in ("sum", "global", "device"):
        return ()
    return columns_of("boosted" if estimator == "stack" else estimator, task)


def fit_member(
    name: str, design: Design, *, seed: int, cores: int, quick: bool = False
) -> ResidualModel:
    """Fit one model (not ``stack``) to a design.

    Parameters
    ----------
    quick : bool
        In a cross-validation inside a fit: fewer draws, diagnostics not insisted on.
    """
    columns = columns_of(name, design.task)
    x: Any = design.x[:, columns]
    if name == "bayesian":
        # It says by name which features say nothing.
        import polars as pl

        x = pl.DataFrame(x, schema=[FEATURE_NAMES[column] for column in columns])
    known: dict[str, Any] = {"device": design.device, "model": design.model}
    return _made(name, design.task, seed, cores, quick).fit(x, design.log_ratio, **known)


def _made(name: str, task: Task, seed: int, cores: int, quick: bool) -> ResidualModel:
    if name == "bayesian":
        from errcomp.calibration.estimators.bayesian.residual import BayesianResidual

        short: dict[str, Any] = {"draws": 300, "tune": 400, "chains": 2, "check": "ignore"}
        # Columns come in the order of `_CHOSEN`.
        return BayesianResidual(
            launch=tuple(range(len(LAUNCHES))),
            offset=len(LAUNCHES) if task == "composition" else None,
            seed=seed,
            cores=cores,
            **(short if quick else {}),
        )
    if name == "boosted":
        from errcomp.calibration.estimators.boosted import BoostedResidual

        # Predicted kernels need not contain what launches cost: physics has no say.
        offset = FEATURE_NAMES.index("hidden_launches") if task == "composition" else None
        return BoostedResidual(offset=offset, seed=seed)
    from errcomp.calibration.estimators import baselines

    kinds: dict[str, Any] = {
        "sum": baselines.SumOfKernels,
        "global": baselines.GlobalFactor,
        "device": baselines.DeviceFactor,
        "linear": baselines.RobustLinear,
    }
    made: ResidualModel = kinds[name]()
    return made
