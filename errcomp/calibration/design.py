r"""Input of the models of a run: its summed kernels, its features and its measured time.

Every model of the composition works on the log-ratio of the measured run to the sum of its
kernels:

.. math:: y_r = \ln \frac{e_r}{S_r}, \qquad S_r = \sum_{k \in r} c_k \, t_k

with end-to-end time e, count c and time of one instance t. The log-ratio has no unit, and neither
have the models. At 0 the run takes as long as its kernels together.

The shared parts of the models are here too: their protocols, prediction (`Predicting`) and the
checks of their input.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, describe_names, describe_rows

__all__ = [
    "LEVELS",
    "QUANTILES",
    "TASKS",
    "Design",
    "Floats",
    "Names",
    "PortableModel",
    "ResidualModel",
    "Task",
]

#: Array of float64.
Floats = NDArray[np.float64]
#: Names as objects, e.g. of devices; "" where unknown.
Names = NDArray[Any]

#: composition: from measured kernels to the run; prediction: from predicted kernels to the run.
Task = Literal["composition", "prediction"]
#: All tasks.
TASKS: tuple[Task, ...] = ("composition", "prediction")

#: Levels of the bands that are calibrated and stored.
LEVELS = (0.5, 0.8, 0.9, 0.95)

#: Probabilities at which every model gives its quantiles: bands of `LEVELS` and a grid for scores.
QUANTILES = tuple(
    sorted({0.5, *(round(0.05 * i, 3) for i in range(1, 20)), 0.01, 0.025, 0.975, 0.99})
)


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Runs as arrays: one row per run, one column of `x` per feature.

    Attributes
    ----------
    run : ndarray of str, shape (n,)
    total : ndarray, shape (n,)
        Time of all kernels, > 0, in `unit`.
    measured : ndarray, shape (n,)
        End-to-end time in `unit`; NaN where it was not measured.
    x : ndarray, shape (n, p)
        Features, without a unit or in their own units, never in `unit`; NaN where unknown.
    names : tuple of str, length p
        Names of the columns of `x`; see `errcomp.calibration.features.FEATURES`.
    device, model, mode : ndarray of str, shape (n,)
        ``""`` where unknown.
    unit : str or None
    task : {"composition", "prediction"}
    """

    run: Names
    total: Floats
    measured: Floats
    x: Floats
    names: tuple[str, ...]
    device: Names
    model: Names
    mode: Names
    unit: str | None
    task: Task

    def __len__(self) -> int:
        return len(self.run)

    @property
    def log_ratio(self) -> Floats:
        """Log of the measured run to the sum of its kernels, shape (n,); NaN where unmeasured."""
        return np.log(self.measured / self.total)

    def take(self, index: NDArray[Any]) -> Self:
        """Return the runs at these positions, or under this mask.

        Examples
        --------
        >>> names, ones = np.array(["a", "b"], dtype=object), np.ones(2)
        >>> runs = Design(run=names, total=ones, measured=ones, x=np.empty((2, 0)), names=(),
        ...               device=names, model=names, mode=names, unit="ms", task="composition")
        >>> runs.take(np.array([False, True])).run.tolist()
        ['b']
        """
        arrays = ("run", "total", "measured", "x", "device", "model", "mode")
        parts = {name: getattr(self, name)[index] for name in arrays}
        return type(self)(**parts, names=self.names, unit=self.unit, task=self.task)


