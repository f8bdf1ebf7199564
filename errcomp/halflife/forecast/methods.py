"""Forecasts of a group on a clock, by each method that can answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife.drift import Fit, has_rare_steps, law_bounds, misfits
from errcomp.halflife.drift.variogram import FEWEST_DF, too_few
from errcomp.halflife.estimators.expiry import Expiry, of_views
from errcomp.halflife.estimators.survival import ONE_CLUSTER
from errcomp.halflife.estimators.turnbull import turnbull
from errcomp.halflife.forecast.compound_poisson import all_or_none, normal_within, within_steps
from errcomp.halflife.forecast.probabilities import (
    STEPS_ASSUMED,
    Forecast,
    forecast_steps,
    forecast_survival,
)
from errcomp.halflife.panel import Clock, Panel
from errcomp.halflife.steps import Steps
from errcomp.halflife.steps.rates import Rates, why_no_rates

Floats = NDArray[np.float64]


#: Draws behind the bounds where clusters share steps.
_DRAWS = 200
#: Grid points from 0 to the promise, for the probability and for draws of it.
_FINE = 256
_COARSE = 32
#: Fewest clusters with steps to draw from.
_FEW = 5
_SPREAD = "Assumed: the errors at calibration are normal, and their spread is known."


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """The question about a group: is its error within the limit at these ages?

    Attributes
    ----------
    panel : Panel
    clock : {"releases", "months"}
    limit : float
        The promise, on the log scale.
    spread : float
        Standard deviation of the error at calibration.
    ages : ndarray, shape (h,)
        Times since calibration, increasing, >= 0.
    level : float
    seed : int
    """

    panel: Panel
    clock: Clock
    limit: float
    spread: float
    ages: Floats
    level: float
    seed: int


def by_survival(asked: Question, expiry: Expiry) -> Forecast | str:
    """Forecast from the share of series that stayed within the promise, or say why not."""
    if expiry.n_panel == 1:
        return "a survival curve needs several series, and there is only one."
    if not expiry.n:
        return "no series was clearly within its promise when calibrated."
    clusters = len(np.unique(expiry.cluster))
    if clusters == 1 < expiry.n:
        return ONE_CLUSTER.format(expiry.n)
    early, face, late = of_views(expiry, partial(turnbull, clusters=expiry.cluster))
    end = float(expiry.last_seen.max())
    times = np.unique(np.append(asked.ages[(asked.ages > 0) & (asked.ages < end)], end))
    survival = np.mean(face.survival(times), axis=0)
    low = np.asarray([early.least_surviving(t, asked.level) for t in times])
    high = np.asarray([late.most_surviving(t, asked.level) for t in times])
    # Bounds are pointwise. As a share does not rise, a bound also holds on its safe side in time.
    low = np.minimum(np.minimum.accumulate(low), survival)
    high = np.maximum(np.maximum.accumulate(high[::-1])[::-1], survival)
    forecast = forecast_survival(
        times,
        survival,
        low=low,
        high=high,
        ahead=asked.ages,
        unit=asked.clock,
        level=asked.level,
    )
    assumptions = [
        "Assumed: the model is within its promise when calibrated, and is similar to the models "
        "in the history.",
        "Future releases change errors as past releases did.",
        "Once its error exceeds the promise, a model never counts as valid again.",
    ]
    if left_out := len(expiry.at_start) + len(expiry.too_noisy):
        assumptions.append(
            f"{left_out} of {expiry.n_panel} series are left out, because they were beyond the "
            "promise at their first version or are too noisy."
        )
    if late is not early:
        assumptions.append(
            "The probability refers to the errors as measured, so noise makes the probability too "
            "low. The interval allows for noise."
        )
    return replace(forecast, assumptions=tuple(assumptions))


def by_drift(asked: Question, fit: Fit) -> Forecast | str:
    """Forecast from the drift variogram, with the bounds of its half-life, or say why not."""
    if refused := too_few(fit):
        return refused
    if fit.law is None:
        return f"drift is not above the noise in {fit.steps.releases} releases."
    if has_rare_steps(fit):
        return (
            "drift is dominated by a few large steps. A forecast from normally distributed drift "
            "would be too optimistic at first and too pessimistic later. Use the method 'steps' or "
            "'survival'."
        )
    v, v_low, v_high = _drift(fit, asked)

    probability, low, high = (_within(asked, variance) for variance in (v, v_high, v_low))
    beyond = np.isnan(v)
    return Forecast(
        method="drift",
        unit=asked.clock,
        ahead=asked.ages,
        probability=probability,
        low=np.where(beyond, 0.0, low),
        high=np.where(beyond, np.nanmin(high) if not beyond.all() else 1.0, high),
        level=asked.level,
        assumptions=(
            "Assumed: drift is the sum of many small changes, not of a few steps, so it is "
            "normally distributed.",
            "Drift continues: early and late releases change errors by equal amounts.",
            "A model whose error exceeded the promise but fell below it again counts as within the "
            "promise.",
            *((_SPREAD,) if asked.spread else ()),
            *(() if fit.noise.known else ("Without repeats, noise counts as drift.",)),
        ),
    )


def _within(asked: Question, variance: Floats) -> Floats:
    """Return the probability of being within the limit after drift; NaN if unknown."""
    probability = normal_within(0.0, np.sqrt(asked.spread**2 + variance), asked.limit)
    return np.where(np.isnan(variance), np.nan, probability)


def _drift(fit: Fit, asked: Question) -> tuple[Floats, Floats, Floats]:
    """Return V at the ages with its bounds; NaN beyond the range of the variogram."""
    assert fit.law is not None
    law, ages, time = fit.law, asked.ages, fit.pairs.time
    tail = (1 - asked.level) / 2
    later = np.maximum(ages, 1e-9)
    if misfits(fit, law):
        end, bounds = float(time.max()), fit.bounds(tail)
        rising = np.maximum.accumulate(fit.pairs.v)
        curves = [
            np.interp(later, np.append(0.0, time), np.append(0.0, np.maximum(curve, 0.0)))
            for curve in (rising, *bounds)
        ]
        v, low, high = curves[0], np.minimum(curves[1], curves[0]), np.maximum(*curves[::2])
    else:
        end, v = 2 * float(time.max()), law.at(later)
        low, high, df = law_bounds(law, later, tail, rare_steps=False)
        if not (df[ages <= time.max()] >= FEWEST_DF).any():
            low = np.zeros_like(low)
    if not fit.noise.known:
        low = np.zeros_like(low)
    now = ages == 0
    v, low, high = (np.where(now, 0.0, values) for values in (v, low, high))
    return np.where(ages > end, np.nan, v), low, high


def by_steps(asked: Question, steps: Sequence[Steps], fit: Fit) -> Forecast | str:
    """Forecast from the steps of the history, or say why not."""
    remedy = " Use the method 'drift' or 'survival'."
    if refused := why_no_rates(steps, asked.limit, fit, "promise", remedy):
        return refused
    pooled = Rates.of(asked.panel, asked.clock, steps, asked.limit)
    forecast = _by_clusters(asked, pooled) if pooled.shared else _by_series(asked, pooled)
    # Bounds are drawn on a coarser grid.
    forecast = replace(
        forecast,
        low=np.minimum(forecast.low, forecast.probability),
        high=np.maximum(forecast.high, forecast.probability),
    )
    assumptions = [*forecast.assumptions, *((_SPREAD,) if asked.spread else ())]
    if hidden := len(steps) - len(pooled.series):
        assumptions.append(
            f"{hidden} of {len(steps)} series are left out, because they are too short or too "
            "noisy to detect a step as large as the promised error."
        )
    return replace(forecast, assumptions=tuple(assumptions))


def _by_series(asked: Question, pooled: Rates) -> Forecast:
    return forecast_steps(
        asked.ages,
        sizes=pooled.sizes,
        exposure=float(pooled.spans.sum()),
        threshold=asked.limit,
        spread=asked.spread,
        unit=asked.clock,
        level=asked.level,
        seed=asked.seed,
    )


def _by_clusters(asked: Question, pooled: Rates) -> Forecast:
    """Forecast where series of a cluster step together.

    All changes of a cluster at a release are one event. Bounds are the wider ones of two kinds of
    draws: events with weights and a rate, for their small number, and clusters with weights, for
    their differences.
    """
    k, tail = pooled.n_clusters, (1 - asked.level) / 2
    exposure: Floats = np.bincount(pooled.cluster_of, pooled.spans, k).astype(float)
    whole = np.array([1 / exposure.sum()])
    probability = _by_weights(asked, pooled, np.ones((1, len(pooled.sizes))), whole)[0]
    pairs = np.stack([pooled.cluster, pooled.at], axis=1)
    event = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    n = int(event.max()) + 1 if len(event) else 0
    if n < _FEW or len(np.unique(pooled.cluster)) < _FEW:
        # A step is shared by the whole cluster.
        of_clusters = float((exposure / np.bincount(pooled.cluster_of)).sum())
        low, high = all_or_none(
            asked.ages, float(_within(asked, np.zeros(()))), n, of_clusters, tail
        )
    else:
        rng = np.random.default_rng(asked.seed)
        events = rng.dirichlet(np.ones(n), size=_DRAWS) * rng.gamma(n + 0.5, size=(_DRAWS, 1))
        clusters = rng.dirichlet(np.ones(k), size=_DRAWS)
        draws = (
            (events[:, event], np.full(_DRAWS, whole[0])),
            (clusters[:, pooled.cluster], 1 / (clusters @ exposure)),
        )
        within = [
            np.quantile(
                _by_weights(asked, pooled, weights, per_time, _COARSE), [tail, 1 - tail], axis=0
            )
            for weights, per_time in draws
        ]
        low, high = np.minimum(*(q[0] for q in within)), np.maximum(*(q[1] for q in within))
    return Forecast(
        method="steps",
        unit=asked.clock,
        ahead=asked.ages,
        probability=probability,
        low=low,
        high=high,
        level=asked.level,
        assumptions=STEPS_ASSUMED,
    )


def _by_weights(
    asked: Question, pooled: Rates, weights: Floats, per_time: Floats, fine: int = _FINE
) -> Floats:
    """Return the probability of being within; each row of weights is a distribution of steps."""
    total = weights.sum(axis=1, keepdims=True)
    return within_steps(
        asked.ages,
        total[:, 0] * per_time,
        np.divide(weights, total, out=np.zeros_like(weights), where=total > 0),
        pooled.sizes,
        asked.limit,
        error=0.0,
        spread=asked.spread,
        fine=fine,
    )
