"""Gives the predictions of any tool the bands of a fitted model, inside that tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError
from errcomp.propagation.errors import ErrorModel
from errcomp.propagation.propagating import propagate

__all__ = ["Banded", "Wrapped", "wrap"]

Floats = NDArray[np.float64]
_LEVEL = 0.9
#: Types of numbers: a look-up, because it happens at every prediction.
_NUMBERS = frozenset({int, float, np.float32, np.float64})


class _Calibrated(Protocol):
    """A fitted composition: predicts runs, with bands, from their kernels."""

    def predict(self, kernels: Any) -> Any: ...


class Banded(float):
    """A predicted time, an ordinary float, with the band of a fitted model.

    The band is computed when asked for. Arithmetic gives plain floats: errors do not add up like
    times, so the band of a sum is that of its `kernels`, not the sum of bands.

    Attributes
    ----------
    low, high : float
        Ends of the 90 % band.

    Examples
    --------
    >>> import errcomp as ec
    >>> from errcomp.propagation import given_errors
    >>> time = ec.wrap(lambda flops: flops / 312e12, given_errors(0.1))(3.12e12)
    >>> print(time, round(time.low, 4), round(time.high, 4))
    0.01 0.0085 0.0118
    """

    __slots__ = ("_args", "_wrapped")

    _wrapped: Wrapped
    _args: tuple[tuple[Any, ...], dict[str, Any]]

    def band(self, level: float = _LEVEL) -> tuple[float, float]:
        """Return the lower and the upper end of the band at a level.

        Raises
        ------
        InputError
            The level is not in (0, 1), or the model has no error for this kernel class.

        Examples
        --------
        >>> import errcomp as ec
        >>> from errcomp.propagation import given_errors
        >>> time = ec.wrap(lambda flops: flops / 312e12, given_errors(0.1))(3.12e12)
        >>> low, high = time.band(0.5)
        >>> round(low, 4), round(high, 4)
        (0.0093, 0.0107)
        """
        args, named = self._args
        low, high = self._wrapped.band(float(self), *args, level=level, **named)
        return float(low), float(high)

    @property
    def low(self) -> float:
        """Lower end of the 90 % band."""
        return self.band()[0]

    @property
    def high(self) -> float:
        """Upper end of the 90 % band."""
        return self.band()[1]

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        """Copy to other processes as a plain float: the model does not travel with it."""
        return float, (float(self),)


class Wrapped:
    """A predictor whose predictions have bands; made by `wrap`.

    Calls and ``predict`` return what the predictor returns; a number comes back as a `Banded`
    float. All other attributes are those of the predictor.
    """

    def __init__(
        self,
        predictor: Any,
        model: ErrorModel | _Calibrated,
        kernels: Callable[..., Any] | None,
        kernel_class: str | Callable[..., str],
        unit: str | None,
    ) -> None:
        self._predictor, self._model = predictor, model
        self._kernels, self._class, self._unit = kernels, kernel_class, unit

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Predict with the predictor."""
        return self._banded(self._predictor(*args, **named), args, named)

    def predict(self, *args: Any, **named: Any) -> Any:
        """Predict with the method ``predict`` of the predictor.

        Examples
        --------
        >>> import errcomp as ec
        >>> from errcomp.propagation import given_errors
        >>> class Roofline:
        ...     def predict(self, flops):
        ...         return flops / 312e12
        >>> ec.wrap(Roofline(), given_errors(0.1)).predict(3.12e12)
        0.01
        """
        return self._banded(self._predictor.predict(*args, **named), args, named)

    def __getattr__(self, name: str) -> Any:
        # Copies ask for attributes before there are any.
        if name.startswith("__") or "_predictor" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._predictor, name)

    def __repr__(self) -> str:
        return f"Wrapped({self._predictor!r})"

    def _banded(self, result: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if type(result) not in _NUMBERS:
            return result
        banded = Banded(result)
        banded._wrapped, banded._args = self, (args, named)
        return banded

    def band(self, result: Any, *args: Any, level: float = _LEVEL, **named: Any) -> Any:
        """Return the lower and the upper end of the band of what the predictor returned.

        Parameters
        ----------
        result
            A number, an array of predictions, or anything that ``kernels`` reads.
        *args, **named
            Those of the call, if ``kernels`` or ``kernel_class`` is a function of them.
        level : float

        Returns
        -------
        low, high : float, or ndarray of shape (n,)
            Arrays for an array of n predictions, or for the kernels of n runs.

        Raises
        ------
        InputError
            The result is not a number and ``kernels`` is missing, a prediction is negative or not
            finite, the level is not in (0, 1), or the model has no error for a kernel class.

        Examples
        --------
        >>> import errcomp as ec
        >>> from errcomp.propagation import given_errors
        >>> wrapped = ec.wrap(lambda flops: np.divide(flops, 312e12), given_errors(0.1))
        >>> low, high = wrapped.band(wrapped([3.12e12, 6.24e12]))
        >>> low.round(4).tolist(), high.round(4).tolist()
        ([0.0085, 0.017], [0.0118, 0.0236])
        """
        if not 0 < level < 1:
            raise InputError(f"level must be between 0 and 1, got {level}. 95 % is level=0.95.")
        if self._kernels is not None:
            kernels = self._kernels(result, *args, **named)
            low, high = self._ends(kernels, level)
            if isinstance(kernels, Mapping) and "run" not in kernels:
                return float(low[0]), float(high[0])
            return low, high
        times = _times(result)
        name = self._class if isinstance(self._class, str) else self._class(*args, **named)
        ends = self._of_one_kernel(np.atleast_1d(times), name, level)
        return ends if times.ndim else (float(ends[0][0]), float(ends[1][0]))

    def _of_one_kernel(self, times: Floats, name: str, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the bands of predictions that are one kernel each."""
        model = self._model
        # With relative errors, the band of 2 ms is twice that of 1 ms.
        if isinstance(model, ErrorModel) and model.kind != "absolute" and not model.size_exponent:
            one, at, scale = np.ones(1), np.zeros(len(times), dtype=int), times
        else:
            one, at = np.unique(times, return_inverse=True)
            scale = np.ones(len(times))
        run = [str(i) for i in range(len(one))]
        low, high = self._ends({"run": run, "kernel": [name] * len(one), "predicted": one}, level)
        return low[at] * scale, high[at] * scale

    def _ends(self, kernels: Any, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the band of each run."""
        given = kernels
        if self._unit is not None and isinstance(kernels, Mapping) and "unit" not in kernels:
            given = {**kernels, "unit": [self._unit] * len(kernels["predicted"])}
        if not isinstance(self._model, ErrorModel):
            found = self._model.predict(given)
            low, high = found.band(level)
            return np.asarray(low), np.asarray(high)
        correlation = "repeats" if self._model.components is None else "estimated"
        found = propagate(given, errors=self._model, correlation=correlation, levels=(level,))
        bands = [outcome.band(level) for outcome in found.outcomes]
        return np.array([band.low for band in bands]), np.array([band.high for band in bands])


def _times(result: Any) -> Floats:
    """Return what a predictor returned as numbers, or say what is missing."""
    try:
        times = np.asarray(result, dtype=float)
    except (TypeError, ValueError):
        times = np.empty((0, 0))
    if times.ndim > 1 or not times.size:
        raise InputError(
            f"the predictor returned {type(result).__name__}, not a number or an array of "
            "numbers. Pass a function that extracts the kernels from it: wrap(..., kernels=lambda "
            'result: {"kernel": [...], "predicted": [...]}).'
        )
    bad = times[~(np.isfinite(times) & (times >= 0))]
    if bad.size:
        raise InputError(f"a predicted time must be finite and not negative, got {bad[0]}.")
    return times


def wrap(
    predictor: Any,
    model: ErrorModel | _Calibrated,
    *,
    kernels: Callable[..., Any] | None = None,
    kernel_class: str | Callable[..., str] = "*",
    unit: str | None = None,
) -> Wrapped:
    """Give a predictor the bands of a fitted model.

    The wrapped predictor takes the place of the predictor in its tool: calls and ``predict`` return
    the same values, and a band is computed only when asked for.

    Parameters
    ----------
    predictor : callable, or object with ``predict``
        With ``kernels``, any object.
    model : ErrorModel or CompositionModel
        Errors by kernel class (`errcomp.propagation.fit_errors`, `given_errors`), or a fitted
        composition, whose bands are around its corrected time.
    kernels : callable, optional
        Function of what the predictor returns (and of its arguments) that gives a table of
        kernels: columns ``kernel`` and ``predicted``, ``count``, ``run`` and others of
        `errcomp.tables.Kernels`. The band is then that of the sum of the kernels of each run.
        Without it, a prediction is one kernel.
    kernel_class : str or callable
        Class of a prediction that is one kernel, or a function of the arguments that names it.
    unit : str, optional
        Unit of the predictions.

    Returns
    -------
    Wrapped

    Raises
    ------
    InputError
        The predictor can neither be called nor has ``predict``, and ``kernels`` is missing, or the
        model gives no bands.

    Examples
    --------
    >>> import errcomp as ec
    >>> from errcomp.propagation import ClassError, ErrorModel
    >>> model = ErrorModel({"gemm": ClassError(0.0, 0.05), "softmax": ClassError(0.0, 0.3)})
    >>> times = {"gemm": 2.0, "softmax": 0.1}
    >>> predictor = ec.wrap(times.get, model, kernel_class=lambda name: name)
    >>> [round(predictor("gemm").high / predictor("gemm"), 2), round(predictor("softmax").high, 3)]
    [1.09, 0.164]
    """
    predicts = callable(predictor) or callable(getattr(predictor, "predict", None))
    if not predicts and kernels is None:
        raise InputError(
            f"{type(predictor).__name__} is not callable and has no method predict. Pass the "
            "method that predicts, e.g. wrap(predictor.get_execution_time, model), or pass "
            "kernels=."
        )
    if not isinstance(model, ErrorModel) and not callable(getattr(model, "predict", None)):
        raise InputError(
            f"{type(model).__name__} gives no bands. Pass the result of "
            "errcomp.propagation.fit_errors or given_errors, or a model that errcomp.calibration "
            "fitted."
        )
    return Wrapped(predictor, model, kernels, kernel_class, unit)
