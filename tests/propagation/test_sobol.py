from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import qmc

from errcomp.propagation.montecarlo.sobol import ScrambledSobol


def test_one_point_in_each_interval_of_every_coordinate() -> None:
    points = ScrambledSobol(32, 512, seed=4).chunk(replicate=3, index=0, size=512)
    for row in points:
        np.testing.assert_array_equal(np.sort(np.floor(512 * row)), np.arange(512))


def test_first_two_coordinates_make_a_zero_net() -> None:
    x, y = ScrambledSobol(2, 1024, seed=4).chunk(replicate=0, index=0, size=1024)
    for bits in range(11):
        boxes = np.floor(2**bits * x) * 2**10 + np.floor(2 ** (10 - bits) * y)
        assert len(np.unique(boxes)) == 1024


def test_chunks_make_up_the_net_and_the_net_grows() -> None:
    small, large = ScrambledSobol(5, 256, seed=1), ScrambledSobol(5, 1024, seed=1)
    whole = large.chunk(replicate=2, index=0, size=1024)
    parts = [large.chunk(replicate=2, index=i, size=64) for i in range(16)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    np.testing.assert_array_equal(small.chunk(replicate=2, index=0, size=256), whole[:, :256])


def test_replicates_differ_and_seeds_repeat() -> None:
    sobol = ScrambledSobol(3, 64, seed=9)
    first = sobol.chunk(replicate=0, index=0, size=64)
    assert not (first == sobol.chunk(replicate=1, index=0, size=64)).any()
    again = ScrambledSobol(3, 64, seed=9).chunk(replicate=0, index=0, size=64)
    assert again.tobytes() == first.tobytes()


def test_a_point_is_uniform_over_the_scramblings() -> None:
    sobol = ScrambledSobol(2, 4, seed=0)
    points = np.array([sobol.chunk(replicate=r, index=0, size=4)[:, 1] for r in range(2000)])
    assert points.min() > 0
    assert points.max() < 1
    np.testing.assert_allclose(points.mean(axis=0), 0.5, atol=4 / math.sqrt(12 * 2000))
    assert abs(np.corrcoef(points.T)[0, 1]) < 4 / math.sqrt(2000)


@pytest.mark.parametrize("points", [64, 512])
def test_error_is_that_of_the_usual_scrambling(points: int) -> None:
    def integrals(nets: list[np.ndarray]) -> float:
        return float(np.std([np.exp(net.sum(axis=0) / 8).mean() for net in nets]))

    ours = ScrambledSobol(8, points, seed=0)
    got = integrals([ours.chunk(replicate=r, index=0, size=points) for r in range(100)])
    usual = integrals([qmc.Sobol(8, seed=r).random(points).T for r in range(100)])
    chance = integrals([np.random.default_rng(r).random((8, points)) for r in range(100)])
    # Two standard deviations from 100 values each: their ratio is within a factor of 1.5.
    assert usual / 1.5 < got < 1.5 * usual
    assert got < chance / 10
