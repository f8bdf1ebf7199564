"""Laws of predicted and measured times that the error model was not made for."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl


def deviates(rng: np.random.Generator, law: str, size: Any) -> Any:
    """Draw with standard deviation 1: normal, t3, Laplace, or a mixture with outliers."""
    if law == "normal":
        return rng.standard_normal(size)
    if law == "t3":
        return rng.standard_t(3, size) / 3**0.5
    if law == "laplace":
        return rng.laplace(size=size) / 2**0.5
    wide = np.where(rng.random(size) < 0.1, 3.0, 0.745)
    return wide * rng.standard_normal(size)


def choices(
    seed: Any,
    *,
    devices: int = 6,
    conditions: int = 20,
    models: int = 4,
    law: str = "normal",
    true: float = 0.3,
    noise: str = "truth",
    present: float = 0.8,
) -> pl.DataFrame:
    """Draw a table: true speeds of devices, and errors of device, device x model and row.

    Parameters
    ----------
    true : float
        Spread (ln) of the devices' speeds; their errors have 0.1.
    noise : {"truth", "prediction"}
        Whether the measurement is the prediction with an error, or the prediction the measurement
        with an error: true differences are then smaller than predicted ones.
    present : float
        Share of rows that the table has.
    """
    rng = np.random.default_rng(seed)
    model = rng.integers(0, models, conditions)
    size = (devices, conditions)
    first = rng.normal(0, 1, conditions) + rng.normal(0, true, devices)[:, None]
    first = first + rng.normal(0, 0.05, size)
    error = 0.1 * deviates(rng, law, devices)[:, None]
    error = error + 0.05 * deviates(rng, law, (devices, models))[:, model]
    error = error + 0.05 * deviates(rng, law, size) + 0.1 * deviates(rng, law, conditions)
    predicted, measured = (first, first + error) if noise == "truth" else (first + error, first)
    kept = rng.random(size) < present
    device, condition = np.nonzero(kept)
    return pl.DataFrame(
        {
            "device": [f"D{i:02}" for i in device],
            "model": [f"m{i}" for i in model[condition]],
            "batch": condition,
            "predicted": np.exp(predicted[kept]),
            "measured": np.exp(measured[kept]),
        }
    )
