"""Tables of measurements with known noise, and rows planted into real ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from errcomp.measurements.shares import shapley

Floats = NDArray[np.float64]
LAWS = ("normal", "t3", "laplace", "mixture", "gamma")
#: Errors of a tool.
ERRORS = ("normal", "t3", "one factor", "two factors", "none")


def noise(law: str, n: int, rng: np.random.Generator) -> Floats:
    """Draw noise of variance 1; of the skewed law, around its median."""
    if law == "t3":
        return rng.standard_t(3, n) / np.sqrt(3)
    if law == "laplace":
        return rng.laplace(size=n) / np.sqrt(2)
    if law == "mixture":
        return np.where(rng.random(n) < 0.1, 3, 1) * rng.normal(size=n) / np.sqrt(1.8)
    if law == "gamma":
        return (rng.gamma(3, size=n) - 2.674) / np.sqrt(3)
    return rng.normal(size=n)


def errors(kind: str, n: int, rng: np.random.Generator) -> Floats:
    """Draw errors (of logarithms) of a tool, of about 10 %; none is off by a factor over e."""
    if kind == "one factor":
        return np.full(n, 0.1)
    if kind == "two factors":
        return rng.choice([-0.1, 0.15], n)
    if kind == "none":
        return np.zeros(n)
    return np.clip(0.1 * noise(kind, n, rng), -1, 1)


def repeats(
    law: str,
    sizes: tuple[int, ...],
    groups: int,
    sd: float,
    spread: float,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], Floats, float]:
    """Return the group of each row, the noise of its logarithm, and the true floor of MAPE.

    No row is off by more than a factor of e: the MAPE of t3 noise would be infinite.
    """
    group = np.repeat(np.arange(groups), rng.choice(sizes, groups))
    scale = sd * np.exp(spread * rng.normal(size=groups))[group]
    x = np.clip(scale * noise(law, len(group), rng), -1, 1)
    others = np.random.default_rng(1)
    scales = sd * np.exp(spread * others.normal(size=100_000))
    log = np.clip(scales * noise(law, 100_000, others), -1, 1)
    true = float(np.abs(np.expm1(-log)).mean())
    return group, x, true


def clean(law: str, sd: float, rng: np.random.Generator, digits: int | None) -> dict[str, Any]:
    """Return a table of 250 configurations with two to five repeats, and columns of no effect."""
    group = np.repeat(np.arange(250), rng.choice([2, 3, 4, 5], 250))
    n = len(group)
    values = np.exp(rng.normal(0, 1.5, 250))[group] * np.exp(sd * noise(law, n, rng))
    if digits is not None:
        values = np.array([float(f"{value:.{digits}g}") for value in values])
    parts = zip(rng.integers(0, 2, n), rng.integers(0, 9, n), strict=True)
    return {
        "model": [f"m{i % 37}" for i in group],
        "batch": group // 37,
        "note": [f"a={a}; b={b}" for a, b in parts],
        "repeat": rng.integers(0, 50, n),
        "ms": values,
    }


def hidden(
    law: str, size: int, effect: float, rng: np.random.Generator, *, named: bool
) -> tuple[dict[str, Any], set[int]]:
    """Return a table in which a tenth of 300 configurations has rows of two settings."""
    group = np.repeat(np.arange(300), size)
    setting = (group % 10 == 0) & (np.arange(len(group)) % 2 == 0)
    x = rng.normal(0, 1, 300)[group] + 0.03 * (noise(law, len(group), rng) + effect * setting)
    data: dict[str, Any] = {"batch": group, "ms": np.exp(x)}
    if named:
        data["source"] = [f"seed=7; graphs={'on' if yes else 'off'}" for yes in setting]
    return data, set(range(0, 300, 10))


def planted(
    table: pl.DataFrame, measured: str, near: float, rng: np.random.Generator
) -> tuple[pl.DataFrame, set[int]]:
    """Repeat 1 % of the rows, each value changed by at most `near`, at random places."""
    k = max(1, len(table) // 100)
    again = table[rng.choice(len(table), k, replace=False).tolist()]
    change = pl.Series(1 + rng.uniform(-near, near, k))
    again = again.with_columns((pl.col(measured) * change).alias(measured))
    order = rng.permutation(len(table) + k)
    rows = {int(i) + 1 for i in np.flatnonzero(order >= len(table))}
    return pl.concat([table, again])[order.tolist()], rows


def single_cause(cause: str, law: str, rng: np.random.Generator) -> tuple[dict[str, Any], float]:
    """Return a table whose errors have one large cause, and the share that the cause adds.

    60 configurations of 12 models, measured three times at one of five loads, with sums of kernels
    for the causes that need them. Everything else gives errors of about 2 %.
    """
    group = np.repeat(np.arange(60), 3)
    n = len(group)
    true = np.exp(rng.normal(2, 1, 60))[group]
    load = rng.choice([1, 4, 16, 64, 256], 60)[group]
    small = {name: 0.02 * noise(law, 60, rng)[group] for name in ("rest", "kernels", "composition")}
    small["noise"] = 0.02 * noise(law, n, rng)
    zero = np.zeros(n)
    parts = {"rest": small["rest"], "noise": small["noise"], "hidden": zero, "load": zero}
    parts |= {"factor": zero, "kernels": zero, "composition": zero}
    if cause in ("kernels", "composition"):
        parts |= {"rest": zero, "kernels": small["kernels"], "composition": small["composition"]}
    sizes = {"noise": 0.1, "rest": 0.12, "kernels": 0.12, "composition": 0.12}
    if cause in sizes:
        draws = noise(law, n if cause == "noise" else 60, rng)
        parts[cause] = sizes[cause] * (draws if cause == "noise" else draws[group])
    elif cause == "factor":
        parts["factor"] = np.full(n, 0.1)
    elif cause == "load":
        parts["load"] = -0.3 * np.log(load) / np.log(256)
    elif cause == "hidden":
        # A third of the rows ran another image, which slowed them down.
        image = rng.random(n) < 0.33
        parts["hidden"] = -0.5 * image
    logs = sum(parts.values())
    measured = true * np.exp(-parts["noise"] - parts["hidden"])
    table: dict[str, Any] = {
        "model": [f"m{i % 12}" for i in group],
        "case": group,
        "concurrency": load,
        "measured": measured,
        "predicted": true * np.exp(logs - parts["noise"] - parts["hidden"]),
    }
    if cause == "hidden":
        table["note"] = [f"image={'b' if one else 'a'}; day={i % 7}" for i, one in enumerate(image)]
    if cause in ("kernels", "composition"):
        table["measured_kernel_sum"] = 0.9 * true
        table["predicted_kernel_sum"] = 0.9 * true * np.exp(parts["kernels"])
    # Here, even the noise is known.
    known = {f"true {name}": x for name, x in parts.items() if x.any()}
    return table, shapley(known, "true noise", 0.0)[f"true {cause}"]
