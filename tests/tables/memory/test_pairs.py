from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.claims.auditing import audit
from errcomp.errors import InputError, LeftOutWarning, describe_names
from errcomp.summary import summarize
from errcomp.tables import Pairs, Runs, as_pairs, check_keys
from errcomp.tables.columns import without_units
from errcomp.tables.frames import to_eager

GOOD = {"predicted": [11.0, 90.0, 7.0], "measured": [10.0, 100.0, 10.0], "device": ["B", "A", "B"]}


def runs_of(table: pl.DataFrame) -> Runs:
    return Runs(table.with_columns(run=pl.Series(["a", "b", "c"])))


def with_value(column: str, value: object) -> dict[str, list[object]]:
    data: dict[str, list[object]] = {k: list(v) for k, v in GOOD.items()}
    data[column][1] = value
    return data


def test_as_pairs_returns_float_arrays() -> None:
    p, m = as_pairs(predicted=[1, 2], measured=[3, 4])
    assert p.dtype == m.dtype == np.float64
    assert p.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("predicted", "measured", "message"),
    [
        ([1.0], [1.0, 2.0], "same length, got 1 and 2"),
        ([], [], "no pairs"),
        ([[1.0]], [[1.0]], "one-dimensional"),
        (["x"], [1.0], "predicted must be numbers"),
        ([1j], [1.0], "predicted must be numbers, got complex128 values such as 1j"),
        (np.ma.masked_array([1.0], [True]), [1.0], "predicted has masked values"),
        ([object()], [1.0], "predicted must be numbers .*got object in row 1"),
        ([1.0, b"1", None], [1.0] * 3, "predicted must be numbers .*got bytes in row 2"),
        (np.array([np.complex128(1)], dtype=object), [1.0], "got complex128 in row 1"),
        ([10**400], [1.0], "predicted must be numbers below 1.8e308, got int in row 1"),
        (np.array(["1"], dtype=object), [1.0], "predicted must be numbers .*got str in row 1"),
        ([[1.0], [1.0, 2.0]], [1.0], "predicted must be one-dimensional"),
        ([np.nan], [1.0], "predicted must be finite, got nan in row 1"),
        ([1.0], [np.inf], "measured must be finite, got inf in row 1"),
        ([1.0, 1.0], [1.0, -2.0], "measured must be positive, got -2.0 in row 2"),
        ([1.0], [0.0], 'zeros="exclude" .--zeros exclude; the result gives their number'),
    ],
)
def test_as_pairs_says_what_is_wrong(predicted: object, measured: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_pairs(predicted=predicted, measured=measured)  # type: ignore[arg-type]


def test_as_pairs_excludes_only_when_asked() -> None:
    p, m = as_pairs(predicted=[1.0, 2.0, 3.0], measured=[0.0, 2.0, -1.0], zeros="exclude")
    assert (p.tolist(), m.tolist()) == ([2.0], [2.0])
    with pytest.raises(InputError, match='zeros must be "raise" or "exclude"'):
        as_pairs(predicted=[1.0], measured=[1.0], zeros="drop")  # type: ignore[arg-type]


LATE = pl.Series([5_000_000, 1, 2]).cast(pl.Date)  # the first is in the year 15659


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (pl.Series([[1], [2], [1]]), r"'c' \(its values are lists or similar\)"),
        (pl.Series([{"a": 1}, {"a": 2}, {"a": 1}]), r"'c' \(its values are lists or similar\)"),
        (pl.Series([[1], None, {}], dtype=pl.Object), r"'c' \(its values are lists or similar\)"),
        (LATE, r"'c' \(the values of 'c' cannot be read \(year 15659 is out of range\)"),
    ],
)
@pytest.mark.parametrize("table", [Pairs, runs_of])
def test_a_column_that_cannot_be_a_key_is_left_out_and_named(
    table: Callable[[pl.DataFrame], Any], values: pl.Series, reason: str
) -> None:
    with pytest.warns(
        LeftOutWarning, match="columns left out, because they cannot be keys: " + reason
    ):
        made = table(pl.DataFrame(GOOD).with_columns(c=values, later=pl.lit("x")))
    assert {"device", "later"} <= set(made.keys)
    assert "c" not in made.keys
    assert made.groups("device")
    for ask in (made.column, made.groups, made.codes, lambda name: made.where({name: 1})):
        with pytest.raises(InputError, match=r"cannot group by 'c': (its|the) values .*[^.]\.$"):
            ask("c")
    part = made.take(np.array([0]))
    with pytest.raises(InputError, match="cannot group by 'c'"):
        part.check_columns(["c"])


