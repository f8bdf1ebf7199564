"""All factors at once: a mixed regression, or least squares if that has no solution."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from errcomp.drivers.inference import MIN_CLUSTERS, corrected, effect_estimate
from errcomp.drivers.matching import (
    NUMERIC_FACTORS,
    Table,
    determines,
    is_complete,
    level_text,
    other_levels,
    reference_level,
)
from errcomp.drivers.results import Aliased, Regression, RegressionTerm
from errcomp.errors import InputError, MissingExtraError
from errcomp.results import Caveat
from errcomp.stats.significance import student_ppf, student_sf

Floats = NDArray[np.float64]


_SMALLEST, _LARGEST = 1e-4, 1e6
_PER_DECADE = 6
#: Differences of twice the log-likelihood below this are rounding.
_ROUNDING = 1e-6


def variance_ratio(y: Floats, x: Floats, groups: NDArray[np.int64]) -> float | None:
    r"""Estimate the variance between groups in multiples of the variance within them.

    .. math:: \hat\theta = \arg\min_\theta \; (n - k) \ln \mathrm{RSS}(\theta)
              + \ln |V_\theta| + \ln |X^\top V_\theta^{-1} X|, \quad
              V_\theta = I + \theta Z Z^\top

    Definition: the restricted maximum likelihood estimate of :math:`\theta = \tau^2 / \sigma^2` in
    :math:`y_{gi} = x_{gi}^\top \beta + u_g + \varepsilon_{gi}`, where Z has a column of indicators
    for each group. The likelihood is searched over all ratios from 1e-4 to 1e6. So the answer
    depends neither on a starting value nor on the rounding of the machine, unlike a gradient search
    if the likelihood is highest at zero.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Outcome.
    x : ndarray, shape (n, k)
        Linearly independent columns, the constant among them.
    groups : ndarray of int, shape (n,)
        Codes of the groups, from 0.

    Returns
    -------
    float or None
        0 below 1e-4, infinity above 1e6 or if x explains y exactly; None if the likelihood is the
        same for all ratios (no group has two rows, or the columns of x separate all rows).

    References
    ----------
    Patterson and Thompson (1971), "Recovery of inter-block information when block sizes are
    unequal", Biometrika 58, 545-554.

    Examples
    --------
    >>> y = np.array([1.0, 1.2, 2.0, 2.2, 3.0, 3.2])
    >>> round(variance_ratio(y, np.ones((6, 1)), np.array([0, 0, 1, 1, 2, 2])), 3)
    49.5
    """
    from scipy import optimize

    basis, upper = np.linalg.qr(np.column_stack([x, y]))
    if abs(upper[-1, -1]) <= 1e-10 * float(np.linalg.norm(y)):
        return math.inf
    sums = np.zeros((int(groups.max()) + 1, basis.shape[1]))
    np.add.at(sums, groups, basis)
    sizes = np.bincount(groups)
    df = len(y) - x.shape[1]
    grid = np.linspace(
        math.log(_SMALLEST),
        math.log(_LARGEST),
        1 + _PER_DECADE * round(math.log10(_LARGEST / _SMALLEST)),
    )
    deviances = np.array([_deviance(at, sums, sizes, df) for at in grid])
    best = int(deviances.argmin())
    if np.abs(deviances).max() < _ROUNDING:
        return None
    if best == 0 or deviances[best] > -_ROUNDING:
        return 0.0
    if best == len(grid) - 1:
        return math.inf
    # The root of the slope has more digits than the place of the minimum.
    around = (grid[best - 1], grid[best + 1])
    return math.exp(optimize.brentq(_slope, *around, args=(sums, sizes, df), xtol=1e-13))


def _deviance(log_ratio: float, sums: Floats, sizes: NDArray[np.int64], df: int) -> float:
    """Compute minus twice the restricted log-likelihood, minus its value at ratio 0.

    ``sums`` are those over each group of an orthonormal basis of the columns of x and, last, y.
    """
    ratio = math.exp(log_ratio)
    logs = 2 * np.log(np.diag(np.linalg.cholesky(_products(ratio, sums, sizes))))
    return float(df * logs[-1] + logs[:-1].sum() + np.log1p(sizes * ratio).sum())


def _slope(log_ratio: float, sums: Floats, sizes: NDArray[np.int64], df: int) -> float:
    """Compute the derivative of ``_deviance`` by the logarithm of the ratio."""
    ratio = math.exp(log_ratio)
    products = _products(ratio, sums, sizes)
    change = -(sums.T / (1 + sizes * ratio) ** 2) @ sums
    # The residual sum of squares is the ratio of the determinants with and without y.
    both = np.trace(np.linalg.solve(products, change))
    without = np.trace(np.linalg.solve(products[:-1, :-1], change[:-1, :-1]))
    groups = (sizes / (1 + sizes * ratio)).sum()
    return float(ratio * (df * both - (df - 1) * without + groups))


def _products(ratio: float, sums: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Multiply the basis with itself, weighted by the inverse of the covariance."""
    products: Floats = np.eye(sums.shape[1]) - (sums.T * (ratio / (1 + sizes * ratio))) @ sums
    return products


