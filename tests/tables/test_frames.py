from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.tables import Pairs
from errcomp.tables.frames import (
    all_differ,
    check_names,
    column_values,
    frame_from_columns,
    holds_numbers,
    in_engine,
    is_missing,
    to_eager,
)

TWO = {"predicted": [1.0, 2.0], "measured": [1.0, 3.0]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({**TWO, "k": [1]}, r"same length, got lengths predicted: 2, measured: 2, k: 1\."),
        ({**TWO, "k": [1, "2"]}, "column 'k' cannot be read: .*Give all values one type"),
        ({**TWO, "k": [True, 2.5]}, "column 'k' cannot be read"),
        ({**TWO, "k": [10**400, 1]}, "column 'k' cannot be read: int value too large"),
        ({**TWO, "k": [np.datetime64("2020-01-01")] * 2}, "column 'k' cannot be read"),
        ({**TWO, "k": np.array(["2020", "2021"], dtype="datetime64[Y]")}, "column 'k' cannot"),
        ({**TWO, 1: [1, 2]}, "column names must be text, got 1"),
        ({**TWO, None: [1, 2]}, "column names must be text, got None"),
    ],
)
def test_a_mapping_that_is_no_table_names_the_column(
    columns: dict[object, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        to_eager(columns)


def test_integers_and_floats_mix_and_one_value_stands_for_all_rows() -> None:
    frame = to_eager({"a": [1, 2.5, None], "device": "A"})
    assert frame["a"].to_list() == [1.0, 2.5, None]
    assert frame["device"].to_list() == ["A"] * 3


@pytest.mark.extras
@pytest.mark.parametrize("names", [["a", 0], ["a", None], [("a", "b"), ("a", "c")]])
def test_pandas_column_names_must_be_text(names: list[object]) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="column names must be text, got .* Rename the column"):
        to_eager(pandas.DataFrame([[1, 2]], columns=pandas.Index(names)))


@pytest.mark.extras
@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_two_columns_of_one_name_are_refused(library: str) -> None:
    module = pytest.importorskip(library)
    if library == "pandas":
        frame = module.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    else:
        frame = module.table([module.array([1.0]), module.array([2.0])], names=["a", "a"])
    with pytest.raises(InputError, match="two columns of the same name"):
        to_eager(frame)


@pytest.mark.extras
def test_pandas_na_is_missing_in_every_nullable_type() -> None:
    pandas = pytest.importorskip("pandas")
    types = {"Int64": [1, None], "string": ["x", None], "boolean": [True, None]}
    data = {name: pandas.array(values, dtype=name) for name, values in types.items()}
    data["Float64"] = pandas.array([1.5, None], dtype="Float64")
    data["time"] = pandas.to_datetime(["2020-01-01", None])
    frame = to_eager(pandas.DataFrame(data))
    for name in (*types, "time"):
        assert [v is None for v in column_values(frame, name)] == [False, True]
    assert column_values(frame, "Float64").dtype == np.float64
    bad = pandas.DataFrame({**TWO, "measured": data["Int64"], "unit": data["string"]})
    with pytest.raises(InputError, match="measured is missing in row 2"):
        Pairs(bad)
    with pytest.raises(InputError, match="mixed units: 'x' and no unit"):
        Pairs(bad.assign(measured=[1.0, 2.0]))
    assert [g.key["k"] for g in Pairs({**TWO, "k": [None, "a"]}).groups("k")] == ["a", None]
    status = pandas.DataFrame({**TWO, "status": data["string"]})
    assert Pairs(status).dropped[0].n == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pl.Series([1, 2**100], dtype=pl.Int128), [1.0, 2.0**100]),
        (pl.Series([Decimal("1.5"), Decimal("2.25")]), [1.5, 2.25]),
        (pl.Series([Decimal("0.1"), Decimal("12345678901234567.1")]), [0.1, 12345678901234567.1]),
    ],
)
def test_numbers_that_numpy_lacks_become_floats(values: pl.Series, expected: list[float]) -> None:
    assert Pairs({"predicted": values, "measured": [1, 2]}).predicted.tolist() == expected


def test_identifiers_of_many_digits_stay_apart() -> None:
    for ids in ([2**80, 2**80 + 1], [Decimal(10**20), Decimal(10**20 + 1)]):
        assert len(Pairs({**TWO, "id": ids}).groups("id")) == 2
    assert Pairs({**TWO, "id": [Decimal("1.10"), None]}).column("id").tolist() == [1.1, None]


def test_only_integers_beyond_64_bits_become_texts() -> None:
    edge = 2**63
    columns: dict[str, list[object]] = {
        "whole": [1, edge - 1, 1 - edge],
        "gap": [None, edge - 1, 1 - edge],
        "mixed": [1, 2.5, None],
        "above": [1, 2, edge],
        "below": [1, 2, -edge],
        "above beside a gap": [None, 2, edge],
        "below beside a gap": [None, 2, -edge],
    }
    frame = frame_from_columns(columns)
    assert frame.to_dict(as_series=False) == {
        "whole": [1, edge - 1, 1 - edge],
        "gap": [None, edge - 1, 1 - edge],
        "mixed": [1.0, 2.5, None],
        "above": ["1", "2", str(edge)],
        "below": ["1", "2", str(-edge)],
        "above beside a gap": [None, "2", str(edge)],
        "below beside a gap": [None, "2", str(-edge)],
    }


