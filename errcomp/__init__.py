"""Tells how wrong a performance prediction is, why, and whether the published figure is true."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from errcomp._moved import install

if TYPE_CHECKING:
    from errcomp import calibration as calibration
    from errcomp import caveats as caveats
    from errcomp import claims as claims
    from errcomp import datasets as datasets
    from errcomp import decisions as decisions
    from errcomp import documents as documents
    from errcomp import drivers as drivers
    from errcomp import errors as errors
    from errcomp import halflife as halflife
    from errcomp import measurements as measurements
    from errcomp import metrics as metrics
    from errcomp import propagation as propagation
    from errcomp import readers as readers
    from errcomp import report as report
    from errcomp import results as results
    from errcomp import summary as summary
    from errcomp import tables as tables
    from errcomp.calibration.composition import Composition as Composition
    from errcomp.claims.auditing import audit as audit
    from errcomp.claims.replicate import replicate_survey as replicate_survey
    from errcomp.claims.search import search_claim as search_claim
    from errcomp.datasets import load as load
    from errcomp.decisions import compare as compare
    from errcomp.documents import read_result as read_result
    from errcomp.drivers import error_drivers as error_drivers
    from errcomp.halflife.fitting import half_life as half_life
    from errcomp.propagation.propagating import propagate as propagate
    from errcomp.propagation.wrapping import wrap as wrap
    from errcomp.readers import read as read
    from errcomp.results import Caveat as Caveat
    from errcomp.results import Estimate as Estimate
    from errcomp.summary import summarize as summarize
    from errcomp.system.limits import limits as limits
    from errcomp.tables import History as History
    from errcomp.tables import Kernels as Kernels
    from errcomp.tables import Pairs as Pairs
    from errcomp.tables import Runs as Runs
    from errcomp.tables.engine.scanning import scan as scan

__version__ = "0.2.0"

install()

#: Public names and the module each lives in; imported at first use: `import errcomp` is quick.
_HOMES = {
    "Caveat": "errcomp.results",
    "Composition": "errcomp.calibration.composition",
    "Estimate": "errcomp.results",
    "History": "errcomp.tables",
    "Kernels": "errcomp.tables",
    "Pairs": "errcomp.tables",
    "Runs": "errcomp.tables",
    "audit": "errcomp.claims.auditing",
    "compare": "errcomp.decisions",
    "error_drivers": "errcomp.drivers",
    "half_life": "errcomp.halflife.fitting",
    "limits": "errcomp.system.limits",
    "load": "errcomp.datasets",
    "propagate": "errcomp.propagation.propagating",
    "read": "errcomp.readers",
    "read_result": "errcomp.documents",
    "replicate_survey": "errcomp.claims.replicate",
    "scan": "errcomp.tables.engine.scanning",
    "search_claim": "errcomp.claims.search",
    "summarize": "errcomp.summary",
    "wrap": "errcomp.propagation.wrapping",
}
_MODULES = (
    *("calibration", "caveats", "claims", "datasets", "decisions", "documents", "drivers"),
    *(
        "errors",
        "halflife",
        "measurements",
        "metrics",
        "propagation",
        "readers",
        "report",
        "results",
        "summary",
        "tables",
    ),
)

__all__ = [*_HOMES, *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"errcomp.{name}")
    raise AttributeError(f"module 'errcomp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
