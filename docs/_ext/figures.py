"""Directive ``figures``: every metric that errcomp computes, read from its registry."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from errcomp.metrics import FIGURES, Figure
from errcomp.metrics.intervals import estimate

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_UNITS = {
    "fraction": "fraction, shown as per cent",
    "ratio": "ratio",
    "log": "natural logarithm",
    "correlation": "at most 1, no unit",
    "measured": "unit of the data",
}
#: Number of pairs in the synthetic sample that shows which interval method is used.
_PAIRS = 100


class Figures(SphinxDirective):
    """Write a table of all metrics and a section for each, below the directive's section."""

    def run(self) -> list[nodes.Node]:
        """Return the table and the sections."""
        self.env.note_dependency(__file__)
        text = "\n".join([*_table(), *(line for one in FIGURES.values() for line in _section(one))])
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _table() -> list[str]:
    rows = [
        (f":ref:`{f.name} <figure-{f.name}>`", f.label, _UNITS[f.unit]) for f in FIGURES.values()
    ]
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
    for name, label, unit in [("Name", "What people write", "Unit"), *rows]:
        lines += [f"   * - {name}", f"     - {label}", f"     - {unit}"]
    return [*lines, ""]


def _section(figure: Figure) -> list[str]:
    function, filled = _function(figure)
    title = f"{figure.label[:1].upper()}{figure.label[1:]}"
    call = f":func:`~errcomp.metrics.{function.__name__}`"
    if filled:
        call += " with " + ", ".join(f"``{name}={value}``" for name, value in filled.items())
    return [
        f".. _figure-{figure.name}:",
        "",
        title,
        "=" * len(title),
        "",
        figure.definition,
        "",
        *_formula(function),
        "",
        f":Name: ``{figure.name}``",
        f":Unit: {_UNITS[figure.unit]}",
        f":Misleads when: {figure.misleads}",
        f":Interval of {_PAIRS} pairs: {_interval(figure)}",
        f":In Python: {call}",
        "",
    ]


def _function(figure: Figure) -> tuple[Any, dict[str, Any]]:
    function = figure.function
    if isinstance(function, partial):
        return function.func, function.keywords
    return function, {}


def _formula(function: Any) -> list[str]:
    """Return the formulas of the docstring, unchanged."""
    lines = (inspect.getdoc(function) or "").splitlines()
    found: list[str] = []
    for at, line in enumerate(lines):
        if line.startswith(".. math::"):
            end = next(
                (i for i in range(at + 1, len(lines)) if lines[i].strip() and lines[i][0] != " "),
                len(lines),
            )
            found += [*lines[at:end], ""]
    return found


def _interval(figure: Figure) -> str:
    """Return the interval method for a sample of pairs, or the reason why there is no interval."""
    at = np.arange(1, _PAIRS + 1)
    measured = 10.0 + at % 17
    predicted = measured * (1 + 0.1 * np.sin(at * 1.7) + 0.02)
    found = estimate(figure.name, predicted=predicted, measured=measured)
    return found.method


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("figures", Figures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
