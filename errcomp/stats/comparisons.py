r"""Intervals of shares of comparisons, which share alternatives.

A comparison of A and B depends on every other comparison of A, or of B. The variance of a share p
is therefore a jackknife that leaves out each of the K alternatives with all its comparisons:

.. math:: V = \frac{K-1}{K} \sum_a (p_{-a} - \bar p)^2

The interval is Wilson's with the effective number of comparisons p (1 - p) / V and the t quantile
of K - 1 degrees of freedom.
What a condition does to all its alternatives cancels in a comparison, so conditions do not count
as clusters. Where all are right, or none is, V says nothing, and each alternative counts as one.

References
----------
Efron and Stein (1981), "The Jackknife Estimate of Variance", doi:10.1214/aos/1176345462; Wilson
(1927), "Probable inference", Journal of the American Statistical Association 22(158).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

#: Fewest alternatives for an interval.
FEWEST = 5


class Share(NamedTuple):
    """A share of comparisons with its interval.

    Attributes
    ----------
    value, low, high : float
    alternatives : int
    effective : float
        Effective number of comparisons.
    """

    value: float
    low: float
    high: float
    alternatives: int
    effective: float


def share_of_comparisons(
    right: NDArray[np.bool_], one: NDArray[np.int64], two: NDArray[np.int64], level: float = 0.95
) -> Share | None:
    """Return the share of comparisons that are right, with its interval over alternatives.

    Parameters
    ----------
    right : ndarray of bool, shape (n,)
    one, two : ndarray of int, shape (n,)
        The alternatives of each.
    level : float

    Returns
    -------
    Share or None
        None with fewer than 5 alternatives.

    Examples
    --------
    >>> one, two = np.triu_indices(6, 1)
    >>> share_of_comparisons(one != 0, one, two).value
    0.6666666666666666
    """
    names = np.unique([one, two], return_inverse=True)[1].reshape(2, -1)
    count, n = int(names.max()) + 1, len(right)
    if count < FEWEST:
        return None
    share = float(right.mean())
    of_one = [np.bincount(name, right, count) for name in names]
    seen = [np.bincount(name, minlength=count) for name in names]
    left = n - seen[0] - seen[1]
    without = (right.sum() - of_one[0] - of_one[1])[left > 0] / left[left > 0]
    variance = (count - 1) / count * float(((without - without.mean()) ** 2).sum())
    variance = max(variance, share * (1 - share) / n)
    effective = min(share * (1 - share) / variance, n) if variance > 0 else min(count, n)
    low, high = wilson(share, effective, float(stdtrit(count - 1, (1 + level) / 2)))
    return Share(share, low, high, count, effective)


def wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Return the ends of Wilson's interval of a share of n cases, with the quantile z.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(0.9, 100, 1.96)]
    [0.826, 0.945]
    """
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, float(centre - reach)), min(1.0, float(centre + reach))
