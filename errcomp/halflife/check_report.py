"""Results of a gate for machines and people: JUnit XML for CI systems, and a Markdown summary.

Both are functions of the result alone: the same result gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import numpy as np

from errcomp.errors import InputError
from errcomp.halflife.gate import VERDICTS, GateResult
from errcomp.results import format_fraction

__all__ = ["junit_xml", "markdown_summary"]

#: Characters that XML 1.0 does not allow, not even escaped.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: What means something in Markdown or to the HTML in it.
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~#&$@!])")
#: Series that are listed in a failure, and rows in a table of the summary.
_LISTED = 50
_SHOWN = 20
_GREW, _WITHIN, _NO_LARGER, _AS_BEFORE, _UNKNOWN, _ABSENT = VERDICTS


def junit_xml(
    result: GateResult, *, name: str = "errcomp.halflife", timestamp: datetime | None = None
) -> bytes:
    """Write a gate's result as JUnit XML: one test case for each group of series.

    A group fails where the error of any of its series grew; it is skipped where none of its series
    can be told. Levels, margins and counts are properties of the suite. The form is the common
    part of what the Ant and Jenkins schemas allow.

    Parameters
    ----------
    result : GateResult
    name : str
        Of the suite, and class of its test cases.
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
    >>> from errcomp.halflife.design import Panel
    >>> from errcomp.halflife.gate import check
    >>> panel = Panel(
    ...     versions=("1.0", "1.1"), months=np.arange(2.0), names=("a", "b"),
    ...     clusters=np.arange(2), starts=np.array([0, 2, 4]), version=np.tile(np.arange(2), 2),
    ...     error=np.array([0.0, -0.7, 0.0, 0.004]), sd=np.full(4, 0.01),
    ...     noise_df=np.full(2, 20.0), frozen_at_first=True)
    >>> found = junit_xml(check(panel, groups=["Gelu", "Conv"]))
    >>> [found.count(word) for word in (b"<testcase ", b"<failure ")]
    [2, 1]
    """
    if not name.strip():
        raise InputError("name of the suite must not be empty.")
    members: dict[str, list[int]] = {}
    for i, group in enumerate(result.groups):
        members.setdefault(group, []).append(i)
    cases = [_case(result, name, group, series) for group, series in members.items()]
    kinds = [case[0].tag if len(case) else "" for case in cases]
    when = timestamp or datetime(1970, 1, 1)
    if when.tzinfo is not None:
        when = when.astimezone(UTC)
    suite = ET.Element(
        "testsuite",
        {
            "name": _token(name),
            "package": _token(name),
            "id": "0",
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": "localhost",
            "tests": str(len(cases)),
            "failures": str(kinds.count("failure")),
            "errors": "0",
            "skipped": str(kinds.count("skipped")),
            "time": "0",
        },
    )
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(result).items():
        ET.SubElement(properties, "property", {"name": key, "value": _legal(value)})
    suite.extend(cases)
    ET.SubElement(suite, "system-out").text = _legal(_verdict_line(result))
    ET.SubElement(suite, "system-err").text = ""
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    body: bytes = ET.tostring(suites, "utf-8")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + body + b"\n"


def _case(result: GateResult, name: str, group: str, series: Sequence[int]) -> ET.Element:
    case = ET.Element("testcase", {"name": _token(group), "classname": _token(name), "time": "0"})
    grew = set(series) & set(result.blamed().tolist())
    if grew:
        listed = [i for i in result.blamed().tolist() if i in grew]
        lines = [_line(result, i) for i in listed[:_LISTED]]
        if len(listed) > _LISTED:
            lines.append(f"and {len(listed) - _LISTED} more")
        message = f"the error of {len(grew)} of {len(series)} series grew: {lines[0]}"
        found = ET.SubElement(case, "failure", {"message": _legal(message), "type": "regression"})
        found.text = _legal("\n".join(lines))
    elif np.isnan(result.p[list(series)]).all():
        reasons = {result.why[i] or str(result.verdict[i]) for i in series}
        ET.SubElement(case, "skipped", {"message": _legal("; ".join(sorted(reasons)))})
    return case


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
        f"{result.names[i]}: {_from_to(result, i)}, {result.releases(i)}, "
        f"{_moved(result, i)}, p = {result.p_adjusted[i]:.2g} over all series"
    )


def _error(log_error: float) -> str:
    """Write a log error as people do: how far the prediction is off the measurement."""
    if abs(log_error) > 5:
        return f"{np.exp(np.clip(log_error, -700, 700)):.2g} times"
    relative = float(np.expm1(log_error))
    return f"{'+' if relative >= 0 else '−'}{format_fraction(abs(relative))}"


def _from_to(result: GateResult, i: int) -> str:
    return f"error {_error(result.baseline[i])} before, {_error(result.new[i])} now"


def _moved(result: GateResult, i: int) -> str:
    """Say what moved, and by how much: what was measured, the prediction, or both."""
    by = result.moved_by[i]
    if by == "unknown":
        return "what moved is not known"
    parts = []
    if by in ("reference", "both"):
        parts.append(f"measured values moved by {_error(-result.reference[i])}")
    if by in ("predictor", "both"):
        parts.append(f"predictions moved by {_error(result.predictor[i])}")
    return " and ".join(parts) or "as before"


def _verdict_line(result: GateResult) -> str:
    n, grew = len(result.names), int((result.verdict == _GREW).sum())
    if result.outcome == "regression":
        return f"Regression at {result.version}: the error of {grew} of {n} series grew."
    if result.outcome == "cannot be told":
        return f"Nothing could be tested at {result.version}: the noise of no series is known."
    tested = int((~np.isnan(result.p)).sum())
    least = float(np.median(result.detectable[~np.isnan(result.p)]))
    return (
        f"Pass at {result.version}: the error of none of {tested} series that were tested grew. "
        f"Half of them would have shown a shift of {_error(least)} or less with probability 1/2."
    )


def markdown_summary(result: GateResult, *, title: str = "Half-life check") -> str:
    """Write a gate's result as Markdown: what moved, by how much, since when, what to do.

    Parameters
    ----------
    result : GateResult
    title : str

    Returns
    -------
    str

    Examples
    --------
    >>> from errcomp.halflife.design import Panel
    >>> from errcomp.halflife.gate import check
    >>> panel = Panel(
    ...     versions=("1.0", "1.1"), months=np.arange(2.0), names=("Gelu",),
    ...     clusters=np.arange(1), starts=np.array([0, 2]), version=np.arange(2),
    ...     error=np.array([0.0, -0.7]), sd=np.full(2, 0.01), noise_df=np.full(1, 20.0),
    ...     frozen_at_first=True)
    >>> print(markdown_summary(check(panel)).splitlines()[2])
    **Regression at 1.1: the error of 1 of 1 series grew.**
    """
    lines = [f"## {_escaped(title)}", "", f"**{_escaped(_verdict_line(result))}**", ""]
    blamed = result.blamed().tolist()
    if blamed:
        lines += _table(result, blamed, "Error grew")
    others = [
        i for i in range(len(result.names)) if result.moved_by[i] and result.verdict[i] != _GREW
    ]
    if others:
        others.sort(key=lambda i: -abs(float(result.shift[i])))
        lines += _table(result, others, "Moved, and no regression")
    lines += [*_do(result), "", *_counted(result.counts()), ""]
    lines.append(
        f"Look {result.look} of this gate: level {result.level:.2g} of {result.alpha:.2g} over all "
        "looks, shared by all series."
    )
    if result.law.scale != 1 or np.isfinite(result.law.df):
        lines.append(
            "Baselines scatter more, or further, than their noise says: compared with Student t of "
            f"{result.law.df:.3g} degrees of freedom and scale {result.law.scale:.2f}."
        )
    return "\n".join(lines) + "\n"


def _table(result: GateResult, series: Sequence[int], heading: str) -> list[str]:
    lines = [
        f"### {heading}",
        "",
        "| series | group | between | error before | now | shift, 95 % interval | moved |",
        "|---|---|---|---|---|---|---|",
    ]
    for i in series[:_SHOWN]:
        shift = f"{_error(result.shift[i])} [{_error(result.low[i])}, {_error(result.high[i])}]"
        cells = (
            result.names[i],
            result.groups[i],
            result.releases(i),
            _error(result.baseline[i]),
            _error(result.new[i]),
            shift if np.isfinite(result.low[i]) else _error(result.shift[i]),
            _moved(result, i),
        )
        lines.append("| " + " | ".join(_escaped(cell) for cell in cells) + " |")
    if len(series) > _SHOWN:
        lines += ["", f"and {len(series) - _SHOWN} more."]
    return [*lines, ""]


def _do(result: GateResult) -> list[str]:
    """Say what to do next."""
    if result.outcome == "cannot be told":
        return [
            "What to do: validate each series more than once under one version, or two versions "
            "before the next check."
        ]
    if result.outcome == "pass":
        return ["What to do: nothing."]
    by = set(result.moved_by[result.blamed()].tolist())
    lines = ["What to do:", ""]
    if by & {"reference", "both"}:
        lines.append(
            "- The measurement moved: validate once more on the same machine with the version "
            "before. If that moved too, it was the machine and not the software."
        )
        lines.append(
            "- If it was the software, recalibrate these groups from the new version on, or hold "
            "the version back."
        )
    if by & {"predictor", "both"}:
        lines.append("- The prediction moved: look for what changed in the predictor.")
    if "unknown" in by:
        lines.append(
            "- What moved is not known: keep measured and predicted of the versions before."
        )
    return lines


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [
        "| verdict | series |",
        "|---|---|",
        *(f"| {verdict} | {n} |" for verdict, n in counts.items() if n),
    ]


def _legal(text: str) -> str:
    """Show characters that XML does not allow as their code; carriage returns too."""
    return _NO_XML.sub(lambda found: _code(found[0]), text.replace("\r", "\\r"))


def _token(text: str) -> str:
    """Make a name of one line: a token of XML has no line breaks or blanks at its ends."""
    return _legal(" ".join(text.split())) or "(no name)"


def _code(character: str) -> str:
    return f"\\x{ord(character):02x}"


def _escaped(text: str) -> str:
    """Write text so that Markdown shows it as it is, on one line."""
    return _MARKDOWN.sub(r"\\\1", _token(text))
