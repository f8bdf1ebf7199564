"""What the models of this package share: parameters, checked input, predicting from a portable."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from errcomp.calibration.design import QUANTILES, Floats, Names, PortableModel
from errcomp.errors import InputError, describe_rows

__all__ = ["Parameters", "Predicting", "as_features", "as_names", "as_targets", "validated"]


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
        found = self.predict_quantiles(X, q.tolist(), device=device)[:, at.reshape(ends.shape)]
        return found[:, :, 0] if np.ndim(level) == 0 else found


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
        found = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be numbers: {error}. Encode text as numbers.") from error
    if found.ndim != 2:
        raise InputError(
            f"features must have one row per run and one column per feature, got the shape "
            f"{found.shape}. Use .reshape(-1, 1) for one feature, .reshape(1, -1) for one run."
        )
    if columns is not None and found.shape[1] != columns:
        raise InputError(
            f"X has {found.shape[1]} features, but the model was fitted with {columns}. Give the "
            "columns of the fit in their order."
        )
    bad = np.flatnonzero(np.isinf(found).any(axis=1))
    if len(bad):
        raise InputError(
            f"features must not be infinite, got inf in {describe_rows(bad.tolist())}. Use NaN "
            "where a value is unknown."
        )
    return found


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
        found = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"log-ratios must be numbers: {error}.") from error
    if found.shape != (rows,):
        raise InputError(
            f"y must have one value per row of X, shape ({rows},), got {found.shape}. Give the "
            "log-ratio of each run."
        )
    if rows < 2:
        raise InputError(f"a fit needs at least two runs, got n_samples={rows}. Measure more runs.")
    bad = np.flatnonzero(~np.isfinite(found))
    if len(bad):
        raise InputError(
            f"log-ratios must be finite, got {found[bad[0]]} in {describe_rows(bad.tolist())}. "
            "Leave out runs that were not measured."
        )
    return found


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
    found = np.full(rows, "", dtype=object)
    if names is None:
        return found
    given = np.asarray(names, dtype=object)
    if given.shape != (rows,):
        raise InputError(
            f"{word} must have one name per row of X, shape ({rows},), got {given.shape}. Use "
            '"" where it is unknown.'
        )
    found[:] = ["" if name is None else str(name) for name in given]
    return found


def validated(estimator: Any, X: ArrayLike, y: Any = "no_validation", **options: Any) -> Any:  # noqa: N803
    """Return what scikit-learn's validation lets through; its refusal as an InputError.

    NaN is let through: models say themselves where they take it.
    """
    from sklearn.utils.validation import validate_data  # type: ignore[import-untyped]

    try:
        found = validate_data(
            estimator, X, y, dtype=np.float64, ensure_all_finite="allow-nan", **options
        )
    except ValueError as error:
        raise InputError(f"{error}") from error
    return found
