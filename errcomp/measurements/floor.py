r"""The floor of MAPE: the error that a perfect predictor shows against noisy measurements.

Of a measurement :math:`m = \mu e^{\varepsilon}`, a predictor of :math:`\mu` has the absolute
percentage error :math:`|e^{-\varepsilon} - 1|`. Repeats show :math:`\varepsilon - \varepsilon'`
only, so :math:`E|\varepsilon|` is their mean absolute difference times a ratio :math:`c` that
depends on the law: 0.707 for normal noise, whatever its scale in each group; 0.667 for Laplace
and t3; about 0.69 for exponential noise around its median.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from errcomp.measurements.noise import MOST_LOG, Repeats

__all__ = [
    "LEVEL",
    "NORMAL",
    "FloorFigure",
    "NoiseLaw",
    "absolute_to_mape",
    "floor_of_repeats",
    "law_of_noise",
    "sd_of_floor",
]

Floats = NDArray[np.float64]

LEVEL = 0.95
#: c of normal noise, whatever its scale in each group.
_NORMAL = math.sqrt(0.5)
#: E|e| of normal noise of variance 1.
_ABSOLUTE = math.sqrt(2 / math.pi)
#: Scales of the components of noise, relative to the usual one, and their shares to begin with.
_SCALES = 2.0 ** np.arange(-1.0, 4.0)
_FIRST = np.array([0.1, 0.6, 0.1, 0.1, 0.1])
_VARIANCES = _SCALES[:, None] ** 2 + _SCALES[None, :] ** 2
#: Median of |e - e'| for normal noise of variance 1.
_MEDIAN = 0.9539
#: Noise beyond this is not distinguished: its floor is above 10^80.
_MOST_SD = 20.0
#: Differences that the fit of the components sees: more change nothing.
_MOST = 600
_STEPS = 150
#: Blocks of groups that are left out in turn; groups from which each block gets its own c.
_BLOCKS, _OWN = 25, 40
#: Fewest groups for an interval, and for a look at the law of the noise.
_LEAST, _LAW = 5, 20
#: E(e|e|) over the mean difference of the squared upper and lower gaps of three repeats: 0.60 to
#: 0.63 for gamma and log-normal noise. Gaps beyond ten medians count as these.
_SIDED, _OUTLIER = 0.62, 10.0
#: Half of a law is not narrower than a fifth of what it would be.
_MOST_SKEW = 0.8
#: Standard error of the skew where nothing shows it: gamma noise of shape 3 has 0.29.
_UNKNOWN_SKEW = 0.15
#: Skewness of three repeats from which c is nearly that of normal noise, and how nearly.
_SKEWED, _NEARLY = 0.1, 0.85


@dataclass(frozen=True, slots=True)
class FloorFigure:
    """A floor and its 95 % interval.

    Attributes
    ----------
    mape, low, high : float
        Fractions; the bounds are NaN where there are fewer than five groups.
    """

    mape: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class NoiseLaw:
    """The shape of noise: a mixture of normal laws of several scales, with wider upper halves.

    Attributes
    ----------
    scale : ndarray
        Standard deviations, relative to that of normal noise with the same mean absolute value.
    share : ndarray
        They add up to 1.
    skew : float
        The upper half is wider by this share, and the lower half narrower.
    doubt : float
        Standard error of the skew.
    """

    scale: Floats
    share: Floats
    skew: float
    doubt: float

    def skewed(self, by: float) -> NoiseLaw:
        """Return the law with more skew."""
        return replace(self, skew=min(max(self.skew + by, -_MOST_SKEW), _MOST_SKEW))

    def density(self, e: Floats) -> Floats:
        """Return the density, in units of that normal noise."""
        side = np.where(e > 0, 1 + self.skew, 1 - self.skew)
        power = -0.5 * (e / side) ** 2
        density = np.zeros_like(e)
        for scale, share in zip(self.scale.tolist(), self.share.tolist(), strict=True):
            density += share / scale * np.exp(power / scale**2)
        return density / (side * math.sqrt(2 * math.pi))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw noise, in units of that normal noise."""
        e = rng.choice(self.scale, n, p=self.share / self.share.sum()) * rng.normal(size=n)
        return np.asarray(e * np.where(e > 0, 1 + self.skew, 1 - self.skew))


#: Normal noise.
NORMAL = NoiseLaw(np.ones(1), np.ones(1), 0.0, 0.0)


