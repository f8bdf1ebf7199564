"""The table of runs: what goes in, what is refused, and how it meets the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.tables import Kernels, Runs, with_runs

GOOD: dict[str, Any] = {
    "run": ["a", "b", "c"],
    "measured": [10.0, 20.0, 30.0],
    "predicted": [9.0, 0.0, 33.0],
    "device": ["T4", "T4", "L4"],
    "batch": [1, 2, 4],
}
KERNELS: dict[str, Any] = {
    "run": ["b", "a", "b", "c"],
    "kernel": ["k", "k", "l", "k"],
    "predicted": [1.0, 2.0, 3.0, 4.0],
}


def table(**changes: Any) -> Runs:
    return Runs({**GOOD, **changes}, source="r.csv")


def test_columns_become_arrays() -> None:
    runs = Runs(GOOD, unit="ms", source="r.csv")
    assert (runs.n, len(runs), runs.unit) == (3, 3, "ms")
    assert runs.keys == ("run", "device", "batch")
    assert runs.run.tolist() == GOOD["run"]
    assert runs.measured.tolist() == GOOD["measured"]
    assert runs.predicted.tolist() == GOOD["predicted"]
    assert runs.rows.tolist() == [1, 2, 3]
    assert runs.dropped == ()
    assert repr(runs) == "Runs(n=3, keys=('run', 'device', 'batch'), unit='ms', source='r.csv')"


def test_one_time_is_enough() -> None:
    measured = Runs({"run": ["a"], "measured": [1.0]})
    assert np.isnan(measured.predicted).all()
    predicted = Runs({"run": ["a"], "predicted": [1.0]})
    assert np.isnan(predicted.measured).all()
    assert np.isnan(table(measured=[10.0, None, 30.0]).measured).tolist() == [False, True, False]


def test_groups_selections_and_names_of_numbers() -> None:
    runs = table(run=[7, 8, 9])
    assert runs.run.tolist() == runs.column("run").tolist() == ["7", "8", "9"]
    assert [g.index.tolist() for g in runs.groups("device")] == [[2], [0, 1]]
    part = runs.where({"device": "T4"})
    assert (part.run.tolist(), part.measured.tolist()) == (["7", "8"], [10.0, 20.0])
    assert (part.predicted.tolist(), part.rows.tolist()) == ([9.0, 0.0], [1, 2])
    assert part.selection == {"device": ("T4",)}
    assert part.native is runs.native


def test_failed_runs_are_counted() -> None:
    runs = table(status=["ok", "out of memory", None], measured=[10.0, None, 30.0])
    assert runs.run.tolist() == ["a", "c"]
    assert [d.to_dict() for d in runs.dropped] == [
        {"reason": "the run failed (status)", "n": 1, "rows": [2]}
    ]
    assert table(run=["a", "a", "c"], status=["failed", "", ""]).run.tolist() == ["a", "c"]


def test_columns_are_renamed() -> None:
    runs = Runs({"id": ["a"], "ms": [2.0]}, columns={"run": "id", "measured": "ms"})
    assert (runs.run[0], runs.measured[0]) == ("a", 2.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run": ["a", "b", "a"]}, "name of its own, got 'a' again in row 3. Give repetitions"),
        ({"run": ["a", "", None]}, "run is missing in rows 2, 3. Fill it in"),
        ({"measured": [0.0, 1.0, 0.0]}, r"r\.csv: measured must be positive, got 0.0 in rows 1, 3"),
        ({"measured": [1.0, -1.0, 1.0]}, "measured must be finite and ≥ 0, got -1.0 in row 2"),
        ({"measured": [1.0, float("inf"), 1.0]}, "measured must be finite and ≥ 0, got inf in"),
        ({"measured": ["x", "1", "1"]}, "measured must be a number, got 'x' in row 1"),
        ({"predicted": [1.0, None, 1.0]}, "predicted is missing in row 2"),
        ({"unit": ["ms", "us", "ms"]}, "mixed units: 'ms' and 'us'"),
        ({"status": ["crash"] * 3}, r"no usable runs \(3 dropped: the run failed"),
    ],
)
def test_bad_tables_say_where(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        table(**changes)


def test_missing_columns_are_named() -> None:
    with pytest.raises(InputError, match="missing column run. Columns found: measured"):
        Runs({"measured": [1.0]})
    with pytest.raises(InputError, match="missing column measured or predicted"):
        Runs({"run": ["a"]})
    with pytest.raises(InputError, match="measured must be positive, got 0.0 in line 3"):
        Runs({"run": ["a", "b"], "measured": [1.0, 0.0]}, line_offset=2)


def test_kernels_get_what_is_known_of_their_runs() -> None:
    kernels = Kernels(KERNELS, unit="ms", source="k.csv")
    joined = with_runs(kernels, table())
    assert joined.run_measured.tolist() == [20.0, 10.0, 20.0, 30.0]
    assert joined.keys == ("run", "kernel", "kernel_class", "device", "batch")
    assert joined.device.tolist() == joined.column("device").tolist() == ["T4", "T4", "T4", "L4"]
    assert joined.column("batch").tolist() == [2, 1, 2, 4]
    assert (joined.unit, joined.source, joined.rows.tolist()) == ("ms", "k.csv", [1, 2, 3, 4])
    assert joined.where({"device": "L4"}).runs == ("c",)
    assert joined.totals().keys["batch"].tolist() == [2, 1, 4]
    # What went in stays as it was.
    assert kernels.keys == ("run", "kernel", "kernel_class")
    assert np.isnan(kernels.run_measured).all()
    assert kernels.device.tolist() == [""] * 4


def test_a_second_table_does_not_change_the_first_result() -> None:
    kernels = Kernels(KERNELS)
    first = with_runs(kernels, table())
    second = with_runs(kernels, table(batch=[8, 8, 8]))
    assert first.column("batch").tolist() == [2, 1, 2, 4]
    assert second.column("batch").tolist() == [8] * 4


def test_units_may_be_absent_on_one_side_and_devices_missing() -> None:
    joined = with_runs(Kernels(KERNELS), Runs({**GOOD, "device": ["T4", None, " L4"]}, unit="us"))
    assert joined.unit == "us"
    assert joined.device.tolist() == ["", "T4", "", " L4"]


def test_failed_kernels_and_runs_that_lost_all_stay() -> None:
    data = {**KERNELS, "status": ["", "", "crash", "crash"]}
    joined = with_runs(Kernels(data), table())
    assert joined.incomplete == ("b", "c")
    assert joined.totals().complete.tolist() == [False, True]
    assert joined.where({"device": "T4"}).incomplete == ("b",)


def test_failed_kernels_of_runs_that_are_elsewhere() -> None:
    data = {**KERNELS, "status": ["", "", "", "crash"]}
    runs = table().where({"run": ["a", "b"]})
    joined = with_runs(Kernels(data), runs)
    assert (joined.runs, joined.incomplete) == (("b", "a"), ("c",))


def test_what_was_measured_before_stays() -> None:
    kernels = Kernels({**KERNELS, "run_measured": [20.0, 10.0, 20.0, 30.0], "batch": [2, 1, 2, 4]})
    joined = with_runs(kernels, table(measured=[10.0, None, None]))
    assert joined.run_measured.tolist() == [20.0, 10.0, 20.0, 30.0]
    with pytest.raises(InputError, match=r"different end-to-end times for run 'b'\. Fix one"):
        with_runs(kernels, table(measured=[10.0, 21.0, 30.0]))
    with pytest.raises(InputError, match="different values of batch for runs 'a', 'c'. Fix one"):
        with_runs(kernels, table(batch=[9, 2, 9]))
    with_runs(kernels, table(batch=[None, 2, 4]))


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (
            {"run": ["a", "b"], "measured": [1, 2]},
            "run 'c' in the table of kernels is not in the table of runs, whose runs are a, b",
        ),
        (
            {"run": ["a", "b", "c"], "measured": [1, 2, 3], "status": ["", "", "failed"]},
            r"run 'c' in the table of kernels is not in the table of runs \(or failed there\), "
            r"whose runs are a",
        ),
        (
            {"run": list("abcdefgh"), "measured": list(range(1, 9))},
            r"runs 'd', 'e', 'f' \(and 2 more\) in the table of runs are not in the table of "
            r"kernels, whose runs are",
        ),
        (
            {"run": list("abc"), "predicted": [1, 2, 3]},
            "no run has a measurement. Give it in column 'measured'",
        ),
        (
            {"run": list("abc"), "measured": [1, 2, 3], "unit": ["us"] * 3},
            "mixed units: the runs are in 'us', the kernels in 'ms'",
        ),
    ],
)
def test_tables_that_do_not_meet(runs: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_runs(Kernels(KERNELS, unit="ms"), Runs(runs))
