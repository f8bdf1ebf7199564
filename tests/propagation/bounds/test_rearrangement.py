from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from errcomp.propagation.bounds import marginals
from errcomp.propagation.bounds.marginals import (
    Marginals,
    inside,
    outside,
    rearrange,
    standard_isf,
    standard_sf,
)

INF = math.inf


def laws(center, spread, count=1.0, *, log=False, df=INF, sign=1, offset=0.0):
    center, spread = np.broadcast_arrays(np.asarray(center, float), np.asarray(spread, float))
    center, spread = np.atleast_1d(center).copy(), np.atleast_1d(spread).copy()
    count = np.broadcast_to(np.asarray(count, float), center.shape).copy()
    return Marginals(center, spread, count, offset, log, df, sign)


def tail_cells(ppf, q, cells, columns):
    x = ppf(q + (1 - q) * np.arange(cells) / cells)
    return np.repeat(x[:, None], columns, axis=1)


# --- rearrangement of a matrix


def test_two_uniform_columns_become_constant() -> None:
    rows = rearrange(tail_cells(lambda u: u, 0.9, 1000, 2))
    # Largest 90 % quantile of a sum of two uniforms is 1.9; the cells' lower ends miss 1 cell.
    np.testing.assert_allclose(rows, 1.9 - 1e-4, atol=1e-12)


def test_three_uniform_columns_mix_to_their_mean() -> None:
    rows = rearrange(tail_cells(lambda u: u, 0.9, 999, 3))
    assert rows.min() == pytest.approx(3 * 0.95, abs=5e-4)


def test_rows_keep_their_total_and_the_input_its_order() -> None:
    x = np.random.default_rng(1).normal(size=(50, 4))
    before = x.copy()
    rows = rearrange(x)
    assert rows.sum() == pytest.approx(x.sum())
    assert rows.min() > x.sum(axis=1).min()
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("columns", [2, 3])
def test_never_better_than_all_permutations_and_best_for_two_columns(columns: int) -> None:
    rng = np.random.default_rng(columns)
    for _ in range(20):
        x = rng.normal(size=(4, columns))
        orders = list(itertools.permutations(range(4)))
        best = max(
            sum(x[list(order), j] for j, order in enumerate([orders[0], *chosen])).min()
            for chosen in itertools.product(orders, repeat=columns - 1)
        )
        found = rearrange(x).min()
        assert found <= best + 1e-12
        if columns == 2:
            assert found == pytest.approx(best)


def pareto_dual_bound(d: int, q: float) -> float:
    """Largest quantile of d Pareto variables with tail (1 + x)⁻², by the formula for equal laws."""

    def tail(s: float) -> float:
        def at(t: float) -> float:
            top = s - (d - 1) * t
            return d / (s - d * t) * (1 / (1 + t) - 1 / (1 + top))

        return optimize.minimize_scalar(at, bounds=(0, s / d * (1 - 1e-9)), method="bounded").fun

    return optimize.brentq(lambda s: tail(s) - (1 - q), 1.0, 1e4)


def test_eight_paretos_reach_the_dual_bound() -> None:
    expected = pareto_dual_bound(8, 0.99)
    assert expected == pytest.approx(141.67, abs=0.01)
    rows = rearrange(tail_cells(lambda u: (1 - u) ** -0.5 - 1, 0.99, 20_000, 8))
    assert 0.99 * expected < rows.min() <= expected


# --- laws of single terms

KINDS = [
    (False, INF),
    (False, 3.0),
    (False, 1.4),
    (False, 1.0),
    (False, 0.7),
    (True, INF),
    (True, 4.0),
]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("log", "df"), KINDS)
def test_excess_is_the_integral_of_the_tail(log: bool, df: float, sign: int) -> None:
    m = laws([1.0, -0.5], [0.3, 0.8], log=log, df=df, sign=sign)
    for level, d in itertools.product([0.3, 0.01], [1e-3, 0.5, 20.0]):
        t = np.full(2, float(standard_isf(np.asarray(level), df)))
        start = m.quantile(t)
        found = m.excess(t, np.asarray(d))
        for i in range(2):
            one = laws(m.center[i], m.spread[i], log=log, df=df, sign=sign)
            end = min(start[i] + d, 0.0) if log and sign < 0 else start[i] + d
            expected = integrate.quad(
                lambda x, one=one: one.sf(x)[0], start[i], end, epsabs=1e-13, limit=200
            )[0]
            assert found[i] == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("spread", [1e-9, 0.999e-6, 1.001e-6, 1e-3, 0.5])