def floor_of_repeats(repeats: Repeats, weight: Floats | None = None) -> FloorFigure:
    """Return the floor of MAPE from repeats, and its 95 % interval.

    The interval is that of the logarithm, from a jackknife over blocks of groups. Its t quantile
    is between those of the number of blocks and of the number of blocks that decide the variance.
    Where fewer than 20 groups have four repeats, the ratio c is halfway between that of a common
    law with heavy tails and that of groups with normal noise of different scale, and the interval
    counts the doubt.

    Parameters
    ----------
    repeats : Repeats
    weight : ndarray, shape (groups,), optional
        Rows that each group stands for; by default its own.

    Examples
    --------
    >>> from errcomp.measurements.noise import repeats_of
    >>> rng = np.random.default_rng(1)
    >>> group = np.repeat(np.arange(100), 3)
    >>> found = floor_of_repeats(repeats_of(group, 0.05 * rng.normal(size=300), group >= 0))
    >>> round(found.mape, 3), round(found.low, 3), round(found.high, 3)
    (0.038, 0.034, 0.044)
    """
    from scipy.special import stdtrit

    weight = repeats.count.astype(float) if weight is None else weight
    ratio, doubt = _ratio(repeats)
    everything = np.ones(repeats.n, dtype=bool)
    log = _log(repeats, weight, everything, ratio)
    if repeats.n < _LEAST or not math.isfinite(log):
        return FloorFigure(math.exp(log), math.nan, math.nan)
    blocks = min(_BLOCKS, repeats.n)
    block = np.arange(repeats.n) * blocks // repeats.n
    block = block[np.random.default_rng(0).permutation(repeats.n)]
    left = []
    for i in range(blocks):
        kept = block != i
        own = _ratio(repeats.take(kept))[0] if repeats.n >= _OWN else ratio
        left.append(_log(repeats, weight, kept, own))
    if not np.isfinite(left).all():
        # Without one block, nothing differs: that block alone is the noise.
        return FloorFigure(math.exp(log), math.nan, math.nan)
    pseudo = blocks * log - (blocks - 1) * np.asarray(left)
    spread = pseudo - pseudo.mean()
    error = math.sqrt(pseudo.var(ddof=1) / blocks + doubt**2)
    power = float((spread**4).sum())
    decide = float((spread**2).sum()) ** 2 / power if power > 0 else blocks
    quantiles = stdtrit([blocks - 1, max(decide - 1, 2)], (1 + LEVEL) / 2)
    half = float(np.mean(quantiles)) * error
    ends = (math.exp(min(log + shift, MOST_LOG)) for shift in (0.0, -half, half))
    return FloorFigure(*ends)


def _log(repeats: Repeats, weight: Floats, kept: NDArray[np.bool_], ratio: float) -> float:
    r"""Return the logarithm of the floor.

    :math:`E|e|` is the weighted mean of the differences of groups, times c. To second order, the
    floor is :math:`E \sinh|e| - E(e|e|) / 2`, whose last term is 0 for symmetric noise.
    """
    mean = np.average(repeats.difference[kept], weights=weight[kept])
    if mean <= 0:
        return -math.inf
    symmetric = absolute_to_mape(float(mean) * ratio)
    side = _one_sided(repeats.take(kept))
    return math.log(max(symmetric - (side.mean() / 2 if len(side) >= _LAW else 0), symmetric / 2))


def _one_sided(repeats: Repeats) -> Floats:
    """Return e|e| of noise around its median, its mean for each group with three repeats."""
    start = repeats.start[repeats.count >= 3]
    if not len(start):
        return np.empty(0)
    x = np.sort(repeats.logs[start[:, None] + np.arange(3)], axis=1)
    lower, upper = x[:, 1] - x[:, 0], x[:, 2] - x[:, 1]
    limit = _OUTLIER * float(np.median(np.r_[lower, upper]))
    return np.asarray(_SIDED * (np.minimum(upper, limit) ** 2 - np.minimum(lower, limit) ** 2))


def absolute_to_mape(absolute: float) -> float:
    r"""Return :math:`E|e^{-e} - 1| = E \sinh|e|` of symmetric noise, as for normal noise."""
    from scipy.special import ndtr

    sd = min(absolute / _ABSOLUTE, _MOST_SD)
    return float(math.exp(sd**2 / 2) * (2 * ndtr(sd) - 1))


def sd_of_floor(mape: float) -> float:
    """Return the standard deviation of normal noise (of logarithms) with this floor.

    Examples
    --------
    >>> round(sd_of_floor(absolute_to_mape(0.04)), 4), round(0.04 / _ABSOLUTE, 4)
    (0.0501, 0.0501)
    """
    low, high = 0.0, _MOST_SD
    for _ in range(80):
        middle = (low + high) / 2
        if absolute_to_mape(middle * _ABSOLUTE) < mape:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def law_of_noise(repeats: Repeats) -> NoiseLaw:
    """Return the shape of the noise of one row: where tails are heavy, more scales than one.

    Where four repeats do not say whether the groups have one law or different scales, it is halfway
    between both.

    Examples
    --------
    >>> from errcomp.measurements.noise import repeats_of
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(np.arange(200), 4)
    >>> for noise in rng.normal(size=800), rng.standard_t(3, size=800):
    ...     law = law_of_noise(repeats_of(group, noise, group >= 0))
    ...     print(round(float((law.share * law.scale**2).sum()), 1))
    1.0
    1.5
    """
    known = _differences(repeats)
    if known is None:
        return NORMAL
    apart = _apart(repeats)
    own = 0.5 if apart is None else apart
    share = (1 - own) * _share(*known) + own * _share_of_groups(*known)
    sd = known[1] * _SCALES
    # Of halves wider by s and narrower by s, E(e|e|) is 2 s times the mean square.
    each = _one_sided(repeats) / (2 * float((share * sd**2).sum()))
    skew, doubt = 0.0, _UNKNOWN_SKEW
    if len(each) >= _LAW:
        skew, doubt = float(each.mean()), float(each.std()) / math.sqrt(len(each))
    return NoiseLaw(sd / float((share * sd).sum()), share, 0.0, doubt).skewed(skew)


