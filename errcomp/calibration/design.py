r"""What the models of a run see: its summed kernels, its features, and what was measured.

Every model of the composition works on the log-ratio of the measured run to the sum of its
kernels:

.. math:: y_r = \ln \frac{e_r}{S_r}, \qquad S_r = \sum_{k \in r} c_k \, t_k

with end-to-end time e, count c and time of one instance t. It has no unit, so neither have the
models; 0 says that the run takes as long as its kernels together.

What the models share is here too: the protocols they follow, `Predicting` from what was fitted, and
the checks of what they are given.
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
        Time of all kernels together, > 0, in `unit`.
    measured : ndarray, shape (n,)
        End to end, in `unit`; NaN where it was not measured.
    x : ndarray, shape (n, p)
        Features without a unit or in units of their own, never in `unit`; NaN where unknown.
    names : tuple of str, length p
        Of the columns of `x`; see `errcomp.calibration.features.FEATURES`.
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
        """Return the runs at these positions, or under this mask."""
        arrays = ("run", "total", "measured", "x", "device", "model", "mode")
        parts = {name: getattr(self, name)[index] for name in arrays}
        return type(self)(**parts, names=self.names, unit=self.unit, task=self.task)


class PortableModel(Protocol):
    """A fitted model that needs NumPy and SciPy only, and can be written to a file.

    ``KIND`` names it in a model file; it is made again by ``from_arrays(meta, arrays)``.
    """

    KIND: str

    def predict_quantiles(
        self, x: Floats, q: Sequence[float], *, device: Names | None = None
    ) -> Floats:
        """Return quantiles of the log-ratio at probabilities q, shape (n, len(q))."""

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what JSON can hold, and the arrays (no objects), that make the model again."""

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the model again; InputError names what is missing or cannot be."""


class ResidualModel(Protocol):
    """A model of the log-ratio: scikit-learn's conventions, plus the device as a group.

    `Predicting` gives it ``predict``, ``predict_quantiles`` and ``predict_interval``.

    ``fit`` checks its input with scikit-learn's validation where that is installed. Features may
    be NaN only where the model says so. A device that was not in the fit is answered at the level
    of all devices, with the wider band that belongs to it.
    """

    #: After the fit: what predicts, and what a model file holds.
    portable_: PortableModel

    def fit(
        self,
        X: ArrayLike,  # noqa: N803 (scikit-learn's name)
        y: ArrayLike,
        *,
        device: ArrayLike | None = None,
        model: ArrayLike | None = None,
    ) -> Self:
        """Fit the log-ratios y, shape (n,), on the features X, shape (n, p)."""


class Parameters:
    """Parameters as scikit-learn has them: the arguments of ``__init__``, kept as they came."""

    @classmethod
    def _parameter_names(cls) -> list[str]:
        if cls.__init__ is object.__init__:
            return []
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is there because scikit-learn passes it."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Raises
        ------
        InputError
            There is no such parameter; the message lists those that there are.
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
    """Predicts from ``portable_``; the class that inherits it checks its input in `_features`."""

    portable_: PortableModel

    def _features(self, X: ArrayLike) -> Any:  # noqa: N803
        if not hasattr(self, "portable_"):
            raise InputError(f"{type(self).__name__} is not fitted yet. Call fit first.")
        return as_features(X)

    def predict(self, X: ArrayLike, *, device: ArrayLike | None = None) -> Floats:  # noqa: N803
        """Return the median of the log-ratio.

        Parameters
        ----------
        X : array_like, shape (n, p)
            The features of the fit, in their order.
        device : array_like of str, shape (n,), optional
            One that was not in the fit, and none at all, is answered at the level of all devices.

        Returns
        -------
        ndarray, shape (n,)
        """
        return self.predict_quantiles(X, (0.5,), device=device)[:, 0]

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
            The features are not those of the fit, or q are no ascending probabilities.
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
        """
        levels = np.atleast_1d(np.asarray(level, dtype=np.float64))
        if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
            raise InputError(
                f"level must be a number between 0 and 1, or several, got {level!r}. A band that "
                "covers nine of ten runs has level 0.9."
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
        They are no numbers, not two-dimensional, infinite, or not as many as in the fit.

    Examples
    --------
    >>> as_features([[1, 2], [3, 4]], columns=2).shape
    (2, 2)
    """
    try:
        features = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be numbers: {error}. Encode text as numbers.") from error
    if features.ndim != 2:
        raise InputError(
            f"features must have one row per run and one column per feature, got the shape "
            f"{features.shape}. Use .reshape(-1, 1) for one feature, .reshape(1, -1) for one run."
        )
    if columns is not None and features.shape[1] != columns:
        raise InputError(
            f"X has {features.shape[1]} features, but the model was fitted with {columns}. Give "
            "the columns of the fit in their order."
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
        They are not finite numbers, not one per row of the features, or fewer than two.

    Examples
    --------
    >>> as_targets([0.1, -0.1], rows=2).tolist()
    [0.1, -0.1]
    """
    try:
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"log-ratios must be numbers: {error}.") from error
    if targets.shape != (rows,):
        raise InputError(
            f"y must have one value per row of X, shape ({rows},), got {targets.shape}. Give the "
            "log-ratio of each run."
        )
    if rows < 2:
        raise InputError(f"a fit needs at least two runs, got n_samples={rows}. Measure more runs.")
    bad = np.flatnonzero(~np.isfinite(targets))
    if len(bad):
        raise InputError(
            f"log-ratios must be finite, got {targets[bad[0]]} in {describe_rows(bad.tolist())}. "
            "Leave out runs that were not measured."
        )
    return targets


