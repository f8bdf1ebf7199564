"""Checks that the values of a propagated total are consistent.

A value that follows from others is recomputed; others are compared with their totals. Rounding is
allowed, also in copied figures.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.codec import Field
    from errcomp.propagation.errors import ErrorModel
    from errcomp.propagation.outcome import Band, Outcome, Propagation
    from errcomp.propagation.sums import Budget
    from errcomp.propagation.validation import Validation

#: Tolerance of a value that follows from others, relative or (near 0) absolute: six digits.
_ROUNDING = 1e-6
#: Tolerance of the ends of bands, some of which come from a search.
_ENDS = 1e-3


def check_propagation(field: Field, propagation: Propagation) -> None:
    """Refuse inconsistent rows, and an error model with other counts."""
    rows = field.at("rows")
    levels = {frozenset(band.level for band in row.bands) for row in propagation.outcomes}
    if len(levels) > 1:
        rows.refuse("rows with bands of the same levels")
    if len(propagation.outcomes) != len(propagation.runs) * len(propagation.assumptions):
        rows.refuse("one row for each run and assumption")
    for run in propagation.runs:
        for assumption in propagation.assumptions:
            propagation.of(run, assumption)
    _check_runs(rows, propagation)
    _check_model(field, propagation)


def check_validation(field: Field, validation: Validation) -> None:
    """Refuse rows that lack a level, and impossible coverages."""
    rows = field.at("rows")
    levels = {row.level for row in validation.rows}
    for name in dict.fromkeys(row.assumption for row in validation.rows):
        if {row.level for row in validation.rows if row.assumption == name} != levels:
            rows.refuse("rows of every assumption at the same levels")
    _check_shares(rows, validation)
    n_runs = len(validation.runs)
    for name, places in validation.pit.items():
        if len(places) != n_runs:
            field.at("pit").at(name).refuse(f"one number for each of the {n_runs} runs")


def check_outcome(field: Field, row: Outcome) -> None:
    """Refuse a row whose figures contradict each other."""
    if row.sd is not None and row.mean is None:
        field.at("sd").contradicts("null, because there is no mean")
    _follows(field, "bias", row.bias, _less_one(row.mean, row.prediction), "mean / prediction - 1")
    spread = None if row.mean is None else _ratio(row.sd, abs(row.mean))
    _follows(field, "relative_sd", row.relative_sd, spread, "sd / mean")
    growth = _ratio(row.relative_sd, row.kernel_sd)
    _follows(field, "growth", row.growth, growth, "relative_sd / kernel_sd")
    _check_bands(field, row)
    if (row.by_class is None) != (row.by_kernel is None):
        have, lack = ("by_class", "by_kernel")[:: 1 if row.by_class else -1]
        field.at(lack).contradicts(f"a list, because {have} is a list")
    for name, budget in (("by_class", row.by_class), ("by_kernel", row.by_kernel)):
        if budget is not None:
            _check_budget(field.at(name), budget)


def _check_runs(rows: Field, propagation: Propagation) -> None:
    """Refuse rows of a run that differ in values that no assumption changes."""
    first: dict[str, Outcome] = {}
    for row, place in zip(propagation.outcomes, rows.items(), strict=True):
        other = first.setdefault(row.run, row)
        for name in ("prediction", "kernel_sd", "measured"):
            value, expected = getattr(row, name), getattr(other, name)
            _follows(place, name, value, expected, "the other rows of this run")


def _check_model(field: Field, propagation: Propagation) -> None:
    """Refuse an error model with inconsistent counts, and caveats with other counts."""
    model = propagation.model
    if model.components is not None:
        _check_counts(field.at("errors"), model)
    known = {"in-sample": ("n_runs", model.n_runs)}
    if model.components is not None:
        known["few-clusters"] = ("n_clusters", model.components.n_clusters)
    for caveat, place in zip(propagation.caveats, field.at("caveats").items(), strict=True):
        key, n = known.get(caveat.code, ("", 0))
        if key in caveat.evidence and caveat.evidence[key] != n:
            place.at("evidence").at(key).contradicts(f"{n}, as in errors")


def _check_shares(rows: Field, validation: Validation) -> None:
    """Refuse coverages that no count of runs gives, or that are outside their interval."""
    widest: dict[str, tuple[float, float]] = {}
    placed = zip(validation.rows, rows.items(), strict=True)
    for row, place in sorted(placed, key=lambda pair: pair[0].level):
        if row.n != len(validation.runs):
            place.at("n").contradicts(f"{len(validation.runs)}, the number of runs")
        if not 1 <= row.n_clusters <= row.n:
            place.at("n_clusters").contradicts(f"from 1 to n, {row.n}")
        if not row.coverage_low - _ROUNDING <= row.coverage <= row.coverage_high + _ROUNDING:
            interval = f"[{row.coverage_low:.6g}, {row.coverage_high:.6g}]"
            place.at("coverage").contradicts(f"inside its interval {interval}")
        inside = round(row.coverage * row.n)
        if not _close(row.coverage, inside / row.n):
            wanted = f"a number of runs divided by n, such as {inside}/{row.n}"
            place.at("coverage").contradicts(wanted)
        level, coverage = widest.get(row.assumption, (row.level, row.coverage))
        if row.coverage < coverage - _ROUNDING:
            wanted = f"at least {coverage:.6g}, the coverage at level {level:g}"
            place.at("coverage").contradicts(wanted)
        widest[row.assumption] = row.level, row.coverage


def _check_bands(field: Field, row: Outcome) -> None:
    """Refuse bands that are not nested, or not around the median."""
    placed = zip(row.bands, field.at("bands").items(), strict=True)
    inner: Band | None = None
    for band, place in sorted(placed, key=lambda pair: pair[0].level):
        if math.isinf(band.high) and not row.saturated and row.median is not None:
            place.at("high").contradicts("a number, because no queue is saturated")
        if row.median is not None and not math.isinf(row.median):
            _around(place, band, row.median, row.median, "the median")
        if inner is not None:
            if band.level == inner.level:
                place.at("level").contradicts("a level that no other band has")
            _around(place, band, inner.low, inner.high, f"the band of {inner.level:g}")
        inner = band


def _around(field: Field, band: Band, low: float, high: float, what: str) -> None:
    if band.low > low + _ENDS * abs(low):
        field.at("low").contradicts(f"at most {low:.6g}: a band must contain {what}")
    if band.high < high - _ENDS * abs(high):
        field.at("high").contradicts(f"at least {high:.6g}: a band must contain {what}")


def _check_budget(field: Field, budget: Budget) -> None:
    for name in ("share_of_time", "first_order"):
        values = getattr(budget, name)
        # If errors offset each other, parts exceed the whole, and rounding errors grow with them.
        if abs(float(values.sum()) - 1) > _ROUNDING * len(values) * (1 + float(abs(values).sum())):
            raise InputError(
                f"{field.path}: the values of {name} sum to {values.sum():.6g}, but they are "
                "shares and must sum to 1. A part of the document was changed"
            )
    rows = zip(budget.first_order.tolist(), budget.total.tolist(), field.items(), strict=True)
    for first, total, place in rows:
        # The variance that vanishes with a row is twice its part minus its own variance, at most
        # all.
        most = min(1.0, 2 * first)
        if total > most + _ROUNDING * (1 + abs(first)):
            place.at("total").contradicts(
                f"at most {most:.6g}, the smaller of 1 and twice first_order"
            )


def _check_counts(field: Field, model: ErrorModel) -> None:
    components = model.components
    assert components is not None  # the caller looked
    place = field.at("components")
    rows = sum(error.n for error in model.classes.values())
    if rows != components.n:
        place.at("n").contradicts(f"{rows}, the sum of n over all classes")
    if not 1 <= components.n_clusters <= max(1, model.n_runs):
        place.at("n_clusters").contradicts(f"from 1 to n_runs, {model.n_runs}")
    for name, error in model.classes.items():
        if error.n_clusters > components.n_clusters:
            of_class = field.at("classes").at(name).at("n_clusters")
            of_class.contradicts(f"at most {components.n_clusters}, the number of all clusters")
    so_far = 0.0
    for value, level in zip(components.correlation, place.at("levels").items(), strict=True):
        if not so_far - _ROUNDING <= value <= 1 + _ROUNDING:
            wanted = (
                f"from {so_far:.6g} to 1: correlations must not decrease from coarse to fine levels"
            )
            level.at("correlation").contradicts(wanted)
        so_far = value


def _less_one(value: float | None, whole: float) -> float | None:
    ratio = _ratio(value, whole)
    return None if ratio is None else ratio - 1


def _ratio(value: float | None, whole: float) -> float | None:
    return None if value is None or not whole else value / whole


def _follows(
    field: Field, name: str, given: float | None, made: float | None, of_what: str
) -> None:
    """Refuse a value that does not follow from the others."""
    same = given is made if given is None or made is None else _close(given, made)
    if not same:
        wanted = "null" if made is None else f"{made:.6g}"
        field.at(name).contradicts(f"{wanted}, which follows from {of_what}")


def _close(given: float, made: float) -> bool:
    return math.isclose(given, made, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
