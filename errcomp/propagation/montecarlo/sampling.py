"""Draws of rows, a chunk of draws at a time.

Pseudo-random draws are mirrored in the second half of each chunk (antithetic variates). If the
result increases with every error, as sums, maxima and queues do, means and probabilities become
more precise or stay the same. The standard deviation may become less precise, by a factor of at
most 1.4. Normals and exponentials of normal errors are computed in float32, which is twice as fast
and accurate to about 1e-6 of a draw; everything else is float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

from errcomp.errors import InputError
from errcomp.propagation.montecarlo.rows import LARGEST, Rows, shared_levels, sum_of_lognormals
from errcomp.propagation.terms import Floats, Integers, Terms, is_number

_BITS = 32
_Words = NDArray[np.uint32]


def _directions(dimensions: int, bits: int) -> _Words:
    """Return the first direction numbers of every dimension, shape (bits, dimensions)."""
    from scipy.stats import qmc  # slow to import

    engine = qmc.Sobol(dimensions, scramble=False, bits=_BITS)
    rows, passed = np.zeros((bits, dimensions)), 0
    for bit in range(bits):
        # The engine counts in a reflected binary code, in which 2^(bit + 1) − 1 has only this bit.
        index = 2 ** (bit + 1) - 1
        engine.fast_forward(index - passed)
        rows[bit] = engine.random(1)[0]
        passed = index + 1
    return (rows * 2.0**_BITS).astype(np.uint32)


def _scrambled(directions: _Words, rng: np.random.Generator) -> _Words:
    """Multiply by a random lower triangular binary matrix for each dimension."""
    place = np.arange(_BITS, dtype=np.uint32)
    own = np.uint32(1) << (_BITS - 1 - place)
    # Digit b of the result takes digit b and a random choice of the digits before it.
    before = ~((own << np.uint32(1)) - np.uint32(1))
    before[0] = 0
    random = rng.integers(0, 2**_BITS, size=(directions.shape[1], _BITS), dtype=np.uint32)
    parity = directions[:, :, None] & ((random & before) | own)
    for shift in (16, 8, 4, 2, 1):
        parity ^= parity >> np.uint32(shift)
    parity &= np.uint32(1)
    return np.asarray(np.bitwise_or.reduce(parity * own, axis=2))


class ScrambledSobol:
    r"""Independent scramblings of one Sobol net of :math:`2^k` points.

    Scrambled by a random linear matrix and a digital shift. This keeps the net (each half, quarter,
    ... of a coordinate has its share of the points), makes each point uniform, and makes the
    replicates independent, so that their scatter gives the error. Any chunk of a replicate is made
    without the chunks before it; the net of :math:`2^{k+1}` points begins with that of :math:`2^k`.

    Parameters
    ----------
    dimensions : int
        Coordinates of a point, at least 1.
    points : int
        Points of one replicate, a power of two.
    seed : int
        Replicate r is scrambled with the generator of spawn key (r, 0).

    References
    ----------
    Matoušek (1998), "On the L2-discrepancy for anchored boxes", Journal of Complexity 14(4),
    527-556, doi:10.1006/jcom.1998.0489. Joe and Kuo (2008), "Constructing Sobol sequences with
    better two-dimensional projections", SIAM Journal on Scientific Computing 30(5), 2635-2654,
    doi:10.1137/070709359 (the direction numbers, from SciPy).

    Examples
    --------
    >>> points = ScrambledSobol(2, 8, seed=0).chunk(replicate=0, index=0, size=8)
    >>> np.sort(np.floor(8 * points[1])).tolist()  # one in each eighth
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    """

    def __init__(self, dimensions: int, points: int, seed: int) -> None:
        self._directions = _directions(dimensions, points.bit_length() - 1)
        self._seed = seed

    def chunk(self, *, replicate: int, index: int, size: int) -> Floats:
        """Return the index-th chunk of `size` points, a power of two, shape (dimensions, size)."""
        sequence = np.random.SeedSequence(self._seed, spawn_key=(replicate, 0))
        rng = np.random.default_rng(sequence)
        bits, dimensions = self._directions.shape
        shift = rng.integers(0, 2**_BITS, size=(dimensions, 1), dtype=np.uint32)
        directions = _scrambled(self._directions, rng)
        words = np.empty((dimensions, size), np.uint32)
        words[:, :1] = shift
        inner = size.bit_length() - 1
        for bit in range(inner, bits):
            if index >> (bit - inner) & 1:
                words[:, 0] ^= directions[bit]
        for bit in range(inner):
            half = 2**bit
            words[:, half : 2 * half] = words[:, :half] ^ directions[bit][:, None]
        # Half a digit more, so that neither 0 nor 1 occurs and the mean is one half.
        return (words.astype(np.float64) + 0.5) * 2.0**-_BITS


Method = Literal["sobol", "random"]
#: Fewest draws for a 5 % quantile.
_LEAST = 512
_Inexact = NDArray[np.floating[Any]]

#: Numbers handled at once, so that temporary arrays stay in the cache.
_AT_A_TIME = 2**18
#: A source of error gets a Sobol dimension if it carries this share of the variance of the sum ...
_SHARE = 0.01
#: ... and is among this number of largest ones.
_DIMENSIONS = 32
#: Largest spread at which float32 holds the exponentials of normal errors, at most 6.4 spreads.
_SINGLE = 10.0


def normals(
    rng: np.random.Generator, rows: int, draws: int, scale: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Draw normals of mean 0, the second half of the draws mirrored.

    By the Box-Muller transform of 23-bit uniforms: none is beyond 5.65 times the scale, which cuts
    off 2e-8 of the probability. In float32 it takes half the time of the generator's own method.

    Parameters
    ----------
    rng : Generator
        Of a bit generator with words of 64 bits.
    rows, draws : int
        Shape; draws a multiple of four.
    scale : ndarray, shape (rows, 1), optional
        Standard deviations; 1 without.

    References
    ----------
    Box and Muller (1958), "A note on the generation of random normal deviates", Annals of
    Mathematical Statistics 29(2), 610-611, doi:10.1214/aoms/1177706645.

    Examples
    --------
    >>> z = normals(np.random.default_rng(0), 3, 8)
    >>> z.shape, bool((z[:, 4:] == -z[:, :4]).all())
    ((3, 8), True)
    """
    quarter = draws // 4
    words = rng.bit_generator.random_raw(rows * quarter).view(np.uint32).reshape(2 * rows, quarter)
    # The fraction of a float32 in [1, 2).
    words >>= np.uint32(9)
    words |= np.uint32(0x3F800000)
    radius, angle = np.split(words.view(np.float32), 2)
    np.subtract(np.float32(2), radius, out=radius)  # in (0, 1]
    np.log(radius, out=radius)
    radius *= np.float32(-2)
    np.sqrt(radius, out=radius)
    if scale is not None:
        radius *= scale
    angle *= np.float32(2 * math.pi)
    out = np.empty((rows, draws), np.float32)
    np.multiply(radius, np.cos(angle), out=out[:, :quarter])
    np.multiply(radius, np.sin(angle, out=angle), out=out[:, quarter : 2 * quarter])
    np.negative(out[:, : 2 * quarter], out=out[:, 2 * quarter :])
    return out


