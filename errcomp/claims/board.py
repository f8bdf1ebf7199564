"""A board of tools: what their pairs show, source by source, and which differences are real.

Errors of different sources, levels, quantities or references answer different questions. So tools
are compared only within one source, at one level and in one quantity, on the cases that both
predict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from errcomp.caveats.tools import Tools
from errcomp.claims.auditing import audit
from errcomp.codec import Count, Coverage, Derived, Document, Undefined
from errcomp.datasets.inputs import pairs_in_memory
from errcomp.errors import InputError
from errcomp.metrics.intervals import estimate_of
from errcomp.metrics.intervals._kinds import Request
from errcomp.metrics.intervals.dependence import cluster_keys, dependence
from errcomp.metrics.intervals.direct import check_level
from errcomp.report.shown import Shown
from errcomp.stats.significance import sign_p
from errcomp.tables import Pairs

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["Board", "BoardRow", "Compared", "LeftOut", "board"]

Compared = Literal["", "more accurate", "less accurate", "indistinguishable", "undecided"]


@dataclass(frozen=True, slots=True)
class BoardRow(Document):
    """One tool in one source.

    Attributes
    ----------
    source : str
        The file or the built-in table.
    command : str
        The command that recomputes the row.
    level, quantity, reference : str
        What was predicted, and what the measurement is; empty where the source does not say.
    tool : str
        Empty where the table does not name it.
    n, cases : int
        Cases that the tool predicts, and those that any tool of the source predicts.
    mape, low, high : float or None
        MAPE with its interval, as fractions; None where there is none.
    claim, verdict : str
        A published figure about all of these cases, and whether it holds.
    against : str
        The tool that this one is compared with: of those with more cases, the one with most cases
        in common. Empty for the first tool, and where no case is common.
    common : int
        Cases that both predict.
    difference, difference_low, difference_high : float or None
        MAPE of this tool minus that of the other on these cases, with an interval that holds for
        all tools of the source together.
    lower_in, units : int
        Models, devices or cases (see `unit`) in which this tool has the lower mean error, and all
        in which they differ.
    unit : str
        What is one observation in this: ``"model"``, ``"device"``, another key of the
        clusters, or ``"case"``.
    compared : {"", "more accurate", "less accurate", "indistinguishable", "undecided"}
        What the interval of the difference says; if it holds 0, what the units say.
    """

    source: str
    command: str
    level: str
    quantity: str
    reference: str
    tool: str
    n: Count
    cases: Count
    mape: Annotated[float, Undefined]
    low: float | None
    high: float | None
    claim: str
    verdict: str
    against: str
    common: Count
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    lower_in: Count
    units: Count
    unit: str
    compared: Compared


@dataclass(frozen=True, slots=True)
class LeftOut(Document):
    """A source with pairs that could not be used, and the reason."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Board(Shown, Document):
    """What the pairs of several sources show about their tools.

    Attributes
    ----------
    rows : tuple of BoardRow
        By source, level and quantity; within these, the tool with most cases first.
    left_out : tuple of LeftOut
    level : float
        Of the intervals.

    Examples
    --------
    >>> found = board("neusight")
    >>> found
    Board(1 source, 4 tools, 3 comparisons: 2 undecided, 1 less accurate)
    """

    SCHEMA: ClassVar = "errcomp.board/1"
    COMMAND: ClassVar = "claims board"
    KEYS: ClassVar = (
        "level",
        "rows",
        "left_out",
        Derived("sources", Count, lambda found: found.sources),
    )

    rows: tuple[BoardRow, ...]
    left_out: tuple[LeftOut, ...]
    level: Coverage

    @property
    def sources(self) -> int:
        """Number of sources with pairs."""
        return len({row.source for row in self.rows})

    def view(self) -> Report:
        """Return the report: a table for each level and quantity.

        Examples
        --------
        >>> board("neusight").view().line
        ['1 source', '4 tools', '3 comparisons: 2 undecided, 1 less accurate']
        """
        from errcomp.claims.view.board import board_view

        return board_view(self)


