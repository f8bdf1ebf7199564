"""Predictions joined to measurements."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.joining import join, normalised

Columns = dict[str, list[Any]]


def frames(predicted: Columns, measured: Columns) -> dict[str, pl.DataFrame]:
    return {
        "predicted": pl.DataFrame(predicted, strict=False),
        "measured": pl.DataFrame(measured, strict=False),
    }


def test_keys_are_compared_as_numbers_or_text() -> None:
    sides = frames(
        {"batch": [8, 16, 32], "op": ["a", "b ", "c"], "predicted": [1.0, 2.0, 3.0]},
        {"n": ["16.0", "8", "64"], "op": [" b", "a", "c"], "measured": [20.0, 10.0, 30.0]},
    )
    found = join(**sides, on={"batch": "n", "op": "op"}, least=0.5)
    assert found.rows.select("op", "predicted", "measured").rows() == [
        ("a", 1.0, 10.0),
        ("b ", 2.0, 20.0),
    ]
    assert (found.without_measurement, found.without_prediction) == (("32/c",), ("64/c",))
    assert found.lines() == [
        "joined 2 pairs from 3 predictions and 3 measurements",
        "1 prediction without a measurement: 32/c",
        "1 measurement without a prediction: 64/c",
    ]
    assert found.pairs.n == 2


def test_versions_are_not_rounded() -> None:
    sides = frames(
        {"v": ["1.1", "1.10"], "predicted": [1.0, 2.0]},
        {"v": ["1.10", "1.1"], "measured": [2.0, 1.0]},
    )
    assert join(**sides, on=["v"]).rows["measured"].to_list() == [1.0, 2.0]


def test_missing_keys_do_not_match() -> None:
    sides = frames({"k": ["a", None], "predicted": [1, 2]}, {"k": ["a", None], "measured": [1, 2]})
    found = join(**sides, on=["k"], least=0.5)
    assert (len(found.rows), found.without_measurement) == (1, ("–",))


def test_ambiguous_keys_are_left_out_and_counted() -> None:
    sides = frames(
        {"k": ["a", "b", "b"], "predicted": [1, 2, 3]},
        {"k": ["a", "b", "c", "c"], "measured": [1, 2, 3, 4]},
    )
    with pytest.raises(
        InputError, match="only 1 of 3 rows match, fewer than the required 90%:.*b, c"
    ):
        join(**sides, on=["k"])
    found = join(**sides, on=["k"], least=0.3)
    assert found.ambiguous == ("b", "c")
    assert found.rows["k"].to_list() == ["a"]


def test_by_order_within_keys() -> None:
    sides = frames(
        {"op": ["mm", "mm", "add", "x"], "predicted": [1, 2, 3, 4]},
        {"op": ["add", "mm", "mm", "x", "x"], "measured": [30, 10, 20, 40, 50]},
    )
    found = join(**sides, on=["op"], match="order", least=0.7)
    assert found.rows.select("predicted", "measured").rows() == [(1, 10), (2, 20), (3, 30)]
    assert found.ambiguous == ("x",)


def test_by_name_with_aliases() -> None:
    sides = frames(
        {"op": ["reduce_kernel", "GemmBiasRelu", "7"], "predicted": [1, 2, 3]},
        {
            "op": ["void reduce_kernel<512>(float*)", "cutlass::gemm<a<b>>(x)", "7"],
            "measured": [10, 20, 30],
        },
    )
    found = join(**sides, on=["op"], match="name", aliases={"GemmBiasRelu": "cutlass::gemm"})
    assert found.rows["measured"].to_list() == [10, 20, 30]


def test_units_are_converted_after_rows_have_met() -> None:
    sides = frames(
        {"k": ["a", "b"], "quantity": ["time", "energy"], "unit": ["cycles", "pJ"]}
        | {"predicted": [1500.0, 3.0]},
        {"k": ["a", "b", "a"], "quantity": ["time", "energy", "bandwidth"]}
        | {"unit": ["us", "nJ", "GB/s"], "measured": [2.0, 0.004, 9.0]},
    )
    with pytest.raises(InputError, match=r"'us' and 'cycles' cannot be converted.*--clock"):
        join(**sides, on=["k"])
    found = join(**sides, on=["k"], clock_hz=1e9).rows
    assert found["measured"].to_list() == pytest.approx([2000.0, 4.0])
    assert found["unit"].to_list() == ["cycles", "pJ"]


def counted(predicted: Columns, measured: Columns, **more: Any) -> tuple[str, ...]:
    """Return the notes of a join of rows 0, 1, 2."""
    sides = frames(
        {"request": [0, 1, 2], "predicted": [1.0, 2.0, 3.0], **predicted},
        {"request": ["2", "1", "0"], "measured": [1.0, 2.0, 3.0], **measured},
    )
    return join(**sides, **{"on": ["request"], **more}).notes


def test_rows_that_only_their_number_joins() -> None:
    (note,) = counted({"device": "A100", "model": "m"}, {"device": "H100", "model": "m"})
    assert note == (
        "the rows were joined by request alone, which only numbers the rows of each table, and "
        "the joined rows differ in device (A100 and H100) in 3 of 3 pairs. Even two unrelated "
        "runs would match in this way: join on these columns as well (--on)."
    )
    (note,) = counted({"batch": [1, 2, 3]}, {"batch": ["3", "2", "7"]})
    assert "batch (1 and 7) in 1 of 3 pairs" in note
    (note,) = counted({"device": "A100"}, {"model": "m"})
    assert note.endswith("no other common column confirms the match.")
    (note,) = counted({"device": "A100", "level": "request"}, {"model": "m", "level": "request"})
    assert note.startswith("the rows were joined by request alone")


def test_rows_that_more_than_their_number_joins() -> None:
    assert counted({}, {}) == ()  # there is nothing else to say what the rows are
    assert counted({"device": "A100"}, {"device": "A100"}) == ()
    assert counted({"device": "A", "tokens": [5, 6, 7]}, {"model": "m", "tokens": [7, 6, 5]}) == ()
    assert counted({"device": "A"}, {"device": [None] * 3, "tokens": 1}) != ()
    # A key that tells rows apart by more than their place: no count from 0 or 1 without gaps.
    other = {"device": "A"}, {"device": "B"}
    assert counted(*({**side, "request": [0, 1, 5]} for side in other)) == ()
    assert counted(*({**side, "request": [7, 8, 9]} for side in other)) == ()
    assert counted(*({**side, "request": ["0", "1", "x"]} for side in other)) == ()
    assert len(counted(*({**side, "request": [1, 2, 3]} for side in other))) == 1
    kernels = ({**side, "kernel": ["a", "b", "c"], "request": [0, 1, 2]} for side in other)
    assert counted(*kernels, on=["request", "kernel"]) == ()
    assert counted({"kernel": ["a", "b", "c"]}, {"kernel": ["c", "b", "a"]}, match="order") == ()


def test_what_is_not_there() -> None:
    sides = frames({"k": ["a"], "predicted": [1.0]}, {"k": ["a"], "measured": [None]})
    with pytest.raises(InputError, match="no row has a value in column 'measured', so"):
        join(**sides, on=["k"])
    with pytest.raises(InputError, match=r"the predictions have no column 'x'. Columns: k, pred"):
        join(**sides, on=["x"])
    with pytest.raises(InputError, match=r"the measurements have no column 'x'"):
        join(**sides, on={"k": "x"})
    sides = frames({"k": ["a"], "predicted": [1.0]}, {"k": ["a"], "measured": [1.0]})
    with pytest.raises(InputError, match="no keys to join on"):
        join(**sides, on=[])


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("_ZN2at6native13reduce_kernelILi512EEEvT_", "at::native::reduce_kernel"),
        (
            "void at::native::reduce_kernel<512, 1, at::X<float>>(Args, int)",
            "at::native::reduce_kernel",
        ),
        ("void (anonymous namespace)::softmax<float>(int)", "softmax"),
        ("_ZN12_GLOBAL__N_17softmaxIfEEvi", "softmax"),
        ("_Z9vectorAddPKfS0_Pfi", "vectoradd"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("Cijk_Ailk_Bljk_MT64x64.kd", "cijk_ailk_bljk_mt64x64"),
        ("layer1/layer2/Add_12", "add"),
        ("aten::add_.3", "aten::add_"),
        ("123", "123"),
        ("<lambda>", "<lambda>"),
        ("", ""),
        ("_Z", "_z"),
        ("_ZN99999abc", "_zn99999abc"),
    ],
)
def test_names(name: str, plain: str) -> None:
    assert normalised(name) == plain


def test_pairs_were_measured_on_what_the_measurements_were() -> None:
    predicted: Columns = {"k": ["a", "b"], "predicted": [1, 2], "reference": ["simulator"] * 2}
    measured: Columns = {"k": ["b", "a"], "measured": [2, 1], "reference": ["hardware", "rtl"]}
    found = join(**frames(predicted, measured), on=["k"])
    assert found.rows["reference"].to_list() == ["rtl", "hardware"]
    assert found.notes == ()
    del measured["reference"]
    assert "reference" not in join(**frames(predicted, measured), on=["k"]).rows.columns