@dataclass(frozen=True, slots=True)
class _Step:
    """The factors of a level: one for each group, which lies in a parent of the step before."""

    share: float
    parent: Integers


@dataclass(frozen=True, slots=True)
class Plan:
    """Common part of the draws of all chunks.

    Attributes
    ----------
    rows : Rows
        Rows to draw.
    steps : tuple of _Step
        Levels with a share, from coarse to fine.
    loadings : ndarray, shape (n, n), or None
        Square root of a matrix of correlations, instead of levels.
    df : float
        Degrees of freedom; infinity: normal.
    chosen : tuple of (ndarray of int, ndarray of int)
        For the factors of each step (or of the loadings), then for the own parts: positions of
        those with a Sobol dimension, and their dimensions.
    dimensions : int
        Sobol dimensions. Of t errors the first is the mixing variable.
    covered : float
        Share of the variance of the plain sum that the Sobol dimensions carry.
    seed : int
        The chunk that starts at draw d of replicate r has the spawn key (r, d + 1); the scrambling
        of the replicate has (r, 0).
    """

    rows: Rows
    steps: tuple[_Step, ...]
    loadings: Floats | None
    df: float
    chosen: tuple[tuple[Integers, Integers], ...]
    dimensions: int
    covered: float
    seed: int

    @property
    def factors(self) -> int:
        """Number of shared factors."""
        if self.loadings is not None:
            return len(self.loadings)
        return sum(len(step.parent) for step in self.steps)

    @property
    def single(self) -> bool:
        """Whether float32 suffices for the errors."""
        fits = not self.rows.log or float(self.rows.scale.max()) <= _SINGLE
        return fits and math.isinf(self.df)