def test_a_table_is_audited_without_its_lists() -> None:
    with pytest.warns(LeftOutWarning, match=r"^t\.csv: columns left out"):
        pairs = Pairs({**GOOD, "c": [[1], [2], [3]]}, source="t.csv")
    assert audit(pairs, claims=[]).overall.n == 3
    with pytest.raises(
        InputError, match="cannot group by 'c'.*Put each element in a column of its own"
    ):
        summarize(pairs, cluster="c")


def test_unknown_columns_become_keys() -> None:
    pairs = Pairs({**GOOD, "compiler": ["x", "y", "x"]})
    assert pairs.keys == ("device", "compiler")
    assert [(g.key, g.index.tolist()) for g in pairs.groups(["device", "compiler"])] == [
        ({"device": "A", "compiler": "y"}, [1]),
        ({"device": "B", "compiler": "x"}, [0, 2]),
    ]


def test_groups_order_numbers_as_numbers_and_missing_last() -> None:
    pairs = Pairs({"predicted": [1.0] * 4, "measured": [1.0] * 4, "batch": [16, None, 2, 8]})
    assert [g.key["batch"] for g in pairs.groups(["batch"])][:3] == [2, 8, 16]


@pytest.mark.parametrize(
    "library",
    [
        *("polars", "lazy", "narwhals"),
        *(pytest.param(name, marks=pytest.mark.extras) for name in ("pandas", "pyarrow")),
    ],
)
def test_any_frame_goes_in(library: str) -> None:
    if library == "pandas":
        frame = pytest.importorskip("pandas").DataFrame(GOOD)
    elif library == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(GOOD)
    else:
        frame = pl.DataFrame(GOOD)
        if library == "lazy":
            frame = frame.lazy()
        elif library == "narwhals":
            import narwhals as nw

            frame = nw.from_native(frame)
    pairs = Pairs(frame)
    assert pairs.n == 3
    assert pairs.predicted.tolist() == GOOD["predicted"]
    assert pairs.column("device").tolist() == GOOD["device"]


def test_something_else_does_not() -> None:
    with pytest.raises(InputError, match="expected a dataframe .* got int"):
        Pairs(3)


def test_columns_are_renamed_and_make_way() -> None:
    data = {"p": [1.0], "m": [2.0], "measured": ["a note"]}
    pairs = Pairs(data, columns={"predicted": "p", "measured": "m"})
    assert pairs.measured.tolist() == [2.0]
    assert pairs.keys == ()


