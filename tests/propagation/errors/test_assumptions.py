"""What the errors of kernels share under each assumption."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp import Kernels
from errcomp.errors import InputError
from errcomp.propagation import ASSUMPTIONS, ErrorModel, correlation, fit_errors, given_errors
from errcomp.propagation.errors.components import Correlation, correlations
from errcomp.propagation.errors.residuals import LEVELS

TABLE = {
    "run": ["r"] * 5,
    "device": ["x", "x", "x", "x", "y"],
    "kernel": ["a", "b", "c", "d", "a"],
    "kernel_class": ["gemm", "gemm", "gemm", "soft", "gemm"],
    "predicted": [1.0, 1.0, 2.0, 1.0, 1.0],
    "count": [3, 1, 1, 1, 1],
}


def matrix_of(assumption, model=None, **columns):
    """Correlation of the Z of the kernels."""
    model = given_errors(0.1) if model is None else model
    return model.terms(Kernels(TABLE | columns), assumption).correlation()


def groups(matrix):
    """Return the kernels in which each kernel's errors are the same."""
    return ["".join("abcde"[j] for j in np.flatnonzero(row == 1)) for row in matrix]


def test_independent_errors_share_nothing():
    terms = given_errors(0.1).terms(Kernels(TABLE), correlation("independent"))
    assert terms.levels == ()
    assert terms.own_share == 1.0


def test_comonotonic_errors_share_everything():
    assert groups(matrix_of(correlation("comonotonic"))) == ["abcde"] * 5


def test_repeats_are_what_a_deterministic_predictor_cannot_tell_apart():
    # b has the class and prediction of a; the last kernel too, but on another device.
    assert groups(matrix_of(correlation("repeats"))) == ["ab", "ab", "c", "d", "e"]
    shaped = matrix_of(correlation("repeats"), shape=["1", "2", "1", "1", "1"])
    assert groups(shaped) == ["a", "b", "c", "d", "e"]


def test_repetitions_of_a_row_repeat_its_error():
    terms = given_errors(0.1).terms(Kernels(TABLE), correlation("repeats"))
    assert terms.own_share == 0.0
    half = given_errors(0.1).terms(Kernels(TABLE), correlation("repeats", 0.5))
    assert half.own_share == 0.5


def test_classes_share_across_devices():
    assert groups(matrix_of(correlation("classes"))) == ["abce", "abce", "abce", "d", "abce"]


def test_devices_share_across_classes():
    assert groups(matrix_of(correlation("devices"))) == ["abcd"] * 4 + ["e"]


@pytest.mark.parametrize("name", ["repeats", "classes", "devices"])
@pytest.mark.parametrize("share", [0, 0.3, 1])
def test_a_correlation_that_is_set(name, share):
    off = matrix_of(correlation(name, share))
    full = matrix_of(correlation(name))
    assert off[~np.eye(5, dtype=bool)] == pytest.approx(share * full[~np.eye(5, dtype=bool)])


def test_a_matrix_is_taken_as_it_is():
    given = np.full((5, 5), 0.4) + 0.6 * np.eye(5)
    terms = given_errors(0.1).terms(Kernels(TABLE), correlation("matrix", matrix=given))
    assert terms.matrix == pytest.approx(given)
    assert terms.levels == ()
    assert terms.own_share == 0.0


def test_unknown_says_nothing_of_shared_causes():
    terms = given_errors(0.1).terms(Kernels(TABLE), correlation("unknown"))
    assert (terms.levels, terms.matrix) == ((), None)


# --- estimated ---


def fitted() -> ErrorModel:
    rng = np.random.default_rng(5)
    n = 6
    runs = [TABLE | {"run": [f"{i}"] * 5, "device": [f"d{i % 3}"] * 5} for i in range(n)]
    columns = {name: np.concatenate([run[name] for run in runs]) for name in TABLE}
    columns["measured"] = columns["predicted"] * np.exp(0.1 * rng.standard_normal(5 * n))
    return fit_errors(Kernels(columns))


@pytest.fixture(scope="module")
def model():
    return fitted()


