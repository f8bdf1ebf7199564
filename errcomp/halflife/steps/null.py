"""How often chance alone gives as much evidence for a step: a table made by simulation.

The table holds upper quantiles of the evidence in series of normal noise without a step, by number
of values and by the share of all degrees of freedom of the noise that the series itself has. It
does not depend on mean or variance. ``benchmarks/step_rates.py`` makes it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["critical_evidence", "p_values", "segments_tabulated"]

Floats = NDArray[Any]


class _Table(NamedTuple):
    lengths: Floats
    shares: Floats
    minus_log_tails: Floats
    quantiles: dict[int, Floats]


@cache
def _table() -> _Table:
    text = resources.files("errcomp.halflife").joinpath("step_null.json").read_text("utf-8")
    raw = json.loads(text)
    return _Table(
        np.array(raw["lengths"], dtype=float),
        np.array(raw["shares"]),
        -np.log(raw["tails"]),
        {int(m): np.array(rows) for m, rows in raw["quantiles"].items()},
    )


def segments_tabulated() -> tuple[int, ...]:
    """Return the minimum lengths of a segment that there are critical values for."""
    return tuple(sorted(_table().quantiles))


@cache
def _of_length(n: int, min_segment: int) -> Floats:
    """Quantiles at one length, shape (shares, tails): linear in log n between those simulated."""
    table = _table()
    rows = table.quantiles[min_segment]
    log_lengths = np.log(table.lengths[-len(rows) :])
    right = int(np.clip(np.searchsorted(log_lengths, np.log(n)), 1, len(rows) - 1))
    step = log_lengths[right] - log_lengths[right - 1]
    at = (np.log(n) - log_lengths[right - 1]) / step
    return np.asarray((1 - at) * rows[right - 1] + at * rows[right])


def _quantiles(n: int, share: Floats, min_segment: int) -> Floats:
    shares = _table().shares
    rows = _of_length(n, min_segment)
    right = np.clip(np.searchsorted(shares, share), 1, len(shares) - 1)
    at = ((share - shares[right - 1]) / (shares[right] - shares[right - 1]))[:, None]
    return np.asarray((1 - at) * rows[right - 1] + at * rows[right])


def p_values(evidence: Floats, n: int, share: Floats, min_segment: int) -> Floats:
    """Return the probability of as much evidence without a step.

    Parameters
    ----------
    evidence : ndarray, shape (r,)
        The largest -ln p of one contrast, intervals with their handicap.
    n : int
        Values in each series.
    share : ndarray, shape (r,)
        (n - 2) over all degrees of freedom: 1 where the noise is unknown, 0 where it is exact.
    min_segment : int

    Returns
    -------
    ndarray, shape (r,)
    """
    zero = np.zeros((len(evidence), 1))
    known = np.concatenate([zero, _quantiles(n, share, min_segment)], axis=1)
    logs = np.concatenate([[0.0], _table().minus_log_tails])
    right = np.clip((known < evidence[:, None]).sum(axis=1), 1, len(logs) - 1)
    rows = np.arange(len(evidence))
    low, high = known[rows, right - 1], known[rows, right]
    inside = logs[right - 1] + (logs[right] - logs[right - 1]) * (evidence - low) / (high - low)
    # Beyond the table p falls as that of one contrast does.
    beyond = logs[-1] + evidence - known[:, -1]
    return np.asarray(np.exp(-np.where(evidence > known[:, -1], beyond, np.maximum(inside, 0.0))))


def critical_evidence(n: int, share: float, min_segment: int, alpha: float) -> float:
    """Return the evidence that chance exceeds with probability alpha."""
    known = _quantiles(n, np.array([share]), min_segment)[0]
    logs, wanted = _table().minus_log_tails, -np.log(alpha)
    if wanted > logs[-1]:
        return float(known[-1] + wanted - logs[-1])
    return float(np.interp(wanted, [0.0, *logs], [0.0, *known]))
