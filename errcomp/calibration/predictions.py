"""What a model says of runs: central time, bands, parts, fallback and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import LEVELS, QUANTILES, Floats, Names
from errcomp.report.shown import Shown

if TYPE_CHECKING:
    from errcomp.calibration.fitted import CompositionModel
    from errcomp.report.model import Report

__all__ = ["Predictions", "between_levels"]


@dataclass(frozen=True, slots=True, eq=False)
class Predictions(Shown):
    """Times of runs, predicted; arrays of shape (n,) unless said otherwise, in `unit`.

    Attributes
    ----------
    run : ndarray of str
    total : ndarray
        The kernels as they are in the table, together.
    predicted : ndarray
        Median of the end-to-end time.
    low, high : ndarray, shape (n, levels)
        Bands at `levels`, calibrated on runs left out of the fit.
    quantiles : ndarray, shape (n, len(QUANTILES))
        At `errcomp.calibration.design.QUANTILES`; bands and scores between the levels.
    parts : mapping of str to ndarray
        What leads from `total` to `predicted`; times that add up to their difference.
    fallback : ndarray of str
        ``device`` where runs of the device were in the fit, ``global`` where not: the answer is
        then that of all devices, and the band wider.
    calibrated : ndarray of bool
        Whether the band was calibrated on groups left out; else it is the model's own.
    warnings : tuple of tuple of str
        Per run: what makes it unlike the runs of the fit.
    estimator : str
    unit : str or None
    levels : tuple of float
    notes : tuple of str
        Of all runs together, e.g. that they are unlike those of the fit.
    """

    run: Names
    total: Floats
    predicted: Floats
    low: Floats
    high: Floats
    quantiles: Floats
    parts: Mapping[str, Floats]
    fallback: Names
    calibrated: NDArray[np.bool_]
    warnings: tuple[tuple[str, ...], ...]
    estimator: str
    unit: str | None
    levels: tuple[float, ...] = LEVELS
    notes: tuple[str, ...] = ()

    def view(
        self,
        model: CompositionModel | None = None,
        source: str = "",
        unused: Mapping[str, str] | None = None,
    ) -> Report:
        """Return what people see of it; of the model, where it is given, what it was fitted to."""
        from errcomp.calibration.view.predictions import predictions_view

        return predictions_view(self, model, source, unused)

    def __len__(self) -> int:
        return len(self.run)

    def band(self, level: float) -> tuple[Floats, Floats]:
        """Return the lower and upper end of the band at one of the `levels`."""
        at = self.levels.index(level)
        return self.low[:, at], self.high[:, at]

    @property
    def relative_width(self) -> Floats:
        """Width of the 90 % band as a share of the prediction, shape (n,)."""
        low, high = self.band(0.9)
        return (high - low) / self.predicted

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per run, as `errcomp predict --json` prints them."""
        rows = []
        for i, run in enumerate(self.run.tolist()):
            row: dict[str, Any] = {
                "run": run,
                "total": float(self.total[i]),
                "predicted": float(self.predicted[i]),
            }
            for at, level in enumerate(self.levels):
                name = f"{100 * level:g}"
                row[f"low_{name}"] = float(self.low[i, at])
                row[f"high_{name}"] = float(self.high[i, at])
            row["parts"] = {name: float(values[i]) for name, values in self.parts.items()}
            row["fallback"] = str(self.fallback[i])
            row["calibrated"] = bool(self.calibrated[i])
            row["warnings"] = list(self.warnings[i])
            rows.append(row)
        return rows


def between_levels(low: Floats, high: Floats, quantiles: Floats) -> Floats:
    """Move the quantiles of a model so that they agree with calibrated bands.

    The median stays, the quantiles at the ends of the bands become these ends, and those between
    keep their place between their neighbours. Beyond the widest band they are stretched as its
    end was.

    Parameters
    ----------
    low, high : ndarray, shape (n, levels)
        Calibrated ends at `LEVELS`.
    quantiles : ndarray, shape (n, len(QUANTILES))
        Of the model, uncalibrated.

    Returns
    -------
    ndarray, shape (n, len(QUANTILES))
        Ascending in every row.
    """
    ends = [round((1 - level) / 2, 3) for level in LEVELS]
    knots = [*reversed(ends), 0.5, *(round(1 - end, 3) for end in ends)]
    raw = quantiles[:, [QUANTILES.index(knot) for knot in knots]]
    calibrated = np.column_stack([low[:, ::-1], raw[:, len(LEVELS)], high])
    filled = np.empty_like(quantiles)
    for i, probability in enumerate(QUANTILES):
        if knots[0] <= probability <= knots[-1]:
            at = min(int(np.searchsorted(knots, probability, side="right")), len(knots) - 1) - 1
            even = (probability - knots[at]) / (knots[at + 1] - knots[at])
            share = _ratio(quantiles[:, i] - raw[:, at], raw[:, at + 1] - raw[:, at], even)
            filled[:, i] = calibrated[:, at] + share * (calibrated[:, at + 1] - calibrated[:, at])
        else:
            end, median = (0 if probability < knots[0] else -1), raw[:, len(LEVELS)]
            stretch = _ratio(calibrated[:, end] - median, raw[:, end] - median, 1.0)
            filled[:, i] = calibrated[:, end] + stretch * (quantiles[:, i] - raw[:, end])
    return filled


def _ratio(above: Floats, below: Floats, otherwise: float) -> Floats:
    """Divide, where that can be done."""
    return np.divide(above, below, out=np.full_like(above, otherwise), where=below != 0)