def board(*sources: str | PathLike[str], level: float = 0.95, seed: int = 0) -> Board:
    """Recompute the errors of all tools in files of pairs, and compare those of one source.

    Definition: MAPE over the cases of a tool; intervals as in `errcomp.audit`, which count whole
    models and devices. Tools are compared on the cases that both predict. They differ if the
    interval of the mean difference of their APE excludes 0, or if one has the lower mean APE in
    more models (or devices, or cases where nothing groups them) than a sign test allows: a few very
    large errors make the interval wide and leave the signs as they are. Each has half of the false
    alarms, which are divided by the number of comparisons of the source (Bonferroni).

    Misleads where a source's cases were chosen by the authors of one of its tools.

    Parameters
    ----------
    *sources : str or path
        Files, folders of the output of tools, and names of built-in tables of pairs. By default
        the built-in ones.
    level : float
        Of the intervals.
    seed : int
        Same seed, same board.

    Returns
    -------
    Board

    Raises
    ------
    InputError
        A source cannot be read, none has pairs, or the level is not between 0 and 1.

    Examples
    --------
    >>> [row.tool for row in board("neusight").rows]
    ['neusight', 'roofline', 'micro', 'habitat']
    """
    check_level(level)
    rows: list[BoardRow] = []
    left_out: list[LeftOut] = []
    for source in sources or _built_in():
        for one in _sets(fspath(source), left_out):
            try:
                rows += _rows(one, level, seed)
            except InputError as error:
                left_out.append(_left_out(one.source, error))
    if not rows:
        told = "".join(f" {one.source}: {one.reason}" for one in left_out[:3])
        raise InputError(
            f"{', '.join(map(str, sources))}: no row has a prediction and a measurement.{told} "
            "Give files that hold both, or join them: errcomp join PREDICTED MEASURED --on KEYS"
        )
    return Board(tuple(rows), tuple(left_out), level)


def _left_out(source: str, error: InputError) -> LeftOut:
    return LeftOut(source, str(error).removeprefix(f"{source}: "))


def _built_in() -> Iterable[str]:
    from errcomp import datasets

    return (name for name in datasets.names() if datasets.info(name).holds == "pairs")


@dataclass(frozen=True, slots=True)
class _Set:
    """The pairs of one source, level and quantity."""

    source: str
    command: str
    quantity: str
    pairs: Pairs

    def only(self, key: str) -> str:
        """Return the value of a key if all rows have the same."""
        values = set(self.pairs.column(key).tolist()) if key in self.pairs.keys else set()
        return str(values.pop() or "") if len(values) == 1 else ""


def _sets(source: str, left_out: list[LeftOut]) -> Iterator[_Set]:
    from errcomp import datasets
    from errcomp.readers.core.ingest import ingest

    if source in datasets.names() and not Path(source).exists():
        yield _Set(source, f"errcomp audit {source}", "time", pairs_in_memory(source))
        return
    try:
        found = ingest(source)
    except InputError:
        if Path(source).is_dir():
            raise
        yield _Set(source, f"errcomp audit {quote(source)}", "", pairs_in_memory(source))
        return
    import polars as pl

    both = found.rows.filter(pl.col("predicted").is_not_null() & pl.col("measured").is_not_null())
    keys = [name for name in ("file", "level", "quantity") if name in both.columns]
    sets = both.select(keys).unique(maintain_order=True).to_dicts()
    for one in sets:
        path = str(Path(source) / one["file"]) if one.get("file") else source
        same = [other for other in sets if other.get("file") == one.get("file")]
        where = "".join(
            f" --where {key}={quote(str(one[key]))}"
            for key in ("quantity", "level")
            if len({other[key] for other in same}) > 1
        )
        try:
            pairs = replace(found.of(**one), files=(path,)).pairs
        except InputError as error:
            left_out.append(_left_out(path, error))
            continue
        yield _Set(path, f"errcomp audit {quote(path)}{where}", one["quantity"], pairs)


