r"""Errors against a reference that has errors itself: a surrogate of a simulator of a chip.

Log-ratio errors add along a chain of references, because

.. math:: \ln\frac{A}{C} = \ln\frac{A}{B} + \ln\frac{B}{C},

so biases add, and spreads add according to their correlation: for two steps
:math:`s^2 = s_1^2 + s_2^2 + 2 \rho s_1 s_2`. The correlation is rarely known, because it takes
runs that were measured on the whole chain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize, special

from errcomp.errors import InputError
from errcomp.propagation.psd import check_correlation
from errcomp.propagation.terms import Floats, is_number
from errcomp.results import format_fraction

__all__ = ["Chain", "ChainError", "Step"]

_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)  # E |Z|, Z standard normal
_LONGEST = 16
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Step:
    r"""One predictor and its error against the reference of its validation.

    The error is given as ``spread`` (and ``bias``) of the log-ratio, or as a published ``mape``, a
    number or a range such as ``(0.05, 0.10)``. A MAPE m is read as the mean absolute log-ratio of
    normal errors without bias, :math:`m = s \sqrt{2/\pi}`, because it does not show the direction
    of the errors. (For errors around 10 %, mean absolute log-ratio and MAPE differ by 0.5 % of
    their value; around 50 %, by a tenth.)

    Attributes
    ----------
    name : str
        The predictor.
    against : str
        Its reference: another predictor, or ``"hardware"``.
    bias : float or None
        Mean of ln(predictor / reference); 0 if only the spread is given, not allowed with ``mape``.
    spread : float or None
        Standard deviation of the log-ratio, ≥ 0.
    mape : float, (float, float) or None
        Fractions, ≥ 0.

    Raises
    ------
    InputError
        Names are empty or the same, an error is missing, given twice, negative or not finite, or a
        range is upside down.

    Examples
    --------
    >>> low, high = Step("simulator", "RTL", mape=(0.05, 0.10)).spreads
    >>> round(low, 4), round(high, 4)
    (0.0627, 0.1253)
    """

    name: str
    against: str
    bias: float | None = None
    spread: float | None = None
    mape: float | Range | None = None

    def __post_init__(self) -> None:
        where = f"Step({self.name!r}, {self.against!r})"
        if not all(isinstance(x, str) and x.strip() for x in (self.name, self.against)):
            raise InputError(f"{where}: name and against must be non-empty strings")
        if self.name == self.against:
            raise InputError(f"{where}: a predictor cannot be its own reference")
        if (self.spread is None) == (self.mape is None):
            raise InputError(f"{where}: give the error either as spread (and bias) or as mape")
        if self.mape is not None and self.bias is not None:
            raise InputError(
                f"{where}: a MAPE includes the bias. Give only mape, or spread and bias"
            )
        if self.bias is not None and not _finite(self.bias):
            raise InputError(f"{where}: bias must be a finite number, got {self.bias!r}")
        low, high = self._given()
        if not (_finite(low) and _finite(high) and 0 <= low <= high):
            name = "spread" if self.mape is None else "mape"
            value = self.spread if self.mape is None else self.mape
            raise InputError(
                f"{where}: {name} must be finite and 0 or more (in a range, low first), got "
                f"{value!r}. Give fractions: 0.05 is 5 %"
            )

    def _given(self) -> tuple[Any, Any]:
        value = self.spread if self.mape is None else self.mape
        if isinstance(value, tuple | list) and self.mape is not None:
            return (value[0], value[1]) if len(value) == 2 else (math.nan, math.nan)
        return value, value

    @property
    def spreads(self) -> Range:
        """Standard deviation of the log-ratio, at least and at most."""
        low, high = self._given()
        factor = 1.0 if self.mape is None else 1 / _MEAN_ABSOLUTE
        return float(low) * factor, float(high) * factor

    @property
    def mean_absolute(self) -> Range:
        """Mean absolute log-ratio, at least and at most."""
        low, high = self.spreads
        bias = self.bias or 0.0
        return _folded(bias, low), _folded(bias, high)


@dataclass(frozen=True, slots=True, eq=False)
class ChainError:
    r"""Error of a predictor against the last reference of a chain.

    It prints with its references. It is not a number: ``float`` raises.

    Attributes
    ----------
    names : tuple of str
        Predictor, the references between, and the last one.
    correlation : float, tuple or None
        As given; None: unknown. `spread` and `error` are then those of independent errors.
    bias : float
        Sum of the known biases.
    bias_unknown : tuple of str
        Predictors with only a MAPE: the bias is unknown, and 0 is assumed.
    spread : (float, float)
        Standard deviation of the log-ratio; two different numbers if an error is a range.
    error : (float, float)
        Mean absolute log-ratio, with normal errors.
    spread_any : (float, float)
        Spread at least and at most over all correlations.
    error_any : (float, float)
        Mean absolute log-ratio at least and at most. Valid for any correlation, distribution and
        direction of the errors, by the triangle inequality.
    first : (float, float)
        Mean absolute log-ratio of the first step, against the first reference only.
    """

    names: tuple[str, ...]
    correlation: float | tuple[tuple[float, ...], ...] | None
    bias: float
    bias_unknown: tuple[str, ...]
    spread: Range
    error: Range
    spread_any: Range
    error_any: Range
    first: Range

    def __str__(self) -> str:
        text = f"{self.names[0]}: {_shown(self.first)} against {self.names[1]}"
        if len(self.names) == 2:
            return f"{text}; error against other references unknown"
        text += f"; against {self.names[-1]} {_shown(self.error)} {self._assumption()}"
        text += f", {_shown(self.error_any)} for any correlation"
        if self.bias_unknown:
            return f"{text}; bias of {' and '.join(self.bias_unknown)} unknown"
        return f"{text}; bias {format_fraction(self.bias)}"

    def _assumption(self) -> str:
        if self.correlation is None:
            return "if the errors are independent"
        if isinstance(self.correlation, tuple):
            return "at the given correlations"
        return f"at correlation {self.correlation:g}"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        try:
            return format(str(self), spec)
        except ValueError as error:
            raise TypeError(
                f"{self} is not a number: the format {spec!r} does not apply"
            ) from error

    def __float__(self) -> float:
        raise TypeError(
            f"the error of a chain is not a single number: {self}. Use .error, the error against "
            "the last reference, or .error_any, which holds for any correlation. Each of them is "
            "a lower and an upper bound."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: log-ratios; pairs are at least and at most.

        Examples
        --------
        >>> chain = Chain([Step("model", "hardware", bias=0.0, spread=0.1)])
        >>> chain.compose().to_dict()["spread"]
        [0.1, 0.1]
        """
        matrix = self.correlation
        return {
            "predictor": self.names[0],
            "against": self.names[-1],
            "via": list(self.names[1:-1]),
            "correlation": [list(row) for row in matrix] if isinstance(matrix, tuple) else matrix,
            "bias": self.bias,
            "bias_unknown": list(self.bias_unknown),
            "spread": list(self.spread),
            "error": list(self.error),
            "spread_any": list(self.spread_any),
            "error_any": list(self.error_any),
            "first": {"against": self.names[1], "error": list(self.first)},
        }


