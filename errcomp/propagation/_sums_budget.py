"""Whether errors cancel or add up in a sum, and which terms the error of the sum comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation._sums_blocks import row_covariances
from errcomp.propagation._sums_scale import widths
from errcomp.propagation.terms import Floats, Terms

__all__ = ["Budget", "effective_number", "error_budget", "growth_factor", "icc"]


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    """Where the error of a total comes from; largest first-order contribution first.

    Attributes
    ----------
    by : {"class", "term"}
        What a row is.
    names : ndarray of str, shape (k,)
    share_of_time : ndarray, shape (k,)
        Share of the mean of the total; sums to 1.
    first_order : ndarray, shape (k,)
        Covariance with the total over the variance of the total; sums to 1. Negative where the
        error of the row offsets that of others.
    total : ndarray, shape (k,)
        Share of the variance that would vanish with the error of the row; sums to 1 if the rows
        are independent, to more if they share causes. 1 - sqrt(1 - total) of the standard deviation
        is what a perfect predictor of the row would buy.
    """

    by: Literal["class", "term"]
    names: NDArray[np.str_]
    share_of_time: Floats
    first_order: Floats
    total: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "by": self.by,
            "rows": [
                {
                    "name": str(n),
                    "share_of_time": float(s),
                    "first_order": float(f),
                    "total": float(t),
                }
                for n, s, f, t in zip(
                    self.names, self.share_of_time, self.first_order, self.total, strict=True
                )
            ],
        }


def error_budget(terms: Terms, *, by: Literal["class", "term"] = "class") -> Budget:
    r"""Contribution of each kernel class, or each term, to the variance of the total.

    .. math::
        \text{first order}_g = \frac{\operatorname{Cov}(X_g, S)}{\operatorname{Var} S}, \qquad
        \text{total}_g = 1 - \frac{\operatorname{Var}(S - X_g)}{\operatorname{Var} S}
        = 2\,\text{first order}_g - \frac{\operatorname{Var} X_g}{\operatorname{Var} S}

    Definition: X_g is the sum of all instances of the row. First-order contributions share the
    variance out among the rows; a total contribution is what the variance would lose if the row
    were predicted without error, its mean unchanged. With a common cause the sum of the totals
    exceeds 1. Log-ratio errors with Student t tails have no variance: theirs is the budget of the
    logarithm of the total, to first order.
    Misleads where a small first-order contribution is taken for a good predictor: it may be a
    kernel that takes little time.

    Parameters
    ----------
    terms : Terms
    by : {"class", "term"}

    Returns
    -------
    Budget

    Raises
    ------
    InputError
        There is no term, or `by` is unknown, or a spread is too large (see `total_moments`).
    NotDefinedError
        The total has no error: all spreads are 0, or the errors cancel exactly.

    Examples
    --------
    >>> import numpy as np
    >>> terms = Terms(
    ...     ids=np.array(["a", "b"]), classes=np.array(["gemm", "softmax"]),
    ...     value=np.array([10.0, 2.0]), count=np.array([1, 1]), bias=np.zeros(2),
    ...     spread=np.array([0.1, 0.2]), kind="relative")
    >>> budget = error_budget(terms)
    >>> [str(name) for name in budget.names], budget.first_order.round(3).tolist()
    (['gemm', 'softmax'], [0.862, 0.138])
    """
    if by not in ("class", "term"):
        raise InputError(f'by must be "class" or "term", got {by!r}.')
    wide = widths(terms)
    _refuse_certain(wide.variance)
    if by == "class":
        names, labels = np.unique(terms.classes, return_inverse=True)
    else:
        names, labels = terms.ids, np.arange(len(terms))
    with_all, with_own = (
        np.bincount(
            labels, row_covariances(terms, wide.loading, partners, exponential=wide.exponential)
        )
        for partners in (None, labels)
    )
    first_order = with_all / wide.variance
    total = 2 * first_order - with_own / wide.variance
    time = np.bincount(labels, wide.mean)
    order = np.argsort(-first_order, kind="stable")
    return Budget(by, names[order], (time / time.sum())[order], first_order[order], total[order])


def effective_number(terms: Terms) -> float:
    r"""Count the independent, alike kernels whose total would have the same relative error.

    .. math:: n_\mathrm{eff} = \frac{\left(\sum_i n_i \sigma_i\right)^2}{\operatorname{Var} S}

    Definition: :math:`\sigma_i` is the standard deviation of one instance. 1 if all errors are the
    same (nothing cancels), N for N alike and independent instances; below N where few instances
    carry most of the error; above N where negative correlation makes errors offset each other.
    Log-ratio errors with Student t tails: to first order, on the scale of the logarithm.
    Misleads where one long kernel dominates: a low number then says nothing of shared causes.

    Parameters
    ----------
    terms : Terms

    Returns
    -------
    float

    Raises
    ------
    InputError
        There is no term, or a spread is too large (see `total_moments`).
    NotDefinedError
        The total has no error.

    References
    ----------
    Kish (1965), "Survey Sampling", Wiley, chapter 5: the effective sample size of a clustered
    sample; here with unequal standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from errcomp.propagation.terms import Level
    >>> terms = Terms(
    ...     ids=np.array(["gemm"]), classes=np.array(["gemm"]), value=np.array([10.0]),
    ...     count=np.array([100]), bias=np.zeros(1), spread=np.array([0.1]), kind="relative")
    >>> round(effective_number(terms), 6)
    100.0
    """
    variance = widths(terms).variance
    _refuse_certain(variance)
    return 1.0 / variance


def growth_factor(terms: Terms) -> float:
    r"""Relative error of the total over that of its kernels: below 1 errors cancel.

    .. math::
        \frac{\sigma_S / \operatorname{E} S}{\sum_i w_i \, \sigma_i / m_i}
        = \frac{1}{\sqrt{n_\mathrm{eff}}}, \qquad w_i = \frac{n_i m_i}{\operatorname{E} S}

    Definition: the error of a kernel is its standard deviation over its mean; the kernels are
    averaged with their share of the time as weight. 1 if all errors are the same, 1/√N for N alike
    and independent instances. In a sum of positive times it never exceeds 1.

    Parameters
    ----------
    terms : Terms

    Returns
    -------
    float

    Raises
    ------
    InputError, NotDefinedError
        As for `effective_number`.

    Examples
    --------
    >>> import numpy as np
    >>> terms = Terms(
    ...     ids=np.array(["gemm"]), classes=np.array(["gemm"]), value=np.array([10.0]),
    ...     count=np.array([100]), bias=np.zeros(1), spread=np.array([0.1]), kind="relative")
    >>> round(growth_factor(terms), 6)
    0.1
    """
    return 1.0 / math.sqrt(effective_number(terms))


def icc(terms: Terms) -> dict[str, float]:
    r"""Intraclass correlation at each level: how alike the errors of two terms of one group are.

    .. math:: \mathrm{ICC}_l = \sum_{k \le l} \rho_k

    Definition: correlation of the Z of two different terms whose finest common group is of that
    level, coarse to fine. No level: no entry, all errors are independent. With a matrix: one entry,
    ``"matrix"``, the mean correlation of different terms weighted by the product of their standard
    deviations (all repetitions together).

    Parameters
    ----------
    terms : Terms

    Returns
    -------
    dict of str to float

    Raises
    ------
    InputError, NotDefinedError
        With a matrix, as for `effective_number`; and where there is one term alone.

    Examples
    --------
    >>> import numpy as np
    >>> from errcomp.propagation.terms import Level
    >>> terms = Terms(
    ...     ids=np.array(["a", "b"]), classes=np.array(["gemm", "gemm"]), value=np.ones(2),
    ...     count=np.array([1, 1]), bias=np.zeros(2), spread=np.full(2, 0.1),
    ...     levels=(Level("device", np.array([0, 0]), 0.3), Level("class", np.array([0, 0]), 0.2)))
    >>> icc(terms)
    {'device': 0.3, 'class': 0.5}
    """
    if terms.matrix is None:
        names = [level.name for level in terms.levels]
        return dict(zip(names, terms.cumulative.tolist(), strict=True))
    weight = terms.count * widths(terms).sd
    pairs = float(weight.sum() ** 2 - weight @ weight)
    if pairs <= 0:
        raise NotDefinedError("a correlation between terms needs two terms with an error, got one.")
    own = float((weight**2) @ terms.matrix.diagonal())
    return {"matrix": (float(weight @ terms.matrix @ weight) - own) / pairs}


def _refuse_certain(variance: float) -> None:
    if variance <= 0:
        raise NotDefinedError(
            "the errors of the terms cancel exactly: the total is certain and no term has a share "
            "of its error."
        )
