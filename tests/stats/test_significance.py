"""The tests and tails that are computed here are those of SciPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from errcomp.stats.significance import (
    rank_sum_p,
    ranks,
    sign_p,
    signed_rank_p,
    spearman_less,
    student_ppf,
    student_sf,
)

Floats = NDArray[np.float64]
SIZES = [(1, 1), (1, 9), (4, 12), (8, 10), (8, 200), (9, 9), (30, 40)]


def drawn(n: int, seed: int, *, tied: bool) -> Floats:
    values = np.random.default_rng(seed).lognormal(1.0, size=n)
    return values.round() if tied else values


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_rank_sums(sizes: tuple[int, int], tied: bool) -> None:
    for seed in range(10):
        x, y = drawn(sizes[0], seed, tied=tied), 1.5 * drawn(sizes[1], seed + 99, tied=tied)
        if np.ptp(np.concatenate((x, y))):
            expected = scipy.stats.mannwhitneyu(x, y).pvalue
            assert rank_sum_p(x, y) == pytest.approx(expected, rel=1e-10)


def test_rank_sums_of_equal_values_and_of_many_orders() -> None:
    assert rank_sum_p(np.ones(9, dtype=np.float64), np.ones(12, dtype=np.float64)) == 1.0
    # More orders than a 64-bit number counts; the two sides are those of each other.
    x = np.arange(8, dtype=np.float64) + 0.5
    y = np.arange(3000, dtype=np.float64)
    assert rank_sum_p(x, y) == pytest.approx(rank_sum_p(y, x), rel=1e-12)
    assert rank_sum_p(x, y) < 1e-6


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n", [6, 7, 12, 13, 50, 51, 80])
def test_signed_ranks(n: int, tied: bool) -> None:
    for seed in range(3):
        a, b = drawn(n, seed, tied=tied), drawn(n, seed + 99, tied=tied)
        if tied and n <= 13:
            # SciPy has no exact law of ties, or takes long for it; here it is counted.
            expected = signed_ranks_counted(a - b)
        else:
            expected = float(scipy.stats.wilcoxon(a, b).pvalue)
        assert signed_rank_p(a, b) == pytest.approx(expected, rel=1e-10)


def signed_ranks_counted(difference: Floats) -> float:
    """Try all signs."""
    some = difference[difference != 0]
    rank = scipy.stats.rankdata(np.abs(some))
    signs = (np.arange(2 ** len(some))[:, None] >> np.arange(len(some))) & 1
    sums, reached = signs @ rank, rank[some > 0].sum()
    return float(min(1.0, 2 * min((sums <= reached).mean(), (sums >= reached).mean())))


@pytest.mark.parametrize(
    ("high", "n"), [(0, 1), (5, 10), (9, 10), (3, 8), (60, 100), (1, 200), (980, 2000)]
)
def test_signs(high: int, n: int) -> None:
    assert sign_p(high, n) == pytest.approx(scipy.stats.binomtest(high, n).pvalue, rel=1e-12)


def test_few_signs_are_counted_in_whole_numbers() -> None:
    assert sign_p(1, 14) == 2 * (1 + 14) / 2**14
    assert sign_p(500, 1000) == 1.0


@pytest.mark.parametrize("tied", [False, True])
def test_rank_correlation(tied: bool) -> None:
    x, y = drawn(30, 1, tied=tied), -drawn(30, 1, tied=tied) + drawn(30, 2, tied=tied)
    assert ranks(x).tolist() == scipy.stats.rankdata(x).tolist()
    expected = scipy.stats.spearmanr(x, y, alternative="less")
    assert spearman_less(x, y) == (expected.statistic, expected.pvalue)
    assert spearman_less(x, -x)[1] < 1e-100


def test_tails_of_student() -> None:
    for df in (1, 2.5, 10, 300):
        assert student_ppf(0.975, df) == scipy.stats.t.ppf(0.975, df)
        assert student_ppf(1e-9, df) == scipy.stats.t.ppf(1e-9, df)
        for x in (-1.0, 0.0, 2.0, np.inf):
            assert student_sf(x, df) == scipy.stats.t.sf(x, df)


@pytest.mark.core
def test_an_audit_does_without_the_package_that_takes_long_to_import() -> None:
    code = (
        "import sys\n"
        "from errcomp.cli import main\n"
        "assert main(['audit', 'neusight', '--tool', 'all', '--where', 'device=H100']) == 0\n"
        "assert 'scipy.special' in sys.modules and 'scipy.stats' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
