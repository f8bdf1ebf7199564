"""Errors of a predictor that somebody knows: one figure for all kernels, or a table by class."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from errcomp.errors import InputError, describe_rows
from errcomp.propagation.errors.model import ClassError, ErrorModel
from errcomp.propagation.terms import Kind
from errcomp.tables.columns import Origin, numeric
from errcomp.tables.frames import is_missing, to_eager

__all__ = ["given_errors", "read_errors"]

#: Stands for every class that is not named.
_OTHERS = "*"


def given_errors(spread: float, bias: float = 0.0, *, kind: Kind = "log-ratio") -> ErrorModel:
    """Return the same error for kernels of every class.

    Parameters
    ----------
    spread, bias : float
        Standard deviation and location on the scale of ``kind``.
    kind : {"log-ratio", "relative", "absolute"}
        Scale of the errors.

    Returns
    -------
    ErrorModel

    Raises
    ------
    InputError
        The spread is negative, or a number is not finite.

    Examples
    --------
    >>> given_errors(0.1).error("any class").spread
    0.1
    """
    return ErrorModel({}, kind=kind, other=ClassError(bias, spread))


def read_errors(path: str | PathLike[str], *, kind: Kind = "log-ratio") -> ErrorModel:
    r"""Read errors by kernel class: columns ``kernel_class``, ``spread`` and, if known, ``bias``.

    Parameters
    ----------
    path : path
        CSV, Parquet, JSON or JSON lines. The class ``*`` stands for all that are not named.
    kind : {"log-ratio", "relative", "absolute"}
        Scale of the errors in the file.

    Returns
    -------
    ErrorModel

    Raises
    ------
    InputError
        The file cannot be read, a column is missing, a class is named twice, a spread is negative
        or a number is not finite.
    """
    from errcomp.readers.plain import read_frame

    native, line_offset = read_frame(
        Path(path), {}, frozenset({"kernel_class"}), ("spread", "bias")
    )
    frame = to_eager(native)
    word, offset = ("row", 1) if line_offset is None else ("line", line_offset)
    origin = Origin(str(path), np.arange(len(frame), dtype=np.int64) + offset, word)
    for name in ("kernel_class", "spread"):
        if name not in frame.columns:
            raise InputError(
                f"{path}: no column {name!r}. Errors are given by kernel_class, spread and bias; "
                f"columns found: {', '.join(frame.columns)}"
            )
    every = np.ones(len(frame), dtype=bool)
    spread = numeric(frame, "spread", every, origin)
    bias = (
        numeric(frame, "bias", every, origin) if "bias" in frame.columns else np.zeros(len(frame))
    )
    for name, values, bad, rule in (
        ("spread", spread, ~(np.isfinite(spread) & (spread >= 0)), "a number that is not negative"),
        ("bias", bias, ~np.isfinite(bias), "a finite number"),
    ):
        if bad.any():
            rows = describe_rows(origin.rows[bad].tolist(), word=word)
            raise InputError(f"{path}: {name} must be {rule}, got {values[bad][0]} in {rows}")
    labels = frame["kernel_class"].to_list()
    nameless = np.array([is_missing(label) or not str(label).strip() for label in labels])
    if nameless.any():
        rows = describe_rows(origin.rows[nameless].tolist(), word=word)
        raise InputError(f'{path}: kernel_class is missing in {rows}. "*" stands for all others.')
    classes: dict[str, ClassError] = {}
    for row, label in enumerate(labels):
        if str(label) in classes:
            raise InputError(
                f"{path}: class {label!r} is named twice, the second time in "
                f"{word} {origin.rows[row]}. Give one row per class."
            )
        classes[str(label)] = ClassError(float(bias[row]), float(spread[row]))
    other = classes.pop(_OTHERS, None)
    return ErrorModel(classes, kind=kind, other=other)
