"""Results as sections of a page: the answer first, then figures, tables and the method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from errcomp.errors import InputError
from errcomp.report.model import Table
from errcomp.report.page import Section
from errcomp.report.sections._common import basis, inputs_of

__all__ = ["kind", "known", "section", "tables_of", "with_basis"]

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


def kind(result: Any) -> str:
    """Return which kind of result this is, "" for none that has a section."""
    return next((one.__name__ for one in type(result).__mro__ if one.__name__ in _MAKERS), "")


def known(result: Any) -> bool:
    """Say whether a result has a section of its own."""
    return bool(kind(result))


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
    module, name = _MAKERS[kind(result)]
    make: Callable[..., Section] = getattr(import_module(f"errcomp.report.sections.{module}"), name)
    return make(result, *more)


def tables_of(result: Any) -> list[Table]:
    """Return the tables of a result as the terminal shows them.

    Raises
    ------
    InputError
        There are no tables of such a thing.
    """
    layouts: Mapping[str, Callable[[Any], Sequence[Table]]] = {
        "Audit": lambda one: _layout("audit", "audit_tables")(one),
        "Checked": lambda one: _layout("check", "check_tables")(one),
        "DriversResult": lambda one: _layout("drivers", "drivers_tables")(one),
        "Evaluation": lambda one: _layout("evaluation", "evaluation_tables")(one, "", {}),
        "HalfLives": lambda one: _layout("halflife", "fit_tables")(one),
        "Outlook": lambda one: _layout("forecast", "forecast_tables")(one),
        "Predictions": lambda one: _layout("predictions", "plain_predictions")(one),
        "Propagation": lambda one: _layout("propagation", "propagation_tables")(one, ""),
        "Replication": lambda one: _layout("replication", "replication_tables")(one, one.tables()),
        "SearchResult": lambda one: [_layout("search", "search_table")(one)],
        "Summary": lambda one: [_layout("summary", "plain_summary")(one)],
        "Validation": lambda one: _layout("propagation", "validation_tables")(one, ""),
    }
    if not known(result):
        raise InputError(f"there are no tables of {type(result).__name__}")
    return list(layouts[kind(result)](result))


def _layout(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(f"errcomp.report.tables.{module}"), name)
    return found


def with_basis(made: Section, inputs: Sequence[str | Path | None]) -> Section:
    """Add to the method what a section was made with, and from which files or tables."""
    sums = [one for name in inputs if name for one in inputs_of(str(name))]
    return replace(made, method=[*made.method, *basis(sums)])
