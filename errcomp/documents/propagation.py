"""``errcomp.propagate/1`` and ``errcomp.validation/1``: bands, and whether they hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from errcomp.documents._agreement import (
    check_model,
    check_outcome,
    check_runs,
    check_shares,
)
from errcomp.documents._common import caveat
from errcomp.documents._fields import (
    Field,
    above,
    choice,
    count,
    coverage,
    many,
    mapping,
    maybe,
    null_as,
    number,
    or_nan,
    share,
    size,
    text,
)
from errcomp.errors import InputError
from errcomp.propagation import Propagation, Validation
from errcomp.propagation.errors import ClassError, ErrorModel
from errcomp.propagation.errors.components import Components, Interval
from errcomp.propagation.errors.residuals import LEVELS
from errcomp.propagation.errors.tails import Observed, Tails
from errcomp.propagation.outcome import Band, Outcome
from errcomp.propagation.sums import Budget
from errcomp.propagation.terms import KINDS
from errcomp.propagation.validation import ValidationRow

__all__ = ["propagation_again", "read_propagation", "read_validation"]

_BOUNDS = "unknown"
#: Levels that the tables show.
_SHOWN, _SHOWN_OF_ONE = 0.9, (0.5, 0.9, 0.95)


def read_propagation(field: Field) -> tuple[Propagation, str]:
    """Make propagated totals, and the name of their table, of a document."""
    found = Propagation(
        outcomes=field("rows", many(_outcome, fewest=1)),
        model=field("errors", _model),
        unit=field("unit", maybe(text)),
        seed=field("seed", count),
        caveats=field("caveats", many(caveat)),
    )
    levels = {frozenset(band.level for band in outcome.bands) for outcome in found.outcomes}
    if len(levels) > 1 or not levels.pop().issuperset(_SHOWN_OF_ONE):
        field.at("rows").refuse("rows with bands of the same levels, 0.5, 0.9 and 0.95 among them")
    if len(found.outcomes) != len(found.runs) * len(found.assumptions):
        field.at("rows").refuse("one row for each run and assumption")
    for run in found.runs:
        for assumption in found.assumptions:
            found.of(run, assumption)
    check_runs(field.at("rows"), found)
    check_model(field, found)
    return found, field("source", text)


def propagation_again(result: tuple[Propagation, str]) -> Mapping[str, Any]:
    """Return what the document must have said."""
    document = result[0].to_dict()
    rows = document.pop("outcomes")
    return {"source": result[1], **document, "rows": rows}


def _outcome(field: Field) -> Outcome:
    bounds = field("assumption", text) == _BOUNDS
    found = field.make(
        Outcome,
        run=text,
        assumption=text,
        prediction=null_as(above(0.0), math.inf),
        mean=maybe(number),
        sd=maybe(size),
        # Beyond capacity the median is endless; bounds have none.
        median=maybe(number) if bounds else null_as(number, math.inf),
        bias=maybe(number),
        relative_sd=maybe(size),
        kernel_sd=size,
        growth=maybe(size),
        effective_number=maybe(size),
        bands=many(_band, fewest=1),
        saturated=share,
        method=text,
        by_class=lambda rows: _budget(rows, "class"),
        by_kernel=lambda rows: _budget(rows, "term"),
        critical=mapping(share),
        measured=maybe(number),
        caveats=many(caveat),
    )
    check_outcome(field, found)
    return found


def _band(field: Field) -> Band:
    endless = null_as(number, math.inf)
    found = field.make(Band, level=coverage, low=endless, high=endless)
    if found.high < found.low:
        field.at("high").refuse(f"at least the lower end, {found.low:g}")
    return found


def _budget(field: Field, by: Literal["class", "term"]) -> Budget | None:
    columns = ("share_of_time", "first_order", "total")
    read = many(lambda row: (row("name", text), *(row(name, number) for name in columns)), fewest=1)
    rows = maybe(read)(field)
    if rows is None:
        return None
    names, *values = zip(*rows, strict=True)
    return Budget(by, np.array(names, dtype=np.str_), *(np.array(one) for one in values))


def _model(field: Field) -> ErrorModel:
    try:
        return field.make(
            ErrorModel,
            classes=mapping(_class_error),
            kind=choice(KINDS),
            other=maybe(_class_error),
            floor=number,
            size_exponent=number,
            components=maybe(_components),
            tails=_tails,
            n_runs=count,
            devices=many(text),
            unit=maybe(text),
        )
    except InputError as error:
        said = str(error)
        # What the model itself refuses does not say where it stands.
        raise (
            error if said.startswith(field.path) else InputError(f"{field.path}: {said}")
        ) from error


def _class_error(field: Field) -> ClassError:
    return field.make(
        ClassError, bias=number, spread=number, n=count, n_clusters=count, size=or_nan(number)
    )


def _tails(field: Field) -> Tails:
    endless = null_as(above(0.0), math.inf)
    return field.make(Tails, df=endless, variance_df=endless, observed=maybe(_observed))


def _observed(field: Field) -> Observed:
    return field.make(
        Observed, sizes=many(number), below=many(number), number=number, n_clusters=count
    )


def _components(field: Field) -> Components:
    across = field.at("across_runs_of_a_device")
    found = Components(
        levels=field("levels", many(_interval)),
        device=across("other_class", _interval),
        device_class=across("same_class", _interval),
        scale=field("scale", number),
        confidence=field("confidence", maybe(coverage)),
        n=field("n", count),
        n_clusters=field("n_clusters", count),
        cluster=field("cluster", text),
    )
    if field("levels", many(lambda one: one("level", text))) != LEVELS:
        field.at("levels").refuse(f"the levels {', '.join(LEVELS)}")
    return found


def _interval(field: Field) -> Interval:
    nan = or_nan(number)
    return Interval(field("correlation", nan), field("low", nan), field("high", nan))


def read_validation(field: Field) -> Validation:
    """Make bands held against totals of their document; the error models are not in it."""
    field("source", text)
    found = field.make(
        partial(Validation, models=()),
        rows=many(_validation_row, fewest=1),
        pit=mapping(_places),
        runs=many(text),
        left_out=text,
        total=text,
        cluster=text,
        not_judged=many(text),
        caveats=many(caveat),
    )
    levels = {row.level for row in found.rows}
    for name in dict.fromkeys(row.assumption for row in found.rows):
        if {row.level for row in found.rows if row.assumption == name} != levels:
            field.at("rows").refuse("rows of every assumption at the same levels")
    if _SHOWN not in levels:
        field.at("rows").refuse(f"rows of the level {_SHOWN}")
    check_shares(field.at("rows"), found.rows, len(found.runs))
    for name, places in found.pit.items():
        if len(places) != len(found.runs):
            field.at("pit").at(name).refuse(f"one place for each of the {len(found.runs)} runs")
    return found


def _places(field: Field) -> Any:
    return np.array(many(share)(field))


def _validation_row(field: Field) -> ValidationRow:
    endless = null_as(size, math.inf)
    return field.make(
        ValidationRow,
        assumption=text,
        level=coverage,
        coverage=share,
        coverage_low=share,
        coverage_high=share,
        n=count,
        n_clusters=count,
        mean_width=endless,
        interval_score=endless,
    )
