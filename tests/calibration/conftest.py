"""Tables of simulated runs: eight kernels each, launches that hide, devices that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import Composition
from errcomp.calibration.fitted import CompositionModel
from errcomp.calibration.kernels import pooling
from errcomp.calibration.transfer import process
from errcomp.tables import Kernels

DEVICES = ("A100", "H100", "L4", "MI210", "V100")
MODELS = ("bert", "gpt2", "opt", "xlnet")
CLASSES = ("Linear", "Softmax", "Gelu", "Embedding")


def simulated(
    devices: tuple[str, ...] = DEVICES,
    models: tuple[str, ...] = MODELS,
    *,
    seed: int = 0,
    **changed: Any,
) -> Kernels:
    """Two runs of each model on each device: launches of 8 µs hide, kernels err by class."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "run", "device", "model", "mode", "kernel", "kernel_class", "count", "predicted",
            "measured", "run_measured",
        )
    }  # fmt: skip
    for d, device in enumerate(devices):
        for m, model in enumerate(models):
            for batch in (1, 8):
                work = batch * (1 + m) * rng.uniform(0.02, 0.06, len(CLASSES))
                measured = 0.008 + work
                off = np.array([0.05, -0.1, 0.2, 0.0]) + 0.03 * d
                predicted = measured * np.exp(-off + 0.02 * rng.standard_normal(len(CLASSES)))
                end = 24 * work.sum() * np.exp(0.02 * d + 0.01 * rng.standard_normal())
                for i, name in enumerate(CLASSES):
                    row = (
                        f"{device}/{model}/{batch}", device, model, "inference", f"{name}/{m}",
                        name, 24, predicted[i], measured[i], end,
                    )  # fmt: skip
                    for column, value in zip(columns.values(), row, strict=True):
                        column.append(value)
    return Kernels({**columns, **changed}, unit="ms", source="simulated.csv")


@pytest.fixture(scope="session")
def runs_of() -> Callable[..., Kernels]:
    return simulated


@pytest.fixture(scope="session")
def fitted() -> Composition:
    """A fit of the baselines to all runs; no test changes it."""
    return Composition(estimators=("device",)).fit(simulated())


@pytest.fixture(scope="session")
def model() -> CompositionModel:
    """Baselines and physics, fitted to all devices but the H100; no test changes it."""
    known = tuple(name for name in DEVICES if name != "H100")
    found = Composition(estimators=("physics",)).fit(simulated(known)).model_
    assert isinstance(found, CompositionModel)
    return found


@pytest.fixture(scope="module")
def few_choices() -> Iterator[None]:
    """Adapt with an eighth of the settings that are tried, where it does not matter which wins."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "CHOICES", process.CHOICES[::8])
        yield


@contextmanager
def _few_rounds() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "_ROUNDS", 2)
        yield


@pytest.fixture(scope="session")
def few_rounds() -> Callable[[], AbstractContextManager[None]]:
    """Correct kernels by a quarter of the rounds, within a `with`: other processes take all."""
    return _few_rounds
