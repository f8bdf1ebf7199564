"""What people see of a document: the view of its result, with what only the document knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from errcomp.documents._fields import Field, count, mapping, maybe, text
from errcomp.report.model import Report

__all__ = ["KINDS"]


def _source(field: Field) -> str:
    return field("source", text)


def _plain(result: Any, _: Field) -> Any:
    return result.view()


def _propagate(result: Any, _: Field) -> Any:
    found, source = result
    return found.view(source)


def _validation(result: Any, field: Field) -> Any:
    return result.view(_source(field))


def _calibration(result: Any, field: Field) -> Any:
    return result.view(_source(field), field("known", mapping(text)))


def _search(result: Any, field: Field) -> Any:
    return result.view(_source(field), field("in_first_subset", mapping(count)))


def _metrics(result: Any, field: Field) -> Any:
    tool = field("tool", maybe(text))
    return result.view(
        figures=tuple(field.at("units").object()),
        level=field.at("level").value,
        title=f"Error figures of {_source(field) or 'the table'}{f', {tool}' if tool else ''}",
        apart=field.at("pooled").value is None,
        unused=field("not_used", count),
    )


#: What shows a result and its document, by the name of the document.
KINDS: Mapping[str, Callable[[Any, Field], Report]] = {
    "audit": _plain,
    "propagate": _propagate,
    "validation": _validation,
    "calibration": _calibration,
    "half-lives": _plain,
    "half-life-forecast": _plain,
    "half-life-check": _plain,
    "search": _search,
    "metrics": _metrics,
    "drivers": _plain,
    "replication": _plain,
}
