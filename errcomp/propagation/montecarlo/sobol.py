"""Scrambled Sobol points, addressed by replicate and chunk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from errcomp.propagation.terms import Floats

__all__ = ["ScrambledSobol"]

_BITS = 32
_Words = NDArray[np.uint32]


def _directions(dimensions: int, bits: int) -> _Words:
    """Return the first direction numbers of every dimension, shape (bits, dimensions)."""
    from scipy.stats import qmc  # takes long to import

    engine = qmc.Sobol(dimensions, scramble=False, bits=_BITS)
    rows, passed = np.zeros((bits, dimensions)), 0
    for bit in range(bits):
        # The engine counts in Gray code, in which 2^(bit + 1) − 1 has no other bit than this.
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

    Scrambled by a random linear matrix and a digital shift, which keeps the net (each half,
    quarter, ... of a coordinate holds its share of the points), makes each point uniform, and makes
    the replicates independent, so that their scatter is an honest error. Any chunk of a replicate
    is made without those before it; the net of :math:`2^{k+1}` points begins with that of
    :math:`2^k`.

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
        """Return the index-th chunk of so many points, a power of two; (dimensions, size)."""
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
        # Half a digit more: neither 0 nor 1 can occur, and the mean is one half.
        return (words.astype(np.float64) + 0.5) * 2.0**-_BITS
