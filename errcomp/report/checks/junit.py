"""JUnit XML for CI systems, in the common part of what the Ant and Jenkins schemas allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from xml.etree import ElementTree as ET

from errcomp.errors import InputError
from errcomp.report.checks._characters import legal, token

__all__ = ["Case", "junit_xml"]


@dataclass(frozen=True, slots=True)
class Case:
    """One test case.

    Attributes
    ----------
    name : str
    outcome : {"passed", "failure", "skipped"}
    message : str
        One line: why it failed or was skipped.
    kind : str
        Sort of failure, e.g. ``"overstated"``.
    text : str
        Of a failure, as many lines as it takes.
    """

    name: str
    outcome: Literal["passed", "failure", "skipped"] = "passed"
    message: str = ""
    kind: str = ""
    text: str = ""


def junit_xml(
    name: str,
    cases: Sequence[Case],
    *,
    properties: Mapping[str, str],
    summary: str,
    timestamp: datetime | None = None,
) -> bytes:
    """Write test cases as one suite.

    Parameters
    ----------
    name : str
        Of the suite, and class of its cases.
    cases : sequence of Case
        A name that comes again is numbered: CI systems follow a case by its name.
    properties : mapping of str to str
        Of the suite: levels and counts that the outcomes rest on.
    summary : str
        The verdict, as the suite's output.
    timestamp : datetime, optional
        When it was checked; a zone is turned to UTC, as the format has none. 1970 by default, so
        that the bytes depend on the result alone.

    Returns
    -------
    bytes
        UTF-8.

    Raises
    ------
    InputError
        The name is empty.

    Examples
    --------
    >>> cases = [Case("A"), Case("B", "failure", "far off", "error", "by 12 %")]
    >>> found = junit_xml("demo", cases, properties={"level": "0.95"}, summary="1 of 2 failed.")
    >>> [found.count(word) for word in (b"<testcase ", b"<failure ")]
    [2, 1]
    """
    if not name.strip():
        raise InputError("name of the suite must not be empty.")
    when = timestamp or datetime(1970, 1, 1)
    if when.tzinfo is not None:
        when = when.astimezone(UTC)
    outcomes = [case.outcome for case in cases]
    suite = ET.Element(
        "testsuite",
        {
            "name": token(name),
            "package": token(name),
            "id": "0",
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": "localhost",
            "tests": str(len(cases)),
            "failures": str(outcomes.count("failure")),
            "errors": "0",
            "skipped": str(outcomes.count("skipped")),
            "time": "0",
        },
    )
    known = ET.SubElement(suite, "properties")
    for key, value in properties.items():
        ET.SubElement(known, "property", {"name": key, "value": legal(value)})
    suite.extend(
        _element(case, label, token(name))
        for case, label in zip(cases, _labels(cases), strict=True)
    )
    ET.SubElement(suite, "system-out").text = legal(summary)
    ET.SubElement(suite, "system-err").text = ""
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    body: bytes = ET.tostring(suites, "utf-8")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + body + b"\n"


def _element(case: Case, label: str, suite: str) -> ET.Element:
    element = ET.Element("testcase", {"name": label, "classname": suite, "time": "0"})
    if case.outcome == "failure":
        given = {"message": token(case.message), "type": token(case.kind)}
        ET.SubElement(element, "failure", given).text = legal(case.text or case.message)
    elif case.outcome == "skipped":
        ET.SubElement(element, "skipped", {"message": token(case.message)})
    return element


def _labels(cases: Sequence[Case]) -> list[str]:
    """Return names that differ, in the order of the cases."""
    found: dict[str, None] = {}
    for case in cases:
        name = label = token(case.name)
        again = 1
        while label in found:
            again += 1
            label = f"{name} ({again})"
        found[label] = None
    return list(found)
