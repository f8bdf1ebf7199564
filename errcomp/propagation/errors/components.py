"""Correlation of errors: estimated by variance components of measured runs, or assumed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from scipy import optimize

from errcomp.codec import Count, Coverage, Document, Field, Names, Part, Undefined, Within, key
from errcomp.errors import InputError, offer, renamed
from errcomp.propagation.errors.residuals import LEVELS, Residuals, combine, same_kernel
from errcomp.propagation.terms import EVERYTHING, Floats, Integers, Level, is_number
from errcomp.stats.significance import student_ppf

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.tables import Kernels

__all__ = [
    "Components",
    "Interval",
]


_BLOCKS = 40  # at most this number of fits
_KERNEL = LEVELS.index("kernel")
_NOTHING = 1e-12  # of the largest sum of weights: below it there are no pairs, only rounding


@dataclass(frozen=True, slots=True)
class Interval(Document):
    """A correlation with its interval; NaN without pairs of kernels."""

    KEYS: ClassVar = (key("correlation", "value"), "low", "high")

    value: Annotated[float, Undefined]
    low: Annotated[float, Undefined] = math.nan
    high: Annotated[float, Undefined] = math.nan


class _Levels(Part):
    """The correlation at each of the `LEVELS`, by name, and the share of the variance there."""

    def write(self, components: Components) -> Mapping[str, Any]:
        levels = zip(LEVELS, components.levels, strict=True)
        shares = components.shares
        return {
            "levels": [
                {"level": name, **interval.to_dict(), "share": shares[name]}
                for name, interval in levels
            ]
        }

    def read(self, field: Field) -> Mapping[str, Any]:
        rows = list(field.at("levels").items())
        if tuple(row.at("level").value for row in rows) != LEVELS:
            field.at("levels").refuse(f"the levels {', '.join(LEVELS)}")
        return {"levels": tuple(Interval.from_field(row) for row in rows)}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        row = Interval.json_schema(names)
        row["properties"] |= {"level": {"enum": list(LEVELS)}, "share": {"type": "number"}}
        row["required"] += ["level", "share"]
        return {"levels": {"type": "array", "items": row}}


@dataclass(frozen=True, slots=True)
class Components(Document):
    r"""Correlation of the errors of two kernels by what they have in common.

    Attributes
    ----------
    levels : tuple of Interval
        Correlation of two kernels of a run by their finest common level (`LEVELS`): the run; the
        class; the same prediction of the same kernel; the row (1 by definition). No interval if no
        two kernels have this as their finest common level.
    device, device_class : Interval
        Correlation of kernels of *different* runs on one device, of different classes and of one
        class: the part of a run's common error that is due to its device. Not needed for the total
        of a single run.
    scale : float
        Factor on the spreads of the classes: the spread within totals, where long kernels count
        more, over the spread within a class.
    confidence : float or None
        Confidence of the intervals; None if there are none.
    n, n_clusters : int
        Rows and independent clusters (devices, or runs).
    cluster : str
        Kind of the clusters: device or run.
    """

    KEYS: ClassVar = (
        *("cluster", "n_clusters", "n", "scale", "confidence", _Levels()),
        Within(
            "across_runs_of_a_device",
            (key("other_class", "device", Interval), key("same_class", "device_class", Interval)),
        ),
    )

    levels: tuple[Interval, ...]
    device: Interval
    device_class: Interval
    scale: float
    confidence: Coverage | None
    n: Count
    n_clusters: Count
    cluster: str

    @property
    def correlation(self) -> tuple[float, ...]:
        """Correlation at each of the `LEVELS`, from coarse to fine; the last is 1."""
        return tuple(level.value for level in self.levels)

    @property
    def shares(self) -> dict[str, float]:
        """Share of the variance that arises at each level; they sum to 1."""
        steps = np.diff(np.concatenate([[0.0], self.correlation]))
        return {name: float(max(step, 0.0)) for name, step in zip(LEVELS, steps, strict=True)}


@renamed(confidence="level")
def estimate_components(
    errors: Residuals,
    fit: Callable[[Residuals], tuple[Floats, Floats, Floats]],
    *,
    cluster: str,
    level: float | None = 0.9,
) -> Components:
    r"""Estimate correlations by time-weighted moments.

    With residuals r, shares of the run's time w and spreads s of the class, the correlation of
    kernels whose finest common level is l is

    .. math::
        \hat C_l = \sum_{(i,j) \in l} w_i w_j r_i r_j \Big/ \sum_{(i,j) \in l} w_i w_j s_i s_j

    over all pairs (i, j) of that kind within a run. Sums over pairs are differences of squared
    group sums, so it takes O(n). The variance of a run's total is the same weighted sum, so the
    estimate matches its use: over all runs the mean propagated variance equals the mean squared
    error, except for truncation. Correlations that decrease from coarse to fine are pooled
    (isotonic regression with the weights of the denominators); negative ones are set to 0. Between
    runs, where neither is done, they and all intervals are kept within −1 and 1. If no
    run has two rows that are the same to the predictor, the correlation of such rows is assumed to
    be 1: the predictor repeats its error.

    Parameters
    ----------
    errors : Residuals
        Observed errors with the groups of each row.
    fit : callable
        From residuals to relative residual, share of the run's corrected time and spread of the
        class, each of shape (n,). Called again without each cluster.
    cluster : str
        Kind of the clusters: ``"device"`` or ``"run"``.
    level : float or None
        Nominal coverage of the intervals; None: no intervals.

    Returns
    -------
    Components

    Notes
    -----
    Equals the ANOVA estimator, and REML, where the design is balanced and all weights and spreads
    are equal. Residuals are those of predictions for a new device: the common error of a
    device's runs includes the uncertainty of locations estimated from D devices, a factor of
    D / (D − 1). The intervals are delete-one-cluster jackknives (beyond 40 clusters, groups of them
    are deleted) that repeat the whole fit, with t quantiles. In simulations with 4 and 8 devices
    90 % intervals covered 85 to 92 %.

    References
    ----------
    Searle, Casella and McCulloch (1992), "Variance Components", Wiley, chapter 5;
    Efron and Stein (1981), "The Jackknife Estimate of Variance", doi:10.1214/aos/1176345462.
    """
    top, base = _ratios(errors, *fit(errors))
    levels = len(LEVELS)
    raw = _isotonic(top[:levels], base[:levels])
    # Predictions without error have no correlation.
    scale = float(raw[-1]) or 1.0
    raw[-1] = scale
    seen = base > _NOTHING * float(base.max())
    across = np.clip(_correlations(top, base)[levels:], -1, 1)
    value = np.append(raw / scale, across)
    low = high = np.full(len(base), math.nan)
    if level is not None and len(errors.clusters) > 1:
        low, high = _jackknife(errors, fit, level)
    seen[levels - 1] = False  # a row with itself: 1 by definition, not an estimate
    rows = zip(value, np.where(seen, low, math.nan), np.where(seen, high, math.nan), strict=True)
    *within, other, same = (Interval(float(v), float(a), float(b)) for v, a, b in rows)
    if cluster == "run":
        other = same = Interval(math.nan)
    return Components(
        levels=tuple(within),
        device=other,
        device_class=same,
        scale=math.sqrt(scale),
        confidence=level,
        n=len(errors.y),
        n_clusters=len(errors.clusters),
        cluster=cluster,
    )


def _correlations(top: Floats, base: Floats) -> Floats:
    """Return the ratios over that of a row with itself; NaN where there are no pairs."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(base > _NOTHING * float(base.max()), top / base, math.nan)
    own = ratio[len(LEVELS) - 1]
    return ratio / own if own > 0 else np.where(np.isnan(ratio), math.nan, 0.0)