def _rows(of: _Set, level: float, seed: int) -> list[BoardRow]:
    """Return the rows of one source, level and quantity, the tool with most cases first."""
    pairs = of.pairs
    names = pairs.tools or ("",)
    audits = [audit(pairs, by=(), tool=name or None, level=level, seed=seed) for name in names]
    tools = Tools(pairs, "tool") if len(names) > 1 else None
    cases = len(np.unique(tools.configurations)) if tools else pairs.n
    compared = _compared(tools, level, seed) if tools else {}
    rows = []
    for name, audited in zip(names, audits, strict=True):
        row = audited.overall
        mape, claim = row.figures["mape"], row.verdict.claim if row.verdict.recomputed else None
        rows.append(
            BoardRow(
                source=of.source,
                command=of.command + (f" --tool {quote(name)}" if pairs.subject and name else ""),
                level=of.only("level"),
                quantity=of.quantity,
                reference=of.only("reference"),
                tool=name,
                n=_cases(tools, tools.names.index(name)) if tools else row.n,
                cases=cases,
                mape=mape.value,
                low=mape.low,
                high=mape.high,
                claim=claim.printed if claim else "",
                verdict=row.verdict.word if claim else "",
                **compared.get(name, _NOT_COMPARED),
            )
        )
    order = list(compared)
    return sorted(rows, key=lambda row: order.index(row.tool) if order else 0)


_NOT_COMPARED: Mapping[str, Any] = {
    **{"against": "", "common": 0, "lower_in": 0, "units": 0, "unit": "", "compared": ""},
    **dict.fromkeys(("difference", "difference_low", "difference_high")),
}


def _cases(tools: Tools, tool: int) -> int:
    return len(np.unique(tools.configurations[tools.rows[tool]]))


def _compared(tools: Tools, level: float, seed: int) -> dict[str, dict[str, Any]]:
    """Compare each tool with one that predicts more cases: that with most cases in common."""
    order = sorted(
        range(len(tools.names)), key=lambda tool: (-_cases(tools, tool), tools.own(tool))
    )
    alpha = (1 - level) / (len(order) - 1) / 2
    found: dict[str, dict[str, Any]] = {tools.names[order[0]]: dict(_NOT_COMPARED)}
    for i, tool in enumerate(order[1:], start=1):
        other = max(order[:i], key=lambda one: len(tools.common([tool, one])))
        found[tools.names[tool]] = _difference(tools, tool, other, alpha, seed)
    return found


def _difference(tools: Tools, tool: int, other: int, alpha: float, seed: int) -> dict[str, Any]:
    """Return the mean difference of APE on common cases, with its interval and what it says."""
    common = tools.common([tool, other])
    if not len(common):
        return dict(_NOT_COMPARED)
    rows = [tools.on(one, common) for one in (tool, other)]
    mine, theirs = (tools.by_configuration(at, tools.case.ape[at]) for at in rows)
    difference = mine - theirs
    pairs = tools.case.pairs
    at = rows[0][np.unique(tools.configurations[rows[0]], return_index=True)[1]]
    drawn = dependence({key: pairs.column(key)[at] for key in cluster_keys(None, pairs.keys)})
    # The interval of a bias is that of a mean of numbers of either sign.
    scale = 2 * float(np.abs(difference).max()) or 1.0
    found = estimate_of(
        "bias",
        predicted=1 + difference / scale,
        measured=np.ones(len(difference)),
        ask=Request("default", 1 - alpha, 9999, seed, drawn),
    )
    low, high = (None if end is None else end * scale for end in (found.low, found.high))
    unit, code = min(
        zip(drawn.names, drawn.codes, strict=True),
        key=lambda one: int(one[1].max()),
        default=("case", np.arange(len(difference))),
    )
    of_units = np.bincount(code, weights=difference)
    lower, units = int((of_units < 0).sum()), int((of_units != 0).sum())
    return {
        "against": tools.names[other],
        "common": len(common),
        "difference": found.value * scale,
        "difference_low": low,
        "difference_high": high,
        "lower_in": lower,
        "units": units,
        "unit": unit,
        "compared": "undecided" if drawn.reason else _word(low, high, lower, units, alpha),
    }


def _word(low: float | None, high: float | None, lower: int, units: int, alpha: float) -> Compared:
    if low is not None and high is not None and (high < 0 or low > 0):
        return "more accurate" if high < 0 else "less accurate"
    if units and sign_p(lower, units) <= alpha:
        return "more accurate" if 2 * lower > units else "less accurate"
    # All units agree, but so few of them may do so by chance.
    agreed = lower in (0, units) and sign_p(0, units) > alpha
    return "undecided" if low is None or agreed else "indistinguishable"
