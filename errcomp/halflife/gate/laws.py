r"""The law of the noise of a benchmark, learned from its own values, and sums of such values.

Benchmarks are not normal: single bad runs, heavy tails, noise in two levels. A fixed list of laws
(normal, Student t, skewed; each also with 1 to 20 % of bad runs, on both sides or on one) is
weighted by how well each describes the scores seen so far, starting from weights that favour the
normal law. With 100 scores or more, their histogram is one more law, for which each score counts
with the density that the others give it. The probability of a sum of w scores is the weighted mean
of what the laws say, each by its w-fold convolution.

Scores are clipped. A low clip makes sums robust against bad runs, a high one finds large shifts
sooner. The clip is the one for which shifts of 2.5 and 5 standard deviations would be found after
the fewest values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["SIZES", "NoiseLaw", "noise_law"]

Floats = NDArray[np.float64]

#: Numbers of values whose sums are tested.
SIZES = (1, 2, 3, 4, 5, 6, 8, 11, 15, 21, 30)

#: Scores beyond this many standard deviations count as this many.
MOST = 6.0
_WIDTH = 0.1
_BINS = round(2 * MOST / _WIDTH) + 1
_GRID = np.linspace(-MOST, MOST, _BINS)
_EDGES = (_GRID[1:] + _GRID[:-1]) / 2
#: Rounding of a Fourier transform, and more.
_TINY = 1e-17
_CLIPS = (6.0, 4.0, 3.0, 2.5, 2.0, 1.5)

#: Shares of bad runs and the prior weight of each, and that of the normal law against one law of
#: each other shape.
_BAD = {0.01: 0.5, 0.03: 0.3, 0.08: 0.15, 0.2: 0.05}
_NORMAL = 5.0
#: The same for validations that are means of repeats: a single bad run does not explain those.
_NORMAL_OF_REPEATS = 3e5
#: The histogram is a law of its own from this many scores, with this prior weight.
_MANY, _HISTOGRAM = 100, 0.02
#: Values that the other laws add to the histogram.
_PSEUDO = 20.0
_NEGLIGIBLE = 1e-3
#: Where scores are clipped to compute their scale, and the variance of a normal law so clipped.
HUBER, HUBER_VARIANCE = 2.5, 0.9568
#: Shifts, in standard deviations, for which the clip is chosen; and sums that are considered.
_SHIFTS, _LONGEST = (2.5, 5.0), 30
_THETA = np.linspace(0.05, 6.0, 60)


class Laws(NamedTuple):
    """Probabilities of scores under several laws, shape (laws, bins), and their weights."""

    pmf: Floats
    weight: Floats


def _normal(x: Floats) -> Floats:
    return np.exp(-(x**2) / 2)


def _student(x: Floats, df: float) -> Floats:
    return (1 + x**2 / df) ** (-(df + 1) / 2)


@cache
def _shapes() -> tuple[Floats, Floats]:
    """Return the laws of the list, each of scale 1, and the prior weight of each.

    The first one is normal.
    """
    x = np.linspace(-40, 40, 8_001)
    bodies = [
        *(_normal(x), _student(x, 10), _student(x, 5), _student(x, 3)),
        *(_normal(x / np.where(x < 0, a, b)) for a, b in ((0.6, 1.2), (1.2, 0.6))),
    ]
    # Bad runs: 2 to 16 standard deviations off.
    far = np.where(x > 0, x**3 * np.exp(-np.abs(x) / 1.6), 0.0)
    sides = ((far + far[::-1], 1.0), (far, 0.5), (far[::-1], 0.5))
    laws, prior = [], []
    for body in bodies:
        body = body / body.sum()
        laws.append(_binned(x, body))
        prior.append(1.0)
        for share, often in _BAD.items():
            for bad, weight in sides:
                laws.append(_binned(x, (1 - share) * body + share * bad / bad.sum()))
                prior.append(weight * often)
    return np.array(laws), np.array(prior)


def _binned(x: Floats, density: Floats) -> Floats:
    """Return the probabilities of the bins for a law with its median at 0 and its scale 1."""
    below = np.cumsum(density)
    centre, scale = np.interp(0.5, below, x), 1.0
    for _ in range(30):
        clipped = np.clip(x - centre, -HUBER * scale, HUBER * scale)
        mean = density @ clipped
        scale = float(np.sqrt(density @ (clipped - mean) ** 2 / HUBER_VARIANCE))
    inside = np.interp(centre + scale * _EDGES, x, below)
    pmf = np.maximum(np.diff(np.concatenate([[0.0], inside, [1.0]])), 1e-12)
    return np.asarray(pmf / pmf.sum())


def counts_of(scores: Floats) -> Floats:
    """Count scores by bin."""
    at = np.rint((np.clip(scores, -MOST, MOST) + MOST) / _WIDTH).astype(np.int64)
    return np.bincount(at, minlength=_BINS).astype(np.float64)


def _weighted(counts: Floats, *, repeated: bool) -> Laws:
    """Weigh the laws of the list, and the histogram, by the scores that were seen."""
    pmf, prior = _shapes()
    prior = prior.copy()
    prior[0] = _NORMAL_OF_REPEATS if repeated else _NORMAL
    log = np.log(pmf) @ counts + np.log(prior / prior.sum())
    n = counts.sum()
    if n >= _MANY:
        listed = _normalised(log) @ pmf
        reach = np.arange(-15, 16)
        kernel = np.exp(-((reach / (3 * (n / _MANY) ** -0.2)) ** 2) / 2)
        kernel /= kernel.sum()
        # The first and the last bin hold all that is beyond them.
        inner = np.convolve(counts[1:-1], kernel, "same")
        smooth = np.concatenate([counts[:1], inner, counts[-1:]])
        own = np.full(_BINS, kernel[len(reach) // 2])
        own[[0, -1]] = 1.0
        others = (smooth - own + _PSEUDO * listed) / (n - 1 + _PSEUDO)
        seen = counts > 0
        fits = counts[seen] @ np.log(np.maximum(others[seen], 1e-12))
        histogram = smooth + _PSEUDO * listed
        log = np.append(log, fits + np.log(_HISTOGRAM))
        pmf = np.vstack([pmf, histogram / histogram.sum()])
    weight = _normalised(log)
    keep = weight > _NEGLIGIBLE
    return Laws(pmf[keep], weight[keep] / weight[keep].sum())


def _normalised(log: Floats) -> Floats:
    weight = np.exp(log - log.max())
    return np.asarray(weight / weight.sum())


def _clip_of(laws: Laws, p: float, fewest: float) -> float:
    """Choose the clip for which the shifts would be found with the fewest values at level p."""
    needed = [_values_needed(laws, clip, p, fewest) for clip in _CLIPS]
    # Equal ones, such as all clips of a normal law, go to the highest.
    return _CLIPS[int(np.argmin(np.round(needed, 9)))]


def _values_needed(laws: Laws, clip: float, p: float, fewest: float) -> float:
    """Return how many values the shifts take in all, by Chernoff's bound of their sum.

    Each shift to either side.
    """
    mean, total = laws.weight @ laws.pmf, 0.0
    for side in (1.0, -1.0):
        moments = np.log(_powers(side, clip) @ laws.pmf.T)
        for shift in _SHIFTS:
            reached = min(float(mean @ np.clip(side * _GRID + shift, -clip, clip)), clip)
            rate = np.minimum((moments - _THETA[:, None] * reached).min(axis=0), 0.0)
            log_p = np.log(np.exp(np.outer(np.arange(1, _LONGEST + 1), rate)) @ laws.weight)
            enough = log_p <= np.log(p)
            if not enough.any():
                total += _LONGEST
                continue
            k = int(np.argmax(enough))
            part = (log_p[k - 1] - np.log(p)) / (log_p[k - 1] - log_p[k]) if k > 0 else 1.0
            total += max(k + float(part), fewest)
    return total


@cache
def _powers(side: float, clip: float) -> Floats:
    """Return exp(θ x) of the clipped scores of one side, shape (θ, bins)."""
    return np.exp(np.outer(_THETA, side * np.clip(_GRID, -clip, clip)))


@dataclass(frozen=True, slots=True, eq=False)
class NoiseLaw:
    """The law of clipped scores, and of sums of as many as `SIZES` says.

    Attributes
    ----------
    clip : float
        Scores beyond it count as it in sums of two and more.
    n : float
        Scores that the law was learned from.
    tail_df : float
        Degrees of freedom of the Student t that goes beyond 4 as often; inf is normal.
    laws : Laws
        The laws that describe the scores.
    """

    clip: float
    n: float
    tail_df: float
    laws: Laws
    _tables: dict[int, tuple[Floats, Floats, Floats]] = field(default_factory=dict)

    def p(self, size: int, up: Floats, down: Floats) -> Floats:
        """Return two-sided probabilities of sums beyond these; ``size`` is a position in SIZES.

        ``up`` is tested against larger sums, ``down`` against smaller ones. A sum beyond all
        possible ones, by an error of its reference, is as rare as the largest.
        """
        if size not in self._tables:
            # Single scores are not clipped.
            clip = MOST if SIZES[size] == 1 else self.clip
            self._tables[size] = _table(self.laws, clip, SIZES[size])
        x, above, below = self._tables[size]
        half = _WIDTH / 2
        rarer = np.minimum(np.interp(up - half, x, above), np.interp(down + half, x, below))
        return np.asarray(np.exp(np.minimum(rarer, 0.0)))

    def p_of_one(self, up: Floats, down: Floats) -> Floats:
        """Return the same for single scores, which are not clipped.

        Beyond the list's six standard deviations the tail is that of a Student t with 3 degrees of
        freedom: heavier ones are steps rather than noise.
        """
        far = np.clip(np.maximum(up, -down) / MOST, 1.0, 1e6)
        return self.p(0, np.minimum(up, MOST), np.maximum(down, -MOST)) / far**3


def noise_law(scores: Floats, p: float, *, repeated: bool) -> NoiseLaw:
    """Learn the law of scores: residuals in standard deviations, not clipped.

    Parameters
    ----------
    scores : ndarray, shape (n,)
    p : float
        Probability at which sums will be tested; the clip is chosen for it.
    repeated : bool
        Values are means of repeats.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> law = noise_law(rng.standard_normal(2000), 1e-6, repeated=False)
    >>> law.clip, bool(law.p(1, np.array([6.9]), np.array([6.9]))[0] < 2e-6)
    (6.0, True)
    >>> bad = np.where(rng.random(2000) < 0.05, 6.0, rng.standard_normal(2000))
    >>> noise_law(bad, 1e-6, repeated=False).clip
    3.0
    """
    counts = counts_of(scores)
    laws = _weighted(counts, repeated=repeated)
    # A single value is a bad run until a second one confirms it.
    clip = _clip_of(laws, p, 1.0 if repeated else 2.0)
    return NoiseLaw(clip, float(counts.sum()), _tail_df(laws), laws)


def _table(laws: Laws, clip: float, size: int) -> tuple[Floats, Floats, Floats]:
    """Return sums of clipped scores, and logarithms of twice the probability beyond each.

    The probabilities are those of a sum at least as large, and at most as large.
    """
    beyond = round((MOST - clip) / _WIDTH)
    pmf = laws.pmf[:, beyond : _BINS - beyond].copy()
    pmf[:, 0] += laws.pmf[:, :beyond].sum(axis=1)
    pmf[:, -1] += laws.pmf[:, _BINS - beyond :].sum(axis=1)
    bins = pmf.shape[1]
    mean = pmf @ (_WIDTH * (np.arange(bins) - (bins - 1) / 2))
    n = size * (bins - 1) + 1
    length = 1 << (n - 1).bit_length()
    spectrum = _power(np.fft.rfft(pmf, length, axis=1), size)
    even = np.abs(mean) < _WIDTH / 100
    weight = np.append(laws.weight[even].sum(), laws.weight[~even])
    # Laws of mean 0 are one mixture; the others are shifted to mean 0 first.
    mixed = (laws.weight[even] @ spectrum[even] / max(weight[0], _TINY))[None]
    sums = np.fft.irfft(np.concatenate([mixed, spectrum[~even]]), length, axis=1)[:, :n]
    sums = np.clip(sums, 0.0, None)
    x = _WIDTH * (np.arange(n) - (n - 1) / 2)
    above = np.cumsum(sums[:, ::-1], axis=1)[:, ::-1] + _TINY
    below = np.cumsum(sums, axis=1) + _TINY
    total = weight[0] * np.stack([above[0], below[0]])
    for i, shift in enumerate(size * mean[~even], start=1):
        total[0] += weight[i] * np.exp(np.interp(x + shift, x, np.log(above[i])))
        total[1] += weight[i] * np.exp(np.interp(x + shift, x, np.log(below[i])))
    return x, np.log(2 * total[0]), np.log(2 * total[1])


def _power(values: NDArray[np.complex128], n: int) -> NDArray[np.complex128]:
    """Return values to a whole power, by squaring: `**` takes twenty times as long."""
    power = values if n & 1 else np.ones_like(values)
    while n := n >> 1:
        values = values * values
        if n & 1:
            power = power * values
    return power


def _tail_df(laws: Laws) -> float:
    """Return the degrees of freedom of the Student t with as much beyond 4, in scores."""
    mean = laws.weight @ laws.pmf
    beyond = float(mean[np.abs(_GRID) > 4 - _WIDTH / 2].sum())
    df = np.array([1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 20, 30, 50])
    # Scaled like the scores: clipped at 2.5 they have the variance of a normal law.
    tails = np.array([2 * special.stdtr(d, -4 * _student_scale(float(d))) for d in df])
    if beyond < tails[-1]:
        return float("inf")
    return float(np.exp(np.interp(-np.log(beyond), -np.log(tails), np.log(df))))


@cache
def _student_scale(df: float) -> float:
    """Return the scale of a Student t in terms of what scores are divided by."""
    x = np.linspace(-200, 200, 20_001)
    density = _student(x, df)
    density /= density.sum()
    scale = 1.0
    for _ in range(40):
        clipped = np.clip(x, -HUBER * scale, HUBER * scale)
        scale = float(np.sqrt(density @ clipped**2 / HUBER_VARIANCE))
    return scale