def plan(terms: Terms, rows: Rows, uses: Integers, *, method: Method, seed: int) -> Plan:
    """Prepare the draws of rows, and choose the sources with a Sobol dimension."""
    steps: list[_Step] = []
    loadings = None
    if terms.matrix is not None:
        values, vectors = np.linalg.eigh(terms.matrix)
        loadings = np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
    else:
        before = np.zeros(len(terms), np.int64)
        for level in shared_levels(terms):
            parent = np.zeros(int(level.codes.max()) + 1, np.int64)
            parent[level.codes] = before
            steps.append(_Step(level.share, parent))
            before = level.codes
    mixed = int(math.isfinite(terms.df))
    weights = _weights(rows, uses, steps, loadings)
    chosen, dimensions, covered = _choose(weights, mixed, _DIMENSIONS if method == "sobol" else 0)
    if method == "random":
        dimensions = 0
    return Plan(rows, tuple(steps), loadings, terms.df, chosen, dimensions, covered, seed)


def _weights(
    rows: Rows, uses: Integers, steps: list[_Step], loadings: Floats | None
) -> list[Floats]:
    """Return the variance that each factor and each own part adds to the plain sum."""
    mean = rows.count * rows.centre * np.exp(np.minimum(rows.scale**2, LARGEST) / 2)
    unit = mean if rows.log else np.ones(len(rows))
    amount = uses * unit * rows.scale
    largest = float(np.abs(amount).max()) or 1.0  # squares must not overflow
    own = uses * (unit * rows.own / largest) ** 2 * rows.second
    amount /= largest
    if loadings is not None:
        return [(amount @ loadings) ** 2, own]
    weights = [own]
    code = rows.code
    for step in reversed(steps):
        amount = np.bincount(code, amount, len(step.parent)).astype(float)
        weights.insert(0, step.share * amount**2)
        code = step.parent
    return weights


def _choose(
    weights: list[Floats], first: int, most: int
) -> tuple[tuple[tuple[Integers, Integers], ...], int, float]:
    """Assign numbers from ``first`` to the largest sources of variance; return their share."""
    every = np.concatenate(weights)
    total = float(every.sum())
    best = np.argsort(-every, kind="stable")[:most]
    best = best[every[best] > _SHARE * total]
    chosen, start = [], 0
    for weight in weights:
        inside = (best >= start) & (best < start + len(weight))
        chosen.append((best[inside] - start, first + np.flatnonzero(inside)))
        start += len(weight)
    return tuple(chosen), first + len(best), float(every[best].sum()) / (total or 1.0)


