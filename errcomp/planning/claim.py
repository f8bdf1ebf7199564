r"""How many pairs support a figure such as "MAPE < 5 %".

The figure is supported where the interval of the MAPE lies below it. With true error e, and with
the interval of `errcomp.metrics.intervals.estimate`, that happens with the probability (power)

.. math:: P(\widehat{\mathrm{MAPE}} \; e^{u} < E)

where u is the upper deviation of the interval. It is simulated: pairs (whole clusters, where a
pilot has them) are drawn, and the interval is computed for each draw. Close to the limit E many
pairs are needed; at the limit no number is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from errcomp.codec import Count, Coverage, Document
from errcomp.datasets.inputs import pairs_in_memory
from errcomp.errors import InputError
from errcomp.metrics import ape
from errcomp.metrics.intervals._smooth import upper
from errcomp.metrics.intervals.dependence import cluster_keys
from errcomp.metrics.intervals.direct import check_level
from errcomp.report.shown import Shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.report.model import Report
    from errcomp.tables import Pairs

    Floats = NDArray[np.float64]

__all__ = ["ClaimNeed", "ClaimPlan", "plan_claim"]

#: True errors of the table, as shares of the limit.
SHARES = (0.4, 0.6, 0.8, 0.9)
#: Standard deviation of the absolute relative errors over their mean, without a pilot: errors that
#: are exponentially distributed have 1, and normal ones without bias 0.76.
SPREAD = 1.0
_DRAWS = 2000
#: Values in memory at a time.
_VALUES = 4_000_000
_FEWEST, _MOST = 5, 100_000
_FEWEST_CLUSTERS = 5


@dataclass(frozen=True, slots=True)
class ClaimNeed(Document):
    """What one true error needs.

    Attributes
    ----------
    error : float
        True MAPE.
    pairs : int or None
        Smallest number of pairs with the power; None where more than 100,000 would be needed.
    clusters : int or None
        The same in clusters of the pilot; None without clusters.
    power : float or None
        What that number reaches, simulated.
    """

    error: float
    pairs: Count | None
    clusters: Count | None
    power: float | None


@dataclass(frozen=True, slots=True)
class ClaimPlan(Shown, Document):
    """How many pairs support a figure.

    Attributes
    ----------
    limit : float
        The figure: the interval of the MAPE should lie below it.
    power : float
        Probability with which it should.
    level : float
        Of the interval.
    spread : float
        Standard deviation of the absolute relative errors over their mean.
    pilot_pairs : int or None
        Pairs of the pilot; None where the spread was assumed.
    cluster : str
        Key of the pilot's clusters; empty where pairs are independent.
    pilot_clusters : int or None
    rows : tuple of ClaimNeed
        By true error, ascending.
    seed : int

    Examples
    --------
    >>> plan_claim(0.05, expected=[0.03])
    ClaimPlan(< 5 %, 80 % power, 62 pairs at 3 %)
    """

    SCHEMA: ClassVar = "errcomp.plan-claim/1"
    COMMAND: ClassVar = "plan claim"
    KEYS: ClassVar = (
        "limit",
        "power",
        "level",
        "spread",
        "pilot_pairs",
        "cluster",
        "pilot_clusters",
        "seed",
        "rows",
    )

    limit: float
    power: float
    level: Coverage
    spread: float
    pilot_pairs: Count | None
    cluster: str
    pilot_clusters: Count | None
    rows: tuple[ClaimNeed, ...]
    seed: int

    def view(self) -> Report:
        """Return the report: a row for each true error.

        Examples
        --------
        >>> plan_claim(0.05, expected=[0.03]).view().title
        'Pairs that support an error below 5 %'
        """
        from errcomp.planning.view import claim_view

        return claim_view(self)


#: For a number of units, the mean errors of draws, over the true mean, and their upper deviations.
Draw = Callable[[int, np.random.Generator, float], tuple["Floats", "Floats"]]


def plan_claim(
    limit: float,
    *,
    power: float = 0.8,
    expected: Sequence[float] | None = None,
    pilot: Any = None,
    tool: str | None = None,
    cluster: str | None = None,
    spread: float = SPREAD,
    level: float = 0.95,
    seed: int = 0,
) -> ClaimPlan:
    """Return how many pairs support the figure "MAPE below ``limit``", by the true error.

    Parameters
    ----------
    limit : float
        A fraction: 0.05 for "< 5 %".
    power : float
        Probability with which the interval should lie below the limit, in (0.5, 1).
    expected : sequence of float, optional
        True errors; by default shares of the limit, and the pilot's own MAPE.
    pilot : Pairs, dataframe, path or name of a built-in table, optional
        Pairs that were measured already. The spread of their errors is used, not their mean.
    tool : str, optional
        Tool of the pilot, if it has several; by default the one that the table is about.
    cluster : str, optional
        Key of the pilot whose values are independent, e.g. ``"model"``; ``"none"`` for independent
        pairs. By default the model or the device, whichever has fewer values.
    spread : float
        Without a pilot: standard deviation of the absolute relative errors over their mean.
    level : float
        Of the interval.
    seed : int

    Returns
    -------
    ClaimPlan

    Raises
    ------
    InputError
        A number is out of range, or the pilot has fewer than 5 pairs or clusters.

    Notes
    -----
    Without a pilot, errors are taken to be gamma-distributed with this spread. Heavier tails need
    more pairs. A pilot shows only the tails that it contains.

    Examples
    --------
    An error of 3 % needs 62 pairs to be shown below 5 %, one of 4.5 % needs many more:

    >>> [row.pairs for row in plan_claim(0.05, expected=[0.03, 0.045]).rows]
    [62, 981]
    """
    if not 0 < limit < np.inf:
        raise InputError(f"limit must be above 0, got {limit!r}. Give a fraction: 0.05 for 5 %.")
    if not 0.5 < power < 1:
        raise InputError(f"power must be between 0.5 and 1, got {power!r}.")
    check_level(level)
    if not 0 < spread < np.inf:
        raise InputError(f"spread must be above 0, got {spread!r}.")
    key, clusters, size = "", None, 1.0
    pairs, own = None, list[float]()
    if pilot is None:
        draw = _gamma(spread)
    else:
        key, groups = _pilot(pairs_in_memory(pilot).of_tool(tool), cluster)
        every = np.concatenate(groups)
        pairs, spread = len(every), float(every.std(ddof=1) / every.mean())
        clusters, size = (len(groups), pairs / len(groups)) if key else (None, 1.0)
        own = [float(every.mean())]
        draw = _resampled(groups, bool(key))
    errors = [*(share * limit for share in SHARES), *own] if expected is None else [*expected]
    for error in errors:
        if not 0 < error < np.inf:
            raise InputError(f"expected errors must be above 0, got {error!r}.")
    rows = []
    for error in sorted(set(errors)):
        units, reached = _needed(draw, limit / error, power, level, spread, seed)
        counted = None if units is None else round(units * size)
        rows.append(ClaimNeed(error, counted, units if key else None, reached))
    return ClaimPlan(limit, power, level, spread, pairs, key, clusters, tuple(rows), seed)


def _pilot(pairs: Pairs, cluster: str | None) -> tuple[str, list[Floats]]:
    """Return the key of the clusters, and the absolute relative errors of each."""
    found = np.asarray(ape(predicted=pairs.predicted, measured=pairs.measured), dtype=np.float64)
    if not found.any():
        raise InputError("every prediction of the pilot is exact, so its errors have no spread.")
    keys = cluster_keys(cluster, pairs.keys)
    by = {key: np.unique(pairs.column(key).astype(str), return_inverse=True)[1] for key in keys}
    by = {key: codes for key, codes in by.items() if codes.max() > 0}
    if not by:
        if len(found) < _FEWEST:
            raise InputError(f"a pilot needs at least {_FEWEST} pairs, got {len(found)}.")
        return "", [np.array([error]) for error in found]
    key = min(by, key=lambda name: int(by[name].max()))
    groups = [found[by[key] == code] for code in range(int(by[key].max()) + 1)]
    if len(groups) < _FEWEST_CLUSTERS:
        raise InputError(
            f"a pilot needs at least {_FEWEST_CLUSTERS} clusters to show how much they differ, "
            f"but column {key!r} has only {len(groups)} values. Choose another key with --cluster "
            "(cluster=), or give --cluster none if all pairs are independent."
        )
    return key, groups


def _gamma(spread: float) -> Draw:
    """Draw independent errors of a gamma law with mean 1."""
    shape = 1 / spread**2

    def draw(n: int, rng: np.random.Generator, level: float) -> tuple[Floats, Floats]:
        errors = rng.gamma(shape, 1 / shape, size=(_rows(n), n))
        return _of_pairs(errors.sum(axis=1), (errors**2).sum(axis=1), n, level)

    return draw


def _rows(n: int) -> int:
    """Return the number of draws whose values fit in memory."""
    return int(np.clip(_VALUES // n, 100, _DRAWS))


def _of_pairs(total: Floats, squares: Floats, n: int, level: float) -> tuple[Floats, Floats]:
    scatter = np.maximum(squares / total**2 - 1 / n, 0.0)
    s = np.sqrt(scatter * n / (n - 1))
    return total / n, upper(s, np.full_like(s, n - 1), level, True, False)[1]


def _resampled(groups: Sequence[Floats], clustered: bool) -> Draw:
    """Draw clusters (or pairs) of a pilot with replacement; errors are scaled to mean 1."""
    mean = np.concatenate(groups).mean()
    n, sums, squares = (
        np.array([float(f(group / mean)) for group in groups])
        for f in (len, np.sum, lambda errors: np.sum(errors**2))
    )

    def draw(units: int, rng: np.random.Generator, level: float) -> tuple[Floats, Floats]:
        at = rng.integers(0, len(groups), size=(_rows(units), units))
        total, size = sums[at].sum(axis=1), n[at].sum(axis=1)
        single = _of_pairs_of(total, squares[at].sum(axis=1), size, level)
        if not clustered:
            return total / size, single
        share = n[at] / size[:, None]
        left = sums[at] / total[:, None] - share
        s = np.sqrt((left**2 / (1 - share)).sum(axis=1))
        weight = 1 / (1 - share)
        p = (weight * share**2).sum(axis=1)
        # Bell and McCaffrey's degrees of freedom where all pairs weigh the same.
        freedom = 1 / ((weight**2 * (share**2 - 2 * share**3)).sum(axis=1) + p * p)
        return total / size, np.maximum(single, upper(s, freedom, level, True, True)[1])

    return draw


def _of_pairs_of(total: Floats, squares: Floats, size: Floats, level: float) -> Floats:
    scatter = np.maximum(squares / total**2 - 1 / size, 0.0)
    s = np.sqrt(scatter * size / (size - 1))
    deviation: Floats = upper(s, size - 1, level, True, False)[1]
    return deviation


def power_of(draw: Draw, ratio: float, units: int, level: float, seed: int) -> float:
    """Return the probability that the interval lies below the limit.

    Parameters
    ----------
    ratio : float
        The limit over the true error.
    """
    mean, deviation = draw(units, np.random.default_rng([seed, units]), level)
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.mean(np.log(np.maximum(mean, 1e-300)) + deviation < np.log(ratio)))


def _needed(
    draw: Draw, ratio: float, power: float, level: float, spread: float, seed: int
) -> tuple[int | None, float | None]:
    """Return the smallest number of units with the power, and the power that it reaches."""
    if ratio <= 1:
        return None, None

    @cache  # the search comes back to numbers that it has tried
    def reached(units: int) -> float:
        return power_of(draw, ratio, units, level, seed)

    def lacking(log_n: float) -> float:
        share = reached(round(np.exp(log_n)))
        return float(ndtri(np.clip(share, 0.001, 0.999)) - ndtri(power))

    low = np.log(_FEWEST)
    if lacking(low) >= 0:
        return _FEWEST, reached(_FEWEST)
    # The size by the normal approximation; skewness needs more.
    usual = ((ndtri((1 + level) / 2) + ndtri(power)) * spread / np.log(ratio)) ** 2
    high = np.log(max(usual, _FEWEST + 1))
    while high <= np.log(_MOST) and lacking(high) < 0:
        low, high = high, high + 0.7
    if low > np.log(_MOST) or (high > np.log(_MOST) and lacking(high := np.log(_MOST)) < 0):
        return None, None
    units = int(np.ceil(np.exp(brentq(lacking, low, high, xtol=0.005))))
    return units, reached(units)