# The ratio of E|e| to E|e - e'|.


def _ratio(repeats: Repeats) -> tuple[float, float]:
    """Return c, and the standard error of its logarithm where nothing shows which law it is.

    Differences with heavy tails have two causes: noise with heavy tails, with c of the symmetric
    law that `_common_law` finds; or groups that differ in the scale of normal noise. With four
    repeats the absolute differences of two pairs tell: they are correlated in the second case.
    Skewed noise, of which three repeats tell, has nearly the c of normal noise.
    """
    common = _common_law(repeats)
    apart = _apart(repeats)
    towards = max(0.5 if apart is None else apart, _skewed(repeats))
    ratio = common + towards * (_NORMAL - common)
    return ratio, 0.0 if apart is not None else abs(_NORMAL - common) / ratio / math.sqrt(12)


def _common_law(repeats: Repeats) -> float:
    """Return c of one symmetric law for all groups: a mixture of normal laws of five scales."""
    known = _differences(repeats)
    if known is None:
        return _NORMAL
    share = _share(*known)
    difference = (share[:, None] * share[None, :] * np.sqrt(_VARIANCES)).sum()
    return float((share * _SCALES).sum() / difference)


def _differences(repeats: Repeats) -> tuple[Floats, float] | None:
    """Return absolute differences of repeats, sorted, and their scale; None if it is 0."""
    step = np.abs(np.diff(repeats.logs)[np.diff(repeats.of_row) == 0])
    d = np.sort(step)
    if len(d) > _MOST:
        d = d[((np.arange(_MOST) + 0.5) * len(d) / _MOST).astype(np.int64)]
    scale = float(np.median(d)) / _MEDIAN
    return (d, scale) if scale > 0 else None


def _share(d: Floats, scale: float) -> Floats:
    """Return the shares of the components of the noise of both rows of a difference (EM)."""
    variance = scale**2 * _VARIANCES.ravel()
    density = np.exp(-0.5 * d[:, None] ** 2 / variance) / np.sqrt(variance)
    share = _FIRST
    for _ in range(_STEPS):
        both = _mean_shares(density, (share[:, None] * share).ravel()).reshape(_VARIANCES.shape)
        share = (both.sum(axis=0) + both.sum(axis=1)) / 2
    return share


def _share_of_groups(d: Floats, scale: float) -> Floats:
    """Return the shares of the components where both rows of a difference have the same (EM)."""
    sd = scale * _SCALES * math.sqrt(2)
    density = np.exp(-0.5 * (d[:, None] / sd) ** 2) / sd
    share = _FIRST
    for _ in range(_STEPS):
        share = _mean_shares(density, share)
    return share


def _mean_shares(density: Floats, share: Floats) -> Floats:
    """Return the mean probability of each component, given the rows: one step of EM."""
    mean: Floats = share * ((1 / np.maximum(density @ share, 1e-300)) @ density) / len(density)
    return mean


def _apart(repeats: Repeats) -> float | None:
    """Return how much of the tails comes from groups that differ in scale; None if unknown."""
    start = repeats.start[repeats.count >= 4]
    if len(start) < _LAW:
        return None
    x = repeats.logs
    a, b = np.abs(x[start] - x[start + 1]), np.abs(x[start + 2] - x[start + 3])
    both = np.r_[a, b]
    covariance = float((a * b).mean() - a.mean() * b.mean())
    # Of normal noise with a scale for each group.
    most = float((both**2).mean() * 2 / math.pi - both.mean() ** 2)
    return min(max(covariance / most, 0.0), 1.0) if most > 0 else 1.0


def _skewed(repeats: Repeats) -> float:
    """Return how far c is moved to that of normal noise because three repeats are skewed."""
    start = repeats.start[repeats.count >= 3]
    if len(start) < _LAW:
        return 0.0
    x = np.sort(np.stack([repeats.logs[start + i] for i in range(3)], axis=1), axis=1)
    upper, lower = x[:, 2] - x[:, 1], x[:, 1] - x[:, 0]
    size = float((upper + lower).mean())
    if size <= 0:
        return 0.0
    more = upper - lower
    skewness = (abs(float(more.mean())) - float(more.std()) / math.sqrt(len(start))) / size
    return _NEARLY * min(max(skewness / _SKEWED, 0.0), 1.0)