def test_stop_loss_of_any_spread(spread: float, sign: int) -> None:
    m = laws(2.0, spread, log=True, sign=sign)
    found = float(m.stop_loss(np.array([1.0]))[0])
    step = integrate.quad(
        lambda t: standard_sf(np.asarray(t), INF) * math.exp(sign * spread * t), 1.0, 40.0
    )[0]
    assert found == pytest.approx(math.exp(2.0) * spread * step, rel=1e-6)


def test_stop_loss_beyond_the_largest_value_is_nothing() -> None:
    m = laws(0.0, 0.5, log=True, sign=-1)
    beyond = m.shift(np.array([0.0]), np.asarray(5.0))
    assert np.isposinf(beyond).all()
    assert m.stop_loss(beyond)[0] == 0.0


@pytest.mark.parametrize(("log", "df"), KINDS)
def test_shift_moves_the_value_by_d(log: bool, df: float) -> None:
    m = laws([1.0, 2.0], [0.1, 0.5], log=log, df=df)
    t = np.array([0.3, -0.2])
    np.testing.assert_allclose(m.quantile(m.shift(t, np.asarray(0.7))), m.quantile(t) + 0.7)
    np.testing.assert_allclose(m.sf(2.0), standard_sf(m.shift(t, 2.0 - m.quantile(t)), df))


# --- bounds from outside


def test_two_equal_normals_are_twice_the_outer_quantile() -> None:
    bound = outside(laws([0.0], [1.0], 2), 0.05)
    assert bound == pytest.approx(2 * stats.norm.isf(0.025), abs=1e-4)


@pytest.mark.parametrize("alpha", [0.05, 0.4])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("log", "df"), [(False, INF), (False, 3.0), (True, INF), (True, 4.0)])
def test_two_different_terms_are_sharp(log: bool, df: float, sign: int, alpha: float) -> None:
    m = laws([0.2, 0.0], [0.1, 0.3], log=log, df=df, sign=sign)

    def split(share: float) -> float:
        t = standard_isf(alpha * np.array([share, 1 - share]), df)
        return float(m.quantile(t).sum())

    grid = np.linspace(1e-6, 1 - 1e-6, 5001)
    sharp = min(split(share) for share in grid)  # Makarov: the best union bound of two
    assert sharp - 1e-6 <= outside(m, alpha) <= sharp + 3e-3


def equal_laws(m: Marginals, d: int, alpha: float) -> float:
    """Dual bound of d equal laws: one threshold, by quadrature."""
    start = float(standard_isf(np.asarray(alpha), m.df))
    stop = float(standard_isf(np.asarray(alpha / d), m.df))

    def bound(t: float) -> float:
        r = float(m.quantile(np.array([t]))[0])

        def left(width: float) -> float:
            tail = integrate.quad(lambda x: m.sf(x)[0], r, r + width, epsabs=1e-8)[0]
            return d * tail - alpha * width

        high = 1.0
        while left(high) > 0:
            high *= 2
        return d * r + optimize.brentq(left, 1e-6, high, xtol=1e-6)

    grid = np.linspace(start, stop, 21)[:-1]
    k = int(np.argmin([bound(t) for t in grid]))
    around = (grid[max(k - 1, 0)], grid[min(k + 1, 19)])
    return optimize.minimize_scalar(bound, bounds=around, method="bounded").fun


@pytest.mark.parametrize(("log", "df", "d"), [(True, INF, 5), (False, 2.0, 4), (True, 4.0, 3)])
def test_equal_laws_have_the_known_bound(log: bool, df: float, d: int) -> None:
    expected = equal_laws(laws(0.0, 0.3, log=log, df=df), d, 0.05)
    found = outside(laws(0.0, 0.3, d, log=log, df=df), 0.05)
    assert found == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize("sign", [1, -1])
def test_many_terms_reach_the_sum_of_expected_shortfalls(sign: int) -> None:
    rng = np.random.default_rng(3)
    m = laws(rng.normal(size=400), rng.uniform(0.1, 0.4, 400), log=True, sign=sign, offset=7.0)
    t = np.full(400, stats.norm.isf(0.05))
    shortfall = 7.0 + float((m.quantile(t) + m.stop_loss(t) / 0.05).sum())
    found = outside(m, 0.05)
    assert found <= shortfall + 1e-9
    assert found == pytest.approx(shortfall, rel=1e-6)
    assert inside(m, 0.05, outer=found, tolerance=1e-3) == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize("df", [1.0, 4.0])
