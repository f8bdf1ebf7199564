"""Rows in an engine: what is refused, and how engines' own failures are told."""

from __future__ import annotations

import polars as pl
import pytest

from errcomp.errors import EngineError, MissingExtraError
from errcomp.tables.engine import Rows, _name_of
from errcomp.tables.frames import in_engine
from errcomp.tables.sums import Sum

FRAME = pl.LazyFrame({"predicted": [11.0, 90.0], "measured": [10.0, 100.0], "k": ["a", None]})


def test_which_frames_stay() -> None:
    assert in_engine(FRAME)
    assert not in_engine(FRAME.collect())
    assert not in_engine({"predicted": [1.0]})
    assert not in_engine(3)


def test_sums_by_group() -> None:
    sums = [Sum(("ape",)), Sum(("p", "m")), Sum(("ape",), "max"), Sum(("ape",), "within", 0.1)]
    found = Rows(FRAME).totals([], sums)
    assert found.n.tolist() == [2]
    assert [found.sums[one].tolist() for one in sums] == [[0.2], [9110.0], [0.1], [2.0]]
    by_key = Rows(FRAME).totals(["k"], sums[:1])
    assert sorted(map(str, by_key.keys["k"])) == ["None", "a"]


def test_a_logarithm_that_does_not_exist_is_not_counted() -> None:
    frame = pl.LazyFrame({"predicted": [10.0, -3.0, 0.0], "measured": [10.0, 5.0, 5.0]})
    sums = [Sum(("log_ape",), "count"), Sum(("log_ratio",), "count"), Sum(("p",), "count")]
    found = Rows(frame).totals([], sums)
    assert [found.sums[one].tolist() for one in sums] == [[2.0], [1.0], [3.0]]


def test_names_of_sums_have_no_point() -> None:
    """Spark takes what follows a point for a part of a column."""
    assert "." not in _name_of(Sum(("ape",), "within", 0.1))
    assert _name_of(Sum(("ape",), "within", 0.1)) != _name_of(Sum(("ape",), "within", 0.01))


def test_a_failure_of_the_engine_has_its_name_and_words() -> None:
    def fail(_: pl.DataFrame) -> pl.DataFrame:
        raise OSError("no space left on device")

    broken = FRAME.map_batches(fail, validate_output_schema=False)
    with pytest.raises(EngineError, match="Polars failed: .*no space left"):
        Rows(broken).totals([], [Sum(("ape",))])


def test_a_package_that_is_missing_is_an_extra() -> None:
    def work() -> None:
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    with pytest.raises(
        MissingExtraError, match=r"sums from Polars needs pyarrow.*errcomp\[polars\]"
    ):
        Rows(FRAME).asked(work)
