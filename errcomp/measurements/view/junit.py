"""A check of measurements as test cases: copies, impossible values, hidden keys, drift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errcomp.errors import InputError, did_you_mean
from errcomp.report.junit import Case, CheckReport
from errcomp.report.markdown import head, items

if TYPE_CHECKING:
    from errcomp.measurements.results import MeasurementCheck

#: What a check can fail on.
CONDITIONS = ("copies", "impossible", "hidden", "drift")


def conditions(texts: Sequence[str]) -> list[str]:
    """Return the conditions of ``--fail-on``, which may be separated by commas.

    Raises
    ------
    InputError
        A condition is not one of `CONDITIONS`.

    Examples
    --------
    >>> conditions(["copies,impossible"])
    ['copies', 'impossible']
    """
    named = [name.strip() for text in texts for name in text.split(",")]
    for name in named:
        if name not in CONDITIONS:
            raise InputError(
                f"--fail-on takes {', '.join(CONDITIONS)}, got {name!r}. "
                f"{did_you_mean(name, CONDITIONS)}".rstrip()
            )
    return list(dict.fromkeys(named))


def report_check(
    found: MeasurementCheck, *, fail_on: Sequence[str], name: str = "errcomp.measurements"
) -> CheckReport:
    """Report a check of measurements: one test case for each condition.

    Parameters
    ----------
    found : MeasurementCheck
    fail_on : sequence of str
        The conditions that fail; without any, all of `CONDITIONS` are reported.
    name : str
        Name of the suite.
    """
    cases = [_case(found, one) for one in fail_on or CONDITIONS]
    failed = [case for case in cases if case.outcome == "failure"]
    verdict = "; ".join(case.message for case in failed) or "nothing to fail on was found"
    verdict = f"{verdict[:1].upper()}{verdict[1:]}."
    lines = [
        *head("Measurements", verdict),
        *items("Findings:", [_told(found, c) for c in CONDITIONS]),
    ]
    properties = {
        "source": found.source,
        "measured": ", ".join(found.measured),
        "fail.on": ", ".join(fail_on),
        "n": str(found.n),
    }
    return CheckReport(name, tuple(cases), properties, verdict, "\n".join(lines) + "\n")


def _count(found: MeasurementCheck, condition: str) -> int:
    return {
        "copies": found.copies.n,
        "impossible": len({row for one in found.impossible for row in one.rows}),
        "hidden": len(found.hidden_keys),
        "drift": len(found.drift),
    }[condition]


def _told(found: MeasurementCheck, condition: str) -> str:
    words = {
        "copies": "rows that are copies",
        "impossible": "rows with impossible values",
        "hidden": "configurations whose rows differ by more than noise",
        "drift": "columns along which repeats change",
    }
    return f"{words[condition]}: {_count(found, condition):,}"


def _case(found: MeasurementCheck, condition: str) -> Case:
    if not _count(found, condition):
        return Case(condition)
    told = _told(found, condition)
    return Case(condition, "failure", told, condition, told)
