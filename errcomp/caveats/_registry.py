"""How a caveat is declared beside the function that finds it, and what every caveat means.

A module of this package whose name has no leading underscore is imported when the checks are asked
for. To add a caveat, put one there with a function under `caveat`, and nothing else.
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
        Takes what is looked at and returns a finding, or None where the check does not apply.
    scope : {"pairs", "claim", "tools"}
        What it looks at: one set of pairs, a claim about them, or all tools of a table.
    why : str
        When it fires and why the threshold is what it is.
    remedy : str
        What to do about it.
    order : int
        Its place among all checks: the gravest, which make a figure unusable, have the lowest;
        then comes what a figure stands for, then its shape.
    needs_pairs : bool
        Whether it looks at single pairs, which are not at hand where they stay in an engine.
    alone : bool
        Whether errors are no errors once it has found something: what looks at them is then left
        out.
    of_errors : bool
        Whether it looks at errors, and not only at what the pairs are.
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
    """Declare the function below as a check; see `Check` for what to say of it.

    The function takes a `Case` (with scope "tools" a `Tools`) and returns a `Finding`, or None
    where there is nothing that it could look at.
    """

    def declare(function: CheckFunction) -> CheckFunction:
        # Tools are compared on the pairs of each configuration.
        kinds = {"needs_pairs": scope == "tools", **options}
        check = Check(code, title, function, scope, why, remedy, order, **kinds)
        known = _DECLARED.setdefault((code, scope), check).function
        if known.__module__ != function.__module__:
            raise ValueError(f"{known.__module__} declares the caveat {code!r} of {scope} already")
        return function

    return declare


def find(package: str, folders: Iterable[str]) -> tuple[Check, ...]:
    """Import all modules of the package and return the checks they declare, the gravest first."""
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
    The claim comes out only if errors are rounded first.
    Fires when the mean of the errors, each rounded to the decimals of the claim, prints as the \
claim and the exact mean does not. A fact, no test.
    What to do: Round once, at the end.
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
    """What a caveat means that no check of pairs finds: other parts of the package attach it."""

    code: str
    title: str
    why: str
    remedy: str


#: Caveats of intervals, and of the drivers of an error.
ELSEWHERE: tuple[Note, ...] = (
    Note(
        "few-configurations",
        "An interval from few pairs",
        "Attached to an interval whose method, in simulations of samples of this size and larger, "
        "covered the truth in fewer than 93 % of cases where it says 95 % (docs/intervals.md).",
        "Read the interval as too narrow, measure more configurations, or use the default method.",
    ),
    Note(
        "few-clusters",
        "An interval from few clusters",
        "The same for intervals that draw whole clusters: what counts is the number of clusters, "
        "however many pairs each has. Below 3 clusters there is no interval. Also attached to a "
        "regression, whose intervals tend to be too narrow with few clusters.",
        "Read the interval as too narrow, or measure more models or devices rather than more "
        "configurations of these.",
    ),
    Note(
        "errors-near-zero",
        "Some errors are next to zero",
        "Attached to drivers of an error when an error lies below one hundredth of the median: its "
        "ratio to any other would be a ratio to noise. It counts as that hundredth.",
        "Nothing, if there are few; with many, read the effects in points instead of ratios.",
    ),
    Note(
        "same-predictions",
        "Devices that the tool does not tell apart",
        "Attached to drivers when devices share 3 configurations or more, each with one "
        "prediction: their errors are not independent, and they count as one device.",
        "Ask the tool's authors whether the devices are meant to be one.",
    ),
    Note(
        "no-matched-configurations",
        "A factor that nothing was held equal for",
        "Attached to drivers when no two configurations differ in a factor and agree in everything "
        "else. A fact, no test.",
        "Measure one configuration at both levels of the factor.",
    ),
    Note(
        "no-regression",
        "No regression on all factors",
        "Attached to drivers when statsmodels is not installed, or the rows are fewer than the "
        "coefficients need. The matched contrasts stand without it.",
        "Install errcomp[drivers], or name fewer factors.",
    ),
    Note(
        "mixed-model-fallback",
        "Least squares in place of a mixed model",
        "Attached to a regression whose mixed model could not be fitted; the standard errors are "
        "clustered instead.",
        "Nothing: the intervals are those of the method named.",
    ),
    Note(
        "model-not-adjusted",
        "A regression that does not adjust for the model",
        "Attached to a regression with too few rows for a coefficient of each model.",
        "Trust the matched contrasts, which compare each model with itself.",
    ),
)

#: Caveats of propagated totals.
PROPAGATED: tuple[Note, ...] = (
    Note(
        "in-sample",
        "The bands are of the runs that the errors were estimated from",
        "Attached to propagated totals whose errors were fitted to the measured runs of the same "
        "table. A fact, no test.",
        "Judge bands with `errcomp propagate validate`, which leaves each group out in turn; for "
        "one run of several, name it with --run, and the others give the errors.",
    ),
    Note(
        "few-clusters",
        "Errors estimated from few devices or runs",
        "Attached to propagated totals when the errors come from fewer than 5 devices (or runs, of "
        "one device): what their kernels share is then hardly known, and the bands under "
        '"estimated" may be too narrow.',
        'Measure runs on more devices, or read the band under "comonotonic" beside it.',
    ),
    Note(
        "other-device",
        "Errors of one device stand for those of another",
        "Attached to propagated totals when all runs that the errors come from were on one device "
        "and the propagated run is on another. A fact, no test.",
        "Measure runs on a second device, so that what differs between devices can be estimated.",
    ),
    Note(
        "unknown-class",
        "Kernels of a class that was never measured",
        "Attached to a propagated total when a fitted error model has no errors of a kernel class "
        "in it: those of all classes together stand in. The evidence has its share of the time.",
        "Nothing where the share is small; else measure runs that have such kernels.",
    ),
    Note(
        "not-modelled",
        "Kernels predicted to take no time",
        "Attached to a propagated total when kernels are predicted as 0, or too short to be "
        "measured, and the errors say nothing of such kernels: they count as 0. A fact, no test.",
        "Fit the errors to measured runs that have such kernels too.",
    ),
    Note(
        "failed-kernels",
        "A total without the kernels that could not be predicted",
        "Attached to a propagated total when kernels of the run have a status other than ok. A "
        "fact, no test.",
        "Predict them, or compare with the measured time of the other kernels only.",
    ),
    Note(
        "lost-runs",
        "Runs of which nothing could be predicted",
        "Attached to propagated totals when all kernels of a run failed. A fact, no test.",
        "Count these runs as failures of the predictor: the others say nothing of them.",
    ),
    Note(
        "not-in-graph",
        "Kernels that the execution graph leaves out",
        "Attached to a total by a graph when the table has kernels that no node of the graph "
        "names. A fact, no test.",
        "Add them to the graph, or say that the total leaves them out.",
    ),
    Note(
        "infinite",
        "Some draws are infinite",
        "Attached to a simulated time when draws exceed the capacity of a queue, or the largest "
        "number. Mean and standard deviation then do not exist. A fact, no test.",
        "Read `saturated` and the quantiles, lower the load, or add servers.",
    ),
    Note(
        "no-mean",
        "A time without mean",
        "Attached to a simulated time when its errors have Student t tails on the log scale, or "
        "of 1 degree of freedom or fewer. A fact, no test.",
        "Read median and quantiles, which exist always.",
    ),
    Note(
        "no-sd",
        "A time without standard deviation",
        "Attached to a simulated time when its errors have Student t tails of 2 degrees of freedom "
        "or fewer. A fact, no test.",
        "Read the bands, which exist always.",
    ),
    Note(
        "precision",
        "The simulation stopped short of the precision asked for",
        "Attached to a simulated time when the largest number of draws did not reach --precision. "
        "The evidence says what was reached.",
        "Ask for less, or read the quantiles with the precision reached.",
    ),
    Note(
        "infinite-mean",
        "Bounds on a sum whose terms have no mean",
        "Attached to bounds for any dependence when the errors have such tails that the sum of N "
        "terms may grow faster than N. A fact, no test.",
        'Prefer the band of an assumption, such as "comonotonic", where one can be defended.',
    ),
    Note(
        "bounds-not-sharp",
        "Bounds that are wider than need be",
        "Attached to bounds for any dependence when the search for the worst dependence left a gap "
        "larger than the tolerance: the bounds hold, and better ones may exist.",
        "Nothing: what lies outside the band is as improbable as it says, or less.",
    ),
    Note(
        "untracked-causes",
        "More causes than the analytic rule follows",
        "Attached to analytic moments of a graph when it has more independent causes than are "
        "followed: the rest count as independent, and the standard deviation may be too small.",
        "Simulate the graph instead: `errcomp propagate --graph` does.",
    ),
)
