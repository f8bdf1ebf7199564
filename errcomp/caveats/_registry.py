"""Every check: its code, what it means, why its threshold is what it is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from errcomp.caveats import claim, comparisons, sample, shape, tools, totals, units
from errcomp.caveats._elsewhere import ELSEWHERE, Note
from errcomp.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from errcomp.caveats._case import Finding

__all__ = ["CHECKS", "Check", "explain"]


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
    needs_pairs: bool = False
    alone: bool = False
    of_errors: bool = True


#: All checks, the gravest first: what makes a figure unusable, then what it stands for, then its
#: shape. Caveats are reported in this order.
CHECKS: tuple[Check, ...] = (
    Check(
        "units",
        "Predictions and measurements are in different units",
        units.units,
        "pairs",
        "Fires when the middle of prediction over measurement is a factor of 5 or more either way "
        "and 9 of 10 pairs lie within its square root of it. Names units that differ by the factor "
        "(within 10 %, or within the scatter of the pairs), or a clock that cycles and times "
        "have between them. A fact, no test. Caveats about errors are not looked for then.",
        "Convert one column; the caveat has the line to paste. Where no units explain the factor, "
        "find out what each side counts.",
        alone=True,
    ),
    Check(
        "affine",
        "Predictions follow measurements along a line, not one to one",
        units.affine,
        "pairs",
        "Fires when half of the predictions are off by a factor of 5 or more, and a line (or a "
        "power) between prediction and measurement leaves at most half the error that one factor "
        "leaves, half that of one constant, and 50 %: all on pairs left out of the fit. A fact, no "
        "test. Caveats about errors are not looked for then.",
        "Convert both columns to one unit, and find what the constant is (an overhead that one "
        "side leaves out). Fit the line on other measurements before quoting errors after it.",
        needs_pairs=True,
        alone=True,
    ),
    Check(
        "level-mismatch",
        "The claim and the pairs are about different things",
        claim.level_mismatch,
        "pairs",
        "Fires when the pairs mix levels (kernel, model, system, …), or when all are of another "
        "level than the claim. A fact, no test: errors cancel or add up from level to level, so "
        "that a kernel figure says nothing about a model.",
        "Quote each level on its own; use propagation to get from one to the other.",
        of_errors=False,
    ),
    Check(
        "reference-mismatch",
        "The claim was made against something else than these measurements",
        claim.reference_mismatch,
        "claim",
        "Fires when the claim's reference (hardware, RTL simulation, a simulator, another "
        "predictor) is not that of the pairs (column `reference`; hardware where there is none), "
        "or the pairs say that it is unknown. A fact, no test: 1 % from a simulator that is itself "
        "15 % off is no 1 % from hardware. A claim against another reference is not judged.",
        "Compare only figures with the same reference, or add the reference's own error.",
        of_errors=False,
    ),
    Check(
        "metric-mismatch",
        "The claim quotes a correlation, a share or a squared error, not a relative error",
        claim.metric_mismatch,
        "claim",
        "Fires when the claim's metric is none of the relative errors, and sets that metric and "
        "the MAPE of the same pairs side by side. A fact, no test: a predictor twice too high "
        "everywhere has a correlation of 1 and a MAPE of 100 %.",
        "Ask for the error, or compute it from the pairs; never rank one kind against the other.",
        of_errors=False,
    ),
    Check(
        "few-configurations",
        "Under 10 pairs, too few for any figure to be certain",
        sample.few_configurations,
        "pairs",
        "Fires below 10 pairs, the size from which on the package's intervals have to reach 90 % "
        "where they promise 95 %. The uncertainty is that of Gaussian errors (Student's interval "
        "of the mean of their absolute values); it is a quarter of the figure at 36 pairs.",
        "Measure more configurations, or report the errors one by one without a mean.",
        of_errors=False,
    ),
    Check(
        "duplicated-configurations",
        "Rows repeat a configuration",
        sample.duplicated_configurations,
        "pairs",
        "Fires when a row repeats the keys and the prediction of another one, provided that the "
        "keys settle the prediction (at most a tenth more different predictions than "
        "configurations); otherwise when a tenth of all rows are equal in every number, which "
        "rounding does not explain. A fact, no test: repetitions count as one in any interval.",
        "Average repeated measurements first, or name the repetition in a column and resample "
        "whole configurations.",
        needs_pairs=True,
        of_errors=False,
    ),
    Check(
        "failures",
        "Rows were left out",
        sample.failures,
        "pairs",
        "Fires when 1 % or more of the rows failed or had no usable measurement. A fact, no test: "
        "from there on the P99 of the error is unknown, whatever the others say.",
        "Report the share beside the figure; find out whether failures are the hard cases.",
        of_errors=False,
    ),
    Check(
        "pooled-variants",
        "Variants that err differently are pooled",
        comparisons.pooled_variants,
        "pairs",
        "Compares each variant (fused, distributed, training, another precision, …) with the most "
        "frequent one: Wilcoxon's signed-rank test on configurations that differ in nothing else "
        "where there are six (fewer cannot reach p < 0.05), else Mann and Whitney's test, Holm "
        "over all of them. Fires when significant and one figure is at least 1.25 times the other.",
        "Quote the variants apart. Unmatched variants may also differ in model or device.",
        needs_pairs=True,
    ),
    Check(
        "in-vs-out-of-distribution",
        "Configurations that the predictor was trained on are mixed with others",
        comparisons.in_vs_out_of_distribution,
        "pairs",
        "Needs a key `in_training` and five pairs on either side. Fires when Welch's interval of "
        "the difference excludes zero and one figure is at least 1.25 times the other.",
        "Quote the figure outside the training set: it is the one that holds for new cases.",
    ),
    Check(
        "unbalanced-groups",
        "The sizes of the groups, not their errors, set the pooled figure",
        comparisons.unbalanced_groups,
        "pairs",
        "Fires when pooled figure and mean over groups differ by a factor of 1.25 or more, and by "
        "more than they would if the group labels meant nothing (permutation test, "
        "Holm over keys).",
        "Quote the mean over groups as well, or the group figures themselves.",
    ),
    Check(
        "clustered",
        "Pairs of one model or device are not independent",
        sample.clustered,
        "pairs",
        "One-way random effects of the absolute percentage error over model and over device: "
        "permutation test of the F ratio (above 500 pairs Fisher's F test of the logarithms of the "
        "errors, which a heavy tail does not mislead), Holm over keys. Fires when significant and "
        "the design effect is 1.56 or more, which makes an interval a quarter "
        "wider.",
        "Report how many models or devices there are, not only how many pairs. Intervals draw "
        "whole models and devices; name another such key with --cluster KEY.",
    ),
    Check(
        "tail",
        "A few errors are far larger than the mean",
        shape.tail,
        "pairs",
        "Fires when the largest error is at least 1.25 times as far above the mean as in half of "
        "all samples of this size, or the worst tenth errs 1.25 times as much beside the others, "
        "and 95 % of samples of Laplace and of Student t errors (5 degrees of freedom) have less: "
        "normal, logistic and moderate log-normal errors have lighter tails than these. "
        "The share of cases below the largest error is the distribution-free tolerance limit "
        "(1 - confidence)^(1/n); where pairs of one cluster err alike, n is the number of "
        "clusters, and whole clusters stay below it.",
        "Quote the largest error, or a quantile, beside the mean, and look at the worst cases.",
    ),
    Check(
        "one-sided",
        "Most errors have one sign",
        shape.one_sided,
        "pairs",
        "Fires when at least 2 of 3 errors have one sign (twice as many as the other) and a "
        "binomial test says that this is no chance. What a single factor would remove is measured "
        "on pairs left out of its fit, one at a time.",
        "Where one factor helps, multiply predictions by one fitted on other measurements; where "
        "none does, look for what the errors have in common.",
    ),
    Check(
        "aggregation-not-stated",
        "The claim does not say how it was averaged",
        claim.aggregation_not_stated,
        "claim",
        "Fires when the claim's aggregation is not stated, the four averages of these pairs are "
        "1.25 times apart or more, and the mean does not print as the claim. A fact, no test.",
        "Say which average a figure of your own is (--aggregation mean); ask the source of one of "
        "theirs. Until then a small figure may be a median or a geometric mean.",
    ),
    Check(
        "aggregation-matters",
        "Mean, median, geometric mean and weighted mean disagree",
        shape.aggregation_matters,
        "pairs",
        "Fires when the largest of the four averages is at least twice the smallest and further "
        "from it than in 95 % of samples of Laplace errors of this size (whose mean is 1.78 times "
        "their geometric mean, the most of the usual shapes); or when a claim is printed as "
        "another average than the mean.",
        "Name the average with every figure; compare figures of one kind only.",
    ),
    Check(
        "small-quantities",
        "The smallest quantities set the MAPE",
        shape.small_quantities,
        "pairs",
        "Fires when small measurements have larger relative errors (rank correlation, one-sided "
        "permutation test) and the MAPE is at least 1.25 times the error weighted by size.",
        "Quote the weighted error (WAPE) for totals, and the MAPE for single cases.",
        needs_pairs=True,
    ),
    Check(
        "under-over-asymmetry",
        "Too low is cheaper than too high",
        shape.asymmetric_error,
        "pairs",
        "APE cannot exceed 100 % for predictions that are too low. Fires when counting the errors "
        "as factors, max(p/m, m/p) - 1, gives at least 1.25 times the MAPE (all predictions 20 % "
        "too low do), or when a prediction is not positive. A fact, no test.",
        "Compare predictors by the log ratio of prediction to measurement.",
    ),
    Check(
        "cancelling-errors",
        "Errors of opposite sign cancel in the sum",
        totals.groups_that_cancel,
        "pairs",
        "Looks at the groups of the keys grouped by, else of model, mode and kernel_class one by "
        "one; never of devices, whose times nobody adds. Fires when the total of one group is too "
        "low and that of another too high (t-tests of ratios of sums in groups of 5 pairs or more, "
        "Bonferroni over groups, Holm over keys), at least half of what the groups are off cancels "
        "in the total of all, and they are off 1.25 times as far as by chance around that total.",
        "Quote the groups. Another mix of them has another total: errcomp propagate says how the "
        "error of a sum follows from that of its parts.",
    ),
    Check(
        "cancelling-errors",
        "Errors of opposite sign cancel in the sum",
        totals.claimed_total,
        "claim",
        "Fires when the claim's aggregation is the total (a sum, or a difference of means), or "
        "when the error of the total prints as the claim and none of the four averages does; and "
        "the MAPE is at least 1.25 times as large. A fact, no test.",
        "Use such a figure for sums alone; quote the MAPE or the WAPE for single cases.",
    ),
    Check(
        "rounded-before-averaging",
        "The claim comes out only if errors are rounded first",
        claim.rounded_before_averaging,
        "claim",
        "Fires when the mean of the errors, each rounded to the decimals of the claim, prints as "
        "the claim and the exact mean does not. A fact, no test.",
        "Round once, at the end.",
        needs_pairs=True,
    ),
    Check(
        "p99-few-samples",
        "A high quantile from too few values",
        claim.quantile_claim,
        "claim",
        "Fires when the claim is a quantile and there are fewer pairs than a distribution-free "
        "bound for it needs: 299 for a P99 at 95 % confidence (n >= ln 0.05 / ln 0.99).",
        "Say which of the nine sample quantiles it is, or quote a lower quantile.",
        needs_pairs=True,
    ),
    Check(
        "level-mismatch",
        "The tools are about different things",
        tools.level_differs,
        "tools",
        "Fires between tools when their pairs are not at the same levels. A fact, no test.",
        "Rank tools of one level only.",
        needs_pairs=True,
    ),
    Check(
        "reference-mismatch",
        "The tools were compared with different references",
        tools.reference_differs,
        "tools",
        "Fires between tools when their pairs (column `reference`) have different references. A "
        "fact, no test.",
        "Rank tools with one reference only.",
        needs_pairs=True,
    ),
    Check(
        "coverage-differs",
        "The tools were run on different configurations",
        tools.coverage_differs,
        "tools",
        "Fires when a tool has less than 90 % of all configurations in the table, or its figure on "
        "those that all tools share differs from its own by a factor of 1.25 or more. A fact, no "
        "test.",
        "Compare on the configurations that all share, and report the coverage as a figure.",
        needs_pairs=True,
    ),
    Check(
        "simpsons-paradox",
        "Better in every group, worse over all",
        tools.simpsons_paradox,
        "tools",
        "Fires when a tool has the lower MAPE in every group of a key (device, model, mode, "
        "kernel_class) that two tools share, and the higher one over these groups together. A "
        "fact, no test; it cannot happen when both have the same configurations.",
        "Compare within groups, or by the mean over groups.",
        needs_pairs=True,
    ),
    Check(
        "under-over-asymmetry",
        "The ranking depends on whether too low is cheaper",
        tools.ranking_asymmetry,
        "tools",
        "Fires when one tool has the lower MAPE and the other the lower mean factor, "
        "max(p/m, m/p) - 1, on the configurations they share, both differences significant (paired "
        "t-tests, Holm over pairs of tools).",
        "Rank by the log ratio of prediction to measurement, or give both rankings.",
        needs_pairs=True,
    ),
    Check(
        "cancelling-errors",
        "The ranking depends on whether errors may cancel",
        totals.ranking_by_total,
        "tools",
        "Fires when one tool has the lower MAPE (paired t-test, Holm over pairs of tools) and the "
        "error of its total is 1.25 times that of the other or more, on the configurations they "
        "share. Says of the totals whether their difference could be chance.",
        "Rank at the level at which the tool is used, and set a constant beside it.",
        needs_pairs=True,
    ),
    Check(
        "other-base",
        "A relative difference has two values, one for each base",
        tools.other_base,
        "tools",
        "Fires when the difference of the two best tools, as a share of one figure and of the "
        "other, differs by a point or more: 10 % below is 11 % above. Not above a factor of two, "
        "which people quote as a factor. A fact, no test.",
        "Name the base, or quote both figures.",
        needs_pairs=True,
    ),
)


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
    everything: tuple[Check | Note, ...] = (*CHECKS, *ELSEWHERE, *PROPAGATED)
    found = [one for one in everything if one.code == code]
    if not found:
        codes = sorted({one.code for one in everything})
        hint = did_you_mean(str(code), codes)
        raise InputError(f"no caveat {code!r}. {hint}Caveats: {', '.join(codes)}")
    return "\n\n".join(f"{one.title}.\n{one.why}\nWhat to do: {one.remedy}" for one in found)


# Caveats of propagated totals, which `errcomp.propagation` attaches.

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