@dataclass(frozen=True, slots=True)
class Chain:
    """Predictors, each validated against the next.

    Attributes
    ----------
    steps : sequence of Step
        From the predictor to the last reference; the reference of each is the next predictor.

    Raises
    ------
    InputError
        Steps do not join, or a name occurs twice.

    Examples
    --------
    >>> chain = Chain([Step("surrogate", "simulator", mape=0.0061),
    ...                Step("simulator", "RTL", mape=(0.05, 0.10))])
    >>> print(chain.compose())
    surrogate: 0.61 % against simulator; against RTL 5.04–10.02 % if the errors are independent, \
4.39–10.61 % for any correlation; bias of surrogate and simulator unknown
    """

    steps: Sequence[Step]

    def __post_init__(self) -> None:
        steps = tuple(self.steps)
        object.__setattr__(self, "steps", steps)
        if not 1 <= len(steps) <= _LONGEST:
            raise InputError(f"Chain: must have 1 to {_LONGEST} steps, got {len(steps)}")
        if wrong := [x for x in steps if not isinstance(x, Step)]:
            raise InputError(f"Chain: each step must be a Step, got {wrong[0]!r}")
        for step, following in itertools.pairwise(steps):
            if step.against != following.name:
                raise InputError(
                    f"Chain: steps do not join: {step.name!r} is compared with {step.against!r}, "
                    f"but the next step is {following.name!r}. Order the steps."
                )
        names = [*(step.name for step in steps), steps[-1].against]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"Chain: {twice[0]!r} occurs twice. Remove the cycle.")

    def compose(
        self, correlation: float | ArrayLike | None = None, *, against: str | None = None
    ) -> ChainError:
        r"""Return the error of the first predictor against the last reference.

        .. math:: b = \sum_i b_i, \qquad s^2 = \sum_{ij} \rho_{ij} s_i s_j, \qquad
            \max_i \Big(s_i - \sum_{j \ne i} s_j\Big)^+ \le s \le \sum_i s_i

        Definition: biases add; spreads add with the correlation of the log-ratio errors of the
        steps. If a step is a range, both ends of the result are computed.
        A first step alone misleads: 0.61 % against a simulator does not show the error against
        hardware.

        Parameters
        ----------
        correlation : float or array_like, shape (n, n), optional
            Of the errors of every two steps, or a matrix for n steps. None: unknown; the result is
            that of independent errors, with the range over all correlations.
        against : str, optional
            Expected last reference, as a check.

        Returns
        -------
        ChainError

        Raises
        ------
        InputError
            The chain ends at another reference, a correlation is outside [−1, 1], or the
            correlations are impossible together.

        Examples
        --------
        >>> chain = Chain([Step("model", "simulator", bias=0.02, spread=0.03),
        ...                Step("simulator", "hardware", bias=-0.05, spread=0.04)])
        >>> composed = chain.compose(0.0, against="hardware")
        >>> round(composed.bias, 4), round(composed.spread[0], 4)
        (-0.03, 0.05)
        """
        names = (*(step.name for step in self.steps), self.steps[-1].against)
        if against is not None and against != names[-1]:
            raise InputError(
                f"Chain: the chain ends at {names[-1]}, not at {against}: {' → '.join(names)}. "
                f"Add the step of {names[-1]!r} against {against!r}."
            )
        rho, given = self._correlation(correlation)
        low, high = np.array([step.spreads for step in self.steps]).T
        spread = _smallest_root(rho, low, high), _largest_root(rho, low, high)
        bias = sum(step.bias or 0.0 for step in self.steps)
        unknown = tuple(step.name for step in self.steps if step.mape is not None)
        reach = _triangle(*np.array([step.mean_absolute for step in self.steps]).T)
        # A mean absolute error is never below the mean error.
        least = reach[0] if unknown else max(reach[0], abs(bias))
        return ChainError(
            names=names,
            correlation=given,
            bias=bias,
            bias_unknown=unknown,
            spread=spread,
            error=(_folded(bias, spread[0]), _folded(bias, spread[1])),
            spread_any=_triangle(low, high),
            error_any=(least, reach[1]),
            first=self.steps[0].mean_absolute,
        )

    def _correlation(
        self, given: float | ArrayLike | None
    ) -> tuple[Floats, float | tuple[tuple[float, ...], ...] | None]:
        n = len(self.steps)
        if given is None:
            return np.eye(n), None
        names = [step.name for step in self.steps]
        if np.ndim(given) == 0:
            if not _finite(given) or not -1 <= given <= 1:
                raise InputError(f"correlation: must be in [-1, 1], got {given!r}")
            rho = np.full((n, n), float(given))
            np.fill_diagonal(rho, 1.0)
            return check_correlation(rho, names=names), float(given)
        rho = check_correlation(given, n=n, names=names)
        return rho, tuple(tuple(row) for row in rho.tolist())


