"""The table of kernels: what goes in, what is refused, and what its rows add up to."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import polars as pl
import pytest

import errcomp
from errcomp.errors import GuessedWarning, InputError
from errcomp.tables import Kernels

GOOD: dict[str, Any] = {
    "run": ["a", "a", "a", "b", "b"],
    "kernel": ["matmul", "add", "add", "matmul", "add"],
    "kernel_class": ["BMM", "VEC", "VEC", "BMM", "VEC"],
    "count": [2, 3, 1, 2, 4],
    "predicted": [10.0, 1.0, 0.0, 20.0, 0.5],
    "measured": [11.0, 2.0, 0.0, 19.0, 1.0],
    "device": ["H100", "H100", "H100", "L4", "L4"],
}


def table(**changes: Any) -> Kernels:
    return Kernels({**GOOD, **changes}, source="k.csv")


def without(*names: str) -> dict[str, Any]:
    return {name: values for name, values in GOOD.items() if name not in names}


def with_value(column: str, value: object) -> dict[str, Any]:
    return {**GOOD, column: [GOOD[column][0], value, *GOOD[column][2:]]}


def test_columns_become_arrays() -> None:
    kernels = Kernels({**GOOD, "unit": "ms", "shape": ["1", "2", "3", "4", "5"]}, source="k.csv")
    assert isinstance(kernels, errcomp.Kernels)
    assert (kernels.n, len(kernels), kernels.unit) == (5, 5, "ms")
    assert kernels.keys == ("run", "kernel", "kernel_class", "device", "shape")
    for name in ("run", "kernel", "kernel_class", "device"):
        assert getattr(kernels, name).tolist() == kernels.column(name).tolist() == GOOD[name]
    assert kernels.count.tolist() == GOOD["count"]
    assert kernels.count.dtype == np.int64
    assert (kernels.predicted.tolist(), kernels.measured.tolist()) == (
        GOOD["predicted"],
        GOOD["measured"],
    )
    assert np.isnan(kernels.run_measured).all()
    assert kernels.rows.tolist() == [1, 2, 3, 4, 5]
    assert (kernels.runs, kernels.n_runs) == (("a", "b"), 2)
    assert (kernels.dropped, kernels.incomplete, kernels.unmeasured) == ((), (), ())
    assert repr(kernels) == (
        "Kernels(n=5, runs=2, keys=('run', 'kernel', 'kernel_class', 'device', 'shape'), "
        "unit='ms', source='k.csv')"
    )
    assert isinstance(kernels.native, pl.DataFrame)


def test_totals_are_sums_over_instances() -> None:
    totals = Kernels({**GOOD, "run_measured": [30.0] * 3 + [40.0] * 2}, unit="us").totals()
    assert totals.run.tolist() == ["a", "b"]
    assert totals.predicted.tolist() == [2 * 10 + 3 * 1 + 0, 2 * 20 + 4 * 0.5]
    assert totals.measured.tolist() == [2 * 11 + 3 * 2 + 0, 2 * 19 + 4]
    assert totals.run_measured.tolist() == [30.0, 40.0]
    assert totals.kernels.tolist() == [3, 2]
    assert totals.instances.tolist() == [6, 6]
    assert totals.complete.tolist() == [True, True]
    assert {name: values.tolist() for name, values in totals.keys.items()} == {
        "device": ["H100", "L4"]
    }
    assert (len(totals), totals.unit, totals.source) == (2, "us", "")


def test_rows_of_a_run_need_not_stand_together() -> None:
    order = [3, 0, 4, 1, 2]
    mixed = Kernels({name: [values[i] for i in order] for name, values in GOOD.items()})
    assert mixed.runs == ("b", "a")
    assert mixed.totals().predicted.tolist() == [42.0, 23.0]
    assert mixed.totals().keys["device"].tolist() == ["L4", "H100"]


def test_what_is_not_given_has_a_stated_value() -> None:
    one = Kernels(without("run", "kernel", "count", "device", "measured"))
    assert one.runs == ("run",)
    assert one.kernel.tolist() == ["BMM/1", "VEC/2", "VEC/3", "BMM/4", "VEC/5"]
    assert one.count.tolist() == [1] * 5
    assert one.device.tolist() == [""] * 5
    assert "device" not in one.keys
    assert np.isnan(one.measured).all()
    assert one.unmeasured == ("run",)
    assert one.totals().predicted.tolist() == [31.5]
    assert np.isnan(one.totals().measured).all()
    lines = Kernels(without("kernel"), line_offset=2)
    assert lines.kernel.tolist()[0] == "BMM/2"


def test_a_kernel_without_a_class_is_its_own_class() -> None:
    kernels = Kernels(without("kernel_class"))
    assert kernels.kernel_class.tolist() == GOOD["kernel"]
    assert kernels.column("kernel_class").tolist() == GOOD["kernel"]


def test_measured_alone_is_enough() -> None:
    kernels = Kernels(without("predicted"))
    assert np.isnan(kernels.predicted).all()
    assert np.isnan(kernels.totals().predicted).all()
    assert kernels.totals().measured.tolist() == [28.0, 42.0]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_run_with_a_kernel_that_was_not_measured_has_no_measured_total(missing: Any) -> None:
    kernels = table(measured=[11.0, missing, 0.0, 19.0, 1.0])
    assert np.isnan(kernels.measured).tolist() == [False, True, False, False, False]
    assert kernels.unmeasured == ("a",)
    totals = kernels.totals()
    assert np.isnan(totals.measured).tolist() == [True, False]
    assert totals.predicted.tolist() == [23.0, 42.0]
    assert totals.complete.all()
    assert kernels.dropped == ()


def test_a_run_with_a_failed_kernel_is_incomplete_and_has_no_total() -> None:
    status = ["ok", "out of memory", None, "success", ""]
    kernels = table(status=status, predicted=[10.0, None, 0.0, 20.0, 0.5])
    assert kernels.n == 4
    assert [d.to_dict() for d in kernels.dropped] == [
        {"reason": "the prediction failed (status)", "n": 1, "rows": [2]}
    ]
    assert kernels.incomplete == ("a",)
    totals = kernels.totals()
    assert totals.complete.tolist() == [False, True]
    assert np.isnan(totals.predicted).tolist() == [True, False]
    assert np.isnan(totals.measured).tolist() == [True, False]
    assert totals.kernels.tolist() == [2, 2]


def test_a_run_that_lost_all_its_kernels_is_named() -> None:
    kernels = table(status=["ok", "ok", "ok", "crash", "crash"])
    assert (kernels.runs, kernels.incomplete) == (("a",), ("b",))
    assert kernels.dropped[0].rows == (4, 5)
    assert kernels.where({"run": "a"}).incomplete == ()
    assert kernels.where({"device": "H100"}).dropped == ()
    assert kernels.take(np.asarray([0, 1])).incomplete == ()


def test_failures_stay_with_the_rows_chosen() -> None:
    data = {
        "run": ["a"] * 4,
        "tool": ["x", "x", "y", "y"],
        "kernel": ["k", "l", "k", "l"],
        "predicted": [1.0, 2.0, 3.0, 4.0],
        "status": ["", "bad", "", ""],
    }
    kernels = Kernels(data)
    assert kernels.incomplete == ("a",)
    assert kernels.of_tool("x").incomplete == ("a",)
    assert kernels.of_tool("x").dropped[0].rows == (2,)
    assert kernels.of_tool("y").incomplete == ()
    assert kernels.of_tool("y").totals().predicted.tolist() == [7.0]
    assert kernels.where({"kernel": "k"}).dropped == ()
    assert kernels.take(kernels.column("tool") == "y").dropped == ()
    part = kernels.take(np.asarray([0]))
    assert part.dropped[0].n == 1
    assert part.take(np.asarray([0])).incomplete == ("a",)


def test_rows_that_failed_may_hold_anything_but_need_a_run() -> None:
    data = {
        "run": ["a", "a"],
        "kernel": ["k", None],
        "count": ["2", "many"],
        "predicted": ["1.5", "-"],
        "device": ["A", None],
        "status": ["", "crash"],
    }
    kernels = Kernels(data)
    assert (kernels.count.tolist(), kernels.predicted.tolist()) == ([2], [1.5])
    with pytest.raises(InputError, match="run is missing in row 2. Fill it in"):
        Kernels({**data, "run": ["a", None]})


def test_a_run_may_span_devices() -> None:
    kernels = table(device=["H100", "L4", None, "L4", "L4"])
    assert kernels.device.tolist() == ["H100", "L4", "", "L4", "L4"]
    assert kernels.totals().keys["device"].tolist() == [None, "L4"]
    assert kernels.per_run("device").tolist() == [None, "L4"]
    assert kernels.per_run("run").tolist() == ["a", "b"]
    with pytest.raises(InputError, match="no column 'colour'. Columns to group by: run, kernel"):
        kernels.per_run("colour")


def test_totals_keep_what_is_the_same_in_a_run() -> None:
    kernels = table(batch=[1, 1, 1, 2, 2], mode=["inference"] * 4 + ["training"], stream=[1] * 5)
    keys = kernels.totals().keys
    assert {name: values.tolist() for name, values in keys.items()} == {
        "device": ["H100", "L4"],
        "mode": ["inference", None],
        "batch": [1, 2],
    }


def test_times_of_several_tools_are_not_added_up() -> None:
    kernels = table(tool=["x", "y", "x", "x", "x"])
    assert kernels.tools == ("x", "y")
    with pytest.raises(
        InputError, match=r"k\.csv: run 'a' has kernels of several tools \(x, y\).*of_tool"
    ):
        kernels.totals()
    assert kernels.of_tool("X").totals().predicted.tolist() == [20.0, 42.0]
    assert kernels.of_tool().n == kernels.of_tool("all").n == 5
    assert table(tool=[None] * 5).totals().predicted.tolist() == [23.0, 42.0]
    with pytest.raises(InputError, match="no tool 'z'. Tools in the table: x, y"):
        kernels.of_tool("z")


def test_ids_are_unique_and_readable() -> None:
    kernels = table()
    assert kernels.ids.tolist() == ["a/matmul", "a/add", "a/add#2", "b/matmul", "b/add"]
    assert kernels.take(np.asarray([2])).ids.tolist() == ["a/add"]
    names = ["add", "add", "add#2", "add", "add#2"]
    assert Kernels({**GOOD, "run": ["a"] * 5, "kernel": names}).ids.tolist() == [
        "a/add",
        "a/add#3",
        "a/add#2",
        "a/add#4",
        "a/add#2#2",
    ]
    slashes = Kernels({"run": ["a/b", "a"], "kernel": ["c", "b/c"], "predicted": [1, 1]})
    assert slashes.ids.tolist() == ["a/b/c", "a/b/c#2"]


def test_codes_number_groups_in_the_order_of_appearance() -> None:
    kernels = table()
    assert kernels.codes("kernel").tolist() == [0, 1, 1, 0, 1]
    assert kernels.codes("run", "kernel").tolist() == [0, 1, 1, 2, 3]
    assert kernels.codes("kernel", "run").tolist() == [0, 1, 1, 2, 3]
    assert kernels.codes().tolist() == [0] * 5
    assert kernels.codes("kernel").dtype == np.int64
    assert table(batch=[2.0, None, 1.0, None, 2.0]).codes("batch").tolist() == [0, 1, 2, 1, 0]
    with pytest.raises(InputError, match="no column 'count'"):
        kernels.codes("count")
    with pytest.raises(InputError, match="'run' is given twice"):
        kernels.codes("run", "run")


def test_groups_and_selections() -> None:
    kernels = table()
    assert [(g.key, g.index.tolist()) for g in kernels.groups("kernel_class")] == [
        ({"kernel_class": "BMM"}, [0, 3]),
        ({"kernel_class": "VEC"}, [1, 2, 4]),
    ]
    part = kernels.where({"kernel_class": "VEC", "run": ["a", "b"]})
    assert part.selection == {"kernel_class": ("VEC",), "run": ("a", "b")}
    assert part.rows.tolist() == [2, 3, 5]
    assert part.totals().predicted.tolist() == [3.0, 2.0]
    assert part.where({"run": "b"}).runs == ("b",)
    with pytest.raises(InputError, match="no row has device=X. Values of device: H100, L4"):
        kernels.where({"device": "X"})
    nothing = kernels.take(np.zeros(5, dtype=bool))
    assert (nothing.n, nothing.runs, nothing.groups("run"), len(nothing.totals())) == (0, (), [], 0)


def test_what_is_taken_keeps_its_values() -> None:
    kernels = table(batch=[1, 2, 3, 4, 5], run_measured=[9.0] * 3 + [None] * 2)
    part = kernels.take(np.asarray([4, 0])).take(np.asarray([1]))
    assert (part.run[0], part.kernel[0], part.kernel_class[0]) == ("a", "matmul", "BMM")
    assert (part.device[0], part.count[0], part.predicted[0]) == ("H100", 2, 10.0)
    assert (part.measured[0], part.run_measured[0], part.rows[0]) == (11.0, 9.0, 1)
    assert part.column("batch").tolist() == [1]
    assert (part.source, part.native is kernels.native) == ("k.csv", True)


def test_names_may_be_numbers() -> None:
    kernels = table(run=[7, 7, 7, 8, 8], kernel=[1.5, 1.5, 2.0, 2.0, 2.0])
    assert kernels.runs == ("7", "8")
    assert kernels.kernel.tolist() == ["1.5", "1.5", "2.0", "2.0", "2.0"]


def test_equal_names_are_stored_once() -> None:
    kernels = Kernels({"kernel": ["a" * 100] * 3, "predicted": [1.0] * 3})
    assert kernels.kernel[0] is kernels.kernel[2]
    assert kernels.kernel.dtype == object


def test_columns_are_renamed() -> None:
    data = {"op": ["k"], "ms": [2.0], "n": [3], "predicted": [99.0], "measured": [5.0]}
    columns = {"kernel": "op", "predicted": "ms", "count": "n"}
    kernels = Kernels(data, columns=columns)
    assert (kernels.kernel[0], kernels.predicted[0], kernels.count[0]) == ("k", 2.0, 3)
    assert kernels.keys == ("run", "kernel", "kernel_class")
    swapped = Kernels(data, columns={"kernel": "op", "predicted": "measured", "measured": "ms"})
    assert (swapped.predicted[0], swapped.measured[0]) == (5.0, 2.0)
    with pytest.raises(InputError, match="predicted and measured both name the column 'measured'"):
        Kernels(data, columns={"predicted": "measured"})
    with pytest.raises(InputError, match="missing column milliseconds. Columns found: op, ms, n"):
        Kernels(data, columns={"predicted": "milliseconds"})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            without("predicted", "measured"),
            r"missing column predicted or measured. Columns found: run, .* columns=\{\.\.\.\}\.$",
        ),
        (without("kernel", "kernel_class"), "missing column kernel or kernel_class. Columns found"),
        ({name: [] for name in GOOD}, r"no usable kernels \(the table is empty\)"),
        (
            {**GOOD, "status": ["crash"] * 5},
            r"no usable kernels \(5 dropped: the prediction failed .*; rows 1, 2, 3 \(and 2 more\)",
        ),
        ({**GOOD, "unit": ["ms"] * 4 + ["us"]}, r"mixed units: 'ms' and 'us' .*in row 5\)"),
        ({**GOOD, "run": ["a", "", " ", None, "b"]}, "run is missing in rows 2, 3, 4. Fill it"),
        (with_value("kernel", None), "kernel is missing in row 2"),
        (with_value("kernel_class", " "), "kernel_class is missing in row 2"),
        (with_value("predicted", "fast"), "column 'predicted' cannot be read"),
        ({**GOOD, "kernel": [[1], [2], [3], [4], [5]]}, "kernel must be text, but its values are"),
    ],
)
def test_bad_tables_say_where(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Kernels(data)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("predicted", None, "predicted is missing in row 2"),
        ("predicted", float("nan"), "predicted must be finite and ≥ 0, got nan in row 2"),
        ("predicted", float("inf"), "predicted must be finite and ≥ 0, got inf in row 2"),
        ("predicted", -1.0, "predicted must be finite and ≥ 0, got -1.0 in row 2. Fix the value"),
        ("measured", float("inf"), "measured must be finite and ≥ 0, got inf in row 2"),
        ("measured", -0.5, "measured must be finite and ≥ 0, got -0.5 in row 2"),
        ("count", 0, "count must be a whole number from 1 to 9007199254740991, got 0.0 in row 2"),
        ("count", -3, r"got -3.0 in row 2. Remove kernels that are not executed"),
        ("count", 1.5, "count must be a whole number .* got 1.5 in row 2"),
        ("count", float("nan"), "count must be a whole number .* got nan in row 2"),
        ("count", float("inf"), "count must be a whole number .* got inf in row 2"),
        ("count", None, "count is missing in row 2"),
        ("count", 10**18, r"count must be a whole number .* got 1e\+18 in row 2"),
        ("count", 2**53 + 1, "count must be a whole number .* in row 2"),
    ],
)
def test_values_that_cannot_be_used_name_the_row(column: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Kernels(with_value(column, value))


def test_only_three_rows_are_named() -> None:
    with pytest.raises(InputError, match=r"k\.csv: count must .* in lines 2, 3, 4 \(and 2 more\)"):
        Kernels({**GOOD, "count": [0] * 5}, source="k.csv", line_offset=2)


def test_counts_that_are_whole_are_fine_as_floats_and_text() -> None:
    assert table(count=[2.0, 3.0, 1.0, 2.0, 4.0]).count.tolist() == GOOD["count"]
    assert table(count=["12", "3", " 1", "2e0", "4"]).count.tolist() == [12, 3, 1, 2, 4]
    assert table(count=[2**53 - 5, 1, 1, 1, 1]).count[0] == 2**53 - 5
    with pytest.raises(
        InputError,
        match=r"values of column 'count' add up to 1.8e\+16, but sums above 9007199254740992 are",
    ):
        table(count=[2**53 - 1, 2**53 - 1, 1, 1, 1])
    with pytest.raises(InputError, match="count must be a number, got 'twelve' in row 1"):
        table(count=["twelve", "3", "1", "2", "4"])
    with pytest.raises(InputError, match="count must be a number, got True in rows 1, 2, 3"):
        table(count=[True] * 5)


def test_text_in_a_column_of_times_names_the_row() -> None:
    for column in ("predicted", "measured", "run_measured"):
        with pytest.raises(InputError, match=f"{column} must be a number, got 'x' in row 1"):
            table(**{column: ["x", "1", "1", "1", "1"]})
    assert np.isnan(table(measured=["11", "", None, "19", "1"]).measured[1:3]).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [3.0, 3.0, 4.0, 5.0, 5.0],
            r"must be the same in all rows of a run, but changes from 3.0 to 4.0 in",
        ),
        ([3.0, None, 3.0, 5.0, 5.0], r"changes from 3.0 to nan in row 2 \(run 'a'\)"),
        ([None, 3.0, 3.0, 5.0, 5.0], r"changes from nan to 3.0 in rows 2, 3 \(run 'a'\)"),
        ([0.0, 0.0, 0.0, 5.0, 5.0], r"run_measured must be finite and positive, got 0.0 in rows"),
        ([-1.0, 1.0, 1.0, 5.0, 5.0], r"run_measured must be finite and positive, got -1.0"),
        ([float("inf")] * 5, r"run_measured must be finite and positive, got inf"),
    ],
)
def test_a_run_has_one_end_to_end_time(values: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        table(run_measured=values)


def test_a_run_need_not_have_been_measured_end_to_end() -> None:
    totals = table(run_measured=[3.0, 3.0, 3.0, None, None]).totals()
    assert totals.run_measured[0] == 3.0
    assert np.isnan(totals.run_measured[1])


def test_totals_beyond_floating_point_are_refused() -> None:
    huge = Kernels({"kernel": ["k", "l"], "count": [10, 1], "predicted": [1e308, 1.0]})
    with pytest.raises(InputError, match=r"the total of run 'run' is above 1.8e308. Use a larger"):
        huge.totals()
    two = Kernels({"kernel": ["k", "l"], "measured": [1.7e308, 1.7e308]}, source="k.csv")
    with pytest.raises(InputError, match=r"k\.csv: the total of run 'run' is above"):
        two.totals()


def test_columns_are_read_when_they_are_asked_for() -> None:
    kernels = table(parts=pl.Series([[1], [2], [3], [4], [5]]))
    assert kernels.take(np.asarray([1])).totals().predicted.tolist() == [3.0]
    assert list(kernels._columns) == list(kernels.keys)
    assert len(kernels._columns) == 5
    with pytest.raises(KeyError):
        kernels._columns["predicted"]
    with pytest.raises(InputError, match="cannot group by 'parts': its values are lists"):
        kernels.codes("parts")


@pytest.mark.extras
@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_any_frame_goes_in(library: str) -> None:
    module = pytest.importorskip(library)
    data = {**GOOD, "measured": [11.0, None, 0.0, 19.0, 1.0]}
    frame = module.DataFrame(data) if library == "pandas" else module.table(data)
    kernels = Kernels(frame)
    assert kernels.totals().predicted.tolist() == [23.0, 42.0]
    assert kernels.unmeasured == ("a",)
    assert type(kernels.native) is type(frame)


@pytest.mark.slow
def test_a_million_kernels_take_seconds() -> None:
    n = 1_000_000
    rng = np.random.default_rng(0)
    names = pl.Series([f"void kernel_{i}<float>" for i in range(2000)])
    data = {
        "run": pl.Series([f"run {i}" for i in range(1000)])[np.arange(n) // 1000],
        "kernel": names[rng.integers(0, 2000, n)],
        "kernel_class": names[rng.integers(0, 20, n)],
        "count": rng.integers(1, 50, n),
        "predicted": rng.random(n),
    }
    start = time.process_time()
    totals = Kernels(pl.DataFrame(data)).totals()
    # 2 s on an idle machine; tests share theirs.
    assert time.process_time() - start < 10
    expected = (data["count"] * data["predicted"]).reshape(1000, 1000).sum(axis=1)
    np.testing.assert_allclose(totals.predicted, expected, rtol=1e-12)


PAIRS: dict[str, Any] = {
    "predicted": [1.0, 2.0, 3.0],
    "measured": [1.5, None, 2.5],
    "model": ["a", "b", "b"],
}


@pytest.mark.parametrize("frame", [dict, pl.DataFrame])
def test_each_row_can_be_a_run(frame: Any) -> None:
    kernels = Kernels.of_runs(frame(PAIRS), unit="ms", source="p.csv", line_offset=2)
    assert kernels.runs == ("line 2", "line 3", "line 4")
    assert kernels.totals().predicted.tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(kernels.run_measured, [1.5, np.nan, 2.5])
    assert np.isnan(kernels.measured).all()
    assert (kernels.unit, kernels.column("model").tolist()) == ("ms", ["a", "b", "b"])


def test_runs_that_are_rows_have_their_own_names_and_columns() -> None:
    given = {"sim": [1.0, 2.0], "hw": [1.5, 2.5], "run": ["x", "y"]}
    columns = {"predicted": "sim", "measured": "hw"}
    kernels = Kernels.of_runs(given, columns=columns, unit="ms")
    assert (kernels.runs, kernels.run_measured.tolist()) == (("x", "y"), [1.5, 2.5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": ["x", "y", "x"]}, "each row must be a different run, but run 'x' is in rows 1, 3"),
        ({"kernel": ["x", "y", "z"]}, "has a column 'kernel', so its rows are kernels, not"),
        ({"kernel_class": ["x", "y", "z"]}, "has a column 'kernel_class', so its rows are kernels"),
        ({"run_measured": [1.0, 2.0, 3.0]}, "has a column 'run_measured', so its rows are kernels"),
        ({"predicted": [1.0, -2.0, 3.0]}, "predicted must be finite and ≥ 0, got -2.0 in row 2"),
        ({"measured": [1.0, 0.0, 3.0]}, "must be finite and positive, got 0.0 in row 2"),
    ],
)
def test_rows_that_are_no_runs_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^p.csv: .*{re.escape(message)}"):
        Kernels.of_runs({**PAIRS, **change}, source="p.csv")


def test_rows_that_are_runs_need_a_prediction() -> None:
    with pytest.raises(InputError, match="missing column predicted. Columns found: measured"):
        Kernels.of_runs({"measured": [1.0]})


def test_runs_that_are_rows_are_read_like_pairs() -> None:
    """The quick start promises these names for tables of pairs."""
    given = {"app": ["x", "y"], "GPU": ["A", "B"], "sim_cycles": [10, 20], "hw_cycles": [11, 21]}
    with pytest.warns(GuessedWarning, match="predicted: sim_cycles, measured: hw_cycles"):
        kernels = Kernels.of_runs(given, unit="cycles")
    assert (kernels.predicted.tolist(), kernels.run_measured.tolist()) == ([10, 20], [11, 21])
    assert (kernels.device.tolist(), kernels.column("model").tolist()) == (["A", "B"], ["x", "y"])
    named = {"predicted": [1.0], "hw": [2.0]}
    assert Kernels.of_runs(named, columns={"measured": "hw"}).device.tolist() == [""]


@pytest.mark.parametrize("pairs", [True, False])
def test_only_pairs_are_sent_to_the_correction_of_runs(pairs: bool) -> None:
    given = {"predicted": [1.0], **({"measured": [1.0]} if pairs else {})}
    with pytest.raises(InputError, match="missing column kernel or kernel_class") as raised:
        Kernels(given)
    assert ("Kernels.of_runs" in str(raised.value)) is pairs


def test_a_named_device_is_not_guessed_over() -> None:
    given = {"predicted": [1.0], "measured": [2.0], "board": ["B1"], "chip": ["C1"], "app": ["x"]}
    kernels = Kernels.of_runs(given, columns={"device": "board"})
    assert (kernels.device.tolist(), kernels.column("model").tolist()) == (["B1"], ["x"])
    assert kernels.column("chip").tolist() == ["C1"]


def test_a_measurement_is_recognised_beside_a_named_prediction() -> None:
    with pytest.warns(GuessedWarning, match="measured: hw_time"):
        kernels = Kernels.of_runs({"mine": [1.0], "hw_time": [2.0]}, columns={"predicted": "mine"})
    assert kernels.run_measured.tolist() == [2.0]
    alone = Kernels.of_runs({"predicted": [1.0], "batch": [2]})
    assert np.isnan(alone.run_measured).all()
