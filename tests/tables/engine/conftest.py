"""The same pairs in every engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from shutil import which
from typing import Any

import numpy as np
import polars as pl
import pytest


@pytest.fixture(scope="session")
def table() -> pl.DataFrame:
    """Pairs with keys of several types, some missing, and some predictions that failed."""
    rng = np.random.default_rng(0)
    n = 6000
    measured = np.exp(rng.standard_normal(n))
    model = rng.integers(0, 12, n)
    return pl.DataFrame(
        {
            "predicted": measured * np.exp(0.1 * rng.standard_normal(n) + 0.05 * (model % 3)),
            "measured": measured,
            "device": rng.integers(0, 3, n),
            "model": [None if k == 7 else f"net{k}" for k in model.tolist()],
            "run": [f"r{k}" for k in rng.integers(0, 30, n).tolist()],
            "status": np.where(rng.random(n) < 0.01, " Failed", "OK"),
        }
    )


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Start a Spark with two workers on this machine; needs Java."""
    sql = pytest.importorskip("pyspark.sql")
    if which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java (Debian: default-jre-headless)")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",
    }
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def to_engine(request: pytest.FixtureRequest) -> Callable[[str, pl.DataFrame], Any]:
    """Give a table to an engine, in parts where the engine has parts."""

    def make(engine: str, table: pl.DataFrame) -> Any:
        if engine == "Polars":
            return table.lazy()
        if engine == "pandas":
            pytest.importorskip("pandas")
            return table.to_pandas()
        if engine == "PyArrow":
            pytest.importorskip("pyarrow")
            return table.to_arrow()
        if engine == "DuckDB":
            duckdb = pytest.importorskip("duckdb")
            return duckdb.from_arrow(table.to_arrow())
        if engine == "Dask":
            dataframe = pytest.importorskip("dask.dataframe")
            return dataframe.from_pandas(table.to_pandas(), npartitions=4)
        return request.getfixturevalue("spark").createDataFrame(table.to_pandas()).repartition(4)

    return make