def test_estimated_levels_are_nested_and_have_the_shares_of_the_components(model):
    terms = model.terms(Kernels(TABLE), correlation("estimated"))
    assert tuple(level.name for level in terms.levels) == LEVELS
    assert [level.share for level in terms.levels] == list(model.components.shares.values())
    assert terms.own_share == pytest.approx(0, abs=1e-12)
    for coarse, fine in zip(terms.levels[:-1], terms.levels[1:], strict=True):
        pairs = set(zip(fine.codes.tolist(), coarse.codes.tolist(), strict=True))
        assert len(pairs) == fine.codes.max() + 1


def test_rows_of_one_name_are_one_row(model):
    kernels = Kernels(TABLE | {"kernel": ["a", "a", "a", "a", "a"]})
    codes = model.terms(kernels, correlation("estimated")).levels[-1].codes
    # c has another prediction, d another class, the last another device.
    assert codes[0] == codes[1]
    assert len(set(codes.tolist())) == 4


def test_what_is_not_modelled_errs_as_one(model):
    kernels = Kernels(TABLE | {"predicted": [1.0, 0.0, 2.0, 0.0, 0.0]})
    codes = model.terms(kernels, correlation("estimated")).levels[-1].codes
    assert codes[1] == codes[3]


def test_estimated_has_no_sense_for_errors_that_were_given():
    with pytest.raises(InputError, match="needs an error model fitted to measured runs"):
        matrix_of(correlation("estimated"))


# --- bad input ---


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("correlated",), {}, "assumption 'correlated' is unknown. Assumptions: independent, "),
        ((5,), {}, "assumption 5 is unknown"),
        (("classes", -0.1), {}, "within classes must be between 0 and 1, got -0.1.*as a matrix"),
        (("devices", 1.01), {}, "within devices must be between 0 and 1, got 1.01"),
        (("repeats", math.nan), {}, "within repeats must be between 0 and 1, got nan"),
        (("repeats", "0.5"), {}, "within repeats must be between 0 and 1, got '0.5'"),
        (("independent", 0.5), {}, "assumption 'independent' takes no correlation, got 0.5"),
        (("comonotonic", 1.0), {}, "assumption 'comonotonic' takes no correlation"),
        (("estimated", 0.2), {}, "assumption 'estimated' takes no correlation"),
        (("independent",), {"df": 2.0}, "df must exceed 2"),
        (("independent",), {"df": math.nan}, "df must exceed 2"),
        (("independent",), {"df": "4"}, "df must exceed 2"),
        (("estimated",), {"df": 4.0}, "so it takes no df; got df=4.0. Leave df out"),
        (("matrix",), {}, "needs a matrix"),
        (("classes",), {"matrix": np.eye(2)}, "a matrix was given with assumption 'classes'"),
        (("matrix",), {"matrix": np.ones((2, 3))}, "must be a square matrix"),
        (("matrix",), {"matrix": [[1, 1.2], [1.2, 1]]}, r"in \[-1, 1\], got \(1, 2\) = 1.2"),
        (("matrix",), {"matrix": [[1, 0.2], [0.3, 1]]}, "must be symmetric"),
        (("matrix",), {"matrix": [[1, math.nan], [math.nan, 1]]}, "must be finite"),
        (
            ("matrix",),
            {"matrix": [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]},
            r"not positive semi-definite.*nearest_correlation\(matrix\)",
        ),
    ],
)  # fmt: skip
def test_assumptions_that_are_none(arguments, options, message):
    with pytest.raises(InputError, match=message):
        correlation(*arguments, **options)


def test_a_matrix_of_another_size_than_the_run():
    assumption = correlation("matrix", matrix=np.eye(3))
    with pytest.raises(InputError, match="has 3 rows, but run 'r' has 5 kernels"):
        matrix_of(assumption)


# --- several ---


def test_names_and_assumptions_may_be_mixed():
    half = correlation("classes", 0.5)
    assert correlations(["independent", half]) == [correlation("independent"), half]
    assert correlations("comonotonic") == [Correlation("comonotonic", {})]
    assert correlations(half) == [half]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([], "no assumption about the correlation"),
        (["classes", "classes"], "assumption 'classes' is given twice"),
        (["classes", correlation("classes", 0.1)], "assumption 'classes' is given twice"),
        ([3], "assumption 3 is unknown"),
    ],
)
def test_lists_that_make_no_sense(wanted, message):
    with pytest.raises(InputError, match=message):
        correlations(wanted)


def test_all_names_can_be_asked_for():
    for name in ASSUMPTIONS:
        matrix = np.eye(1) if name == "matrix" else None
        assert correlation(name, matrix=matrix).name == name
