"""The result of a check of measurements: copies, hidden keys, impossible values, floor, drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from errcomp.codec import (
    Count,
    Coverage,
    Document,
    Field,
    Meta,
    Positive,
    Share,
    Size,
    Undefined,
    if_known,
    key,
)
from errcomp.report.shown import Shown
from errcomp.results import Dropped

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = [
    "BudgetPart",
    "Cluster",
    "Copies",
    "CopySet",
    "DriftRow",
    "ErrorBudget",
    "ExplainingColumn",
    "Floor",
    "FloorOf",
    "HiddenKey",
    "ImpossibleRows",
    "LeftOutColumn",
    "MeasuredSide",
    "MeasurementCheck",
    "NotLookedFor",
    "RepeatSpread",
    "TooClose",
    "WithoutNoise",
]


@dataclass(frozen=True, slots=True)
class LeftOutColumn(Document):
    """A column beside the keys.

    Attributes
    ----------
    column : str
        Of a part of a text: its column, a colon and its key.
    kind : str
        ``part``, ``time``, ``repeat``, ``id``, ``text`` or ``quantity``.
    """

    column: str
    kind: str


@dataclass(frozen=True, slots=True)
class CopySet(Document):
    """Rows that state one measurement.

    Attributes
    ----------
    kind : str
        ``equal``, ``near``, ``carried over``, ``default`` or ``scaled``.
    rows : tuple of int
        As the user counts them; which is the original, nobody can know.
    differs : tuple of str
        Columns in which they differ.
    """

    kind: str
    rows: tuple[Count, ...]
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Copies(Document):
    """Rows that state a measurement that another row states.

    Attributes
    ----------
    n : int
        Number of rows in all sets.
    extra : int
        Rows beyond the first of each set.
    by_chance : float
        Rows that are expected to agree by chance.
    rows : tuple of int
        As the user counts them.
    sets : tuple of CopySet
    """

    n: Count
    extra: Count
    by_chance: Size
    rows: tuple[Count, ...]
    sets: tuple[CopySet, ...]


@dataclass(frozen=True, slots=True)
class Cluster(Document):
    """Rows of one configuration that differ by no more than noise.

    Attributes
    ----------
    value : float
        Geometric mean of their measurements.
    rows : tuple of int
    """

    value: Positive
    rows: tuple[Count, ...]


@dataclass(frozen=True, slots=True)
class HiddenKey(Document):
    """Rows with equal keys that differ by more than noise.

    Attributes
    ----------
    of : mapping
        Value of each key that varies in the table; ``keys`` in JSON.
    n : int
    ratio : float
        Largest over smallest measurement.
    explained_by : str or None
        Column beside the keys that explains most of the difference.
    p : float
        Probability of such a difference if it were noise.
    rows : tuple of int
    clusters : tuple of Cluster
        What the values form where no column explains them, from the smallest; empty if they spread
        without a gap, or are fewer than four.
    """

    KEYS: ClassVar = (
        *(key("keys", "of"), "n", "ratio", "explained_by", "p", "rows"),
        if_known("clusters"),
    )

    of: Mapping[str, Any]
    n: Count
    ratio: Positive
    explained_by: str | None
    p: Share
    rows: tuple[Count, ...]
    clusters: tuple[Cluster, ...] | None = None


@dataclass(frozen=True, slots=True)
class ExplainingColumn(Document):
    """A column beside the keys that measurements depend on.

    Attributes
    ----------
    column : str
    share : float
        Part of the variance within equal keys that it explains.
    p : float
        Of a permutation test, corrected for all columns that were tried.
    """

    column: str
    share: Share
    p: Share


@dataclass(frozen=True, slots=True)
class ImpossibleRows(Document):
    """Rows that break a rule.

    Attributes
    ----------
    rule : str
    columns : tuple of str
    n : int
    rows : tuple of int
    seen : str
        Values of the first of them.
    """

    rule: str
    columns: tuple[str, ...]
    n: Count
    rows: tuple[Count, ...]
    seen: str


@dataclass(frozen=True, slots=True)
class Floor(Document):
    """The MAPE that a perfect predictor shows against these measurements.

    Attributes
    ----------
    mape, low, high : float
        Fractions; NaN where unknown. The interval has 95 %.
    method : str
        ``repeats``, ``neighbours`` (an upper bound) or ``none``.
    groups, n : int
        Configurations with repeats, and their rows; or neighbours.
    with_hidden : float
        The same with the rows of equal keys that differ by more than noise.
    along : str or None
        Column along which neighbours lie.
    """

    mape: Annotated[float, Undefined]
    low: Annotated[float, Undefined]
    high: Annotated[float, Undefined]
    method: str
    groups: Count
    n: Count
    with_hidden: Annotated[float, Undefined]
    along: str | None


@dataclass(frozen=True, slots=True)
class FloorOf(Document):
    """The floor of a group of rows.

    Attributes
    ----------
    of : mapping
        Values of the keys that were asked for; ``keys`` in JSON.
    floor : Floor
    """

    KEYS: ClassVar = (key("keys", "of"), "floor")

    of: Mapping[str, Any]
    floor: Floor


@dataclass(frozen=True, slots=True)
class RepeatSpread(Document):
    """Repeats of one configuration, for the figure.

    Attributes
    ----------
    size : float
        Geometric mean of its measurements.
    ratio : float
        Largest over smallest.
    n : int
    """

    size: Positive
    ratio: Positive
    n: Count


@dataclass(frozen=True, slots=True)
class DriftRow(Document):
    """A change of repeats with time or order.

    Attributes
    ----------
    column : str
    kind : str
        ``trend`` or ``step``.
    change, low, high : float
        Fraction from the first to the last value, or at the step; 95 % interval.
    at : str or None
        First value after a step.
    p : float
        Corrected for all columns.
    """

    column: str
    kind: str
    change: float
    low: float
    high: float
    at: str | None
    p: Share


@dataclass(frozen=True, slots=True)
class WithoutNoise(Document):
    """The MAPE of a tool that would remain if the measurements had no noise.

    Attributes
    ----------
    tool : str
    mape : float
        What the audit shows, of the predictions above 0.
    remaining, low, high : float
        An estimate with its 95 % interval.
    """

    tool: str
    mape: float
    remaining: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TooClose(Document):
    """Two tools whose difference could be noise of the measurements.

    Attributes
    ----------
    first, second : str
        The first has the smaller MAPE.
    difference : float
        Of their MAPE on the measurements that both predict.
    smallest : float
        Difference that noise of the measurements exceeds in 5 % of cases.
    n : int
        Measurements that both predict.
    """

    first: str
    second: str
    difference: float
    smallest: float
    n: Count


@dataclass(frozen=True, slots=True)
class MeasuredSide(Document):
    """What the measured side of pairs says about their errors.

    Attributes
    ----------
    n : int
        Measurements, each once, however many tools predict it.
    configurations, repeated : int
        Distinct configurations, and measurements whose configuration has several.
    copies : int
        Rows that state a measurement that another row states.
    differ : int
        Rows with equal keys that differ by more than noise, without a column that says why.
    explained_by : tuple of str
        Columns beside the keys that explain differences within equal keys.
    explained : float
        Share of the variance within equal keys that the first of them explains; NaN without one.
    floor : Floor
    tools : tuple of WithoutNoise
        Where repeats show the noise.
    too_close : tuple of TooClose
    """

    n: Count
    configurations: Count
    repeated: Count
    copies: Count
    differ: Count
    explained_by: tuple[str, ...]
    explained: Annotated[Share, Undefined]
    floor: Floor
    tools: tuple[WithoutNoise, ...]
    too_close: tuple[TooClose, ...]


@dataclass(frozen=True, slots=True)
class BudgetPart(Document):
    """What one cause adds to a MAPE.

    Attributes
    ----------
    cause : str
        ``copies``, ``noise``, ``hidden``, ``load``, ``kernels``, ``composition``, ``factor`` or
        ``rest``.
    meaning : str
    added : float
        Fraction of the measurement, as the MAPE; negative where the cause offsets others.
    low, high : float
    """

    cause: str
    meaning: str
    added: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class NotLookedFor(Document):
    """A cause that the table cannot show.

    Attributes
    ----------
    cause : str
    why : str
    """

    cause: str
    why: str


@dataclass(frozen=True, slots=True)
class ErrorBudget(Shown, Document):
    """Which part of the MAPE of a tool comes from which cause.

    Attributes
    ----------
    source, tool : str
    n : int
    left_out : int
        Pairs without a prediction, or sums of kernels, above 0.
    mape : float
    parts : tuple of BudgetPart
        They add up to the MAPE; the largest first.
    largest : str or None
        The largest cause; None where drawn tables disagree.
    sure : float
        Share of drawn tables in which the first part is the largest.
    averages : mapping of str to float
        The error by other averages: what the definition alone changes.
    not_looked_for : tuple of NotLookedFor
    level : float
        Of the intervals.
    seed : int
    dropped : tuple of Dropped
    """

    SCHEMA: ClassVar = "errcomp.error-budget/1"
    COMMAND: ClassVar = "measurements budget"

    source: str
    tool: str
    n: Count
    left_out: Count
    mape: Size
    parts: Annotated[tuple[BudgetPart, ...], Meta(min_length=1)]
    largest: str | None
    sure: Share
    averages: Mapping[str, float]
    not_looked_for: tuple[NotLookedFor, ...]
    level: Coverage
    seed: Count
    dropped: tuple[Dropped, ...]

    def _agree(self, field: Field) -> None:
        """Refuse a largest cause that is not the first part."""
        if self.largest not in (None, self.parts[0].cause):
            field.at("largest").refuse(f"{self.parts[0].cause}, the first of the parts, or null")

    def rows_document(self) -> Mapping[str, Any]:
        """Return the parts: what ``-o FILE.csv`` writes.

        Examples
        --------
        >>> from errcomp.measurements import budget
        >>> rows = budget("neusight").rows_document()["rows"]
        >>> rows[0]["cause"], sorted(rows[0])
        ('kernels', ['added', 'cause', 'high', 'low', 'meaning'])
        """
        return {"rows": [part.to_dict() for part in self.parts]}

    def view(self) -> Report:
        """Return the report: the parts, the largest first.

        Examples
        --------
        >>> from errcomp.measurements import budget
        >>> budget("neusight").view().title
        'Error budget'
        """
        from errcomp.measurements.view.budget import budget_view

        return budget_view(self)


@dataclass(frozen=True, slots=True)
class MeasurementCheck(Shown, Document):
    """Whether the measured side of a table is fit to evaluate a predictor by.

    Attributes
    ----------
    source : str
    measured : tuple of str
        The first is the one that is checked.
    unit : str or None
    n : int
        Rows with a measurement.
    key_columns : tuple of str
        Columns that identify a configuration; ``keys`` in JSON.
    left_out : tuple of LeftOutColumn
        Other columns, and what they are.
    configurations, repeated : int
        Distinct configurations, and rows whose configuration has several.
    copies : Copies
    hidden_keys : tuple of HiddenKey
        The largest ratio first.
    explained : tuple of ExplainingColumn
    impossible, doubtful : tuple of ImpossibleRows
    floor : Floor
    floors : tuple of FloorOf
        By the values of the keys that were asked for.
    drift : tuple of DriftRow
    spread : tuple of RepeatSpread
        At most 400 configurations with repeats.
    measure_next : tuple of mapping
        Configurations to repeat where nothing shows the noise.
    dropped : tuple of Dropped
    """

    SCHEMA: ClassVar = "errcomp.measurements/1"
    COMMAND: ClassVar = "measurements check"
    KEYS: ClassVar = (
        *("source", "measured", "unit", "n", key("keys", "key_columns"), "left_out"),
        *("configurations", "repeated"),
        *("copies", "hidden_keys", "explained", "impossible", "doubtful", "floor", "floors"),
        *("drift", "spread", "measure_next", "dropped"),
    )

    source: str
    measured: tuple[str, ...]
    unit: str | None
    n: Count
    key_columns: tuple[str, ...]
    left_out: tuple[LeftOutColumn, ...]
    configurations: Count
    repeated: Count
    copies: Copies
    hidden_keys: tuple[HiddenKey, ...]
    explained: tuple[ExplainingColumn, ...]
    impossible: tuple[ImpossibleRows, ...]
    doubtful: tuple[ImpossibleRows, ...]
    floor: Floor
    floors: tuple[FloorOf, ...]
    drift: tuple[DriftRow, ...]
    spread: tuple[RepeatSpread, ...]
    measure_next: tuple[Mapping[str, Any], ...]
    dropped: tuple[Dropped, ...]

    def rows_document(self) -> Mapping[str, Any]:
        """Return the flagged rows, one for each finding: what ``-o FILE.csv`` writes.

        ``exclude`` says which rows an audit without them leaves out (``errcomp audit --exclude``):
        impossible values, and of each set of copies all but the first row.

        Examples
        --------
        >>> from errcomp.measurements import check
        >>> table = {"batch": [1, 1, 2], "ms": [2.5031, 2.5031, 4.1]}
        >>> for row in check(table, measured="ms").rows_document()["rows"]:
        ...     print(row)
        {'row': 1, 'finding': 'copy: equal', 'exclude': False}
        {'row': 2, 'finding': 'copy: equal', 'exclude': True}
        """
        rows = [
            {"row": row, "finding": f"copy: {one.kind}", "exclude": i > 0}
            for one in self.copies.sets
            for i, row in enumerate(one.rows)
        ]
        rows += [
            {"row": row, "finding": f"impossible: {one.rule}", "exclude": True}
            for one in self.impossible
            for row in one.rows
        ]
        rows += [
            {
                "row": row,
                "finding": f"equal keys differ: ratio {one.ratio:.3g}",
                "exclude": False,
            }
            for one in self.hidden_keys
            for row in one.rows
        ]
        return {"rows": rows}

    def view(self) -> Report:
        """Return the report: the answer, copies, equal keys that differ, floor, drift.

        Examples
        --------
        >>> from errcomp.measurements import check
        >>> check({"batch": [1, 1, 2], "ms": [2.5031, 2.5031, 4.1]}, measured="ms").view().title
        'Measurements'
        """
        from errcomp.measurements.view.check import check_view

        return check_view(self)
