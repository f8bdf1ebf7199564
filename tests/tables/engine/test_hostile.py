"""Names and values that are commands, quotes or wildcards elsewhere: the same result, or a refusal.

The tables in memory are the truth. A refusal is an ``InputError`` in one line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.errors import ErrcompError, InputError
from errcomp.summary import summarize
from tests.tables.engine.test_engines import DASK, SPARK
from tests.tables.engine.test_odd_tables import pairs, repeated, told

pytestmark = pytest.mark.extras

ENGINES = ("Polars", "DuckDB", DASK, pytest.param("Spark", marks=SPARK))
Make = Callable[[str, pl.DataFrame], Any]

NAMES = (
    "a b", "it's", 'a"b', "a`b", "a\\b", "a.b", "${x}", "%s", "; DROP TABLE pairs; --", "",
    " ", "select", "null", "struct<a:int>", "a\nb", "a\tb", "\u202ea", "é", "e\u0301",
    "x" * 300, "key:device", "state:measured", "count(1)", "_errcomp_partition",
    "{0}", "a,b", "[a]", "(a)", "#", "__index_level_0__", "Device",
)  # fmt: skip
VALUES = (
    "it's", 'a"b', "a`b", "back\\slash", "new\nline", "tab\t", "%", "_", "NaN", "None", "null",
    "", " ", "; DROP TABLE pairs; --", "${x}", "é", "e\u0301", "x" * 100_000, "=cmd|' /C calc'!A0",
    "True", "1e308", "\u202ea", "nan ", "a,b",
)  # fmt: skip
NUMBERS: dict[str, Any] = {
    "infinite": [np.inf],
    "minus infinite": [-np.inf],
    "NaN": [np.nan],
    "missing": [None],
    "zero": [0.0],
    "negative": [-1.0],
    "huge": [1e308],
    "tiny": [5e-324],
    "text": ["1.5"],
    "boolean": [True],
}


def outcome(table: Any, **options: Any) -> Any:
    """Return all that a summary says, or that it is refused in one line."""
    try:
        rows = told(summarize(table, figures=("mape", "bias"), level=None, **options))
    except ErrcompError as error:
        told_in = str(error).count("\n") + 1
        return "refused" if told_in == 1 else f"refused in {told_in} lines"
    # An engine and a table in memory name the rows behind a figure in other words.
    return [(*row[:5], row[5].removesuffix(" (rows counted among these pairs)")) for row in rows]


@pytest.mark.parametrize("engine", ENGINES)
def test_names_of_keys(engine: str, to_engine: Make) -> None:
    expected = told(
        summarize(pairs(k=repeated("x", "y")), by="k", figures=("mape", "bias"), level=None)
    )
    refused = []
    for name in NAMES:
        found = outcome(to_engine(engine, pairs(**{name: repeated("x", "y")})), by=name)
        if found == "refused":
            refused.append(name)
            continue
        assert [row[2:] for row in found] == [row[2:] for row in expected], name
        assert found[0][0] == {name: "x"}
    # DuckDB has no empty names; Spark reads names with a dot or a backtick as parts of columns.
    assert refused == {"DuckDB": [""], "Spark": ["a`b", "a.b"]}.get(engine, [])


@pytest.mark.parametrize("name", ["*", "^k$", "^.*$"])
@pytest.mark.parametrize("engine", ["memory", "pandas", *ENGINES])
def test_names_that_no_engine_can_hold_are_refused(engine: str, name: str, to_engine: Make) -> None:
    """DuckDB would group by all columns, and Polars by those that match."""
    table = pairs(k=repeated("x", "y"), **{name: repeated("x", "y")})
    given = table if engine == "memory" else to_engine(engine, table)
    with pytest.raises(InputError, match="engines read this name as a pattern.*Rename it"):
        summarize(given, by=name, figures="mape", level=None)


def test_a_zero_byte_in_a_name_is_refused() -> None:
    for table in (pairs(**{"\0at": 1}), pairs(**{"\0at": 1}).lazy()):
        with pytest.raises(InputError, match="a zero byte in its name. Rename it"):
            summarize(table, figures="mape", level=None)


@pytest.mark.parametrize("engine", ENGINES)
def test_values_of_keys(engine: str, to_engine: Make) -> None:
    values = [*VALUES, *VALUES, *VALUES[:1]]
    n = len(values)
    rng = np.random.default_rng(1)
    measured = np.exp(rng.standard_normal(n))
    table = pl.DataFrame(
        {"predicted": measured * 1.1, "measured": measured * rng.uniform(1, 2, n), "k": values}
    )
    given = to_engine(engine, table)
    assert outcome(given, by="k") == outcome(table, by="k") != "refused"


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers(engine: str, to_engine: Make) -> None:
    for what, odd in NUMBERS.items():
        for column in ("predicted", "measured"):
            column_of = pl.Series(
                column, [*[2.0] * 7, *odd] if what not in ("text", "boolean") else odd * 8
            )
            other = "measured" if column == "predicted" else "predicted"
            table = pl.DataFrame({column_of.name: column_of, other: [2.5] * 8})
            found = outcome(to_engine(engine, table))
            # Engines do not parse text; tables in memory do.
            expected = "refused" if what in ("text", "boolean") else outcome(table)
            assert found == expected, (what, column)