@dataclass(frozen=True, slots=True)
class Span:
    """The draws of one chunk: the same range of one or more replicates.

    Attributes
    ----------
    first, replicates : int
        The replicates.
    start, size : int
        The range of draws; size is a power of two, at least four, and start a multiple of it.
    """

    first: int
    replicates: int
    start: int
    size: int

    @property
    def draws(self) -> int:
        """Draws of the chunk."""
        return self.replicates * self.size


class Draws:
    """One chunk of draws: the shared factors, and own parts on demand.

    Parameters
    ----------
    plan : Plan
    sobol : ScrambledSobol or None
        Points of ``plan.dimensions``; None: all is pseudo-random.
    span : Span
        The draws of the chunk.
    """

    def __init__(self, plan: Plan, sobol: ScrambledSobol | None, span: Span) -> None:
        self.plan = plan
        self.draws = span.draws
        self._size = span.size
        sequence = np.random.SeedSequence(plan.seed, spawn_key=(span.first, span.start + 1))
        self._rng = np.random.default_rng(sequence)
        self._dtype: type[np.floating[Any]] = np.float32 if plan.single else np.float64
        self._points: _Inexact = np.empty((0, self.draws))
        uniform = None
        if sobol is not None:
            at, size = span.start // span.size, span.size
            replicates = range(span.first, span.first + span.replicates)
            parts = [sobol.chunk(replicate=r, index=at, size=size) for r in replicates]
            uniform = np.concatenate(parts, axis=1)
            self._points = ndtri(uniform).astype(self._dtype)
        self._mixing = self._mix(uniform)
        self._shared = self._factors()
        # Each own part uses its Sobol dimension once; further draws are pseudo-random.
        self._left = dict(zip(*(part.tolist() for part in plan.chosen[-1]), strict=True))
        self._is_left = np.zeros(len(plan.rows), bool)
        self._is_left[plan.chosen[-1][0]] = True

    def _mix(self, uniform: Floats | None) -> Floats | None:
        half = self.plan.df / 2
        if math.isinf(half):
            return None
        if uniform is None:
            gamma = self._rng.standard_gamma(half, self.draws)
        else:
            gamma = gammaincinv(half, uniform[0])
        return np.asarray(np.sqrt(half / np.maximum(gamma, np.finfo(float).tiny)))

    def _normals(self, scale: Floats, chosen: tuple[Integers, Integers]) -> _Inexact:
        """Draw normals of these standard deviations, the chosen ones from Sobol points."""
        # Each replicate has its own mirror: replicates are independent.
        apart = self.draws // self._size
        scales = np.repeat(scale, apart)[:, None].astype(np.float32)
        z = normals(self._rng, len(scale) * apart, self._size, scales)
        out = z.reshape(len(scale), self.draws).astype(self._dtype, copy=False)
        out[chosen[0]] = self._points[chosen[1]] * self._column(scale[chosen[0]])
        return out

    def _factors(self) -> _Inexact | None:
        """Sum of the shared factors for each group of the finest level, without mixing."""
        plan = self.plan
        if plan.loadings is not None:
            z = self._normals(np.ones(len(plan.loadings)), plan.chosen[0])
            return np.asarray(plan.loadings @ z).astype(self._dtype, copy=False)
        shared = None
        for step, chosen in zip(plan.steps, plan.chosen, strict=False):
            z = self._normals(np.full(len(step.parent), math.sqrt(step.share)), chosen)
            if shared is not None:
                z += shared[step.parent]
            shared = z
        return shared

    def _own(self, index: Integers, scale: Floats) -> _Inexact:
        at, to = [], []
        for place in np.flatnonzero(self._is_left[index]).tolist() if self._left else ():
            row = int(index[place])
            if row in self._left:
                at.append(place)
                to.append(self._left.pop(row))
                self._is_left[row] = False
        return self._normals(scale, (np.asarray(at, np.int64), np.asarray(to, np.int64)))

    def _column(self, x: Floats) -> _Inexact:
        return x[:, None].astype(self._dtype)

    def _common(self, rows: Rows) -> _Inexact | None:
        """Return s Z, mixed."""
        if self._shared is None:
            return None
        z = np.take(self._shared, rows.code, axis=0, mode="clip")
        z *= self._column(rows.scale)
        return z if self._mixing is None else np.multiply(z, self._mixing, out=z)

    def _instances(self, rows: Rows, index: Integers, out: Floats | None = None) -> Floats:
        """Rows of one instance each, shape (n, draws)."""
        z = self._common(rows)
        if z is None or rows.own.any():
            own = self._own(index, rows.own)
            if self._mixing is not None:
                own *= self._mixing
            z = own if z is None else np.add(z, own, out=z)
        centre = rows.centre[:, None]
        if not rows.log:
            return np.add(z, centre, out=out, dtype=np.float64)
        with np.errstate(over="ignore"):
            np.exp(z, out=z)
            if out is None:
                out = np.empty(z.shape)
            np.copyto(out, z)  # twice as fast as a product that converts
            return np.multiply(out, centre, out=out)

    def _together(self, rows: Rows, index: Integers) -> Floats:
        """Rows of many instances each, shape (n, draws)."""
        spread = rows.own[:, None]
        if self._mixing is not None:
            spread = spread * self._mixing
        own = self._own(index, np.ones(len(index))).astype(np.float64, copy=False)
        total = sum_of_lognormals(own, spread, rows.second[:, None], rows.third[:, None])
        total *= (rows.count * rows.centre)[:, None]
        common = self._common(rows)
        if common is not None:
            with np.errstate(over="ignore"):
                total *= np.exp(common)
        return total

    def _parts(self, length: int) -> Iterator[slice]:
        step = max(1, _AT_A_TIME // self.draws)
        return (slice(at, min(at + step, length)) for at in range(0, length, step))

    def block(self, index: Integers, out: Floats | None = None) -> Floats:
        """One instance of each of these rows, shape (len(index), draws), in ``out`` if given."""
        if out is None:
            out = np.empty((len(index), self.draws))
        for part in self._parts(len(index)):
            self._instances(self.plan.rows.take(index[part]), index[part], out[part])
        return out

    def repeated(self, index: int, count: int) -> Floats:
        """Return the sum of ``count`` instances of one row, shape (draws,)."""
        at = np.array([index])
        return self.sum_of(self.plan.rows.take(at).times(np.array([count])), at)

    def sum_of(self, rows: Rows, index: Integers) -> Floats:
        """Sum of these rows with all their instances; ``index`` is their place in the plan."""
        total = np.zeros(self.draws)
        once = rows.at_once(self.plan.df)
        together, single = np.flatnonzero(once), np.flatnonzero(~once)
        for part in self._parts(len(together)):
            at = together[part]
            total += self._together(rows.take(at), index[at]).sum(axis=0)
        ends = np.cumsum(rows.count[single])
        for part in self._parts(int(ends[-1]) if len(ends) else 0):
            places = np.arange(part.start, part.stop)
            at = single[np.searchsorted(ends, places, side="right")]
            total += self._instances(rows.take(at), index[at]).sum(axis=0)
        return total


def check_simulation(
    terms: int, draws: int, precision: float | None, max_draws: int, method: str, seed: int
) -> None:
    """Check the options of a simulation.

    Raises
    ------
    InputError
        There are no terms, or an option is out of range.
    """
    if terms == 0:
        raise InputError("a simulation needs at least one term, got none. Add a kernel.")
    whole = {"draws": (draws, _LEAST), "max_draws": (max_draws, 1), "seed": (seed, 0)}
    for name, (value, least) in whole.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if method not in get_args(Method):
        raise InputError(f"method must be one of {', '.join(get_args(Method))}, got {method!r}")
    if precision is not None and not (is_number(precision) and 0 < precision < 1):
        raise InputError(
            f"precision must be a fraction between 0 and 1, got {precision!r}. For quantiles "
            "within 0.5 % it is 0.005."
        )
