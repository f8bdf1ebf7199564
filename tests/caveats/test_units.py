"""Two units under one figure, a line between prediction and measurement, and code that mends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from errcomp import readers
from errcomp.caveats import check, not_looked_for
from errcomp.caveats._case import Case
from errcomp.caveats._statistics import line_between
from errcomp.caveats.sample import affine, readings, units
from errcomp.claims.auditing import grouped
from errcomp.results import Caveat
from errcomp.tables import Pairs
from errcomp.tables.engine.pairs import PairRows


def measured(n: int = 40) -> np.ndarray:
    return np.random.default_rng(1).lognormal(3, 1.2, n)


def off_by(factor: float, scatter: float = 0.1, n: int = 40) -> dict[str, Any]:
    """Predictions that are this many times the measurements, give or take a scatter."""
    noise = np.random.default_rng(2).standard_normal(n)
    noise = np.exp(scatter * (noise - np.median(noise)))
    return {"predicted": factor * measured(n) * noise, "measured": measured(n)}


def only(table: Any, **options: Any) -> Caveat:
    (caveat,) = check(table, **options)
    return caveat


def test_milliseconds_beside_microseconds_are_the_only_caveat() -> None:
    caveat = only(off_by(1000, 0.09))
    assert caveat.code == "units"
    assert caveat.message == (
        "Predictions are 1,000 times the measurements in nearly all pairs (9 of 10 are within a "
        "factor of 1.16 of this), which suggests µs beside ms, mW beside W or MB beside GB. If one "
        "factor corrects all predictions, the MAPE is 6.77 %. To convert, divide the predictions "
        "by 1,000: `import polars as pl; table "
        '= pl.DataFrame(table).with_columns(pl.col("predicted") / 1000)`'
    )
    assert caveat.evidence["larger"] == "predicted"
    assert caveat.evidence["divide_by"] == 1000


def test_the_larger_side_is_divided() -> None:
    evidence = only(off_by(1e-6)).evidence
    assert (evidence["larger"], evidence["divide_by"]) == ("measured", 1e6)


def test_cycles_beside_seconds_have_a_clock() -> None:
    caveat = only(off_by(1.41e9, 0.05))
    assert "which suggests cycles beside s at 1.41 GHz. " in caveat.message
    assert "divide the predictions by the clock rate, here 1.41e9: " in caveat.message


def test_a_factor_of_no_units_is_named_alone() -> None:
    caveat = only(off_by(17))
    assert caveat.evidence["units"] == []
    assert (
        ". No two usual units differ by this factor. If one factor corrects all predictions, the "
        "MAPE is 7.51 %." in caveat.message
    )


@pytest.mark.parametrize(
    ("factor", "scatter", "n", "unit", "expected"),
    [
        (1000.0, 0.02, 50, "J", ["mJ beside J"]),
        (1000.0, 0.02, 50, "us", ["us beside ms or ns beside us"]),
        (1.41e6, 0.05, 50, "J", []),
        (1.41e6, 0.05, 50, "ms", ["cycles beside ms at 1.41 GHz"]),
        (1.41e6, 0.05, 50, "cycles", ["cycles beside ms at 1.41 GHz"]),
        (1024.0, 0.02, 100, None, ["MiB beside GiB"]),
        (1024.0, 0.09, 20, None, ["µs beside ms, mW beside W or MB beside GB"]),
        (1024.0**3, 0.01, 50, None, ["bytes beside GiB"]),
        (3600.0, 0.05, 50, None, ["seconds beside hours"]),
        (60.0, 0.1, 50, "s", ["s beside min"]),
        (97.0, 0.1, 50, None, ["per cent beside fractions"]),
        (8.1, 0.05, 50, None, ["bits beside bytes"]),
    ],
)
def test_units_are_named_by_their_factor(
    factor: float, scatter: float, n: int, unit: str | None, expected: list[str]
) -> None:
    assert [one.units for one in readings(factor, scatter, n, unit)] == expected


def test_where_pairs_scatter_two_readings_are_named() -> None:
    found = readings(1.41e6, 0.6, 400)
    assert found[0].units == "cycles beside ms at 1.41 GHz"
    assert found[1].units.startswith("µs beside s")
    # Of few pairs a million is as likely as a clock, and comes first.
    assert readings(1.1e6, 0.6, 20)[0].ratio == 1e6


def test_a_factor_that_is_no_unit_and_not_constant_has_no_conversion() -> None:
    caveat = only(off_by(370, 0.5))
    assert caveat.message.endswith(" Find out what each column counts.")
    assert caveat.evidence["remedy"] == ""


def test_a_clock_is_not_read_as_hours() -> None:
    assert [one.units for one in readings(3502.0, 1e-4, 10)] == ["cycles beside µs at 3.5 GHz"]
    # Of a bias of 8 % both remain.
    assert [one.ratio for one in readings(1.08e6, 0.02, 50)] == [1.08e6, 1e6]


@pytest.mark.parametrize("factor", [0.25, 0.5, 1.0, 3.0, 4.5])
def test_a_predictor_that_is_biased_is_in_the_same_unit(factor: float) -> None:
    codes = [caveat.code for caveat in check(off_by(factor))]
    assert not {"units", "affine"} & set(codes)
    assert "one-sided" in codes or factor == 1


def test_a_factor_that_differs_from_pair_to_pair_is_no_unit() -> None:
    assert units(Case(Pairs(off_by(10, scatter=1.5)))) is None
    negative = off_by(1000)
    negative["predicted"][::5] *= -1
    assert units(Case(Pairs(negative))) is None
    assert units(Case(Pairs({"predicted": [-1.0] * 4, "measured": [1.0] * 4}))) is None
    assert units(Case(Pairs({"predicted": [1e3] * 2, "measured": [1.0] * 2}))) is None


def test_a_few_pairs_in_the_right_unit_do_not_hide_the_others() -> None:
    table = off_by(1000)
    table["predicted"][:3] /= 1000
    assert only(table).code == "units"


def test_what_does_not_look_at_errors_stays_beside_it() -> None:
    codes = [caveat.code for caveat in check(off_by(1000, n=6))]
    assert codes == ["units", "few-configurations"]
    failed = {**off_by(1000), "status": ["out of memory"] * 2 + ["ok"] * 38}
    assert [caveat.code for caveat in check(failed)] == ["units", "failures"]


def with_overhead(scatter: float = 0.05) -> dict[str, Any]:
    """Cycles beside ms in which every call waits as long as a middle one computes."""
    noise = np.exp(scatter * np.random.default_rng(2).standard_normal(40))
    return {"predicted": 1.5e6 * measured(), "measured": (20 + measured()) * noise}


def test_a_line_between_both_sides_is_named() -> None:
    caveat = only(with_overhead())
    assert caveat.code == "affine"
    evidence = caveat.evidence
    assert evidence["form"] == "line"
    assert evidence["intercept"] == pytest.approx(20, rel=0.05)
    assert evidence["slope"] == pytest.approx(1 / 1.5e6, rel=0.05)
    assert evidence["correlation"] > 0.98
    assert evidence["mape_after"] < 0.06 < 0.3 < evidence["mape_after_factor"]
    assert "the slope suggests cycles beside ms at 1.4" in caveat.message


def test_a_power_between_both_sides_is_named() -> None:
    table = {"predicted": 30 * measured() ** 2.5, "measured": measured()}
    caveat = only(table)
    assert (caveat.code, caveat.evidence["form"]) == ("affine", "power")
    assert caveat.evidence["slope"] == pytest.approx(0.4)
    assert "× predicted^0.4 (r = 1.000)" in caveat.message


def test_predictions_that_say_nothing_have_no_line() -> None:
    rng = np.random.default_rng(3)
    # Measurements that hardly differ: a constant does as well.
    table = {"predicted": 1e3 * rng.lognormal(0, 2, 40), "measured": 10 + rng.random(40)}
    assert affine(Case(Pairs(table))) is None
    unrelated = {"predicted": 1e3 * rng.lognormal(0, 2, 40), "measured": measured()}
    assert affine(Case(Pairs(unrelated))) is None
    constant = {"predicted": [1e4] * 40, "measured": measured()}
    assert affine(Case(Pairs(constant))) is None


def test_a_line_needs_pairs_and_finite_numbers() -> None:
    few = {name: values[:7] for name, values in with_overhead().items()}
    assert affine(Case(Pairs(few))) is None
    m = measured()
    assert line_between(np.where(m > 20, 1e300, 1e-300), m, 0.9) is None
    assert line_between(m, m, float("nan")) is None


def test_a_line_is_not_moved_by_a_few_pairs() -> None:
    m = measured()
    p = 1000 * m - 8000.0
    p[:3] *= 40
    found = line_between(p, m, 10.0)
    assert found is None or found.slope == pytest.approx(1e-3, rel=0.02)
    clean = line_between(1000 * m - 8000.0, m, 10.0)
    assert clean is not None
    assert clean.slope == pytest.approx(1e-3)


def run(code: str, table: Any) -> Any:
    """Run a pasted line on a table."""
    names = {"table": table}
    exec(code, names)
    return names["table"]


@pytest.mark.parametrize("make", [off_by, lambda _: with_overhead()])
@pytest.mark.parametrize(
    "kind", ["mapping", "polars", pytest.param("pyarrow", marks=pytest.mark.extras), "lazy"]
)
def test_the_line_to_paste_mends_the_table(make: Any, kind: str) -> None:
    columns = make(1e6)
    table: Any = columns
    if kind != "mapping":
        table = pl.DataFrame(columns)
    if kind == "pyarrow":
        pytest.importorskip("pyarrow")
        table = nw.from_native(table).to_arrow()
    if kind == "lazy":
        table = Pairs(table)
        table._native = table.native.lazy()  # as where pairs stay in an engine
    (found,) = check(table)
    mended = run(found.evidence["remedy"], table.native if kind == "lazy" else table)
    if kind == "lazy":
        mended = mended.collect()
    assert check(Pairs(mended)) == () or "units" not in {c.code for c in check(Pairs(mended))}
    assert found.evidence["remedy"] in found.message


@pytest.mark.extras
def test_the_line_to_paste_mends_a_table_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(off_by(1e3)).rename(columns={"predicted": "sim ms"})
    names = {"predicted": "sim ms"}
    found = only(Pairs(table, columns=names))
    assert found.evidence["remedy"] == 'table["sim ms"] = table["sim ms"] / 1000'
    assert check(Pairs(run(found.evidence["remedy"], table), columns=names)) == ()


@pytest.mark.core
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_to_paste_mends_a_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a b-c's.{suffix}"
    frame = pl.DataFrame(off_by(1e3)).rename({"predicted": "simulated µs"})
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    names = {"predicted": "simulated µs"}
    found = only(readers.read(path, columns=names))
    command = found.evidence["remedy"]
    assert command.startswith("python -c ")
    subprocess.run(
        command.replace("python", sys.executable, 1), shell=True, check=True
    )  # what a user pastes
    assert check(readers.read(tmp_path / f"a b-c's_converted.{suffix}", columns=names)) == ()


def in_engine(table: dict[str, Any]) -> list[Caveat]:
    rows = PairRows(pl.LazyFrame(table))
    return list(check(grouped(rows, (), (), ())))


def test_units_are_found_where_pairs_stay_in_an_engine() -> None:
    (found,) = in_engine(off_by(1000, n=100))
    assert found.code == "units"
    assert found.evidence["divide_by"] == 1000
    assert found.evidence["mape_after"] is None
    assert run(found.evidence["remedy"], pl.LazyFrame(off_by(1000))).collect().height == 40
    assert "units" not in {caveat.code for caveat in in_engine(off_by(3, n=100))}
    negative = off_by(1000, n=100)
    negative["predicted"][::5] *= -1
    assert "units" not in {caveat.code for caveat in in_engine(negative)}


def test_lines_are_not_looked_for_in_an_engine_and_said_so() -> None:
    missing = not_looked_for(several_tools=False)
    assert "affine" in missing
    assert "units" not in missing


@pytest.mark.parametrize(
    ("factor", "named"), [(1300.0, ["ms beside s or µs beside ms"]), (1330.0, [])]
)
def test_a_unit_is_as_near_as_one_standard_deviation_of_the_pairs(
    factor: float, named: list[str]
) -> None:
    """9 of 10 pairs are within exp(0.45): one standard deviation, of 1.645 in that, is 0.2736."""
    off = np.exp([-0.45, -0.45, -0.45, 0.0, 0.45, 0.45, 0.45])
    sizes = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 7.0, 6.0])
    found = units(Case(Pairs({"predicted": factor * sizes * off, "measured": sizes}, unit="ms")))
    assert found is not None
    assert found.caveat is not None
    assert found.caveat.evidence["within"] == pytest.approx(np.exp(0.45))
    assert found.caveat.evidence["factor"] == pytest.approx(factor)
    assert abs(np.log(1.3)) < 0.45 / 1.645 < abs(np.log(1.33))
    assert found.caveat.evidence["units"] == named
    assert found.caveat.evidence["divide_by"] == pytest.approx(1000.0 if named else factor)


def test_no_line_is_fitted_to_numbers_that_overflow() -> None:
    m = measured()
    found = line_between(1000 * m - 8000.0, m, 10.0)
    assert found is not None
    # The middle of an even number of them is beyond the largest number.
    assert line_between(np.where(np.arange(40) == 0, 1.0, 1.7e308), m, 10.0) is None
    # In units of the middle one, the largest is 1e98 or 1e102.
    even = np.geomspace(1, 100, 41)
    found = line_between(even**98, even, 1e9)
    assert found is not None
    assert (found.form, found.slope) == ("power", pytest.approx(1 / 98))
    assert line_between(even**102, even, 1e9) is None
