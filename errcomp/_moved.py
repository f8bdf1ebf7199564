"""Names that public modules had before they stood in rooms: they still import, with a warning."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Room → modules that stood in the package beside it.
_ROOMS = {
    "readers.core": "archives output registry sheet source",
    "readers.profilers": "jax kineto ncu nsys nvprof onnxruntime rocprof tracelens",
    "readers.simulators": (
        "accel_sim accelergy amali archgym gem5 gpgpu_sim llmcompass maestro paleo pytorchsim "
        "scale_sim sparseloop timeloop triosim"
    ),
    "readers.serving": "aiconfigurator blis echo frontier llmservingsim mlperf vidur",
    "readers.learned": "granite habitat help litepred neusight nn_meter survey survey_runs tvm",
    "readers.collectives": "astra_sim chakra nccl_tests simai",
    "halflife.estimators": "accelerated decay expiry parametric pooled survival turnbull",
    "halflife.drift": "age trajectory variogram",
    "halflife.steps": "environment",
    "halflife.gate": "checking recalibration",
    "calibration.estimators": (
        "baselines boosted forest hierarchical linear members spread stacking trees"
    ),
    "calibration.bands": "conformal exchangeability unlike",
    "calibration.evaluation": "nesting scoring splits",
    "propagation.errors": "assumptions components fitting given reference_chain tails",
    "propagation.graph": "canonical maxima",
}
#: Modules that have another name today.
_RENAMED = {
    "calibration.bayesian": "calibration.estimators.bayesian.residual",
    "readers.ingesting": "readers.core.ingest",
    "halflife.series_half_life": "halflife.estimators.series",
    "halflife.outlook": "halflife.forecast",
    "calibration.kernel_corrections": "calibration.kernels",
    "propagation.errormodel": "propagation.errors.model",
    "halflife.design": "halflife.panel",
    "drivers.multiple": "stats.multiple",
}
_TODAY = {f"errcomp.{old}": f"errcomp.{new}" for old, new in _RENAMED.items()} | {
    f"errcomp.{room.rpartition('.')[0]}.{name}": f"errcomp.{room}.{name}"
    for room, names in _ROOMS.items()
    for name in names.split()
}


class _Alias(MetaPathFinder, Loader):
    """Finds a module under the name that it had."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in _TODAY else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        today = _TODAY[spec.name]
        warnings.warn(f"{spec.name} is now {today}", DeprecationWarning, stacklevel=2)
        module = import_module(today)
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The machinery has put the spec of the old name into the module.
        assert module.__spec__ is not None  # put there just now
        module.__spec__ = self._specs.pop(module.__spec__.name)


def install() -> None:
    """Let old names import; where a module is found otherwise, it is not asked."""
    if not any(isinstance(finder, _Alias) for finder in sys.meta_path):
        sys.meta_path.append(_Alias())
