"""Figures look as they did: one picture each, on data that are always the same.

After a change that is meant, run
``pytest tests/report/test_baselines.py --mpl-generate-path=tests/report/baseline``, and look at
each picture that changed.
"""

from __future__ import annotations

import numpy as np
import pytest

from errcomp import Kernels, datasets
from errcomp import half_life as find_half_life
from errcomp.calibration.evaluation.scoring import abstention_curve
from errcomp.calibration.view import figures as calibration_figures
from errcomp.halflife.view import figures as halflife_figures
from errcomp.propagation import ClassError, ErrorModel, correlation, propagate
from errcomp.propagation.view import figures

pytestmark = pytest.mark.extras
pytest.importorskip("matplotlib")
pytest.importorskip("pytest_mpl")

looks_the_same = pytest.mark.mpl_image_compare(
    baseline_dir="baseline",
    tolerance=0.2,
    style="default",
    savefig_kwargs={"dpi": 100, "metadata": {"Software": None}, "pil_kwargs": {"optimize": True}},
)
LEVELS = (0.5, 0.8, 0.9, 0.95)


@pytest.fixture(scope="module")
def propagated():
    """A run of four classes under what is known of them, and under assumptions."""
    kernels = Kernels(
        {
            "kernel": ["Linear", "BMM", "Softmax", "LayerNorm"],
            "count": [96, 48, 24, 49],
            "predicted": [0.8, 0.5, 0.3, 0.1],
            "run": ["H100/bert"] * 4,
            "run_measured": [121.0] * 4,
        },
        unit="ms",
    )
    errors = {name: ClassError(0.02, sd) for name, sd in zip(kernels.kernel, (0.12, 0.2, 0.3, 0.05),
                                                             strict=True)}  # fmt: skip
    assume = [correlation("classes", 0.3), "independent", "comonotonic", "unknown"]
    return propagate(kernels, errors=ErrorModel(errors), correlation=assume)


@pytest.fixture(scope="module")
def pairs():
    """End-to-end latencies of one tool."""
    table = datasets.load("neusight")
    return table.of_tool("neusight")


@pytest.fixture(scope="module")
def drifted():
    """Small networks in twelve releases, the whole model, one group."""
    history = datasets.load("ort-releases")
    some = {"level": "model", "version": history.versions[:12]}
    return find_half_life(history.where(some), cluster="model")


@looks_the_same
def test_bands(propagated, readable):
    return readable(figures.bands(propagated))


@looks_the_same
def test_budget(outcome, budget_of, readable):
    parts = [0.62, 0.3, 0.12, 0.06, 0.04, -0.14]
    names = ["Linear", "BMM", "Softmax", "LayerNorm", "GELU_$x$", "Embedding"]
    return readable(figures.budget(outcome(by_class=budget_of(parts, names))))


@looks_the_same
def test_growth(readable):
    steps = {
        "estimated": [("operator", 0.21, 0.17, 0.26), ("layer", 0.12, 0.09, 0.17),
                      ("model", 0.09, 0.06, 0.14)],
        "independent": [("operator", 0.21, 0.17, 0.26), ("layer", 0.06, None, None),
                        ("model", 0.012, None, None)],
        "comonotonic": [("operator", 0.21, 0.17, 0.26), ("layer", 0.2, None, None),
                        ("model", 0.19, None, None)],
    }  # fmt: skip
    return readable(figures.growth(steps))


@looks_the_same
def test_calibration(validation, readable):
    return readable(figures.calibration(validation))


@looks_the_same
def test_pit(validation, readable):
    return readable(figures.pit(validation, "independent"))


@looks_the_same
def test_predicted(pairs, readable):
    truth, times = pairs.measured, pairs.predicted
    return readable(
        calibration_figures.predicted(
            measured=truth,
            predicted=times,
            low=0.85 * times,
            high=1.2 * times,
            unit=pairs.unit,
            note="leave-device-out, linear",
        )
    )


@looks_the_same
def test_residuals(pairs, readable):
    return readable(
        calibration_figures.residuals(
            error=pairs.predicted / pairs.measured - 1,
            device=pairs.column("device"),
            model=pairs.column("model"),
            note="leave-device-out, linear",
        )
    )


@looks_the_same
def test_coverage(readable):
    found = {
        name: [(level, level - drop, max(level - drop - 0.15, 0), min(level - drop + 0.1, 1))
               for level in LEVELS]
        for name, drop in (("stack", 0.0), ("bayesian", -0.03), ("linear", 0.1), ("device", 0.2),
                           ("global", 0.3))
    }  # fmt: skip
    return readable(
        calibration_figures.coverage(found, n=87, drawn="8 devices", note="leave-device-out")
    )


@looks_the_same
def test_abstention(readable):
    error = 0.2 * (np.arange(40) / 40) ** 2
    orders = {"stack": np.arange(40), "linear": np.arange(40) * 7 % 40, "sum": -np.arange(40)}
    curves = {name: abstention_curve(error, width) for name, width in orders.items()}
    return readable(calibration_figures.abstention(curves, note="leave-device-out"))


def spread(middle, width):
    """101 values around a middle, tails at both ends."""
    place = np.linspace(-0.99, 0.99, 101)
    return middle + width * np.arctanh(place)


@looks_the_same
def test_overhead(readable):
    devices = ("A100", "H100", "L4", "(a new device)")
    draws = {
        name: {"inference": spread(4.0 + i, 0.5), "training": spread(2.0 - i, 0.3 + 0.3 * i)}
        for i, name in enumerate(devices)
    }
    return readable(calibration_figures.overhead(draws, note="87 runs, composition"))


@looks_the_same
def test_posterior(readable):
    observed = spread(0.02, 0.05)[::4]
    draws = [1.4 * observed + 0.002 * (i - 30) for i in range(41)]
    return readable(calibration_figures.posterior(observed, draws, note="bayesian, composition"))


@looks_the_same
def test_errors_by_release(drifted, readable):
    return readable(halflife_figures.draw_error_by_release(drifted.groups[0], note="ort-releases"))


@looks_the_same
def test_survival(drifted, readable):
    return readable(halflife_figures.draw_survival(drifted.groups[0], note="ort-releases"))


@looks_the_same
def test_variogram(drifted, readable):
    return readable(halflife_figures.draw_variogram(drifted.groups[0], note="ort-releases"))


@looks_the_same
def test_releases_heat(readable):
    versions = [f"1.{i}" for i in range(12)]
    columns = {name: [] for name in ("series", "op", "version", "measured")}
    for i, (op, at, factor) in enumerate(
        (("Conv", 5, 1.4), ("Gelu", 8, 0.7), ("MatMul_$x$", 3, 1.05), ("Softmax", 20, 1.0))
    ):
        for place, version in enumerate(versions):
            noise = 1 + 0.01 * ((place * 7 + i) % 5 - 2)
            columns["series"].append(f"s{i}")
            columns["op"].append(op)
            columns["version"].append(version)
            columns["measured"].append((i + 1) * noise * (factor if place >= at else 1.0))
    return readable(halflife_figures.draw_releases_heat(find_half_life(columns, by="op")))
