"""Results made by hand, with numbers that are easy to recognise in a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errcomp.propagation import Band, Outcome, Propagation, given_errors
from errcomp.propagation.sums import Budget
from errcomp.propagation.validation import Validation, ValidationRow

LEVELS = (0.5, 0.8, 0.9, 0.95)


@pytest.fixture
def outcome() -> Callable[..., Outcome]:
    """Make an outcome: median 100, bands of ±10, 20, 30 and 40, unless told otherwise."""

    def make(assumption: str = "estimated", **changes: Any) -> Outcome:
        plain: dict[str, Any] = {
            "run": "gpu/model",
            "assumption": assumption,
            "prediction": 120.0,
            "mean": 100.0,
            "sd": 10.0,
            "median": 100.0,
            "bias": -1 / 6,
            "relative_sd": 0.1,
            "kernel_sd": 0.4,
            "growth": 0.25,
            "effective_number": 16.0,
            "bands": tuple(
                Band(level, 100.0 - 10 * i, 100.0 + 10 * i) for i, level in enumerate(LEVELS, 1)
            ),
            "saturated": 0.0,
            "method": "by hand",
            "by_class": None,
            "by_kernel": None,
            "critical": {},
            "measured": 95.0,
            "caveats": (),
        }
        return Outcome(**{**plain, **changes})

    return make


@pytest.fixture
def bounds(outcome: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Make the outcome of bounds: no distribution."""

    def make(low: float, high: float, level: float = 0.9) -> Outcome:
        return outcome(
            "unknown", mean=None, sd=None, median=None, bias=None, relative_sd=None, growth=None,
            effective_number=None, bands=(Band(level, low, high),),
        )  # fmt: skip

    return make


@pytest.fixture
def propagation() -> Callable[..., Propagation]:
    """Put outcomes together."""

    def make(*outcomes: Outcome, unit: str | None = "ms") -> Propagation:
        return Propagation(outcomes, given_errors(0.1), unit, 0, ())

    return make


@pytest.fixture
def budget_of() -> Callable[..., Budget]:
    """Make a budget of these contributions; time is shared out evenly."""

    def make(first_order: list[float], names: list[str] | None = None) -> Budget:
        n = len(first_order)
        names = names or [f"class{i}" for i in range(n)]
        share = np.asarray(first_order, float)
        return Budget("class", np.array(names), np.full(n, 1 / max(n, 1)), share, share)

    return make


@pytest.fixture
def validation() -> Validation:
    """Two assumptions with a distribution and bounds, at two levels."""
    rows = tuple(
        ValidationRow(
            name, level, share, max(share - 0.1, 0), min(share + 0.05, 1), 40, 8, 0.2, 0.3
        )
        for name, shares in (
            ("estimated", (0.55, 0.9)),
            ("independent", (0.1, 0.25)),
            ("unknown", (1.0, 1.0)),
        )
        for level, share in zip((0.5, 0.9), shares, strict=True)
    )
    u = (np.arange(40) + 0.5) / 40
    return Validation(
        rows,
        {"estimated": u, "independent": np.concatenate([np.zeros(20), np.ones(20)])},
        tuple(f"run{i}" for i in range(40)),
        "device",
        "sum of the measured kernels",
        (),
    )
