"""What a check in CI leaves behind: test cases, a summary, and whether the build fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from errcomp.report.checks.junit import Case, junit_xml

__all__ = ["CheckReport"]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A check's cases and its summary; the same result gives the same bytes.

    Attributes
    ----------
    name : str
        Of the suite, and class of its cases.
    cases : tuple of Case
    properties : mapping of str to str
        Levels and counts that the outcomes rest on.
    verdict : str
        One sentence.
    markdown : str
        The summary for people: heading, verdict, table, what to do.
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
        """Return the cases as JUnit XML; see `errcomp.report.checks.junit.junit_xml`."""
        return junit_xml(
            self.name,
            self.cases,
            properties=self.properties,
            summary=self.verdict,
            timestamp=timestamp,
        )
