"""Predictors with the bands of a model: same values, bands that agree with `propagate`."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats

import errcomp as ec
from errcomp.calibration import Composition
from errcomp.datasets import example_runs
from errcomp.errors import InputError
from errcomp.propagation import ClassError, ErrorModel, fit_errors, given_errors, propagate
from errcomp.propagation.wrapping import Banded

KNOWN = ErrorModel({"gemm": ClassError(0.1, 0.05), "softmax": ClassError(0.0, 0.3)})


class Roofline:
    name = "roofline"

    def predict(self, flops: Any) -> Any:
        return flops / 312e12

    def get_execution_time(self, flops: float) -> dict[str, float]:
        return {"gemm": flops / 312e12, "softmax": 1e-3}


def kernels(time: dict[str, float]) -> dict[str, list[Any]]:
    return {"kernel": list(time), "predicted": list(time.values())}


def test_a_band_is_that_of_a_log_normal() -> None:
    time = ec.wrap(lambda x: 2.0 * x, KNOWN, kernel_class="gemm")(5)
    assert time == 10.0
    assert isinstance(time, float)
    z = stats.norm.ppf(0.95)
    assert (time.low, time.high) == pytest.approx(
        (10 * math.exp(0.1 - 0.05 * z), 10 * math.exp(0.1 + 0.05 * z)), rel=1e-6
    )
    z = stats.norm.ppf(0.75)
    assert time.band(0.5)[1] == pytest.approx(10 * math.exp(0.1 + 0.05 * z), rel=1e-6)


def test_the_class_may_depend_on_the_arguments() -> None:
    wrapped = ec.wrap(lambda name, scale=1.0: scale, KNOWN, kernel_class=lambda name, scale: name)
    wide, narrow = wrapped("softmax", scale=2.0), wrapped("gemm", scale=2.0)
    assert wide.high / wide.low > 2 > narrow.high / narrow.low


def test_an_object_keeps_its_attributes() -> None:
    wrapped = ec.wrap(Roofline(), given_errors(0.1))
    assert wrapped.name == "roofline"
    assert type(wrapped.predict(3.12e12)) is Banded
    array = wrapped.predict(np.array([3.12e12, 6.24e12]))
    assert type(array) is np.ndarray
    low, high = wrapped.band(array)
    assert np.all((low < array) & (array < high))
    assert high[1] == pytest.approx(2 * high[0])
    with pytest.raises(AttributeError, match="no_such"):
        _ = wrapped.no_such
    assert copy.copy(wrapped).predict(3.12e12) == 0.01
    assert repr(ec.wrap(len, given_errors(0.1))) == "Wrapped(<built-in function len>)"


def test_kernels_of_a_result_are_propagated() -> None:
    wrapped = ec.wrap(Roofline(), KNOWN, kernels=kernels)
    time = wrapped.get_execution_time(3.12e12)
    assert type(time) is dict
    low, high = wrapped.band(time, level=0.8)
    found = propagate(kernels(time), errors=KNOWN, levels=(0.8,)).of().band(0.8)
    assert (low, high) == (found.low, found.high)


def test_kernels_of_several_runs_give_arrays() -> None:
    def of_runs(times: list[float]) -> dict[str, list[Any]]:
        runs = [f"r{i}" for i in range(len(times))]
        return {"run": runs * 2, "kernel": ["gemm"] * (2 * len(times)), "predicted": times * 2}

    wrapped = ec.wrap(lambda x: x, KNOWN, kernels=of_runs)
    low, high = wrapped.band(wrapped([1.0, 3.0]))
    assert low.shape == high.shape == (2,)
    assert high[1] == pytest.approx(3 * high[0])
    one_low, one_high = wrapped.band([1.0])
    assert (one_low.tolist(), one_high.tolist()) == ([low[0]], [high[0]])


@pytest.mark.parametrize("scale", ["by size", "absolute"])
def test_bands_that_do_not_grow_with_the_time(scale: str) -> None:
    model = (
        given_errors(0.1, kind="absolute")
        if scale == "absolute"
        else ErrorModel({"*": ClassError(0.0, 0.1, size=1.0)}, size_exponent=0.5)
    )
    wrapped = ec.wrap(lambda x: x, model)
    times = np.array([4.0, 1.0, 4.0])
    low, high = wrapped.band(times)
    each = [wrapped.band(float(time)) for time in times]
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == each
    assert high[0] / times[0] < high[1] / times[1]
    assert high[0] == high[2]


def test_a_fitted_composition_gives_its_own_bands() -> None:
    runs = example_runs()
    model = Composition(estimators=()).fit(runs).model_
    wrapped = ec.wrap(lambda table: table, model, kernels=lambda table: table)
    low, high = wrapped.band(wrapped(runs))
    expected = model.predict(runs).band(0.9)
    assert (low.tolist(), high.tolist()) == (expected[0].tolist(), expected[1].tolist())


def test_fitted_errors_count_as_correlated() -> None:
    rng = np.random.default_rng(1)
    shift = np.repeat(rng.normal(0, 0.1, 12), 20)
    names = [f"r{i // 20}" for i in range(240)]
    table = {
        "run": names,
        "device": names,
        "kernel": ["gemm"] * 240,
        "predicted": [1.0] * 240,
        "measured": np.exp(shift + rng.normal(0, 0.02, 240)),
    }
    model = fit_errors(table, level=None)
    one = kernels({"gemm": 1.0})
    wrapped = ec.wrap(lambda n: n, model, kernels=lambda n: {**one, "count": [n]})
    low, high = wrapped.band(100)
    # Errors of one device move together: the band of the sum is about as wide as that of a kernel.
    assert 0.25 < math.log(high / low) < 0.6


def test_values_pass_unchanged_and_as_plain_floats_elsewhere() -> None:
    wrapped = ec.wrap(lambda x: x, given_errors(0.1))
    for value in (True, "text", None, [1.0], {"a": 1}):
        assert wrapped(value) is value
    time = wrapped(2.0)
    assert type(time + 1) is float
    assert type(copy.deepcopy(time)) is type(pickle.loads(pickle.dumps(time))) is float
    assert type(wrapped(np.float32(2.0))) is type(wrapped(2)) is Banded
    assert wrapped(0.0).band() == (0.0, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ec.wrap(object(), KNOWN), "object is not callable and has no method predict"),
        (lambda: ec.wrap(len, 0.1), "float gives no bands. Pass the result of"),
        (lambda: ec.wrap(float, KNOWN)(1.0).low, "no error for kernel class"),
        (lambda: ec.wrap(float, given_errors(0.1))(1.0).band(90), "level must be between 0 and 1"),
        (lambda: ec.wrap(float, given_errors(0.1))(-1.0).low, "not negative, got -1.0"),
        (lambda: ec.wrap(float, given_errors(0.1))(math.nan).low, "must be finite"),
        (lambda: ec.wrap(len, given_errors(0.1)).band({"a": 1}), "returned dict, not a number"),
        (lambda: ec.wrap(len, given_errors(0.1)).band("text"), "returned str, not a number"),
        (lambda: ec.wrap(len, given_errors(0.1)).band([[1.0]]), "Pass a function that extracts"),
        (lambda: ec.wrap(len, given_errors(0.1)).band([]), "returned list"),
    ],
)
def test_what_is_missing(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_units_are_compared() -> None:
    model = ErrorModel({}, other=ClassError(0.0, 0.1), unit="ms")
    assert ec.wrap(float, model, unit="ms")(1.0).high > 1
    with pytest.raises(InputError, match="the kernels are in us"):
        _ = ec.wrap(float, model, unit="us")(1.0).high


@pytest.mark.slow
@pytest.mark.core
def test_a_call_costs_little() -> None:
    # 2 % of a predictor that takes 0.2 ms, such as a forest: 4 µs; measured 0.7 µs. In a process of
    # its own: where coverage counts every line, a call takes several times as long.
    code = """if True:
        import timeit

        import errcomp as ec
        from errcomp.propagation import given_errors

        wrapped = ec.wrap(float, given_errors(0.1))
        bare = min(timeit.repeat(lambda: float(2), number=2_000, repeat=5))
        print(min(timeit.repeat(lambda: wrapped(2), number=2_000, repeat=5)) - bare)
    """
    added = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(added.stdout) / 2_000 < 4e-6
