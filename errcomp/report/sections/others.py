"""Sections of results that are a table and a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errcomp.report.page import Section
from errcomp.report.sections.general import section_of_result

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
    from errcomp.report.tables.summary import plain_summary

    return section_of_result(found, [plain_summary(found)])


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
    from errcomp.report.tables.predictions import plain_predictions

    return section_of_result(found, plain_predictions(found))
