"""Fingerprints: the same for the same table from wherever, another for every change."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

from errcomp import datasets
from errcomp.calibration.modelfile import fingerprint
from errcomp.readers.kernels import read
from errcomp.tables import Kernels

COLUMNS = {
    "run": ["a", "a", "b"],
    "kernel": ["mm", "add", "mm"],
    "kernel_class": ["BMM", "VEC", "BMM"],
    "device": ["A100", "A100", "V100"],
    "count": [1, 2, 3],
    "measured": [1.5, 0.1, 2.0],
    "run_measured": [2.0, 2.0, None],
    "batch": [1, 1, 8],
}


def of(columns=COLUMNS, **changed):
    return fingerprint(Kernels({**columns, **changed}, unit="ms"))


def test_the_order_of_rows_and_columns_does_not_matter():
    rows = [2, 0, 1]
    assert of({k: [v[i] for i in rows] for k, v in COLUMNS.items()}) == of()
    assert of(dict(reversed(COLUMNS.items()))) == of()


def test_the_library_does_not_matter(tmp_path):
    expected = of()
    frame = pl.DataFrame(COLUMNS)
    assert fingerprint(Kernels(frame, unit="ms")) == expected
    assert fingerprint(Kernels(frame.with_columns(pl.lit("ms").alias("unit")))) == expected
    floats = frame.with_columns(pl.col("batch").cast(pl.Float64))
    assert fingerprint(Kernels(floats, unit="ms")) == expected
    frame.write_parquet(tmp_path / "kernels.parquet")
    frame.write_csv(tmp_path / "kernels.csv")
    # A name is text in every format: only numbers are read as numbers.
    for name in ("kernels.parquet", "kernels.csv"):
        assert fingerprint(read(tmp_path / name, unit="ms")) == expected, name


@pytest.mark.extras
def test_pandas_and_pyarrow_do_not_matter():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    days = [datetime.datetime(2025, 1, 31), None, datetime.datetime(2025, 1, 31, 12)]
    data = {**COLUMNS, "date": days, "ok": [True, False, True]}
    expected = fingerprint(Kernels(pl.DataFrame(data), unit="ms"))
    assert fingerprint(Kernels(pandas.DataFrame(data), unit="ms")) == expected
    assert fingerprint(Kernels(arrow.table(data), unit="ms")) == expected
    objects = pandas.DataFrame(data).astype({"batch": object, "ok": object})
    objects["batch"] = pandas.Series([np.int64(1), np.float32(1), np.int8(8)], dtype=object)
    assert fingerprint(Kernels(objects, unit="ms")) == expected


def test_dates_without_a_time_are_dates():
    day = datetime.date(2025, 1, 31)
    midnight = datetime.datetime(2025, 1, 31)
    assert of(date=[day] * 3) == of(date=[midnight] * 3)
    assert of(date=[day] * 3) != of(date=[midnight.replace(hour=1)] * 3)


def test_what_is_missing_everywhere_is_as_if_it_were_not_there():
    assert of(note=[None, None, None]) == of()
    assert of(note=["", "", ""]) == of()


@pytest.mark.parametrize(
    "changed",
    [
        {"measured": [1.5, 0.1, np.nextafter(2.0, 3.0)]},
        {"measured": [1.5, 0.1, None]},
        {"run": ["a", "a", "c"]},
        {"kernel": ["mm", "add", "mm2"]},
        {"count": [1, 2, 4]},
        {"device": ["A100", "A100", ""]},
        {"predicted": [1.0, 1.0, 1.0]},
        {"batch": [1, 1, True]},
        {"batch": ["1", "1", "8"]},
        {"shape": [[1, 2], [3], []]},
        {"shape": [{"m": 1}, {"m": 2}, {"m": 3}]},
        {"run_measured": [None, None, 2.0]},
    ],
)
def test_every_change_is_seen(changed):
    assert of(**changed) != of()


def test_nested_values_are_told_apart():
    assert of(shape=[[1, 2], [3], []]) != of(shape=[[1, 2], [4], []])
    assert of(shape=[[1, 2], [3], []]) == of(shape=[[1.0, 2.0], [3.0], []])


def test_values_of_one_row_do_not_slip_into_another_column():
    assert of(x=['a","y":"b', "", ""]) != of(x=["a", "", ""], y=["b", "", ""])


def test_the_unit_and_failed_kernels_are_part_of_it():
    one = Kernels(COLUMNS, unit="us")
    assert fingerprint(one) != of()
    failed = {**COLUMNS, "run": ["a", "a", "b", "b"]}
    failed |= {k: [*v, v[-1]] for k, v in COLUMNS.items() if k != "run"}
    failed["status"] = ["ok", "ok", "ok", "failed"]
    assert of(failed) != of()


def test_rows_that_are_there_twice_count_twice():
    twice = {k: [*v, v[-1]] for k, v in COLUMNS.items()}
    assert of(twice) != of()


def test_selections_have_fingerprints_of_their_own():
    kernels = Kernels(COLUMNS, unit="ms")
    part = kernels.where({"run": "a"})
    assert fingerprint(part) == of({k: v[:2] for k, v in COLUMNS.items()})


def test_values_without_a_json_of_their_own_are_text():
    assert of(span=[datetime.timedelta(seconds=i) for i in range(3)]) != of(
        span=[datetime.timedelta(seconds=1 + i) for i in range(3)]
    )
    assert of(x=[1.0, np.inf, -np.inf]) != of(x=[1.0, -np.inf, np.inf])


def test_the_embedded_table_is_the_one_it_was():
    expected = "8fbfd0381f43f2a5e6af708146e9785e24bfe796e303fbb88a6bf807c2a3cdba"
    assert fingerprint(datasets.load("neusight-kernels")) == expected
