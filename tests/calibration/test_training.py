"""The runs of a fit as a model file holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp.calibration.features import FEATURES, design
from errcomp.calibration.fitted import Training
from errcomp.errors import InputError


@pytest.fixture
def training(runs_of: Any) -> Training:
    return Training.of(design(runs_of(), task="composition"))


def test_names_and_ranges(training: Training) -> None:
    assert len(training) == 40
    assert training.devices == ("A100", "H100", "L4", "MI210", "V100")
    assert training.models == ("bert", "gpt2", "opt", "xlnet")
    assert training.modes == ("inference",)
    ranges = training.ranges
    assert ranges["training"] == (0, 0)
    assert ranges["total_ms"][0] < ranges["total_ms"][1]
    # Nothing has a shape: activations are not known.
    assert "activations_gb" not in ranges


def test_round_trip(training: Training) -> None:
    meta, arrays = training.to_arrays()
    found = Training.from_arrays(meta, arrays)
    assert np.array_equal(found.x, training.x, equal_nan=True)
    assert found.devices == training.devices
    assert found.device.dtype == object


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.pop("x"),
        lambda a: a.pop("mode"),
        lambda a: a.update(x=a["x"][:, 1:]),
        lambda a: a.update(x=a["x"].astype(np.float32)),
        lambda a: a.update(model=a["model"][1:]),
        lambda a: a.update(device=np.arange(40)),
    ],
)
def test_damaged_arrays_are_refused(training: Training, change: Any) -> None:
    meta, arrays = training.to_arrays()
    change(arrays)
    with pytest.raises(InputError, match=f"x with {len(FEATURES)} columns"):
        Training.from_arrays(meta, arrays)