def _jackknife(
    errors: Residuals, fit: Callable[[Residuals], tuple[Floats, Floats, Floats]], level: float
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of all ratios; NaN if only one cluster has pairs."""
    blocks = min(len(errors.clusters), _BLOCKS)
    without = []
    for i in range(blocks):
        part = errors.take(errors.cluster % blocks != i)
        without.append(_correlations(*_ratios(part, *fit(part))))
    deviations = (np.array(without) - np.mean(without, axis=0)) ** 2
    error = np.sqrt((blocks - 1) / blocks * deviations.sum(axis=0))
    half = student_ppf((1 + level) / 2, blocks - 1) * error
    centre = _correlations(*_ratios(errors, *fit(errors)))
    return np.clip(centre - half, -1, 1), np.clip(centre + half, -1, 1)


def _ratios(
    errors: Residuals, residual: Floats, weight: Floats, spread: Floats
) -> tuple[Floats, Floats]:
    """Return the sums over pairs of products of residuals, and of spreads.

    By finest common level within runs; then of different runs of a cluster, of different classes
    and of one class.
    """
    groups = [*errors.groups(), errors.cluster, combine(errors.cluster, errors.label)]
    return _squares(groups, weight * residual), _squares(groups, weight * spread)


def _squares(groups: Sequence[Integers], x: Floats) -> Floats:
    """Return the sum over pairs of x x' of each kind, shape (L + 2,).

    The groups are those of each level, then the clusters and the classes of a cluster.
    """
    *within, cluster, of_class = (float((np.bincount(group, x) ** 2).sum()) for group in groups)
    across, across_class = cluster - within[0], of_class - within[1]
    finer = [*within[1:], 0.0]
    own = [a - b for a, b in zip(within, finer, strict=True)]
    return np.array([*own, across - across_class, across_class])


def _isotonic(top: Floats, base: Floats) -> Floats:
    """Return the ratios top / base made increasing, and not negative.

    A level without pairs gets the ratio of the next coarser level; the level of the kernel that of
    the row, the next finer one.
    """
    known = base > _NOTHING * float(base.max())
    out = np.zeros(len(top))
    if known.any():
        fitted = optimize.isotonic_regression(top[known] / base[known], weights=base[known]).x
        above = np.cumsum(known)
        out[above > 0] = fitted[above[above > 0] - 1]
    if not known[_KERNEL]:
        out[_KERNEL] = out[-1]
    return np.maximum(out, 0.0)


#: Names of the assumptions, from least to most correlated; "unknown" assumes nothing.
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
#: Assumptions with a correlation that can be set, and its level.
_LEVEL = {"repeats": "kernel", "classes": "class", "devices": "device"}


@dataclass(frozen=True, slots=True)
class Correlation:
    """Assumption on the correlation of kernel errors; made by `correlation`.

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

        Examples
        --------
        >>> from errcomp import Kernels
        >>> from errcomp.propagation import correlation, given_errors
        >>> columns = {"kernel": ["a", "b"], "kernel_class": ["gemm"] * 2, "predicted": [1.0, 2.0]}
        >>> terms = given_errors(0.1).terms(Kernels(columns), correlation("classes", 0.5))
        >>> [level.share for level in terms.levels]
        [0.5]
        """
        if self.matrix is not None:
            if len(self.matrix) != len(labels):
                raise InputError(
                    f"the correlation matrix has {len(self.matrix)} rows, but run "
                    f"{kernels.runs[0]!r} has {len(labels)} kernels. Give one row per kernel, in "
                    "the order of the table, for a single run."
                )
            return ()
        if self.name == "comonotonic":
            return (Level(EVERYTHING, np.zeros(len(labels), dtype=np.int64), 1.0),)
        if self.name == "classes":
            return (Level("class", combine(labels), self.shares["class"]),)
        if self.name == "devices":
            return (Level("device", combine(kernels.device), self.shares["device"]),)
        if self.name == "repeats":
            kernel = combine(kernels.device, labels, same_kernel(kernels))
            return (Level("kernel", kernel, self.shares["kernel"]),)
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
                '"estimated" needs an error model fitted to measured runs (fit_errors, --train), '
                "not errors set by hand"
            )
        device = combine(kernels.device if components.cluster == "device" else kernels.run)
        by_run = combine(device, kernels.run)
        by_class = combine(by_run, labels)
        # Kernels of a run that are not modelled share one error.
        same = np.where(below, -1, same_kernel(kernels))
        row = np.where(below, -1, combine(kernels.kernel))
        by_kernel = combine(by_class, same)
        groups = (by_run, by_class, by_kernel, combine(by_kernel, row))
        return tuple(
            Level(name, group, components.shares[name])
            for name, group in zip(LEVELS, groups, strict=True)
        )


def correlation(
    name: str, share: float | None = None, *, matrix: Floats | None = None, df: float = math.inf
) -> Correlation:
    """Return an assumption on the correlation of kernel errors.

    Parameters
    ----------
    name : str
        * ``"independent"``: every instance has its own error; errors cancel like 1/√N.
        * ``"repeats"``: instances of the same kernel share their error, different kernels do not,
          as with a deterministic predictor and repeated layers.
        * ``"classes"``, ``"devices"``: kernels of one class (on one device) share their error.
        * ``"estimated"``: shares estimated from measured runs (variance components).
        * ``"comonotonic"``: one common cause; all errors go the same way, nothing cancels.
        * ``"matrix"``: a given matrix.
        * ``"unknown"``: no assumption; only bounds.
    share : float, optional
        For repeats, classes and devices only: the intraclass correlation, in [0, 1]; by default 1.
    matrix : ndarray, shape (n, n), optional
        For "matrix": the correlation of the rows' errors, positive semi-definite.
    df : float
        Degrees of freedom of a multivariate t instead of the normal, > 2. Not for "estimated",
        which has its own tails.

    Raises
    ------
    InputError
        The name is unknown, the share is outside [0, 1] or the assumption has none, the degrees of
        freedom do not exceed 2 or the assumption has its own, or the matrix is not a correlation
        matrix.

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
        raise InputError(f"df must exceed 2 (otherwise there is no variance), got {df!r}")
    if name == "estimated" and not math.isinf(df):
        raise InputError(
            'the assumption "estimated" estimates the tails itself, so it takes no df; got '
            f"df={df!r}. Leave df out."
        )
    if (matrix is None) == (name == "matrix"):
        raise InputError(
            'assumption "matrix" needs a matrix'
            if matrix is None
            else f'a matrix was given with assumption {name!r}. Use assumption "matrix".'
        )
    if matrix is not None:
        from errcomp.propagation.psd import check_correlation

        return Correlation(name, {}, check_correlation(matrix), df)
    return Correlation(name, shares, None, df)


def correlations(wanted: str | Correlation | Sequence[str | Correlation]) -> list[Correlation]:
    """Return the named assumptions.

    Raises
    ------
    InputError
        No assumption, an unknown one, or one given twice.
    """
    if isinstance(wanted, str | Correlation):
        wanted = (wanted,)
    known = [item if isinstance(item, Correlation) else correlation(item) for item in wanted]
    names = [assumption.name for assumption in known]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"assumption {name!r} is given twice. Give it once.")
    if not known:
        raise InputError("no assumption about the correlation is given. Give at least one.")
    return known


def _shares(name: str, share: float | None) -> dict[str, float]:
    """Return the share at the level of an assumption."""
    if name not in _LEVEL:
        if share is not None:
            raise InputError(
                f"assumption {name!r} takes no correlation, got {share!r}. Assumptions with "
                f"a correlation: {', '.join(_LEVEL)}."
            )
        return {}
    share = 1.0 if share is None else share
    if not is_number(share) or not 0 <= share <= 1:
        raise InputError(
            f"the correlation within {name} must be between 0 and 1, got {share!r}. "
            "Negative correlations can be given as a matrix."
        )
    return {_LEVEL[name]: float(share)}
