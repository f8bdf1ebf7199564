"""Groups of times: what is known of each without its rows, to how many digits."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from errcomp.tables.engine import Rows
from errcomp.tables.engine.groups import cells_of


@pytest.mark.parametrize("spread", [1e-2, 1e-4, 1e-5])
def test_the_scatter_of_large_numbers_keeps_its_digits(spread: float) -> None:
    rng = np.random.default_rng(0)
    values = np.exp(20.06 + spread * rng.standard_normal(1000))
    rows = Rows(pl.LazyFrame({"measured": values, "k": [1] * 1000}))
    found = cells_of(rows, ["k"], bucketed="measured").logs["measured"]
    log = np.log(values)
    assert len(found.value) == 1
    assert np.log(found.value[0]) == pytest.approx(log.mean(), rel=1e-14)
    exact = math.fsum((log - log.mean()) ** 2)
    assert found.scatter[0] == pytest.approx(exact, rel=1e-7 if spread < 1e-4 else 1e-9)


def test_what_is_equal_is_kept_as_it_is_written() -> None:
    values = [0.1, 0.1, 0.1, 7.7, 7.7000001]
    rows = Rows(pl.LazyFrame({"measured": values, "k": [1, 1, 1, 2, 2]}))
    cells = cells_of(rows, ["k"], bucketed="measured")
    at = {k: i for i, k in enumerate(cells.keys["k"])}
    found = cells.logs["measured"]
    assert found.value[at[1]] == 0.1
    assert (found.alike[at[1]], found.scatter[at[1]]) == (True, 0.0)
    assert not found.alike[at[2]]
    assert found.scatter[at[2]] > 0


def test_what_has_no_logarithm_is_a_group_of_its_own() -> None:
    values = [1.0, 0.0, 0.0, math.nan, None, -2.0, math.inf]
    rows = Rows(pl.LazyFrame({"measured": values, "k": [1] * 7}))
    cells = cells_of(rows, ["k"], bucketed="measured")
    shown = {str(v): n for v, n in zip(cells.logs["measured"].written(), cells.n, strict=True)}
    assert shown in (
        {"1.0": 1, "0.0": 2, "nan": 1, "None": 1, "-2.0": 2},
        {"1.0": 1, "0.0": 2, "nan": 1, "None": 1, "inf": 2},
    )


@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.02, 0.5])
def test_spreads_add_up_as_variances_of_logarithms(size: float) -> None:
    spread = np.array([0.7, 1.0, 1.6]) * size
    rows = Rows(pl.LazyFrame({"measured": [1.0] * 4, "s": [*spread, None]}))
    cells = cells_of(rows, [], bucketed="measured", spread="s")
    known = np.isfinite(cells.spread)
    assert sorted(cells.n.tolist()) == [1, 3]
    expected = math.sqrt(math.expm1(np.mean(np.log1p(spread**2))))
    assert cells.spread[known][0] == pytest.approx(expected, rel=1e-10)
