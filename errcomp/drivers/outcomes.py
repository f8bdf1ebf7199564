"""What is explained: the error of each pair on a relative, an absolute and a signed scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError, describe_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.tables import Pairs

__all__ = ["FLOOR_SHARE", "Outcomes", "outcomes_of"]

#: An APE below this share of the table's median APE counts as that share.
FLOOR_SHARE = 0.01
#: The square of a larger APE, or a sum of squares, may overflow.
_LARGEST = 1e75


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Errors of the pairs of one tool, each of shape (n,).

    Attributes
    ----------
    ape : ndarray
        Absolute error over the measurement, as a fraction.
    log_ape : ndarray
        Natural logarithm of the APE, floored (see :func:`outcomes_of`).
    signed : ndarray
        Natural logarithm of predicted over measured: positive where the prediction is too high.
    floor : float
        The floor, as a fraction.
    n_floored : int
        Pairs whose APE lay below it.
    """

    ape: NDArray[np.float64]
    log_ape: NDArray[np.float64]
    signed: NDArray[np.float64]
    floor: float
    n_floored: int


def outcomes_of(pairs: Pairs) -> Outcomes:
    r"""Compute the errors on which factors are compared.

    .. math:: \mathrm{APE}_i = |p_i - m_i| / m_i, \quad
              a_i = \ln \max(\mathrm{APE}_i, f), \quad s_i = \ln(p_i / m_i)

    Definition: the floor f is one hundredth of the median of the positive APEs of the table. A
    prediction that hits its measurement to 0.01 % did so by chance: the ratio of any other error to
    it is a ratio to noise, and to an exact hit it is infinite. The floor keeps such pairs (leaving
    them out would remove the best predictions) and bounds how far one of them can pull a geometric
    mean. It is computed from all pairs together, so that it favours no level of any factor: where
    a factor has no effect, tests remain exact. A true ratio of errors is pulled slightly towards 1.

    Raises
    ------
    InputError
        A prediction is not positive: its log ratio does not exist; or it is too large for its
        error to be squared.
    """
    p, m = pairs.predicted, pairs.measured
    bad = p <= 0
    if bad.any():
        raise InputError(
            f"{pairs.source + ': ' if pairs.source else ''}predicted must be positive for a log "
            f"ratio, got {p[bad][0]} in {describe_rows(pairs.rows[bad].tolist())}. Give such rows "
            "a status (a failed prediction is a row with a status, not a number)."
        )
    with np.errstate(over="ignore"):
        ape = np.abs(p - m) / m
    bad = ape > _LARGEST
    if bad.any():
        raise InputError(
            f"{pairs.source + ': ' if pairs.source else ''}predicted is more than {_LARGEST:.0e} "
            f"times measured, got predicted={p[bad][0]:g}, measured={m[bad][0]:g} in "
            f"{describe_rows(pairs.rows[bad].tolist())}. Check that both have the same unit."
        )
    positive = ape[ape > 0]
    # Where every prediction is exact nothing differs, and any floor gives the same ratio of 1.
    floor = FLOOR_SHARE * float(np.median(positive)) if len(positive) else 1.0
    return Outcomes(
        ape=ape,
        log_ape=np.log(np.maximum(ape, floor)),
        signed=np.log(p) - np.log(m),
        floor=floor,
        n_floored=int(np.sum(ape < floor)),
    )
