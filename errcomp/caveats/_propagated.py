"""Caveats of propagated totals, which `errcomp.propagation` attaches."""

from __future__ import annotations

from errcomp.caveats._elsewhere import Note

__all__ = ["PROPAGATED"]

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
