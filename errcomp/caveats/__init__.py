"""What a metric hides: named checks with a stable code, evidence in numbers and one sentence.

`check` checks the pairs of one tool, and a claim about them; `check_table` compares the tools of a
table; `explain` says what a code means, why its threshold is what it is, and what to do.

A check of a random effect is a test, with a threshold below which the effect does not matter. The
tests on one set of pairs are corrected together (Benjamini and Hochberg): at most 5 % of the
reported caveats are expected to be false (``1 - level``). Clean pairs get a caveat from a test in
at most 5 % of cases, whether their errors are uniform, normal, log-normal, logistic, Laplace or
Student t. Checks of a plain fact have only the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from errcomp.caveats._case import Case, Finding, TotalsCase
from errcomp.caveats._registry import ELSEWHERE, Check, Note, explain, find
from errcomp.caveats._statistics import discoveries
from errcomp.caveats.sample import quantile_caveat
from errcomp.caveats.shape import in_clusters
from errcomp.caveats.tools import RelativeDifference, Tools, relative_difference
from errcomp.errors import InputError, describe_names
from errcomp.metrics.intervals import check_options
from errcomp.results import Caveat
from errcomp.tables import Pairs, Table
from errcomp.tables.backends import pairs_in_memory

__all__ = [
    "CHECKS",
    "Check",
    "RelativeDifference",
    "check",
    "check_table",
    "explain",
    "quantile_caveat",
    "relative_difference",
]

#: All checks, the most serious first: those that make a metric unusable, then those about the
#: sample, then those about the shape of the errors. Caveats are reported in this order.
CHECKS: tuple[Check, ...] = find(__name__, __path__)


def check(
    pairs: Any,
    *,
    claim: Any = None,
    by: str | Sequence[str] = (),
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Caveat, ...]:
    """Find what the error metric of one tool's pairs hides.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
        Of one tool: a group of an audit, or all of its pairs. For pairs that stay in an engine,
        sums suffice (`errcomp.tables.engine.pairs.PairTotals`); checks that need single pairs are
        then left out.
    claim : object, optional
        The claim about these pairs. These attributes are read if it has them: ``printed``
        (``"2.3%"``), ``shown`` (the same as messages write it), ``contains`` (a function: whether a
        fraction would be printed like the claim), or else ``low`` and ``high`` (fractions,
        half-open), ``metric``, ``kind`` (``"error"``, …), ``aggregation`` (``"not stated"`` where
        the source does not say), ``level`` and ``reference``.
    by : str or sequence of str
        The grouping keys. The pooled metric is compared with the mean over those groups. Inside one
        of the groups (and without keys), device, model, mode and kernel_class are checked one by
        one.
    level : float
        One minus the share of false alarms among the reported caveats; also the confidence of
        quoted intervals.
    seed : int
        Of the null samples and permutations; the same seed gives the same caveats.

    Returns
    -------
    tuple of Caveat
        In the order of `CHECKS`, the most serious first. The evidence of a caveat from a test has
        the ``p_value``, corrected over the tested keys.

    Raises
    ------
    InputError
        The pairs are of several tools, a key does not exist, the level is not a confidence, or the
        seed is negative.

    Examples
    --------
    >>> for caveat in check({"predicted": [11.0, 21.0, 33.0], "measured": [10.0, 20.0, 30.0]}):
    ...     print(f"{caveat.code}: {caveat.message}")
    few-configurations: Only 3 pairs: with Gaussian errors, the MAPE is uncertain by about \
