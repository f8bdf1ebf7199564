"""What must hold of totals under all assumptions on what kernel errors share."""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from errcomp import Kernels
from errcomp.metrics.bands import coverage_interval, interval_score
from errcomp.propagation import (
    ClassError,
    ErrorModel,
    correlation,
    fit_errors,
    given_errors,
    propagate,
)
from errcomp.propagation.sums import total_moments

#: Each assumption and those under which errors share at least as much.
LESS_THAN = [
    ("independent", "repeats"),
    ("repeats", "classes"),
    ("repeats", "devices"),
    ("classes", "comonotonic"),
    ("devices", "comonotonic"),
]
ALONE = ["independent", "repeats", "classes", "devices", "comonotonic"]
KINDS = ["log-ratio", "relative", "absolute"]


@st.composite
def tables(draw: Any, *, most: int = 8) -> dict[str, Any]:
    """One run of kernels of few classes, predictions and devices."""
    n = draw(st.integers(1, most))

    def chosen(values: Any) -> list[Any]:
        return draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))

    return {
        "run": ["r"] * n,
        "kernel": chosen("klmn"),
        "kernel_class": chosen("abc"),
        "device": chosen("xy"),
        "count": draw(st.lists(st.integers(1, 40), min_size=n, max_size=n)),
        "predicted": chosen([0.01, 0.5, 1.0, 7.0, 300.0]),
    }


@st.composite
def models(draw: Any) -> ErrorModel:
    kind = draw(st.sampled_from(KINDS))
    spreads = [draw(st.floats(0.001, 0.8)) for _ in "abc"]
    biases = [draw(st.floats(-0.5, 0.5)) for _ in "abc"]
    errors = zip("abc", biases, spreads, strict=True)
    return ErrorModel({name: ClassError(b, s) for name, b, s in errors}, kind=kind)


@st.composite
def measured_tables(draw: Any) -> dict[str, Any]:
    """Several runs on two or three devices, measured."""
    devices, runs = draw(st.integers(2, 3)), draw(st.integers(1, 2))
    n = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = devices * runs * n
    predicted = np.tile(rng.choice([1.0, 2.0, 30.0], n), devices * runs)
    return {
        "run": np.repeat([f"r{i}" for i in range(devices * runs)], n),
        "device": np.repeat([f"d{i}" for i in range(devices)], runs * n),
        "kernel": np.tile([f"k{i}" for i in range(n)], devices * runs),
        "kernel_class": np.tile(rng.choice(list("ab"), n), devices * runs),
        "count": np.tile(rng.integers(1, 9, n), devices * runs),
        "predicted": predicted,
        "measured": predicted * np.exp(draw(st.floats(0.01, 0.5)) * rng.standard_normal(size)),
    }


def sd(table: Any, model: ErrorModel, assumption: str, share: Any = None) -> float:
    """Return the standard deviation of the total of kernels, or of a table of them."""
    kernels = table if isinstance(table, Kernels) else Kernels(table)
    found = total_moments(model.terms(kernels, correlation(assumption, share))).sd
    assert found is not None
    return found


def split(columns: dict[str, Any]) -> dict[str, Any]:
    """Write each row as two, where it has a count to divide."""
    count = np.asarray(columns["count"])
    at = np.flatnonzero(count > 1)
    rows = np.concatenate([np.arange(len(count)), at])
    out = {name: np.asarray(values)[rows] for name, values in columns.items()}
    first = count.copy()
    first[at] = count[at] // 2
    out["count"] = np.concatenate([first, count[at] - first[at]])
    return out


@hypothesis.given(tables(), models())
def test_the_more_is_shared_the_wider_the_total(columns: dict[str, Any], model: ErrorModel) -> None:
    kernels = Kernels(columns)
    found = {name: sd(kernels, model, name) for name in ALONE}
    for less, more in LESS_THAN:
        assert found[less] <= found[more] * (1 + 1e-9), (less, more)


@hypothesis.given(measured_tables(), st.sampled_from(KINDS))
def test_estimated_lies_between_independent_and_comonotonic(
    columns: dict[str, Any], kind: Any
) -> None:
    kernels = Kernels(columns)
    model = fit_errors(kernels, kind=kind, level=None)
    part = kernels.take(kernels.run == "r0")
    low, middle, high = (
        sd(part, model, name) for name in ("independent", "estimated", "comonotonic")
    )
    assert low <= middle * (1 + 1e-9)
    assert middle <= high * (1 + 1e-9)


@hypothesis.given(
    tables(), models(), st.sampled_from(["repeats", "classes", "devices"]), st.floats(0, 1)
)
def test_monotone_in_the_correlation(
    columns: dict[str, Any], model: ErrorModel, name: str, share: float
) -> None:
    kernels = Kernels(columns)
    none, some = sd(kernels, model, name, 0), sd(kernels, model, name, share)
    assert none == pytest.approx(sd(kernels, model, "independent"))
    assert none <= some * (1 + 1e-9)
    assert some <= sd(kernels, model, name) * (1 + 1e-9)


