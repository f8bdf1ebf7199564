"""Assumptions on what the errors of kernels share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError, offer
from errcomp.propagation.checks import is_number
from errcomp.propagation.errors.components import Components
from errcomp.propagation.errors.residuals import LEVELS, combine, same_kernel
from errcomp.propagation.terms import EVERYTHING, Floats, Integers, Level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.tables import Kernels

__all__ = ["ASSUMPTIONS", "Correlation", "correlation", "correlations"]

#: Names of the assumptions, from the least to the most that errors share; unknown is none of them.
ASSUMPTIONS = (
    "independent",
    "repeats",
    "classes",
    "devices",
    "estimated",
    "comonotonic",
    "matrix",
    "unknown",
)
#: Those with a correlation that can be set, and the level it is at.
_LEVEL = {"repeats": "kernel", "classes": "class", "devices": "device"}


@dataclass(frozen=True, slots=True)
class Correlation:
    """What the errors of kernels share; made by `correlation`.

    Attributes
    ----------
    name : str
        One of `ASSUMPTIONS`.
    shares : mapping of str to float
        Share of the variance that arises at each level; the rest is each repetition's own.
    matrix : ndarray, shape (n, n), optional
        Correlation of the rows of the table, for "matrix".
    df : float
        Degrees of freedom of a multivariate t; infinity: normal.
    """

    name: str
    shares: Mapping[str, float]
    matrix: Floats | None = None
    df: float = math.inf

    def levels(
        self,
        kernels: Kernels,
        labels: NDArray[np.str_],
        below: NDArray[np.bool_],
        components: Components | None,
    ) -> tuple[Level, ...]:
        """Return the levels with the group of each kernel.

        Raises
        ------
        InputError
            "estimated" without components, or a matrix of another size than the table.
        """
        if self.matrix is not None:
            if len(self.matrix) != len(labels):
                raise InputError(
                    f"the correlation matrix has {len(self.matrix)} rows, run {kernels.runs[0]!r} "
                    f"has {len(labels)} kernels. Give one row per kernel of the run, in the order "
                    "of the table; one run at a time."
                )
            return ()
        if self.name == "comonotonic":
            return (Level(EVERYTHING, np.zeros(len(labels), dtype=np.int64), 1.0),)
        if self.name == "classes":
            return (Level("class", combine(labels), self.shares["class"]),)
        if self.name == "devices":
            return (Level("device", combine(kernels.device), self.shares["device"]),)
        if self.name == "repeats":
            return (Level("kernel", _kernel(kernels, labels), self.shares["kernel"]),)
        if self.name == "estimated":
            return self._estimated(kernels, labels, below, components)
        return ()

    def _estimated(
        self,
        kernels: Kernels,
        labels: NDArray[np.str_],
        below: NDArray[np.bool_],
        components: Components | None,
    ) -> tuple[Level, ...]:
        if components is None:
            raise InputError(
                "estimated needs an error model fitted to measured runs (fit_errors, --train); "
                "this one was given"
            )
        device = combine(kernels.device if components.cluster == "device" else kernels.run)
        by_run = combine(device, kernels.run)
        by_class = combine(by_run, labels)
        # All that is not modelled in a run errs as one.
        same = np.where(below, -1, same_kernel(kernels))
        row = np.where(below, -1, combine(kernels.kernel))
        by_kernel = combine(by_class, same)
        groups = (by_run, by_class, by_kernel, combine(by_kernel, row))
        return tuple(
            Level(name, group, components.shares[name])
            for name, group in zip(LEVELS, groups, strict=True)
        )


def _kernel(kernels: Kernels, labels: NDArray[np.str_]) -> Integers:
    return combine(kernels.device, labels, same_kernel(kernels))


def correlation(
    name: str, share: float | None = None, *, matrix: Floats | None = None, df: float = math.inf
) -> Correlation:
    """Return an assumption on the correlation of kernel errors by its name.

    Parameters
    ----------
    name : str
        * ``"independent"``: every instance errs on its own; errors cancel like 1/√N.
        * ``"repeats"``: instances of the same kernel share their error, different kernels do not:
          what a deterministic predictor does when a layer repeats.
        * ``"classes"``, ``"devices"``: kernels of one class (on one device) share their error.
        * ``"estimated"``: shares estimated from measured runs (variance components).
        * ``"comonotonic"``: one common factor; all errors go the same way, nothing cancels.
        * ``"matrix"``: given.
        * ``"unknown"``: nothing is assumed; only bounds hold.
    share : float, optional
        For repeats, classes and devices only: the intraclass correlation, in [0, 1]; by default 1.
    matrix : ndarray, shape (n, n), optional
        For "matrix": the correlation of the rows' errors, positive semi-definite.
    df : float
        Degrees of freedom of a multivariate t in place of the normal, > 2. Not for "estimated",
        which has its own tails.

    Raises
    ------
    InputError
        The name is unknown, the share is outside [0, 1] or the assumption has none, the degrees of
        freedom do not exceed 2 or the assumption has its own, the matrix is no correlation matrix.

    Examples
    --------
    >>> correlation("classes", 0.5).shares
    {'class': 0.5}
    """
    if name not in ASSUMPTIONS:
        known = offer("Assumptions", ASSUMPTIONS, wanted=str(name))
        raise InputError(f"assumption {name!r} is unknown. {known}")
    shares = _shares(name, share)
    if not is_number(df) or not df > 2:
        raise InputError(f"degrees of freedom must exceed 2 (the variance must exist), got {df!r}")
    if name == "estimated" and not math.isinf(df):
        raise InputError(
            f'"estimated" has the tails that were estimated; leave out the degrees of freedom, '
            f"got {df!r}"
        )
    if (matrix is None) == (name == "matrix"):
        raise InputError(
            'assumption "matrix" needs a matrix'
            if matrix is None
            else f'a matrix was given with assumption {name!r}. Ask for "matrix".'
        )
    if matrix is not None:
        from errcomp.propagation.psd import check_correlation

        return Correlation(name, {}, check_correlation(matrix), df)
    return Correlation(name, shares, None, df)


def correlations(
    wanted: str | Correlation | Sequence[str | Correlation],
) -> list[Correlation]:
    """Return the assumptions that were named, each once.

    Raises
    ------
    InputError
        There is none, one is unknown, or one is given twice.
    """
    if isinstance(wanted, str | Correlation):
        wanted = (wanted,)
    found = [one if isinstance(one, Correlation) else correlation(one) for one in wanted]
    names = [one.name for one in found]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"assumption {name!r} is given twice. Give it once.")
    if not found:
        raise InputError("no assumption on the correlation is given. Give at least one.")
    return found


def _shares(name: str, share: float | None) -> dict[str, float]:
    """Return the share at the level that an assumption is about."""
    if name not in _LEVEL:
        if share is not None:
            raise InputError(
                f"{name} takes no correlation, got {share!r}. Those with one are: "
                f"{', '.join(_LEVEL)}."
            )
        return {}
    share = 1.0 if share is None else share
    if not is_number(share) or not 0 <= share <= 1:
        raise InputError(
            f"the correlation within {name} must be between 0 and 1, got {share!r}. "
            "Negative correlations can be given as a matrix."
        )
    return {_LEVEL[name]: float(share)}
