"""Results in a line each, for a prompt that shows what an expression gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from errcomp.report._text import count
from errcomp.results import format_number

if TYPE_CHECKING:
    from errcomp.calibration.evaluation import Evaluation
    from errcomp.calibration.predictions import Predictions
    from errcomp.claims.auditing import Audit
    from errcomp.claims.replicate import Replication
    from errcomp.claims.search import SearchResult
    from errcomp.drivers import DriversResult
    from errcomp.halflife.forecast import Outlook
    from errcomp.halflife.gate.checking import Checked
    from errcomp.halflife.results import HalfLives
    from errcomp.propagation import Propagation, Validation
    from errcomp.summary import Summary

__all__ = ["short"]

#: The band that is quoted where one is.
_SHOWN = 0.9


def short(result: Any) -> str:
    """Write a result in a line: its class, its main figure, and of how many.

    Examples
    --------
    >>> from errcomp import summarize
    >>> summarize({"predicted": [11.0, 21.0], "measured": [10.0, 20.0]}, figures="mape")
    Summary(MAPE 7.50 %, n=2)
    """
    from errcomp.report.sections import kind

    name = kind(result)
    return f"{name}({', '.join(_LINES[name](result))})"


def _audit(result: Audit) -> list[str]:
    # Without keys the row is that of all pairs once more.
    rows = [*(row for row in result.rows if row.key), *result.overall]
    words = Counter(row.verdict.word for row in rows)
    judged = [f"{n} {word}" for word, n in words.items() if word != "no claim"]
    if len(result.overall) != 1:
        return [
            count(len(result.overall), "tool"),
            *judged,
            f"n={sum(r.n for r in result.overall)}",
        ]
    (row,) = result.overall
    return [f"MAPE {row.figures['mape'].format()}", *judged, f"n={row.n}"]


def _checked(result: Checked) -> list[str]:
    return [result.result.outcome, f"n={len(result.result.names)} series"]


def _drivers(result: DriversResult) -> list[str]:
    return [count(len(result.contrasts), "contrast"), f"n={result.n}"]


def _evaluation(result: Evaluation) -> list[str]:
    if not result.rows:
        return ["nothing judged"]
    best = min(result.rows, key=lambda row: row.figures["mean_ape"].value)
    figure = best.figures["mean_ape"]
    return [f"{best.split}", f"{best.estimator}: MAPE {figure.format()}", f"n={figure.n}"]


def _half_lives(result: HalfLives) -> list[str]:
    from errcomp.report.tables.halflife import written

    found = [count(len(result.groups), "group")]
    if len(result.groups) == 1:
        (group,) = result.groups
        method = "expiry" if group.panel.n_series == 1 else "trajectory"
        clock = result.clocks[0]
        found = [f"half-life in {clock} {written(group.estimate(method, clock))}"]
    return [*found, f"n={sum(group.panel.n_series for group in result.groups)} series"]


def _outlook(result: Outlook) -> list[str]:
    return [count(len(result.groups), "group"), count(len(result.versions), "version")]


def _predictions(result: Predictions) -> list[str]:
    unit = f" {result.unit}" if result.unit else ""
    if len(result) != 1:
        return [result.estimator, f"n={len(result)} runs"]
    low, high = (format_number(float(end[0])) for end in result.band(_SHOWN))
    predicted = format_number(float(result.predicted[0]))
    return [f"{predicted}{unit}", f"{100 * _SHOWN:g} % band {low} … {high}", "n=1 run"]


def _propagation(result: Propagation) -> list[str]:
    if len(result.runs) != 1:
        return [", ".join(result.assumptions), f"n={len(result.runs)} runs"]
    outcome, unit = result.of(), f" {result.unit}" if result.unit else ""
    band = outcome.band(_SHOWN)
    low, high = format_number(band.low), format_number(band.high)
    return [f"{outcome.assumption}: {100 * _SHOWN:g} % band {low} … {high}{unit}", "n=1 run"]


def _replication(result: Replication) -> list[str]:
    found = Counter(cell.status for cell in result.cells)
    return [*(f"{n} {status}" for status, n in found.items()), f"n={len(result.cells)} cells"]


def _search(result: SearchResult) -> list[str]:
    if not result.matches:
        return ["no match"]
    return [result.matches[0].description, f"first of {len(result.matches)}"]


def _summary(result: Summary) -> list[str]:
    from errcomp.metrics import figure

    # Tools apart have no figure together.
    first = [f"{figure(n).label} {e.format()}" for n, e in [*result.pooled.figures.items()][:1]]
    groups = [count(len(result.rows), "group")] if result.by else []
    return [*first, *groups, f"n={result.pooled.n or sum(row.n for row in result.rows)}"]


def _validation(result: Validation) -> list[str]:
    row = next((row for row in result.rows if row.level == _SHOWN), result.rows[0])
    holds = f"{100 * row.level:g} % band holds {100 * row.coverage:.0f} %"
    return [f"{row.assumption}: {holds}", f"n={row.n}"]


_LINES: Mapping[str, Callable[[Any], list[str]]] = {
    "Audit": _audit,
    "Checked": _checked,
    "DriversResult": _drivers,
    "Evaluation": _evaluation,
    "HalfLives": _half_lives,
    "Outlook": _outlook,
    "Predictions": _predictions,
    "Propagation": _propagation,
    "Replication": _replication,
    "SearchResult": _search,
    "Summary": _summary,
    "Validation": _validation,
}
