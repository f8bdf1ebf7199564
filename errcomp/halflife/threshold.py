r"""The error a model has at calibration, and the error at which it counts as expired.

The calibrated error is the root mean square of the true errors of the series at their first
version. Noise of the measurement adds to every square, so its variance is subtracted:

.. math:: \hat e_0^2 = \frac{1}{n} \sum_i e_i^2 - \frac{1}{n} \sum_i s_i^2

The estimate is about these series only: its interval covers the effect of noise alone. The error on
other series depends on the tails of their errors, which a few series do not show: no interval for
it kept its level in simulation (a chi-squared one of 20 series covers 96 % for normal errors, 84 %
for Student t of 5 and 82 % for Laplace errors).

Coverage at a nominal 95 %, simulated with 2000 sets of series each: 94 to 96 % for normal, equal,
and heavy-tailed errors of 1 to 5 times the noise, 1 to 200 series, degrees of freedom from 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from errcomp.codec import Count, Coverage, Document, Log, Undefined
from errcomp.errors import InputError, describe_names
from errcomp.halflife.panel import Panel, check_level
from errcomp.results import format_fraction

__all__ = ["ASSUMED_ERROR", "Threshold", "doubling_threshold"]

#: Relative error assumed if predictions are the first measurements and no error is given.
ASSUMED_ERROR = 0.05
#: Drift that doubles an error it is independent of: sqrt(e0² + drift²) = 2·e0.
_DRIFT = math.sqrt(3)
#: Above this noncentrality the root of a sum of squares is treated as normal.
_LARGE = 1e4
#: Points at which the distribution of an estimated variance is evaluated.
_NODES = 40
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Threshold(Document):
    """Calibrated error and the error at which it has doubled; all on the log scale.

    Attributes
    ----------
    error : float
        The calibrated error e0.
    low, high : float or None
        Bounds of e0; None if it was given or assumed, or if the noise is unknown.
    level : float
        Nominal coverage of the bounds.
    value : float or None
        A series has expired if ``|error| >= value``; None if refused.
    factor : float
        value / error: 2 if errors include that of the model, √3 if they start from 0.
    source : {"given", "measured", "assumed"}
    n_series : int
        Number of series it was estimated from; 0 if it was given or assumed.
    refused : str
        Why there is no value; empty otherwise.
    notes : tuple of str
        Remarks for the reader.
    """

    error: Annotated[Log, Undefined]
    low: float | None
    high: float | None
    level: Coverage
    value: Log | None
    factor: float
    source: Literal["given", "measured", "assumed"]
    n_series: Count
    refused: str = ""
    notes: tuple[str, ...] = ()


def doubling_threshold(
    panel: Panel, *, error: float | None = None, level: float = 0.95
) -> Threshold:
    r"""Return the error at which the calibrated error of a panel's series has doubled.

    Definition: :math:`2 e_0` where errors include that of the model; :math:`\sqrt 3 e_0` where the
    panel is frozen at first measurements, because drift and error of the model are independent.
    Refused if e0 is not distinguishable from noise at `level`. Misleads if the first rows were used
    to fit the model: e0 is then too small, and series expire too early.

    Parameters
    ----------
    panel : Panel
    error : float, optional
        Promised relative error at calibration, 0.05 for 5 %; log(1 + error) is used. By default it
        is estimated from the first rows, or assumed to be 5 % if these are 0 by construction.
    level : float
        Coverage of the bounds of e0.

    Returns
    -------
    Threshold

    Raises
    ------
    InputError
        `error` is not positive and finite, `level` is not between 0 and 1, the panel has no series,
        or a first error is not finite.

    References
    ----------
    Johnson, Kotz and Balakrishnan (1995), "Continuous Univariate Distributions", volume 2,
    chapters 29 and 30 (noncentral chi-squared and F).

    Examples
    --------
    >>> from errcomp.halflife.panel import Panel
    >>> panel = Panel(
    ...     versions=("1.0", "1.1"),
    ...     months=np.array([0.0, 3.0]),
    ...     names=("a", "b"),
    ...     clusters=np.array([0, 1]),
    ...     starts=np.array([0, 2, 4]),
    ...     version=np.array([0, 1, 0, 1]),
    ...     error=np.array([0.05, 0.12, -0.05, -0.06]),
    ...     sd=np.full(4, 0.01),
    ...     noise_df=np.array([8.0, 8.0]),
    ...     frozen_at_first=False,
    ... )
    >>> threshold = doubling_threshold(panel)
    >>> round(threshold.error, 4), round(threshold.value, 4), threshold.source
    (0.049, 0.098, 'measured')
    >>> round(threshold.low, 3), round(threshold.high, 3)
    (0.034, 0.064)
    """
    check_level(level)
    factor = _DRIFT if panel.frozen_at_first else 2.0
    if error is not None:
        if not (math.isfinite(error) and error > 0):
            raise InputError(
                f"the error at calibration must be positive and finite, got {error}. Give it as a "
                "fraction: error=0.05 is 5 %."
            )
        return _fixed(math.log1p(error), factor, level, "given")
    if panel.frozen_at_first:
        note = (
            "Without predictions, the error at calibration is assumed to be "
            f"{format_fraction(ASSUMED_ERROR)}. If another error was promised, give it (error=, "
            "--error)."
        )
        return _fixed(math.log1p(ASSUMED_ERROR), factor, level, "assumed", note)
    return _measured(panel, factor, level)


def _fixed(
    e0: float, factor: float, level: float, source: Literal["given", "assumed"], *notes: str
) -> Threshold:
    return Threshold(e0, None, None, level, factor * e0, factor, source, 0, notes=notes)


def _measured(panel: Panel, factor: float, level: float) -> Threshold:
    """Estimate e0 from the first row of each series."""
    n = panel.n_series
    if not n:
        raise InputError("the panel has no series. Give a panel with one series or more.")
    first = panel.starts[:-1]
    errors, sd, df = panel.error[first], panel.sd[first], panel.noise_df
    if not np.isfinite(errors).all():
        bad = [panel.names[i] for i in np.flatnonzero(~np.isfinite(errors))]
        raise InputError(
            f"the error at calibration must be finite, got {errors[~np.isfinite(errors)][0]} in "
            f"the series {describe_names(bad)}. Leave these series out."
        )
    known = np.isfinite(sd) & (df > 0)
    square = float(np.mean(errors**2))
    if not known.any():
        return _as_measured(math.sqrt(square), factor, level, n)
    notes = []
    if not known.all():
        notes.append(
            f"The noise of {n - known.sum()} of {n} series is unknown; for these series, the noise "
            "of the others is used."
        )
    noise = _Noise.of(sd[known], df[known], n)
    e0 = math.sqrt(max(square - noise.total / n, 0.0))
    refused = ""
    if _upper_tail(n * square, 0.0, noise) > 1 - level:
        seen, alone = (_percent(math.sqrt(value)) for value in (square, noise.total / n))
        refused = (
            f"the error at calibration, {_percent(e0)}, is not distinguishable from measurement "
            f"noise: the first errors have an RMS of {seen}, and noise alone would give {alone}. "
            "Give the promised error (error=, --error), or repeat the measurements."
        )
    low, high = _bounds(n * square, noise, level)
    return Threshold(
        e0,
        math.sqrt(low / n),
        math.sqrt(high / n),
        level,
        None if refused else factor * e0,
        factor,
        "measured",
        n,
        refused,
        tuple(notes),
    )


def _percent(log_error: float) -> str:
    return format_fraction(math.expm1(log_error))


def _as_measured(e0: float, factor: float, level: float, n: int) -> Threshold:
    note = (
        "The measurement noise is unknown. The error at calibration includes this noise, and has "
        "no interval."
    )
    refused = (
        "" if e0 else "all errors at calibration are 0. Give the promised error (error=, --error)."
    )
    value = factor * e0 if e0 else None
    return Threshold(e0, None, None, level, value, factor, "measured", n, refused, (note,))


@dataclass(frozen=True, slots=True, eq=False)
class _Noise:
    """Noise in a sum of squares, equal to that of `terms` squares of variance `unit`.

    The variances of many series are matched in their sum and in the sum of their squares.
    """

    total: float
    unit: NDArray[np.float64]
    terms: float

    @classmethod
    def of(cls, sd: NDArray[np.float64], df: NDArray[np.float64], n: int) -> _Noise:
        """Match n series, some with a known noise; the spread of `unit` follows from its df."""
        from scipy import stats

        # A noise of 0 is replaced by a tiny one: everything below divides by it.
        square = np.maximum(sd, _TINY) ** 2
        two, four, behind = square.sum(), np.sum(square**2), np.sum(square**2 / df)
        nodes = (np.arange(_NODES) + 0.5) / _NODES
        known = two**2 / behind if behind > 0 else np.inf
        spread = np.ones(1) if known == np.inf else known / stats.chi2.ppf(nodes, known)
        share = n / len(sd)
        return cls(float(share * two), spread * four / two, float(share * two**2 / four))


def _upper_tail(squares: float, true: float, noise: _Noise) -> float:
    """Return P(sum of squares >= `squares`) if the sum of true squares is `true`."""
    from scipy import stats

    shift = true / noise.unit
    # The root of a large sum of squares is normal, with a standard deviation of one unit.
    root = (np.sqrt(squares) - np.sqrt(true + noise.terms * noise.unit)) / np.sqrt(noise.unit)
    exact = stats.ncx2.sf(squares / noise.unit, noise.terms, np.minimum(shift, _LARGE))
    return float(np.mean(np.where(shift > _LARGE, stats.norm.sf(root), exact)))


def _bounds(squares: float, noise: _Noise, level: float) -> tuple[float, float]:
    """Return bounds of the sum of true squares; 0 if noise alone explains the observed sum."""
    from scipy.optimize import brentq

    top = math.sqrt(squares) + math.sqrt(noise.total) + 1e-300

    def solve(tail: float) -> float:
        def excess(root: float) -> float:
            return _upper_tail(squares, root**2, noise) - tail

        if excess(0.0) >= 0:
            return 0.0
        high = top
        while excess(high) < 0:
            high *= 2
        return float(brentq(excess, 0.0, high, xtol=1e-6 * top)) ** 2

    return solve((1 - level) / 2), solve((1 + level) / 2)
