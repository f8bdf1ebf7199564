"""Former names of public modules, classes and functions; they work, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
else:
    Loader = object  # importlib.abc takes longer to import than the rest of this together

#: Subpackage → modules that were moved into it from the package above it.
_ROOMS = {
    "readers.core": "archives output registry sheet source",
    "readers.profilers": "jax kineto ncu nsys nvprof onnxruntime rocprof tracelens",
    "readers.simulators": (
        "accel_sim accelergy amali archgym gem5 gpgpu_sim llmcompass maestro paleo pytorchsim "
        "scale_sim sparseloop timeloop triosim"
    ),
    "readers.serving": "aiconfigurator blis echo frontier llmservingsim mlperf vidur",
    "readers.learned": "granite habitat help litepred neusight nn_meter survey tvm",
    "readers.collectives": "astra_sim chakra nccl_tests simai",
    "halflife.estimators": "decay expiry parametric pooled survival turnbull",
    "halflife.drift": "age trajectory variogram",
    "halflife.steps": "environment",
    "halflife.gate": "checking",
    "calibration.bands": "conformal exchangeability",
    "calibration.evaluation": "scoring splits",
    "propagation.errors": "components fitting reference_chain tails",
    "propagation.graph": "canonical maxima",
    "tables.memory": "history history_columns kernels pairs runs",
    "cli.commands": (
        "audit calibrate claims completion datasets doctor halflife history ingest join metrics "
        "predict propagate readers replicate report"
    ),
}
#: Former name of a module → current name.
_RENAMED = {
    "pytest_plugin": "cli.pytest_plugin",
    "calibration.devices": "datasets.devices",
    "calibration.baselines": "calibration.estimators.linear.baselines",
    "calibration.bayesian": "calibration.estimators.bayesian.residual",
    "calibration.boosted": "calibration.estimators.boosted.residual",
    "calibration.forest": "calibration.estimators.boosted.trees",
    "calibration.hierarchical": "calibration.estimators.bayesian.hierarchical",
    "calibration.linear": "calibration.estimators.linear.baselines",
    "calibration.members": "calibration.estimators",
    "calibration.modelfile.arrays": "calibration.modelfile.container",
    "calibration.modelfile.hashing": "calibration.modelfile",
    "calibration.modelfile.units": "calibration.modelfile",
    "calibration.modelfile.manifest": "calibration.modelfile",
    "calibration.modelfile.storing": "calibration.modelfile",
    "calibration.nesting": "calibration.composition",
    "calibration.stacking": "calibration.evaluation.scoring",
    "calibration.training": "calibration.fitted",
    "calibration.trees": "calibration.estimators.boosted.trees",
    "calibration.unlike": "calibration.fitted",
    "readers.ingesting": "readers.core.ingest",
    "readers.listing": "readers.core.registry",
    "halflife.series_half_life": "halflife.estimators.expiry",
    "halflife.estimators.series": "halflife.estimators.expiry",
    "halflife.accelerated": "halflife.estimators.parametric",
    "halflife.estimators.accelerated": "halflife.estimators.parametric",
    "halflife.carried": "halflife.carried_over",
    "readers.names": "readers.joining",
    "readers.survey_runs": "readers.learned.survey",
    "halflife.outlook": "halflife.forecast",
    "calibration.kernel_corrections": "calibration.kernels",
    "propagation.assumptions": "propagation.errors.components",
    "propagation.errormodel": "propagation.errors",
    "propagation.given": "propagation.errors",
    "propagation.graph.algebra": "propagation.graph",
    "propagation.graph.fixed": "propagation.graph.nodes",
    "propagation.graph.prediction": "propagation.graph.document",
    "halflife.design": "halflife.panel",
    "halflife.recalibration": "halflife.gate.checking",
    "halflife.study": "halflife.fitting",
    "drivers.multiple": "stats.significance",
    "report.audit_figures": "claims.view.figures",
    "report.calibration_figures": "calibration.view.figures",
    "report.documents": "documents",
    "report.figures": "propagation.view.figures",
    "report.halflife_figures": "halflife.view.figures",
    "scale": "tables.engine",
    "scale.auditing": "claims.auditing",
    "scale.history": "tables.engine.history",
    "scale.kernels": "tables.engine.kernels",
    "scale.pair_totals": "tables.engine.pairs",
    "scale.pairs": "tables.engine.pairs",
    "scale.scanning": "tables.engine.scanning",
    "scale.summary": "summary",
    "tables.dates": "tables.columns",
    "tables.kernel_columns": "tables.memory.kernels",
    "caveats.totals": "caveats.comparisons",
    "caveats.units": "caveats.sample",
    "claims.search.bits": "claims.search.lattice",
    "claims.search.configurations": "claims.search.keys",
    "claims.search.edges": "claims.search.rules",
    "claims.search.null": "claims.search.chance",
    "claims.search.results": "claims.search",
    "claims.search.subsets": "claims.search.scan",
    "claims.search.search": "claims.search",
    "claims.replicate.coverage": "claims.replicate.judgements",
    "claims.replicate.levels": "claims.replicate.neusight",
    "claims.replicate.published": "claims.replicate.neusight",
    "claims.replicate.results": "claims.replicate.judging",
    "claims.replicate.rules": "claims.replicate.neusight",
    "claims.replicate.timeloop": "claims.replicate.runs",
    "metrics.aggregate": "metrics",
    "metrics.intervals.correlations": "metrics.intervals.direct",
    "metrics.signed": "metrics.moments",
    "metrics.squared": "metrics.moments",
    "datasets.neusight_kernels": "datasets.neusight",
    "datasets.ort_cpu": "datasets.measured",
    "datasets.ort_releases": "datasets.measured",
    "datasets.torch_cpu": "datasets.measured",
}
#: Former module → its functions, which are now in several modules → their current names.
_SPLIT = {
    "errcomp.report.result_figures": {
        "cells": "claims.view.replication.cells",
        "contrasts": "drivers.view.contrasts",
        "forecast": "halflife.view.curves.forecast",
        "matches": "claims.view.search.matches",
        "predictions": "calibration.view.predictions.predictions",
        "shifts": "halflife.view.check.shifts",
        "summary": "summary.view.summary_figure",
    },
    "errcomp.report.showing": {
        "html": "report.shown.Shown._repr_html_",
        "plot": "report.shown.Shown.plot",
        "text": "report.shown.Shown.__str__",
    },
}
#: Module → former names of its classes and functions → their current names.
_NAMES = {
    "errcomp.halflife.forecast": {
        "GroupOutlook": "GroupForecast",
        "Outlook": "HalfLifeForecast",
        "outlook": "forecast_half_life",
    },
    "errcomp.halflife.gate.checking": {"Checked": "ValidationCheck"},
}
_TODAY = {f"errcomp.{old}": f"errcomp.{new}" for old, new in _RENAMED.items()} | {
    f"errcomp.{room.rpartition('.')[0]}.{name}": f"errcomp.{room}.{name}"
    for room, names in _ROOMS.items()
    for name in names.split()
}


class _Alias(Loader):
    """Finds a module under its former name."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _NAMES:
            spec = PathFinder.find_spec(fullname, path)
            if spec is not None and isinstance(spec.loader, SourceFileLoader):
                spec.loader = _OldNames(fullname, spec.loader.path)
            return spec
        return ModuleSpec(fullname, self) if fullname in _TODAY or fullname in _SPLIT else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name in _SPLIT:
            return _parts(spec.name)
        today = _TODAY[spec.name]
        warnings.warn(f"{spec.name} is now {today}", DeprecationWarning, stacklevel=2)
        module = import_module(today)
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # Python's import system has set the spec of the old name.
        assert module.__spec__ is not None
        if module.__spec__.name in _SPLIT:
            return
        module.__spec__ = self._specs.pop(module.__spec__.name)


class _OldNames(SourceFileLoader):
    """Loads a module whose classes and functions can also be accessed by their former names."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        assert "__getattr__" not in vars(module)  # it would be overwritten
        vars(module)["__getattr__"] = partial(_renamed, module)


def _renamed(module: ModuleType, name: str) -> Any:
    """Return an attribute of a module, by its former name."""
    place = module.__name__
    if name not in _NAMES[place]:
        raise AttributeError(f"module {place!r} has no attribute {name!r}", name=name, obj=module)
    today = _NAMES[place][name]
    warnings.warn(f"{place}.{name} is now {today}", DeprecationWarning, stacklevel=2)
    return getattr(module, today)


def _parts(name: str) -> ModuleType:
    """Return a module of functions that are now in several modules."""
    warnings.warn(f"{name} is deprecated: call .plot() of a result instead", DeprecationWarning, 2)
    module = ModuleType(name)
    for function, today in _SPLIT[name].items():
        setattr(module, function, resolve_name(f"errcomp.{today}"))
    return module


def install() -> None:
    """Make imports of former names work."""
    if not any(isinstance(finder, _Alias) for finder in sys.meta_path):
        # Insert first: otherwise the modules of a moved package would be imported under both names.
        sys.meta_path.insert(0, _Alias())