@pytest.mark.parametrize(
    "value", [1 + 2j, b"1", np.complex128(1), [1.0], 10**400, Fraction(10**9000)]
)
def test_what_float_takes_by_mistake_is_no_number(value: object) -> None:
    values = pl.Series("predicted", [value, 1.0], dtype=pl.Object)
    with pytest.raises(InputError, match="predicted must be a number, got .* in row 1"):
        Pairs({"predicted": values, "measured": [1.0, 2.0]})


@pytest.mark.parametrize("text", ["1_000", "١٢", "１２", "0x10", "1,5", "x" * 500])
def test_text_is_a_number_only_as_everybody_writes_it(text: str) -> None:
    with pytest.raises(InputError, match="predicted must be a number, got .* in row 2") as caught:
        Pairs({"predicted": ["1e3", text], "measured": [1.0, 2.0]})
    assert len(str(caught.value)) < 250


def test_values_that_are_arrays_are_no_missing_ones() -> None:
    assert not is_missing(np.ones(2))
    assert is_missing(np.datetime64("NaT"))
    assert is_missing(Decimal("sNaN"))


@pytest.mark.parametrize("names", [["b", "a", None], ["é", "", "z"], [None], ["one"]])
def test_texts_that_recur_are_shared(names: list[str | None]) -> None:
    rng = np.random.default_rng(0)
    texts = [names[i] for i in rng.integers(0, len(names), 2_000)]
    frame = to_eager(pl.DataFrame({"device": pl.Series(texts, dtype=pl.String)}))
    values = column_values(frame, "device")
    assert values.tolist() == texts
    assert len({id(value) for value in values.tolist()}) == len(set(texts))


def test_texts_that_hardly_recur_are_read_one_by_one() -> None:
    texts = [f"run {i // 2}" for i in range(2_000)]
    frame = to_eager(pl.DataFrame({"run": texts}))
    assert column_values(frame, "run").tolist() == texts


def test_rows_that_repeat_others_are_never_called_different() -> None:
    one = np.array([0.5, 0.25, 0.5, 3.0])
    assert all_differ(one, np.array([1.0, 1.0, 2.0, 1.0]))
    assert all_differ(np.array([1.0, 1.0, 2.0, 1.0]), one)
    assert not all_differ(one)
    assert not all_differ(one, np.array([1.0, 1.0, 1.0, 1.0]))
    # The same numbers the other way round are another row.
    assert all_differ(np.array([1.0, 2.0]), np.array([2.0, 1.0]))
    assert not all_differ(np.array([0.0, -0.0]))
    many = np.random.default_rng(1).random((100_000, 2))
    assert all_differ(*many.T)
    many[-1] = many[17]
    assert not all_differ(*many.T)


def test_two_columns_of_one_name_are_refused_where_rows_are_fetched() -> None:
    lazy = pl.LazyFrame({"a": [1], "b": [2]}).select(pl.col("a"), pl.col("b").alias("a"))
    assert in_engine(lazy)
    with pytest.raises(InputError, match="two columns of the same name. Rename one of them"):
        to_eager(lazy)


def test_names_that_an_engine_confuses_are_refused() -> None:
    check_names(["a", "A", "b.c", "`d`"], "Polars")
    check_names(["a", "b"], "Spark")
    for names, engine in ((["a", "b", "a"], "Polars"), (["device", "Device"], "Spark")):
        with pytest.raises(InputError, match="two columns of the same name"):
            check_names(names, engine)
    for name in ("b.c", "`d`"):
        with pytest.raises(InputError, match=f"column '{name}': Spark reads dots and backticks"):
            check_names(["a", name], "Spark")
    for name in ("*", "^a.*$"):
        with pytest.raises(InputError, match="engines read this name as a pattern"):
            check_names(["a", name], "DuckDB")


def test_a_column_of_texts_holds_numbers_if_most_of_them_are_numbers() -> None:
    kinds: dict[str, tuple[list[object], bool]] = {
        "ints": ([1, 2, 3, 4], True),
        "words": (["a", "b", "c", "d"], False),
        "units": (["12 ms", "1.5s", "fast", None], True),
        "half": (["1", "2", "x", "y"], False),
        "commas": (["1,5", "2,5", "x", "3"], True),
        "digits": ([10**400, 1.5, "x", None], True),
        "objects": ([object(), 10**400, b"", None], False),
        "nothing": ([None] * 4, False),
    }
    frame = pl.DataFrame(
        [
            pl.Series(name, values, dtype=pl.Object if name in ("digits", "objects") else None)
            for name, (values, _) in kinds.items()
        ]
    )
    assert holds_numbers(to_eager(frame)) == {name: numbers for name, (_, numbers) in kinds.items()}
