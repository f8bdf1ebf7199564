"""An evaluation of choices as test cases: conditions such as ``regret>5%``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errcomp.decisions.view.evaluation import named
from errcomp.errors import InputError
from errcomp.report.junit import Case, CheckReport
from errcomp.report.markdown import head, items
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from errcomp.decisions.results import Decisions

#: Name → what it is, whether large values are bad, and the value.
VALUES: dict[str, tuple[str, bool, Callable[[Decisions], float]]] = {
    "regret": ("mean regret", True, lambda found: found.regret.value),
    "regret-max": ("largest regret", True, lambda found: found.regret_max),
    "wrong": ("share wrong where 95 % sure", True, lambda found: found.wrong_when_sure),
    "right": ("share of comparisons right", False, lambda found: found.right.value),
}
_CONDITION = re.compile(r"\s*([a-z-]+)\s*([<>])\s*([0-9.]+)\s*(%?)\s*")


@dataclass(frozen=True, slots=True)
class Limit:
    """A condition on which a check fails.

    Attributes
    ----------
    text : str
        As the user wrote it.
    name : str
        One of `VALUES`.
    value : float
        A fraction.
    """

    text: str
    name: str
    value: float

    def fails(self, found: Decisions) -> bool:
        """Say whether the value is beyond the limit; a value that is not defined is not."""
        _, above, get = VALUES[self.name]
        value = get(found)
        return value > self.value if above else value < self.value


def limit(text: str) -> Limit:
    """Read a condition: a name, ``>`` or ``<``, and a fraction.

    Raises
    ------
    InputError
        It is not such a condition.

    Examples
    --------
    >>> limit("regret>5%")
    Limit(text='regret>5%', name='regret', value=0.05)
    """
    known = ", ".join(f"{name}{'>' if up else '<'}5%" for name, (_, up, _) in VALUES.items())
    match = _CONDITION.fullmatch(text)
    if match is None or match[1] not in VALUES or match[3].count(".") > 1:
        raise InputError(f"{text!r} is not a condition. Conditions look like: {known}")
    if (match[2] == ">") != VALUES[match[1]][1]:
        raise InputError(
            f"{text!r} fails when the result is good. Reverse the < or >. Conditions: {known}"
        )
    return Limit(text.strip(), match[1], float(match[3]) / (100 if match[4] else 1))


def report_decisions(
    found: Decisions, *, fail_on: Sequence[str], name: str = "errcomp.compare"
) -> CheckReport:
    """Report an evaluation as a check: one test case for each condition.

    Parameters
    ----------
    found : Decisions
    fail_on : sequence of str
        Conditions, e.g. ``"regret>5%"``: the check fails where these choices meet one.
    name : str
        Name of the suite.

    Raises
    ------
    InputError
        A text is not a condition.
    """
    limits = [limit(text) for text in fail_on]
    cases = [_case(found, one) for one in limits]
    failed = [case for case in cases if case.outcome == "failure"]
    verdict = "; ".join(case.message for case in failed) or "no condition to fail on is true"
    verdict = f"{verdict[:1].upper()}{verdict[1:]}."
    title = f"Choices of {named(found.between)}" + (f" by {found.tool}" if found.tool else "")
    lines = [*head(title, verdict), *items("Values:", [_value(found, one.name) for one in limits])]
    return CheckReport(
        name,
        tuple(cases),
        {
            "source": found.source,
            "fail.on": ", ".join(one.text for one in limits),
            "comparisons": str(found.n),
            "choices": str(found.choices),
            "seed": str(found.seed),
        },
        verdict,
        "\n".join(lines) + "\n",
    )


def _case(found: Decisions, one: Limit) -> Case:
    told = _value(found, one.name)
    if math.isnan(VALUES[one.name][2](found)):
        return Case(one.text, "skipped", f"{VALUES[one.name][0]} is not defined here")
    if not one.fails(found):
        return Case(one.text)
    return Case(one.text, "failure", told, one.name, told)


def _value(found: Decisions, name: str) -> str:
    words, _, get = VALUES[name]
    value = get(found)
    shown = "not defined" if math.isnan(value) else format_fraction(value)
    return f"{words}: {shown} ({found.n:,} comparisons, {found.choices:,} choices)"
