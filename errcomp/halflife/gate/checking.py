"""A new validation against a history: the gate, with what it takes from the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p
from typing import Any

import numpy as np

from errcomp._showing import Shown
from errcomp.errors import InputError, describe_names
from errcomp.halflife.gate import GateResult, check, since_last_step
from errcomp.halflife.gate.recalibration import Recalibration, recalibrate
from errcomp.halflife.panel import moved, panel_of
from errcomp.tables import History, check_keys
from errcomp.tables.frames import to_eager

__all__ = ["Checked", "check_validation"]


@dataclass(frozen=True, slots=True, eq=False)
class Checked(Shown):
    """What a gate says of a new version.

    Attributes
    ----------
    result : GateResult
    recalibration : Recalibration or None
        New correction factors where they were asked for.
    notes : tuple of str
        What a reader should know of the tables.
    """

    result: GateResult
    recalibration: Recalibration | None
    notes: tuple[str, ...]


def check_validation(
    history: History,
    new: History | Any,
    *,
    by: str | Sequence[str] = (),
    error: float | None = None,
    margin: float = 0.0,
    alpha: float = 0.05,
    recalibrated: bool = False,
) -> Checked:
    """Check a new version against a history of validations.

    Each series is compared with what it was since its last step: see `errcomp.halflife.gate.check`.
    The probability of any false alarm, over all series and all versions that the gate ever looks
    at, is at most `alpha`.

    Parameters
    ----------
    history : History
    new : History or dataframe
        Validations of a version that the history does not have; of several, the last is checked
        and the others count as history.
    by : str or sequence of str
        Keys to report series by, e.g. ``kernel_class``: who is to blame. Each series by itself
        otherwise.
    error : float, optional
        The error that the model promised, as a fraction: an error that grew but is still within it
        is no regression. Without it every growth beyond noise (and margin) is one.
    margin : float
        Growth that does not matter, as a fraction.
    alpha : float
    recalibrated : bool
        Also fit new correction factors by group, and judge them.

    Returns
    -------
    Checked

    Raises
    ------
    InputError
        The new table has no version that the history lacks, or no series of it; or as
        `errcomp.halflife.gate.check`.

    Examples
    --------
    >>> versions = [f"1.{i}" for i in range(8)]
    >>> old = History({"version": versions, "op": ["Gelu"] * 8, "measured": [4.0, 4.1] * 4})
    >>> new = History({"version": ["1.8"], "op": ["Gelu"], "measured": [8.0]})
    >>> found = check_validation(old, new)
    >>> found.result.outcome, found.result.names
    ('regression', ('Gelu',))
    """
    table = new if isinstance(new, History) else History(new)
    fresh = [name for name in table.versions if name not in history.versions]
    without = tuple(f"{d.n:,} new validations left out: {d.reason}" for d in table.dropped)
    if not fresh:
        raise InputError(
            f"{_prefix(table)}the history has all versions of the new table "
            f"({'; '.join([describe_names(table.versions), *without])}). Give validations of "
            "another version."
        )
    both = _joined(history, table, fresh)
    last = max(fresh, key=both.versions.index)
    later = [
        name for name in history.versions if both.versions.index(name) > both.versions.index(last)
    ]
    if later:
        raise InputError(
            f"{_prefix(table)}{last} comes before {describe_names(later)} of the history (ordered "
            f"by {both.order_by}). Only a version after all others can be checked."
        )
    found = panel_of(both)
    panel, changes = found.panel, moved(found)
    since = since_last_step(panel, version=last, alpha=alpha)
    groups = _groups(both, found.series, check_keys(by, ()), panel.names)
    result = check(
        panel,
        version=last,
        since=since,
        groups=groups,
        promised=None if error is None else log1p(error),
        reference=changes.reference,
        predictor=changes.predictor,
        margin=log1p(margin),
        alpha=alpha,
    )
    again = None
    if recalibrated:
        at = panel.versions.index(last)
        begun = np.where(result.p_adjusted <= result.level, at, since)
        again = recalibrate(panel, groups=groups, since=begun)
    return Checked(result, again, (*without, *both.notes, *found.notes))


def _joined(history: History, new: History, fresh: Sequence[str]) -> History:
    """Put two tables of validations below each other."""
    import polars as pl

    if history.unit != new.unit:
        raise InputError(
            f"{_prefix(new)}its unit is {new.unit}, that of the history {history.unit}. Give both "
            "the same."
        )
    frames = []
    for table in (history, new):
        frame = to_eager(table.native).to_polars()[table.positions]
        # As they were read: one of them may write dates with an offset, the other without.
        dates = {"date": table.date, "released": table.released}
        known = {name: pl.Series(values.astype("M8[ms]")) for name, values in dates.items()}
        frame = frame.with_columns(**{n: known[n] for n in known if n in frame.columns})
        # The one unit of all: only one of them may have it in a column.
        frames.append(frame.drop("unit", strict=False) if history.unit else frame)
    order = [*history.versions, *fresh] if history.order_by == "order" else None
    try:
        whole = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{_prefix(new)}its columns are not those of the history ({reason}). Give columns of "
            "the same names the same types."
        ) from error
    return History(whole, order=order, unit=history.unit, source="history and new validations")


def _prefix(table: History) -> str:
    return f"{table.source}: " if table.source else ""


def _groups(
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
