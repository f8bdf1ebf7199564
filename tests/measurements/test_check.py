"""Checks of measurements: what they find, what they leave alone, what they say without repeats."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import errcomp as ec
from errcomp.errors import InputError, LeftOutWarning
from errcomp.measurements import check
from errcomp.measurements.results import MeasurementCheck


def table(groups: int = 60, repeats: int = 3, sd: float = 0.02, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    batch = np.repeat(np.arange(1, groups + 1), repeats)
    return {"batch": batch, "ms": batch * np.exp(sd * rng.normal(size=len(batch)))}


def with_rows(data: dict[str, Any], **more: list[Any]) -> dict[str, Any]:
    return {name: [*values, *more[name]] for name, values in data.items()}


def rows_of(found: MeasurementCheck, kind: str) -> set[int]:
    return {row for one in found.copies.sets if one.kind == kind for row in one.rows}


def test_a_column_without_values_is_no_key_and_hides_none() -> None:
    table = {"note": [None] * 6, "batch": [1, 2, 3] * 2, "ms": [1.0, 2, 3, 1.1, 2.1, 3.1]}
    assert check(table, measured="ms").to_dict()["keys"] == ["batch"]


def test_a_clean_table_has_a_floor_and_nothing_else() -> None:
    found = check(table(), measured="ms")
    assert (found.copies.n, found.hidden_keys, found.impossible, found.drift) == (0, (), (), ())
    assert (found.n, found.configurations, found.repeated) == (180, 60, 180)
    assert found.floor.method == "repeats"
    assert found.floor.low < 0.02 * math.sqrt(2 / math.pi) < found.floor.high
    assert found.floor.mape == found.floor.with_hidden


def test_the_floor_is_that_of_a_perfect_predictor(monkeypatch: pytest.MonkeyPatch) -> None:
    # The interval and the steps in time take longer, and nobody looks at them here.
    monkeypatch.setattr("errcomp.measurements.floor._BLOCKS", 2)
    monkeypatch.setattr("errcomp.measurements.finding.drift._SHUFFLES", 2)
    data = table(groups=2000, sd=0.1)
    truth = data["batch"]
    printed = float(np.mean(np.abs(truth - data["ms"]) / data["ms"]))
    assert check(data, measured="ms").floor.mape == pytest.approx(printed, rel=0.05)


def test_copies_are_found_in_both_of_their_rows() -> None:
    data = table()
    again = with_rows(data, batch=[7, 9], ms=[data["ms"][18], data["ms"][24] * 1.0000003])
    found = check(again, measured="ms")
    assert rows_of(found, "equal") == {19, 181, 25, 182}
    assert (found.copies.n, found.copies.extra) == (4, 2)
    assert found.copies.rows == (19, 25, 181, 182)


def test_near_copies_stand_out_of_the_noise() -> None:
    data = table(sd=0.2)
    near = [data["ms"][i] * (1 + 4e-4 * (-1) ** i) for i in range(0, 90, 9)]
    batch = [int(data["batch"][i]) for i in range(0, 90, 9)]
    found = check(with_rows(data, batch=batch, ms=near), measured="ms")
    assert set(range(181, 191)) <= rows_of(found, "near")
    assert found.copies.n <= 24
    assert 0 < found.copies.by_chance < 6


def test_repeats_that_mostly_agree_are_not_copies() -> None:
    quiet = check(table(sd=2e-4), measured="ms")
    assert quiet.copies.n == 0
    data = table(sd=0.01)
    coarse = check({**data, "ms": np.round(data["ms"])}, measured="ms")
    assert coarse.copies.n == 0


def test_where_hardly_any_row_is_repeated_every_agreement_is_a_copy() -> None:
    data = table(groups=200, repeats=1)
    found = check(with_rows(data, batch=[5, 6], ms=[data["ms"][4] * 1.0008, 40.0]), measured="ms")
    assert rows_of(found, "near") == {5, 201}
    assert found.copies.n == 2


def test_values_are_carried_over_to_another_version() -> None:
    rng = np.random.default_rng(1)
    ms = np.round(rng.uniform(100, 900, 200), 4)
    ms[150:160] = ms[40:50]
    version = ["1.0"] * 100 + ["1.1"] * 100
    found = check({"batch": [*range(100)] * 2, "version": version, "ms": ms}, measured="ms")
    assert rows_of(found, "carried over") == {*range(41, 51), *range(151, 161)}
    assert found.copies.sets[0].differs == ("batch", "version")


def test_equal_values_of_few_digits_are_chance() -> None:
    rng = np.random.default_rng(1)
    ms = np.round(rng.uniform(100, 900, 2000), 1)
    found = check(
        {"batch": [*range(1000)] * 2, "device": ["a", "b"] * 1000, "ms": ms}, measured="ms"
    )
    assert found.copies.n == 0


def test_a_default_recurs() -> None:
    rng = np.random.default_rng(1)
    ms = rng.uniform(100, 900, 100)
    ms[::10] = 600.125
    found = check({"batch": [*range(100)], "ms": ms}, measured="ms")
    assert rows_of(found, "default") == set(range(1, 101, 10))


def test_the_measurement_of_several_tools_is_one_measurement() -> None:
    pairs = ec.datasets.load("neusight")
    assert len(pairs.tools) > 1
    found = check("neusight", measured="measured_ms")
    assert (found.copies.n, found.n) == (0, 386)
    assert found.configurations < 386


def test_several_columns_must_agree() -> None:
    data = table() | {"tpot": table(seed=1)["ms"]}
    again = with_rows(
        data, batch=[7, 9], ms=[data["ms"][18], data["ms"][24]], tpot=[data["tpot"][18], 1.0]
    )
    found = check(again, measured=["ms", "tpot"])
    assert found.copies.rows == (19, 181)
    assert check(again, measured="ms").copies.n == 4


def test_a_part_of_a_text_is_a_key_that_the_table_hides() -> None:
    data = table(groups=100, repeats=4)
    fast = np.arange(400) % 8 == 0
    text = [f"run={i % 3}; graphs={'off' if slow else 'on'}" for i, slow in enumerate(fast)]
    found = check({**data, "ms": data["ms"] * (1 + 0.2 * fast), "source": text}, measured="ms")
    assert [one.column for one in found.explained] == ["source:graphs"]
    assert found.explained[0].share > 0.9
    assert {row.of["batch"] for row in found.hidden_keys} == set(range(1, 101, 2))
    assert {row.explained_by for row in found.hidden_keys} == {"source:graphs"}
    assert found.floor.mape == pytest.approx(0.016, rel=0.15)


def test_a_number_in_a_text_explains_pairs() -> None:
    rng = np.random.default_rng(0)
    batch = np.repeat(np.arange(50), 2)
    load = rng.choice([1, 2, 4, 8, 16, 32], 100)
    ms = np.exp(batch / 10 + 0.5 * np.log(load) + 0.01 * rng.normal(size=100))
    found = check(
        {"batch": batch, "note": [f"concurrency={x}" for x in load], "ms": ms}, measured="ms"
    )
    assert [one.column for one in found.explained] == ["note:concurrency"]


def test_rows_that_differ_without_a_reason_are_named() -> None:
    data = table()
    data["ms"][[30, 31]] *= 1.5
    found = check(data, measured="ms")
    (row,) = found.hidden_keys
    assert (row.of, row.n, row.explained_by, row.rows) == ({"batch": 11}, 3, None, (31, 32, 33))
    assert row.ratio == pytest.approx(1.5, rel=0.1)
    assert found.floor.with_hidden > found.floor.mape


def test_a_day_is_drift_and_no_key() -> None:
    data = table(groups=100, repeats=4)
    day = np.tile([1, 5, 11, 20], 100)
    dates = [f"2026-03-{d:02d}" for d in day]
    found = check(
        {**data, "date": dates, "ms": data["ms"] * (1 + 0.05 * (day > 10))}, measured="ms"
    )
    (row,) = found.drift
    assert (row.column, row.kind, row.at) == ("date", "step", "2026-03-11")
    assert row.low < 0.05 < row.high
    assert found.floor.n == 400


def test_impossible_values_are_counted_and_not_refused() -> None:
    data = table()
    data["ms"][[3, 8]] = [0.0, -2.0]
    data["ms"][12] = math.inf
    (row,) = check(data, measured="ms").impossible
    assert (row.n, row.rows, row.columns) == (3, (4, 9, 13), ("ms",))


def test_other_units_and_missing_ones_are_named() -> None:
    data = table() | {"unit": ["ms"] * 180}
    data["unit"][4], data["unit"][7] = "us", ""
    (row,) = check(data, measured="ms").impossible
    assert (row.rows, row.seen) == ((5, 8), "unit us, usually ms")


def test_a_quantity_has_its_unit() -> None:
    data = table() | {"metric": ["time", "rate"] * 90, "unit": ["ms", "1/s"] * 90}
    assert check(data, measured="ms").impossible == ()
    data["unit"][0] = "s"
    assert check(data, measured="ms").impossible[0].rule == "all rows have one unit"


def test_percentiles_are_in_order() -> None:
    data = table() | {
        "lat_p50": np.full(180, 5.0),
        "lat_p99": np.full(180, 9.0),
        "lat_mean": np.full(180, 6.0),
        "lat_max": np.full(180, 12.0),
    }
    data["lat_p99"][7] = 4.0
    data["lat_mean"][9] = 13.0
    found = {row.rule: row.rows for row in check(data, measured="ms").impossible}
    assert found == {
        "lat_p50 is at most lat_p99": (8,),
        "lat_mean is at most lat_max": (10,),
    }


def test_a_mean_lies_between_the_smallest_and_the_largest() -> None:
    data = table() | {
        "lat_min": np.full(180, 4.0),
        "lat_avg": np.full(180, 6.0),
        "lat_maximum": np.full(180, 12.0),
        "wait_avg": np.full(180, 1.0),
    }
    data["lat_avg"][[3, 9, 20]] = [3.99, 12.1, 4.0 - 1e-3]
    found = [(row.rule, row.rows, row.seen) for row in check(data, measured="ms").impossible]
    assert found == [
        ("lat_min is at most lat_avg", (4,), "lat_min 4, lat_avg 3.99"),
        ("lat_avg is at most lat_maximum", (10,), "lat_avg 12.1, lat_maximum 12"),
    ]


def test_a_percentile_of_few_requests_is_doubtful() -> None:
    data = table() | {"lat_p99": np.full(180, 9.0), "requests": np.full(180, 1000)}
    data["requests"][5] = 71
    found = check(data, measured="ms")
    assert found.impossible == ()
    assert [(row.rows, row.seen) for row in found.doubtful] == [((6,), "requests 71")]


def test_no_device_moves_more_bytes_than_its_peak() -> None:
    ms = [1.2, 1.1, 0.5, 2.0, 1.7, 1.4]
    data = {"device": ["T4"] * 6, "batch": range(6), "bytes": [3.2e8] * 6, "ms": ms}
    found = check(data, measured="ms", unit="ms")
    assert [(row.rule, row.rows) for row in found.impossible] == [
        ("bytes per time is below the bandwidth of the device", (3,))
    ]
    assert check(data, measured="ms").impossible == ()  # without a unit
    rates = {**data, "bytes": [3.2e11] * 6}  # bytes per second, not bytes
    assert check(rates, measured="ms", unit="ms").impossible == ()


def test_throughput_times_time_is_work() -> None:
    n = 20
    data = {
        "batch": range(n),
        "tokens": [100.0] * n,
        "duration": [2.0] * n,
        "throughput": [50.0] * n,
        "ms": np.linspace(1.11, 2, n),
    }
    data["throughput"][4] = 80.0
    rules = [(row.rule, row.rows) for row in check(data, measured="ms").impossible]
    assert rules == [("throughput times duration is tokens", (5,))]


def test_a_column_is_not_its_own_product() -> None:
    # All but two rows take a second, so that each rate is the rate times the duration.
    seconds = np.array([1.0] * 18 + [2.0, 2.0])
    data = {"batch": range(20), "ms": np.linspace(1.11, 2, 20), "tokens": 100 * seconds}
    rate = {"duration": seconds, "tokens_per_s": [100.0] * 20}
    assert check(data | rate, measured="ms").impossible == ()
    # Nor is a duration the work: its rate is 1 in all but two rows.
    time = {"duration_of_requests": seconds, "throughput": [1.0] * 18 + [3.0, 3.0]}
    del data["tokens"]
    assert check(data | time, measured="ms").impossible == ()


def test_neighbours_bound_the_floor_where_nothing_is_repeated() -> None:
    rng = np.random.default_rng(0)
    batch = np.tile(np.arange(1, 41), 5)
    device = np.repeat(list("abcde"), 40)
    ms = (3 + batch) * np.exp(0.03 * rng.normal(size=200))
    floor = check({"device": device, "batch": batch, "ms": ms}, measured="ms").floor
    assert (floor.method, floor.along, floor.groups) == ("neighbours", "batch", 5)
    assert floor.mape == pytest.approx(0.024, rel=0.3)
    assert math.isnan(floor.low)


def test_without_repeats_and_order_two_runs_are_proposed() -> None:
    found = check({"model": list("abcdefghij"), "ms": np.linspace(1.1, 9.7, 10)}, measured="ms")
    assert (found.floor.method, found.hidden_keys) == ("none", ())
    assert math.isnan(found.floor.mape)
    assert found.measure_next == ({"model": "f"}, {"model": "i"})
    assert "Measure again next: model=f" in str(found)


def test_floors_of_groups() -> None:
    data = table() | {"device": np.repeat(["a", "b"], 90)}
    data["ms"][90:] = data["batch"][90:] * (data["ms"][90:] / data["batch"][90:]) ** 4
    found = check(data, measured="ms", by="device")
    quiet, noisy = found.floors
    assert (quiet.of, noisy.of) == ({"device": "a"}, {"device": "b"})
    assert 2.5 < noisy.floor.mape / quiet.floor.mape < 6


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"ms": [1.0]}, {"measured": "time"}, "no column 'time'"),
        ({"ms": ["x", "1"]}, {"measured": "ms"}, "ms must be a number, got 'x' in row 1"),
        ({"ms": [None, None]}, {"measured": "ms"}, "no row has a value of ms"),
        ({"ms": [1.0, 2.0]}, {}, "name the column of measurements: --measured COLUMN"),
        (
            {f"{a}_{b}": [1.0, 2.0] for a in "ab" for b in ("predicted", "measured")},
            {},
            "--measured COLUMN. Columns of numbers: a_measured, b_measured$",
        ),
        ({"ms": [1.0], "a": [1]}, {"measured": "ms", "by": "b"}, "cannot group by 'b'"),
        (
            {"ms": [1.0], "a": [1]},
            {"measured": "ms", "keys": ["ms"]},
            "'ms' is given as the measured column and as a key",
        ),
    ],
)
def test_bad_input(data: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        check(data, **options)


def test_a_dataset_of_several_tables_is_refused() -> None:
    with pytest.raises(InputError, match="survey holds 17 tables"):
        check("survey", measured="value")


def test_a_table_without_a_possible_value() -> None:
    found = check({"a": [1, 2], "ms": [-1.0, 0.0]}, measured="ms")
    assert (found.impossible[0].n, found.floor.method, found.measure_next) == (2, "none", ())


def test_impossible_values_of_a_second_column_count_as_missing() -> None:
    data = {
        "a": [1, 1, 2, 2],
        "ms": [1.53127, 1.53127, 2.25391, 2.25391],
        "b": [3.5, 3.5, 0.0, math.inf],
    }
    found = check(data, measured=["ms", "b", "ms"])
    assert found.measured == ("ms", "b")
    assert [one.rows for one in found.copies.sets] == [(1, 2), (3, 4)]
    assert found.impossible[0].rows == (3, 4)


def test_columns_of_lists_are_left_out_with_a_warning() -> None:
    frame = pl.DataFrame({"a": [[1], [2]], "b": [1, 2], "ms": [1.0, 2.0]})
    with pytest.warns(LeftOutWarning, match="columns left out: a"):
        assert check(frame, measured="ms").key_columns == ("b",)
    with pytest.raises(InputError, match="a: its values are lists"):
        check(frame, measured="ms", keys=["a"])


@pytest.mark.extras
def test_a_column_of_several_types_is_a_key() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, "x", None, 1], "ms": [1.0, 2.0, 3.0, 1.2]})
    assert check(frame, measured="ms").configurations == 3


def test_values_beyond_all_bounds() -> None:
    found = check({"a": [1, 1] * 6, "ms": [1e-300, 2e300] * 6}, measured="ms")
    assert found.spread[0].ratio > 1e200
    assert math.isfinite(found.floor.mape)


def test_one_row() -> None:
    found = check({"a": [1], "ms": [2.0]}, measured="ms")
    assert (found.n, found.copies.n, found.floor.method) == (1, 0, "none")


def test_rows_without_a_measurement_are_counted() -> None:
    data = {"a": [1, 1, 2], "status": ["ok", "failed", "ok"], "ms": [2.0, 5.0, None]}
    found = check(data, measured="ms")
    assert [(row.reason, row.n, row.rows) for row in found.dropped] == [
        ("the run failed (status)", 1, (2,)),
        ("the measurement is missing", 1, (3,)),
    ]


@pytest.mark.extras
def test_a_frame_of_any_library_and_a_file_give_the_same(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pl.DataFrame(table())
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    found = [check(one, measured="ms") for one in (frame, frame.to_arrow(), tmp_path / "t.parquet")]
    assert len({one.floor.mape for one in found}) == 1
    lines = check(tmp_path / "t.csv", measured="ms")
    assert lines.floor.mape == pytest.approx(found[0].floor.mape)


def test_the_rows_of_a_file_are_its_lines(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("batch,ms\n1,2.5031\n1,2.5031\n2,4.1\n")
    assert check(tmp_path / "t.csv", measured="ms").copies.rows == (2, 3)


def test_a_result_shows_and_stores_itself(tmp_path: Path) -> None:
    found = check(table(), measured="ms")
    assert repr(found).startswith("MeasurementCheck(copies 0, floor 1.")
    found.save(tmp_path / "c.json")
    again = ec.read_result(tmp_path / "c.json")
    assert again.to_dict() == found.to_dict()
    assert found.to_frame().height == 0


def test_times_in_the_output_of_a_tool_are_measurements(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    sizes = "".join(
        f"{2**i} {2**i // 4} float sum {time} 0.03 0.03 0e+00 {time + 0.5} 0.03 0.03 0e+00\n"
        for i, time in enumerate([34.51, 34.72, 35.13, 36.94], start=10)
    )
    head = "size count type redop time algbw busbw error time algbw busbw error"
    path.write_text(f"# Rank 0 Pid 1 on a device 0 [0x00] A100\n# {head}\n{sizes}")
    found = check(path)
    assert (found.n, found.measured) == (8, ("measured",))
    assert "placement" in found.key_columns
    assert "reference" not in found.key_columns
    # Predictions alone are no measurements.
    path.write_text("sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n")
    with pytest.raises(InputError, match="no row has a value of measured"):
        check(path)


def test_a_table_is_read_as_it_is_even_if_a_reader_knows_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("batch,ms\n1,2.5031\n1,2.5031\n2,4.1\n")
    assert check(path, measured="ms").measured == ("ms",)
    with pytest.raises(InputError, match="no column 'measured'"):
        check(path, measured="measured")


def test_agreement_that_chance_explains_is_no_copy_even_where_repeats_are_rare() -> None:
    # Five repeats of one configuration with two decimals, among 200 configurations.
    rng = np.random.default_rng(0)
    values = np.round(np.exp(rng.normal(3, 1, 200)), 5)
    again = [0.41, 0.42, 0.42, 0.43, 0.41, 0.44]
    table = {"batch": [*range(200), *([500] * 6)], "ms": [*values, *again]}
    assert check(table, measured="ms").copies.n == 0
    table["batch"], table["ms"] = [*range(200), 7], [*values, values[7]]
    assert check(table, measured="ms").copies.rows == (8, 201)


@pytest.mark.extras
@pytest.mark.parametrize("library", ["polars", "duckdb", "dask"])
def test_rows_in_an_engine_are_collected(library: str) -> None:
    module = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    batch = np.repeat(np.arange(1, 51), 3)
    table = {"batch": batch, "ms": batch * np.exp(0.02 * rng.normal(size=150))}
    table["ms"][1] = table["ms"][0]
    if library == "polars":
        frame: Any = pl.LazyFrame(table)
    elif library == "duckdb":
        rows = pl.DataFrame(table).to_arrow()
        frame = module.from_arrow(rows)
    else:
        pd, dataframe = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
        frame = dataframe.from_pandas(pd.DataFrame(table), npartitions=3)
    there, here = check(frame, measured="ms"), check(table, measured="ms")
    assert there.floor == here.floor
    assert there.copies.rows == here.copies.rows == (1, 2)
