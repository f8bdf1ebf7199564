"""Declaration of caveats at the functions that find them, and the meaning of every caveat.

Modules of this package without a leading underscore are imported when the checks are needed. To add
a caveat, put a function under `caveat` into such a module.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeVar

from errcomp.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from errcomp.caveats._case import Finding

    CheckFunction = TypeVar("CheckFunction", bound=Callable[..., Finding | None])

Scope = Literal["pairs", "claim", "tools"]


@dataclass(frozen=True, slots=True)
class Check:
    """One named check.

    Attributes
    ----------
    code : str
        Stable name; the same code may be found in pairs and between tools.
    title : str
        What it means, in a few words.
    function : callable
        Takes a `Case` (for tools a `Tools`), returns a finding, or None if it does not apply.
    scope : {"pairs", "claim", "tools"}
        What it checks: one set of pairs, a claim about them, or all tools of a table.
    why : str
        When it fires, and why the threshold is what it is.
    remedy : str
        What to do about it.
    order : int
        Its place among all checks: low for the most serious, which make a metric unusable, then
        those about the sample, then those about the shape of the errors.
    needs_pairs : bool
        Whether it needs single pairs, which are not available where they stay in an engine.
    alone : bool
        Whether errors are meaningless if it finds something; checks of errors are then left out.
    of_errors : bool
        Whether it checks errors, not only the sample.

    Examples
    --------
    >>> from errcomp.caveats import CHECKS
    >>> one_sided = next(check for check in CHECKS if check.code == "one-sided")
    >>> one_sided.title, one_sided.scope
    ('Most errors have the same sign', 'pairs')
    """

    code: str
    title: str
    function: Callable[..., Finding | None]
    scope: Scope
    why: str
    remedy: str
    order: int
    needs_pairs: bool = False
    alone: bool = False
    of_errors: bool = True


_DECLARED: dict[tuple[str, Scope], Check] = {}


def caveat(
    code: str,
    title: str,
    *,
    scope: Scope,
    order: int,
    why: str,
    remedy: str,
    **options: bool,
) -> Callable[[CheckFunction], CheckFunction]:
    """Declare the function below as a check; `Check` explains the parameters.

    The function takes a `Case` (with scope "tools" a `Tools`) and returns a `Finding`, or None
    if it does not apply.
    """

    def declare(function: CheckFunction) -> CheckFunction:
        # Tools are compared on the pairs of each configuration.
        kinds = {"needs_pairs": scope == "tools", **options}
        check = Check(code, title, function, scope, why, remedy, order, **kinds)
        known = _DECLARED.setdefault((code, scope), check).function
        if known.__module__ != function.__module__:
            raise ValueError(f"{known.__module__} already declares the caveat {code!r} of {scope}")
        return function

    return declare


def find(package: str, folders: Iterable[str]) -> tuple[Check, ...]:
    """Import all modules of the package; return their checks, the most serious first."""
    for module in pkgutil.iter_modules(folders):
        if not module.name.startswith("_"):
            import_module(f"{package}.{module.name}")
    return _declared()


def _declared() -> tuple[Check, ...]:
    return tuple(sorted(_DECLARED.values(), key=lambda check: check.order))


def explain(code: str) -> str:
    """Say what a caveat means, when it fires and why, and what to do.

    Parameters
    ----------
    code : str
        As in ``Caveat.code``.

    Returns
    -------
    str

    Raises
    ------
    InputError
        There is no such code; the message lists all.

    Examples
    --------
    >>> print(explain("rounded-before-averaging"))
    The claim is reproduced only if errors are rounded first.
    Fires when the mean error rounds to the claim only if each error is first rounded to as many \
