"""What the values of a propagated total say of each other: refused where they contradict.

A value that follows from others is computed anew; others can only be held against what they are
part of. Rounding is let through, be it that of whoever copied the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

from errcomp.documents._fields import Field
from errcomp.errors import InputError
from errcomp.propagation.errors import ErrorModel
from errcomp.propagation.outcome import Band, Outcome, Propagation
from errcomp.propagation.sums import Budget
from errcomp.propagation.validation import ValidationRow

__all__ = ["check_model", "check_outcome", "check_runs", "check_shares"]

#: Of a value that follows from others, relative or (near 0) absolute: six digits agree.
_ROUNDING = 1e-6
#: Of the ends of bands, some of which are found by search.
_ENDS = 1e-3


def check_outcome(field: Field, one: Outcome) -> None:
    """Refuse a row whose figures contradict each other."""
    if one.sd is not None and one.mean is None:
        _refuse(field, "sd", one.sd, "null, as there is no mean")
    _follows(field, "bias", one.bias, _less_one(one.mean, one.prediction), "mean / prediction - 1")
    spread = None if one.mean is None else _ratio(one.sd, abs(one.mean))
    _follows(field, "relative_sd", one.relative_sd, spread, "sd / mean")
    growth = _ratio(one.relative_sd, one.kernel_sd)
    _follows(field, "growth", one.growth, growth, "relative_sd / kernel_sd")
    _check_bands(field, one)
    if (one.by_class is None) != (one.by_kernel is None):
        have, lack = ("by_class", "by_kernel")[:: 1 if one.by_class else -1]
        _refuse(field, lack, None, f"a list, as {have} is one")
    for name, budget in (("by_class", one.by_class), ("by_kernel", one.by_kernel)):
        if budget is not None:
            _check_budget(field.at(name), budget)


def check_runs(field: Field, found: Propagation) -> None:
    """Refuse rows of one run that say different things of what no assumption changes."""
    first: dict[str, Outcome] = {}
    for i, one in enumerate(found.outcomes):
        other = first.setdefault(one.run, one)
        for name in ("prediction", "kernel_sd", "measured"):
            _follows(
                Field(field.value[i], f"{field.path}[{i}]"),
                name,
                getattr(one, name),
                getattr(other, name),
                "the other rows of this run",
            )


def check_model(field: Field, found: Propagation) -> None:
    """Refuse an error model whose counts contradict each other, and notes of other counts."""
    model = found.model
    if model.components is not None:
        _check_counts(field.at("errors"), model)
    known = {"in-sample": ("n_runs", model.n_runs)}
    if model.components is not None:
        known["few-clusters"] = ("n_clusters", model.components.n_clusters)
    for i, caveat in enumerate(found.caveats):
        key, n = known.get(caveat.code, ("", 0))
        if key in caveat.evidence and caveat.evidence[key] != n:
            place = Field(field.at("caveats").value[i], f"caveats[{i}]").at("evidence")
            _refuse(place, key, caveat.evidence[key], f"{n}, as in errors")


def check_shares(field: Field, rows: Sequence[ValidationRow], n_runs: int) -> None:
    """Refuse coverages that no count of runs gives, or that their interval does not hold."""
    widest: dict[str, ValidationRow] = {}
    for i, row in sorted(enumerate(rows), key=lambda pair: pair[1].level):
        place = Field(field.value[i], f"{field.path}[{i}]")
        if row.n != n_runs:
            _refuse(place, "n", row.n, f"{n_runs}, the number of runs")
        if not 1 <= row.n_clusters <= row.n:
            _refuse(place, "n_clusters", row.n_clusters, f"from 1 to n, {row.n}")
        if not row.coverage_low - _ROUNDING <= row.coverage <= row.coverage_high + _ROUNDING:
            within = f"[{row.coverage_low:.6g}, {row.coverage_high:.6g}]"
            _refuse(place, "coverage", row.coverage, f"inside its interval {within}")
        inside = round(row.coverage * row.n)
        if not _close(row.coverage, inside / row.n):
            _refuse(place, "coverage", row.coverage, f"a count of runs over n, as {inside}/{row.n}")
        narrower = widest.setdefault(row.assumption, row)
        if row.coverage < narrower.coverage - _ROUNDING:
            wanted = f"at least {narrower.coverage:.6g}, that of the level {narrower.level:g}"
            _refuse(place, "coverage", row.coverage, wanted)
        widest[row.assumption] = row


def _check_bands(field: Field, one: Outcome) -> None:
    """Refuse bands that are not inside each other, or not around the median."""
    places = [Field(v, f"{field.path}.bands[{i}]") for i, v in enumerate(field.at("bands").value)]
    by_level = sorted(zip(one.bands, places, strict=True), key=lambda pair: pair[0].level)
    inner: Band | None = None
    for band, place in by_level:
        if math.isinf(band.high) and not one.saturated and one.median is not None:
            _refuse(place, "high", None, "a number, as no queue is saturated")
        if one.median is not None and not math.isinf(one.median):
            _around(place, band, one.median, one.median, "the median")
        if inner is not None:
            if band.level == inner.level:
                _refuse(place, "level", band.level, "another level than that of the other bands")
            _around(place, band, inner.low, inner.high, f"the band of {inner.level:g}")
        inner = band


def _around(field: Field, band: Band, low: float, high: float, what: str) -> None:
    if band.low > low + _ENDS * abs(low):
        _refuse(field, "low", band.low, f"at most {low:.6g}: a band is around {what}")
    if band.high < high - _ENDS * abs(high):
        _refuse(field, "high", band.high, f"at least {high:.6g}: a band is around {what}")


def _check_budget(field: Field, budget: Budget) -> None:
    for name in ("share_of_time", "first_order"):
        values = getattr(budget, name)
        # Where errors offset each other the parts are larger than the whole, and so is rounding.
        if abs(float(values.sum()) - 1) > _ROUNDING * len(values) * (1 + float(abs(values).sum())):
            raise InputError(
                f"{field.path}: the values of {name} sum to {values.sum():.6g}, but they are "
                "shares of a whole and must sum to 1: a part of the document was changed"
            )
    rows = zip(budget.first_order.tolist(), budget.total.tolist(), strict=True)
    for i, (first, total) in enumerate(rows):
        # What would vanish with a row is its part twice, less its own variance: at most all.
        most = min(1.0, 2 * first)
        if total > most + _ROUNDING * (1 + abs(first)):
            place = Field(field.value[i], f"{field.path}[{i}]")
            _refuse(place, "total", total, f"at most {most:.6g}, 1 and twice the first_order")


def _check_counts(field: Field, model: ErrorModel) -> None:
    found = model.components
    assert found is not None  # the caller looked
    place = field.at("components")
    rows = sum(one.n for one in model.classes.values())
    if rows != found.n:
        _refuse(place, "n", found.n, f"{rows}, the sum of the n of all classes")
    if not 1 <= found.n_clusters <= max(1, model.n_runs):
        _refuse(place, "n_clusters", found.n_clusters, f"from 1 to n_runs, {model.n_runs}")
    for name, one in model.classes.items():
        if one.n_clusters > found.n_clusters:
            of_class = field.at("classes").at(name)
            _refuse(of_class, "n_clusters", one.n_clusters, f"at most {found.n_clusters}, of all")
    so_far = 0.0
    for i, value in enumerate(found.correlation):
        level = Field(place.at("levels").value[i], f"{place.path}.levels[{i}]")
        if not so_far - _ROUNDING <= value <= 1 + _ROUNDING:
            wanted = f"from {so_far:.6g} to 1: it grows from coarse to fine"
            _refuse(level, "correlation", value, wanted)
        so_far = value


def _less_one(value: float | None, whole: float) -> float | None:
    ratio = _ratio(value, whole)
    return None if ratio is None else ratio - 1


def _ratio(value: float | None, whole: float) -> float | None:
    return None if value is None or not whole else value / whole


def _follows(
    field: Field, name: str, given: float | None, made: float | None, of_what: str
) -> None:
    """Refuse a value that is not what others make of it."""
    same = given is made if given is None or made is None else _close(given, made)
    if not same:
        wanted = "null" if made is None else f"{made:.6g}"
        _refuse(field, name, given, f"{wanted}, which follows from {of_what}")


def _close(given: float, made: float) -> bool:
    return math.isclose(given, made, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def _refuse(field: Field, name: str, value: object, wanted: str) -> NoReturn:
    shown = "null" if value is None else f"{value:.6g}" if isinstance(value, float) else value
    path = f"{field.path}.{name}" if field.path else name
    raise InputError(f"{path} is {shown}, but must be {wanted}: a part of the document was changed")
