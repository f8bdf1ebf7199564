"""Errors that somebody knows: one figure, or a file by class."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.propagation import given_errors, read_errors


@pytest.fixture
def written(tmp_path: Path):
    """Write a file of errors."""

    def write(text: str, name: str = "errors.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_one_figure_for_all():
    model = given_errors(0.1, 0.02, kind="relative")
    assert (model.error("gemm").spread, model.error("soft").bias) == (0.1, 0.02)
    assert model.kind == "relative"
    assert model.n_runs == 0
    assert model.components is None


@pytest.mark.parametrize("spread", [-0.1, float("nan"), "0.1"])
def test_one_figure_that_is_no_spread(spread):
    with pytest.raises(InputError, match="spread of all classes must"):
        given_errors(spread)


def test_a_file_with_a_row_for_all_others(written):
    model = read_errors(written("kernel_class,spread,bias\ngemm,0.1,0.02\n*,0.3,-0.1\n"))
    assert list(model.classes) == ["gemm"]
    assert (model.error("gemm").bias, model.error("gemm").spread) == (0.02, 0.1)
    assert (model.error("any").bias, model.error("any").spread) == (-0.1, 0.3)


def test_without_bias_it_is_0_and_without_a_star_others_are_unknown(written):
    model = read_errors(written("kernel_class,spread\ngemm,0.1\n"), kind="absolute")
    assert (model.error("gemm").bias, model.kind) == (0.0, "absolute")
    assert model.other is None
    with pytest.raises(InputError, match="no error is known of kernel class 'soft'"):
        model.error("soft")


def test_names_that_look_like_numbers_stay_text(written):
    assert list(read_errors(written("kernel_class,spread\n007,0.1\n")).classes) == ["007"]


@pytest.mark.parametrize("suffix", ["parquet", "json"])
def test_other_formats(tmp_path: Path, suffix: str):
    frame = pl.DataFrame({"kernel_class": ["gemm", "*"], "spread": [0.1, 0.2]})
    path = tmp_path / f"errors.{suffix}"
    getattr(frame, f"write_{suffix}")(path)
    model = read_errors(path)
    assert (model.error("gemm").spread, model.error("x").spread) == (0.1, 0.2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel_class,spread\ngemm,-0.1\n", "spread must be a number that is not negative, got "
         "-0.1 in line 2"),
        ("kernel_class,spread\ngemm,0.1\na,\n", "spread is missing in line 3"),
        ("kernel_class,spread\ngemm,many\n", "spread"),
        ("kernel_class,spread,bias\ngemm,0.1,inf\n", "bias must be a finite number, got inf in "
         "line 2"),
        ("kernel_class,spread\ngemm,0.1\ngemm,0.2\n", "class 'gemm' is named twice, the second "
         "time in line 3"),
        ("kernel_class,bias\ngemm,0.1\n", "no column 'spread'.*columns found: kernel_class, bias"),
        ("class,spread\ngemm,0.1\n", "no column 'kernel_class'"),
        ("kernel_class,spread\n,0.1\n", "kernel_class is missing in line 2"),
        ("kernel_class,spread\ngemm,0.1\n  ,0.1\n", "kernel_class is missing in line 3"),
        ("kernel_class,spread\n", "no row below"),
        ("", "the file is empty"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used_say_where(written, text, message):
    with pytest.raises(InputError, match=f"errors.csv: .*{message}"):
        read_errors(written(text))


def test_a_table_without_rows(tmp_path: Path):
    path = tmp_path / "errors.parquet"
    schema = {"kernel_class": pl.String, "spread": pl.Float64}
    pl.DataFrame(schema=schema).write_parquet(path)
    with pytest.raises(InputError, match="errors.parquet: .*no row"):
        read_errors(path)
    path = tmp_path / "errors.json"
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="errors.json"):
        read_errors(path)


def test_no_such_file(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        read_errors(tmp_path / "nothing.csv")