def as_names(names: ArrayLike | None, rows: int, word: str) -> Names:
    """Return names as an array of text, one per row; ``""`` where None stands, or was given.

    Raises
    ------
    InputError
        They are not one per row.

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
            '"" where it is unknown.'
        )
    texts[:] = ["" if name is None else str(name) for name in given]
    return texts


def position(column: int | str, word: str, width: int, names: Sequence[str] | None) -> int:
    """Return the position of a column, given by position, or by name where columns have names.

    Raises
    ------
    InputError
        There is no such column; the message lists those that there are.
    """
    if isinstance(column, str):
        known = [] if names is None else [str(name) for name in names]
        if column in known:
            return known.index(column)
        columns = describe_names(known, wanted=column) if known else "none: X has no names"
        raise InputError(f"{word} names the column {column!r}, which X lacks. Columns: {columns}.")
    if not isinstance(column, int | np.integer):
        raise InputError(f"{word} must name columns or give positions, got {column!r}.")
    if not 0 <= column < width:
        raise InputError(f"{word} is column {column}, but X has columns 0 to {width - 1}.")
    return int(column)


def check_least(name: str, value: Any, least: int) -> None:
    """Check a whole number.

    Raises
    ------
    InputError
        It is not one, or below the least.
    """
    if not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def check_known(rows: Floats, used: Sequence[int], names: Sequence[Any], other: str) -> None:
    """Raise InputError where a column that a model uses is NaN; `other` is a model that may."""
    unknown = np.isnan(rows[:, used])
    lost = np.flatnonzero(unknown.any(axis=1))
    if len(lost):
        column = used[int(unknown[lost[0]].argmax())]
        raise InputError(
            f"features must be known, got NaN in {describe_rows(lost.tolist())} (column "
            f"{names[column]}). Leave the runs out, or use a model that allows unknown "
            f"features{other}."
        )


def validated(estimator: Any, X: ArrayLike, y: Any = "no_validation", **options: Any) -> Any:  # noqa: N803
    """Return what scikit-learn's validation lets through; its refusal as an InputError.

    NaN is let through: models say themselves where they take it.
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
    """Return finite numbers of so many dimensions; NaN passes where values may be missing."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers in {ndim} dimension(s): {error}") from error
    if array.ndim != ndim or not len(array):
        raise InputError(
            f"{what} must have {ndim} dimension(s) and one row at least, got shape {array.shape}."
        )
    bad = ~np.isfinite(array) & ~(np.isnan(array) & missing)
    if bad.any():
        rows = np.flatnonzero(bad.reshape(len(array), -1).any(axis=1))
        raise InputError(
            f"{what} must be finite, got {array[bad][0]} in {describe_rows(rows.tolist())}. "
            "Leave these rows out, or find out where the value was lost."
        )
    return array


def known_names(values: ArrayLike, what: str, n: int) -> NDArray[np.str_]:
    """Return n names as text; a missing one is refused, as it would make a group of its own."""
    names = np.asarray(values, dtype=object)
    if names.shape != (n,):
        raise InputError(f"{what} must be {n} names, one a row, got shape {names.shape}.")
    bad = [i for i, name in enumerate(names) if name is None or name != name]
    if bad:
        raise InputError(
            f"{what} must be known, got {names[bad[0]]} in {describe_rows(bad)}. "
            "Name the group of these rows, or leave them out."
        )
    return np.array([str(name) for name in names])


def as_groups(values: ArrayLike, what: str, n: int) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Return the distinct names in order and, of each row, the position of its name among them."""
    names, index = np.unique(known_names(values, what, n), return_inverse=True)
    return names, index.astype(np.int64)


def as_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return probabilities in strictly ascending order: they belong to columns in that order."""
    given = tuple(levels)
    good = all(isinstance(v, Real) and not isinstance(v, bool) and 0 < v < 1 for v in given)
    if not given or not good or any(a >= b for a, b in pairwise(given)):
        raise InputError(
            f"levels must be numbers between 0 and 1 in ascending order, got {given!r}. "
            "They belong to the columns of the bands, e.g. (0.5, 0.9)."
        )
    return tuple(float(v) for v in given)
