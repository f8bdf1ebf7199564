r"""The random quantities of every engine: predictions with errors and shared causes.

A term is one predicted kernel time with its error. With prediction p (one
instance), bias b and spread s of the class, and Z of mean 0 and variance 1:

.. math::
    X = p \, e^{b + s Z} \;\text{(log-ratio)}, \qquad
    X = p \, (1 + b + s Z) \;\text{(relative)}, \qquad
    X = p + b + s Z \;\text{(absolute)}

The errors of two terms correlate to the extent that they share causes. Causes are nested levels
(device, class within the device, kernel within the class, ...). Level l explains the share
:math:`\rho_l` of the variance of every Z:

.. math::
    Z_i = \sum_l \sqrt{\rho_l} \, F_{l, g_l(i)} + \sqrt{1 - \sum_l \rho_l} \, E_i

so the correlation of two terms is the sum of the shares of the levels at which they are in the same
group, and no N×N matrix is needed. Each of the ``count`` repetitions of a term has its own E.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError

__all__ = ["EVERYTHING", "KINDS", "Floats", "Integers", "Kind", "Level", "Terms"]


#: Name of the level that all terms share, including terms that are added later.
EVERYTHING = "all"

#: Scales of errors: a factor of the time (log-ratio), a share of it, or in its unit.
Kind = Literal["log-ratio", "relative", "absolute"]
#: All kinds.
KINDS: tuple[Kind, ...] = ("log-ratio", "relative", "absolute")
#: Array of float64.
Floats = NDArray[np.float64]
#: Array of int64.
Integers = NDArray[np.int64]


_COLUMNS = ("ids", "classes", "value", "count", "bias", "spread")


@dataclass(frozen=True, slots=True)
class Level:
    """One cause that terms share.

    Attributes
    ----------
    name : str
        Name of the cause, e.g. ``"device"``, ``"class"``, ``"kernel"``.
    codes : ndarray of int, shape (n,)
        Group of each term, 0 … groups − 1. Every group lies within one group of the level before.
    share : float
        Share of the variance of the errors that arises at this level, in [0, 1].
    """

    name: str
    codes: Integers
    share: float


@dataclass(frozen=True, slots=True)
class Terms:
    """Predicted times with their errors: a table of kernels with an error model.

    Not validated: its maker checks the input (`ErrorModel.terms`).

    Attributes
    ----------
    ids : ndarray of str, shape (n,)
        Name of each term, unique; graphs refer to it.
    classes : ndarray of str, shape (n,)
        Kernel class, for the error budget.
    value : ndarray, shape (n,)
        Prediction of one instance, > 0 for log-ratio errors.
    count : ndarray of int, shape (n,)
        Number of repetitions of the term, ≥ 1.
    bias, spread : ndarray, shape (n,)
        Location and scale of the error in the module's formula; spread ≥ 0.
    levels : tuple of Level
        Nested, from coarse to fine; shares sum to at most 1, the rest belongs to each repetition.
        Empty: all errors independent.
    matrix : ndarray, shape (n, n), optional
        Correlation of the errors given explicitly, instead of levels; repetitions of a term then
        share their error.
    kind : {"log-ratio", "relative", "absolute"}
        Scale of bias and spread.
    df : float
        Degrees of freedom of the multivariate Student t that Z follows (all Z of one draw share
        its mixing variable; spread is its scale); infinity: normal.
    unit : str or None
        Unit of value.
    """

    ids: NDArray[np.str_]
    classes: NDArray[np.str_]
    value: Floats
    count: Integers
    bias: Floats
    spread: Floats
    levels: tuple[Level, ...] = ()
    matrix: Floats | None = None
    kind: Kind = "log-ratio"
    df: float = math.inf
    unit: str | None = None

    def __len__(self) -> int:
        return len(self.value)

    @property
    def cumulative(self) -> Floats:
        """Correlation of two different terms whose finest common level is the l-th, shape (L,)."""
        return np.cumsum([level.share for level in self.levels], dtype=float)

    @property
    def own_share(self) -> float:
        """Share of the variance that is each repetition's own; 0 with a matrix."""
        if self.matrix is not None:
            return 0.0
        return max(0.0, 1.0 - float(sum(level.share for level in self.levels)))

    def take(self, index: NDArray[np.int64] | Sequence[int]) -> Terms:
        """Return the terms at these positions, with renumbered groups.

        Examples
        --------
        >>> ids, ones = np.array(["a", "b", "c"]), np.ones(3)
        >>> terms = Terms(ids, ids, ones, np.ones(3, dtype=int), 0 * ones, 0.1 * ones)
        >>> terms.take([2, 0]).ids.tolist()
        ['c', 'a']
        """
        at = np.asarray(index, dtype=np.int64)
        levels = tuple(
            Level(v.name, np.unique(v.codes[at], return_inverse=True)[1].astype(np.int64), v.share)
            for v in self.levels
        )
        matrix = None if self.matrix is None else self.matrix[np.ix_(at, at)]
        columns = {name: getattr(self, name)[at] for name in _COLUMNS}
        return replace(self, **columns, levels=levels, matrix=matrix)

    def centre(self) -> Floats:
        """Return one instance of each term at Z = 0, shape (n,).

        Examples
        --------
        >>> ids, ones = np.array(["a", "b"]), np.ones(2)
        >>> terms = Terms(ids, ids, 10 * ones, np.ones(2, dtype=int), np.array([0.0, 0.1]), ones,
        ...               kind="relative")
        >>> terms.centre()
        array([10., 11.])
        """
        if self.kind == "log-ratio":
            return self.value * np.exp(self.bias)
        if self.kind == "relative":
            return self.value * (1.0 + self.bias)
        return self.value + self.bias

    def correlation(self) -> Floats:
        """Return the correlation of the Z of different terms as a matrix, shape (n, n).

        For small n: it takes n² numbers. The diagonal is 1.

        Examples
        --------
        >>> ids, ones = np.array(["a", "b"]), np.ones(2)
        >>> terms = Terms(ids, ids, ones, np.ones(2, dtype=int), 0 * ones, 0.1 * ones,
        ...               levels=(Level("run", np.array([0, 0]), 0.3),))
        >>> terms.correlation()
        array([[1. , 0.3],
               [0.3, 1. ]])
        """
        if self.matrix is not None:
            return self.matrix.copy()
        out = np.zeros((len(self), len(self)))
        for level in self.levels:
            out += level.share * (level.codes[:, None] == level.codes[None, :])
        np.fill_diagonal(out, 1.0)
        return out


# Checks of input that several modules share.


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number, and not a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_terms(terms: Terms) -> None:
    """Refuse a sum of nothing."""
    if len(terms) == 0:
        raise InputError("a sum needs at least one term, got none. Give at least one kernel.")


def check_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return the probabilities of bands in increasing order, each once.

    Raises
    ------
    InputError
        No level, or a level that is not between 0 and 1.
    """
    given = tuple(levels)
    if not given:
        raise InputError("levels is empty. Give at least one level, e.g. 0.9.")
    for level in given:
        if not is_number(level) or not 0 < level < 1:
            raise InputError(
                f"a level must be a number between 0 and 1, both excluded, got {level!r}. "
                "A 90 % band has the level 0.9."
            )
    return tuple(sorted({float(level) for level in given}))


def first_level(levels: Sequence[float]) -> float:
    """Return the level whose band stands first in reports: 0.9, or else the highest.

    Examples
    --------
    >>> first_level((0.5, 0.9, 0.95)), first_level((0.5, 0.8))
    (0.9, 0.8)
    """
    return 0.9 if 0.9 in levels else max(levels, default=0.9)
