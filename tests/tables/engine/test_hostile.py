"""Names and values that are commands, quotes or wildcards elsewhere: the same result, or a refusal.

The tables in memory are the truth. A refusal is an ``InputError`` in one line.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.calibration import KernelCorrection
from errcomp.claims.auditing import audit
from errcomp.errors import InputError, LeftOutWarning
from errcomp.halflife.panel import panel_of
from errcomp.summary import summarize
from errcomp.tables import History, Pairs
from errcomp.tables.engine import shown
from errcomp.tables.engine.history import HistoryRows
from errcomp.tables.engine.kernels import KernelRows
from errcomp.tables.engine.pairs import PairRows
from errcomp.tables.engine.scanning import scan
from tests.tables.engine.test_engines import DASK, SPARK
from tests.tables.engine.test_odd_tables import pairs, repeated, told

pytestmark = pytest.mark.extras

FAST = ("Polars", "pandas", "PyArrow", "DuckDB")
ENGINES = (*FAST, DASK, pytest.param("Spark", marks=SPARK))
Make = Callable[[str, pl.DataFrame], Any]

#: No two differ only in case.
NAMES = (
    "a b", "it's", 'a"b', "a`b", "a\\b", "a.b", "${x}", "%s", "; DROP TABLE pairs; --", "",
    " ", "select", "null", "struct<a:int>", "a\nb", "a\r\tb", "\u202ea", "é", "e\u0301",
    "x" * 300, "key:device", "state:measured", "low:measured", "count(1)", "{0}", "a,b", "[a]",
    "(a)", "#", "Device", "_errcomp_partition", "_errcomp_file", "_errcomp_key_0", "_errcomp_KEY_1",
    "_errcomp_n", "_errcomp_p", "_errcomp_v", "_errcomp_v0", "_errcomp_t", "_errcomp_bucket",
    "__index__", "__index_level_0__", "index", "level_0", "columns", "0", "-1", "True", "NaN",
    "--", "/*", "$1", "?", ":x", "'", '"', '""', "\\", "\\n", "\x7f", "\ufeffa", "a\u200b",
    "\ufb01", "fi", "\u017f", "s", "\U0001f600", "measured ", "measured\u200b",
)  # fmt: skip
VALUES = (
    "it's", 'a"b', "a`b", "back\\slash", "new\nline", "tab\t", "%", "_", "NaN", "None", "null",
    "", " ", "; DROP TABLE pairs; --", "${x}", "é", "e\u0301", "x" * 100_000, "=cmd|' /C calc'!A0",
    "True", "1e308", "\u202ea", "nan ", "a,b", "a\0b", "\0", "x" * 99_999 + "y", "a", "A", "<NA>",
    "\ufffd", "\U0001f600", "a\u00a0", "\\N", None,
)  # fmt: skip
NUMBERS: dict[str, Any] = {
    "infinite": [np.inf],
    "minus infinite": [-np.inf],
    "NaN": [np.nan],
    "missing": [None],
    "zero": [0.0],
    "minus zero": [-0.0],
    "negative": [-1.0],
    "huge": [1e308],
    "tiny": [5e-324],
}
TYPES: dict[str, pl.Series] = {
    "text": pl.Series(["1.5", "2"] * 4),
    "boolean": pl.Series([True, False] * 4),
    "decimal": pl.Series([Decimal("1.5"), Decimal("2.25")] * 4, dtype=pl.Decimal(10, 2)),
    "decimal missing": pl.Series([None, Decimal(1)] * 4, dtype=pl.Decimal(10, 2)),
    "decimal zero": pl.Series([Decimal(0), Decimal(1)] * 4, dtype=pl.Decimal(10, 2)),
    "2**63": pl.Series([2**63, 2**64 - 1] * 4, dtype=pl.UInt64),
    "2**63 - 1": pl.Series([2**63 - 1, 1] * 4),
    "2**53 + 1 and missing": pl.Series([2**53 + 1, None] * 4),
    "-2**63": pl.Series([-(2**63), 1] * 4),
    "single": pl.Series([0.1, 3e38] * 4, dtype=pl.Float32),
    "single infinite": pl.Series([0.1, np.inf] * 4, dtype=pl.Float32),
    "all missing": pl.Series([None] * 8, dtype=pl.Float64),
    "date": pl.Series([dt.date(2024, 1, 1)] * 8),
    "list": pl.Series([[1.0]] * 8),
    "bytes": pl.Series([b"1"] * 8),
}


def outcome(ask: Callable[[], Any]) -> Any:
    """Return what is said, or that it is refused in one line; any other error fails the test."""
    try:
        return ask()
    except InputError as error:
        if "\n" in str(error):
            raise
        return "refused"


def left(table: Any) -> Any:
    """Leave the frame of an engine there: summaries would read those of pandas and PyArrow."""
    return table if isinstance(table, PairRows | Pairs | pl.DataFrame) else PairRows(table)


def figures(table: Any, **options: Any) -> Any:
    """Return all that a summary says, or that it is refused."""
    names = ("mape", "bias", "rmsle", "gmape")
    rows = outcome(lambda: told(summarize(left(table), figures=names, level=None, **options)))
    # An engine and a table in memory name the rows behind a figure in other words.
    told_of = " (rows counted among these pairs)"
    return rows if rows == "refused" else [(*row[:5], row[5].removesuffix(told_of)) for row in rows]


def verdicts(table: Any, by: Sequence[str]) -> Any:
    """Return the numbers of an audit, but for medians, which are approximate in an engine."""

    def ask() -> list[Any]:
        found = audit(table, by=by, claims=[], method="log-t")
        return [
            (row.key, row.n, name, f"{one.value:.9g}")
            for row in (*found.rows, *found.by_tool)
            for name, one in row.figures.items()
            if name != "median_ape"
        ]

    return outcome(ask)


#: Left out of Spark, which has no 2**63, makes a time of a date, and takes a second for each.
SLOW = (
    *("minus infinite", "minus zero", "zero", "boolean", "decimal zero", "2**63", "-2**63"),
    *("2**53 + 1 and missing", "all missing", "date", "list", "bytes"),
)


def able(engine: str) -> list[str]:
    """Return the names that an engine can hold; the others are refused, see below."""
    unable = {"DuckDB": [""], "Spark": ["a`b", "a.b"]}.get(engine, [])
    return [name for name in NAMES if name not in unable]


def named(names: Sequence[str]) -> pl.DataFrame:
    """Return pairs with columns of these names, each with values of its own."""
    return pairs(**{name: repeated(f"{i}x", f"{i}y", f"{i}x") for i, name in enumerate(names)})


# What tables in memory say is the same for all engines; columns that nobody asks for
# are left out.


@cache
def figures_of_names(names: tuple[str, ...], by: tuple[str, ...]) -> Any:
    return figures(named(names).select("predicted", "measured", *by), by=by)


@cache
def verdicts_of_names(names: tuple[str, ...], by: tuple[str, ...]) -> Any:
    return verdicts(named(names).select("predicted", "measured", *by), by)


@cache
def figures_of_numbers(predicted: str, measured: str) -> Any:
    columns = {"predicted": predicted, "measured": measured}
    return figures(Pairs(of_numbers([predicted, measured]), columns=columns))


@cache
def figures_and_verdicts_of_values() -> tuple[Any, Any]:
    table = with_values(VALUES)
    return figures(table, by="k"), verdicts(table, ["k"])


def of_numbers(names: Sequence[str]) -> pl.DataFrame:
    """Return numbers under these names; predicted and measured hold nothing of use."""
    numbers = np.exp(np.random.default_rng(3).standard_normal((8, len(NAMES))))
    columns = {name: numbers[:, i] for i, name in enumerate(NAMES) if name in names}
    return pl.DataFrame({"measured": ["none"] * 8, **columns, "predicted": ["none"] * 8})


@pytest.mark.parametrize("engine", ENGINES)
def test_names_of_keys(engine: str, to_engine: Make) -> None:
    known = tuple(able(engine))
    rows = PairRows(to_engine(engine, named(known)))
    assert set(rows.keys) == set(able(engine))
    step = len(NAMES) if engine in ("Dask", "Spark") else 8
    for i in range(0, len(rows.keys), step):
        names = rows.keys[i : i + step]
        expected = figures_of_names(known, tuple(names))
        assert [list(row[0]) for row in expected if row[0]] == [list(names)] * 8
        assert figures(rows, by=names) == expected
    names = rows.keys[5::30]
    assert verdicts(rows, names) == verdicts_of_names(known, tuple(names)) != "refused"


@pytest.mark.parametrize("engine", ENGINES)
def test_names_of_numbers(engine: str, to_engine: Make) -> None:
    """The columns predicted and measured are then not asked for."""
    names = able(engine)
    native = to_engine(engine, of_numbers(names))
    for predicted, measured in list(pairwise(NAMES))[:: 20 if engine in ("Dask", "Spark") else 4]:
        if not {predicted, measured} <= {*names}:
            continue
        renamed = {"predicted": predicted, "measured": measured}
        expected = figures_of_numbers(predicted, measured)
        assert figures(PairRows(native, columns=renamed)) == expected != "refused"


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        ("DuckDB", ""),  # it has no empty names, and calls the column something else
        pytest.param("Spark", "a`b", marks=SPARK),
        pytest.param("Spark", "a.b", marks=SPARK),
    ],
)
def test_names_that_an_engine_cannot_hold_are_refused(
    engine: str, name: str, to_engine: Make
) -> None:
    assert figures(to_engine(engine, named([name])), by=name) == "refused"


@pytest.mark.parametrize("name", ["*", "^k$", "^.*$"])
@pytest.mark.parametrize("engine", ["memory", *ENGINES])
def test_names_that_no_engine_can_hold_are_refused(engine: str, name: str, to_engine: Make) -> None:
    """DuckDB would group by all columns, and Polars by those that match."""
    table = pairs(k=repeated("x", "y"), **{name: repeated("x", "y")})
    given = table if engine == "memory" else to_engine(engine, table)
    with pytest.raises(InputError, match="engines read this name as a pattern.*Rename it"):
        summarize(given, by=name, figures="mape", level=None)


def test_a_zero_byte_in_a_name_is_refused() -> None:
    for table in (pairs(**{"\0at": 1}), pairs(**{"\0at": 1}).lazy()):
        with pytest.raises(InputError, match="its name contains a zero byte. Rename it"):
            summarize(table, figures="mape", level=None)


CASES = (("k", "K"), ("measured", "MEASURED"), ("é", "É"), ("s", "\u017f"), ("_errcomp_n", "_N"))


@pytest.mark.parametrize("engine", ["Polars", "pandas", "PyArrow", DASK])
def test_names_that_differ_in_case_are_two_columns(engine: str, to_engine: Make) -> None:
    for names in CASES:
        table = named([name for name in names if name != "measured"])
        rows = PairRows(to_engine(engine, table))
        for name in names[1:]:
            assert figures(rows, by=name) == figures(table, by=name) != "refused"


def test_duckdb_would_take_one_column_for_another() -> None:
    """It ignores the case of ASCII letters, and allows two columns of one name."""
    duckdb = pytest.importorskip("duckdb")
    others = ('"MEASURED"', "measured", '"Predicted"', 'k, 7.0 as "K"', "k, 7.0 as k")
    for other in others:
        for query in (
            f"select 1.0 as predicted, 2.0 as measured, 7.0 as {other}",
            f"select 7.0 as {other}, 1.0 as predicted, 2.0 as measured",
        ):
            with pytest.raises(InputError, match=r"^(?!.*\n).*the same name.*Rename one of them"):
                summarize(duckdb.sql(query), figures="mape", level=None)
    with pytest.raises(InputError, match="'MEASURED' and 'measured' have the same name in DuckDB"):
        PairRows(
            duckdb.sql('select 1.0 as predicted, 7.0 as "MEASURED", 2.0 as lat'),
            columns={"measured": "lat"},
        )
    table = duckdb.sql("select 1.0 as predicted, 2.0 as measured, 3 as é, 4 as É, 5 as s, 6 as ſ")
    found = summarize(table, by=["É", "é", "ſ", "s"], figures="mape", level=None)
    assert found.rows[0].key == {"É": 4, "é": 3, "ſ": 6, "s": 5}


@pytest.mark.parametrize("names", CASES)
@pytest.mark.parametrize("engine", [pytest.param("Spark", marks=SPARK)])
def test_spark_ignores_case(engine: str, names: tuple[str, str], to_engine: Make) -> None:
    table = named([name for name in names if name != "measured"])
    if names[0].lower() == names[1].lower():
        with pytest.raises(InputError, match=f"'{names[0]}' and '{names[1]}' have the same name"):
            summarize(to_engine(engine, table), figures="mape", level=None)
    else:
        given = to_engine(engine, table)
        assert figures(given, by=names) == figures(table, by=names) != "refused"


def with_values(values: Sequence[Any]) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    column = [*values, *values, *values[:1]]
    measured = np.exp(rng.standard_normal(len(column)))
    predicted = measured * rng.uniform(1, 2, len(column))
    return pl.DataFrame({"predicted": predicted, "measured": measured, "k": column})


@pytest.mark.parametrize("engine", ENGINES)
def test_values_of_keys(engine: str, to_engine: Make) -> None:
    table = with_values(VALUES)
    rows, inside = PairRows(to_engine(engine, table)), Pairs(table)
    known_figures, known_verdicts = figures_and_verdicts_of_values()
    assert figures(rows, by="k") == known_figures != "refused"
    assert verdicts(rows, ["k"]) == known_verdicts
    texts = [str(value) for value in VALUES if value is not None]
    some = [{"k": texts[::2]}, {"k": texts[1::2]}, {"k": "a\0b"}]
    if engine not in ("Dask", "Spark"):
        some += [{"k": text} for text in texts]
    for chosen in some:
        found, expected = rows.where(chosen), inside.where(chosen)
        assert (found.n, found.selection) == (expected.n, expected.selection)
    assert outcome(lambda: rows.where({"k": "' or 1=1 --"})) == "refused"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_numbers(engine: str, to_engine: Make) -> None:
    both = ("predicted", "measured")
    for i, what in enumerate((*NUMBERS, *TYPES)):
        column = TYPES[what] if what in TYPES else pl.Series([2.0] * 7 + NUMBERS[what])
        if engine == "Spark" and what in SLOW:
            continue
        for name in both[i % 2 :][:1] if engine in ("Dask", "Spark") else both:
            other = both[name == "predicted"]
            table = pl.DataFrame({name: column, other: [2.5] * 8, "k": ["a\nb"] * 8})
            found, expected = figures(to_engine(engine, table), by="k"), figures(table, by="k")
            # Engines do not parse text or Python's decimals; tables in memory do.
            objects = engine in ("pandas", "Dask") and what.startswith("decimal")
            if what == "text" or objects:
                assert found == "refused", (what, name)
            elif (what, name) == ("tiny", "measured"):  # an error is beyond all numbers
                assert [row[3] for row in found[:2]] == [row[3] for row in expected[:2]]
                assert found[0][3] == "nan"
            else:
                assert found == expected, (what, name)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_ratio_too_small_for_a_number_has_its_logarithm(engine: str, to_engine: Make) -> None:
    table = pl.DataFrame({"predicted": [5e-324, 1e-310, 2.0], "measured": [7.0, 1e10, 2.0]})
    found = figures(to_engine(engine, table))
    assert found == figures(table)
    logs = np.log(table["predicted"].to_numpy()) - np.log(table["measured"].to_numpy())
    assert float(found[2][3]) == pytest.approx(np.sqrt(np.mean(logs**2)), rel=1e-8)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("measured", [5e-324, 1e308, 1e160, 1e153])
def test_audits_of_numbers_near_the_limits(engine: str, measured: float, to_engine: Make) -> None:
    table = pl.DataFrame({"predicted": [1.0, 2.0, 3.0, 4.0] * 4, "measured": [measured] * 16})
    found = outcome(lambda: audit(PairRows(to_engine(engine, table)), claims=[], method="log-t"))
    if measured in (5e-324, 1e308):
        assert found == "refused"
    else:
        assert found.overall.figures["mape"].value == pytest.approx(1.0)


STATUS: dict[str, Sequence[Any]] = {
    "spaces": ("ok", "OK\u00a0", "\u2003ok", "ok\x1c", "\tok\n", "ok\u200b", " ", "\u3000", "x"),
    "words": ("Success", "\u017fuccess", "0", "0.0", "NONE", "nan", None, "false", "", "' or 1"),
    "numbers": (0, 1, 7),
    "floats": (0.0, 1.0, None),
    "booleans": (True, False, True),
    "bytes": (b"ok", b"ok", b"failed"),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_predictions_failed(engine: str, to_engine: Make) -> None:
    for what, values in STATUS.items():
        if what == "bytes" and engine in ("pandas", "Dask"):
            continue  # they make text of them
        table = pairs(status=repeated(*values))
        found, expected = (
            outcome(
                lambda t=t: [
                    (d.reason, d.n) for d in summarize(left(t), figures="mape", level=None).dropped
                ]
            )
            for t in (to_engine(engine, table), table)
        )
        assert found == expected, what


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bad_row_is_named_in_one_line(engine: str, to_engine: Make) -> None:
    name = "device\n; DROP TABLE"
    spoilt = pl.when(pl.int_range(pl.len()) == 5).then(-1.0).otherwise("measured")
    table = pairs(**{name: repeated("x\ny" * 50_000), "short": repeated("\u202ea")})
    given = to_engine(engine, table.with_columns(measured=spoilt))
    with pytest.raises(InputError, match="measured must be positive, got -1.0 in 1 row") as caught:
        summarize(PairRows(given), figures="mape")
    said = str(caught.value)
    assert said.isprintable()
    assert len(said) < 500
    assert f"{name!r}='x\\nyx" in said
    assert r"short='\u202ea'" in said


def test_bad_groups_of_rows_are_named_in_one_line() -> None:
    table = pairs(kernel_class=repeated("g"), device=repeated("x\ny" * 50_000))
    spoilt = pl.when(pl.int_range(pl.len()) == 5).then(np.inf).otherwise("measured")
    with pytest.raises(
        InputError, match="measured must be finite and .*, got inf in 1 row"
    ) as caught:
        KernelCorrection().fit(KernelRows(table.with_columns(measured=spoilt).lazy()))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_a_path_is_not_cut(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 200)
    folder.mkdir()
    for i in range(2):
        table = pl.DataFrame({"predicted": [1.0], "measured": [float(i)], "k": ["y" * 200]})
        table.write_parquet(folder / f"{i}.parquet")
    with pytest.raises(InputError) as caught:
        summarize(scan(folder), figures="mape")
    said = str(caught.value)
    assert f"file={folder}/0.parquet, k={'y' * 117}... " in said.replace(". Exclude", " Exclude")


def test_what_is_shown_is_one_line() -> None:
    assert [shown(value) for value in (1.5, None, "net3", "a\nb", "\ud800", b"\xff")] == [
        *("1.5", "None", "net3", r"'a\nb'", r"'\ud800'", r"b'\xff'"),
    ]
    assert shown("x" * 121) == "x" * 117 + "..."
    assert shown("x" * 120) == "x" * 120


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_chosen_where_nothing_is(engine: str, to_engine: Make) -> None:
    table = pairs(k=repeated("None?", None, "x"))
    rows = PairRows(to_engine(engine, table))
    assert rows.where({"k": "None"}).n == Pairs(table).where({"k": "None"}).n == 8
    assert rows.where({"k": ["None", "x"]}).n == 16
    with pytest.raises(InputError, match="no row has all of: k="):
        summarize(rows.where({"k": []}), figures="mape")


ODD: dict[str, tuple[Any, ...]] = {
    "times": (dt.time(1, 2, 3), dt.time(0), dt.time(1, 2, 3, 5)),
    "durations": (dt.timedelta(1), dt.timedelta(0, 1), dt.timedelta(-1)),
    "bytes": (b"\xff", b"\xfe", b"\0"),
    "lists": ([1], [2], []),
    "structs": ({"a": 1}, {"a": 2}, {"a": None}),
    "years": (dt.date(1, 1, 1), dt.date(9999, 12, 31), None),
}


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("what", ODD)
def test_types_that_are_rarely_keys(engine: str, what: str, to_engine: Make) -> None:
    table = pairs(k=repeated(*ODD[what]))
    native = to_engine(engine, table)
    rows = PairRows(native)
    odd = what in ("lists", "structs")
    with pytest.warns(LeftOutWarning) if odd else nullcontext():
        inside = Pairs(native if engine in ("pandas", "PyArrow") else table)
    found, expected = figures(rows, by="k"), figures(inside, by="k")
    assert [row[1:] for row in found if found != "refused"] == [
        row[1:] for row in expected if expected != "refused"
    ]
    assert (found == "refused") == (expected == "refused") == odd
    for value in dict.fromkeys(map(str, ODD[what])):
        n = outcome(lambda value=value: rows.where({"k": [value]}).n)
        assert n in (8, "refused")


def test_polars_writes_different_times_alike() -> None:
    rows = PairRows(pairs(k=repeated(*ODD["times"])).lazy())
    assert rows.where({"k": "00:00:00"}).n == 8
    with pytest.raises(
        InputError,
        match="cannot select by 'k': .* writes different values of this column as",
    ):
        rows.where({"k": "01:02:03"})


@pytest.mark.parametrize(
    "date", ["date '10000-01-01'", "'infinity'::timestamp", "date '0044-01-01 (BC)'"]
)
def test_dates_that_python_does_not_have(date: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    table = f"select 1.0 as predicted, 2.0 as measured, {date} as k"
    rows = PairRows(duckdb.sql(table))
    for work in (
        lambda: summarize(rows, by="k", figures="mape", level=None),
        lambda: summarize(rows, by="k", figures="median_ape_approx", level=None),
        lambda: rows.where({"k": "x"}),
    ):
        with pytest.raises(InputError, match=r"^cannot group or select by 'k' \(.*in DuckDB first"):
            work()
    assert summarize(rows, figures="mape", level=None).pooled.figures["mape"].value == 0.5
    bad = duckdb.sql(table.replace("2.0", "-2.0"))
    with pytest.raises(InputError, match=r"measured must be positive.* k=a Date"):
        summarize(bad, figures="mape", level=None)


@pytest.mark.parametrize("engine", ["pandas", DASK])
@pytest.mark.parametrize("values", [["\ud800", "a"], [[1], [2]], [b"\xff", b"a"]])
def test_objects_that_are_no_text(engine: str, values: list[Any]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pairs().to_pandas()
    frame["k"] = pandas.Series(repeated(*values), dtype=object)
    if engine == "Dask":
        dask = pytest.importorskip("dask")
        dataframe = pytest.importorskip("dask.dataframe")
        with dask.config.set({"dataframe.convert-string": False}):
            rows = PairRows(dataframe.from_pandas(frame, npartitions=2))
            found = figures(rows, by="k"), outcome(lambda: rows.where({"k": "a"}).n)
            pooled = figures(rows)
    else:
        rows = PairRows(frame)
        found = figures(rows, by="k"), outcome(lambda: rows.where({"k": "a"}).n)
        pooled = figures(rows)
    assert found[1] == "refused"
    if isinstance(values[0], bytes):
        assert [row[2:] for row in found[0]] == [row[2:] for row in figures(Pairs(frame), by="k")]
    else:
        assert found[0] == "refused"
    assert pooled == figures(pairs())


@pytest.mark.parametrize("engine", ENGINES)
def test_histories(engine: str, to_engine: Make) -> None:
    n = 4 * len(VALUES)
    names = able(engine)[:4] if engine in ("Dask", "Spark") else able(engine)[:12]
    keys = {name: [f"{i}x", f"{i}y"] * (n // 2) for i, name in enumerate(names)}
    measured = np.exp(np.random.default_rng(4).standard_normal(n))
    table = pl.DataFrame(
        {
            "version": [f"1.{i // len(VALUES)}" for i in range(n)],
            "op": [*VALUES] * 4,
            "measured": measured,
            **keys,
        }
    )

    def cells(history: Any) -> Any:
        found = panel_of(history)
        at = zip(found.panel.series, found.panel.version, found.panel.error, strict=True)
        return sorted(
            (found.panel.names[s], found.panel.versions[v], f"{error:.9g}", n)
            for (s, v, error), n in zip(at, found.n_repeats, strict=True)
        )

    native = to_engine(engine, table)
    assert cells(HistoryRows(native, series=names)) == cells(History(table, series=names))
    assert cells(HistoryRows(native, series=["op"])) == cells(History(table, series=["op"]))
