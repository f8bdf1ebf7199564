r"""Boosted trees of the log-ratio: location, spread of each run, effects of devices.

Needs xgboost and scikit-learn to fit;
`errcomp.calibration.estimators.boosted.trees.TreeModel` predicts without them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from errcomp.calibration.design import Predicting, as_names, check_least, position, validated
from errcomp.calibration.estimators.boosted.trees import (
    Forest,
    TreeModel,
    check_in_32_bits,
    offset_of,
)
from errcomp.calibration.estimators.shared.spread import (
    Integers,
    LeftOut,
    Spread,
    Spreads,
    fit_spread,
    left_out,
    shrunken_effects,
)
from errcomp.errors import InputError, MissingExtraError
from errcomp.system.processes import map_jobs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from errcomp.calibration.design import Floats, Names

__all__ = ["BoostedResidual"]

try:
    from sklearn.base import BaseEstimator, RegressorMixin  # type: ignore[import-untyped]
    from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingExtraError("scikit-learn", "boost", "the boosted model") from error


#: Shrinkage of device effects to 0, as a number of runs; infinite: no effects.
_SHRINKAGE = (np.inf, 50.0, 20.0, 10.0, 5.0, 2.0)
#: With fewer devices the trees ignore columns that only identify the device.
_DEVICES_TO_LEARN_FROM = 20
#: Residuals count as at least this share of their median, so that the logarithm is finite.
_SMALLEST_RESIDUAL = 0.1
#: Shares of the boosted log-sizes to try. Sizes that fail on held-out groups would make the bands
#: of seemingly precise runs too narrow, and all others too wide.
_TRUST = (1.0, 0.5, 0.0)


class BoostedResidual(Predicting, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Boosted trees around an offset, with a spread that is boosted too.

    .. math:: y_r = o_r + f(x_r) + a_{d(r)} + e^{g(x_r)} \, \varepsilon_r, \qquad
              \varepsilon_r \sim t_\nu(0, s)

    * o, the offset, is a column of the features that is added unchanged: the physical model.
    * f: trees for the absolute error, and so for the median. The number of rounds is that with the
      smallest error on held-out models and devices (both if both are given); then all runs are
      fitted with it. It may be 0: then features do not help.
    * a: the median residual of each device over runs whose model was held out, shrunken to 0 as
      far as that lowers the error.
    * g: trees for the logarithm of the size of held-out residuals.
    * ε: a Student t of held-out residuals divided by their boosted size, one for known devices
      (models held out) and one for new devices (devices held out).

    Quantiles are location + size · quantile of t, so they cannot cross.

    Parameters
    ----------
    offset : int or str, optional
        Column (by name if X has names) with coefficient 1. None by default; the trees then start
        at the median.
    monotone : mapping of int or str to -1 or 1, optional
        Columns in which f may only fall (-1) or rise (1).
    max_rounds : int
        Largest number of rounds to try.
    max_depth : int
    learning_rate : float
        In (0, 1].
    min_child_weight : float
        Fewest runs in a leaf.
    subsample : float
        Share of the runs in each round, in (0, 1].
    seed : int
    n_jobs : int, optional
        Number of processes for the fits without each group; see `errcomp.summarize`.

    Attributes
    ----------
    portable_ : TreeModel
        Predicts, and can be stored.
    rounds_ : dict of str to int
        Trees of ``location`` and ``log_scale``.
    trust_ : float
        Share of g that did best on held-out groups: 1, 0.5 or 0 (equal spread in all runs).
    shrinkage_ : float
        Shrinkage of device effects, as a number of runs; infinite where effects did not help.
    attributions_ : ndarray, shape (p,)
        Mean absolute attribution of each feature over the runs of the fit (TreeSHAP, exact).
    boosters_ : dict of str to bytes
        The trees in xgboost's format (UBJSON).

    Notes
    -----
    Devices. A column with one value per device (a figure of its data sheet, a one-hot code)
    identifies the device: trees learn eight devices by heart. Such columns are left out with fewer
    than 20 devices. On 87 runs of 8 devices with 2 such columns the mean error of held-out devices
    was 6.3 % with them and 5.2 % without. Shrunken device effects lowered the error of held-out
    models from 4.9 to 4.2 %; as a feature (shrunken target encoding) they were no better.

    Spread. Trees for 23 quantiles at once (sorted, so that they do not cross) had a CRPS on new
    models that was 3 to 8 % higher with 87 simulated runs, 2 to 3 % higher with 400, 13 % higher on
    87 real runs, and 2 % lower on real held-out devices. Without g the score is 1 % better where
    all runs have equal spread and 1 to 2 % worse where not, and no run is more precise than
    another.

    Valid within the range of features in the fit: trees are flat beyond it. With few runs most of
    the model has to be in the offset. An offset that was itself learnt from these runs (in a
    composition one number, the cost of starting a run) makes residuals of held-out groups a little
    too small; bands calibrated around the whole fit are not affected.

    References
    ----------
    Chen and Guestrin (2016), "XGBoost: A Scalable Tree Boosting System", KDD,
    doi:10.1145/2939672.2939785. Lundberg et al. (2020), "From local explanations to global
    understanding with explainable AI for trees", Nature Machine Intelligence 2,
    doi:10.1038/s42256-019-0138-9.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(80, 2))
    >>> y = x[:, 0] + 0.2 * (x[:, 1] > 0.5) + rng.normal(size=80) * 0.01
    >>> model = BoostedResidual(offset=0, monotone={1: 1}).fit(x, y)
    >>> model.predict([[0.3, 0.2], [0.3, 0.9]]).round(1).tolist()
    [0.3, 0.5]
    """

    portable_: TreeModel

    def __init__(
        self,
        *,
        offset: int | str | None = None,
        monotone: Mapping[int | str, int] | None = None,
        max_rounds: int = 120,
        max_depth: int = 2,
        learning_rate: float = 0.05,
        min_child_weight: float = 3.0,
        subsample: float = 0.7,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.offset = offset
        self.monotone = monotone
        self.max_rounds = max_rounds
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.seed = seed
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        *,
        device: ArrayLike | None = None,
        model: ArrayLike | None = None,
    ) -> Self:
        """Fit the log-ratios.

        Parameters
        ----------
        X : array_like, shape (n, p)
            May be NaN, except in the offset.
        y : array_like, shape (n,)
            Log of the measured run to the sum of its kernels.
        device, model : array_like of str, shape (n,), optional
            Groups held out to choose the rounds and to learn the spread. Without them random runs
            are held out, which makes bands too narrow for new models and devices.

        Returns
        -------
        self

        Raises
        ------
        InputError
            Values are not finite numbers, shapes differ, there are fewer than two runs, a column
            does not exist, or a parameter has an impossible value.
        MissingExtraError
            xgboost is not installed.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(size=(40, 1))
        >>> model = BoostedResidual(offset=0, max_rounds=5).fit(x, x[:, 0])
        >>> model.predict([[0.3]]).round(2).tolist()
        [0.3]
        """
        x, target = self._checked(X, y)
        devices, models = as_names(device, len(x), "device"), as_names(model, len(x), "model")
        offset = None if self.offset is None else self._column(self.offset, "offset")
        start = offset_of(x, offset)
        splits = left_out(devices, models, self.seed)
        columns = [c for c in _learnable(x, devices) if c != offset]
        booster = Booster(self._parameters(columns), self.max_rounds, self.seed, self.n_jobs)
        seen = x[:, columns]
        location = booster.fit(seen, target - start, splits, centered=offset is None)
        residuals = {name: target - start - p for name, p in location.held_out.items()}
        self.shrinkage_, own = _effects(residuals["known"], devices, splits["known"])
        effects = shrunken_effects(residuals["known"], devices, self.shrinkage_)
        residuals["known"] = residuals["known"] - own
        sizes = _log_sizes(residuals)
        booster.parameters.pop("monotone_constraints", None)
        scale = booster.fit(seen, sizes, splits, centered=True)
        self.trust_, spreads = _spreads(residuals, scale, splits)
        scale = scale.shrunken(self.trust_)
        self.portable_ = TreeModel(
            location=location.forest(columns),
            log_scale=scale.forest(columns),
            offset=offset,
            features=x.shape[1],
            spreads=Spreads(effects, **spreads),
        )
        self.rounds_ = {"location": location.rounds, "log_scale": scale.rounds}
        self.boosters_ = {"location": location.raw("ubj"), "log_scale": scale.raw("ubj")}
        self._explained = Explained(location, columns, offset, float(start.mean()))
        self.attributions_ = np.abs(self._explained.attributions(x)[:, :-1]).mean(axis=0)
        return self

    def attributions(self, X: ArrayLike) -> Floats:  # noqa: N803
        r"""Return the contribution of each feature to the median of each run (exact TreeSHAP).

        .. math:: \hat y_r - a_{d(r)} = \phi_0 + \sum_j \phi_{rj}

        An attribution shows how the trees use a feature, not what the feature causes. Correlated
        features share their effect.

        Parameters
        ----------
        X : array_like, shape (n, p)

        Returns
        -------
        ndarray, shape (n, p + 1)
            φ of each feature; the last column is φ₀, the mean over the runs of the fit. Rows add
            up to the prediction without the effect of the device.

        Raises
        ------
        InputError
            The features are not those of the fit.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(size=(40, 1))
        >>> model = BoostedResidual(offset=0, max_rounds=5).fit(x, x[:, 0])
        >>> model.attributions([[0.3]]).sum(axis=1).round(2).tolist()  # the prediction
        [0.3]
        """
        return self._explained.attributions(self._features(X))

    def _features(self, X: ArrayLike) -> Any:  # noqa: N803
        check_is_fitted(self)
        x = validated(self, X, reset=False)
        check_in_32_bits(x)
        return x

    def _checked(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:  # noqa: N803
        for name in ("max_rounds", "max_depth"):
            check_least(name, getattr(self, name), 1)
        for name in ("learning_rate", "subsample"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise InputError(f"{name} must be above 0 and at most 1, got {value!r}.")
        for name in ("min_child_weight", "seed"):
            value = getattr(self, name)
            if not value >= 0:
                raise InputError(f"{name} must not be negative, got {value!r}.")
        x, target = validated(self, X, y, reset=True, y_numeric=True, ensure_min_samples=2)
        check_in_32_bits(x)
        return x, target.astype(np.float64)

    def _column(self, column: int | str, word: str) -> int:
        """Return the position of a column."""
        names = getattr(self, "feature_names_in_", None)
        return position(column, word, self.n_features_in_, names)

    def _parameters(self, columns: Sequence[int]) -> dict[str, Any]:
        """Return xgboost's parameters for trees over these columns."""
        signs = {self._column(c, "monotone"): sign for c, sign in (self.monotone or {}).items()}
        wrong = {column: sign for column, sign in signs.items() if sign not in (-1, 1)}
        if wrong:
            raise InputError(
                f"monotone must be -1 (falling) or 1 (rising), got {wrong}. Leave out columns "
                "without a direction."
            )
        return {
            "max_depth": self.max_depth,
            "learning_rate": self.learning_rate,
            "min_child_weight": self.min_child_weight,
            "subsample": self.subsample,
            "monotone_constraints": tuple(signs.get(c, 0) for c in columns),
        }


def _learnable(x: Floats, device: Names) -> list[int]:
    """Return the columns that do more than identify the device."""
    names, group = np.unique(device.astype(str), return_inverse=True)
    everything = list(range(x.shape[1]))
    if not 1 < len(names) < _DEVICES_TO_LEARN_FROM or len(x) < 2 * len(names):
        return everything
    first = np.unique(group, return_index=True)[1][group]
    same = (x == x[first]) | (np.isnan(x) & np.isnan(x[first]))
    return [column for column in everything if not same[:, column].all()]


def _effects(residuals: Floats, device: Names, split: LeftOut) -> tuple[float, Floats]:
    """Return the shrinkage with the smallest error on held-out rows, and its effects there."""
    predictions = []
    for rows in _SHRINKAGE:

        def fit(train: Integers, rows: float = rows) -> Any:
            effects = shrunken_effects(residuals[train], device[train], rows)
            return lambda out: np.array([effects.get(name, 0.0) for name in device[out]])

        predictions.append(split.predict(fit))
    best = int(np.argmin([np.abs(residuals - own).sum() for own in predictions]))
    return _SHRINKAGE[best], predictions[best]


def _spreads(
    residuals: Mapping[str, Floats], scale: Boosted, splits: Mapping[str, LeftOut]
) -> tuple[float, dict[str, Spread]]:
    """Return the share of the trees' sizes to trust on held-out runs, and the scaled residuals."""
    candidates = []
    for trust in _TRUST:
        sizes = {name: trust * scale.held_out[name] for name in splits}
        fits = {
            name: fit_spread(residuals[name] / np.exp(sizes[name]), out.group)
            for name, out in splits.items()
        }
        likely = sum(
            fit.log_density(residuals[name] / np.exp(sizes[name])).sum() - sizes[name].sum()
            for name, fit in fits.items()
        )
        candidates.append((float(likely), trust, fits))
    _, trust, fits = max(candidates, key=lambda candidate: candidate[0])
    return trust, fits


def _log_sizes(residuals: Mapping[str, Floats]) -> Floats:
    """Return the logarithm of the distance of each run from its prediction."""
    size = np.mean([np.abs(residual) for residual in residuals.values()], axis=0)
    typical = float(np.median(size)) or float(size.max()) or 1.0
    log_size: Floats = np.log(size + _SMALLEST_RESIDUAL * typical)
    return log_size


# Trees for the absolute error, with the best number of rounds on held-out rows.

#: One thread, because sums of floats depend on the number. Columns by node: few features, few
#: rounds.
_FIXED = {
    "objective": "reg:absoluteerror",
    "eval_metric": "mae",
    "tree_method": "hist",
    "colsample_bynode": 0.7,
    "nthread": 1,
    "verbosity": 0,
}


@dataclass(slots=True, eq=False)
class Booster:
    """Boosts trees for the absolute error, with the best number of rounds on held-out rows."""

    parameters: dict[str, Any]
    most: int
    seed: int
    n_jobs: int | None

    def fit(
        self, x: Floats, y: Floats, splits: Mapping[str, LeftOut], *, centered: bool
    ) -> Boosted:
        """Fit y, starting at the median if `centered`, else at 0."""
        xgboost = import_xgboost()
        unit = float(1.4826 * np.median(np.abs(y - np.median(y)))) or float(np.std(y)) or 1.0
        rows = np.arange(len(y))
        # Splits may be identical: fit them once.
        folds = {id(split): list(split) for split in splits.values()}
        keys = [(key, out[0]) for key, parts in folds.items() for _, out in parts]
        fold = partial(self._fold, x, y, unit, centered)
        trained = map_jobs(fold, (f for parts in folds.values() for f in parts), n_jobs=self.n_jobs)
        lost, fits = np.zeros(self.most + 1), {}
        for key, (begin, fitted, errors) in zip(keys, trained, strict=True):
            lost += errors
            fits[key] = (begin, fitted)
        rounds = int(np.argmin(lost))
        held_out = {}
        for name, split in splits.items():
            predicted = np.empty(len(y))
            for _, out in folds[id(split)]:
                begin, fitted = fits[id(split), out[0]]
                predicted[out] = begin + unit * _sum_of_trees(xgboost, fitted, x[out], rounds)
            held_out[name] = predicted
        begin = float(np.median(y)) if centered else 0.0
        last = self._train(x, (y - begin) / unit, rows, rounds)[0] if rounds else None
        return Boosted(last, rounds, begin, unit, held_out)

    def _fold(
        self, x: Floats, y: Floats, unit: float, centered: bool, rows: tuple[Integers, Integers]
    ) -> tuple[float, Any, Floats]:
        """Return start and booster of the rows of a fit, and the errors on the others by round."""
        train, out = rows
        begin = float(np.median(y[train])) if centered else 0.0
        errors = np.full(self.most + 1, np.abs(y[out] - begin).sum() / unit)
        if not x.shape[1] or not np.ptp(y):
            return begin, None, errors
        fitted, curve = self._train(x, (y - begin) / unit, train, self.most, out)
        errors[1:] = curve * len(out)
        return begin, fitted, errors

    def _train(
        self, x: Floats, z: Floats, rows: Integers, rounds: int, out: Integers | None = None
    ) -> tuple[Any, Floats]:
        """Return the booster and its mean absolute error on the held-out rows, by round."""
        xgboost = import_xgboost()
        parts = [rows] if out is None else [rows, out]
        data = [xgboost.DMatrix(x[p], z[p], base_margin=np.zeros(len(p))) for p in parts]
        seen: dict[str, dict[str, list[float]]] = {}
        booster = xgboost.train(
            _FIXED | {"seed": self.seed} | self.parameters,
            data[0],
            rounds,
            evals=[(part, "out") for part in data[1:]],
            evals_result=seen,
            verbose_eval=False,
        )
        return booster, np.array(seen["out"]["mae"] if seen else [])


@dataclass(frozen=True, slots=True, eq=False)
class Boosted:
    """Trees of all rows, and predictions of each row by trees without its group."""

    booster: Any
    rounds: int
    begin: float
    unit: float
    held_out: dict[str, Floats]

    def shrunken(self, share: float) -> Boosted:
        """Return the same trees with this share of their values."""
        held_out = {name: share * values for name, values in self.held_out.items()}
        return replace(
            self,
            booster=self.booster if share else None,
            begin=share * self.begin,
            unit=share * self.unit,
            held_out=held_out,
        )

    def forest(self, columns: Sequence[int]) -> Forest:
        if self.booster is None:
            return Forest.flat(self.begin)
        raw = self.raw("json")
        return Forest.from_booster(raw, columns=columns, base=self.begin, unit=self.unit)

    def raw(self, kind: str) -> bytes:
        return b"" if self.booster is None else bytes(self.booster.save_raw(kind))


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """Attributions of the median: the trees by TreeSHAP, the offset against its mean."""

    location: Boosted
    columns: list[int]
    offset: int | None
    mean_offset: float

    def attributions(self, x: Floats) -> Floats:
        attributed = np.zeros((len(x), x.shape[1] + 1))
        attributed[:, -1] = self.location.begin + self.mean_offset
        if self.offset is not None:
            attributed[:, self.offset] = x[:, self.offset] - self.mean_offset
        if self.location.booster is not None:
            data = import_xgboost().DMatrix(x[:, self.columns], base_margin=np.zeros(len(x)))
            parts = self.location.booster.predict(data, pred_contribs=True).astype(np.float64)
            attributed[:, self.columns] += self.location.unit * parts[:, :-1]
            attributed[:, -1] += self.location.unit * parts[:, -1]
        return attributed


def import_xgboost() -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise MissingExtraError("xgboost", "boost", "the boosted model") from error
    return xgboost


def _sum_of_trees(xgboost: Any, booster: Any, x: Floats, rounds: int) -> NDArray[Any]:
    # xgboost takes an empty range as all trees.
    if booster is None or not rounds:
        return np.zeros(len(x))
    data = xgboost.DMatrix(x, base_margin=np.zeros(len(x)))
    margin: NDArray[Any] = booster.predict(data, iteration_range=(0, rounds))
    return margin.astype(np.float64)