@pytest.mark.parametrize("columns", [None, {"predicted": "nope"}])
def test_missing_columns_name_what_is_there(columns: dict[str, str] | None) -> None:
    with pytest.raises(InputError, match=r"t\.csv: missing columns? .*Columns found: measured, x"):
        Pairs({"measured": [1.0], "x": [1]}, columns=columns, source="t.csv")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("predicted", float("nan"), "predicted must be finite, got nan in row 2"),
        ("measured", float("inf"), "measured must be finite, got inf in row 2"),
        ("measured", 0.0, "measured must be positive, got 0.0 in row 2"),
        ("measured", -1.0, "measured must be positive, got -1.0 in row 2"),
        ("predicted", None, "predicted is missing in row 2"),
    ],
)
def test_values_that_cannot_be_used_name_the_row(column: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Pairs(with_value(column, value))


def test_text_in_a_number_column_names_the_line() -> None:
    data = {"predicted": ["1.0", "fast", "2"], "measured": ["1", "2", "3"]}
    with pytest.raises(
        InputError, match=r"x\.csv: predicted must be a number, got 'fast' in line 3"
    ):
        Pairs(data, source="x.csv", line_offset=2)
    data["predicted"][1] = "2.5"
    assert Pairs(data).predicted.tolist() == [1.0, 2.5, 2.0]


def test_failures_are_counted_not_used() -> None:
    data = {**GOOD, "status": ["ok", "timeout", None]}
    data["predicted"] = [11.0, float("nan"), 7.0]
    pairs = Pairs(data)
    assert pairs.n == 2
    assert [d.to_dict() for d in pairs.dropped] == [
        {"reason": "the prediction failed (status)", "n": 1, "rows": [2]}
    ]


def test_zeros_are_excluded_only_when_asked_and_counted() -> None:
    pairs = Pairs(with_value("measured", 0.0), zeros="exclude")
    assert pairs.n == 2
    assert pairs.dropped[0].reason == "measured is not positive"
    assert pairs.rows.tolist() == [1, 3]


@pytest.mark.parametrize("absent", [None, float("nan")])
def test_missing_numbers_are_excluded_only_when_asked_and_counted(absent: float | None) -> None:
    data = {"predicted": [1.0, absent, 3.0], "measured": [absent, 2.0, 3.0]}
    with pytest.raises(InputError, match=r'use missing="exclude" \(--missing exclude; the result'):
        Pairs(data)
    pairs = Pairs(data, missing="exclude")
    assert pairs.measured.tolist() == [3.0]
    assert [d.to_dict() for d in pairs.dropped] == [
        {"reason": "predicted or measured is missing", "n": 2, "rows": [1, 2]}
    ]


@pytest.mark.parametrize("word", ["", " ", "NA", "n/a", "NaN", "NULL", "none", "-", "--"])
def test_words_for_a_missing_number(word: str) -> None:
    data = {"predicted": [word, "2"], "measured": ["1", "2"]}
    with pytest.raises(InputError, match=r'got .* in row 1|predicted.*row 1.*missing="exclude"'):
        Pairs(data)
    assert Pairs(data, missing="exclude").predicted.tolist() == [2.0]


def test_other_rows_stay_errors_where_missing_ones_are_excluded() -> None:
    for values, message in (
        ([float("inf"), 2.0, None], "must be finite"),
        (["many", "2", None], "must be a number"),
    ):
        data = {"predicted": values, "measured": [1.0, 2.0, 3.0]}
        with pytest.raises(InputError, match=message):
            Pairs(data, missing="exclude")
    with pytest.raises(InputError, match="measured must be positive"):
        Pairs({"predicted": [1.0, None], "measured": [0.0, 1.0]}, missing="exclude")
    with pytest.raises(InputError, match='missing must be "raise" or "exclude", got \'drop\''):
        Pairs({"predicted": [1.0], "measured": [1.0]}, missing="drop")  # type: ignore[arg-type]


def test_a_failed_row_without_numbers_counts_as_failed() -> None:
    data = {"predicted": [None, 2.0], "measured": [1.0, 2.0], "status": ["crash", "ok"]}
    pairs = Pairs(data, missing="exclude")
    assert [d.reason for d in pairs.dropped] == ["the prediction failed (status)"]


def test_only_a_word_for_a_missing_number_gets_the_remedy() -> None:
    with pytest.raises(InputError) as caught:
        Pairs({"predicted": ["many", "2"], "measured": ["1", "2"]})
    assert "missing=" not in str(caught.value)


def test_nothing_left_says_why() -> None:
    with pytest.raises(InputError, match="1 dropped: the prediction failed"):
        Pairs({"predicted": [1.0], "measured": [1.0], "status": ["crash"]})
    with pytest.raises(InputError, match="the table is empty"):
        Pairs({"predicted": [], "measured": []})


def test_units_must_agree() -> None:
    assert Pairs({**GOOD, "unit": ["ms"] * 3}).unit == "ms"
    assert Pairs(GOOD, unit="us").unit == "us"
    with pytest.raises(InputError, match=r"mixed units: 'ms' and 's' \(the second in row 3\)"):
        Pairs({**GOOD, "unit": ["ms", "ms", "s"]})
    with pytest.raises(InputError, match="mixed units: 'us' and 'ms'"):
        Pairs({**GOOD, "unit": ["ms"] * 3}, unit="us")


def test_where_selects_and_explains() -> None:
    pairs = Pairs({**GOOD, "batch": [1, 2, 1]})
    assert pairs.where({"device": "B", "batch": "1"}).n == 2
    assert pairs.where({"device": ["A", "B"]}).n == 3
    with pytest.raises(InputError, match="no row has device=C. Values of device: A, B"):
        pairs.where({"device": "C"})
    with pytest.raises(InputError, match="no row has all of: device=A, batch=1"):
        pairs.where({"device": "A", "batch": 1})
    with pytest.raises(InputError, match="no column 'colour'. Columns to group by: device, batch"):
        pairs.where({"colour": "red"})


def test_tools_and_subject() -> None:
    data = {**GOOD, "tool": ["x", "y", "x"]}
    pairs = Pairs(data, subject="x")
    assert pairs.tools == ("x", "y")
    assert (pairs.of_tool().n, pairs.of_tool("Y").n, pairs.of_tool("all").n) == (2, 1, 3)
    assert Pairs(data).of_tool().n == 3
    assert Pairs(GOOD).of_tool().n == 3
    with pytest.raises(InputError, match="no tool 'z'. Tools in the table: x, y"):
        pairs.of_tool("z")


def test_take_keeps_rows_together() -> None:
    part = Pairs(GOOD, unit="ms").take(np.asarray([2, 0]))
    assert list(part) == [(7.0, 10.0), (11.0, 10.0)]
    assert part.unit == "ms"
    assert part.rows.tolist() == [3, 1]
    assert "n=2" in repr(part)
    assert len(part) == 2


def test_true_is_no_measurement_and_a_blank_is_missing() -> None:
    with pytest.raises(InputError, match="measured must be a number, got True in row 1"):
        Pairs({"predicted": [1.0], "measured": [True]})
    with pytest.raises(InputError, match="predicted is missing in row 2"):
        Pairs({"predicted": ["1", " "], "measured": ["1", "2"]})


@pytest.mark.parametrize(
    ("columns", "predicted", "measured"),
    [
        ({"predicted": "measured", "measured": "predicted"}, [3.0], [1.0]),
        ({"predicted": "other", "other": "predicted"}, [5.0], [3.0]),
        ({"measured": "other"}, [1.0], [5.0]),
    ],
)
def test_columns_may_swap_names(
    columns: dict[str, str], predicted: list[float], measured: list[float]
) -> None:
    pairs = Pairs({"predicted": [1.0], "measured": [3.0], "other": [5.0]}, columns=columns)
    assert pairs.predicted.tolist() == predicted
    assert pairs.measured.tolist() == measured


@pytest.mark.parametrize(
    "columns", [{"predicted": "measured"}, {"predicted": "measured", "measured": "measured"}]
)
def test_one_column_is_not_both(columns: dict[str, str]) -> None:
    with pytest.raises(
        InputError, match=r"t\.csv: predicted and measured both name the column 'measured'"
    ):
        Pairs(GOOD, columns=columns, source="t.csv")


def test_tools_that_differ_in_case_only_are_kept_apart() -> None:
    data = {**GOOD, "tool": ["X", "x", "all"]}
    pairs = Pairs(data)
    assert [pairs.of_tool(name).rows.tolist() for name in ("X", "x", "all")] == [[1], [2], [3]]
    with pytest.raises(InputError, match="several tools match 'yy'. Tools in the table: YY, x, yY"):
        Pairs({**GOOD, "tool": ["yY", "YY", "x"]}).of_tool("yy")


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["device", "device"], "key 'device' is given twice"),
        (["n"], "cannot group by 'n': the result has a column of that name. Rename"),
        ("n", "cannot group by 'n'"),
        ([1], "keys to group by must be names of columns, got 1"),
        ([["a"]], "keys to group by must be names of columns"),
    ],
)
def test_keys_that_would_be_lost_are_refused(by: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_keys(by, ["n"])


def test_one_key_may_be_given_as_it_is() -> None:
    assert check_keys("device", ()) == check_keys(["device"], ()) == ("device",)
    assert [g.key["device"] for g in Pairs(GOOD).groups("device")] == ["A", "B"]


def test_many_names_are_not_all_listed() -> None:
    names = [f"gpu{i}" for i in range(1000)]
    pairs = Pairs({"predicted": np.ones(1000), "measured": np.ones(1000), "device": names})
    with pytest.raises(
        InputError, match="no row has device=GPU77. Did you mean 'gpu77'. .* 988 more"
    ) as e:
        pairs.where({"device": "GPU77"})
    assert len(str(e.value)) < 250
    wide = Pairs({"predicted": [1.0], "measured": [1.0], **{name: [1] for name in names}})
    for wrong in (
        lambda: wide.groups("gpu"),
        lambda: Pairs(wide.native, columns={"measured": "x"}),
    ):
        with pytest.raises(InputError, match="and 9[89][0-9] more") as e:
            wrong()
        assert len(str(e.value)) < 350
    assert describe_names(names, wanted="?").startswith("gpu0, gpu1")


def test_names_are_listed_on_one_line() -> None:
    assert describe_names(["a", "b\nc"]) == r"a, 'b\nc'"
    many = ["\x1b[31m", *(f"gpu{i}" for i in range(20)), "b\nc"]
    assert describe_names(many, wanted="b\nd").startswith(r"'b\nc' (nearest), '\x1b[31m', gpu0")


def test_a_name_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(InputError, match=r"column '.*udfff': its name is not valid Unicode"):
        Pairs({**GOOD, "a\udfff": [1, 2, 3]})


@pytest.mark.parametrize("unit", [float("nan"), None, " "])
def test_no_unit_in_a_column_is_no_unit(unit: object) -> None:
    assert Pairs({**GOOD, "unit": [unit] * 3}).unit is None
    with pytest.raises(InputError, match="mixed units: 'ms' and no unit"):
        Pairs({**GOOD, "unit": [unit] * 3}, unit="ms")


@pytest.mark.parametrize("status", ["passed", True])
def test_only_failures_say_which_status_was_read_as_one(status: object) -> None:
    with pytest.raises(InputError, match=f"rows 1, 2, 3 with status '{status}'; only ok, success"):
        Pairs({**GOOD, "status": [status] * 3})


def test_keys_of_any_size_are_ordered() -> None:
    pairs = Pairs({**GOOD, "id": pl.Series([10**400, 2, 10**399], dtype=pl.Object)})
    assert [g.index.tolist() for g in pairs.groups("id")] == [[1], [2], [0]]


def test_a_value_with_commas_is_one_value() -> None:
    pairs = Pairs(
        {"model": ["resnet50, v1.5", "a", "b"], "predicted": [1.0, 2.0, 3.0], "measured": [1.0] * 3}
    )
    assert pairs.where({"model": ["resnet50", " v1.5"]}).n == 1
    assert pairs.where({"model": ["a", "b"]}).n == 2
    with pytest.raises(InputError, match="no row has model=c"):
        pairs.where({"model": ["a", "c"]})


def test_objects_that_are_numbers_become_floats() -> None:
    p, m = as_pairs(
        predicted=np.array([1, 2.5, Decimal("0.5")], dtype=object), measured=np.array([1, 2, 3])
    )
    assert p.dtype == m.dtype == np.float64
    assert (p.tolist(), m.tolist()) == ([1.0, 2.5, 0.5], [1.0, 2.0, 3.0])


def test_rows_without_a_measurement_are_kept_as_choices() -> None:
    pairs = Pairs({"predicted": [1.0, 0.0, 3.0], "device": [*"abc"]}, missing="keep")
    assert pairs.predicted.tolist() == [1.0, 0.0, 3.0]
    assert np.isnan(pairs.measured).all()
    assert (pairs.keys, pairs.dropped) == (("device",), ())
    with pytest.raises(InputError, match="measured"):
        Pairs({"predicted": [1.0, 2.0], "device": [*"ab"]}, missing="exclude")
    some = {"predicted": [1.0, None, 3.0], "measured": [2.0, 1.0, None]}
    pairs = Pairs(some, missing="keep")
    assert pairs.rows.tolist() == [1, 3]
    assert pairs.measured == pytest.approx([2.0, np.nan], nan_ok=True)
    assert [(one.n, one.rows) for one in pairs.dropped] == [(1, (2,))]
    with pytest.raises(InputError, match=r"t\.csv: predicted must be finite, got inf in row 3\. "):
        Pairs({**some, "predicted": [1.0, 2.0, np.inf]}, missing="keep", source="t.csv")
    failed = {**some, "predicted": [1.0, 2.0, np.inf], "status": ["ok", "ok", "failed"]}
    assert Pairs(failed, missing="keep").rows.tolist() == [1, 2]


def test_texts_with_units_are_numbers_of_one_unit() -> None:
    data = {"predicted": ["1.5 s", "20ms", " "], "measured": ["1 s", "25 ms", "none"]}
    pairs = Pairs(data, missing="exclude")
    assert pairs.unit == "s"
    assert pairs.predicted == pytest.approx([1.5, 0.02])
    assert pairs.measured == pytest.approx([1.0, 0.025])
    assert Pairs(data, missing="exclude", unit="ms").predicted == pytest.approx([1500.0, 20.0])
    # Where units measure different things, or only some numbers have one, nothing is converted.
    for predicted, rows in ((["1.5 s", "20 mJ"], "rows 1, 2"), (["1.5 s", "20"], "row 1")):
        with pytest.raises(
            InputError,
            match=rf"^predicted must be a number, got '1\.5 s' in {rows}\. Give all numbers of "
            r"the column a unit, or none\.$",
        ):
            Pairs({"predicted": predicted, "measured": [1.0, 2.0]})


def test_units_are_taken_from_the_columns_that_have_them() -> None:
    for predicted in ([1.5, 0.02], ["1.5", "0.02"], ["1.5 s", "20 ms"]):
        pairs = Pairs({"predicted": predicted, "measured": ["1 s", "25 ms"]})
        assert pairs.unit == "s"
        assert pairs.predicted == pytest.approx([1.5, 0.02])
        assert pairs.measured == pytest.approx([1.0, 0.025])
    columns = {"predicted": ["1 s", "2 mJ"], "measured": ["1 s", "20 ms"]}
    frame = to_eager(columns)
    found = without_units(frame, ["nothing", "predicted", "measured"], None)
    assert found.rows() == [("1 s", 1.0, "s"), ("2 mJ", 0.02, "s")]
    # Two units are stated already: which one is meant is not known.
    stated = to_eager({**columns, "unit": ["s", "ms"]})
    assert without_units(stated, ["predicted", "measured"], None).rows() == stated.rows()
