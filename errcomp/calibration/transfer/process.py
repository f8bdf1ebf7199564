r"""The error of a model on one device, as a Gaussian process over features of runs.

The error of run i on device d, the log of its measured over its predicted time, is

.. math:: \varepsilon_{i} = f_d(z_i) + e_i, \qquad
          \operatorname{cov}(f_d(z), f_d(z')) = a^2 + b^2 e^{-\|z - z'\|^2 / 2 l^2}

with a shift a that all runs of the device share, a part b that like runs share, and noise e of a
Student t with scale s, so that a disturbed run moves little. How large these are is learnt from
devices that a fit did not see: the settings are those that predicted their other runs best from k
of their runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Floats, Names

Integers = NDArray[np.int64]

#: Degrees of freedom of the noise.
_DEGREES = 4.0
_STEPS = 20
#: Random choices of k runs, for each held-out device.
DRAWS = 12
#: Numbers in an array of all trials that are predicted at once.
_AT_ONCE = 1_000_000
#: Errors (ln) count up to this one: a single disturbed run does not choose the settings.
_LARGEST = 0.3


class Settings(NamedTuple):
    """Standard deviations (ln) of shift, local part and noise; length in standardised features."""

    shift: float
    local: float
    length: float
    noise: float


#: No adaptation, and what it is compared with.
UNMOVED = Settings(0.0, 0.0, 1.0, 0.05)
CHOICES = (
    UNMOVED,
    *(
        Settings(shift, local, length, noise)
        for noise in (0.03, 0.06)
        for shift in (0.0, 0.02, 0.05, 0.1)
        for local in (0.0, 0.03, 0.06)
        for length in ((1.0, 2.0) if local else (1.0,))
        if shift or local
    ),
)
#: Where too few devices were held out to learn it: devices differ by a tenth.
USUAL = Settings(0.1, 0.0, 1.0, 0.05)


def covariance(a: Floats, b: Floats, settings: Settings) -> Floats:
    """Return the covariance of f at two sets of points, shape (..., n, m).

    Examples
    --------
    >>> near_and_far = np.array([[0.0], [9.0]])
    >>> covariance(np.zeros((1, 1)), near_and_far, Settings(0.1, 0.2, 1.0, 0.1)).round(3)
    array([[0.05, 0.01]])
    """
    apart = ((a[..., :, None, :] - b[..., None, :, :]) ** 2).sum(axis=-1)
    found: Floats = settings.shift**2 + settings.local**2 * np.exp(-apart / 2 / settings.length**2)
    return found


def weights_of(z: Floats, errors: Floats, settings: Settings) -> Floats:
    """Return the weight of each measured run: 1.25 at most, near 0 for a disturbed one.

    Parameters
    ----------
    z : ndarray, shape (..., k, p)
    errors : ndarray, shape (..., k)

    Examples
    --------
    Three runs that take 10 % longer than predicted, and one that takes 5 times as long:

    >>> errors = np.array([0.1, 0.1, 0.1, 1.6])
    >>> weights_of(np.zeros((4, 1)), errors, Settings(0.1, 0.0, 1.0, 0.05)).round(2).tolist()
    [1.25, 1.25, 1.25, 0.01]
    """
    weights: Floats = np.full(errors.shape, (_DEGREES + 1) / _DEGREES)
    if not settings.shift and not settings.local:
        return weights
    known = covariance(z, z, settings)
    for _ in range(_STEPS):
        there = known @ _solved(known, errors, weights, settings)[..., None]
        apart: Floats = np.asarray((errors - there[..., 0]) / settings.noise, dtype=np.float64)
        before = weights
        weights = np.asarray((_DEGREES + 1) / (_DEGREES + apart**2))
        if np.abs(weights - before).max() < 1e-6:
            break
    return weights


def _solved(known: Floats, errors: Floats, weights: Floats, settings: Settings) -> Floats:
    noisy = _noisy(known, weights, settings)
    return np.asarray(np.linalg.solve(noisy, errors[..., None])[..., 0])


def _noisy(known: Floats, weights: Floats, settings: Settings) -> Floats:
    noise = (settings.noise**2 / weights)[..., None]
    return np.asarray(known + noise * np.eye(known.shape[-1]))


def moved(
    z: Floats, errors: Floats, weights: Floats, new: Floats, settings: Settings
) -> tuple[Floats, Floats]:
    """Return the expected error of other runs, and how much narrower it is known, in (0, 1].

    Parameters
    ----------
    z : ndarray, shape (..., k, p)
        Features of the measured runs.
    errors, weights : ndarray, shape (..., k)
    new : ndarray, shape (..., m, p)

    Returns
    -------
    shift : ndarray, shape (..., m)
    narrower : ndarray, shape (..., m)
        Standard deviation of the error, over that without measured runs.

    Examples
    --------
    >>> settings = Settings(0.1, 0.0, 1.0, 0.05)
    >>> z, errors = np.zeros((2, 1)), np.array([0.1, 0.1])
    >>> shift, narrower = moved(z, errors, np.ones(2), np.zeros((1, 1)), settings)
    >>> shift.round(3).tolist(), narrower.round(2).tolist()
    ([0.089], [0.54])
    """
    across = covariance(new, z, settings)
    known = covariance(z, z, settings)
    noisy = _noisy(known, weights, settings)
    before = settings.shift**2 + settings.local**2
    back = across.swapaxes(-1, -2)
    explained = (back * np.linalg.solve(noisy, back)).sum(axis=-2)
    left = np.maximum(before - explained, 0.0) + settings.noise**2
    return (
        (across @ np.linalg.solve(noisy, errors[..., None]))[..., 0],
        np.sqrt(left / (before + settings.noise**2)),
    )


class Trial(NamedTuple):
    """Held-out devices, from each of which some runs were taken as measured.

    Attributes
    ----------
    taken : list of ndarray of int
        Of each device, the runs that are taken as measured.
    left : list of ndarray of int
        The others, which are to be predicted.
    """

    taken: list[Integers]
    left: list[Integers]


def trials(device: Names, k: int, seed: int) -> list[Trial]:
    """Take k runs at random from each device, several times; fewer where it has at most k.

    Examples
    --------
    >>> first = trials(np.array(["A", "A", "A", "B"]), 2, seed=0)[0]
    >>> [len(runs) for runs in first.taken], [len(runs) for runs in first.left]
    ([2], [1])
    """
    rng = np.random.default_rng(seed)
    rows = [np.flatnonzero(device == name) for name in sorted(set(device.tolist()) - {""})]
    rows = [own for own in rows if len(own) > 1]
    found = []
    for _ in range(DRAWS):
        mixed = [rng.permutation(own) for own in rows]
        sizes = [min(k, len(own) - 1) for own in mixed]
        found.append(
            Trial(
                [own[:n] for own, n in zip(mixed, sizes, strict=True)],
                [own[n:] for own, n in zip(mixed, sizes, strict=True)],
            )
        )
    return found


def tried(
    z: Floats, errors: Floats, tests: Sequence[Trial], settings: Settings
) -> list[tuple[Integers, Floats, Floats]]:
    """Return, for each trial, its predicted runs, the remaining errors, and `narrower`."""
    pairs = [pair for test in tests for pair in zip(test.taken, test.left, strict=True)]
    weights: dict[int, Floats] = {}
    for at in _batches([(len(taken), 0) for taken, _ in pairs], z.shape[1]):
        rows = np.stack([pairs[i][0] for i in at])
        weights |= dict(zip(at, weights_of(z[rows], errors[rows], settings), strict=True))
    remain: dict[int, tuple[Integers, Floats, Floats]] = {}
    sizes = [(len(taken), len(left)) for taken, left in pairs]
    for at in _batches(sizes, z.shape[1]):
        taken, left = (np.stack([pairs[i][side] for i in at]) for side in (0, 1))
        given = np.stack([weights[i] for i in at])
        shift, narrower = moved(z[taken], errors[taken], given, z[left], settings)
        parts = zip(left, errors[left] - shift, narrower, strict=True)
        remain |= dict(zip(at, parts, strict=True))
    found, first = [], 0
    for test in tests:
        own = [remain[i] for i in range(first, first + len(test.taken))]
        first += len(test.taken)
        rows, after, narrow = (np.concatenate(part) for part in zip(*own, strict=True))
        found.append((rows, after, narrow))
    return found


def _batches(sizes: Sequence[tuple[int, int]], columns: int) -> list[list[int]]:
    """Group trials of the same sizes, as many as fit into an array.

    The sizes are the numbers of measured and of other runs.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for i, size in enumerate(sizes):
        groups.setdefault(size, []).append(i)
    found = []
    for (k, m), at in groups.items():
        step = max(1, _AT_ONCE // max(k * (k + m) * columns, 1))
        found += [at[i : i + step] for i in range(0, len(at), step)]
    return found


def learnt(z: Floats, errors: Floats, tests: Sequence[Trial]) -> Settings:
    """Return the settings that predict the other runs of held-out devices best.

    Examples
    --------
    Devices that differ by 10 % and hardly in anything else:

    >>> rng = np.random.default_rng(0)
    >>> device = np.repeat([f"gpu{i}" for i in range(8)], 6)
    >>> errors = np.repeat(rng.normal(0, 0.1, 8), 6) + rng.normal(0, 0.02, 48)
    >>> learnt(np.zeros((48, 1)), errors, trials(device, 2, seed=0)).shift
    0.1
    """
    scores = [
        np.mean(
            np.concatenate(
                [
                    np.minimum(np.abs(after), _LARGEST)
                    for _, after, _ in tried(z, errors, tests, one)
                ]
            )
        )
        for one in CHOICES
    ]
    return CHOICES[int(np.argmin(scores))]


def next_runs(
    z: Floats, targets: Floats, widths: Floats, settings: Settings, k: int
) -> list[tuple[int, float]]:
    """Return the k runs whose measurement narrows the bands of the targets most, one by one.

    Parameters
    ----------
    z : ndarray, shape (n, p)
        Candidates.
    targets : ndarray, shape (m, p)
    widths : ndarray, shape (m,)
        Widths of the targets' bands without measured runs.

    Returns
    -------
    list of (int, float)
        Each candidate, and the mean width after it and those before it were measured.

    Examples
    --------
    Two of three candidates are alike, so the third is measured first or second:

    >>> z = np.array([[0.0], [0.1], [3.0]])
    >>> found = next_runs(z, z, np.ones(3), Settings(0.05, 0.05, 1.0, 0.03), 2)
    >>> [run for run, _ in found], [round(width, 2) for _, width in found]
    ([1, 2], [0.66, 0.53])
    """
    chosen: list[int] = []
    found = []
    for _ in range(min(k, len(z))):
        best = None
        for candidate in range(len(z)):
            if candidate in chosen:
                continue
            runs = [*chosen, candidate]
            nothing, plain = np.zeros(len(runs)), np.ones(len(runs))
            narrower = moved(z[runs], nothing, plain, targets, settings)[1]
            width = float(np.mean(widths * narrower))
            if best is None or width < best[0] - 1e-12:
                best = (width, candidate)
        assert best is not None
        chosen.append(best[1])
        found.append((best[1], best[0]))
    return found
