"""Corrections learnt from kernels in engines: those of the same rows in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from errcomp import datasets
from errcomp.calibration.kernels import KernelCorrection
from errcomp.errors import InputError
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_of
from errcomp.tables.engine import groups as _cells
from errcomp.tables.engine.kernels import KernelRows
from tests.tables.engine.test_engines import DASK, ENGINES

pytestmark = pytest.mark.extras

Make = Callable[[str, pl.DataFrame], Any]


@pytest.fixture(scope="module")
def neusight() -> pl.DataFrame:
    return pl.DataFrame(datasets.load("neusight-kernels").native)


@pytest.fixture(scope="module")
def half(neusight: pl.DataFrame) -> pl.DataFrame:
    """Kernels of every second device."""
    devices = neusight["device"].unique(maintain_order=True)
    return neusight.filter(pl.col("device").is_in(devices.gather_every(2).to_list()))


@pytest.fixture(scope="module")
def in_memory(half: pl.DataFrame) -> KernelCorrection:
    return KernelCorrection().fit(Kernels(half))


def repeated(table: pl.DataFrame, times: int, noise: float) -> pl.DataFrame:
    """Measure every kernel several times."""
    every = pl.concat([table] * times)
    factors = np.exp(noise * np.random.default_rng(0).standard_normal(len(every)))
    return every.with_columns(pl.col("measured") * pl.Series(factors))


def differ(one: KernelCorrection, other: KernelCorrection, table: pl.DataFrame) -> dict[str, float]:
    """Return the largest relative differences of what two corrections say."""
    found, expected = (fitted.apply(Kernels(table)) for fitted in (one, other))
    assert found.level.tolist() == expected.level.tolist()
    assert found.added.tolist() == expected.added.tolist()
    return {
        name: float(np.max(np.abs(getattr(found, name) / getattr(expected, name) - 1)))
        for name in ("predicted", "spread", "total", "total_spread")
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_exact_where_a_group_is_one_kernel(
    engine: str, half: pl.DataFrame, in_memory: KernelCorrection, to_engine: Make
) -> None:
    # Sums in another order: likelihoods are maximised to six digits.
    found = KernelCorrection().fit(KernelRows(to_engine(engine, half)))
    assert found.n_ == in_memory.n_ > 1000
    assert max(differ(found, in_memory, half).values()) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("times", "noise"), [(10, 0.05), (20, 0.01), (5, 0.2)])
def test_factors_agree_to_a_thousandth_where_kernels_repeat(
    times: int, noise: float, neusight: pl.DataFrame
) -> None:
    table = repeated(neusight, times, noise)
    found, expected = (KernelCorrection().fit(one) for one in (table.lazy(), table))
    assert found.n_ == expected.n_ == times * len(neusight)
    off = differ(found, expected, neusight)
    assert max(off["predicted"], off["total"]) < 1e-3
    assert max(off["spread"], off["total_spread"]) < 1e-2


def test_only_groups_are_fetched(neusight: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched, collect = [], nw.LazyFrame.collect

    def watched(self: Any, *args: Any, **options: Any) -> Any:
        table = collect(self, *args, **options)
        fetched.append(len(table))
        return table

    monkeypatch.setattr(nw.LazyFrame, "collect", watched)
    few = neusight.filter(pl.col("run") == neusight["run"][0])
    many = repeated(few, 100, 0.02)
    fitted = KernelCorrection().fit(many.lazy())
    assert fitted.n_ == len(many)
    assert max(fetched) < len(many) / 5


def kernels(**changes: Any) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    n = 200
    predicted = np.exp(rng.integers(0, 6, n).astype(float))
    data = {
        "run": [f"r{i}" for i in rng.integers(0, 6, n)],
        "kernel": [f"k{i}" for i in rng.integers(0, 9, n)],
        "kernel_class": ["BMM", "VEC"] * (n // 2),
        "device": ["T4"] * (n // 2) + ["L4"] * (n // 2),
        "vendor": ["N"] * n,
        "count": rng.integers(1, 4, n),
        "predicted": predicted,
        "measured": predicted * np.exp(0.2 + 0.1 * rng.standard_normal(n)),
    }
    return pl.DataFrame({**data, **changes})


def spoilt(name: str, value: Any, rows: int = 1) -> pl.DataFrame:
    table = kernels()
    other = pl.lit(value, dtype=table.schema[name])
    return table.with_columns(
        pl.when(pl.int_range(pl.len()) < rows).then(other).otherwise(name).alias(name)
    )


@pytest.mark.parametrize("engine", ["Polars", "DuckDB", DASK])
def test_what_is_not_learnt_from_is_counted(engine: str, to_engine: Make) -> None:
    position = pl.int_range(pl.len())
    table = kernels().with_columns(
        measured=pl.when(position < 4)
        .then(None)
        .when(position < 9)
        .then(0.0)
        .when(position == 9)
        .then(math.nan)
        .otherwise("measured"),
        device=pl.when(position >= 198).then(None).otherwise("device"),
        status=pl.when(position.is_in([50, 51, 52])).then(pl.lit("failed")),
    )
    rows = KernelRows(to_engine(engine, table))
    found, expected = (KernelCorrection(family="vendor").fit(one) for one in (rows, Kernels(table)))
    assert found.n_ == expected.n_
    assert [(d.reason, d.n) for d in found.dropped_] == [
        ("not measured", 5),
        ("measured as 0", 5),
        ("without a device", 2),
    ]
    assert [(d.reason, d.n) for d in rows.dropped] == [("the prediction failed (status)", 3)]
    assert [(d.reason, d.n) for d in expected.dropped_] == [(d.reason, d.n) for d in found.dropped_]
    off = differ(found, expected, table.filter(pl.col("device").is_not_null()).drop("status"))
    assert off["predicted"] < 1e-3


BAD: dict[str, tuple[str, Any, str]] = {
    "negative": ("measured", -1.0, r"k: measured must be finite and ≥ 0, got -1\.0 in 1 row: run="),
    "infinite": (
        "measured",
        math.inf,
        "k: measured must be finite and ≥ 0, got inf in 1 row: run=",
    ),
    "unpredicted": ("predicted", None, "k: predicted is missing in 1 row: run="),
    "below": ("predicted", -2.0, r"k: predicted must be finite and ≥ 0, got -2\.0 in 1 row: run="),
    "class": ("kernel_class", None, "k: kernel_class is missing in 1 row: run="),
    "count": ("count", 0, r"k: count must be a whole number .* got 0\.0 in 1 row: run="),
}


@pytest.mark.parametrize("engine", ["Polars", "DuckDB", DASK])
@pytest.mark.parametrize("what", BAD)
def test_rows_that_cannot_be_used_are_named_by_their_keys(
    what: str, engine: str, to_engine: Make
) -> None:
    name, value, message = BAD[what]
    rows = KernelRows(to_engine(engine, spoilt(name, value)), source="k")
    with pytest.raises(InputError, match=message):
        KernelCorrection().fit(rows)


def test_the_same_is_refused_as_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: dict[str, pl.DataFrame] = {
        "kernels come from several tools": kernels(tool=["a", "b"] * 100),
        "missing column measured": kernels().drop("measured"),
        r"mixed units: 'ms' and 's' \(the second in 100 rows: run=": kernels(
            unit=["ms", "s"] * 100
        ),
        "measured must be a number, but the column holds String": kernels(measured=["1"] * 200),
        r"no usable kernels \(200 dropped: the prediction failed": kernels(status=["oom"] * 200),
        r"no kernel to learn from \(200 measured as 0\)": kernels(measured=[0.0] * 200),
    }
    for message, table in cases.items():
        with pytest.raises(InputError, match=message):
            KernelCorrection().fit(table.lazy())
    with pytest.raises(
        InputError, match=r"no column 'make'\. The parameter 'family' must name the column that"
    ):
        KernelCorrection(family="make").fit(kernels().lazy())
    monkeypatch.setattr(_cells, "_MOST", 20)
    with pytest.raises(
        InputError, match="more than 20 groups by run, kernel, kernel_class, device"
    ):
        KernelCorrection().fit(kernels().lazy())


def test_columns_are_those_of_kernels() -> None:
    table = kernels().rename({"measured": "ms", "kernel_class": "op"}).drop("kernel")
    options: dict[str, Any] = {"columns": {"measured": "ms", "kernel_class": "op"}, "unit": "ms"}
    found = kernels_of(KernelRows(table.lazy(), **options), None)
    behind = found.behind
    assert found.unit == "ms"
    assert behind.n.sum() == len(table)
    fits = [KernelCorrection().fit(one) for one in (KernelRows(table.lazy(), **options),
                                                    Kernels(table, **options))]  # fmt: skip
    new = kernels().drop("measured")
    assert differ(*fits, new)["predicted"] < 1e-3