class PortableModel(Protocol):
    """A fitted model that needs only NumPy and SciPy and can be written to a file.

    ``KIND`` names it in a model file; ``from_arrays(meta, arrays)`` restores it.
    """

    KIND: str

    def predict_quantiles(
        self, x: Floats, q: Sequence[float], *, device: Names | None = None
    ) -> Floats:
        """Return quantiles of the log-ratio at probabilities q, shape (n, len(q)).

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import GlobalFactor
        >>> model = GlobalFactor().fit([[0.0]] * 4, [0.1, 0.2, 0.3, 0.2]).portable_
        >>> model.predict_quantiles([[5.0]], [0.5]).tolist()
        [[0.2]]
        """

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata for JSON and arrays (no objects) from which `from_arrays` restores it.

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import GlobalFactor
        >>> model = GlobalFactor().fit([[0.0]] * 4, [0.1, 0.2, 0.3, 0.2]).portable_
        >>> meta, arrays = model.to_arrays()
        >>> meta["intercept"], arrays["coefficients"].tolist()
        (0.2, [0.0])
        """

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore a model; an InputError names a missing or impossible value.

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import GlobalFactor
        >>> model = GlobalFactor().fit([[0.0]] * 4, [0.1, 0.2, 0.3, 0.2]).portable_
        >>> again = type(model).from_arrays(*model.to_arrays())
        >>> again.predict_quantiles([[5.0]], [0.5]).tolist()
        [[0.2]]
        """


class ResidualModel(Protocol):
    """A model of the log-ratio by scikit-learn's conventions, with the device as a group.

    `Predicting` gives it ``predict``, ``predict_quantiles`` and ``predict_interval``.

    ``fit`` checks its input with scikit-learn's validation where that is installed. Features may be
    NaN only where the model allows it. A device that was not in the fit is predicted from all
    devices, with a wider band.
    """

    #: After the fit: the part that predicts and that a model file holds.
    portable_: PortableModel

    def fit(
        self,
        X: ArrayLike,  # noqa: N803 (scikit-learn's name)
        y: ArrayLike,
        *,
        device: ArrayLike | None = None,
        model: ArrayLike | None = None,
    ) -> Self:
        """Fit the log-ratios y, shape (n,), on the features X, shape (n, p).

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import GlobalFactor
        >>> GlobalFactor().fit([[0.0]] * 4, [0.1, 0.2, 0.3, 0.2]).predict([[0.0]]).tolist()
        [0.2]
        """


