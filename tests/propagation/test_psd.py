from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg

from errcomp.errors import ErrcompError, InputError
from errcomp.propagation import psd
from errcomp.propagation.psd import check_correlation, nearest_correlation

IMPOSSIBLE = [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]


def test_a_correlation_matrix_comes_back() -> None:
    r = check_correlation([[1, 0.5], [0.5, 1]], n=2, names=["a", "b"])
    np.testing.assert_array_equal(r, [[1, 0.5], [0.5, 1]])


def test_rounding_is_put_right() -> None:
    r = check_correlation([[1 + 1e-12, 1 + 1e-12], [1 - 1e-12, 1]])
    np.testing.assert_array_equal(r, np.ones((2, 2)))


@pytest.mark.parametrize("n", [1, 2, 300])
def test_singular_matrices_are_possible(n: int) -> None:
    np.testing.assert_array_equal(check_correlation(np.ones((n, n))), np.ones((n, n)))


def test_the_input_stays_as_it_is() -> None:
    given = np.array([[1.0, 0.5], [0.5, 1.0]])
    check_correlation(given)[0, 1] = 9.0
    nearest_correlation(given)[0, 1] = 9.0
    assert given[0, 1] == 0.5


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 0.5]], r"must be a square matrix, got shape \(1, 2\)"),
        ([1, 1], r"got shape \(2,\)"),
        (np.empty((0, 0)), r"got shape \(0, 0\)"),
        ([["a"]], "must be a matrix of numbers"),
        ([[1], [1, 2]], "must be a matrix of numbers"),
        ([[1, math.nan], [0.5, 1]], r"must be finite, got \(1, 2\) = nan"),
        ([[1, 0.5], [0.4, 1]], r"must be symmetric, got \(1, 2\) = 0.5 but \(2, 1\) = 0.4"),
        ([[4, 0.5], [0.5, 1]], r"1 on the diagonal, got \(1, 1\) = 4. Divide a covariance"),
        ([[1, 1.5], [1.5, 1]], r"must be in \[-1, 1\], got \(1, 2\) = 1.5"),
        (IMPOSSIBLE, r"smallest eigenvalue is -0.8, below -1e-08"),
        (IMPOSSIBLE, r"\(1, 3\) = -0.9.*nearest_correlation\(matrix\)"),
    ],
)
def test_what_is_no_correlation_matrix(matrix: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_correlation(matrix)


def test_names_and_counts_in_messages() -> None:
    r = np.eye(4)
    r[0, 1:] = r[1:, 0] = [2, 3, 4]
    with pytest.raises(InputError, match=r"\(gemm, copy\) = 2, \(gemm, norm\) = 3, \(gemm, silu\)"):
        check_correlation(r, names=["gemm", "copy", "norm", "silu"])
    bad = np.full((4, 4), 7.0)
    np.fill_diagonal(bad, 1.0)
    with pytest.raises(InputError, match=r"\(1, 4\) = 7 \(and 3 more\)"):
        check_correlation(bad)
    with pytest.raises(InputError, match="square matrix with 3 rows, got shape"):
        check_correlation(np.eye(2), n=3)
    with pytest.raises(InputError, match="names: must be one per row, got 1 for 2 rows"):
        check_correlation(np.eye(2), names=["a"])


def test_the_entry_that_was_changed_is_named() -> None:
    r = np.corrcoef(np.random.default_rng(0).normal(size=(30, 40)))
    r[4, 17] = r[17, 4] = -0.99
    with pytest.raises(
        InputError, match=r"In conflict with the other correlations: \(5, 18\) = -0.99"
    ):
        check_correlation(r)


def test_slightly_negative_eigenvalues_are_rounding() -> None:
    r = np.ones((3, 3))
    r[0, 1] = r[1, 0] = 1 - 5e-9
    smallest = linalg.eigvalsh(r)[0]
    assert smallest < 0
    np.testing.assert_array_equal(check_correlation(r), r)
    r[0, 1] = r[1, 0] = 1 - 1e-6
    with pytest.raises(InputError, match="cannot all hold"):
        check_correlation(r)


def test_nearest_of_three() -> None:
    found = nearest_correlation([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    near, far = 0.7607, 0.1573
    expected = [[1, near, far], [near, 1, near], [far, near, 1]]
    np.testing.assert_allclose(found, expected, atol=5e-5)


def test_nearest_of_the_tridiagonal_example() -> None:
    a = 2 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)
    expected = [
        [1.0000, -0.8084, 0.1916, 0.1068],
        [-0.8084, 1.0000, -0.6562, 0.1916],
        [0.1916, -0.6562, 1.0000, -0.8084],
        [0.1068, 0.1916, -0.8084, 1.0000],
    ]
    np.testing.assert_allclose(nearest_correlation(a), expected, atol=5e-5)


@pytest.mark.parametrize("n", [3, 10, 40])
def test_nearest_is_a_projection(n: int) -> None:
    rng = np.random.default_rng(n)
    a = rng.uniform(-1, 1, (n, n))
    a = (a + a.T) / 2
    np.fill_diagonal(a, 1.0)
    found = nearest_correlation(a)
    np.testing.assert_array_equal(np.diagonal(found), 1.0)
    np.testing.assert_array_equal(check_correlation(found), found)
    # The angle between what is left and the way to any other correlation matrix is not acute.
    for _ in range(50):
        other = np.corrcoef(rng.normal(size=(n, n + rng.integers(1, 20))))
        assert np.sum((a - found) * (other - found)) <= 1e-7 * n
    np.testing.assert_allclose(nearest_correlation(found), found, atol=1e-8)


def test_nearest_refuses_what_is_not_symmetric() -> None:
    with pytest.raises(InputError, match="must be symmetric"):
        nearest_correlation([[1, 0.5], [0.4, 1]])
    with pytest.raises(InputError, match="must be finite"):
        nearest_correlation([[1, math.inf], [math.inf, 1]])


def test_nearest_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psd, "_ITERATIONS", 2)
    with pytest.raises(ErrcompError, match="no convergence in 2 steps"):
        nearest_correlation([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
