"""What a simulation says, and with what certainty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation.montecarlo.sampling import Method
from errcomp.propagation.montecarlo.stopping import QUANTILES, critical, intervals, quantiles
from errcomp.propagation.terms import Floats, Terms
from errcomp.results import Caveat, format_fraction, format_number

__all__ = ["Simulated", "caveats_of"]

#: A quantile needs so many draws beyond it.
_BEYOND = 10


@dataclass(frozen=True)
class Simulated:
    """Draws of a simulated time, and what they say with what certainty.

    Attributes
    ----------
    draws : ndarray, shape (n,)
        In the order in which they were drawn, replicate by replicate, infinite ones among them.
        Simulations with the same terms, seed, method and number of draws are not draw by draw
        comparable unless they take the same terms in the same order.
    replicates : int
        Independent repetitions of n / replicates draws each; their scatter gives the errors.
    method : {"sobol", "random"}
        How the draws were made.
    dimensions : int
        Sources of error that were drawn from Sobol points; the others are pseudo-random.
    covered : float
        Share of the variance of the plain sum of the terms that those sources carry.
    seed : int
        The same seed, terms, graph and options give the same draws on the same machine.
    unit : str or None
        Unit of the draws.
    precision : float
        Largest relative half width of the 95 % intervals of the 5, 50 and 95 % quantiles.
    reached : bool or None
        Whether that is the precision asked for; None: none was.
    observed : dict
        What nodes observed, summed over all draws.
    caveats : tuple of Caveat
        What a reader must know.
    """

    draws: Floats
    replicates: int
    method: Method
    dimensions: int
    covered: float
    seed: int
    unit: str | None
    precision: float
    reached: bool | None = None
    observed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    caveats: tuple[Caveat, ...] = ()

    @cached_property
    def _by_replicate(self) -> Floats:
        return self.draws.reshape(self.replicates, -1)

    @cached_property
    def _ordered(self) -> Floats:
        return np.sort(self.draws)

    def __len__(self) -> int:
        return len(self.draws)

    def quantile(self, q: ArrayLike) -> Any:
        """Quantiles of the time, in its unit; infinite where saturation reaches so far.

        Parameters
        ----------
        q : float or array_like
            Probabilities. At least ten draws must lie beyond each.

        Returns
        -------
        float or ndarray
            As q.

        Raises
        ------
        InputError
            A probability is not within what so many draws can tell.
        """
        at = self._probabilities(q)
        return _like(q, quantiles(self._ordered, at))

    def interval(self, q: ArrayLike) -> tuple[Any, Any]:
        """Return the 95 % interval of a quantile: how far the simulation may be off.

        From the scatter over the replicates, see
        ``errcomp.propagation.montecarlo.stopping.intervals``. It covers the simulation's error
        alone, not that of the error model.
        """
        _, low, high = intervals(self._by_replicate, self._probabilities(q))
        return _like(q, low), _like(q, high)

    def standard_error(self, q: ArrayLike) -> Any:
        """Return the standard error of a quantile: its interval's half width in t quantiles.

        Zero where the quantile is infinite beyond doubt, infinite where it may be.
        """
        _, low, high = intervals(self._by_replicate, self._probabilities(q))
        with np.errstate(invalid="ignore"):
            width = np.where(np.isinf(low), 0.0, high - low)
        return _like(q, width / (2 * critical(self.replicates)))

    def _probabilities(self, q: ArrayLike) -> Floats:
        try:
            at = np.atleast_1d(np.asarray(q, dtype=float)).ravel()
        except (TypeError, ValueError):
            at = np.array([math.nan])
        bad = at[~(np.minimum(at, 1 - at) * len(self) >= _BEYOND * (1 - 1e-9))]
        if len(bad):
            most = 1 - _BEYOND / len(self)
            raise InputError(
                f"{len(self):,} draws tell the quantiles from {1 - most:.2g} to {most:.6g}, not "
                f"{q!r}. Ask for one of those, or simulate more draws"
            )
        return at

    def _finite(self, figure: str, codes: tuple[str, ...]) -> Floats:
        for caveat in self.caveats:
            if caveat.code in codes:
                raise NotDefinedError(
                    f"the {figure} is not defined: {caveat.message}. Use quantiles"
                )
        return self.draws

    @property
    def mean(self) -> float:
        """Mean; raises NotDefinedError where draws are infinite or the errors have no mean."""
        return float(self._finite("mean", ("infinite", "no-mean")).mean())

    @property
    def mean_standard_error(self) -> float:
        """Standard error of the mean, from the scatter over the replicates."""
        self._finite("mean", ("infinite", "no-mean"))
        means = self._by_replicate.mean(axis=1)
        return float(means.std(ddof=1) / math.sqrt(self.replicates))

    @property
    def sd(self) -> float:
        """Standard deviation; raises NotDefinedError where there is none."""
        return float(self._finite("standard deviation", ("infinite", "no-mean", "no-sd")).std())

    @property
    def probability_infinite(self) -> float:
        """Share of the draws that are infinite, e.g. because a queue is saturated."""
        return float(np.isinf(self.draws).mean())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the draws; None where a figure is not defined."""
        q = np.array(QUANTILES)
        value, error = self.quantile(q), self.standard_error(q)
        codes = {caveat.code for caveat in self.caveats}
        no_mean = bool(codes & {"infinite", "no-mean"})
        return {
            "n": len(self),
            "replicates": self.replicates,
            "method": self.method,
            "dimensions": self.dimensions,
            "covered": self.covered,
            "seed": self.seed,
            "unit": self.unit,
            "mean": None if no_mean else self.mean,
            "mean_standard_error": None if no_mean else self.mean_standard_error,
            "sd": None if no_mean or "no-sd" in codes else self.sd,
            "quantiles": [
                {"q": float(a), "value": _plain(x), "standard_error": _plain(e)}
                for a, x, e in zip(q, value, error, strict=True)
            ],
            "probability_infinite": self.probability_infinite,
            "precision": _plain(self.precision),
            "reached": self.reached,
            "caveats": [caveat.to_dict() for caveat in self.caveats],
        }


def _like(q: ArrayLike, values: Floats) -> Any:
    return float(values[0]) if np.ndim(q) == 0 else values.reshape(np.shape(q))


def _plain(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None


def caveats_of(
    terms: Terms, values: Floats, precision: float | None, got: float
) -> tuple[Caveat, ...]:
    """Return what a reader of these values must know."""
    out = []
    infinite = float(np.isinf(values).mean())
    if infinite > 0:
        message = (
            f"{format_fraction(infinite)} of the draws are infinite: saturated, or beyond the "
            "largest number"
        )
        out.append(Caveat("infinite", message, {"share": infinite}))
    df = {"df": terms.df}
    if math.isfinite(terms.df) and terms.spread.any():
        tails = f"errors with Student t tails of {format_number(terms.df)} degrees of freedom"
        if terms.kind == "log-ratio" or terms.df <= 1:
            out.append(Caveat("no-mean", f"{tails} have no mean on this scale", df))
        elif terms.df <= 2:
            out.append(Caveat("no-sd", f"{tails} have no standard deviation", df))
    if precision is not None and got > precision:
        message = (
            f"the precision of {precision:.3g} was not reached with {values.size:,} draws; it is "
            f"{got:.3g}"
        )
        out.append(Caveat("precision", message, {"wanted": precision, "reached": got}))
    return tuple(out)
