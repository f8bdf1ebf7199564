"""Propagates errors of kernels to a sum, an iteration or a job, under several assumptions.

`propagate` takes a table of kernels and returns the time of each run with bands, growth and error
budget. `validate` compares such bands with measured totals. `fit_errors` fits a model of a
predictor's errors.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from errcomp.propagation.errors import ClassError as ClassError
    from errcomp.propagation.errors import ErrorModel as ErrorModel
    from errcomp.propagation.errors import given_errors as given_errors
    from errcomp.propagation.errors import read_errors as read_errors
    from errcomp.propagation.errors.components import ASSUMPTIONS as ASSUMPTIONS
    from errcomp.propagation.errors.components import Correlation as Correlation
    from errcomp.propagation.errors.components import correlation as correlation
    from errcomp.propagation.errors.fitting import fit_errors as fit_errors
    from errcomp.propagation.errors.reference_chain import Chain as Chain
    from errcomp.propagation.errors.reference_chain import Step as Step
    from errcomp.propagation.montecarlo import simulate as simulate
    from errcomp.propagation.montecarlo.together import draw_runs as draw_runs
    from errcomp.propagation.outcome import Band as Band
    from errcomp.propagation.outcome import Outcome as Outcome
    from errcomp.propagation.outcome import Propagation as Propagation
    from errcomp.propagation.propagating import propagate as propagate
    from errcomp.propagation.psd import nearest_correlation as nearest_correlation
    from errcomp.propagation.sums import total_moments as total_moments
    from errcomp.propagation.terms import Level as Level
    from errcomp.propagation.terms import Terms as Terms
    from errcomp.propagation.validation import Validation as Validation
    from errcomp.propagation.validation import validate as validate

#: Public names and the module each lives in; imported at first use.
_HOMES = {
    "ASSUMPTIONS": "errors.components",
    "Band": "outcome",
    "Chain": "errors.reference_chain",
    "ClassError": "errors",
    "Correlation": "errors.components",
    "ErrorModel": "errors",
    "Level": "terms",
    "Outcome": "outcome",
    "Propagation": "outcome",
    "Step": "errors.reference_chain",
    "Terms": "terms",
    "Validation": "validation",
    "correlation": "errors.components",
    "draw_runs": "montecarlo.together",
    "fit_errors": "errors.fitting",
    "given_errors": "errors",
    "nearest_correlation": "psd",
    "propagate": "propagating",
    "read_errors": "errors",
    "simulate": "montecarlo",
    "total_moments": "sums",
    "validate": "validation",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"errcomp.propagation.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'errcomp.propagation' has no attribute {name!r}")
