"""What chance gives: the evidence for a step in series without one, from a simulated table.

The table has upper quantiles of the evidence in series of normal noise without a step, by number of
values, by the share of the noise's degrees of freedom that comes from the series itself, and by the
autocorrelation of neighbours. It does not depend on mean or variance. It also has the mean and the
standard deviation of the autocorrelation that a first search leaves in a series, by the true one.
``benchmarks/step_rates.py`` makes it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]
Ints = NDArray[Any]

# Halvings of this range give a critical value to 0.01.
_LARGEST, _HALVINGS = 700.0, 16


class _Table(NamedTuple):
    lengths: Floats
    shares: Floats
    minus_log_tails: Floats
    autocorrelations: tuple[float, ...]
    quantiles: dict[int, Floats]
    neighbours: Floats


@cache
def _table() -> _Table:
    text = resources.files("errcomp.halflife").joinpath("step_null.json").read_text("utf-8")
    raw = json.loads(text)
    return _Table(
        np.array(raw["lengths"], dtype=float),
        np.array(raw["shares"]),
        -np.log(raw["tails"]),
        tuple(raw["autocorrelations"]),
        {int(m): np.array(rows) for m, rows in raw["quantiles"].items()},
        np.array(raw["neighbours"]),
    )


def segments_tabulated() -> tuple[int, ...]:
    """Return the minimum lengths of a segment with critical values."""
    return tuple(sorted(_table().quantiles))


@cache
def autocorrelations() -> Floats:
    """Return the autocorrelations that are distinguished, in steps of 0.05; the first is 0."""
    return np.arange(0.0, _table().autocorrelations[-1] + 0.01, 0.05)


@cache
def _shares() -> Floats:
    """Return the shares of the tabulated autocorrelations in each, shape (tabulated, g)."""
    known = _table().autocorrelations
    return np.array([np.interp(autocorrelations(), known, one) for one in np.eye(len(known))])


def independent(series: int) -> Floats:
    """Return the probability of each autocorrelation where all neighbours are independent."""
    return np.tile(np.eye(1, len(autocorrelations())), (series, 1))


def moments_of_neighbours(sizes: Ints) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of r (see ``laws.residuals``), both of shape (s, g)."""
    table = _table()
    at = np.log(np.clip(sizes, table.lengths[0], table.lengths[-1]))
    # One column for each moment and autocorrelation.
    columns = table.neighbours.reshape(len(table.lengths), -1).T
    found = np.array([np.interp(at, np.log(table.lengths), column) for column in columns])
    mean, sd = found.reshape(2, -1, len(sizes))
    return np.asarray(mean.T), np.asarray(sd.T)


@cache
def _of_length(n: int, min_segment: int) -> Floats:
    """Return the quantiles at one length, shape (autocorrelations, shares, tails).

    They are interpolated linearly in log n.
    """
    table = _table()
    rows = table.quantiles[min_segment]
    log_lengths = np.log(table.lengths[-len(rows) :])
    right = int(np.clip(np.searchsorted(log_lengths, np.log(n)), 1, len(rows) - 1))
    step = log_lengths[right] - log_lengths[right - 1]
    at = (np.log(n) - log_lengths[right - 1]) / step
    return np.asarray((1 - at) * rows[right - 1] + at * rows[right])


def p_values(
    evidence: Floats, n: int, share: Floats, min_segment: int, correlated: Floats
) -> Floats:
    """Return the probability of as much evidence without a step.

    Parameters
    ----------
    evidence : ndarray, shape (r,)
        The largest -ln p of one contrast, with the penalty of intervals.
    n : int
        Values in each series.
    share : ndarray, shape (r,)
        (n - 2) over all degrees of freedom: 1 if the noise is unknown, 0 if it is exact.
    min_segment : int
    correlated : ndarray, shape (r, g)
        Probability of each of the `autocorrelations`.

    Returns
    -------
    ndarray, shape (r,)
    """
    return _Chance(n, share, min_segment, correlated).p_values(evidence)


class _Chance:
    """What chance gives in some series; interpolated once for many amounts of evidence."""

    def __init__(self, n: int, share: Floats, min_segment: int, correlated: Floats) -> None:
        chances = np.flatnonzero((correlated > 0).any(axis=0))
        shares = _shares()[:, chances]
        used = (shares > 0).any(axis=1)
        self._correlated, self._shares = correlated[:, chances], shares[used]
        # Shape (tabulated autocorrelations, r, tails).
        self._known = _of_shares(_of_length(n, min_segment)[used], share)
        self._logs = np.concatenate([[0.0], _table().minus_log_tails])

    def p_values(self, evidence: Floats) -> Floats:
        # Between two tabulated autocorrelations ln p is linear.
        log = self._minus_log_p(evidence)
        return np.asarray((self._correlated * np.exp(-log.T @ self._shares)).sum(axis=1))

    def _minus_log_p(self, evidence: Floats) -> Floats:
        """Return -ln p under each tabulated autocorrelation, shape (tabulated, r)."""
        known, logs = self._known, self._logs
        right = np.clip((known < evidence[:, None]).sum(axis=2), 1, len(logs) - 1)
        places = np.arange(right.size) * len(logs) + right.ravel()
        low, high = (known.ravel()[at].reshape(right.shape) for at in (places - 1, places))
        inside = logs[right - 1] + (logs[right] - logs[right - 1]) * (evidence - low) / (high - low)
        # Beyond the table p falls like that of one contrast.
        last = known[:, :, -1]
        beyond = logs[-1] + evidence - last
        return np.asarray(np.where(evidence > last, beyond, np.maximum(inside, 0.0)))


def _of_shares(quantiles: Floats, share: Floats) -> Floats:
    """Return the quantiles at the share of each series, from 0, shape (a, r, tails).

    ``quantiles`` have shape (a, shares, tails).
    """
    shares = _table().shares
    right = np.clip(np.searchsorted(shares, share), 1, len(shares) - 1)
    at = ((share - shares[right - 1]) / (shares[right] - shares[right - 1]))[:, None]
    rows = (1 - at) * quantiles[:, right - 1] + at * quantiles[:, right]
    return np.concatenate([np.zeros((*rows.shape[:2], 1)), rows], axis=2)


def critical_evidence(
    n: int, share: Floats, min_segment: int, alpha: float, correlated: Floats
) -> Floats:
    """Return the evidence that chance exceeds with probability alpha, for each series."""
    chance = _Chance(n, share, min_segment, correlated)
    low, high = np.zeros(len(share)), np.full(len(share), _LARGEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = chance.p_values(middle) > alpha
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray((low + high) / 2)
