"""What people see of a document: the tables of the command that wrote it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from errcomp.report.documents._fields import Field, count, mapping, maybe, text
from errcomp.report.model import Table

__all__ = ["KINDS"]

Maker = Callable[[Any, Field], Sequence[Table]]

#: Coverage that is named where no figure has an interval.
_USUAL = 0.95


def _source(field: Field) -> str:
    return field("source", text)


def _audit(result: Any, _: Field) -> Sequence[Table]:
    from errcomp.report.tables.audit import audit_tables

    return audit_tables(result)


def _propagate(result: Any, _: Field) -> Sequence[Table]:
    from errcomp.report.tables.propagation import propagation_tables

    return propagation_tables(*result)


def _validation(result: Any, field: Field) -> Sequence[Table]:
    from errcomp.report.tables.propagation import validation_tables

    return validation_tables(result, _source(field))


def _calibration(result: Any, field: Field) -> Sequence[Table]:
    from errcomp.report.tables.evaluation import evaluation_tables

    return evaluation_tables(result, _source(field), field("known", mapping(text)))


def _half_lives(result: Any, _: Field) -> Sequence[Table]:
    from errcomp.report.tables.halflife import fit_tables

    return fit_tables(result)


def _forecast(result: Any, _: Field) -> Sequence[Table]:
    from errcomp.report.tables.forecast import forecast_tables

    return forecast_tables(result)


def _check(result: Any, _: Field) -> Sequence[Table]:
    from errcomp.report.tables.check import check_tables

    return check_tables(result)


def _search(result: Any, field: Field) -> Sequence[Table]:
    from errcomp.report.tables.search import search_table

    counts = field("in_first_subset", mapping(count))
    return [search_table(result, _source(field), counts)]


def _metrics(result: Any, field: Field) -> Sequence[Table]:
    from errcomp.report.tables.summary import summary_table

    tool, unused = field("tool", maybe(text)), field("not_used", count)
    title = f"Error figures of {_source(field) or 'the table'}{f', {tool}' if tool else ''}"
    shown = summary_table(
        result,
        tuple(field.at("units").object()),
        field.at("level").value or _USUAL,
        title,
        field.at("pooled").value is None,
    )
    more = [f"{unused} pairs of other tools not used"] if unused else []
    return [replace(shown, notes=[*shown.notes, *more])]


def _drivers(result: Any, _: Field) -> Sequence[Table]:
    from errcomp.report.tables.drivers import drivers_tables

    return drivers_tables(result)


def _replication(result: Any, _: Field) -> Sequence[Table]:
    from errcomp.report.tables.replication import replication_tables

    return replication_tables(result, result.tables())


#: What lays a result and its document out, by the name of the document.
KINDS: Mapping[str, Maker] = {
    "audit": _audit,
    "propagate": _propagate,
    "validation": _validation,
    "calibration": _calibration,
    "half-lives": _half_lives,
    "half-life-forecast": _forecast,
    "half-life-check": _check,
    "search": _search,
    "metrics": _metrics,
    "drivers": _drivers,
    "replication": _replication,
}
