"""Checks printed figures of accuracy that come without data: can one set of errors have all?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from errcomp.claims.forensics.combining import Found, of_cases, of_parts
from errcomp.claims.forensics.reading import RELATIVE, Figures, FiguresTable, tables_of
from errcomp.claims.forensics.rules import MOST, Conflict, conflicts, least_n, percent
from errcomp.codec import Count, Derived, Document
from errcomp.report.shown import Shown

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["Finding", "Forensics", "forensics"]

Answer = Literal["possible", "impossible", "possible only if"]
_CUT = "digits were cut off, not rounded"


@dataclass(frozen=True, slots=True)
class Finding(Document):
    """What follows from some printed figures.

    Attributes
    ----------
    group : str
        The table, as named in the column ``group``.
    part : str
        The subset or case; empty for the whole table.
    n : int or None
        Number of cases, where stated.
    verdict : {"possible", "impossible", "possible only if"}
    figures : tuple of str
        The figures that the verdict is about, as printed; for an impossible table, no fewer.
    condition : str
        What must hold, after "possible only if".
    proof : str
        Why, in sentences that can be followed by hand; empty where nothing excludes the figures.
    value, low, high : float or None
        The first figure, and from where to where the others allow it, as fractions; None where
        there is no such end, or it is not an interval.

    Examples
    --------
    >>> (row,) = forensics({"quantity": ["mean", "max"], "value": ["5.0%", "50%"]}).rows
    >>> row.verdict, row.condition
    ('possible only if', 'n is at least 10')
    """

    group: str
    part: str
    n: Count | None
    verdict: Answer
    figures: tuple[str, ...]
    condition: str
    proof: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Forensics(Shown, Document):
    """Whether printed figures can all be true, and the proof where they cannot.

    Attributes
    ----------
    source : str
        The file.
    rows : tuple of Finding
        For each set of figures: what excludes some of them, or one finding that they are possible.

    Examples
    --------
    >>> found = forensics({"quantity": ["mean", "bias"], "value": ["5%", "-9%"]})
    >>> found
    Forensics(1 impossible, 1 set of figures)
    >>> found.impossible
    1
    """

    SCHEMA: ClassVar = "errcomp.forensics/1"
    COMMAND: ClassVar = "claims forensics"
    KEYS: ClassVar = (
        "source",
        "rows",
        Derived("impossible", Count, lambda result: result.impossible),
    )

    source: str
    rows: tuple[Finding, ...]

    @property
    def impossible(self) -> int:
        """Number of findings that are impossible."""
        return sum(row.verdict == "impossible" for row in self.rows)

    def view(self) -> Report:
        """Return the report: the findings, the impossible ones first, with their proofs.

        Examples
        --------
        >>> table = {"quantity": ["mean", "max"], "value": ["2.0 %", "50 %"], "n": [12, 12]}
        >>> forensics(table).view().line
        ['1 impossible', '1 set of figures']
        """
        from errcomp.claims.view.forensics import forensics_view

        return forensics_view(self)


def forensics(figures: Any) -> Forensics:
    r"""Check whether one set of relative errors can have all of the printed figures.

    For papers without data. A set of :math:`n` absolute relative errors :math:`e_i \ge 0` satisfies

    .. math::

        \text{share within } x = k / n, \quad
        \max \le n \cdot \text{mean}, \quad
        |\text{bias}| \le \text{mean}, \quad
        \text{median} \le \tfrac{2n}{n + 1} \text{mean}, \quad
        \text{geometric mean} \le \text{mean} \le \text{RMS}

    Shares, quantiles, the maximum and the minimum bound the single errors in their order; the mean
    must lie between the means of the lowest and the highest such set, so that all of these figures
    are checked together, exactly. Parts are compared with their whole: mean
    :math:`= \sum n_i m_i / \sum n_i`. Errors and speed-ups are compared with the times beside them.

    Each figure stands for all numbers that round to it, so that rounding never makes a table
    impossible. Where only cutting digits off explains it, the verdict is ``possible only if``. A
    figure marked with ~ is not checked. *Impossible* is not an accusation: a misprint, another
    definition or another set of cases than stated explain it as well.

    Parameters
    ----------
    figures : path, mapping of columns or dataframe
        One printed figure per row, in the columns ``quantity`` (``mean``, ``median``, ``max``,
        ``share within 10%``, ``p90``, ``bias``, ``predicted``, ``measured``, ``error`` …, after
        ``overall`` for the whole of several parts) and ``value`` (as printed). Optional columns are
        ``n``, ``part`` (a subset or a case) and ``group`` (a table). Values without a % sign are
        per cent if any exceeds 1, else fractions.

    Returns
    -------
    Forensics

    Raises
    ------
    InputError
        A column is missing, a quantity is unknown, a value or an n cannot be read, a share exceeds
        100 %, or only some values have a per cent sign.

    References
    ----------
    Brown and Heathers (2017), "The GRIM test", *Social Psychological and Personality Science* 8(4),
    363-369, for means of whole numbers.

    Examples
    --------
    >>> names, values = ["share within 10%", "mean"], ["83.4%", "5.0%"]
    >>> (row,) = forensics({"quantity": names, "value": values, "n": [12, 12]}).rows
    >>> row.verdict, row.figures
    ('impossible', ('share within 10% 83.4%',))
    >>> row.proof.split(". ")[0]
    'A share of 12 cases is k / 12'
    """
    source = str(figures) if isinstance(figures, str | PathLike) else ""
    rows = [finding for table in tables_of(figures) for finding in _told(table)]
    return Forensics(source, tuple(rows))


def _told(table: FiguresTable) -> list[Finding]:
    """Leave out that a single figure is possible, if its table has another finding."""
    found = list(_of_table(table))
    return [one for one in found if one.proof or len(one.figures) > 1] or found[:1]


def _of_table(table: FiguresTable) -> Iterator[Finding]:
    for some in (table.whole, *table.parts):
        if some.figures:
            name = "" if some is table.whole else some.name
            yield from _of_set(table.group, name, some)
    between = [*of_parts(table), *of_cases(table)]
    cut = [*of_parts(table, cut=True), *of_cases(table, cut=True)]
    for one in between:
        condition = one.condition or ("" if cut else _CUT)
        yield _finding(table.group, one.part, table.whole.n, one, condition)
    if table.cases and not between:
        told = tuple(dict.fromkeys(str(figure) for case in table.cases for figure in case.figures))
        yield Finding(table.group, "cases", len(table.cases), "possible", told, "", "")


def _of_set(group: str, part: str, some: Figures) -> Iterator[Finding]:
    """Yield what is impossible within one set, what n must be, or that nothing is wrong."""
    found = conflicts(some.figures, some.n)
    condition = "" if found and conflicts(some.figures, some.n, cut=True) else _CUT
    for one in found:
        yield _finding(group, part, some.n, one, condition)
    told = tuple(map(str, some.figures))
    if found:
        return
    least = 1 if some.n is not None else least_n(some.figures) or MOST + 1
    if least > 1:
        (first, *_) = conflicts(some.figures, least - 1)
        proof = f"With n = {least - 1}: {first.proof}"
        condition = f"n is at least {least}"
        yield Finding(group, part, None, "possible only if", told, condition, proof)
    elif needed := _of_correlation(some):
        yield Finding(group, part, some.n, "possible only if", told, *needed)
    else:
        yield Finding(group, part, some.n, "possible", told, "", "")


def _finding(
    group: str, part: str, n: int | None, one: Conflict | Found, condition: str
) -> Finding:
    answer: Answer = "possible only if" if condition else "impossible"
    first = one.figures[0]
    low, high = (end if math.isfinite(end) else None for end in (one.low, one.high))
    middle = (first.low + first.high) / 2
    value = middle if first.quantity in RELATIVE and math.isfinite(middle) else None
    told = tuple(map(str, one.figures))
    return Finding(group, part, n, answer, told, condition, one.proof, value, low, high)


def _of_correlation(some: Figures) -> tuple[str, str] | None:
    """Return how little the measurements must vary for a low correlation and small errors."""
    correlation, most, mean = some.of("correlation"), some.of("max"), some.of("mean")
    if correlation is None or correlation.high >= 1:
        return None
    if most is not None:
        error, of = most.high, str(most)
    elif mean is not None and some.n is not None:
        error, of = some.n * mean.high, f"{mean} (the largest of {some.n} is at most n × mean)"
    else:
        return None
    rest = 1 - max(correlation.high, 0.0) ** 2 - error**2
    if rest <= 0:
        return None
    spread = error / math.sqrt(rest)
    proof = (
        f"With no error above {percent(error)}, the differences have an RMS of at most "
        f"{percent(error)} of that of the measurements; a correlation of {correlation.text} needs "
        f"at least √(1 − r²) of their sd. ({of})"
    )
    return f"the sd of the measurements is at most {percent(spread)} of their mean", proof
