"""New correction factors from what was seen since the last step, and whether they help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError
from errcomp.halflife.gate.verdicts import as_labels, as_since
from errcomp.halflife.panel import Panel

__all__ = ["Recalibration", "recalibrate"]

Floats = NDArray[np.float64]

#: What the new error of a group was judged by, by code.
_JUDGED = ("not judged", "other series", "other versions")


@dataclass(frozen=True, slots=True, eq=False)
class Recalibration:
    """New factors of groups, and errors with the old and the new ones; shape (g,) each.

    Attributes
    ----------
    groups : tuple of str
        In order of appearance.
    factor, low, high : ndarray
        What predictions are multiplied by, and its interval; bounds are NaN where one row is all.
    level : float
        Nominal coverage of the interval.
    old_error, new_error : ndarray
        Root mean square of the log error as it is, and with a factor that has not seen the series
        (or, in a group of one series, the version) that it is judged on; NaN where not judged.
    old_bias : ndarray
        Mean log error as it is.
    judged_by : ndarray of str
        ``"other series"``, ``"other versions"`` or ``"not judged"``.
    n_series, n_rows : ndarray of int
    old_total, new_total : float
        Root mean square over all series of groups that were judged; NaN where none was.
    """

    groups: tuple[str, ...]
    factor: Floats
    low: Floats
    high: Floats
    level: float
    old_error: Floats
    new_error: Floats
    old_bias: Floats
    judged_by: NDArray[Any]
    n_series: NDArray[np.int64]
    n_rows: NDArray[np.int64]
    old_total: float
    new_total: float

    @property
    def helps(self) -> NDArray[np.bool_]:
        """Whether the new factor makes the error of a group smaller; False where not judged."""
        return self.new_error < self.old_error

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN becomes None."""

        def plain(value: float) -> float | None:
            return float(value) if np.isfinite(value) else None

        figures = ("factor", "low", "high", "old_error", "new_error", "old_bias")
        return {
            "level": self.level,
            "old_total": plain(self.old_total),
            "new_total": plain(self.new_total),
            "groups": [
                {
                    "group": name,
                    "judged_by": str(self.judged_by[g]),
                    "helps": bool(self.helps[g]),
                    "n_series": int(self.n_series[g]),
                    "n_rows": int(self.n_rows[g]),
                    **{figure: plain(getattr(self, figure)[g]) for figure in figures},
                }
                for g, name in enumerate(self.groups)
            ],
        }


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

    with the mean error of each series over its versions since the last step; every series weighs
    the same. The new error of series i is judged with the factor of the other series of its group
    (in a group of one series: of each version, with the factor of the other versions), so that it
    is that of a series that was not seen. The interval of the factor is a Student t over series
    (over versions in a group of one).

    Valid where series of a group moved together and versions since the step are alike. Misleads
    where one series of a group moved and the others did not: the factor spoils those, which
    ``helps`` shows; group more finely then. Versions of one series share the noise of what they
    have in common, so "other versions" flatters.

    Parameters
    ----------
    panel : Panel
    groups : sequence of str, shape (s,), optional
        Kernel class of each series, say. Each series by itself by default.
    since : array_like of int, shape (s,) or scalar, optional
        Version from which on errors count, as position in ``panel.versions``: the release that
        was blamed. All rows by default.
    level : float

    Returns
    -------
    Recalibration

    Raises
    ------
    InputError
        Names or positions of the wrong number, a level not between 0 and 1, or a group without a
        validation since then.

    Examples
    --------
    >>> panel = Panel(
    ...     versions=("1.0", "1.1"), months=np.arange(2.0), names=("a", "b", "c"),
    ...     clusters=np.arange(3), starts=np.array([0, 2, 4, 6]), version=np.tile([0, 1], 3),
    ...     error=np.array([0.0, 0.69, 0.02, 0.71, 0.01, 0.7]), sd=np.full(6, np.nan),
    ...     noise_df=np.zeros(3), frozen_at_first=False)
    >>> found = recalibrate(panel, groups=["Gelu"] * 3, since=1)
    >>> found.factor.round(3).tolist(), found.old_error.round(2).tolist()
    ([0.497], [0.7])
    >>> found.new_error.round(3).tolist(), found.judged_by.tolist()
    ([0.012], ['other series'])
    """
    from scipy import stats

    if not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, e.g. 0.95, got {level}.")
    labels = as_labels(groups, panel)
    first = as_since(0 if since is None else since, panel)
    names = tuple(dict.fromkeys(labels))
    number = {name: g for g, name in enumerate(names)}
    series = np.repeat(np.arange(panel.n_series), np.diff(panel.starts))
    used = panel.version >= first[series]
    error, i = panel.error[used], series[used]
    # Only series with a row count; `of` numbers those of each group.
    there, i = np.unique(i, return_inverse=True)
    of = np.array([number[label] for label in labels], dtype=np.int64)[there]
    n_series = np.bincount(of, minlength=len(names))
    if (n_series == 0).any():
        missing = [names[g] for g in np.flatnonzero(n_series == 0)[:3]]
        raise InputError(
            f"no validation since the last step in {int((n_series == 0).sum())} of {len(names)} "
            f"groups: {', '.join(missing)}. Leave these out or let them begin earlier."
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

    # One series: its rows are what scatters.
    n = np.where(n_series > 1, n_series, n_rows)
    about_series = np.bincount(of, (mean - bias[of]) ** 2)
    about_rows = np.bincount(of[i], (error - bias[of[i]]) ** 2, minlength=len(names))
    squares = np.where(n_series > 1, about_series, about_rows)
    df = np.maximum(n - 1, 1)
    half = np.where(n > 1, stats.t.isf((1 - level) / 2, df) * np.sqrt(squares / df / n), np.nan)
    return Recalibration(
        groups=names,
        factor=np.exp(-bias),
        low=np.exp(-bias - half),
        high=np.exp(-bias + half),
        level=float(level),
        old_error=np.sqrt(np.bincount(of, old) / n_series),
        new_error=np.sqrt(np.bincount(of, new) / n_series),
        old_bias=bias,
        judged_by=np.array(_JUDGED, dtype=object)[judged],
        n_series=n_series,
        n_rows=n_rows,
        old_total=float(np.sqrt(old[seen].mean())) if seen.any() else np.nan,
        new_total=float(np.sqrt(new[seen].mean())) if seen.any() else np.nan,
    )
