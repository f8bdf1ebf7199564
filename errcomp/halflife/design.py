"""What the estimators of half-life work on: a panel of series, on one clock, against a threshold.

A *series* is one unit of observation (an operator at one shape, a benchmark on one system) checked
again under successive versions. Its *error* at a version is log(predicted / measured) of the
frozen prediction, the mean over repeats. Where the history has no predictions, the prediction is
the measurement at the series' first version, and its error is then 0: what moves is the reference.

The *calibrated error* e0 is what the model promised at calibration, on the log scale. A series has
*expired* when its error has doubled: ``|error| >= threshold``, with threshold 2·e0 where errors
include that of the model, and √3·e0 where they start from 0 (drift and error of the model are
independent, so that √(e0² + drift²) = 2·e0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Clock", "HalfLife", "Panel"]

#: What age is counted in.
Clock = Literal["releases", "months"]


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Errors of many series over versions; one row per series and version.

    Attributes
    ----------
    versions : tuple of str
        In order, shape (m,).
    months : ndarray of float, shape (m,)
        Months of each version since the first one; NaN throughout where versions have no dates.
    names : tuple of str
        Of the series, shape (s,).
    clusters : ndarray of int, shape (s,)
        Which series may share what happens to them (the same model, system or submitter): resampled
        together. Each is a cluster of its own where nothing is known.
    starts : ndarray of int, shape (s + 1,)
        Rows of series i are ``starts[i]:starts[i + 1]``.
    version : ndarray of int, shape (n,)
        Position in ``versions``, strictly increasing within a series. The first row of a series is
        that of its calibration.
    error : ndarray of float, shape (n,)
        log(predicted / measured), mean over repeats. Dimensionless.
    sd : ndarray of float, shape (n,)
        Standard deviation of ``error`` due to noise of the measurement: that of one repeat over the
        root of their number. NaN where there are no repeats to tell it.
    noise_df : ndarray of float, shape (s,)
        Degrees of freedom behind ``sd`` of each series; 0 where unknown, inf where it was given.
    frozen_at_first : bool
        The errors start from 0: predictions are the first measurements.
    """

    versions: tuple[str, ...]
    months: NDArray[Any]
    names: tuple[str, ...]
    clusters: NDArray[Any]
    starts: NDArray[Any]
    version: NDArray[Any]
    error: NDArray[Any]
    sd: NDArray[Any]
    noise_df: NDArray[Any]
    frozen_at_first: bool

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self.names)

    def rows_of(self, which: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of some of the series, given by position, in that order."""
        sizes = np.diff(self.starts)[which]
        ends = np.cumsum(sizes)
        return np.repeat(self.starts[which] - (ends - sizes), sizes) + np.arange(sizes.sum())

    def take(self, which: NDArray[Any]) -> Panel:
        """Return the panel of some of the series, given by position; the clock stays."""
        rows = self.rows_of(which)
        return Panel(
            versions=self.versions,
            months=self.months,
            names=tuple(self.names[i] for i in which.tolist()),
            clusters=self.clusters[which],
            starts=np.append(0, np.cumsum(np.diff(self.starts)[which])),
            version=self.version[rows],
            error=self.error[rows],
            sd=self.sd[rows],
            noise_df=self.noise_df[which],
            frozen_at_first=self.frozen_at_first,
        )

    def times(self, clock: Clock) -> NDArray[Any]:
        """Return the time of each row on a clock: position of the version, or months."""
        return self.version.astype(float) if clock == "releases" else self.months[self.version]


@dataclass(frozen=True, slots=True, eq=False)
class HalfLife:
    """A half-life by one method, or why there is none.

    Attributes
    ----------
    method : str
        E.g. ``"turnbull"``, ``"weibull"``, ``"variogram"``.
    half_life : float or None
        In ``unit``; None where it is not identified. inf where it does not end.
    low, high : float or None
        Bounds of its interval; ``high`` is inf where only a lower bound can be given.
    level : float
        Nominal coverage of the interval.
    unit : {"releases", "months"}
    n_series : int
        Series behind it.
    censored_share : float
        Share of those series that had not expired when last seen, as the method counts them: not
        surely beyond the threshold at any version (of times of expiry), not beyond it at face value
        (``"trajectory"``), or never moved by √3 times the calibrated error (``"variogram"``).
    refused : str
        Why ``half_life`` is None; empty otherwise.
    assumptions : tuple of str
        What must hold for it, each a sentence.
    details : mapping
        What else the method found: parameters, score, curve; plain values for JSON.
    """

    method: str
    half_life: float | None
    low: float | None
    high: float | None
    level: float
    unit: Clock
    n_series: int
    censored_share: float
    refused: str = ""
    assumptions: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
