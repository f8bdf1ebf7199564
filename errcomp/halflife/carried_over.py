"""Results carried over: values of an earlier version, entered again without a new measurement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from errcomp.results import Dropped, format_number
from errcomp.stats.digits import DIGITS, decimals, enough_digits
from errcomp.tables import History

__all__ = ["CarriedOver", "carried_over", "decimals", "enough_digits"]

#: Copies are left out if at most this share of the equal values is expected by chance.
_CHANCE = 0.2
#: Values that differ by at most this many units of the last digit nearly agree.
_NEAR = 10


@dataclass(frozen=True, slots=True, eq=False)
class CarriedOver:
    """Validations that repeat a value of an earlier version.

    Attributes
    ----------
    copy : ndarray of bool, shape (n,)
        The measurement (and the prediction) equals one of an earlier version of the same series,
        with enough digits to rule out chance.
    dropped : tuple of Dropped
        The copies, counted.
    notes : tuple of str
        Counts of equal values that were kept.
    """

    copy: NDArray[np.bool_]
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...]


def most_decimals(
    values: NDArray[np.float64], series: NDArray[np.int64], n_series: int
) -> NDArray[np.int64]:
    """Return the most decimals that a value of each series has."""
    most = np.zeros(n_series, dtype=np.int64)
    np.maximum.at(most, series, decimals(values))
    return most


def carried_over(history: History) -> CarriedOver:
    r"""Find values that were carried over from an earlier version.

    A measurement that equals one of an earlier version of the same series in all digits may be a
    copy, e.g. a resubmitted result or a chosen target. It counts as a copy if

    * it has four or more significant digits (not counting zeros at the end), and
    * more values of the table agree than chance explains. By chance, as many values agree as differ
      by any small number k of last digits. With :math:`N_k` values of the table that differ from
      one of an earlier version by k last digits, equal values are copies if the mean of
      :math:`N_{-10}, \dots, N_{-1}, N_1, \dots, N_{10}` is at most 0.2 :math:`N_0`.

    A note counts equal values that are kept.

    If the table has predictions, a copy has an equal prediction, too. With another prediction, only
    the predictor was validated again, against a measurement that was not repeated; a note counts
    these.

    Valid where values are written as they were measured. Misleads where copies hide among many
    values that agree by chance (coarse clocks, thousands of repeats): all are then kept.
    Validations aggregated by an engine have no single values: they are not checked, as a note says.

    Parameters
    ----------
    history : History

    Returns
    -------
    CarriedOver

    Examples
    --------
    >>> from errcomp.tables import History
    >>> history = History({"version": ["1", "2", "3"], "measured": [26.441, 26.441, 27.093]})
    >>> result = carried_over(history)
    >>> result.copy.tolist(), result.dropped[0].n
    ([False, True, False], 1)
    """
    n, alike = history.behind.n, history.behind.alike
    unit = history.series
    if history.predicted is not None:
        predictions = np.unique(history.predicted, return_inverse=True)[1]
        unit = np.unique(unit * (predictions.max() + 1) + predictions, return_inverse=True)[1]
    same = _seen_before(unit, history.measured, history.version, alike)
    copy = np.zeros(history.n, dtype=bool)
    copy[same] = enough_digits(history.measured[same])
    notes = []
    if together := int(n[~alike].sum()):
        notes.append(
            f"{together:,} of {n.sum():,} validations were aggregated by the engine and not "
            "checked for values copied from an earlier version. Load the rows into memory "
            "(errcomp.History) to check them"
        )
    if few := int(n[same & ~copy].sum()):
        notes.append(
            f"{few} measurement{' equals' if few == 1 else 's equal'} a measurement of an earlier "
            f"version, but in fewer than {DIGITS} significant digits: kept, because this may be "
            "chance"
        )
    if equal := int(n[copy].sum()):
        chance = _nearly_seen(history, unit)
        if chance > _CHANCE * equal:
            notes.append(
                f"{equal} measurement{' equals' if equal == 1 else 's equal'} a measurement of an "
                f"earlier version in all digits: kept, because about {format_number(chance, 2)} "
                "agreements are expected by chance"
            )
            copy[:] = False
    if history.predicted is not None:
        moved = _seen_before(history.series, history.measured, history.version, alike) & ~same
        if moved.any():
            count = n[moved].sum()
            notes.append(
                f"{count} prediction{' is' if count == 1 else 's are'} compared with a measurement "
                "of an earlier version, because there is no new measurement"
            )
    dropped = history.left_out(
        "carried over: equal to the measurement of an earlier version in all digits", copy
    )
    return CarriedOver(copy, dropped, tuple(notes))


def _groups(
    unit: NDArray[np.int64], values: NDArray[np.float64], version: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Group rows by unit and value: return the order of rows, their groups, each first row."""
    order = np.lexsort((version, values, unit))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(unit[order]) != 0) | (np.diff(values[order]) != 0)
    return order, np.cumsum(new) - 1, order[new]


def _seen_before(
    unit: NDArray[np.int64],
    values: NDArray[np.float64],
    version: NDArray[np.int64],
    looked_at: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Say which of the selected values occur at an earlier version of their unit."""
    at = np.flatnonzero(looked_at)
    unit, values, version = unit[at], values[at], version[at]
    order, group, first = _groups(unit, values, version)
    seen = np.zeros(len(looked_at), dtype=bool)
    seen[at[order]] = version[order] > version[first][group]
    return seen


def _nearly_seen(history: History, unit: NDArray[np.int64]) -> float:
    """Count values that differ from an earlier version by k last digits: the mean over k."""
    at = np.flatnonzero(history.behind.alike)
    unit, series, values = unit[at], history.series[at], history.measured[at]
    shown = most_decimals(values, series, history.n_series)
    steps = np.rint(values * 10.0 ** shown[series])
    order, group, first = _groups(unit, steps, history.version[at])
    version, fine = history.version[at][order], enough_digits(values[order])
    n = np.where(fine, history.behind.n[at][order], 0)
    of_group, step, earliest = unit[first], steps[first], history.version[first]
    hits = 0
    for shift in range(1, _NEAR + 1):
        # Whether the shift-th next group belongs to the same unit, and is near.
        near = np.zeros(len(first) + shift, dtype=bool)
        distance = step[shift:] - step[:-shift]
        near[shift:-shift] = (of_group[shift:] == of_group[:-shift]) & (distance <= _NEAR)
        if not near.any():
            break
        for side in (-shift, shift):
            other = np.clip(group + side, 0, len(first) - 1)
            close = near[group + shift if side > 0 else group]
            hits += int(n[close & (version > earliest[other])].sum())
    return hits / (2 * _NEAR)
