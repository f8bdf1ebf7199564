"""What is known of a predictor's errors: bias and spread per kernel class, and what they share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.propagation._residuals import NOT_MODELLED, prepare
from errcomp.propagation.assumptions import Correlation
from errcomp.propagation.components import Components
from errcomp.propagation.tails import NORMAL_TAILS, Tails, tail_scale
from errcomp.propagation.terms import KINDS, Kind, Terms

if TYPE_CHECKING:
    from errcomp.tables import Kernels

__all__ = ["ClassError", "ErrorModel"]


@dataclass(frozen=True, slots=True)
class ClassError:
    """Error of one kernel class.

    Attributes
    ----------
    bias, spread : float
        Location and standard deviation on the scale of the model's kind: of ln(measured /
        predicted) for log-ratio, of measured / predicted − 1 for relative, of measured − predicted
        (in the table's unit) for absolute errors.
    n, n_clusters : int
        Rows and devices (or runs) it was estimated from; 0 where it was given.
    size : float
        Predicted time at which the spread holds, where spreads depend on size; else NaN.
    """

    bias: float
    spread: float
    n: int = 0
    n_clusters: int = 0
    size: float = math.nan


@dataclass(frozen=True, slots=True)
class ErrorModel:
    r"""Errors of a predictor by kernel class, fitted (`fit_errors`) or given.

    Attributes
    ----------
    classes : mapping of str to ClassError
        Bias and spread per class; ``"(not modelled)"`` stands for kernels predicted as 0 or below
        what can be measured: their time in units of the run's modelled time.
    kind : {"log-ratio", "relative", "absolute"}
        Scale of bias and spread.
    other : ClassError, optional
        For classes that are not in ``classes``; without it such a class is an error.
    floor : float
        Predictions below it count as not modelled (where they are less than 1 % of the run).
    size_exponent : float
        γ of spread ∝ (predicted / size)^−γ: small kernels err more. 0: no dependence.
    components : Components, optional
        What errors share, for the correlation "estimated".
    tails : Tails
        Shape of the totals' errors under "estimated".
    n_runs : int
        Runs it was fitted to; 0 where it was given.

    Raises
    ------
    InputError
        A spread is negative or not finite, a bias is not finite, or the kind is unknown.

    Examples
    --------
    >>> model = ErrorModel({"gemm": ClassError(bias=0.0, spread=0.1)})
    >>> model.error("gemm").spread
    0.1
    """

    classes: Mapping[str, ClassError]
    kind: Kind = "log-ratio"
    other: ClassError | None = None
    floor: float = 0.0
    size_exponent: float = 0.0
    components: Components | None = None
    tails: Tails = NORMAL_TAILS
    n_runs: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        for name, error in [*self.classes.items(), ("other classes", self.other)]:
            if error is None:
                continue
            for what in ("bias", "spread"):
                value = getattr(error, what)
                if not math.isfinite(value):
                    raise InputError(f"{what} of {name} must be a finite number, got {value!r}")
            if error.spread < 0:
                raise InputError(
                    f"spread of {name} must not be negative, got {error.spread!r}. "
                    "It is a standard deviation."
                )

    def error(self, name: str) -> ClassError:
        """Return the error of a class.

        Raises
        ------
        InputError
            The class is unknown and nothing is known of other classes.
        """
        found = self.classes.get(name, self.other)
        if found is None:
            raise InputError(
                f"no error is known of kernel class {name!r}. Classes: "
                f"{describe_names(sorted(self.classes), wanted=name)}. "
                'Add it, or "*" for all other classes.'
            )
        return found

    def terms(self, kernels: Kernels, correlation: Correlation) -> Terms:
        """Return the kernels as random terms under an assumption on their correlation.

        Parameters
        ----------
        kernels : Kernels
            Predictions; what was measured is not looked at.
        correlation : Correlation
            What their errors share.

        Raises
        ------
        InputError
            A prediction is missing, a run is predicted to take no time, a class is unknown, or
            "estimated" is asked of a model that was not fitted.
        """
        if self.kind == "absolute":
            parts = None
            labels, value = kernels.kernel_class.astype(np.str_), kernels.predicted
            below = np.zeros(len(kernels), dtype=bool)
        else:
            parts = prepare(kernels, self.floor)
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
            value = np.where(below, 0.0, value)
            spread = np.where(below, 0.0, spread)
            bias = np.where(below, 0.0, bias)
        levels = correlation.levels(kernels, labels, below, self.components)
        return Terms(
            ids=kernels.ids,
            classes=labels,
            value=value,
            count=kernels.count,
            bias=bias,
            # Of a Student t of the same standard deviation.
            spread=spread * tail_scale(correlation.df),
            levels=levels,
            matrix=correlation.matrix,
            kind=self.kind,
            df=correlation.df,
            unit=kernels.unit,
        )

    def _error_or_nothing(self, name: str) -> ClassError:
        if name == NOT_MODELLED and name not in self.classes:
            return ClassError(0.0, 0.0)
        return self.error(name)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain numbers and texts."""
        return {
            "kind": self.kind,
            "floor": self.floor,
            "size_exponent": self.size_exponent,
            "n_runs": self.n_runs,
            "tails": self.tails.to_dict(),
            "components": None if self.components is None else self.components.to_dict(),
            "classes": {
                name: {
                    "bias": e.bias,
                    "spread": e.spread,
                    "n": e.n,
                    "n_clusters": e.n_clusters,
                }
                for name, e in self.classes.items()
            },
        }
