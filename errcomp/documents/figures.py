"""``errcomp.metrics/1`` and ``errcomp.drivers/1``: error figures, and what moves them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

from errcomp.documents._common import caveat, dropped, ends, estimate, keys_of
from errcomp.documents._fields import (
    Field,
    anything,
    choice,
    count,
    coverage,
    many,
    mapping,
    maybe,
    number,
    or_nan,
    share,
    text,
)
from errcomp.drivers.results import (
    Aliased,
    Contrast,
    Design,
    DriversResult,
    Regression,
    RegressionTerm,
    Statement,
    StatementVerdict,
    VerdictWord,
)
from errcomp.metrics import FIGURES, figure
from errcomp.results import Estimate
from errcomp.summary import Summary, SummaryRow

__all__ = ["drivers_again", "read_drivers", "read_summary", "summary_again"]


def read_summary(field: Field) -> Summary:
    """Make error figures of their document; those of several tools have no figures together."""
    field("source", text)
    by = field("by", many(text))
    units = field("units", mapping(text))
    for name in units:
        choice(FIGURES)(Field(name, f"units.{name}"))
    level = field("level", maybe(coverage))
    row = partial(_row, units=units, level=level)
    return Summary(
        by=by,
        rows=field("rows", many(lambda one: row(one, by))),
        pooled=field("pooled", maybe(lambda one: row(one, ()))) or SummaryRow({}, 0, {}),
        macro={} if field.at("macro").value is None else field("macro", mapping(or_nan(number))),
        dropped=field("dropped", many(dropped)),
    )


def summary_again(found: Summary) -> Mapping[str, Any]:
    """Return what the document must have said."""
    again = found.to_dict()
    if not found.pooled.figures:
        for name in ("pooled", "units", "level"):
            del again[name]
    return {name: value for name, value in again.items() if value != {}}


def _row(
    field: Field, by: tuple[str, ...], units: Mapping[str, str], level: float | None
) -> SummaryRow:
    n = field("n", count)
    figures = {name: _figure(field, name, unit, n, level) for name, unit in units.items()}
    return SummaryRow(keys_of(field, by), n, figures)


def _figure(field: Field, name: str, unit: str, n: int, level: float | None) -> Estimate:
    low, high = ends(field, f"{name}_low", f"{name}_high")
    value = field(name, or_nan(number))
    missing, told = value != value, low is None and field.has(f"{name}_reason")
    return Estimate(
        name,
        value,
        low,
        high,
        level=None if low is None else level,
        method=field(f"{name}_reason", text) if missing or told else "none",
        n=n,
        unit=unit,
        definition=figure(name).definition,
    )


def read_drivers(field: Field) -> DriversResult:
    """Make what moves an error of its document."""
    field("source", text)
    return field.make(
        DriversResult,
        tool=maybe(text),
        n=count,
        level=coverage,
        seed=count,
        factors=many(text),
        contrasts=many(_contrast),
        regressions=many(_regression),
        statements=many(_judged),
        dropped=many(dropped),
        caveats=many(caveat),
    )


def drivers_again(found: DriversResult) -> Mapping[str, Any]:
    """Return what the document must have said."""
    return {**found.to_dict(), "rows": found.rows()}


def _contrast(field: Field) -> Contrast:
    words = ("name", "factor", "level_a", "level_b", "cluster_key", "note")
    tests = ("p_value", "p_check", "p_holm", "p_bh")
    signed = ("p_signed", "p_signed_check", "p_signed_holm", "p_signed_bh")
    return field.make(
        Contrast,
        where=mapping(text),
        design=choice(get_args(Design)),
        n_pairs=count,
        clusters=count,
        matched_on=many(text),
        not_matched_on=many(text),
        ape_a=or_nan(number),
        ape_b=or_nan(number),
        naive_a=maybe(number),
        naive_b=maybe(number),
        **dict.fromkeys(words, text),
        **dict.fromkeys(("effect", "effect_points", "effect_signed"), estimate),
        **dict.fromkeys((*tests, *signed), maybe(share)),
    )


def _regression(field: Field) -> Regression:
    return field.make(
        Regression,
        outcome=choice(("absolute", "signed")),
        method=text,
        n=count,
        clusters=count,
        df=number,
        cluster_key=text,
        adjusted_for=many(text),
        terms=many(_term),
        aliased=many(lambda one: Aliased(one("term", text), one("with", many(text)))),
        caveats=many(caveat),
    )


def _term(field: Field) -> RegressionTerm:
    return field.make(
        RegressionTerm,
        effect=estimate,
        **dict.fromkeys(("name", "factor", "level", "reference"), text),
        **dict.fromkeys(("p_value", "p_holm", "p_bh"), maybe(share)),
    )


def _judged(field: Field) -> StatementVerdict:
    return field.make(
        StatementVerdict,
        statement=_statement,
        verdict=choice(get_args(VerdictWord)),
        why=text,
        rule=text,
        estimate=maybe(estimate),
        contrast=maybe(_contrast),
        evidence=mapping(anything),
    )


def _statement(field: Field) -> Statement:
    words = ("name", "text", "source", "factor", "reading", "level_a", "level_b")
    return field.make(
        Statement,
        quantity=choice(("ape_ratio", "share_doubled")),
        stated=number,
        where=mapping(text),
        **dict.fromkeys(words, text),
    )