class Parameters:
    """scikit-learn's parameters: the arguments of ``__init__``, stored unchanged."""

    @classmethod
    def _parameter_names(cls) -> list[str]:
        if cls.__init__ is object.__init__:
            return []
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` has no effect, scikit-learn passes it.

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import RobustLinear
        >>> RobustLinear(ridge=2.0).get_params()
        {'ridge': 2.0, 'degrees': 4.0}
        """
        return {name: getattr(self, name) for name in self._parameter_names()}

    def __repr__(self) -> str:
        """Return one line: the class and the parameters that are not the default."""
        defaults = inspect.signature(type(self).__init__).parameters
        own = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != defaults[name].default
        )
        return f"{type(self).__name__}({', '.join(own)})"

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Raises
        ------
        InputError
            A parameter does not exist; the message lists the parameters.

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import RobustLinear
        >>> RobustLinear().set_params(ridge=2.0)
        RobustLinear(ridge=2.0)
        """
        for name, value in params.items():
            if name not in self._parameter_names():
                raise InputError(
                    f"{type(self).__name__} has no parameter {name!r}. Parameters: "
                    f"{', '.join(self._parameter_names()) or 'none'}."
                )
            setattr(self, name, value)
        return self


class Predicting:
    """Predicts from ``portable_``; subclasses check their input in `_features`."""

    portable_: PortableModel
    n_features_in_: int

    def _features(self, X: ArrayLike) -> Any:  # noqa: N803
        if not hasattr(self, "portable_"):
            raise InputError(f"{type(self).__name__} is not fitted yet. Call fit first.")
        x = as_features(X)
        if x.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {x.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Pass the same columns as "
                "in the fit."
            )
        return x

    def predict(self, X: ArrayLike, *, device: ArrayLike | None = None) -> Floats:  # noqa: N803
        """Return the median of the log-ratio.

        Parameters
        ----------
        X : array_like, shape (n, p)
            The features of the fit, in their order.
        device : array_like of str, shape (n,), optional
            A device that was not in the fit, or none, is predicted from all devices.

        Returns
        -------
        ndarray, shape (n,)

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import DeviceFactor
        >>> model = DeviceFactor().fit([[0.0]] * 4, [0.25, 0.25, -0.25, -0.25], device=list("AABB"))
        >>> model.predict([[0.0]] * 2, device=["A", "new"]).tolist()
        [0.25, 0.0]
        """
        return self.predict_quantiles(X, (0.5,), device=device)[:, 0]

    def score(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        device: ArrayLike | None = None,
    ) -> float:
        r"""Return R² of the predicted log-ratios, as scikit-learn's regressors do.

        .. math:: R^2 = 1 - \sum_r w_r (y_r - \hat y_r)^2 \Big/ \sum_r w_r (y_r - \bar y)^2

        Parameters
        ----------
        X : array_like, shape (n, p)
        y : array_like, shape (n,)
            Log of the measured run to the sum of its kernels.
        sample_weight : array_like, shape (n,), optional
            w; 1 by default.
        device : array_like of str, shape (n,), optional

        Returns
        -------
        float
            1 is perfect, 0 is as good as the mean of y. If all y are equal, 1 for exact
            predictions and 0 for others.

        Raises
        ------
        InputError
            As `predict`, or y does not have one finite number per row.

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import DeviceFactor
        >>> x, y, device = [[0.0]] * 4, [0.25, 0.25, -0.25, -0.25], list("AABB")
        >>> model = DeviceFactor().fit(x, y, device=device)
        >>> model.score(x, y, device=device), model.score(x, y)
        (1.0, 0.0)
        """
        predicted = self.predict(X, device=device)
        truth = as_targets(y, len(predicted))
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        error = float(np.average((truth - predicted) ** 2, weights=weight))
        spread = float(np.average((truth - np.average(truth, weights=weight)) ** 2, weights=weight))
        return 1 - error / spread if spread else float(not error)

    def predict_quantiles(
        self,
        X: ArrayLike,  # noqa: N803
        q: Sequence[float] = QUANTILES,
        *,
        device: ArrayLike | None = None,
    ) -> Floats:
        """Return quantiles of the log-ratio, ascending in every row.

        Parameters
        ----------
        X : array_like, shape (n, p)
        q : sequence of float
            Probabilities, ascending.
        device : array_like of str, shape (n,), optional

        Returns
        -------
        ndarray, shape (n, len(q))

        Raises
        ------
        InputError
            The features are not those of the fit, or q are not ascending probabilities.

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import SumOfKernels
        >>> model = SumOfKernels().fit([[0.0]] * 4, [0.1, 0.02, -0.05, 0.04])
        >>> model.predict_quantiles([[0.0]], [0.1, 0.5, 0.9]).round(2).tolist()
        [[-0.1, 0.0, 0.1]]
        """
        x = self._features(X)
        names = None if device is None else as_names(device, len(x), "device")
        return self.portable_.predict_quantiles(x, q, device=names)

    def predict_interval(
        self,
        X: ArrayLike,  # noqa: N803
        level: float | Sequence[float] = 0.9,
        *,
        device: ArrayLike | None = None,
    ) -> Floats:
        """Return equal-tailed bands of the log-ratio.

        Parameters
        ----------
        X : array_like, shape (n, p)
        level : float or sequence of float
            Nominal coverage, in (0, 1).
        device : array_like of str, shape (n,), optional

        Returns
        -------
        ndarray, shape (n, 2) for one level, (n, 2, levels) for several
            Lower and upper ends.

        Raises
        ------
        InputError
            A level is not between 0 and 1, or the features are not those of the fit.

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import SumOfKernels
        >>> model = SumOfKernels().fit([[0.0]] * 4, [0.1, 0.02, -0.05, 0.04])
        >>> model.predict_interval([[0.0]], 0.8).round(2).tolist()
        [[-0.1, 0.1]]
        """
        levels = np.atleast_1d(np.asarray(level, dtype=np.float64))
        if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
            raise InputError(
                f"level must be one or more numbers between 0 and 1, got {level!r}. A "
                "band that covers nine of ten runs has level 0.9."
            )
        ends = np.stack([(1 - levels) / 2, (1 + levels) / 2])
        q, at = np.unique(ends, return_inverse=True)
        quantiles = self.predict_quantiles(X, q.tolist(), device=device)[:, at.reshape(ends.shape)]
        return quantiles[:, :, 0] if np.ndim(level) == 0 else quantiles


def as_features(x: ArrayLike, columns: int | None = None) -> Floats:
    """Return features as an array of shape (n, p); NaN is left to the model.

    Raises
    ------
    InputError
        Not real numbers, sparse, not two-dimensional, infinite, or not as many as in the fit.

    Examples
    --------
    >>> as_features([[1, 2], [3, 4]], columns=2).shape
    (2, 2)
    """
    if hasattr(x, "toarray"):
        raise InputError("features must be a dense array, got a sparse one. Use X.toarray().")
    try:
        given = np.asarray(x)
        features = given if np.iscomplexobj(given) else np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be numbers: {error}. Encode text as numbers.") from error
    if np.iscomplexobj(features):
        raise InputError("Complex data not supported: features must be real. Use X.real.")
    if features.ndim != 2:
        raise InputError(
            "features must have one row per run and one column per feature, got shape "
            f"{features.shape}. Reshape your data: .reshape(-1, 1) for one feature, .reshape(1, "
            "-1) for one run."
        )
    if columns is not None and features.shape[1] != columns:
        raise InputError(
            f"X has {features.shape[1]} features, but the model was fitted with {columns}. Pass "
            "the same columns as in the fit, in the same order."
        )
    bad = np.flatnonzero(np.isinf(features).any(axis=1))
    if len(bad):
        raise InputError(
            f"features must not be infinite, got inf in {describe_rows(bad.tolist())}. Use NaN "
            "where a value is unknown."
        )
    return features


def as_targets(y: ArrayLike, rows: int) -> Floats:
    """Return log-ratios as an array of shape (n,).

    Raises
    ------
    InputError
        Not finite numbers, not one per row of the features, or fewer than two.

    Examples
    --------
    >>> as_targets([0.1, -0.1], rows=2).tolist()
    [0.1, -0.1]
    """
    if y is None:
        raise InputError("fit requires y to be passed, but the target y is None. Pass log-ratios.")
    try:
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"log-ratios must be numbers: {error}.") from error
    if targets.shape != (rows,):
        raise InputError(
            f"y must have one value per row of X, shape ({rows},), got {targets.shape}. Pass the "
            "log-ratio of each run."
        )
    if rows < 2:
        raise InputError(f"at least two runs are needed, got n_samples={rows}. Measure more runs.")
    bad = np.flatnonzero(~np.isfinite(targets))
    if len(bad):
        raise InputError(
            f"log-ratios must be finite, got {targets[bad[0]]} in {describe_rows(bad.tolist())}. "
            "Leave out runs that were not measured."
        )
    return targets


def as_names(names: ArrayLike | None, rows: int, word: str) -> Names:
    """Return names as an array of text, one per row; ``""`` in place of None.

    Raises
    ------
    InputError
        Not one name per row.

    Examples
    --------
    >>> as_names(["H100", None], 2, "device").tolist()
    ['H100', '']
    """
    texts = np.full(rows, "", dtype=object)
    if names is None:
        return texts
    given = np.asarray(names, dtype=object)
    if given.shape != (rows,):
        raise InputError(
            f"{word} must have one name per row of X, shape ({rows},), got {given.shape}. Use "
            '"" where the name is unknown.'
        )
    texts[:] = ["" if name is None else str(name) for name in given]
    return texts


def position(column: int | str, word: str, width: int, names: Sequence[str] | None) -> int:
    """Return the position of a column that is named or numbered.

    Raises
    ------
    InputError
        No such column; the message lists the columns.
    """
    if isinstance(column, str):
        known = [] if names is None else [str(name) for name in names]
        if column in known:
            return known.index(column)
        columns = describe_names(known, wanted=column) if known else "none (X has no names)"
        raise InputError(
            f"{word} names the column {column!r}, which X does not have. Columns: {columns}."
        )
    if not isinstance(column, int | np.integer):
        raise InputError(f"{word} must be the name or position of a column, got {column!r}.")
    if not 0 <= column < width:
        raise InputError(f"{word} is column {column}, but X has columns 0 to {width - 1}.")
    return int(column)


def check_least(name: str, value: Any, least: int) -> None:
    """Check a whole number.

    Raises
    ------
    InputError
        Not a whole number, or below the least.
    """
    if not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def check_known(rows: Floats, used: Sequence[int], names: Sequence[Any], other: str) -> None:
    """Raise InputError where a used column is NaN; `other` names a model that allows it."""
    unknown = np.isnan(rows[:, used])
    lost = np.flatnonzero(unknown.any(axis=1))
    if len(lost):
        column = used[int(unknown[lost[0]].argmax())]
        raise InputError(
            f"features must be known, got NaN in {describe_rows(lost.tolist())} (column "
            f"{names[column]}). Drop these runs, or use a model that allows unknown "
            f"features{other}."
        )


def validated(estimator: Any, X: ArrayLike, y: Any = "no_validation", **options: Any) -> Any:  # noqa: N803
    """Validate input as scikit-learn does; its errors become an InputError.

    NaN passes: each model decides where it allows NaN.
    """
    from sklearn.utils.validation import validate_data  # type: ignore[import-untyped]

    try:
        data = validate_data(
            estimator, X, y, dtype=np.float64, ensure_all_finite="allow-nan", **options
        )
    except ValueError as error:
        raise InputError(f"{error}") from error
    return data


def as_floats(values: ArrayLike, what: str, *, ndim: int, missing: bool = False) -> Floats:
    """Return finite numbers with `ndim` dimensions; NaN passes where values may be missing."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers in {ndim} dimension(s): {error}") from error
    if array.ndim != ndim or not len(array):
        raise InputError(
            f"{what} must have {ndim} dimension(s) and at least one row, got shape {array.shape}."
        )
    fine = np.isfinite(array)
    if not fine.all():
        bad = ~fine & ~(np.isnan(array) & missing)
        if not bad.any():
            return array
        rows = np.flatnonzero(bad.reshape(len(array), -1).any(axis=1))
        raise InputError(
            f"{what} must be finite, got {array[bad][0]} in {describe_rows(rows.tolist())}. "
            "Drop these rows, or correct their values."
        )
    return array


def known_names(values: ArrayLike, what: str, n: int) -> NDArray[np.str_]:
    """Return n names as text; refuse a missing name, which would become its own group."""
    names = np.asarray(values, dtype=object)
    if names.shape != (n,):
        raise InputError(f"{what} must be {n} names, one per row, got shape {names.shape}.")
    bad = [i for i, name in enumerate(names) if name is None or name != name]
    if bad:
        raise InputError(
            f"{what} must be known, got {names[bad[0]]} in {describe_rows(bad)}. "
            "Give these rows a name, or drop them."
        )
    return np.array([str(name) for name in names])


def as_groups(values: ArrayLike, what: str, n: int) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Return the distinct names in order, and the position of each row's name among them."""
    names, index = np.unique(known_names(values, what, n), return_inverse=True)
    return names, index.astype(np.int64)


def as_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return strictly ascending probabilities, one for each column."""
    given = tuple(levels)
    good = all(isinstance(v, Real) and not isinstance(v, bool) and 0 < v < 1 for v in given)
    if not given or not good or any(a >= b for a, b in pairwise(given)):
        raise InputError(
            f"levels must be numbers between 0 and 1 in ascending order, got {given!r}. "
            "Give one level per column of the bands, e.g. (0.5, 0.9)."
        )
    return tuple(float(v) for v in given)
