"""What each run and each column of the features is to the hierarchical model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.calibration.design import Floats, Names
from errcomp.calibration.estimators.base import as_names
from errcomp.calibration.estimators.hierarchical import Columns
from errcomp.errors import InputError, describe_names

__all__ = ["UNKNOWN", "Level", "Runs", "assign_columns", "check_least", "check_parameters"]

#: The group of the runs without a name, beside groups with one.
UNKNOWN = "(unknown)"
#: A column whose standard deviation is a smaller share of its size is constant.
_CONSTANT = 1e-12
_LEAST = {"draws": 50, "tune": 50, "chains": 1, "cores": 1, "seed": 0}


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Groups that are pooled over.

    Attributes
    ----------
    names : tuple of str
        Of the groups; none where no run has a name.
    of : ndarray of str, shape (n,)
        Group of each run.
    """

    names: tuple[str, ...]
    of: Names

    @classmethod
    def from_names(cls, given: Names) -> Self:
        """Group runs by name; those without one are a group of their own."""
        if not any(given):
            return cls((), given)
        of = given.copy()
        of[of == ""] = UNKNOWN
        return cls(tuple(sorted(set(of.tolist()))), of)

    @property
    def index(self) -> NDArray[np.int64] | None:
        """Position of the group of each run; None without groups."""
        if not self.names:
            return None
        at = {name: i for i, name in enumerate(self.names)}
        return np.asarray([at[name] for name in self.of], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The runs of a fit.

    Attributes
    ----------
    x : ndarray, shape (n, p)
    y : ndarray, shape (n,)
    columns : Columns
    device, model : Level
    caveats : tuple of str
        What was dropped, and what the runs do not say.
    """

    x: Floats
    y: Floats
    columns: Columns
    device: Level
    model: Level
    caveats: tuple[str, ...]

    @classmethod
    def of(
        cls,
        x: Floats,
        y: Floats,
        assigned: tuple[Columns, tuple[str, ...]],
        device: ArrayLike | None,
        model: ArrayLike | None,
    ) -> Self:
        """Group the runs.

        Raises
        ------
        InputError
            Names of devices or models are not one per run, or a feature is NaN.
        """
        columns, caveats = assigned
        columns.split(x)
        of_device = Level.from_names(as_names(device, len(x), "device"))
        of_model = Level.from_names(as_names(model, len(x), "model"))
        if len(of_device.names) == 1:
            caveats = (
                *caveats,
                f"all runs are on one device ({of_device.names[0]}): how devices differ is not in "
                "the data, and bands of other devices are as wide as the priors say",
            )
        return cls(x, y, columns, of_device, of_model, caveats)


def assign_columns(
    x: Floats,
    names: Sequence[str] | None,
    *,
    launch: Sequence[int | str],
    offset: int | str | None,
    varying: Sequence[int | str],
) -> tuple[Columns, tuple[str, ...]]:
    """Return what each column is, and caveats: what was dropped, and what only the prior says.

    Raises
    ------
    InputError
        A column is not there, or has two parts.
    """
    labels = [str(name) for name in (range(x.shape[1]) if names is None else names)]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise InputError(f"X has two columns {describe_names(twice)}. Name each differently.")
    costs = _positions(launch, "launch", x.shape[1], names)
    at = _positions([] if offset is None else [offset], "offset", x.shape[1], names)
    varied = _positions(varying, "varying", x.shape[1], names)
    taken = (*costs, *at)
    if len({*taken, *varied}) < len(taken) + len(varied):
        raise InputError(
            f"launch={launch!r}, offset={offset!r} and varying={varying!r} name a column twice. "
            "Each column has one part; varying ones are neither costs nor the offset."
        )
    others = [column for column in range(x.shape[1]) if column not in taken]
    # NaN is not constant: it is refused by name where the columns are split.
    constant = [c for c in others if x[:, c].std() <= _CONSTANT * np.abs(x[:, c]).max()]
    idle = [c for c in costs if not x[:, c].any()]
    caveats = {
        "dropped, because all runs have the same value": constant,
        "0 in all runs, so that only the prior says what it costs": idle,
    }
    kept = tuple(column for column in others if column not in constant)
    center, scale = x[:, kept].mean(axis=0), x[:, kept].std(axis=0)
    left = tuple(column for column in varied if column in kept)
    columns = Columns(tuple(labels), costs, at[0] if at else None, kept, center, scale, left)
    return columns, tuple(
        f"{what}: {describe_names([labels[c] for c in which])}"
        for what, which in caveats.items()
        if which
    )


def _positions(
    columns: Sequence[int | str], word: str, width: int, names: Sequence[str] | None
) -> tuple[int, ...]:
    """Return the positions of columns."""
    if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
        raise InputError(f"{word} must be a list of columns, got {columns!r}. Write [{columns!r}].")
    return tuple(_position(column, word, width, names) for column in columns)


def _position(column: int | str, word: str, width: int, names: Sequence[str] | None) -> int:
    """Return the position of a column."""
    if isinstance(column, str):
        known = [] if names is None else [str(name) for name in names]
        if column in known:
            return known.index(column)
        there = describe_names(known, wanted=column) if known else "none: X has no names"
        raise InputError(f"{word} names the column {column!r}, which X lacks. Columns: {there}.")
    if not isinstance(column, int | np.integer):
        raise InputError(f"{word} must name columns or give positions, got {column!r}.")
    if not 0 <= column < width:
        raise InputError(f"{word} is column {column}, but X has columns 0 to {width - 1}.")
    return int(column)


def check_parameters(given: Mapping[str, Any]) -> None:
    """Check how to sample.

    Raises
    ------
    InputError
        A parameter cannot be.
    """
    for name, least in _LEAST.items():
        check_least(name, given[name], least)
    if not 0 < given["target_accept"] < 1:
        raise InputError(f"target_accept must be in (0, 1), got {given['target_accept']!r}.")
    if given["check"] not in ("raise", "warn", "ignore"):
        raise InputError(f'check must be "raise", "warn" or "ignore", got {given["check"]!r}.')


def check_least(name: str, value: Any, least: int) -> None:
    """Check a whole number.

    Raises
    ------
    InputError
        It is not one, or below the least.
    """
    if not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
