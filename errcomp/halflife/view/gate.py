"""The gate of `errcomp halflife check` as test cases and as a summary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from errcomp.halflife.gate import VERDICTS, GateResult
from errcomp.halflife.view.check import about_noise, within
from errcomp.report.junit import Case, CheckReport
from errcomp.report.markdown import head, items, paragraph, table
from errcomp.results import format_change

__all__ = ["report_halflife"]

#: Series that are listed in a failure.
_LISTED = 50
#: Log errors beyond this are written as factors.
_LARGE = 5
_GREW, *_, _REPEAT = VERDICTS


def report_halflife(
    result: GateResult,
    *,
    name: str = "errcomp.halflife",
    title: str = "Half-life check",
    fail_on: Sequence[str] = (),
) -> CheckReport:
    """Report a gate's result: what changed, by how much, since when, what to do.

    One test case for each group of series. A group fails where the error of any of its series
    grew. It is skipped, with the reason, where a series needs a repeat, and where none of its
    series can be tested. Over all groups, and over the first 1,000 versions that are checked, a
    false alarm has at most the probability ``alpha``.

    Parameters
    ----------
    result : GateResult
    name : str
        Of the suite, and class of its test cases.
    title : str
        Of the summary.
    fail_on : sequence of str
        ``["repeat"]``: a group in which a series needs a repeat fails, too.

    Returns
    -------
    CheckReport

    Examples
    --------
    >>> from errcomp.halflife.panel import Panel
    >>> from errcomp.halflife.gate import check
    >>> panel = Panel(
    ...     versions=("1.0", "1.1"), months=np.arange(2.0), names=("a", "b"),
    ...     clusters=np.arange(2), starts=np.array([0, 2, 4]), version=np.tile(np.arange(2), 2),
    ...     error=np.array([0.0, -0.7, 0.0, 0.004]), sd=np.full(4, 0.01),
    ...     noise_df=np.full(2, 20.0), frozen_at_first=True)
    >>> report = report_halflife(check(panel, groups=["Gelu", "Conv"]))
    >>> [(case.name, case.outcome) for case in report.cases]
    [('Gelu', 'failure'), ('Conv', 'passed')]
    >>> print(report.verdict)
    Regression at 1.1: the error of 1 of 2 series grew.
    """
    members: dict[str, list[int]] = {}
    for i, group in enumerate(result.groups):
        members.setdefault(group, []).append(i)
    verdict = _verdict_line(result)
    return CheckReport(
        name,
        tuple(_case(result, group, series, fail_on) for group, series in members.items()),
        _properties(result),
        verdict,
        _markdown(result, title, verdict),
    )


def _case(result: GateResult, group: str, series: Sequence[int], fail_on: Sequence[str]) -> Case:
    inside = set(series)
    grew = [i for i in result.blamed().tolist() if i in inside]
    if grew:
        lines = [_line(result, i) for i in grew[:_LISTED]]
        if len(grew) > _LISTED:
            lines.append(f"and {len(grew) - _LISTED} more")
        message = f"the error of {len(grew)} of {len(series)} series grew: {lines[0]}"
        return Case(group, "failure", message, "regression", "\n".join(lines))
    if again := [i for i in series if result.verdict[i] == _REPEAT]:
        message = f"repeat needed in {len(again)} of {len(series)} series: "
        message += f"{_line(result, again[0])}; {_runs(result, again[0])}"
        text = "\n".join(f"{_line(result, i)}; {_runs(result, i)}" for i in again[:_LISTED])
        if "repeat" in fail_on:
            return Case(group, "failure", message, "repeat", text)
        return Case(group, "skipped", message)
    if np.isnan(result.p[list(series)]).all():
        reasons = {result.why[i] or str(result.verdict[i]) for i in series}
        return Case(group, "skipped", "; ".join(sorted(reasons)))
    return Case(group)


def _properties(result: GateResult) -> dict[str, str]:
    counts = {f"series.{verdict}": str(n) for verdict, n in result.counts().items()}
    return {
        "version": result.version,
        "outcome": result.outcome,
        "look": str(result.look),
        "alpha": f"{result.alpha:.6g}",
        "level.look": f"{result.level:.6g}",
        "margin": f"{result.margin:.6g}",
        "noise.scale": f"{result.law.scale:.6g}",
        "noise.df": f"{result.law.df:.6g}",
        **counts,
    }


def _line(result: GateResult, i: int) -> str:
    line = f"{result.names[i]}: {_from_to(result, i)}, versions {result.releases(i)}"
    if result.moved_by[i]:
        line += f", {_moved(result, i)}"
    if np.isnan(result.p_adjusted[i]):
        return line
    return f"{line}, p = {result.p_adjusted[i]:.2g} corrected for all series"


def _runs(result: GateResult, i: int) -> str:
    """Say how many runs would decide."""
    n = 0 if result.repeats_needed is None else int(result.repeats_needed[i])
    if not n:
        return "over 20 more runs like it would make it a regression"
    return f"{n} more run{'s' * (n > 1)} like it would make it a regression"


def _error(log_error: float) -> str:
    """Write a log error as a relative error, or as a factor where it is large."""
    if abs(log_error) > _LARGE:
        return f"a factor of {np.exp(np.clip(log_error, -700, 700)):.2g}"
    return format_change(float(np.expm1(log_error)))


def _from_to(result: GateResult, i: int) -> str:
    return f"error {_error(result.baseline[i])} before, {_error(result.new[i])} now"


def _moved(result: GateResult, i: int) -> str:
    """Say what changed and by how much: the measurement, the prediction, or both."""
    by = result.moved_by[i]
    if by == "unknown":
        return "unknown whether measurement or prediction changed"
    parts = []
    if by in ("reference", "both"):
        parts.append(f"measured values changed by {_error(-result.reference[i])}")
    if by in ("predictor", "both"):
        parts.append(f"predictions changed by {_error(result.predictor[i])}")
    return " and ".join(parts) or "unchanged"


def _verdict_line(result: GateResult) -> str:
    n, grew = len(result.names), int((result.verdict == _GREW).sum())
    if result.outcome == "regression":
        return f"Regression at {result.version}: the error of {grew} of {n} series grew."
    if result.outcome == "repeat":
        again = int((result.verdict == _REPEAT).sum())
        return (
            f"Repeat needed at {result.version}: {again} of {n} series may have changed, or may "
            "have had a bad run."
        )
    if result.outcome == "cannot be told":
        return f"Cannot tell yet at {result.version}: {_why(result)}."
    tested = int((~np.isnan(result.p)).sum())
    passed = f"Pass at {result.version}: the error grew in none of the {tested} tested series."
    known = result.detectable[np.isfinite(result.detectable)]
    if not len(known):
        return passed
    least = float(np.median(known))
    preposition = "by" if abs(least) > _LARGE else "of"
    return (
        f"{passed} In the median series a shift {preposition} {_error(least)} would be detected "
        f"half of the time{within(result)}."
    )


def _why(result: GateResult) -> str:
    """Return the most common reason why series could not be tested."""
    why = [text for text in result.why.tolist() if text]
    return max(dict.fromkeys(why), key=why.count) if why else "no series could be tested"


def _markdown(result: GateResult, title: str, verdict: str) -> str:
    lines = head(title, verdict)
    blamed = result.blamed().tolist()
    if blamed:
        lines += ["### Error grew", "", *_table(result, blamed)]
    again = np.flatnonzero(result.verdict == _REPEAT).tolist()
    if again:
        lines += ["### Repeat these", "", *_table(result, again)]
        lines += [
            *items(
                "Runs that would decide:",
                [f"{result.names[i]}: {_runs(result, i)}" for i in again[:_LISTED]],
            )
        ]
    listed = {*blamed, *again}
    others = [i for i in range(len(result.names)) if result.moved_by[i] and i not in listed]
    if others:
        others.sort(key=lambda i: -abs(float(result.shift[i])))
        lines += ["### Changed, without a regression", "", *_table(result, others)]
    lines += _do(result)
    counts = [(verdict, str(n)) for verdict, n in result.counts().items() if n]
    lines += table(["verdict", "series"], counts, right=[1])
    lines.append(
        f"This is check number {result.look} of this history. The probability of any false alarm "
        f"is at most {result.level:.2g} in this check and {result.alpha:.2g} in the first 1,000 "
        "checks together."
    )
    lines += about_noise(result)
    return "\n".join(lines) + "\n"


def _table(result: GateResult, series: Sequence[int]) -> list[str]:
    rows = [
        (
            result.names[i],
            result.groups[i],
            result.releases(i),
            _error(result.baseline[i]),
            _error(result.new[i]),
            _error(result.shift[i])
            + (f" [{_error(low)}, {_error(result.high[i])}]" if np.isfinite(low) else ""),
            _moved(result, i),
        )
        for i, low in zip(series, result.low[list(series)], strict=True)
    ]
    names = (
        *("series", "group", "between", "error before", "error now"),
        *("shift, 95 % interval", "what changed"),
    )
    return table(names, rows, right=(3, 4, 5))


def _do(result: GateResult) -> list[str]:
    """Say what to do next."""
    if result.outcome == "cannot be told":
        return paragraph(
            "What to do: add validations of earlier versions, or validate each series several "
            "times under one version."
        )
    if result.outcome == "repeat":
        return paragraph(
            "What to do: validate these series again under the same version and add the rows to "
            "the new table. The check then decides, or says how many more runs it needs."
        )
    if result.outcome == "pass":
        return paragraph("What to do: nothing.")
    by = set(result.moved_by[result.blamed()].tolist())
    lines = []
    if by & {"reference", "both"}:
        lines += [
            "The measurement changed: measure the previous version again on the same machine. If "
            "the result differs from its earlier measurement, the machine is responsible, not the "
            "software.",
            "If the software is responsible, recalibrate these groups with the new version, or do "
            "not release this version.",
        ]
    if by & {"predictor", "both"}:
        lines.append("The prediction changed: check what changed in the predictor.")
    if "unknown" in by:
        lines.append(
            "It is unknown whether the measurement or the prediction changed: store the "
            "measurement and the prediction for every version."
        )
    return items("What to do:", lines)
