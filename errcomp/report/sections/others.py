"""Sections of results that are a table and a figure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from errcomp.report.page import Section
from errcomp.report.sections.general import section_of_document, section_of_result

if TYPE_CHECKING:
    from errcomp.calibration.predictions import Predictions
    from errcomp.claims.replicate import Replication
    from errcomp.claims.search import SearchResult
    from errcomp.drivers import DriversResult
    from errcomp.summary import Summary

__all__ = [
    "drivers_section",
    "predictions_section",
    "replication_section",
    "search_section",
    "summary_section",
]


def summary_section(found: Summary) -> Section:
    """Return the section of error figures by group."""
    from errcomp.report.tables.summary import summary_table

    figures = found.pooled.figures
    level = next((one.level for one in figures.values() if one.level is not None), 0.95)
    return section_of_result(
        found, [summary_table(found, tuple(figures), level, "Error figures", False)]
    )


def search_section(found: SearchResult) -> Section:
    """Return the section of what reproduces a published figure."""
    from errcomp.report.tables.search import search_table

    return section_of_result(found, [search_table(found)])


def drivers_section(found: DriversResult) -> Section:
    """Return the section of what moves an error."""
    from errcomp.report.tables.drivers import drivers_tables

    return section_of_result(found, drivers_tables(found))


def replication_section(found: Replication) -> Section:
    """Return the section of published tables recomputed."""
    from errcomp.report.tables.replication import replication_tables

    return section_of_result(found, replication_tables(found, found.tables()))


def predictions_section(found: Predictions) -> Section:
    """Return the section of predicted runs."""
    from errcomp.report.tables.plain import plain

    rows = plain(found.rows())
    return replace(
        section_of_result(found, []),
        title="Predicted runs",
        grids=section_of_document({"rows": rows}, "the runs").grids,
    )
