"""What the hierarchical model is made of: its columns and its draws, checked when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from errcomp.calibration.design import Floats
from errcomp.calibration.estimators.base import as_features
from errcomp.errors import InputError, describe_rows

__all__ = ["DRAWS", "Columns", "checked_draws", "columns_of_meta", "texts"]

_LARGEST = 1e6
#: Of the logarithm of a factor: it stays a number.
_LARGEST_LOG = 100.0
#: Arrays of draws, and the shape of each draw in terms of the sizes of the model.
DRAWS: dict[str, tuple[str, ...]] = {
    "intercept": (),
    "sigma": (),
    "nu": (),
    "offset": (),
    "launch": ("launch",),
    "linear": ("linear",),
    "device_shift": ("devices",),
    "device_launch": ("devices",),
    "device_slope": ("devices", "varying"),
    "model_shift": ("models",),
}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What each column of the features is to the model.

    Attributes
    ----------
    names : tuple of str
        Of all columns, in the order of the fit.
    launch : tuple of int
        Costs: shares of the summed kernels, L.
    offset : int or None
        Enters with a coefficient near 1.
    linear : tuple of int
        Enter as they are, standardised.
    center, scale : ndarray, shape (len(linear),)
        What standardises them: mean and standard deviation over the runs of the fit.
    varying : tuple of int
        Those of `linear` whose coefficient depends on the device.
    """

    names: tuple[str, ...]
    launch: tuple[int, ...]
    offset: int | None
    linear: tuple[int, ...]
    center: Floats
    scale: Floats
    varying: tuple[int, ...] = ()

    @property
    def varying_at(self) -> list[int]:
        """Positions of `varying` in `linear`."""
        return [self.linear.index(column) for column in self.varying]

    @property
    def used(self) -> tuple[int, ...]:
        """All columns that the model looks at, ascending."""
        offset = () if self.offset is None else (self.offset,)
        return tuple(sorted({*self.launch, *offset, *self.linear}))

    def split(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return costs, offset and standardised features: shapes (n, l), (n,) and (n, p).

        Raises
        ------
        InputError
            There are not as many columns as in the fit, or one that is used is NaN.
        """
        rows = as_features(x, len(self.names))
        unknown = np.flatnonzero(np.isnan(rows[:, self.used]).any(axis=1))
        if len(unknown):
            column = next(c for c in self.used if np.isnan(rows[unknown[0], c]))
            raise InputError(
                f"features must be known, got NaN in {describe_rows(unknown.tolist())} (column "
                f"{self.names[column]}). Leave the runs out, or use a model that allows unknown "
                "features (boosted)."
            )
        offset = np.zeros(len(rows)) if self.offset is None else rows[:, self.offset]
        linear = (rows[:, self.linear] - self.center) / self.scale
        return rows[:, self.launch], offset, linear


def checked_draws(draws: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Floats]:
    """Return the draws if they fit together; an array without values may be missing."""
    shapes = {name: tuple(sizes[axis] for axis in axes) for name, axes in DRAWS.items()}
    missing = [
        name
        for name, shape in shapes.items()
        if not isinstance(draws.get(name), np.ndarray) and (name in draws or 0 not in shape)
    ]
    if missing:
        raise InputError(f"the model lacks the arrays {', '.join(missing)}. Fit it again.")
    n = len(np.atleast_1d(draws["sigma"]))
    found = {name: draws.get(name, np.empty((n, *shape))) for name, shape in shapes.items()}
    for name, values in found.items():
        shape = (n, *shapes[name])
        if values.shape != shape or values.dtype != np.float64 or not n:
            raise InputError(
                f"{name} must be float64 of shape {shape}, got {values.dtype} of shape "
                f"{values.shape}. Fit the model again."
            )
        most = _LARGEST_LOG if name == "device_launch" else _LARGEST
        if not (np.abs(values) < most).all():
            raise InputError(f"{name} must be finite and below {most:g}. Fit the model again.")
    for name in ("sigma", "nu"):
        if not (found[name] > 0).all():
            raise InputError(f"{name} must be above 0, got {found[name].min()}. Fit again.")
    return found


def texts(meta: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of different texts."""
    found = meta.get(name)
    fine = isinstance(found, list) and all(isinstance(text, str) for text in found)
    if not fine or len(set(found or ())) < len(found or ()):
        raise InputError(f"{name} must be a list of different texts, got {str(found)[:80]}.")
    return tuple(found or ())


def columns_of_meta(
    meta: Mapping[str, Any], names: tuple[str, ...], arrays: Mapping[str, Any]
) -> Columns:
    """Make the columns again."""
    offset = meta.get("offset")
    varying = meta.get("varying", [])
    given = [meta.get("launch"), meta.get("linear"), [] if offset is None else [offset]]
    if not all(isinstance(part, list) for part in (*given, varying)):
        raise InputError("launch, linear and varying must be lists of columns. Fit it again.")
    flat = [column for part in given for column in part or ()]
    fine = all(type(column) is int and 0 <= column < len(names) for column in flat)
    if not fine or len(set(flat)) < len(flat):
        raise InputError(
            f"launch, linear and offset must be different columns of {len(names)}, got "
            f"{str(flat)[:80]}. Fit the model again."
        )
    launch, linear = tuple(given[0] or ()), tuple(given[1] or ())
    if len({c for c in linear if c in varying}) < len(varying):
        raise InputError(
            f"varying must be different linear columns, got {str(varying)[:80]}. Fit it again."
        )
    parts = []
    for name in ("center", "scale"):
        values = arrays.get(name)
        if (
            not isinstance(values, np.ndarray)
            or values.shape != (len(linear),)
            or values.dtype != np.float64
            or not np.isfinite(values).all()
        ):
            raise InputError(f"{name} must be one finite float64 per linear column. Fit it again.")
        parts.append(values)
    if not (parts[1] > 0).all():
        raise InputError("scale must be above 0. Fit the model again.")
    return Columns(names, launch, offset, linear, parts[0], parts[1], tuple(varying))