def clustered_least_squares(
    y: Floats, x: Floats, groups: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    r"""Fit least squares, with standard errors that allow for dependence within groups.

    .. math:: \mathrm{se}_j^2 = \frac{G}{G - 1} \frac{n - 1}{n - k}
              \sum_g \Bigl(\sum_{i \in g} (X^+)_{ji} e_i\Bigr)^2

    Definition: the sandwich estimator for clusters with the usual correction for few clusters,
    written with the influence of each group on a coefficient. So nothing cancels: without scatter
    the error is zero, not the root of a difference of large products.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Outcome.
    x : ndarray, shape (n, k)
        Linearly independent columns, fewer than rows.
    groups : ndarray of int, shape (n,)
        Codes of the groups, from 0, at least two of them.

    Returns
    -------
    coefficients, errors : ndarray, shape (k,)
        Estimates and their standard errors.

    References
    ----------
    Liang and Zeger (1986), "Longitudinal data analysis using generalized linear models",
    Biometrika 73, 13-22.

    Examples
    --------
    >>> y = np.array([1.0, 3.0, 2.0, 6.0])
    >>> mean, error = clustered_least_squares(y, np.ones((4, 1)), np.array([0, 0, 1, 1]))
    >>> mean.round(3), error.round(3)
    (array([3.]), array([1.]))
    """
    basis, upper = np.linalg.qr(x)
    inverse = np.linalg.solve(upper, basis.T)
    coefficients = inverse @ y
    moves = np.zeros((int(groups.max()) + 1, x.shape[1]))
    np.add.at(moves, groups, (inverse * (y - x @ coefficients)).T)
    clusters, (n, k) = len(moves), x.shape
    correction = clusters / (clusters - 1) * (n - 1) / (n - k)
    return coefficients, np.sqrt(correction * (moves**2).sum(axis=0))


#: Below this, cluster-robust and mixed-model intervals are known to be too narrow.
FEW_CLUSTERS = 30
_ROWS_PER_COLUMN = 5
_MAX_MIXED_ROWS = 5000
Outcome = Literal["absolute", "signed"]
_DEFINITIONS = {
    "absolute": "APE at this level divided by APE at the reference level, with all other terms "
    "fixed",
    "signed": "ln(predicted / measured) at this level minus ln(predicted / measured) at the "
    "reference level, with all other terms fixed",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """One column of the design matrix; ``factor`` is empty if it is only adjusted for."""

    name: str
    values: NDArray[np.float64]
    factor: str = ""
    level: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    method: str
    coefficients: NDArray[np.float64]
    errors: NDArray[np.float64]
    caveats: tuple[Caveat, ...] = ()


def regress(table: Table, *, level: float) -> tuple[Regression, ...]:
    r"""Explain the absolute and the signed error by all factors at once.

    .. math:: y_{gi} = \beta_0 + x_{gi}^\top \beta + u_g + \varepsilon_{gi}, \quad
              u_g \sim N(0, \tau^2)

    Definition: y is ln APE (effects are reported as ratios :math:`e^\beta`) or
    ln(predicted / measured). Labels are compared with their reference level. Positive numbers are
    log2, so an effect is that of doubling. Devices have random intercepts; devices with the same
    predictions count as one. The model (network) is adjusted for by fixed effects. The fit is by
    restricted maximum likelihood.

    Ordinary least squares with standard errors clustered by device replaces the mixed model, with a
    caveat, if the variance between or within devices is zero, the two are not distinguishable, the
    fit fails, or the table has more than 5,000 rows. Intervals use t; its degrees of freedom are
    the number of devices minus one, minus the terms that do not vary within any device. That is
    conservative for the other terms.

    Valid if effects add up on the log scale. Misleads if levels never occur under otherwise equal
    conditions: it then extrapolates, which the matched contrasts do not. Terms that cannot be
    distinguished from earlier ones are left out and named in ``aliased``.

    Parameters
    ----------
    table : Table
        One tool's pairs with outcomes and factors.
    level : float
        Nominal coverage of the intervals.

    Returns
    -------
    tuple of Regression
        For the absolute and the signed error.

    Raises
    ------
    MissingExtraError
        statsmodels is not installed.
    InputError
        Too few rows for the number of terms.

    References
    ----------
    Laird and Ware (1982), "Random-effects models for longitudinal data", Biometrics 38, 963-974;
    Cameron and Miller (2015), "A practitioner's guide to cluster-robust inference", Journal of
    Human Resources 50, 317-372.
    """
    _require_statsmodels()
    groups, key = _groups(table)
    columns, adjusted, notes = _columns(table, adjust=key != "model")
    independent, aliased = _independent(columns)
    x = np.column_stack([column.values for column in independent])
    n, k = x.shape
    if n <= k + 1:
        raise InputError(
            f"a regression needs at least two more rows than terms, got {n} rows for {k} terms. "
            "Name fewer factors."
        )
    clusters = len(np.unique(groups)) if key else n
    df = _degrees_of_freedom(x, groups) if key else n - k
    if key and clusters < FEW_CLUSTERS:
        notes += (_few_clusters(clusters, key, df),)
    regressions = []
    questions: tuple[tuple[Outcome, NDArray[np.float64]], ...] = (
        ("absolute", table.outcomes.log_ape),
        ("signed", table.outcomes.signed),
    )
    for outcome, y in questions:
        fit = _fit(y, x, groups if key else None, key)
        terms = _terms(independent, fit, groups if key else None, outcome, df=df, level=level)
        regressions.append(
            Regression(
                outcome,
                method=fit.method,
                n=n,
                clusters=clusters,
                df=df,
                cluster_key=key or "row",
                adjusted_for=adjusted,
                terms=terms,
                aliased=aliased,
                caveats=(*notes, *fit.caveats),
            )
        )
    return _correct(regressions)


def _require_statsmodels() -> None:
    try:
        import statsmodels.api  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("statsmodels", "drivers", "the regression on factors") from error


def _columns(
    table: Table, *, adjust: bool
) -> tuple[list[_Column], tuple[str, ...], tuple[Caveat, ...]]:
    """Return the intercept, the model (adjusted for), then the factors in order."""
    pairs = table.pairs
    columns = [_Column("constant", np.ones(pairs.n))]
    adjusted: tuple[str, ...] = ()
    notes: tuple[Caveat, ...] = ()
    factors = [c for factor in table.factors for c in _factor_columns(table, factor)]
    adjust = adjust and "model" in pairs.keys and "model" not in table.factors
    if adjust and is_complete(pairs, "model"):
        models = [replace(c, factor="") for c in _dummies(table, "model")]
        room = pairs.n // _ROWS_PER_COLUMN - 1 - len(factors)
        if models and len(models) <= room:
            columns, adjusted = columns + models, ("model",)
        elif models:
            notes = (
                Caveat(
                    "model-not-adjusted",
                    f"{pairs.n} rows are too few to adjust for {len(models) + 1} models: an effect "
                    "may only reflect that different models ran with different factor values.",
                    {"rows": pairs.n, "models": len(models) + 1},
                ),
            )
    return columns + factors, adjusted, notes


def _factor_columns(table: Table, factor: str) -> list[_Column]:
    values = table.pairs.column(factor)
    if values.dtype.kind in "iuf" and (factor in NUMERIC_FACTORS or len(np.unique(values)) > 2):
        numbers = values.astype(float)
        if (numbers > 0).all():
            return [_Column(f"log2({factor})", np.log2(numbers), factor, "per doubling")]
        return [_Column(factor, numbers, factor, "per unit")]
    return _dummies(table, factor)


def _dummies(table: Table, factor: str) -> list[_Column]:
    values = table.pairs.column(factor).tolist()
    reference = reference_level(table.pairs, factor)
    return [
        _Column(
            f"{factor}[{level_text(other)}]",
            np.array([float(v == other) for v in values]),
            factor,
            level_text(other),
            level_text(reference),
        )
        for other in other_levels(table.pairs, factor, reference)
    ]


def _independent(columns: Sequence[_Column]) -> tuple[list[_Column], tuple[Aliased, ...]]:
    """Keep each column that earlier kept columns cannot express; name the others."""
    independent: list[_Column] = []
    aliased = []
    basis = np.empty((len(columns[0].values), 0))
    for column in columns:
        left = column.values - basis @ (basis.T @ column.values)
        left -= basis @ (basis.T @ left)
        size = float(np.linalg.norm(left))
        if size > 1e-8 * max(1.0, float(np.linalg.norm(column.values))):
            independent.append(column)
            basis = np.column_stack([basis, left / size])
            continue
        x = np.column_stack([c.values for c in independent])
        weights = np.linalg.lstsq(x, column.values, rcond=None)[0]
        names = [c.name for c, w in zip(independent, weights, strict=True) if abs(w) > 1e-6]
        aliased.append(Aliased(column.name, tuple(n for n in names if n != "constant")))
    return independent, tuple(aliased)


def _groups(table: Table) -> tuple[NDArray[np.int64], str]:
    """Codes of the independent units, and their key; empty if nothing repeats."""
    for unit in ("device", "model"):
        usable = unit in table.pairs.keys and is_complete(table.pairs, unit)
        if not usable or unit in table.factors:
            continue
        _, codes = np.unique(np.array(table.unit_labels(unit)), return_inverse=True)
        if codes.max() > 0:
            return codes.astype(np.int64), unit
    return np.zeros(table.pairs.n, dtype=np.int64), ""


def _degrees_of_freedom(x: NDArray[np.float64], groups: NDArray[np.int64]) -> int:
    between = sum(determines(groups.tolist(), column.tolist()) for column in x.T[1:])
    return max(1, len(np.unique(groups)) - 1 - between)


def _few_clusters(clusters: int, key: str, df: int) -> Caveat:
    degrees = f"{df} degree{'' if df == 1 else 's'} of freedom"
    return Caveat(
        "few-clusters",
        f"Only {clusters} independent {key}s: regression intervals tend to be too narrow with "
        f"fewer than {FEW_CLUSTERS} clusters. The intervals use a t distribution with {degrees}; "
        "rely first on the effects from matched configurations.",
        {"clusters": clusters, "cluster_key": key, "df": df},
    )


def _fit(
    y: NDArray[np.float64], x: NDArray[np.float64], groups: NDArray[np.int64] | None, key: str
) -> _Fit:
    """Fit the mixed model, or fall back to least squares and say why."""
    import statsmodels.api as sm

    # statsmodels reports difficulties as warnings; here each becomes a caveat.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if groups is None:
            result = sm.OLS(y, x).fit(cov_type="HC3")
            return _Fit("least squares, HC3", np.asarray(result.params), np.asarray(result.bse))
        fit, why = _fit_mixed(y, x, groups, key)
        if fit is not None:
            return fit
    coefficients, errors = clustered_least_squares(y, x, groups)
    note = Caveat(
        "mixed-model-fallback",
        f"Least squares with standard errors clustered by {key}: {why}.",
        {"reason": why},
    )
    return _Fit("least squares, cluster-robust", coefficients, errors, (note,))


def _fit_mixed(
    y: NDArray[np.float64], x: NDArray[np.float64], groups: NDArray[np.int64], key: str
) -> tuple[_Fit | None, str]:
    """Return the mixed model, or None and the reason."""
    import statsmodels.api as sm

    if len(y) > _MAX_MIXED_ROWS:
        return None, f"the mixed model takes minutes above {_MAX_MIXED_ROWS} rows"
    failed = "the mixed model did not converge"
    try:
        ratio = variance_ratio(y, x, groups)
        if ratio is None:
            return None, f"the variances between and within {key}s are not distinguishable"
        if ratio == 0:
            return None, f"the variance between {key}s is zero after accounting for the factors"
        if math.isinf(ratio):
            return None, f"the variance within {key}s is zero after accounting for the factors"
        # From its default starting value, the last bit of a sum decides whether the search fails.
        start = np.array([math.sqrt(ratio)])
        mixed = sm.MixedLM(y, x, groups=groups).fit(start_params=start, reml=True)
        coefficients = np.asarray(mixed.fe_params, dtype=np.float64)
        errors = np.asarray(mixed.bse_fe, dtype=np.float64)
    except (np.linalg.LinAlgError, ValueError):
        return None, failed
    if not (mixed.converged and np.isfinite(errors).all() and (errors > 0).all()):
        return None, failed
    return _Fit("mixed model", coefficients, errors), ""


def _terms(
    columns: Sequence[_Column],
    fit: _Fit,
    groups: NDArray[np.int64] | None,
    outcome: Outcome,
    *,
    df: int,
    level: float,
) -> tuple[RegressionTerm, ...]:
    quantile = student_ppf(0.5 + level / 2, df)
    n = len(columns[0].values)
    terms = []
    for column, b, se in zip(columns, fit.coefficients, fit.errors, strict=True):
        if not column.factor:
            continue
        value, half, p, method = float(b), None, None, f"{fit.method}, t df={df}"
        holders = _holders(column, groups)
        if holders < MIN_CLUSTERS:
            method = f"none: one side of the comparison occurs in only {holders} clusters"
        elif not (math.isfinite(se) and se > 1e-10 * max(1.0, abs(value))):
            method = "none: no spread"
        else:
            half, p = quantile * float(se), 2 * float(student_sf(abs(value) / float(se), df))
        effect = effect_estimate(
            "ape_ratio" if outcome == "absolute" else "signed_log",
            (value, None, None) if half is None else (value, value - half, value + half),
            level=level,
            method=method,
            n=n,
            definition=_DEFINITIONS[outcome],
        )
        terms.append(
            RegressionTerm(column.name, column.factor, column.level, column.reference, effect, p)
        )
    return tuple(terms)


def _holders(column: _Column, groups: NDArray[np.int64] | None) -> int:
    """Count the clusters (or rows) on the rarer side of a label; all of them for a number.

    A level of few clusters gets a standard error that is far too small: the fit passes through
    those clusters, which then show no scatter.
    """
    units = np.arange(len(column.values)) if groups is None else groups
    if not column.reference:
        return len(np.unique(units))
    return min(len(np.unique(units[column.values == side])) for side in (0.0, 1.0))


def _correct(regressions: Sequence[Regression]) -> tuple[Regression, ...]:
    """Correct the p-values of all terms of both regressions as one family."""
    adjusted = iter(corrected([t.p_value for r in regressions for t in r.terms]))

    def filled(term: RegressionTerm) -> RegressionTerm:
        by_holm, by_bh = next(adjusted)
        return replace(term, p_holm=by_holm, p_bh=by_bh)

    return tuple(replace(r, terms=tuple(map(filled, r.terms))) for r in regressions)