decimals as the claim has. No significance test is involved.
    What to do: Average the unrounded errors, and round the result.
    """
    everything: tuple[Check | Note, ...] = (*_declared(), *ELSEWHERE, *PROPAGATED)
    meanings = [note for note in everything if note.code == code]
    if not meanings:
        codes = sorted({note.code for note in everything})
        hint = did_you_mean(str(code), codes)
        raise InputError(f"no caveat {code!r}. {hint}Caveats: {', '.join(codes)}")
    return "\n\n".join(f"{note.title}.\n{note.why}\nWhat to do: {note.remedy}" for note in meanings)


@dataclass(frozen=True, slots=True)
class Note:
    """The meaning of a caveat that other parts of the package attach, not a check of pairs."""

    code: str
    title: str
    why: str
    remedy: str


#: Caveats of intervals, and of the drivers of an error.
ELSEWHERE: tuple[Note, ...] = (
    Note(
        "few-configurations",
        "An interval from few pairs",
        "Attached to an interval if its method covered the true value too rarely in simulations "
        "with this number of pairs or a larger number: in fewer than 93 % of samples instead of "
        "the nominal 95 % (docs/intervals.md).",
        "Treat the interval as too narrow, measure more configurations, or use the default "
        "interval method.",
    ),
    Note(
        "few-clusters",
        "An interval from few clusters",
        "Attached to intervals over whole clusters when there are few clusters: the "
        "number of clusters limits the accuracy of the interval, however many pairs each has. With "
        "fewer than 3 clusters there is no interval. Also attached to a regression with few "
        "clusters, because the intervals of the regression tend to be too narrow.",
        "Treat the interval as too narrow, or measure more models or devices rather than more "
        "configurations of the same models or devices.",
    ),
    Note(
        "errors-near-zero",
        "Some errors are close to zero",
        "Attached to drivers of an error when some errors are below 1 % of the median error. Each "
        "of these errors counts as 1 % of the median error, because ratios to smaller errors would "
        "be noise.",
        "Do nothing if few errors are that small. If many are, use the effects in percentage "
        "points, not the ratios.",
    ),
    Note(
        "same-predictions",
        "Devices that the tool does not distinguish",
        "Attached to drivers when several devices have at least 3 configurations in common and the "
        "tool predicts the same value for all of them in each. The errors of these devices are not "
        "independent, so they count as one device.",
        "Ask the tool's authors whether these devices are meant to have equal predictions.",
    ),
    Note(
        "no-matched-configurations",
        "A factor without matched configurations",
        "Attached to a factor when no two configurations differ in this factor alone. No "
        "significance test is involved.",
        "Measure one configuration with two values of the factor.",
    ),
    Note(
        "no-regression",
        "No regression on all factors",
        "Attached to drivers when statsmodels is not installed, or when there are too few rows to "
        "fit the coefficients. The effects from matched configurations need no regression.",
        "Install errcomp[drivers], or name fewer factors.",
    ),
    Note(
        "mixed-model-fallback",
        "Least squares instead of a mixed model",
        "Attached to a regression when a mixed model could not be fitted: least squares with "
        "clustered standard errors is used instead.",
        "Do nothing: the result names the method behind its intervals.",
    ),
    Note(
        "model-not-adjusted",
        "A regression that does not adjust for the model",
        "Attached to a regression with too few rows to fit a coefficient for each model.",
        "Rely on the effects from matched configurations, which compare each model with itself.",
    ),
)

#: Caveats of propagated totals.
PROPAGATED: tuple[Note, ...] = (
    Note(
        "in-sample",
        "The errors were estimated from the propagated runs themselves",
        "Attached to propagated totals when the errors of the kernels were estimated from measured "
        "runs in the same table. No significance test is involved.",
        "Check the bands with `errcomp propagate validate`, which predicts each group of runs from "
        "the other groups. To propagate one of several runs, name it with --run: its errors are "
        "then estimated from the other runs.",
    ),
    Note(
        "few-clusters",
        "Errors estimated from few devices or runs",
        "Attached to propagated totals when the errors come from fewer than 5 devices (or, with a "
        "single device, from fewer than 5 runs). Then the error that all kernels of one device or "
        'one run have in common is poorly known, and the bands under "estimated" may be too '
        "narrow.",
        'Measure runs on more devices, or also read the band under "comonotonic".',
    ),
    Note(
        "other-device",
        "Errors of one device are used for another",
        "Attached to propagated totals when all runs from which the errors were estimated ran on "
        "one device, and the propagated run is on another device. No significance test is "
        "involved.",
        "Measure runs on a second device, so that differences between devices can be estimated.",
    ),
    Note(
        "unknown-class",
        "Kernels of a class that was never measured",
        "Attached to a propagated total when the run has kernels of a class that the error model "
        "was not fitted to; for these kernels, the errors of all classes together are used. The "
        "message gives their share of the predicted time.",
        "Do nothing if the share is small; otherwise measure runs with such kernels.",
    ),
    Note(
        "not-modelled",
        "Kernels predicted to take no time",
        "Attached to a propagated total when kernels have a prediction of 0 or are too short to be "
        "measured, and no errors of such kernels are known: their time counts as 0. No "
        "significance test is involved.",
        "Fit the errors to measured runs that also have such kernels.",
    ),
    Note(
        "failed-kernels",
        "A total without the kernels that could not be predicted",
        "Attached to a propagated total when kernels of the run have a status other than ok. No "
        "significance test is involved.",
        "Predict these kernels, or compare the total with the measured time of the other kernels "
        "only.",
    ),
    Note(
        "lost-runs",
        "Runs without any predicted kernel",
        "Attached to propagated totals when all kernels of a run failed. No significance test is "
        "involved.",
        "Count these runs as failures of the predictor: the other runs say nothing about them.",
    ),
    Note(
        "not-in-graph",
        "Kernels that the execution graph leaves out",
        "Attached to a total computed from an execution graph when the table has kernels that no "
        "node of the graph names. No significance test is involved.",
        "Add these kernels to the graph, or state that the total leaves them out.",
    ),
    Note(
        "infinite",
        "Some draws are infinite",
        "Attached to a simulated time when some draws exceed the capacity of a queue or the "
        "largest floating-point number. Mean and standard deviation then do not exist. No "
        "significance test is involved.",
        "Use the quantiles and `saturated` (the share of draws in which a queue is overloaded), "
        "lower the load, or add servers.",
    ),
    Note(
        "no-mean",
        "A time without a mean",
        "Attached to a simulated time when its errors have Student t tails on the log scale, or "
        "Student t tails with at most 1 degree of freedom. No significance test is involved.",
        "Use the median and the quantiles, which always exist.",
    ),
    Note(
        "no-sd",
        "A time without a standard deviation",
        "Attached to a simulated time when its errors have Student t tails with at most 2 degrees "
        "of freedom. No significance test is involved.",
        "Use the bands, which always exist.",
    ),
    Note(
        "precision",
        "The simulation did not reach the requested precision",
        "Attached to a simulated time when the simulation made its largest number of draws without "
        "reaching --precision. The message gives the precision that was reached.",
        "Request less precision, or use the quantiles at the precision reached.",
    ),
    Note(
        "infinite-mean",
        "Bounds on a sum of terms without a mean",
        'Attached to the bounds of the assumption "unknown" when the errors have tails so heavy '
        "that a sum of N terms may grow faster than N. No significance test is involved.",
        'If you can justify an assumption, such as "comonotonic", use its band instead.',
    ),
    Note(
        "bounds-not-sharp",
        "Bounds that may be wider than necessary",
        'Attached to the bounds of the assumption "unknown" when the search for the worst '
        "correlation of the errors stopped before it was accurate to the tolerance: the bounds are "
        "valid, but tighter bounds may exist.",
        "Do nothing: a total lies outside the band at most as often as stated.",
    ),
    Note(
        "untracked-causes",
        "More causes of error than the analytic formula tracks",
        "Attached to the mean and standard deviation of a graph when they come from a formula, not "
        "from a simulation, and the graph has more causes of error than the formula tracks. The "
        "formula ignores correlation due to the other causes, so the standard deviation may be too "
        "small.",
        "Simulate the graph instead, with `errcomp propagate --graph`.",
    ),
)