@hypothesis.given(tables(), models(), st.sampled_from(ALONE), st.randoms())
def test_invariant_to_the_order_of_rows(
    columns: dict[str, Any], model: ErrorModel, name: str, random: Any
) -> None:
    order = list(range(len(columns["run"])))
    random.shuffle(order)
    shuffled = {key: np.asarray(values)[order] for key, values in columns.items()}
    assert sd(shuffled, model, name) == pytest.approx(sd(columns, model, name))


@hypothesis.given(tables(), models(), st.sampled_from(ALONE))
def test_invariant_to_splitting_a_row_in_two(
    columns: dict[str, Any], model: ErrorModel, name: str
) -> None:
    assert sd(split(columns), model, name) == pytest.approx(sd(columns, model, name))


# Each example takes half a second: fewer of them than of the others.
@hypothesis.settings(max_examples=hypothesis.settings.default.max_examples // 4)
@hypothesis.given(measured_tables(), st.sampled_from(KINDS))
def test_estimated_is_invariant_to_splitting_and_to_the_order_of_rows(
    columns: dict[str, Any], kind: Any
) -> None:
    halves = split(columns)
    halves = {name: np.asarray(values)[::-1] for name, values in halves.items()}
    bands = []
    for fitted_to in (columns, halves):
        model = fit_errors(Kernels(fitted_to), kind=kind, level=None)
        first = propagate(Kernels(columns), errors=model, correlation="estimated")
        bands.append(first.of("r0").band(0.9))
        other = propagate(Kernels(halves), errors=model, correlation="estimated")
        for run in first.runs:
            a, b = first.of(run).band(0.9), other.of(run).band(0.9)
            assert (b.low, b.high) == pytest.approx((a.low, a.high), rel=1e-7, abs=1e-7)
    assert bands[1].low == pytest.approx(bands[0].low, rel=1e-3, abs=1e-3)
    assert bands[1].high == pytest.approx(bands[0].high, rel=1e-3, abs=1e-3)


@hypothesis.given(tables(), models(), st.sampled_from(ALONE), st.floats(1e-6, 1e6))
def test_invariant_to_units(
    columns: dict[str, Any], model: ErrorModel, name: str, factor: float
) -> None:
    scaled = columns | {"predicted": [factor * p for p in columns["predicted"]]}
    if model.kind == "absolute":
        errors = {
            key: ClassError(factor * e.bias, factor * e.spread) for key, e in model.classes.items()
        }
        in_unit = ErrorModel(errors, kind="absolute")
    else:
        in_unit = model
    assert sd(scaled, in_unit, name) == pytest.approx(factor * sd(columns, model, name))


@hypothesis.given(tables(most=4), st.floats(0.01, 0.5), st.sampled_from(["log-ratio", "relative"]))
def test_bounds_hold_under_all_assumptions(
    columns: dict[str, Any], spread: float, kind: Any
) -> None:
    found = propagate(
        Kernels(columns), errors=given_errors(spread, kind=kind), correlation=["unknown", *ALONE],
        levels=[0.9],
    )  # fmt: skip
    bounds = found.of().band(0.9)
    for name in ALONE:
        band = found.of(assumption=name).band(0.9)
        # Quantiles of sums of log-normals are approximations.
        slack = 0.02 * (band.high - band.low) + 1e-9 * band.high
        assert bounds.low <= band.low + slack
        assert band.high - slack <= bounds.high


@hypothesis.given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40),
    st.floats(0.5, 0.99),
)
def test_the_interval_of_a_coverage_holds_the_share(rows: Any, confidence: float) -> None:
    inside = np.array([row[0] for row in rows])
    cluster = np.array([row[1] for row in rows])
    share, low, high = coverage_interval(inside, cluster, level=confidence)
    assert share == inside.mean()
    assert 0 <= low <= share <= high <= 1


@hypothesis.given(
    st.floats(-1e6, 1e6), st.floats(0, 1e6), st.floats(-1e6, 1e6), st.floats(0.01, 0.99)
)
def test_an_interval_score_is_the_width_and_what_misses_cost(
    low: float, width: float, observed: float, level: float
) -> None:
    ends = {"low": np.array([low]), "high": np.array([low + width])}
    score = float(interval_score(**ends, measured=np.array([observed]), level=level)[0])
    actual = float(ends["high"][0] - ends["low"][0])
    outside = max(low - observed, observed - (low + width), 0.0)
    assert score == pytest.approx(actual + 2 / (1 - level) * outside)
