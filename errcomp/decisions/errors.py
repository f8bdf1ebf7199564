r"""Errors of compared predictions: what alternatives share cancels, and the rest is learned.

The logarithm y of a measured time, with x of its prediction, of alternative j under condition c:

.. math:: y_{jc} = a_c + \beta_1 S_j + u_j + \beta_2 V_{jg} + v_{jg} + \beta_3 R_{jc} + e_{jc}

with x split into parts of the condition, the alternative (S), the alternative in a group g of
conditions, e.g. a model (V), and the rest (R). The error that all alternatives share under a
condition is in a: it cancels in every comparison. u, v and e are scaled t, with variances and
degrees of freedom learned from measured pairs. The slopes β are below 1 where predicted differences
are partly the predictor's own noise.

Posterior draws come from a Gibbs sampler (Gelman et al., "Bayesian Data Analysis", chapters 11 and
15): half-Cauchy priors of the standard deviations of u and v with the scale of e; t as a scale
mixture of normals; degrees of freedom from `DF` with equal prior weight. With h = min(1/2, 8 q²)
and q the ratio of the variance of a part's error to that of its prediction, its slope has the prior
N(1 - h/2, (0.15 + h/2)²): 1 if errors are small beside differences, and from 0.5 to 1 otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, ndtr

from errcomp.tables.choices import Floats, Ints, Rows

#: Degrees of freedom of the errors; the last is as good as normal.
DF = np.array([3.0, 5.0, 10.0, 60.0])
#: Logarithm of the density of each t in the middle, without π.
_T_CONSTANT = gammaln((DF + 1) / 2) - gammaln(DF / 2) - np.log(DF) / 2
#: Least variance of a part of the predictions: without differences a slope is its prior.
_NONE = 1e-12
#: Mixing scales for each draw, and the largest difference (ln) that counts as one: times 10,000.
_SHAPES, _LARGEST, _HALVINGS = 40, 9.2, 30
#: Most multiplications for which a dense matrix of zeros and ones is faster than a sparse one.
_DENSE = 200_000
#: Draws that are not used, until the sampler has forgotten its start.
_BURN = 150


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Parts of the logarithm of each prediction.

    Attributes
    ----------
    condition : ndarray, shape (conditions,)
    alternative : ndarray, shape (alternatives,)
    cell : ndarray, shape (cells,)
        Of an alternative in a group of conditions.
    rest : ndarray, shape (n,)
    of_cell : ndarray of int, shape (n,)
        Cell of each row.
    """

    condition: Floats
    alternative: Floats
    cell: Floats
    rest: Floats
    of_cell: Ints

    @classmethod
    def of(cls, rows: Rows) -> Parts:
        """Split the predictions by least squares: condition and alternative, then cells."""
        n, conditions = len(rows), int(rows.condition.max()) + 1
        both = sparse.hstack([members(rows.condition, conditions), members(rows.alternative)])
        x = rows.x - rows.x.mean()
        found = sparse.linalg.lsmr(both.tocsr(), x, atol=1e-12, btol=1e-12, maxiter=10 * n)[0]
        of_alternative = found[conditions:] - found[conditions:].mean()
        of_condition = found[:conditions] + found[conditions:].mean() + rows.x.mean()
        rest = x - both @ found
        names = rows.alternative * (int(rows.group.max()) + 1) + rows.group
        of_cell = np.unique(names, return_inverse=True)[1]
        cell = np.bincount(of_cell, rest) / np.bincount(of_cell)
        return cls(of_condition, of_alternative, cell, rest - cell[of_cell], of_cell)

    @property
    def variance(self) -> Floats:
        """Variance of each part, shape (3,)."""
        each = (self.alternative, self.cell, self.rest)
        return np.maximum([float(part.var()) for part in each], _NONE)

    def take(self, index: NDArray[Any]) -> Parts:
        """Return the parts of some rows; the codes stay."""
        rest, of_cell = self.rest[index], self.of_cell[index]
        return Parts(self.condition, self.alternative, self.cell, rest, of_cell)

    def between(self, first: Ints, second: Ints, rows: Rows) -> tuple[Floats, Floats, Floats]:
        """Return second minus first of each part, each of shape (pairs,)."""
        cell = self.cell[self.of_cell]
        own = self.alternative[rows.alternative]
        each = (own, cell, self.rest)
        one, two, three = (part[second] - part[first] for part in each)
        return one, two, three


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Draws of the error model for each fold, in which some alternatives were left out.

    Attributes
    ----------
    slope, variance, df : ndarray, shape (draws, 3, folds)
        By part: alternative, cell, rest.
    place : ndarray, shape (draws, n), or None
        Of a single fold: the logarithm of the time of each row, without its e.
    condition : ndarray, shape (draws, conditions), or None
        Of a single fold: the part that all rows of a condition share.
    """

    slope: Floats
    variance: Floats
    df: Floats
    place: Floats | None = None
    condition: Floats | None = None


def members(codes: Ints, count: int | None = None) -> Any:
    """Return the indicator matrix of groups, shape (rows, groups)."""
    n, count = len(codes), int(codes.max()) + 1 if count is None else count
    return sparse.csr_matrix((np.ones(n), (np.arange(n), codes)), shape=(n, count))


def _adding(groups: Any, folds: int) -> Any:
    """Return the matrix that adds the rows of each group, in the quickest form."""
    # Transposed once: SciPy takes as long for a transpose as for the product.
    adding = groups.T.tocsr()
    return adding.toarray() if np.prod(adding.shape) * folds <= _DENSE else adding


class Sampler:
    """Gibbs sampler of the error model, for all folds at once; arrays of shape (…, folds).

    Parameters
    ----------
    rows : Rows
    parts : Parts
        Of these rows.
    left_out : ndarray of bool, shape (n, folds)
        Rows whose measurements a fold does not see.
    seed : int
    """

    def __init__(self, rows: Rows, parts: Parts, left_out: NDArray[np.bool_], seed: int) -> None:
        self.rows, self.parts, self.rng = rows, parts, np.random.default_rng(seed)
        self.spread = parts.variance[:, None]
        self.folds = folds = left_out.shape[1]
        known = np.isfinite(rows.y)
        self.middle = float(rows.x.mean())
        self.y = np.where(known, rows.y - self.middle, 0.0)[:, None]
        self.used = (known[:, None] & ~left_out).astype(float)
        self.per_condition = _adding(members(rows.condition), folds)
        self.per_alternative = _adding(members(rows.alternative, len(parts.alternative)), folds)
        self.per_cell = _adding(members(parts.of_cell, len(parts.cell)), folds)
        # Alternatives and cells without a measured row say nothing about variances.
        self.seen = [
            (self.per_alternative @ self.used > 0).astype(float),
            (self.per_cell @ self.used > 0).astype(float),
            self.used,
        ]
        self.count = [seen.sum(axis=0) for seen in self.seen]
        error = (rows.y - rows.x)[known]
        start = max(float(np.var(error - error.mean())), _NONE) / 2 if len(error) else 1.0
        self.variance = np.full((3, folds), start)
        self.slope = np.ones((3, folds))
        #: Centre and width of the prior of each slope.
        self.prior = [self._prior(level, self.variance[level]) for level in range(3)]
        self.df = np.full((3, folds), DF[-2])
        self.mix = [np.ones_like(seen) for seen in self.seen]
        self.w = np.tile(parts.alternative[:, None], folds)
        self.z = np.tile(parts.cell[:, None], folds)
        self.a = np.zeros((self.per_condition.shape[0], folds))

    def draw(self, count: int, *, keep_places: bool = False) -> Posterior:
        """Return posterior draws after the burn-in."""
        kept: list[tuple[Floats, Floats, Floats]] = []
        places, conditions = [], []
        for i in range(_BURN + count):
            self.step()
            if i >= _BURN:
                kept.append((self.slope.copy(), self.variance.copy(), self.df.copy()))
                if keep_places:
                    places.append(self._place()[:, 0])
                    conditions.append(self.a[:, 0] + self.middle)
        slope, variance, df = (np.array(part) for part in zip(*kept, strict=True))
        if not keep_places:
            return Posterior(slope, variance, df)
        return Posterior(slope, variance, df, np.array(places), np.array(conditions))

    def _place(self) -> Floats:
        of_row = self.w[self.rows.alternative] + self.z[self.parts.of_cell]
        own: Floats = of_row + self.slope[2] * self.parts.rest[:, None]
        return own + self.a[self.rows.condition] + self.middle

    def step(self) -> None:
        """Draw every unknown once, given the others."""
        rows, parts = self.rows, self.parts
        weight = self.used / (self.mix[2] * self.variance[2])
        self._rest_and_conditions(weight)
        base = self.y - self.slope[2] * parts.rest[:, None] - self.a[rows.condition]
        # Alternatives. Their mean is the conditions' to explain: only differences are known.
        total, prior = self.per_alternative @ weight, 1 / (self.mix[0] * self.variance[0])
        part = parts.alternative[:, None]
        pulled = self.per_alternative @ (weight * (base - self.z[parts.of_cell]))
        self.w = self._normal(pulled + prior * self.slope[0] * part, total + prior)
        mean = self._regress(0, self.w, part, prior * self.seen[0], with_mean=True)
        self.w = self.w - mean
        self.a = self.a + mean
        base = base - mean
        # Cells.
        total, prior = self.per_cell @ weight, 1 / (self.mix[1] * self.variance[1])
        part = parts.cell[:, None]
        pulled = self.per_cell @ (weight * (base - self.w[rows.alternative]))
        self.z = self._normal(pulled + prior * self.slope[1] * part, total + prior)
        self._regress(1, self.z, part, prior * self.seen[1])
        self._variances(
            self.w - self.slope[0] * parts.alternative[:, None],
            self.z - self.slope[1] * part,
            base - self.w[rows.alternative] - self.z[parts.of_cell],
        )

    def _normal(self, pulled: Floats, precision: Floats) -> Floats:
        noise = self.rng.standard_normal(pulled.shape)
        found: Floats = pulled / precision + noise / np.sqrt(precision)
        return found

    def _rest_and_conditions(self, weight: Floats) -> None:
        """Draw the slope of the rest with the conditions integrated out, then the conditions."""
        total = self.per_condition @ weight
        empty = total <= 0
        total = np.where(empty, 1.0, total)

        def centred(values: Floats) -> Floats:
            mean = (self.per_condition @ (weight * values)) / total
            moved: Floats = values - mean[self.rows.condition]
            return moved

        rest = self.parts.rest[:, None]
        left = self.y - self.w[self.rows.alternative] - self.z[self.parts.of_cell]
        x, y = centred(rest), centred(left)
        centre, width = self.prior[2]
        precision = (weight * x * x).sum(axis=0) + width**-2
        pulled = (weight * x * y).sum(axis=0) + centre * width**-2
        self.slope[2] = self._normal(pulled, precision)
        moved = self.per_condition @ (weight * (left - self.slope[2] * rest))
        self.a = np.where(empty, 0.0, self._normal(moved, total))

    def _regress(
        self, level: int, value: Floats, part: Floats, weight: Floats, *, with_mean: bool = False
    ) -> Floats:
        """Draw the slope of a part, and return the mean if the part has one."""
        total = np.maximum(weight.sum(axis=0), 1e-300)
        x_mean = y_mean = np.zeros(self.folds)
        if with_mean:
            x_mean = (weight * part).sum(axis=0) / total
            y_mean = (weight * value).sum(axis=0) / total
        x, y = part - x_mean, value - y_mean
        centre, width = self.prior[level]
        precision = (weight * x * x).sum(axis=0) + width**-2
        pulled = (weight * x * y).sum(axis=0) + centre * width**-2
        self.slope[level] = self._normal(pulled, precision)
        if not with_mean:
            return x_mean
        known = weight.sum(axis=0) > 0
        drawn = self.rng.standard_normal(self.folds) / np.sqrt(total)
        return np.where(known, y_mean - self.slope[level] * x_mean + drawn, 0.0)

    def _prior(self, level: int, variance: Floats) -> tuple[Floats, Floats]:
        half = np.minimum(0.5, 8 * (variance / self.spread[level]) ** 2) / 2
        return 1 - half, 0.15 + half

    def _variances(self, *errors: Floats) -> None:
        """Draw the variances, then the mixing scales and the degrees of freedom of the t."""
        for level in (2, 0, 1):
            seen = self.seen[level]
            squares = (seen * errors[level] ** 2 / self.mix[level]).sum(axis=0)
            count = self.count[level]
            if level == 2:
                # p(σ) ∝ σ⁻²: one power more than for a scale alone. Differences that have the
                # same ratio to the estimated σ are more frequent where it came out large.
                rate, shape = squares / 2, (count + 1) / 2
                rate = np.maximum(rate, _NONE)
            else:
                inner = 1 / self.variance[level] + 1 / self.variance[2]
                half_cauchy = inner / self.rng.standard_gamma(1.0, size=self.folds)
                rate, shape = squares / 2 + 1 / half_cauchy, (count + 1) / 2
            self._accept(level, rate / self.rng.standard_gamma(shape))
            scaled = errors[level] ** 2 / self.variance[level]
            self._mixing(level, scaled, seen)

    def _accept(self, level: int, new: Floats) -> None:
        """Accept new variances, or keep the old ones: the prior of a slope depends on them."""
        old, slope = self.prior[level], self.slope[level]
        other = self._prior(level, new)
        log = np.zeros(self.folds)
        for (centre, width), sign in ((other, 1), (old, -1)):
            log += sign * (-(((slope - centre) / width) ** 2) / 2 - np.log(width))
        taken = np.log(self.rng.random(self.folds)) < log
        self.variance[level] = np.where(taken, new, self.variance[level])
        centre, width = (np.where(taken, *both) for both in zip(other, old, strict=True))
        self.prior[level] = centre, width

    def _mixing(self, level: int, scaled: Floats, seen: Floats) -> None:
        df, scaled = self.df[level], seen * scaled
        self.mix[level] = (df + scaled) / 2 / self.rng.standard_gamma((df + seen) / 2)
        # Unseen rows add log1p(0).
        each = np.log1p(scaled / DF[:, None, None]).sum(axis=1)
        log = _T_CONSTANT[:, None] * self.count[level] - (DF[:, None] + 1) / 2 * each
        self.df[level] = DF[(log + self.rng.gumbel(size=log.shape)).argmax(axis=0)]


def chance_faster(
    posterior: Posterior,
    fold: int,
    parts: tuple[Floats, Floats, Floats],
    prices: Floats,
    rng: np.random.Generator,
) -> Floats:
    r"""Probability that the first of two alternatives, both unseen by a fold, is the faster.

    .. math:: P = \mathrm{mean}\; \Phi\Big(\big(\pi + \sum_k \beta_k\,\delta_k\big) \Big/
        \sqrt{\textstyle\sum_k \sigma_k^2 (\lambda_k + \lambda_k')}\Big)

    over the draws, with the differences δ of the parts and π of the logarithms of the prices
    (second minus first), and mixing scales λ of the t of each part.

    Parameters
    ----------
    parts : tuple of three ndarray, shape (pairs,)
        See `Parts.between`.
    prices : ndarray, shape (pairs,)

    Returns
    -------
    ndarray, shape (pairs,)
    """
    slope = posterior.slope[:, :, fold]
    scale = _noise(posterior, rng, fold)
    total = np.zeros(len(parts[0]))
    for one, width in zip(slope, scale, strict=True):
        ahead = one[0] * parts[0] + one[1] * parts[1] + one[2] * parts[2]
        total += ndtr((prices + ahead) / width)
    found: Floats = total / len(slope)
    return found


def _noise(posterior: Posterior, rng: np.random.Generator, fold: int, levels: int = 3) -> Floats:
    """Return for each draw the standard deviation of a new difference, shape (draws,).

    Of all levels, or of the last ones.
    """
    df, variance = posterior.df[:, -levels:, fold], posterior.variance[:, -levels:, fold]
    mixed = df / 2 / rng.gamma(df / 2) + df / 2 / rng.gamma(df / 2)
    width: Floats = np.sqrt((variance * mixed).sum(axis=1))
    return width


def needed_difference(
    posterior: Posterior, spread: Floats, share: float, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return the predicted difference (ln) that is right in this share of cases, and its interval.

    The slope of a difference is the mean of the slopes, weighted by the variance of their parts.

    Parameters
    ----------
    posterior : Posterior
        Of all rows, in its first fold.
    spread : ndarray, shape (3,)
        See `Parts.variance`.
    share : float
        E.g. 0.9.

    Returns
    -------
    value, low, high : float
        The interval has 95 %. Infinite where no difference is right that often.
    """
    slope = posterior.slope[:, :, 0] @ (spread / spread.sum())
    widths = np.array([_noise(posterior, rng, 0) for _ in range(_SHAPES)])
    draws = _solve(slope / widths, share)
    low, high = np.quantile(draws, [0.025, 0.975], method="inverted_cdf")
    return float(_solve((slope / widths).reshape(-1, 1), share)[0]), float(low), float(high)


def _solve(scores: Floats, share: float) -> Floats:
    """Return the least difference that is right in this share of each column, by bisection.

    Scores are those of a difference of one.
    """
    low, high = np.zeros(scores.shape[1]), np.full(scores.shape[1], _LARGEST)
    never = ndtr(_LARGEST * scores).mean(axis=0) < share
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = ndtr(middle * scores).mean(axis=0) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(never, np.inf, high)
