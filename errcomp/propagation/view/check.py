"""`errcomp propagate validate` as test cases and as a summary: are the bands too narrow?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errcomp.caveats import remedies
from errcomp.report.junit import Case, CheckReport
from errcomp.report.markdown import head, items, line, paragraph, table
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from errcomp.propagation.validation import Validation, ValidationRow


#: Conditions on which a check fails.
CONDITIONS = ("narrow",)
#: The level that is tested first, and that the summary shows.
_FIRST = 0.9


def report_validation(
    result: Validation,
    *,
    name: str = "errcomp.validation",
    title: str = "Bands against measured totals",
) -> CheckReport:
    """Report a validation as a check: are the bands of the main assumption too narrow?

    One test case for each level of the first assumption, the main one; the others are for
    comparison and cannot fail. A band is too narrow if the whole 95 % interval of its coverage lies
    below its level. The 90 % band is tested first, the next level (95 %, then 80 %, then 50 %) only
    if the one before it failed. Such a fixed sequence needs no correction for the number of levels,
    and loses no power: bands that are too narrow by some factor show it most clearly at 90 %. A
    band that is too wide does not fail; the summary mentions it.

    If the bands are right, a false alarm has a probability of at most 5 % (nominally half of that,
    because the interval has two ends), for any number of levels (tests/statistical/test_checks.py).

    Parameters
    ----------
    result : Validation
    name : str
        Name of the suite, and class of its test cases.
    title : str
        Title of the summary.

    Returns
    -------
    CheckReport

    References
    ----------
    Westfall and Krishen (2001), "Optimally weighted, fixed sequence and gatekeeper multiple testing
    procedures", Journal of Statistical Planning and Inference 99, 25-40,
    doi:10.1016/S0378-3758(01)00077-5.

    Examples
    --------
    >>> import errcomp as ec
    >>> kernels = ec.datasets.load("neusight-kernels")
    >>> report = report_validation(ec.propagation.validate(kernels, correlation="independent"))
    >>> print(report.verdict)
    Too narrow: the 90 % band under "independent" contains 28 % [12, 49] of 87 totals.
    """
    relied = result.rows[0].assumption
    rows = sorted((row for row in result.rows if row.assumption == relied), key=_order)
    failed: list[ValidationRow] = []
    for row in rows:
        if not _narrow(row):
            break
        failed.append(row)
    verdict = _sentence(rows[0], bool(failed))
    lines = [
        *head(title, verdict),
        *_table(result, relied),
        *_advice(result, rows, bool(failed)),
        *_footer(result, rows[0]),
    ]
    return CheckReport(
        name,
        tuple(_case(row, row in failed) for row in sorted(rows, key=lambda row: row.level)),
        {
            "assumption": relied,
            "left.out": result.left_out,
            "totals": str(rows[0].n),
            "clusters": str(rows[0].n_clusters),
            "confidence": "0.95",
            "order": ", ".join(f"{row.level:g}" for row in rows),
        },
        verdict,
        "\n".join(lines) + "\n",
    )


def _order(row: ValidationRow) -> tuple[float, float]:
    """Order levels by their distance to 90 %, the higher first."""
    return round(abs(row.level - _FIRST), 9), -row.level


def _narrow(row: ValidationRow) -> bool:
    return row.coverage_high < row.level


def _wide(row: ValidationRow) -> bool:
    return row.coverage_low > row.level


def _several_clusters(row: ValidationRow) -> bool:
    """Return whether there is more than one cluster; one does not show others."""
    return row.n_clusters > 1


def _case(row: ValidationRow, failed: bool) -> Case:
    name = f"{row.assumption}, {_percent(row.level)} band"
    if failed:
        text = f"contains {_covered(row)} of {row.n} totals, less than {_percent(row.level)}"
        return Case(name, "failure", f"too narrow: {text}", "narrow", text)
    if not _several_clusters(row):
        return Case(
            name, "skipped", "all totals are of one cluster, so nothing is known about others"
        )
    return Case(name)


def _sentence(row: ValidationRow, failed: bool) -> str:
    of = f'the {_percent(row.level)} band under "{row.assumption}" contains {_covered(row)}'
    n = f"{row.n} total{'' if row.n == 1 else 's'}"
    if failed:
        return f"Too narrow: {of} of {n}."
    if not _several_clusters(row):
        return f"Nothing could be checked: {of} of {n}, all of one cluster."
    wide = " It is too wide." if _wide(row) else ""
    return f"Pass: {of} of {n}.{wide}"


def _table(result: Validation, relied: str) -> list[str]:
    levels = list(dict.fromkeys(row.level for row in result.rows))
    shown = min((row for row in result.rows if row.assumption == relied), key=_order).level
    rows = []
    for name in dict.fromkeys(row.assumption for row in result.rows):
        at = result.row(name, shown)
        rows.append(
            (
                f"{name} (main)" if name == relied else name,
                *(_covered(result.row(name, level), sign=False) for level in levels),
                format_fraction(at.mean_width),
                _finding(at),
            )
        )
    names = (
        "assumption",
        *(f"{_percent(level)} band" for level in levels),
        f"width ({_percent(shown)})",
        f"{_percent(shown)} band is",
    )
    return table(names, rows, right=range(1, len(levels) + 2))


def _finding(row: ValidationRow) -> str:
    return "too narrow" if _narrow(row) else "too wide" if _wide(row) else "not refuted"


def _advice(result: Validation, rows: Sequence[ValidationRow], failed: bool) -> list[str]:
    first = rows[0]
    if not _several_clusters(first):
        return paragraph(f"What to do: measure runs of more than one {result.cluster}.")
    notes = remedies({"the errors": result.caveats}) if result.caveats else []
    if not failed:
        return items("What to know:", notes) if notes else paragraph("What to do: nothing.")
    lines = [
        "Check how the new runs differ from the runs of the fit, and fit the errors to runs like "
        "the new runs."
    ]
    others = [
        row
        for row in result.rows
        if row.level == first.level and row.assumption != first.assumption and not _narrow(row)
    ]
    if others:
        best = min(others, key=lambda row: row.interval_score)
        lines.append(
            f'Or use another assumption: under "{best.assumption}" the band is '
            f"{_times(best.mean_width, first.mean_width)} and contains {_covered(best)}. "
            "This assumption was chosen on these same totals: check it on other totals."
        )
    return items("What to do:", [*lines, *notes])


def _times(width: float, other: float) -> str:
    return f"{width / other:.1f} times as wide" if other > 0 else f"{format_fraction(width)} wide"


def _footer(result: Validation, first: ValidationRow) -> list[str]:
    """Explain the figures, and how often a valid band fails."""
    how = f"each {result.left_out} held out" if result.left_out else "errors from another table"
    clusters = f"{first.n_clusters} {result.cluster}{'' if first.n_clusters == 1 else 's'}"
    skipped = f" Runs not evaluated: {len(result.not_judged)}." if result.not_judged else ""
    return [
        line(
            f"Per cent of {first.n} totals ({result.total}) inside the band, with 95 % intervals "
            f"that treat totals of one {result.cluster} as correlated ({clusters}); {how}. Only "
            f"the main assumption can fail: its {_percent(first.level)} band is tested first, and "
            "each further level only if the level before failed. "
            f"Valid bands fail in at most 5 % of checks.{skipped}"
        )
    ]


def _covered(row: ValidationRow, *, sign: bool = True) -> str:
    low, high = 100 * row.coverage_low, 100 * row.coverage_high
    return f"{100 * row.coverage:.0f}{' %' if sign else ''} [{low:.0f}, {high:.0f}]"


def _percent(level: float) -> str:
    return f"{100 * level:g} %"
