"""Predictions of runs: median time, bands, parts, fallback and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import LEVELS, QUANTILES, Floats, Names
from errcomp.codec import json_text
from errcomp.errors import InputError
from errcomp.report.shown import Shown

if TYPE_CHECKING:
    from errcomp.calibration.fitted import CompositionModel
    from errcomp.report.model import Report

__all__ = [
    "Predictions",
]


#: Of a prediction on a device that the model was adapted to.
ADAPTED = "adapted"


@dataclass(frozen=True, slots=True, eq=False)
class Predictions(Shown):
    """Predicted times of runs; arrays of shape (n,) unless stated otherwise, in `unit`.

    Attributes
    ----------
    run : ndarray of str
    total : ndarray
        Sum of the kernels in the table, without corrections.
    predicted : ndarray
        Median of the end-to-end time.
    low, high : ndarray, shape (n, levels)
        Bands at `levels`, calibrated on held-out runs.
    quantiles : ndarray, shape (n, len(QUANTILES))
        Quantiles at `errcomp.calibration.design.QUANTILES`, for other levels and for scores.
    parts : mapping of str to ndarray
        Causes of the difference of `predicted` and `total`, as times that add up to it.
    fallback : ndarray of str
        ``device`` if runs of the device were in the fit, else ``global``: the prediction then comes
        from all devices, and the band is wider. ``adapted`` if `CompositionModel.adapt` was given
        runs of the device.
    calibrated : ndarray of bool
        Whether the band was calibrated on held-out groups; else it is the estimator's own.
    warnings : tuple of tuple of str
        Per run, its differences from the runs of the fit.
    estimator : str
    unit : str or None
    levels : tuple of float
    notes : tuple of str
        Notes on all runs together, e.g. that they are unlike those of the fit.
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
        """Return the report of the predictions; with a model it also describes the fit.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> found = Composition(estimators=()).fit(runs).predict(runs)
        >>> found.view().title
        'Predicted runs, by linear'
        """
        from errcomp.calibration.view.predictions import predictions_view

        return predictions_view(self, model, source, unused)

    def __len__(self) -> int:
        return len(self.run)

    def band(self, level: float) -> tuple[Floats, Floats]:
        """Return the lower and upper end of the band at one of the `levels`.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> found = Composition(estimators=()).fit(runs).predict(runs)
        >>> low, high = found.band(0.9)
        >>> low[:2].round(2).tolist(), high[:2].round(2).tolist()
        ([1.01, 2.03], [1.19, 2.39])
        """
        at = self.levels.index(level)
        return self.low[:, at], self.high[:, at]

    @property
    def relative_width(self) -> Floats:
        """Width of the 90 % band as a share of the prediction, shape (n,)."""
        low, high = self.band(0.9)
        return (high - low) / self.predicted

    def at_most(self, width: float) -> tuple[Self, dict[str, str]]:
        """Keep the runs with narrow bands, and say why the others are not kept.

        Parameters
        ----------
        width : float
            Largest width of the 90 % band as a share of the prediction, above 0.

        Returns
        -------
        predictions : Predictions
        unsure : dict of str to str
            The reason for every other run.

        Raises
        ------
        InputError
            The width is not above 0, or no run has so narrow a band.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> found = Composition(estimators=()).fit(runs).predict(runs)
        >>> sure, unsure = found.at_most(0.2)
        >>> len(sure), unsure
        (8, {})
        """
        if not width > 0:
            raise InputError(f"the largest width must be above 0, got {width!r}. Write 20% or 0.2.")
        sure = self.relative_width <= width
        limit, widths = f"{100 * width:g} %", 100 * self.relative_width
        if not sure.any():
            raise InputError(
                f"the 90 % band of every run is wider than {limit} of its prediction (narrowest: "
                f"{widths.min():.0f} %). Allow wider bands (--max-width), or measure runs on "
                "their device (errcomp plan runs chooses them) and adapt the model to them."
            )
        unsure = {
            str(run): f"its 90 % band is wider than {limit} of the prediction ({found:.0f} %)"
            for run, found in zip(self.run[~sure], widths[~sure], strict=True)
        }
        arrays = {
            name: getattr(self, name)[sure]
            for name in (
                *("run", "total", "predicted", "low", "high", "quantiles"),
                *("fallback", "calibrated"),
            )
        }
        kept: Any = {
            **arrays,
            "parts": {name: part[sure] for name, part in self.parts.items()},
            "warnings": tuple(w for w, keep in zip(self.warnings, sure, strict=True) if keep),
        }
        return replace(self, **kept), unsure

    def to_dict(self) -> dict[str, Any]:
        """Return the document of `errcomp predict --json`, without its keys about the model.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> found = Composition(estimators=()).fit(runs).predict(runs)
        >>> found.to_dict()["estimator"]
        'linear'
        """
        return {
            "schema": "errcomp.predictions/1",
            "estimator": self.estimator,
            "unit": self.unit,
            "levels": list(self.levels),
            "notes": list(self.notes),
            "rows": self.rows(),
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> found = Composition(estimators=()).fit(runs).predict(runs)
        >>> "linear" in found.to_json()
        True
        """
        return json_text(self.to_dict())

    def rows_document(self) -> dict[str, Any]:
        """Return `flat` as the rows of a document.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> predictions = Composition(estimators=()).fit(runs).predict(runs)
        >>> len(predictions.rows_document()["rows"]) == len(predictions.flat())
        True
        """
        return {"rows": self.flat()}

    def to_frame(self) -> Any:
        """Return one row per run: parts as columns, warnings as one text.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> found = Composition(estimators=()).fit(runs).predict(runs)
        >>> found.to_frame()["predicted"].round(1)[:2].to_list()
        [1.1, 2.2]
        """
        from errcomp.tables.frames import frame_from_columns

        rows = self.flat()
        return frame_from_columns(
            {key: [row[key] for row in rows] for key in rows[0]} if rows else {}
        )

    def flat(self) -> list[dict[str, Any]]:
        """Return one mapping of plain values per run, as ``predict -o FILE.csv`` writes it.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> found = Composition(estimators=()).fit(runs).predict(runs)
        >>> round(found.flat()[0]["part_other"], 2)
        0.1
        """
        flat = []
        for row in self.rows():
            parts, warnings = row.pop("parts"), row.pop("warnings")
            row |= {f"part_{name}": value for name, value in parts.items()}
            flat.append({**row, "unit": self.unit, "warnings": "; ".join(warnings)})
        return flat

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per run, as `errcomp predict --json` prints them.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> found = Composition(estimators=()).fit(runs).predict(runs)
        >>> round(found.rows()[0]["low_90"], 2)
        1.01
        """
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


def band_ends(quantiles: Floats) -> tuple[Floats, Floats]:
    """Return the quantiles at the ends of the bands of `LEVELS`, each of shape (n, levels)."""
    low = [QUANTILES.index(round((1 - level) / 2, 3)) for level in LEVELS]
    high = [QUANTILES.index(round((1 + level) / 2, 3)) for level in LEVELS]
    return quantiles[:, low].copy(), quantiles[:, high].copy()


def between_levels(low: Floats, high: Floats, quantiles: Floats) -> Floats:
    """Move the quantiles of a model so that they agree with calibrated bands.

    The median stays. Quantiles at the ends of the bands move to these ends, and those between keep
    their relative position. Beyond the widest band they are stretched like its end.

    Parameters
    ----------
    low, high : ndarray, shape (n, levels)
        Calibrated ends at `LEVELS`.
    quantiles : ndarray, shape (n, len(QUANTILES))
        Quantiles of the model, uncalibrated.

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
    """Divide; where that is impossible, return the other value."""
    return np.divide(above, below, out=np.full_like(above, otherwise), where=below != 0)
