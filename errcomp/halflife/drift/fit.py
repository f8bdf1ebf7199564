"""A variogram with its law and the covariance of its errors: what the half-life is read off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from errcomp.halflife.drift.law import Design, Law, fit_law, has_drift, sampling_covariance
from errcomp.halflife.drift.moments import chi_square_bounds, sampling_df
from errcomp.halflife.drift.pairs import Noise, Pairs, Steps, noise_of, pairs_of, steps_of
from errcomp.halflife.panel_checks import check_clock, check_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.halflife.panel import Clock, Panel

    Floats = NDArray[np.float64]

__all__ = ["Fit", "counts", "fit_variogram", "misfits"]

#: Drift must stand out of the noise by this many standard errors.
_Z_DRIFT = 2.5
#: Rate below which the law is taken to misfit the curve although it holds.
_MISFIT = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Pairs and steps of a panel, which classes of lags the law is fitted to, and the law.

    The law is None where no drift stands out of the noise.
    """

    panel: Panel
    noise: Noise
    pairs: Pairs
    steps: Steps
    design: Design
    fitted: NDArray[np.bool_]
    law: Law | None

    def bounds(self, tail: float) -> tuple[Floats, Floats]:
        """Return pointwise bounds of V, never below 0."""
        p, per = self.pairs, float((self.pairs.time / self.pairs.lag).mean())
        scale, beta = (
            (self.law.scale * per**self.law.beta, self.law.beta) if self.law else (0.0, 1.0)
        )
        variance = np.diag(sampling_covariance(self.design, scale, beta))
        expected = p.noise + (self.law.at(p.time) if self.law else 0.0)
        relative = np.divide(variance, expected**2, out=np.zeros_like(variance), where=expected > 0)
        low, high = chi_square_bounds(np.maximum(p.v + p.noise, 0.0), sampling_df(relative), tail)
        return np.maximum(low - p.noise, 0.0), np.maximum(high - p.noise, 0.0)


def fit_variogram(panel: Panel, clock: Clock) -> Fit:
    """Sum pairs and steps, and fit the law where there is drift."""
    check_clock(panel, clock)
    check_steps(panel)
    clusters = np.unique(panel.clusters, return_inverse=True)[1]
    panel = replace(panel, clusters=clusters)
    noise = noise_of(panel)
    pairs, steps = pairs_of(panel, clock, noise), steps_of(panel, noise)
    design = Design(
        lag=pairs.lag,
        time=pairs.time,
        pairs=pairs.in_series,
        pairs_common=pairs.in_all,
        clusters=pairs.clusters,
        common=steps.common,
        noise=float(pairs.noise.mean()) / 2,
        noise_df=noise.df,
        kurtosis=steps.kurtosis,
        between=steps.between,
    )
    # Pairs at more than half of the longest lag overlap nearly all: they add next to nothing.
    longest = float((pairs.in_all + pairs.lag).max()) - 1
    fitted = (pairs.lag <= max(3.0, longest / 2)) & (pairs.time > 0)
    chosen = design.at(fitted)
    law = None
    if fitted.sum() > 1 and has_drift(chosen, pairs.v[fitted], _Z_DRIFT):
        law = fit_law(chosen, pairs.v[fitted])
    return Fit(panel, noise, pairs, steps, design, fitted, law)


def counts(fit: Fit) -> bool:
    """Whether few large steps are among many small ones: V then is in effect a count."""
    common, own = fit.steps.kurtosis
    rho = fit.steps.common**2
    return rho * common + (1 - rho) * own > 3.0


def misfits(fit: Fit, law: Law) -> bool:
    """Whether the law lies outside of the bounds of the curve that it was fitted to."""
    use = fit.fitted
    low, high = fit.bounds(_MISFIT / 2 / use.sum())
    expected = law.at(fit.pairs.time)
    return bool(((expected < low) | (expected > high))[use].any())