def test_terms_without_a_mean_have_finite_bounds(df: float) -> None:
    rng = np.random.default_rng(4)
    n = 200  # more than are treated one by one
    m = laws(rng.normal(size=n), rng.uniform(0.05, 0.2, n), log=df == 4.0, df=df)
    union = float(m.quantile(np.full(n, float(standard_isf(np.asarray(0.05 / n), df)))).sum())
    como = float(m.quantile(np.full(n, float(standard_isf(np.asarray(0.05), df)))).sum())
    found = outside(m, 0.05)
    reached = inside(m, 0.05, outer=found, tolerance=1e-3)
    assert como < reached <= found < union


@pytest.mark.parametrize(
    ("effort", "expected"),
    [(10 * 1024 - 1, [256]), (10 * 1024, [256, 1024]), (10**9, [256, 1024, 4096])],
)
def test_cells_become_finer_until_the_effort_is_spent(
    effort: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = []

    def counted(values: np.ndarray) -> np.ndarray:
        cells.append(len(values))
        return rearrange(values)

    monkeypatch.setattr(marginals, "rearrange", counted)
    monkeypatch.setattr(marginals, "_EFFORT", effort)
    inside(laws(np.zeros(10), np.linspace(1, 2, 10)), 0.05, outer=1e6, tolerance=1e-3)
    assert cells == expected


def test_cells_stay_coarse_where_they_are_fine_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = []
    monkeypatch.setattr(marginals, "rearrange", lambda x: cells.append(len(x)) or rearrange(x))
    m = laws([1.0, 1.0], [0.2, 0.2])
    inside(m, 0.05, outer=outside(m, 0.05), tolerance=0.1)
    assert cells == [256]


def test_certain_terms_and_one_uncertain_one() -> None:
    m = laws([1.0], [0.2], log=True, offset=3.0)
    expected = 3.0 + math.exp(1.0 + 0.2 * stats.norm.isf(0.1))
    assert outside(m, 0.1) == pytest.approx(expected)
    reached = inside(m, 0.1, outer=expected, tolerance=1e-3)
    assert reached == pytest.approx(expected)


def test_one_large_term_among_small_ones() -> None:
    m = laws([0.0, 0.0, 0.0], [100.0, 1.0, 1.0])
    # Of 95 % the large one takes nearly all: near its own 5 % quantile.
    assert outside(m, 0.95) == pytest.approx(inside(m, 0.95, outer=0, tolerance=1e-9), abs=1.5)
    assert outside(m, 0.95) < 100 * stats.norm.isf(0.95) + 8


def test_lower_bound_of_times_is_at_least_that_of_the_largest() -> None:
    m = laws([5.0, 0.0, 0.0], [0.1, 1.0, 1.0], log=True, sign=-1)
    assert -outside(m, 0.9) >= math.exp(5.0 + 0.1 * stats.norm.ppf(0.9)) * (1 - 1e-6)


def test_bounds_too_large_for_a_number_are_infinite() -> None:
    m = laws(np.zeros(100), np.linspace(200, 300, 100), log=True, df=1.0)
    assert outside(m, 1e-6) == math.inf


@pytest.mark.parametrize(("log", "df", "spread"), [(False, 0.8, 1.0), (True, 2.0, 0.1)])
def test_terms_that_are_cut_off_pay_for_it(log: bool, df: float, spread: float) -> None:
    # Laws that are equal are one law and sharp; if they differ a little, most of them are cut off.
    n = 400
    sharp = outside(laws([0.0], [spread], n, log=log, df=df), 0.05)
    wide = outside(laws(np.zeros(n), spread * (1 + 1e-9 * np.arange(n)), log=log, df=df), 0.05)
    assert sharp * (1 - 1e-6) <= wide < 10 * sharp


def test_chosen_laws_leave_the_certain_terms_behind() -> None:
    chosen = laws([1.0, 2.0, 3.0], 0.5, [1, 2, 3], offset=7.0).take(np.array([2, 0]))
    assert chosen.offset == 0.0
    assert (chosen.center.tolist(), chosen.count.tolist()) == ([3.0, 1.0], [3.0, 1.0])
