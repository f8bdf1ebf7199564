"""What each result looks like by itself: its figure, and its section in a notebook."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError, describe_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.calibration.evaluation import Evaluation
    from errcomp.halflife.results import HalfLives

__all__ = ["CAPTIONS", "FIGURES", "html", "plot", "text"]

#: Class of a result → module of `errcomp.report` and function that draws it.
FIGURES: Mapping[str, tuple[str, str]] = {
    "Audit": ("audit_figures", "claimed"),
    "Checked": ("result_figures", "shifts"),
    "DriversResult": ("result_figures", "contrasts"),
    "Evaluation": ("showing", "draw_evaluation"),
    "HalfLives": ("showing", "draw_half_lives"),
    "Outlook": ("result_figures", "forecast"),
    "Predictions": ("result_figures", "predictions"),
    "Propagation": ("figures", "bands"),
    "Replication": ("result_figures", "cells"),
    "SearchResult": ("result_figures", "matches"),
    "Summary": ("result_figures", "summary"),
    "Validation": ("figures", "calibration"),
}

#: How to read the figure of a result that has no other.
CAPTIONS: Mapping[str, str] = {
    "DriversResult": "What each factor does to the error, with intervals; at 1 it does nothing.",
    "Predictions": "The 90 % band of each run around its prediction.",
    "Replication": "How many printed cells of each table come out again.",
    "SearchResult": "How many matches as simple as each an unrelated figure would have by chance.",
    "Summary": "The first figure of each group, with its interval.",
}


def plot(result: Any, *, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw the figure of a result.

    Parameters
    ----------
    result : object
        Of a class in `FIGURES`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.
    options
        Of the figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        The figure has no such option, or there is nothing to draw.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> import errcomp as ec
    >>> axes = plot(ec.audit(ec.datasets.load("neusight")))
    >>> axes.get_xlabel()
    'absolute error (% of measured)'
    """
    from errcomp.report.sections import kind

    module, name = FIGURES[kind(result)]
    draw: Callable[..., Axes] = getattr(import_module(f"errcomp.report.{module}"), name)
    known = [one for one in list(inspect.signature(draw).parameters)[1:] if one != "ax"]
    unknown = [one for one in options if one not in known]
    if unknown:
        raise InputError(
            f"the figure of {type(result).__name__} has no option {unknown[0]}. "
            f"Options: {describe_names(known) or 'none'}"
        )
    return draw(result, ax=ax, **options)


def draw_evaluation(
    found: Evaluation, figure: str = "coverage", split: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw one split of an evaluation: coverage, abstention, predicted or residuals."""
    from errcomp.report.sections.calibration import FIGURES as KNOWN
    from errcomp.report.sections.calibration import draw

    splits = list(dict.fromkeys(row.split for row in found.rows))
    for given, names in ((figure, list(KNOWN)), (split or splits[0], splits)):
        if given not in names:
            raise InputError(f"there is no {given!r} to draw. Known: {describe_names(names)}")
    return draw(figure, found, split or splits[0], ax)


def draw_half_lives(found: HalfLives, figure: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw half-lives: the heat map of several groups, or errors, survival, variogram of one."""
    from errcomp.report.halflife_figures import draw

    return draw(found, figure or ("heat" if len(found.groups) > 1 else "errors"), ax)


def text(result: Any) -> str:
    """Return the tables of a result as text, as the command line prints them.

    Examples
    --------
    >>> from errcomp import summarize
    >>> found = summarize({"predicted": [11.0, 21.0], "measured": [10.0, 20.0]}, figures="mape")
    >>> text(found).splitlines()[2].split()
    ['n', 'MAPE']
    """
    from errcomp.report.sections import tables_of
    from errcomp.report.tables.text import render

    return "\n\n".join(render(table) for table in tables_of(result))


def html(result: Any) -> str:
    """Return what a notebook shows of a result: its section, with figures, without a script."""
    from errcomp.report.page import fragment
    from errcomp.report.sections import section

    return fragment(section(result))
