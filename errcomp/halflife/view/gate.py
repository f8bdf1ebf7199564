"""The gate of `errcomp halflife check` as test cases and as a summary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from errcomp.halflife.gate import VERDICTS, GateResult
from errcomp.report.junit import Case, CheckReport
from errcomp.report.markdown import head, items, paragraph, table
from errcomp.results import format_change

__all__ = ["report_halflife"]

#: Series that are listed in a failure.
_LISTED = 50
#: Log errors beyond this are written as factors.
_LARGE = 5
_GREW, _WITHIN, _NO_LARGER, _AS_BEFORE, _UNKNOWN, _ABSENT = VERDICTS


def report_halflife(
    result: GateResult, *, name: str = "errcomp.halflife", title: str = "Half-life check"
) -> CheckReport:
    """Report a gate's result: what changed, by how much, since when, what to do.

    One test case for each group of series. A group fails where the error of any of its series
    grew. It is skipped where none of its series can be tested. Over all groups, and over all
    versions that are ever checked, a false alarm has at most the probability ``alpha``.

    Parameters
    ----------
    result : GateResult
    name : str
        Of the suite, and class of its test cases.
    title : str
        Of the summary.

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
        tuple(_case(result, group, series) for group, series in members.items()),
        _properties(result),
        verdict,
        _markdown(result, title, verdict),
    )


def _case(result: GateResult, group: str, series: Sequence[int]) -> Case:
    inside = set(series)
    grew = [i for i in result.blamed().tolist() if i in inside]
    if grew:
        lines = [_line(result, i) for i in grew[:_LISTED]]
        if len(grew) > _LISTED:
            lines.append(f"and {len(grew) - _LISTED} more")
        message = f"the error of {len(grew)} of {len(series)} series grew: {lines[0]}"
        return Case(group, "failure", message, "regression", "\n".join(lines))
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
    return (
        f"{result.names[i]}: {_from_to(result, i)}, versions {result.releases(i)}, "
        f"{_moved(result, i)}, p = {result.p_adjusted[i]:.2g} corrected for all series"
    )


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
    if result.outcome == "cannot be told":
        return f"Nothing could be tested at {result.version}: the noise of every series is unknown."
    tested = int((~np.isnan(result.p)).sum())
    least = float(np.median(result.detectable[~np.isnan(result.p)]))
    preposition = "by" if abs(least) > _LARGE else "of"
    return (
        f"Pass at {result.version}: the error grew in none of the {tested} tested series. In the "
        f"median series a shift {preposition} {_error(least)} would be detected half of the time."
    )


def _markdown(result: GateResult, title: str, verdict: str) -> str:
    lines = head(title, verdict)
    blamed = result.blamed().tolist()
    if blamed:
        lines += ["### Error grew", "", *_table(result, blamed)]
    others = [
        i for i in range(len(result.names)) if result.moved_by[i] and result.verdict[i] != _GREW
    ]
    if others:
        others.sort(key=lambda i: -abs(float(result.shift[i])))
        lines += ["### Changed, without a regression", "", *_table(result, others)]
    lines += _do(result)
    counts = [(verdict, str(n)) for verdict, n in result.counts().items() if n]
    lines += table(["verdict", "series"], counts, right=[1])
    lines.append(
        f"This is check number {result.look} of this history. The probability of any false alarm "
        f"is at most {result.level:.2g} in this check and {result.alpha:.2g} in all checks "
        "together."
    )
    if result.law.scale != 1 or np.isfinite(result.law.df):
        law = (
            f"a Student t distribution of {result.law.df:.3g} degrees of freedom and scale "
            f"{result.law.scale:.2g}"
            if np.isfinite(result.law.df)
            else f"noise that is {result.law.scale:.2g} times as large"
        )
        lines.append(
            "The errors of earlier versions scatter more than their noise explains. Shifts are "
            f"therefore tested with {law}."
        )
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
            "What to do: before the next check, validate each series twice under one version, or "
            "under two versions."
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