± 190 % of its value. About 36 pairs would narrow the uncertainty to ± 25 %.
    """
    check_options(seed=seed)
    summed = isinstance(pairs, Table) and pairs.engine != ""
    table: Any = pairs if summed or isinstance(pairs, Pairs) else pairs_in_memory(pairs)
    if len(table.tools) > 1:
        raise InputError(
            f"these pairs come from {len(table.tools)} tools: {describe_names(table.tools)}. Check "
            'one tool at a time, with pairs.where({"tool": ...}), or compare the tools with '
            "check_table."
        )
    by = (by,) if isinstance(by, str) else by
    for key in by:
        table.column(key)
    scopes = ("pairs",) if claim is None else ("pairs", "claim")
    checks = [probe for probe in CHECKS if probe.scope in scopes]
    if not summed:
        return _run_checks(checks, Case(table, claim, by, level, seed))
    able = [probe for probe in checks if not probe.needs_pairs]
    return _run_checks(able, TotalsCase(table, claim, by, level, seed))


def not_looked_for(*, several_tools: bool) -> tuple[str, ...]:
    """Name the caveats that are not checked for pairs that stay in an engine."""
    scopes = ("pairs", "claim", "tools") if several_tools else ("pairs", "claim")
    codes = (probe.code for probe in CHECKS if probe.scope in scopes and probe.needs_pairs)
    return tuple(dict.fromkeys(codes))


def _run_checks(checks: Sequence[Check], case: Case) -> tuple[Caveat, ...]:
    """Run these checks on one set of pairs, and correct their tests together."""
    findings: list[Finding | None] = []
    errors = True
    for probe in checks:
        if not errors and probe.of_errors:
            continue
        findings.append(probe.function(case))
        errors = errors and not (probe.alone and findings[-1] is not None)
    caveats = _report([f for f in findings if f is not None], case.level)
    alike = next((c.evidence for c in caveats if c.code == "clustered"), None)
    if alike is None:
        return caveats
    return tuple(
        in_clusters(c, alike["key"], alike["groups"], case.level) if c.code == "tail" else c
        for c in caveats
    )


def check_table(
    pairs: Any,
    *,
    tool_key: str = "tool",
    keys: str | Sequence[str] = (),
    level: float = 0.95,
) -> tuple[Caveat, ...]:
    """Find what a comparison of the tools in a table hides.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
        Of several tools.
    tool_key : str
        The column that names them.
    keys : str or sequence of str
        Columns that together name a configuration: rows of two tools that agree in these are
        compared. By default, columns that distinguish rows, except those with a different constant
        in each tool (a trace, a file, a version), which cannot match rows.
    level : float
        One minus the rate of false alarms of the tests.

    Returns
    -------
    tuple of Caveat
        In the order of `CHECKS`.

    Raises
    ------
    InputError
        There is no such column, or the tools are among the keys.

    Examples
    --------
    >>> import errcomp.datasets
    >>> for caveat in check_table(errcomp.datasets.load("neusight")):
    ...     print(caveat.code)
    coverage-differs
    """
    table = pairs_in_memory(pairs)
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    for key in names:
        table.column(key)
    if tool_key in names:
        raise InputError(
            f"keys must describe a configuration, but {tool_key!r} names the tools. Leave it out "
            "of keys."
        )
    tools = Tools(table, tool_key, names)
    if len(tools.names) < 2:
        return ()
    findings = [probe.function(tools) for probe in CHECKS if probe.scope == "tools"]
    return _report([f for f in findings if f is not None], level)


def _report(findings: Sequence[Finding], level: float) -> tuple[Caveat, ...]:
    """Keep facts, and the tests that are significant after correcting for all tests."""
    tested = [f for f in findings if f.p is not None]
    report = discoveries([f.p for f in tested if f.p is not None], 1 - level)
    chance = {id(f) for f, real in zip(tested, report, strict=True) if not real}
    caveats = []
    for finding in findings:
        if finding.caveat is None or id(finding) in chance:
            continue
        extra = {} if finding.p is None else {"p_value": finding.p}
        evidence = {**finding.caveat.evidence, **extra}
        caveats.append(Caveat(finding.caveat.code, finding.caveat.message, evidence))
    return tuple(caveats)


#: Most caveats with a line of their own, and most places named for each.
_SHOWN, _NAMED = 6, 3


def remedies(found: Mapping[str, Sequence[Caveat]]) -> list[str]:
    """Return a line per caveat, the most serious first: what it means, where, and what to do.

    Parameters
    ----------
    found : mapping of str to sequence of Caveat
        By the place (a group, a claim) where they were found.

    Examples
    --------
    >>> remedies({"H100": [Caveat("one-sided", "12 of 12 are too high")]})[0].partition(".")[0]
    'one-sided: most errors have the same sign (H100)'
    """
    from errcomp.report.model import caveat_text

    places: dict[str, list[str]] = {}
    for place, caveats in found.items():
        for caveat in caveats:
            places.setdefault(caveat.code, []).append(place)
    lines: dict[str, str] = {}
    # Some codes also exist between tools or for intervals: the first meaning is that for pairs.
    known: tuple[Check | Note, ...] = (*(c for c in CHECKS if c.scope != "tools"), *ELSEWHERE)
    for note in known:
        where = places.get(note.code)
        if where and note.code not in lines:
            named = "; ".join(where[:_NAMED]) + ("; …" if len(where) > _NAMED else "")
            lines[note.code] = f"{caveat_text(note.code, note.title)} ({named}). {note.remedy}"
    shown = list(lines.values())
    if len(shown) > _SHOWN:
        return [
            *shown[:_SHOWN],
            f"and {len(shown) - _SHOWN} more "
            f"{'kind' if len(shown) == _SHOWN + 1 else 'kinds'} of caveats.",
        ]
    return shown