def _finite(value: object) -> TypeGuard[float]:
    return is_number(value) and math.isfinite(value)


def _folded(bias: float, spread: float) -> float:
    """Mean absolute value of a normal variable."""
    if spread == 0:
        return abs(bias)
    z = bias / spread
    return spread * _MEAN_ABSOLUTE * math.exp(-z * z / 2) + bias * float(
        special.erf(z / math.sqrt(2))
    )


def _triangle(low: Floats, high: Floats) -> Range:
    """Smallest and largest length of a sum of vectors with lengths in these ranges."""
    return max(0.0, float((low + high).max() - high.sum())), float(high.sum())


def _smallest_root(rho: Floats, low: Floats, high: Floats) -> float:
    """Smallest root of sᵀ ρ s with s between low and high."""
    free = high > low
    if np.all(rho >= 0) or not free.any():
        return math.sqrt(max(0.0, float(low @ rho @ low)))
    values, vectors = linalg.eigh(rho)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    fixed = root[:, ~free] @ low[~free]
    fit = optimize.lsq_linear(root[:, free], -fixed, (low[free], high[free]), method="bvls")
    return float(linalg.norm(root[:, free] @ fit.x + fixed))


def _largest_root(rho: Floats, low: Floats, high: Floats) -> float:
    """Largest root of sᵀ ρ s with s between low and high: at a corner, as it is convex."""
    if np.all(rho >= 0):
        corners: Floats = high[None, :]
    else:
        ends = (sorted({a, b}) for a, b in zip(low.tolist(), high.tolist(), strict=True))
        corners = np.array(list(itertools.product(*ends)))
    return math.sqrt(max(0.0, float(np.einsum("ki,ij,kj->k", corners, rho, corners).max())))


def _shown(ends: Range) -> str:
    low, high = (format_fraction(end) for end in ends)
    return low if low == high else f"{low.removesuffix(' %')}–{high}"
