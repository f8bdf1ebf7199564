"""Which results were carried over: digits, chance, predictions, and real tables."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from errcomp.halflife.carried_over import carried_over, decimals, enough_digits
from errcomp.tables import History
from errcomp.tables.engine.history import HistoryRows


def history(measured, version=None, **more):
    version = [str(i) for i in range(len(measured))] if version is None else version
    return History({"version": version, "measured": measured, **more})


def test_an_equal_value_of_an_earlier_version_is_a_copy():
    carried = carried_over(history([26.441, 27.093, 26.441, 26.441], op=["a"] * 4))
    assert carried.copy.tolist() == [False, False, True, True]
    assert [d.to_dict() for d in carried.dropped] == [
        {
            "reason": "carried over: equal to the measurement of an earlier version in all digits",
            "n": 2,
            "rows": [3, 4],
        }
    ]
    assert carried.notes == ()


def test_the_order_of_versions_counts_not_that_of_rows():
    carried = carried_over(history([26.441, 26.441], version=["2", "1"]))
    assert carried.copy.tolist() == [True, False]


def test_other_series_and_repeats_of_one_version_are_no_copies():
    carried = carried_over(history([26.441, 26.441], op=["a", "b"]))
    assert not carried.copy.any()
    carried = carried_over(
        history([26.441, 26.441, 3.0], version=["1", "1", "2"], repeat=[1, 2, 1])
    )
    assert not carried.copy.any()
    assert carried.notes == ()


def test_values_of_few_digits_are_kept_and_counted():
    carried = carried_over(history([3.0, 3.0, 1200.0, 1200.0, 0.5]))
    assert not carried.copy.any()
    assert carried.dropped == ()
    assert carried.notes == (
        "2 measurements equal a measurement of an earlier version, but in fewer than 4 "
        "significant digits: kept, because this may be chance",
    )


def test_values_that_agree_as_often_as_they_nearly_agree_are_kept():
    # Whole microseconds with 0.2 % noise: about one in ten agrees with an earlier one.
    rng = np.random.default_rng(0)
    noisy = np.rint(4000 * np.exp(0.002 * rng.standard_normal(400))).tolist()
    data = {"version": [str(i) for i in range(20)] * 20, "op": np.repeat(range(20), 20)}
    carried = carried_over(History({**data, "measured": noisy}))
    assert not carried.copy.any()
    assert re.search(r"kept, because about \d\d agreements are expected", carried.notes[-1])
    # The same values with more digits never agree, so one that does is a copy.
    exact = [4000 * float(np.exp(x)) for x in 0.002 * rng.standard_normal(400)]
    exact[7] = exact[3]
    carried = carried_over(History({**data, "measured": exact}))
    assert np.flatnonzero(carried.copy).tolist() == [7]


def test_near_values_by_hand():
    # 10.01 is a copy; 10.03 is two last digits off, 11.00 out of reach, another series does not
    # count: with one near value in twenty places chance explains 0.05 copies.
    measured = [10.01, 10.01, 10.03, 11.05, 10.02]
    series = ["a", "a", "a", "a", "b"]
    assert carried_over(history(measured, series=series)).copy.tolist() == [False, True] + 3 * [
        False
    ]


def test_a_prediction_that_moved_makes_it_a_validation_of_the_predictor():
    moved = history([26.441] * 3, predicted=[25.113, 25.113, 25.5])
    carried = carried_over(moved)
    assert carried.copy.tolist() == [False, True, False]
    assert carried.notes == (
        "1 prediction is compared with a measurement of an earlier version, because there is no "
        "new measurement",
    )


def test_digits():
    assert decimals(np.array([1200.0, 0.1 + 0.2, 26.44, 1e-12])).tolist() == [0, 12, 2, 12]
    values = np.array([1234.0, 1230.0, 1.234e-7, 1.23e9, 9.999, 9.99])
    assert enough_digits(values).tolist() == [True, False, True, False, True, False]


@pytest.mark.shared
def test_copies_of_a_real_table_are_those_that_its_makers_marked(shared_data):
    path = shared_data / "longitudinal/mlperf_training/mlperf_training_longitudinal.csv"
    frame = pl.read_csv(path, infer_schema_length=None).drop_nulls("throughput")
    columns = {"version": "round", "measured": "throughput", "series": "series_id"}
    training = History(frame, columns={**columns, "released": "date"})
    carried = carried_over(training)
    assert carried.dropped[0].n == 51
    assert (carried.copy == (training.column("carried_over") == 1)).all()


@pytest.mark.shared
def test_round_targets_are_kept_and_chance_is_recognised(shared_data):
    folder = shared_data / "longitudinal"
    frame = pl.read_csv(
        folder / "mlperf_inference/mlperf_inference_longitudinal.csv", infer_schema_length=None
    )
    columns = {"version": "round", "measured": "value", "series": "series_id", "released": "date"}
    inference = History(frame, columns=columns)
    carried = carried_over(inference)
    # All six that are marked there are round numbers: targets such as 26000, or 0.05 ms.
    marked = inference.column("carried_over") == 1
    assert not carried.copy.any()
    assert carried.notes[0].startswith(
        f"{marked.sum()} measurements equal a measurement of an earlier version, but"
    )
    assert not enough_digits(inference.measured[marked]).any()
    frame = pl.read_csv(folder / "h2o_db_benchmark/h2o_times.csv.gz", infer_schema_length=None)
    frame = frame.drop_nulls("t1").drop("git", "t2")
    # Measured anew each time, with so many runs that hundreds agree.
    carried = carried_over(History(frame, columns={"measured": "t1", "repeat": "batch"}))
    assert not carried.copy.any()
    assert (
        "325 measurements equal a measurement of an earlier version in all digits"
        in carried.notes[1]
    )


def test_validations_that_an_engine_aggregated_are_not_checked_and_counted():
    rows = {
        "version": ["1", "1", "1", "2", "2", "3"],
        "op": ["a"] * 6,
        "measured": [26.441, 27.093, 27.5, 26.441, 26.441, 26.441],
    }
    carried = carried_over(HistoryRows(pl.LazyFrame(rows)).grouped(["op"]))
    # The two of version 2 are equal, so they are known, and so is the one of version 3.
    assert carried.notes == (
        "3 of 6 validations were aggregated by the engine and not checked for values copied from "
        "an earlier version. Load the rows into memory (errcomp.History) to check them",
    )
    assert carried.copy.tolist() == [False, False, True]
    assert [loss.n for loss in carried.dropped] == [1]
    alone = {name: values[3:] for name, values in rows.items()}
    assert carried_over(HistoryRows(pl.LazyFrame(alone)).grouped(["op"])).notes == ()
