"""Sections of documents that commands wrote."""

from __future__ import annotations

from errcomp.report.documents import read, tables
from errcomp.report.page import Section
from errcomp.report.sections import section
from errcomp.report.sections.general import section_of_document, section_of_result

__all__ = ["section_of_file"]


def section_of_file(name: str) -> Section:
    """Return the section of a file that a command wrote with ``-o FILE.json``.

    Raises
    ------
    InputError
        It is no such document, or a damaged one.
    """
    schema, document, result = read(name)
    if result is None:
        return section_of_document(document, name)
    kind = schema.partition("/")[0].removeprefix("errcomp.")
    if kind == "propagate":
        return section(*result)
    if kind == "validation":
        return section(result, document["source"])
    if kind == "calibration":
        return section(result, document["source"], document["known"])
    if kind in ("audit", "half-lives", "half-life-forecast", "half-life-check"):
        return section(result)
    return section_of_result(result, tables(document, result))
