"""Models of a predictor's errors: bias and spread per kernel class, and their correlation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from errcomp.codec import Count, Document, Undefined
from errcomp.errors import InputError, describe_names
from errcomp.propagation.errors.components import Components, Correlation
from errcomp.propagation.errors.residuals import NOT_MODELLED, all_predicted, prepare
from errcomp.propagation.errors.tails import NORMAL_TAILS, Tails, tail_scale
from errcomp.propagation.terms import KINDS, Kind, Terms, is_number
from errcomp.tables.columns import Origin, numeric
from errcomp.tables.frames import is_missing, to_eager

if TYPE_CHECKING:
    from errcomp.tables import Kernels

#: Time of a small kernel without an error model; above 0, for its logarithm.
_NOTHING = 1e-300


@dataclass(frozen=True, slots=True)
class ClassError(Document):
    """Error of one kernel class.

    Attributes
    ----------
    bias, spread : float
        Location and standard deviation on the scale of the model's kind: of ln(measured /
        predicted) for log-ratio, of measured / predicted − 1 for relative, of measured − predicted
        (in the table's unit) for absolute errors.
    n, n_clusters : int
        Rows and devices (or runs) of the estimate; 0 if it was given.
    size : float
        Predicted time at which the spread is valid, if spreads depend on size; else NaN.
    """

    bias: float
    spread: float
    n: Count = 0
    n_clusters: Count = 0
    size: Annotated[float, Undefined] = math.nan


@dataclass(frozen=True, slots=True)
class ErrorModel(Document):
    r"""Errors of a predictor by kernel class, fitted (`fit_errors`) or given.

    Attributes
    ----------
    classes : mapping of str to ClassError
        Bias and spread per class. ``"(not modelled)"`` stands for kernels predicted as 0 or too
        short to measure; its errors are relative to the run's modelled time.
    kind : {"log-ratio", "relative", "absolute"}
        Scale of bias and spread.
    other : ClassError, optional
        Error of classes that are not in ``classes``; without it such a class raises an error.
    floor : float
        Predictions below it count as not modelled (if they are less than 1 % of the run).
    size_exponent : float
        γ of spread ∝ (predicted / size)^−γ: small kernels have larger errors. 0: no dependence.
    components : Components, optional
        Correlation of errors, for "estimated".
    tails : Tails
        Shape of the totals' errors under "estimated".
    n_runs : int
        Runs of the fit; 0 if it was given.
    devices : tuple of str
        Devices of these runs.
    unit : str, optional
        Unit of the times of the fit; tables in another unit are refused.

    Raises
    ------
    InputError
        A spread is negative, a relative bias is below −1, a size is not positive, a number is not
        finite, the kind is unknown, or absolute errors have a size_exponent.

    Examples
    --------
    >>> model = ErrorModel({"gemm": ClassError(bias=0.0, spread=0.1)})
    >>> model.error("gemm").spread
    0.1
    """

    KEYS: ClassVar = (
        *("kind", "floor", "size_exponent", "n_runs", "devices", "unit", "tails", "components"),
        *("classes", "other"),
    )

    classes: Mapping[str, ClassError]
    kind: Kind = "log-ratio"
    other: ClassError | None = None
    floor: float = 0.0
    size_exponent: float = 0.0
    components: Components | None = None
    tails: Tails = NORMAL_TAILS
    n_runs: Count = 0
    devices: tuple[str, ...] = ()
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        for what in ("floor", "size_exponent"):
            value = getattr(self, what)
            if not is_number(value) or not 0 <= value < math.inf:
                raise InputError(f"{what} must be a finite number, not negative, got {value!r}")
        if self.size_exponent and self.kind == "absolute":
            raise InputError("absolute errors cannot depend on size; set size_exponent to 0")
        others = "other classes" if self.classes else "all classes"
        for name, error in [*self.classes.items(), (others, self.other)]:
            if error is not None:
                _check(name, error, self.kind)

    def error(self, name: str) -> ClassError:
        """Return the error of a class.

        Raises
        ------
        InputError
            The class is unknown, and there is no error for other classes.

        Examples
        --------
        >>> model = ErrorModel({"gemm": ClassError(0.0, 0.1)}, other=ClassError(0.0, 0.3))
        >>> model.error("gemm").spread, model.error("softmax").spread
        (0.1, 0.3)
        """
        error = self.classes.get(name, self.other)
        if error is None:
            raise InputError(
                f"no error for kernel class {name!r}. Classes: "
                f"{describe_names(sorted(self.classes), wanted=name)}. "
                'Add this class, or "*" for all other classes.'
            )
        return error

    def terms(self, kernels: Kernels, correlation: Correlation) -> Terms:
        """Return the kernels as random terms under an assumption on their correlation.

        Parameters
        ----------
        kernels : Kernels
            Predictions; measurements are ignored.
        correlation : Correlation
            Assumption on the correlation of their errors.

        Raises
        ------
        InputError
            A prediction is missing, a run is predicted to take no time, a class is unknown, the
            units of table and model differ, or "estimated" is used with a model that was not
            fitted.

        Examples
        --------
        >>> from errcomp import Kernels
        >>> from errcomp.propagation import correlation
        >>> kernels = Kernels({"kernel": ["gemm"], "count": [32], "predicted": [1.0]}, unit="ms")
        >>> terms = given_errors(0.1).terms(kernels, correlation("independent"))
        >>> terms.value.tolist(), terms.count.tolist(), terms.spread.tolist()
        ([1.0], [32], [0.1])
        """
        self._same_unit(kernels)
        if self.kind == "absolute":
            all_predicted(kernels)
            labels, value = kernels.kernel_class.astype(np.str_), kernels.predicted
            below = np.zeros(len(kernels), dtype=bool)
        else:
            # Without a spread for kernels that are not modelled, small predictions count as they
            # are.
            parts = prepare(kernels, self.floor if NOT_MODELLED in self.classes else 0.0)
            labels, value, below = parts.labels, parts.value, parts.below
        names, index = np.unique(labels, return_inverse=True)
        errors = [self._error_or_nothing(str(name)) for name in names]
        bias = np.array([e.bias for e in errors])[index]
        spread = np.array([e.spread for e in errors])[index]
        if self.size_exponent:
            size = np.array([e.size for e in errors])[index]
            scaled = np.isfinite(size) & ~below
            spread[scaled] *= (value[scaled] / size[scaled]) ** -self.size_exponent
        if below.any() and NOT_MODELLED not in self.classes:
            value = np.where(below, _NOTHING if self.kind == "log-ratio" else 0.0, value)
            spread = np.where(below, 0.0, spread)
            bias = np.where(below, 0.0, bias)
        levels = correlation.levels(kernels, labels, below, self.components)
        return Terms(
            ids=kernels.ids,
            classes=labels,
            value=value,
            count=kernels.count,
            bias=bias,
            # The scale of a Student t with the same standard deviation.
            spread=spread * tail_scale(correlation.df),
            levels=levels,
            matrix=correlation.matrix,
            kind=self.kind,
            df=correlation.df,
            unit=kernels.unit,
        )

    def _same_unit(self, kernels: Kernels) -> None:
        if self.unit is not None and kernels.unit is not None and self.unit != kernels.unit:
            raise InputError(
                f"{kernels.prefix}the kernels are in {kernels.unit}, but the errors were fitted to "
                f"times in {self.unit}. Convert the kernels."
            )

    def _error_or_nothing(self, name: str) -> ClassError:
        if name == NOT_MODELLED and name not in self.classes:
            return ClassError(0.0, 0.0)
        return self.error(name)


def _check(name: str, error: ClassError, kind: Kind) -> None:
    """Refuse impossible numbers of a class."""
    for what in ("bias", "spread"):
        value = getattr(error, what)
        if not is_number(value) or not math.isfinite(value):
            raise InputError(f"{what} of {name} must be a finite number, got {value!r}")
    if error.spread < 0:
        raise InputError(
            f"spread of {name} must not be negative, got {error.spread!r}. "
            "It is a standard deviation."
        )
    if kind == "relative" and error.bias < -1:
        raise InputError(
            f"bias of {name} must be at least -1 (a kernel that takes no time), got {error.bias!r}"
        )
    if not math.isnan(error.size) and not 0 < error.size < math.inf:
        raise InputError(f"size of {name} must be a positive time, got {error.size!r}")


#: Name of all other classes.
_OTHERS = "*"


def given_errors(spread: float, bias: float = 0.0, *, kind: Kind = "log-ratio") -> ErrorModel:
    """Return an error model with the same error for every class.

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
        CSV, Parquet, JSON or JSON lines. The class ``*`` stands for all other classes.
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

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "errors.csv"
    >>> _ = path.write_text("kernel_class,spread\ngemm,0.1\n*,0.3\n")
    >>> read_errors(path).error("softmax").spread
    0.3
    """
    from errcomp.readers.plain import read_frame

    native, line_offset = read_frame(
        Path(path), {}, frozenset({"kernel_class"}), ("spread", "bias")
    )
    frame = to_eager(native)
    origin = Origin.of_table(str(path), len(frame), line_offset)
    for name in ("kernel_class", "spread"):
        if name not in frame.columns:
            raise InputError(
                f"{path}: no column {name!r}. A file of errors needs the columns kernel_class and "
                f"spread, and may have bias; found {', '.join(frame.columns)}"
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
            where = f"{values[bad][0]} in {origin.name(bad)}"
            raise InputError(f"{path}: {name} must be {rule}, got {where}")
    labels = frame["kernel_class"].to_list()
    nameless = np.array([is_missing(label) or not str(label).strip() for label in labels])
    if nameless.any():
        rows = origin.name(nameless)
        raise InputError(
            f"{path}: kernel_class is missing in {rows}. Name the class; "
            'the name "*" stands for all other classes.'
        )
    classes: dict[str, ClassError] = {}
    for row, label in enumerate(labels):
        if str(label) in classes:
            raise InputError(
                f"{path}: class {label!r} occurs twice, the second time in "
                f"{origin.word} {origin.rows[row]}. Give one row per class."
            )
        classes[str(label)] = ClassError(float(bias[row]), float(spread[row]))
    other = classes.pop(_OTHERS, None)
    return ErrorModel(classes, kind=kind, other=other)
