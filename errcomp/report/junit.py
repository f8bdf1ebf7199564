"""The report of a check in CI: a summary, whether the build fails, and JUnit XML.

The XML is valid under both the Ant and the Jenkins schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from xml.etree import ElementTree as ET

from errcomp.errors import InputError
from errcomp.report.model import clean

#: Characters that XML 1.0 does not allow, not even escaped.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
        Kind of failure, e.g. ``"overstated"``.
    text : str
        Details of a failure; may have several lines.
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
    """Write test cases as one suite of JUnit XML.

    Parameters
    ----------
    name : str
        Name of the suite, and class name of its cases.
    cases : sequence of Case
        Repeated names get numbers, because CI systems identify a case by its name.
    properties : mapping of str to str
        Properties of the suite: the levels and counts behind the outcomes.
    summary : str
        The verdict, written as the suite's output.
    timestamp : datetime, optional
        Time of the check. It is converted to UTC, because the format has no time zone. Default:
        1970, so that the bytes depend only on the result.

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
        raise InputError("the name of the suite must not be empty.")
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
    for case, label in zip(cases, _labels(cases), strict=True):
        suite.append(_element(case, label, token(name)))
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
    """Return a unique name for each case, in order."""
    labels: dict[str, None] = {}
    for case in cases:
        name = label = token(case.name)
        count = 1
        while label in labels:
            count += 1
            label = f"{name} ({count})"
        labels[label] = None
    return list(labels)


def legal(text: str) -> str:
    r"""Replace characters that XML does not allow, and invisible ones, by their escape sequences.

    Examples
    --------
    >>> print(legal("a\x00b"))
    a\x00b
    """
    shown = _NO_XML.sub(lambda match: f"\\x{ord(match[0]):02x}", text.replace("\r", "\\r"))
    return "".join(c if c in "\n\t\xa0" else clean(c) for c in shown)


def token(text: str) -> str:
    r"""Convert text to an XML token: one line, without spaces at its ends.

    Examples
    --------
    >>> token(" two\n lines "), token(" ")
    ('two lines', '(no name)')
    """
    return legal(" ".join(text.split())) or "(no name)"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The cases and the summary of a check; the same result gives the same bytes.

    Attributes
    ----------
    name : str
        Name of the suite, and class name of its cases.
    cases : tuple of Case
    properties : mapping of str to str
        The levels and counts behind the outcomes.
    verdict : str
        The verdict in one sentence.
    markdown : str
        The summary in Markdown: heading, verdict, table, what to do.
    """

    name: str
    cases: tuple[Case, ...]
    properties: Mapping[str, str]
    verdict: str
    markdown: str

    @property
    def failed(self) -> bool:
        """Whether any case failed."""
        return any(case.outcome == "failure" for case in self.cases)

    def junit(self, *, timestamp: datetime | None = None) -> bytes:
        """Return the cases as JUnit XML; see `errcomp.report.junit.junit_xml`."""
        return junit_xml(
            self.name,
            self.cases,
            properties=self.properties,
            summary=self.verdict,
            timestamp=timestamp,
        )
