"""Every scalar metric by name, declared at the function that computes it.

Modules of this package without a leading underscore are imported with the package. To add a metric,
put a function under `declare` into such a module.
"""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from errcomp.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from errcomp.metrics.pointwise import Checked

FigureUnit = Literal["fraction", "ratio", "log", "correlation", "measured"]
FigureKind = Literal["mean", "smooth", "share", "quantile", "maximum", "rank"]


class Means(NamedTuple):
    """A metric as (shift + sum x / sum y)^root - shift, or as exp(mean x) if not ``log``.

    Attributes
    ----------
    term : callable
        shift + x of each pair, up to a constant factor, from checked pairs.
    sums : tuple of str
        Terms whose product is x in an engine (see `errcomp.tables.frames.term_names`).
    weighted : bool
        Whether y is the measurement; otherwise it is 1.
    root : float
        See above.
    shift : float
        1 for the means of signed errors. They are studentised as means of ratios, which are
        positive and have a logarithm. Sums of errors lose no digits, sums of ratios would.
    log : bool
        Whether the interval is computed for the logarithm of the mean; False for geometric means.
    largest : float
        Upper limit of the metric.
    """

    term: Callable[[Checked], NDArray[np.float64]]
    sums: tuple[str, ...]
    weighted: bool = False
    root: float = 1.0
    shift: float = 0.0
    log: bool = True
    largest: float = math.inf

    @property
    def offset(self) -> float:
        """Offset that is added to the mean of the terms: minus the shift."""
        return 0.0 - self.shift


class NoSpreadError(Exception):
    """The sample gives no standard error; the message tells the user why."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One scalar metric of predictions and measurements.

    Attributes
    ----------
    name : str
        Name in code and on the command line.
    label : str
        Name in tables.
    unit : str
        ``"fraction"`` (shown in per cent), ``"ratio"``, ``"log"``, ``"correlation"`` (a plain
        number of at most 1) or ``"measured"`` (the unit of the data).
    function : callable
        ``function(predicted=..., measured=..., zeros="raise")`` gives a float.
    definition : str
        Denominator and aggregation in one sentence.
    misleads : str
        When not to trust it, in one sentence.
    kind : str
        Statistical kind, which decides how its interval is computed: ``"mean"`` of one value per
        pair, ``"smooth"`` function of such means, ``"share"`` of pairs, ``"quantile"``,
        ``"maximum"`` (these three of the absolute percentage errors), or ``"rank"`` (of the order
        of the values only).
    order : int
        Its place among all metrics.
    means : Means or None
        How it follows from means. An engine computes it from these sums; it has an interval if the
        coverage was simulated (docs/intervals.md).
    """

    name: str
    label: str
    unit: FigureUnit
    function: Callable[..., float]
    definition: str
    misleads: str
    kind: FigureKind
    order: int
    means: Means | None = None


#: All scalar metrics by name.
FIGURES: dict[str, Figure] = {}

FigureFunction = TypeVar("FigureFunction", bound=Callable[..., float])


def declare(
    name: str,
    label: str,
    *,
    unit: FigureUnit,
    kind: FigureKind,
    order: int,
    definition: str,
    misleads: str,
    means: Means | None = None,
    **fixed: Any,
) -> Callable[[FigureFunction], FigureFunction]:
    """Declare the function below as a metric; ``fixed`` are arguments that it is called with.

    `Figure` explains the parameters.
    """

    def add(function: FigureFunction) -> FigureFunction:
        computed = partial(function, **fixed) if fixed else function
        FIGURES[name] = Figure(
            name, label, unit, computed, definition, misleads, kind, order, means
        )
        return function

    return add


def find(package: str, folders: Iterable[str]) -> None:
    """Import all modules of the package, and sort the metrics that they declare."""
    for module in pkgutil.iter_modules(folders):
        if not (module.ispkg or module.name.startswith("_")):
            import_module(f"{package}.{module.name}")
    ordered = sorted(FIGURES.values(), key=lambda spec: spec.order)
    FIGURES.clear()
    FIGURES.update((spec.name, spec) for spec in ordered)


def figure(name: str) -> Figure:
    """Look up a metric by name.

    Parameters
    ----------
    name : str
        A key of ``FIGURES``.

    Returns
    -------
    Figure

    Raises
    ------
    InputError
        The metric does not exist; the message has the closest name and lists all.

    Examples
    --------
    >>> figure("mape").label, figure("mape").unit
    ('MAPE', 'fraction')
    """
    if name in FIGURES:
        return FIGURES[name]
    hint = did_you_mean(str(name), FIGURES)
    raise InputError(f"no metric {name!r}. {hint}Metrics: {', '.join(FIGURES)}")
