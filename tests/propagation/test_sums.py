"""Mean and variance of sums against the full covariance matrix of all instances."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation.sums import (
    effective_number,
    error_budget,
    growth_factor,
    icc,
    total_from_covariance,
    total_moments,
)
from errcomp.propagation.sums.variance import log_normals, row_covariances
from errcomp.propagation.terms import Level, Terms

KINDS = ("log-ratio", "relative", "absolute")


def make(
    value: Any, spread: Any, *, count: Any = 1, bias: Any = 0.0, levels: Any = (), **more: Any
) -> Terms:
    """Terms from lists; a level is (codes, share)."""
    value = np.atleast_1d(np.asarray(value, dtype=float))
    n = len(value)
    return Terms(
        ids=np.array([f"t{i}" for i in range(n)]),
        classes=np.array(more.pop("classes", ["c"] * n)),
        value=value,
        count=np.broadcast_to(np.asarray(count, dtype=np.int64), n),
        bias=np.broadcast_to(np.asarray(bias, dtype=float), n),
        spread=np.broadcast_to(np.asarray(spread, dtype=float), n),
        levels=tuple(
            Level(f"l{i}", np.asarray(codes, dtype=np.int64), share)
            for i, (codes, share) in enumerate(levels)
        ),
        **more,
    )


def nested(rng: np.random.Generator, n: int, fan: tuple[int, ...]) -> list[np.ndarray]:
    codes, out = np.zeros(n, dtype=np.int64), []
    for groups in fan:
        codes = np.unique(codes * groups + rng.integers(0, groups, n), return_inverse=True)[1]
        out.append(codes)
    return out


def covariance_of_instances(terms: Terms) -> np.ndarray:
    """Every instance a row."""
    of = np.repeat(np.arange(len(terms)), terms.count)
    between = 1.0 if terms.matrix is not None else float(sum(v.share for v in terms.levels))
    r = terms.correlation()
    np.fill_diagonal(r, between)
    r = r[np.ix_(of, of)]
    np.fill_diagonal(r, 1.0)
    s, v = terms.spread[of], terms.value[of]
    if terms.kind == "log-ratio":
        m = v * np.exp(terms.bias[of] + s**2 / 2)
        return np.outer(m, m) * np.expm1(np.outer(s, s) * r)
    a = v * s if terms.kind == "relative" else s
    return np.outer(a, a) * r


def sample_terms(rng: np.random.Generator, spreads: str, kind: str, levels: int = 3) -> Terms:
    n = 120
    codes = nested(rng, n, (3, 4, 6))[:levels]
    table = rng.uniform(0.05, 0.6, n)
    spread = {
        "equal": np.full(n, 0.3),
        "by group": table[codes[-1]] if codes else table,
        "by coarse group": table[codes[0]] if codes else table,
        "few": rng.choice(table[:3], n),
        "different": table,
        "huge": 10 * table,
        "some certain": np.where(rng.random(n) < 0.5, 0.0, table),
    }[spreads]
    return make(
        rng.lognormal(size=n),
        spread,
        count=rng.integers(1, 5, n),
        bias=rng.normal(0, 0.2, n),
        levels=list(zip(codes, (0.2, 0.3, 0.25), strict=False)),
        kind=kind,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "spreads",
    ["equal", "by group", "by coarse group", "few", "different", "huge", "some certain"],
)
def test_variance_is_that_of_the_full_matrix(kind: str, spreads: str, levels: int) -> None:
    terms = sample_terms(np.random.default_rng(levels), spreads, kind, levels)
    total = total_moments(terms)
    full = covariance_of_instances(terms)
    assert total.sd == pytest.approx(math.sqrt(full.sum()), rel=1e-13)
    mean = {
        "log-ratio": terms.value * np.exp(terms.bias + terms.spread**2 / 2),
        "relative": terms.value * (1 + terms.bias),
        "absolute": terms.value + terms.bias,
    }[kind]
    assert total.mean == pytest.approx(terms.count @ mean, rel=1e-13)
    assert total.prediction == pytest.approx(terms.count @ terms.value, rel=1e-13)
    assert (total.n_terms, total.n_instances) == (120, terms.count.sum())


def test_many_rows_of_few_spreads_are_merged() -> None:
    # More rows than groups times spreads, and no spread constant in a group; once with a spread
    # that the sample misses from which the table of spreads is made.
    rng = np.random.default_rng(1)
    n = 9000
    codes = nested(rng, n, (2, 3))
    spread = rng.choice([0.1, 0.2, 0.5], n)
    for at, odd in ((0, 0.2), (1, 0.77)):
        spread[at] = odd
        terms = make(
            rng.lognormal(size=n), spread, count=2, levels=list(zip(codes, (0.3, 0.2), strict=True))
        )
        m = terms.value * np.exp(spread**2 / 2)
        row_by_row = row_covariances(terms, m, exponential=True).sum()
        assert total_moments(terms).sd == pytest.approx(math.sqrt(row_by_row), rel=1e-13)
        assert total_moments(terms).mean == pytest.approx(2 * m.sum(), rel=1e-13)
        assert len(log_normals(terms).first) == (18 if at == 0 else n)


def test_spreads_whose_squares_are_no_float_count_as_none() -> None:
    terms = make([1.0, 1.0], [1e-170, 2e-170], levels=[([0, 0], 0.5)])
    assert total_moments(terms).sd == 0


@pytest.mark.parametrize("kind", KINDS)
def test_matrix_is_used_and_repetitions_share_everything(kind: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(20, 30))
    terms = make(
        rng.lognormal(size=20),
        rng.uniform(0.1, 0.5, 20),
        count=rng.integers(1, 4, 20),
        matrix=np.corrcoef(x),
        kind=kind,
    )
    full = covariance_of_instances(terms).sum()
    assert total_moments(terms).sd == pytest.approx(math.sqrt(full), rel=1e-12)


def test_a_level_without_a_share_changes_nothing() -> None:
    codes = [[0, 0, 0], [0, 0, 1]]
    one = make([1, 2, 3], [0.1, 0.2, 0.3], levels=[(codes[1], 0.5)])
    two = make([1, 2, 3], [0.1, 0.2, 0.3], levels=[(codes[0], 0.0), (codes[1], 0.5)])
    none = make([1, 2, 3], [0.1, 0.2, 0.3], levels=[(codes[0], 0.0)])
    assert total_moments(one).sd == total_moments(two).sd
    assert total_moments(none).sd == total_moments(make([1, 2, 3], [0.1, 0.2, 0.3])).sd


def test_certain_terms_are_certain() -> None:
    for kind in KINDS:
        for df in (math.inf, 4.0):
            total = total_moments(make([1, 2], 0.0, count=[3, 1], kind=kind, df=df))
            assert (total.mean, total.sd) == (5.0, 0.0)
            assert total.quantile(0.99) == pytest.approx(5.0, rel=1e-15)


def test_very_large_and_small_values_do_not_overflow() -> None:
    for kind in ("log-ratio", "relative"):
        usual = total_moments(make([1, 2, 3], [0.1, 0.2, 0.3], count=2, kind=kind))
        for unit in (1e-250, 1e250):
            total = total_moments(
                make(unit * np.array([1, 2, 3]), [0.1, 0.2, 0.3], count=2, kind=kind)
            )
            assert total.sd == pytest.approx(unit * usual.sd, rel=1e-12)
            assert total.quantile(0.1) == pytest.approx(unit * usual.quantile(0.1), rel=1e-10)


def test_quantiles_of_one_term_are_exact() -> None:
    log_normal = total_moments(make([10.0], 0.5, bias=0.1))
    law = stats.lognorm(0.5, scale=10 * math.exp(0.1))
    normal = total_moments(make([10.0], 0.5, bias=0.1, kind="relative"))
    student = total_moments(make([10.0], 0.5, bias=0.1, kind="absolute", df=3.0))
    heavy = total_moments(make([10.0], 0.5, bias=0.1, df=3.0))
    for level in (0.01, 0.05, 0.5, 0.9, 0.999):
        assert log_normal.quantile(level) == pytest.approx(law.ppf(level), rel=1e-12)
        assert normal.quantile(level) == pytest.approx(stats.norm(11, 5).ppf(level), rel=1e-12)
        t = stats.t(3).ppf(level)
        assert student.quantile(level) == pytest.approx(10.1 + 0.5 * t, rel=1e-12)
        assert heavy.quantile(level) == pytest.approx(10 * math.exp(0.1 + 0.5 * t), rel=1e-5)
    assert normal.band(0.9) == (normal.quantile(0.05), normal.quantile(0.95))


@pytest.mark.parametrize("df", [1.0, 2.0, 5.0, 200.0])
def test_a_common_heavy_tailed_error_is_a_student_t_of_the_logarithm(df: float) -> None:
    common = [([0, 0, 0], 1.0)]
    total = total_moments(make([1, 2, 3], 0.2, count=4, levels=common, df=df))
    assert (total.mean, total.sd, total.relative_sd) == (None, None, None)
    for level in (0.05, 0.5, 0.95, 0.99):
        expected = 24 * math.exp(0.2 * stats.t(df).ppf(level))
        assert total.quantile(level) == pytest.approx(expected, rel=1e-3 if df == 1 else 1e-5)


def test_moments_of_a_student_t_exist_as_far_as_they_do() -> None:
    t = make([3.0, 4.0], [1.0, 1.0], kind="absolute", df=3.0)
    assert total_moments(t).mean == 7.0
    assert total_moments(t).sd == pytest.approx(math.sqrt(2 * 3))
    assert total_moments(t).scale == pytest.approx(math.sqrt(2))
    two = total_moments(dataclasses.replace(t, df=2.0))
    assert (two.mean, two.sd) == (7.0, None)
    one = total_moments(dataclasses.replace(t, df=1.0))
    assert (one.mean, one.sd, one.location) == (None, None, 7.0)


def test_the_heaviest_tails_stay_finite() -> None:
    total = total_moments(make([1.0, 2.0], [3.0, 9.0], df=2.0))
    low, high = total.band(0.98)
    assert 0 < low < 3 < high < math.inf


def test_moments_turn_into_json() -> None:
    total = total_moments(make([1.0, 2.0], 0.1, unit="ms"))
    written = json.loads(json.dumps(total.to_dict(), allow_nan=False))
    assert written["unit"] == "ms"
    assert written["df"] is None
    assert written["relative_sd"] == total.sd / total.mean
    assert "Fenton" in written["method"]
    heavy = total_moments(make([1.0, 2.0], 0.1, df=4.0)).to_dict()
    assert (heavy["df"], heavy["mean"]) == (4.0, None)
    assert total_moments(make([1.0, -1.0], 0.1, kind="relative")).relative_sd is None


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_levels_outside_are_refused(level: float) -> None:
    total = total_moments(make([1.0], 0.1))
    for ask in (total.quantile, total.band):
        with pytest.raises(InputError, match=r"between 0 and 1"):
            ask(level)


def test_no_term_is_refused() -> None:
    nothing = make([1.0], 0.1).take([])
    for ask in (total_moments, effective_number, growth_factor, error_budget):
        with pytest.raises(InputError, match="at least one term"):
            ask(nothing)


@pytest.mark.parametrize("df", [math.inf, 4.0])
@pytest.mark.parametrize("spread", [27.0, 40.0])
def test_a_spread_beyond_floating_point_is_named(spread: float, df: float) -> None:
    with pytest.raises(InputError, match=rf"{spread:g} for t1"):
        total_moments(make([1.0, 1.0], [0.1, spread], df=df))
    if math.isinf(df):
        with pytest.raises(InputError, match=rf"{spread:g} for t1"):
            effective_number(make([1.0, 1.0], [0.1, spread], df=df))


@pytest.mark.parametrize("kind", KINDS)
def test_a_total_beyond_floating_point_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="larger unit"):
        total_moments(make([1.5e308, 1.5e308], 0.1, kind=kind))


@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_that_is_not_definite_is_refused(kind: str) -> None:
    matrix = np.array([[1, -0.9, -0.9], [-0.9, 1, -0.9], [-0.9, -0.9, 1]])
    terms = make([1.0, 1.0, 1.0], 0.1, matrix=matrix, kind=kind)
    for ask in (total_moments, effective_number):
        with pytest.raises(InputError, match="not positive semi-definite"):
            ask(terms)


class TestCovariance:
    def test_value(self) -> None:
        rng = np.random.default_rng(3)
        for n in (1, 2, 256, 257, 1000):
            a = rng.normal(size=(n, n))
            covariance, x = a @ a.T, rng.normal(size=n)
            total = total_from_covariance(x, covariance, unit="s")
            assert total.sd == pytest.approx(math.sqrt(covariance.sum()), rel=1e-9)
            assert total.mean == pytest.approx(x.sum(), rel=1e-12)
            assert (total.unit, total.law, total.n_terms) == ("s", "normal", n)

    def test_perfectly_opposed_terms_cancel(self) -> None:
        assert total_from_covariance([1, 1], [[1, -1], [-1, 1]]).sd == 0

    @pytest.mark.parametrize("n", [3, 256])
    def test_asymmetry_is_named(self, n: int) -> None:
        covariance = np.eye(n)
        covariance[2, 0] = 0.5
        covariance[0, 2] = 0.25
        with pytest.raises(InputError, match=r"0.25 at position \(0, 2\) and 0.5 at \(2, 0\)"):
            total_from_covariance(np.ones(n), covariance)

    @pytest.mark.parametrize("first", [0, 3, 968])
    def test_asymmetric_group_of_terms_is_found_in_a_large_matrix(self, first: int) -> None:
        covariance = np.eye(1_000)
        of_group = slice(first, first + 32)  # one of 16 terms is compared with others
        covariance[of_group, of_group] += np.tri(32, 32, -1)
        with pytest.raises(InputError, match="covariance must be symmetric"):
            total_from_covariance(np.ones(1_000), covariance)

    @pytest.mark.parametrize(
        ("values", "covariance", "message"),
        [
            ([1, 1], [[1, np.nan], [0, 1]], r"covariance must be finite.* \(0, 1\) \(1 such"),
            ([1, np.inf], np.eye(2), "values must be finite, got inf at position 1"),
            ([1, 1], [[np.inf, -np.inf], [-np.inf, 1]], r"\(0, 0\) \(3 such entries"),
            ([1, 1], [[1, 0], [0, -1]], r"got -1 at position \(1, 1\)"),
            ([1, 1], [[1, -2], [-2, 1]], "not positive semi-definite.* -2"),
            ([1, 1], [[1e308, 1e308], [1e308, 1e308]], "larger unit"),
            ([1, 1], np.eye(3), r"\(2,\) and \(3, 3\)"),
            ([], np.zeros((0, 0)), "n of at least 1"),
            (3.0, np.eye(1), r"got \(\)"),
            (["a"], np.eye(1), "values must be an array of numbers"),
            ([1, 1], [[1, 0], [0]], "covariance must be an array of numbers"),
        ],
    )
    def test_bad_input(self, values: Any, covariance: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            total_from_covariance(values, covariance)


class TestEffectiveNumber:
    def test_independent_and_common(self) -> None:
        for kind in KINDS:
            for df in (math.inf, 4.0):
                alone = make([2.0], 0.3, count=50, kind=kind, df=df)
                assert effective_number(alone) == pytest.approx(50)
                assert growth_factor(alone) == pytest.approx(1 / math.sqrt(50))
                same = make([2.0, 5.0], 0.3, count=9, levels=[([0, 0], 1.0)], kind=kind, df=df)
                assert effective_number(same) == pytest.approx(1)
                assert growth_factor(same) == pytest.approx(1)

    @pytest.mark.parametrize("kind", KINDS)
    def test_definition(self, kind: str) -> None:
        terms = sample_terms(np.random.default_rng(4), "different", kind)
        full = covariance_of_instances(terms)
        sd = np.sqrt(full.diagonal())
        assert effective_number(terms) == pytest.approx(sd.sum() ** 2 / full.sum(), rel=1e-12)
        total = total_moments(terms)
        of = np.repeat(np.arange(len(terms)), terms.count)
        mean = {
            "log-ratio": terms.value * np.exp(terms.bias + terms.spread**2 / 2),
            "relative": terms.value * (1 + terms.bias),
            "absolute": terms.value + terms.bias,
        }[kind][of]
        kernel_level = np.sum(mean / mean.sum() * (sd / mean))
        assert growth_factor(terms) == pytest.approx(total.relative_sd / kernel_level, rel=1e-12)

    def test_offsetting_errors_count_more_than_there_are(self) -> None:
        matrix = np.array([[1.0, -0.5], [-0.5, 1.0]])
        assert effective_number(make([1, 1], 0.1, matrix=matrix, kind="relative")) == 4

    def test_not_defined_without_error(self) -> None:
        opposed = make([1, 1], 0.1, matrix=np.array([[1.0, -1.0], [-1.0, 1.0]]), kind="relative")
        for ask in (effective_number, growth_factor, error_budget):
            with pytest.raises(NotDefinedError, match="all spreads are 0"):
                ask(make([1, 2], 0.0))
            with pytest.raises(NotDefinedError, match="cancel exactly"):
                ask(opposed)


class TestIcc:
    def test_levels_add_up(self) -> None:
        terms = make([1, 2], 0.1, levels=[([0, 0], 0.2), ([0, 1], 0.5)])
        assert icc(terms) == pytest.approx({"l0": 0.2, "l1": 0.7})
        assert icc(make([1, 2], 0.1)) == {}

    def test_matrix_is_averaged_with_weights(self) -> None:
        matrix = np.array([[1, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 1]])
        terms = make([1, 2, 3], 0.1, count=[1, 2, 1], matrix=matrix, kind="relative")
        expected = (4 * 0.5 + 12 * 0.2) / (4 + 3 + 12)
        assert icc(terms) == pytest.approx({"matrix": expected})

    def test_matrix_of_one(self) -> None:
        with pytest.raises(NotDefinedError, match="needs at least two terms"):
            icc(make([1.0], 0.1, matrix=np.eye(1)))


class TestBudget:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("levels", [0, 1, 3])
    def test_definition_by_class(self, kind: str, levels: int) -> None:
        rng = np.random.default_rng(5)
        terms = sample_terms(rng, "different", kind, levels)
        classes = rng.choice(["gemm", "norm", "softmax"], len(terms))
        terms = dataclasses.replace(terms, classes=classes)
        full = covariance_of_instances(terms)
        of = np.repeat(classes, terms.count)
        budget = error_budget(terms)
        assert budget.first_order.sum() == pytest.approx(1, abs=1e-12)
        assert budget.share_of_time.sum() == pytest.approx(1, abs=1e-12)
        assert list(budget.first_order) == sorted(budget.first_order, reverse=True)
        for name, first, total in zip(budget.names, budget.first_order, budget.total, strict=True):
            inside = of == name
            assert first == pytest.approx(full[inside].sum() / full.sum(), rel=1e-12)
            rest = full[np.ix_(~inside, ~inside)].sum()
            assert total == pytest.approx(1 - rest / full.sum(), rel=1e-10)

    @pytest.mark.parametrize("kind", KINDS)
    def test_definition_by_term_with_a_matrix(self, kind: str) -> None:
        rng = np.random.default_rng(6)
        terms = make(
            rng.lognormal(size=8),
            rng.uniform(0.1, 0.5, 8),
            count=rng.integers(1, 4, 8),
            matrix=np.corrcoef(rng.normal(size=(8, 12))),
            kind=kind,
        )
        full = covariance_of_instances(terms)
        of = np.repeat(terms.ids, terms.count)
        budget = error_budget(terms, by="term")
        for name, first, total in zip(budget.names, budget.first_order, budget.total, strict=True):
            inside = of == name
            assert first == pytest.approx(full[inside].sum() / full.sum(), rel=1e-11, abs=1e-12)
            rest = full[np.ix_(~inside, ~inside)].sum()
            assert total == pytest.approx(1 - rest / full.sum(), rel=1e-9, abs=1e-9)

    def test_independent_rows_share_the_variance_out(self) -> None:
        terms = make([3.0, 4.0], 0.1, classes=["a", "b"], kind="relative")
        budget = error_budget(terms)
        assert list(budget.names) == ["b", "a"]
        np.testing.assert_allclose(budget.first_order, [16 / 25, 9 / 25])
        np.testing.assert_allclose(budget.total, budget.first_order)
        np.testing.assert_allclose(budget.share_of_time, [4 / 7, 3 / 7])

    def test_heavy_tails_have_the_budget_of_the_logarithm(self) -> None:
        terms = make([3.0, 4.0], 0.1, classes=["a", "b"])
        heavy = error_budget(dataclasses.replace(terms, df=3.0))
        linear = error_budget(dataclasses.replace(terms, kind="relative"))
        np.testing.assert_allclose(heavy.first_order, linear.first_order)

    def test_json(self) -> None:
        terms = make([3.0, 4.0], 0.1, classes=["a", "b"], kind="relative")
        written = json.loads(json.dumps(error_budget(terms).to_dict()))
        assert written["by"] == "class"
        assert written["rows"][0]["name"] == "b"
        assert written["rows"][0]["first_order"] == pytest.approx(0.64)

    def test_unknown_grouping(self) -> None:
        with pytest.raises(InputError, match='"class" or "term", got \'device\''):
            error_budget(make([1.0], 0.1), by="device")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 3])
def test_a_level_of_single_rows_is_what_the_rows_repetitions_share(kind: Any, count: int) -> None:
    rng = np.random.default_rng(8)
    classes = np.array([0, 0, 1, 1, 1, 2])
    value, spread = rng.uniform(1, 2, 6), rng.uniform(0.1, 0.3, 6)
    both = [(classes, 0.3), (np.arange(6), 0.5)]
    terms = make(value, spread, count=count, levels=both, kind=kind)
    instances = covariance_of_instances(terms)
    assert total_moments(terms).sd == pytest.approx(math.sqrt(instances.sum()), rel=1e-12)
    plain = total_moments(make(value, spread, count=count, levels=both[:1], kind=kind)).sd
    if count == 1:  # a row with itself: nothing else shares the level
        assert total_moments(terms).sd == pytest.approx(plain, rel=1e-12)
    else:
        assert total_moments(terms).sd > 1.05 * plain
