"""Results as sections of a page: the answer first, then figures, tables and the method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from errcomp.errors import InputError
from errcomp.report.page import Section
from errcomp.report.sections._common import basis, inputs_of

__all__ = ["known", "section", "with_basis"]

#: Class of a result → module here and function that makes its section.
_MAKERS: Mapping[str, tuple[str, str]] = {
    "Audit": ("audit", "audit_section"),
    "Propagation": ("propagation", "propagation_section"),
    "Validation": ("propagation", "validation_section"),
    "Evaluation": ("calibration", "evaluation_section"),
    "HalfLives": ("halflife", "half_lives_section"),
    "Outlook": ("halflife", "forecast_section"),
    "Checked": ("halflife", "check_section"),
    "DriversResult": ("others", "drivers_section"),
    "Predictions": ("others", "predictions_section"),
    "Replication": ("others", "replication_section"),
    "SearchResult": ("others", "search_section"),
    "Summary": ("others", "summary_section"),
}


def known(result: Any) -> bool:
    """Say whether a result has a section of its own."""
    return type(result).__name__ in _MAKERS


def section(result: Any, *more: Any) -> Section:
    """Return the section of a result.

    Parameters
    ----------
    result : Audit, Propagation, Validation, Evaluation, HalfLives, Outlook or Checked
    more : object
        What the section of this kind of result takes beside it, e.g. the pairs of an audit.

    Returns
    -------
    Section

    Raises
    ------
    InputError
        There is no section for such a thing.
    """
    if not known(result):
        raise InputError(f"no page can be made of {type(result).__name__}")
    module, name = _MAKERS[type(result).__name__]
    make: Callable[..., Section] = getattr(import_module(f"errcomp.report.sections.{module}"), name)
    return make(result, *more)


def with_basis(made: Section, inputs: Sequence[str]) -> Section:
    """Add to the method what a section was made with, and from which files or tables."""
    sums = [one for name in inputs for one in inputs_of(name)]
    return replace(made, method=[*made.method, *basis(sums)])
