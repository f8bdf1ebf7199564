"""A new validation against a history: the gate, and new correction factors where they help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.codec import (
    Count,
    Coverage,
    Document,
    Field,
    Inline,
    Log,
    Names,
    Part,
    Rows,
    Undefined,
    words,
)
from errcomp.errors import InputError, describe_names
from errcomp.halflife.gate import GateResult, as_labels, as_since, check, since_last_step
from errcomp.halflife.panel import Panel, PanelOf, check_level, moved, panel_of
from errcomp.halflife.stack import Stack
from errcomp.report.shown import Shown
from errcomp.tables import History, check_keys
from errcomp.tables.backends import history_of
from errcomp.tables.frames import to_eager
from errcomp.tables.memory.history_columns import STACK

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["Recalibration", "ValidationCheck", "check_validation", "recalibrate"]

Floats = NDArray[np.float64]

#: Held-out data that the new error of a group was evaluated on, by code.
_EVALUATED = ("not judged", "other series", "other versions")


_GROUPS = Rows(
    "groups",
    {
        "group": ("groups", str, tuple),
        "judged_by": ("judged_by", str, words),
        "helps": ("helps", bool, np.array),
        "n_series": ("n_series", Count, np.array),
        "n_rows": ("n_rows", Count, np.array),
        **{
            name: (name, Annotated[float, Undefined], np.array)
            for name in ("factor", "low", "high")
        },
        **{
            name: (name, Annotated[Log, Undefined], np.array)
            for name in ("old_error", "new_error", "old_bias")
        },
    },
)


class _Groups(Part):
    """A row for each group; whether its factor helps follows from its errors."""

    def write(self, result: Recalibration) -> Mapping[str, Any]:
        return _GROUPS.write(result)

    def read(self, field: Field) -> Mapping[str, Any]:
        return {name: column for name, column in _GROUPS.read(field).items() if name != "helps"}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        return _GROUPS.schema(names)


@dataclass(frozen=True, slots=True, eq=False)
class Recalibration(Document):
    """New factors of groups, and errors with the old and the new ones; shape (g,) each.

    Attributes
    ----------
    groups : tuple of str
        In order of appearance.
    factor, low, high : ndarray
        Factor to multiply predictions by, and its interval; the bounds of a single row are NaN.
    level : float
        Nominal coverage of the interval.
    old_error, new_error : ndarray
        Root mean square of the log error without a new factor, and with a factor fitted without
        the evaluated series (in a group of one series: without the evaluated version). NaN if not
        evaluated.
    old_bias : ndarray
        Mean log error without a new factor.
    judged_by : ndarray of str
        ``"other series"``, ``"other versions"`` or ``"not judged"``.
    n_series, n_rows : ndarray of int
    old_total, new_total : float
        Root mean square over all series of evaluated groups; NaN if there are none.
    """

    KEYS: ClassVar = ("level", "old_total", "new_total", _Groups())

    groups: tuple[str, ...]
    factor: Floats
    low: Floats
    high: Floats
    level: Coverage
    old_error: Floats
    new_error: Floats
    old_bias: Floats
    judged_by: NDArray[Any]
    n_series: NDArray[np.int64]
    n_rows: NDArray[np.int64]
    old_total: Annotated[Log, Undefined]
    new_total: Annotated[Log, Undefined]

    @property
    def helps(self) -> NDArray[np.bool_]:
        """Whether the new factor reduces the error of a group; False if not evaluated."""
        return self.new_error < self.old_error


def recalibrate(
    panel: Panel,
    *,
    groups: Sequence[str] | None = None,
    since: ArrayLike | None = None,
    level: float = 0.95,
) -> Recalibration:
    r"""Estimate a new correction factor for each group from its errors since the last step.

    .. math:: f_g = \exp\Big(-\frac{1}{|g|} \sum_{i \in g} \bar e_i\Big), \qquad
              \text{corrected} = f_g \cdot \text{predicted}

    with the mean error of each series over its versions since the last step; every series has the
    same weight. The new error of series i is computed with the factor of the other series of its
    group, so that it is the error of a held-out series. In a group of one series, versions take the
    place of series. The interval of the factor is a Student t over series (over versions in a group
    of one).

    Valid if the series of a group shifted together and the versions since the step are similar.
    Misleads if one series of a group shifted and the others did not: the factor then makes the
    others worse, which ``helps`` shows. Use smaller groups in that case. Versions of one series
    have correlated noise, so the new error evaluated on "other versions" is too small.

    Parameters
    ----------
    panel : Panel
    groups : sequence of str, shape (s,), optional
        Group of each series, e.g. its kernel class. Each series is a group by default.
    since : array_like of int, shape (s,) or scalar, optional
        First version whose errors count, as position in ``panel.versions``: the release
        responsible for the step. All rows by default.
    level : float

    Returns
    -------
    Recalibration

    Raises
    ------
    InputError
        The number of names or positions is wrong, the level is not between 0 and 1, or a group has
        no validation since then.

    Examples
    --------
    >>> panel = Panel(
    ...     versions=("1.0", "1.1"), months=np.arange(2.0), names=("a", "b", "c"),
    ...     clusters=np.arange(3), starts=np.array([0, 2, 4, 6]), version=np.tile([0, 1], 3),
    ...     error=np.array([0.0, 0.69, 0.02, 0.71, 0.01, 0.7]), sd=np.full(6, np.nan),
    ...     noise_df=np.zeros(3), frozen_at_first=False)
    >>> result = recalibrate(panel, groups=["Gelu"] * 3, since=1)
    >>> result.factor.round(3).tolist(), result.old_error.round(2).tolist()
    ([0.497], [0.7])
    >>> result.new_error.round(3).tolist(), result.judged_by.tolist()
    ([0.012], ['other series'])
    """
    from scipy.special import stdtrit

    check_level(level)
    labels = as_labels(groups, panel)
    first = as_since(0 if since is None else since, panel)
    names = tuple(dict.fromkeys(labels))
    number = {name: g for g, name in enumerate(names)}
    series = panel.series
    used = panel.version >= first[series]
    error, i = panel.error[used], series[used]
    # Only series with rows since then; `of` is the group of each.
    counted, i = np.unique(i, return_inverse=True)
    of = np.array([number[label] for label in labels], dtype=np.int64)[counted]
    n_series = np.bincount(of, minlength=len(names))
    if (n_series == 0).any():
        missing = [names[g] for g in np.flatnonzero(n_series == 0)[:3]]
        raise InputError(
            f"{int((n_series == 0).sum())} of {len(names)} groups have no validation since their "
            f"last step: {', '.join(missing)}. Leave these groups out, or pass an earlier since=."
        )
    rows = np.bincount(i)
    mean = np.bincount(i, error) / rows
    bias = np.bincount(of, mean) / n_series
    n_rows = np.bincount(of[i], minlength=len(names))

    single = n_series[of[i]] == 1
    with np.errstate(divide="ignore", invalid="ignore"):
        others = (bias[of] * n_series[of] - mean) / (n_series[of] - 1)
        others_of_row = (mean[i] * rows[i] - error) / (rows[i] - 1)
    left = error - np.where(single, others_of_row, others[i])
    left[~np.isfinite(left)] = np.nan
    old = np.bincount(i, error**2) / rows
    new = np.bincount(i, left**2) / rows
    judged = np.where(n_series > 1, 1, np.where(n_rows > 1, 2, 0))
    seen = judged[of] > 0

    # In a group of one series, the scatter is that of its rows.
    n = np.where(n_series > 1, n_series, n_rows)
    about_series = np.bincount(of, (mean - bias[of]) ** 2)
    about_rows = np.bincount(of[i], (error - bias[of[i]]) ** 2, minlength=len(names))
    squares = np.where(n_series > 1, about_series, about_rows)
    df = np.maximum(n - 1, 1)
    half = np.where(n > 1, stdtrit(df, (1 + level) / 2) * np.sqrt(squares / df / n), np.nan)
    return Recalibration(
        groups=names,
        factor=np.exp(-bias),
        low=np.exp(-bias - half),
        high=np.exp(-bias + half),
        level=float(level),
        old_error=np.sqrt(np.bincount(of, old) / n_series),
        new_error=np.sqrt(np.bincount(of, new) / n_series),
        old_bias=bias,
        judged_by=np.array(_EVALUATED, dtype=object)[judged],
        n_series=n_series,
        n_rows=n_rows,
        old_total=float(np.sqrt(old[seen].mean())) if seen.any() else np.nan,
        new_total=float(np.sqrt(new[seen].mean())) if seen.any() else np.nan,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ValidationCheck(Shown, Document):
    """The check of a new version.

    Attributes
    ----------
    result : GateResult
    recalibration : Recalibration or None
        New correction factors where they were asked for.
    notes : tuple of str
        Remarks on the tables.
    """

    SCHEMA: ClassVar = "errcomp.half-life-check/1"
    COMMAND: ClassVar = "halflife check"
    KEYS: ClassVar = (Inline("result", GateResult), "recalibration", "notes")

    result: GateResult
    recalibration: Recalibration | None
    notes: tuple[str, ...]

    def view(self) -> Report:
        """Return the report of the check.

        Examples
        --------
        >>> old = History({"version": [f"1.{i}" for i in range(8)], "measured": [4.0, 4.1] * 4})
        >>> check_validation(old, {"version": ["1.8"], "measured": [8.0]}).view().title
        'Is the model still valid at 1.8?'
        """
        from errcomp.halflife.view.check import check_view

        return check_view(self)


def check_validation(
    history: History | Any,
    new: History | Any,
    *,
    by: str | Sequence[str] = (),
    error: float | None = None,
    margin: float = 0.0,
    alpha: float = 0.05,
    recalibrated: bool = False,
) -> ValidationCheck:
    """Check a new version against a history of validations.

    The history is gone through as the gate would have, one version after the other; steps that it
    would have reported are accepted: see `errcomp.halflife.gate.check`. The probability of any
    false alarm, over all series and the first 1,000 versions that are checked, is at most `alpha`.

    Parameters
    ----------
    history, new : History or dataframe
        The new one has a version that the history does not have. If it has several such versions,
        the last is checked and the others count as history.
    by : str or sequence of str
        Keys to report series by, e.g. ``kernel_class``. Each series alone otherwise.
    error : float, optional
        The error that the model promised, as a fraction. A larger error that is still within the
        promise is not a regression. Without a promise, any growth beyond noise (and margin) is.
    margin : float
        Growth that does not matter, as a fraction.
    alpha : float
        Probability of any false alarm over 1,000 versions.
    recalibrated : bool
        Also fit new correction factors by group, and evaluate them.

    Returns
    -------
    ValidationCheck

    Raises
    ------
    InputError
        The new table has no new version, or no series of the history; or as
        `errcomp.halflife.gate.check`.

    Examples
    --------
    >>> versions = [f"1.{i}" for i in range(20)]
    >>> old = History({"version": versions, "op": ["Gelu"] * 20, "measured": [4.0, 4.1] * 10})
    >>> new = {"version": ["1.20"] * 3, "op": ["Gelu"] * 3, "measured": [8.0, 8.1, 8.05]}
    >>> checked = check_validation(old, new)
    >>> checked.result.outcome, checked.result.names
    ('regression', ('Gelu',))
    >>> one = {name: values[:1] for name, values in new.items()}
    >>> again = check_validation(old, one).result
    >>> again.outcome, again.repeats_needed.tolist()
    ('repeat', [2])
    """
    history = history_of(history, by, None)
    # Where the stack is part of a version, so it is of the new one.
    stack = any(name.startswith(STACK) for name in history.order_columns)
    order_by = history.order_columns if stack else None
    table = new if isinstance(new, History) else History(new, order_by=order_by)
    fresh = [name for name in table.versions if name not in history.versions]
    without = tuple(f"{d.n:,} new validations left out: {d.reason}" for d in table.dropped)
    if not fresh:
        raise InputError(
            f"{_prefix(table)}the history already has all versions of the new table "
            f"({'; '.join([describe_names(table.versions), *without])}). Give validations of a new "
            "version."
        )
    both = _joined(history, table, fresh)
    last = max(fresh, key=both.versions.index)
    later = [
        name for name in history.versions if both.versions.index(name) > both.versions.index(last)
    ]
    if later:
        raise InputError(
            f"{_prefix(table)}version {last} comes before {describe_names(later)} in the history "
            f"(ordered by {both.order_by}). Only the latest version can be checked: give a later "
            "version."
        )
    panel_data = panel_of(both)
    panel, changes = panel_data.panel, moved(panel_data)
    behind = validations_behind(panel_data)
    groups = groups_of(both, panel_data.series, check_keys(by, ()), panel.names)
    result = check(
        panel,
        version=last,
        groups=groups,
        promised=None if error is None else log1p(error),
        reference=changes.reference,
        predictor=changes.predictor,
        repeats=behind,
        margin=log1p(margin),
        alpha=alpha,
    )
    recalibration = None
    if recalibrated:
        since = since_last_step(
            panel, version=last, repeats=behind, margin=log1p(margin), alpha=alpha
        )
        assert result.begin is not None
        begun = np.where(result.p_adjusted <= result.level, result.begin, since)
        recalibration = recalibrate(panel, groups=groups, since=begun)
    notes = (*without, *both.notes, *panel_data.notes, *_about_stack(both, last))
    return ValidationCheck(result, recalibration, notes)


def _about_stack(history: History, version: str) -> tuple[str, ...]:
    """Name the components that changed between a version and the one validated before it."""
    at = history.versions.index(version)
    before = history.versions[history.version[history.version < at].max()]
    if changed := Stack(history).changed(before, version):
        return (f"at {version} the stack changed, too: {', '.join(changed)}",)
    return ()


def _joined(history: History, new: History, fresh: Sequence[str]) -> History:
    """Put two tables of validations below each other."""
    import polars as pl

    if history.unit != new.unit:
        raise InputError(
            f"{_prefix(new)}the unit of the new table is {new.unit}, but the unit of the history "
            f"is {history.unit}. Convert one of them."
        )
    frames = []
    for table in (history, new):
        frame = to_eager(table.native).to_polars()[table.positions]
        # Parsed dates: one of the tables may write dates with an offset, the other without.
        dates = {"date": table.date, "released": table.released}
        known = {name: pl.Series(values.astype("M8[ms]")) for name, values in dates.items()}
        frame = frame.with_columns(**{n: known[n] for n in known if n in frame.columns})
        # Both have the same unit, and only one of them may have it in a column.
        frames.append(frame.drop("unit", strict=False) if history.unit else frame)
    order = [*history.versions, *fresh] if history.order_by == "order" else None
    try:
        whole = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{_prefix(new)}the columns do not match the columns of the history ({reason}). "
            "Columns of the same name need the same type."
        ) from error
    return History(
        whole,
        series=history.given_series or new.given_series,
        order=order,
        order_by=history.order_columns,
        unit=history.unit,
        source="history and new validations",
    )


def validations_behind(found: PanelOf) -> Floats:
    """Return the validations behind each row of a panel."""
    behind = found.n_repeats.astype(np.float64)
    # Where measurements come with a spread, each of them sums up several runs.
    return np.maximum(behind, 2.0) if found.noise.source == "measured_spread" else behind


def _prefix(table: History) -> str:
    return f"{table.source}: " if table.source else ""


def groups_of(
    history: History, series: Any, keys: Sequence[str], names: Sequence[str]
) -> tuple[str, ...]:
    """Name each series of a panel by its keys."""
    if not keys:
        return tuple(names)
    columns = [history.per_series(key)[series] for key in keys]
    return tuple(
        " / ".join("–" if value is None else str(value) for value in values)
        for values in zip(*columns, strict=True)
    )
