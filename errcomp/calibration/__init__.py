"""Predicts the time of a run from the sum of its kernels, with calibrated bands.

`Composition` fits a model of runs to a table of kernels and predicts other runs.
`evaluate_composition` evaluates it on held-out models and devices. `save_model` and `load_model`
keep it in a file that predicts without the libraries of the fit. `adapt_model` adapts it to a
device by a few measured runs, which `plan_runs` chooses. `KernelCorrection` corrects
predicted kernels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from errcomp.calibration.bands.conformal import GroupConformal as GroupConformal
    from errcomp.calibration.bands.exchangeability import errors_exchangeable as errors_exchangeable
    from errcomp.calibration.bands.exchangeability import (
        features_exchangeable as features_exchangeable,
    )
    from errcomp.calibration.composition import Composition as Composition
    from errcomp.calibration.estimators import BASELINES as BASELINES
    from errcomp.calibration.estimators.bayesian.residual import (
        BayesianResidual as BayesianResidual,
    )
    from errcomp.calibration.estimators.boosted.residual import BoostedResidual as BoostedResidual
    from errcomp.calibration.evaluation import Evaluation as Evaluation
    from errcomp.calibration.evaluation import evaluate as evaluate
    from errcomp.calibration.evaluation.composed import evaluate_composition as evaluate_composition
    from errcomp.calibration.features import FEATURES as FEATURES
    from errcomp.calibration.fitted import CompositionModel as CompositionModel
    from errcomp.calibration.kernels import CorrectedKernels as CorrectedKernels
    from errcomp.calibration.kernels import KernelCorrection as KernelCorrection
    from errcomp.calibration.plausibility import Plausibility as Plausibility
    from errcomp.calibration.plausibility import check_runs as check_runs
    from errcomp.calibration.predictions import Predictions as Predictions
    from errcomp.calibration.storing import load_model as load_model
    from errcomp.calibration.storing import save_model as save_model
    from errcomp.calibration.transfer.adaptation import Adaptation as Adaptation
    from errcomp.calibration.transfer.adaptation import adapt_model as adapt_model
    from errcomp.calibration.transfer.choosing import RunPlan as RunPlan
    from errcomp.calibration.transfer.choosing import plan_runs as plan_runs

#: Public names and the module each lives in; imported at first use.
_HOMES = {
    "Adaptation": "transfer.adaptation",
    "BASELINES": "estimators",
    "BayesianResidual": "estimators.bayesian.residual",
    "BoostedResidual": "estimators.boosted.residual",
    "Composition": "composition",
    "CompositionModel": "fitted",
    "CorrectedKernels": "kernels",
    "Evaluation": "evaluation",
    "FEATURES": "features",
    "GroupConformal": "bands.conformal",
    "KernelCorrection": "kernels",
    "Plausibility": "plausibility",
    "Predictions": "predictions",
    "check_runs": "plausibility",
    "adapt_model": "transfer.adaptation",
    "errors_exchangeable": "bands.exchangeability",
    "evaluate": "evaluation",
    "evaluate_composition": "evaluation.composed",
    "RunPlan": "transfer.choosing",
    "plan_runs": "transfer.choosing",
    "features_exchangeable": "bands.exchangeability",
    "load_model": "storing",
    "save_model": "storing",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"errcomp.calibration.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'errcomp.calibration' has no attribute {name!r}")
