"""What is known of a predictor's errors, and the random terms that kernels become by it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from errcomp import Kernels
from errcomp.errors import InputError
from errcomp.propagation import (
    ClassError,
    ErrorModel,
    correlation,
    fit_errors,
    given_errors,
    read_errors,
)
from errcomp.propagation.errors.residuals import LEVELS, NOT_MODELLED
from errcomp.propagation.errors.tails import Tails
from errcomp.propagation.sums import total_moments

INDEPENDENT = correlation("independent")


def table(**columns):
    data = {
        "run": ["a", "a"],
        "kernel": ["k", "l"],
        "kernel_class": ["gemm", "soft"],
        "count": [2, 3],
        "predicted": [4.0, 1.0],
    }
    return Kernels({name: v for name, v in (data | columns).items() if v is not None}, unit="ms")


BOTH = {"gemm": ClassError(0.1, 0.2), "soft": ClassError(-0.3, 0.4)}


def test_terms_have_the_bias_and_spread_of_their_class():
    terms = ErrorModel(BOTH).terms(table(), INDEPENDENT)
    assert terms.ids.tolist() == ["a/k", "a/l"]
    assert terms.value.tolist() == [4.0, 1.0]
    assert terms.count.tolist() == [2, 3]
    assert terms.bias.tolist() == [0.1, -0.3]
    assert terms.spread.tolist() == [0.2, 0.4]
    assert terms.classes.tolist() == ["gemm", "soft"]
    assert (terms.kind, terms.unit, terms.df) == ("log-ratio", "ms", math.inf)


@pytest.mark.parametrize("kind", ["log-ratio", "relative", "absolute"])
def test_the_kind_goes_with_the_terms(kind):
    assert ErrorModel(BOTH, kind=kind).terms(table(), INDEPENDENT).kind == kind


def test_a_class_that_is_not_named_has_the_error_of_all_others():
    model = ErrorModel({"gemm": ClassError(0.1, 0.2)}, other=ClassError(0.0, 0.9))
    assert model.terms(table(), INDEPENDENT).spread.tolist() == [0.2, 0.9]
    assert model.error("gemm").spread == 0.2


def test_an_unknown_class_is_an_error_with_the_classes_there_are():
    with pytest.raises(
        InputError, match="kernel class 'soft'\\. Classes: gemm\\. Add this class, or \"\\*\""
    ):
        ErrorModel({"gemm": ClassError(0.1, 0.2)}).terms(table(), INDEPENDENT)


def test_small_kernels_err_more_where_spread_depends_on_size():
    model = ErrorModel(
        {"gemm": ClassError(0, 0.2, size=1.0), "soft": ClassError(0, 0.2)}, size_exponent=0.5
    )
    # 4 is 4 times the size: half the spread. The other class has no size.
    assert model.terms(table(), INDEPENDENT).spread.tolist() == pytest.approx([0.1, 0.2])


def test_student_t_tails_keep_the_standard_deviation():
    terms = ErrorModel(BOTH, kind="relative").terms(table(), correlation("independent", df=4.0))
    assert terms.df == 4.0
    normal = ErrorModel(BOTH, kind="relative").terms(table(), INDEPENDENT)
    assert total_moments(terms).sd == pytest.approx(total_moments(normal).sd)


# --- not modelled ---


@pytest.mark.parametrize("kind", ["log-ratio", "relative"])
def test_nothing_known_of_what_is_not_modelled_counts_as_0(kind):
    terms = ErrorModel(BOTH, kind=kind).terms(table(predicted=[4.0, 0.0]), INDEPENDENT)
    only = ErrorModel(BOTH, kind=kind).terms(table().take(np.array([0])), INDEPENDENT)
    assert terms.classes.tolist() == ["gemm", NOT_MODELLED]
    assert terms.spread[1] == terms.bias[1] == 0.0
    assert total_moments(terms).mean == pytest.approx(total_moments(only).mean)


def test_log_ratio_terms_are_positive_even_of_kernels_that_take_no_time():
    # What all engines may rely on.
    assert (ErrorModel(BOTH).terms(table(predicted=[4.0, 0.0]), INDEPENDENT).value > 0).all()


def test_what_is_known_of_kernels_that_are_not_modelled():
    model = ErrorModel({**BOTH, NOT_MODELLED: ClassError(0.03 - 1, 0.01)}, kind="relative")
    terms = model.terms(table(predicted=[4.0, 0.0]), INDEPENDENT)
    # 3 % of the modelled time of 2 · 4.
    assert (terms.count * terms.value * (1 + terms.bias))[1] == pytest.approx(0.24)


def test_the_floor_is_asked_only_where_something_is_known_of_what_is_below():
    small = table(predicted=[4.0, 0.001])
    blind = ErrorModel(BOTH, floor=0.01).terms(small, INDEPENDENT)
    assert blind.classes.tolist() == ["gemm", "soft"]
    assert blind.value[1] == 0.001
    known = ErrorModel({**BOTH, NOT_MODELLED: ClassError(-4.0, 0.1)}, floor=0.01)
    assert known.terms(small, INDEPENDENT).classes.tolist() == ["gemm", NOT_MODELLED]


def test_a_model_has_no_floor_unless_one_is_given():
    model = ErrorModel(BOTH)
    assert (model.floor, model.size_exponent, model.n_runs) == (0.0, 0.0, 0)
    assert NOT_MODELLED not in model.terms(table(), INDEPENDENT).classes


def test_absolute_errors_have_no_floor():
    terms = ErrorModel(BOTH, kind="absolute").terms(table(predicted=[4.0, 0.0]), INDEPENDENT)
    assert terms.classes.tolist() == ["gemm", "soft"]
    assert terms.value.tolist() == [4.0, 0.0]


# --- bad input ---


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ClassError(0.0, -0.1), "spread of gemm must not be negative, got -0.1. It is a standard"),
        (ClassError(0.0, math.nan), "spread of gemm must be a finite number, got nan"),
        (ClassError(0.0, math.inf), "spread of gemm must be a finite number, got inf"),
        (ClassError(math.nan, 0.1), "bias of gemm must be a finite number, got nan"),
        (ClassError("0.1", 0.1), "bias of gemm must be a finite number, got '0.1'"),
        (ClassError(0.0, True), "spread of gemm must be a finite number, got True"),
        (ClassError(0.0, 0.1, size=0.0), "size of gemm must be a positive time, got 0.0"),
        (ClassError(0.0, 0.1, size=-1.0), "size of gemm must be a positive time"),
    ],
)
def test_errors_that_are_none(error, message):
    with pytest.raises(InputError, match=message):
        ErrorModel({"gemm": error})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "percent"}, "kind must be one of log-ratio, relative, absolute, got 'percent'"),
        ({"floor": -1.0}, "floor must be a finite number, not negative, got -1.0"),
        ({"floor": math.nan}, "floor must be a finite number"),
        ({"size_exponent": math.inf}, "size_exponent must be a finite number"),
        ({"size_exponent": 0.5, "kind": "absolute"}, "absolute errors cannot depend on size"),
        ({"other": ClassError(0.0, -1.0)}, "spread of other classes must not be negative"),
    ],
)
def test_models_that_are_none(options, message):
    with pytest.raises(InputError, match=message):
        ErrorModel(BOTH, **options)


def test_a_time_below_0_is_no_relative_error():
    with pytest.raises(InputError, match=r"bias of all classes must be at least -1 .*got -1.5"):
        ErrorModel({}, kind="relative", other=ClassError(-1.5, 0.1))
    ErrorModel({}, kind="relative", other=ClassError(-1.0, 0.1))
    ErrorModel({}, kind="absolute", other=ClassError(-1.5, 0.1))


@pytest.mark.parametrize("kind", ["log-ratio", "relative", "absolute"])
def test_kernels_without_a_prediction(kind):
    with pytest.raises(InputError, match="the kernels were measured but not predicted"):
        ErrorModel(BOTH, kind=kind).terms(table(predicted=None, measured=[1.0, 2.0]), INDEPENDENT)


def test_estimated_needs_a_fitted_model():
    with pytest.raises(InputError, match="needs an error model fitted"):
        ErrorModel(BOTH).terms(table(), correlation("estimated"))


def test_units_are_not_mixed():
    fitted = fit_errors(table(measured=[4.4, 0.9]))
    assert fitted.unit == "ms"
    seconds = Kernels({"kernel": ["k"], "predicted": [4.0]}, unit="s", source="new.csv")
    with pytest.raises(InputError, match="new.csv: the kernels are in s, .* fitted to times in ms"):
        fitted.terms(seconds, INDEPENDENT)
    unknown = Kernels({"kernel": ["k"], "predicted": [4.0]})
    assert fitted.terms(unknown, INDEPENDENT).unit is None


# --- plain values ---


def test_as_plain_values():
    fitted = fit_errors(table(run=["a", "b"], measured=[4.4, 0.9]), by_size=True)
    plain = fitted.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["classes"]["gemm"]["n"] == 1
    assert plain["classes"]["gemm"]["size"] == pytest.approx(4.0)
    assert plain["other"]["size"] is None
    assert plain["unit"] == "ms"
    assert plain["n_runs"] == 2
    assert [level["level"] for level in plain["components"]["levels"]] == list(LEVELS)


def test_a_given_model_has_no_components():
    plain = ErrorModel(BOTH, tails=Tails(4.0)).to_dict()
    assert plain["components"] is None
    assert plain["other"] is None
    assert plain["tails"] == {"df": 4.0, "variance_df": None, "observed": None}


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
    with pytest.raises(InputError, match="no error for kernel class 'soft'"):
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
        ("kernel_class,spread\ngemm,0.1\ngemm,0.2\n", "class 'gemm' occurs twice, the second "
         "time in line 3"),
        ("kernel_class,bias\ngemm,0.1\n", "no column 'spread'.*found kernel_class, bias"),
        ("class,spread\ngemm,0.1\n", "no column 'kernel_class'"),
        ("kernel_class,spread\n,0.1\n", "kernel_class is missing in line 2"),
        ("kernel_class,spread\ngemm,0.1\n  ,0.1\n", "kernel_class is missing in line 3"),
        ("kernel_class,spread\n", "a header without rows"),
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
