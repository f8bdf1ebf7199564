"""Definitions of the technical terms in tables, notes and help, one plain sentence each.

All output uses these sentences: `--explain` prints them, pages show them in column headers and at
the end, and `tools/glossary.py` writes them to `docs/glossary.md`. The definitions of metrics come
from `errcomp.metrics`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from errcomp.metrics import FIGURES
from errcomp.report.model import ITEM, Note, Table, heading_of

TABLES = "Tables and their rows"
METRICS = "Metrics"
UNCERTAINTY = "Uncertainty"
RUNS = "From kernels to runs"
BANDS = "Bands"
CHOICES = "Choices"
TIME = "Time"
#: Pages of the documentation that terms link to.
AUDIT = "tutorials/audit-a-claim.md"
SUM = "tutorials/how-wrong-is-the-sum.md"
CORRECTION = "tutorials/calibrate-and-predict.md"
EXPIRY = "tutorials/when-does-it-expire.md"
METRIC = "choosing-a-metric.md"
CAVEATS = "caveats.md"
INTERVALS = "intervals.md"
PROPAGATION = "propagation.md"
CALIBRATION = "calibration.md"
HALF_LIFE = "half-life.md"
DECISIONS = "decisions.md"
MEASUREMENTS = "measurements.md"


class Term(NamedTuple):
    """A term with its definition and a link to the documentation."""

    name: str
    text: str
    section: str
    page: str
    """Page of the documentation with more details, optionally with a heading."""
    pattern: str = ""
    """Regular expression for the term in tables; default: its name."""

    def is_in(self, text: str) -> bool:
        """Return whether a text uses the term."""
        pattern = self.pattern or rf"\b{re.escape(self.name)}s?\b"
        # Patterns with a capital letter are case-sensitive: the column "Level" does not mean the
        # level of a test.
        flags = re.NOFLAG if self.pattern != self.pattern.lower() else re.I
        return re.search(pattern, text, flags) is not None


_CONCEPTS = (
    Term("Pair", "A prediction and the measurement of the same quantity.", TABLES, AUDIT),
    Term(
        "Claim",
        "A published accuracy, with the details that its source states: metric, aggregation, "
        "level, reference and the runs that it covers.",
        TABLES,
        AUDIT,
    ),
    Term(
        "Verdict",
        "Consistent, overstated, understated or not verifiable, depending on whether the interval "
        "of the recomputed metric contains the claim.",
        TABLES,
        AUDIT,
        r"\b(?:verdict|overstated|understated|not verifiable)",
    ),
    Term(
        "Aggregation",
        "Method that turns many errors into one number: mean, median, geometric mean, weighted "
        "mean, or error of the total.",
        TABLES,
        f"{METRIC}#all-figures",
    ),
    Term(
        "Level",
        "What is predicted: a kernel, a model (one forward pass or one iteration), a collective, "
        "a request or a system.",
        TABLES,
        f"{CAVEATS}#level-mismatch",
        r"\bLevel$",
    ),
    Term(
        "Reference",
        "What the measured values come from: hardware, an RTL simulation, another simulator or an "
        "estimate.",
        TABLES,
        f"{CAVEATS}#reference-mismatch",
    ),
    Term(
        "Configuration",
        "One combination of key values (device, model, batch, …) for which there is a prediction.",
        TABLES,
        f"{CAVEATS}#duplicated-configurations",
    ),
    Term(
        "Variant",
        "Another way of running the same workload: fused, distributed, another precision.",
        TABLES,
        f"{CAVEATS}#pooled-variants",
    ),
    Term(
        "Kernel",
        "One operation on a device, or one operator of a framework.",
        TABLES,
        PROPAGATION,
    ),
    Term(
        "Kernel class",
        "Kernels of one kind, such as matrix products, whose errors are similar.",
        TABLES,
        PROPAGATION,
        r"\bkernel class(?:es)?\b",
    ),
    Term("Run", "One end-to-end execution, made of kernels.", TABLES, CALIBRATION),
    Term(
        "Validation",
        "One prediction compared with one measurement under one software version.",
        TABLES,
        HALF_LIFE,
    ),
    Term(
        "History",
        "Validations of one predictor under several software versions.",
        TABLES,
        HALF_LIFE,
        r"\bhistor(?:y|ies)\b",
    ),
    Term(
        "Caveat",
        "A warning about what a result hides, with a stable code to look it up.",
        TABLES,
        CAVEATS,
    ),
    Term(
        "Driver",
        "A factor (variant, batch, mode) that changes the error; its effect is measured on "
        "configurations that differ in nothing else.",
        TABLES,
        f"{CAVEATS}#caveats-that-other-results-carry",
    ),
    Term(
        "APE",
        "Absolute percentage error of one pair: |predicted − measured| / measured.",
        METRICS,
        METRIC,
    ),
    Term(
        "Log-ratio",
        "ln(predicted / measured), also called log accuracy ratio: predictions of half and of "
        "twice the measured value are equally wrong.",
        METRICS,
        f"{METRIC}#two-predictors",
        r"\blog-ratio|\bpredicted / measured\b",
    ),
    Term(
        "Pooled",
        "Computed over all pairs together, so that large groups count more than small ones.",
        METRICS,
        f"{CAVEATS}#unbalanced-groups",
    ),
    Term(
        "Macro",
        "Mean of the metrics of the groups, so that every group counts the same.",
        METRICS,
        f"{CAVEATS}#unbalanced-groups",
        r"\bmacro\b",
    ),
    Term(
        "Skill",
        "One minus the ratio of a metric to the same metric of a baseline; 0 means no better "
        "than the baseline.",
        METRICS,
        f"{METRIC}#against-a-baseline",
    ),
    Term(
        "Noise floor",
        "The error that a perfect predictor would still show, because repeated measurements vary.",
        METRICS,
        MEASUREMENTS,
        r"\bnoise floor\b|\bnoise of one\b|\bfloor of mape\b",
    ),
    Term(
        "Interval",
        "Range of values that the metric may have for other configurations drawn like these, "
        "written `8.74 % [3.2, 44.0]`; `>999` marks an upper bound that is too high to be "
        "informative, `∞` means no upper bound.",
        UNCERTAINTY,
        INTERVALS,
        r"\bintervals?\b|\[\d+ %\]",
    ),
    Term(
        "Coverage",
        "Share of cases in which an interval or band contains the true value; the nominal coverage "
        "is the share that it is designed to have.",
        UNCERTAINTY,
        f"{INTERVALS}#coverage-in-simulations",
        r"\bcoverage\b|\bcovers?\b",
    ),
    Term(
        "Bootstrap",
        "Resampling the pairs with replacement, many times, to see how much a metric varies; "
        "bootstrap-t also divides the deviation of each sample by its standard error.",
        UNCERTAINTY,
        f"{INTERVALS}#which-interval-a-figure-gets",
    ),
    Term(
        "Jackknife",
        "Leaving out one pair or group at a time to see how much a metric varies.",
        UNCERTAINTY,
        INTERVALS,
    ),
    Term(
        "Tolerance statement",
        "The statement that, with 95 % confidence, at least a given share of further cases have "
        "smaller errors than the largest error seen, whatever the distribution of errors.",
        UNCERTAINTY,
        f"{CAVEATS}#tail",
        r"\btolerance\b",
    ),
    Term(
        "Cluster",
        "Pairs with correlated errors, because they share a model, a device or a release; the "
        "number of clusters limits how certain a result can be.",
        UNCERTAINTY,
        f"{CAVEATS}#clustered",
        r"\bcluster(?:s|ed)?\b",
    ),
    Term(
        "Effective number",
        "Number of independent pairs that would be as informative as the given pairs; for kernels, "
        "number of independent kernels whose errors would cancel as much (Kish).",
        UNCERTAINTY,
        f"{CAVEATS}#clustered",
    ),
    Term(
        "ICC",
        "Intraclass correlation: how similar the errors within a group are, from 0 (independent) "
        "to 1 (equal).",
        UNCERTAINTY,
        f"{CAVEATS}#clustered",
        r"\bintraclass\b|\bicc\b",
    ),
    Term(
        "CR2",
        "Standard error for clustered data, corrected for a small number of clusters; used with "
        "Bell and McCaffrey's degrees of freedom.",
        UNCERTAINTY,
        INTERVALS,
        r"\bcr2\b|\bmccaffrey\b",
    ),
    Term(
        "Degrees of freedom",
        "Amount of data behind an estimated spread; the fewer degrees of freedom, the wider the "
        "interval.",
        UNCERTAINTY,
        INTERVALS,
    ),
    Term(
        "Student t",
        "A distribution with heavier tails than the normal distribution; the fewer its degrees of "
        "freedom, the heavier its tails.",
        UNCERTAINTY,
        PROPAGATION,
    ),
    Term(
        "Holm correction",
        "Stricter significance limits when several tests are made, so that the probability of even "
        "one false alarm among them stays at the nominal level; Bonferroni's correction is simpler "
        "and stricter.",
        UNCERTAINTY,
        CAVEATS,
        r"\bholm\b|\bbonferroni\b",
    ),
    Term(
        "Benjamini-Hochberg",
        "Stricter significance limits when several tests are made, so that false alarms stay a "
        "small share of all alarms.",
        UNCERTAINTY,
        CAVEATS,
        r"\bbenjamini\b",
    ),
    Term(
        "Permutation test",
        "Compares a result with the results after shuffling the labels at random.",
        UNCERTAINTY,
        CAVEATS,
        r"\bpermutation",
    ),
    Term(
        "Censored",
        "Known only to lie beyond what was observed, such as the life of a model that is still "
        "valid.",
        UNCERTAINTY,
        HALF_LIFE,
    ),
    Term(
        "Propagation",
        "Computing the error of a sum, a maximum or a queue from the errors of its parts.",
        RUNS,
        SUM,
        r"\bpropagat(?:ion|ed|e)\b",
    ),
    Term(
        "Assumption",
        "What is assumed about the correlation of the errors of a run's kernels; this determines "
        "how much the errors cancel in the total.",
        RUNS,
        PROPAGATION,
    ),
    Term(
        "Independent",
        "Assumption that the errors of kernels are independent, so that they largely cancel.",
        RUNS,
        PROPAGATION,
        r"^Independent$",
    ),
    Term(
        "Repeats",
        "Assumption that the same kernel with the same shape always has the same error.",
        RUNS,
        PROPAGATION,
        r"^Repeats$",
    ),
    Term(
        "Classes",
        "Assumption that all kernels of one class have the same error.",
        RUNS,
        PROPAGATION,
        r"^Classes$",
    ),
    Term(
        "Estimated",
        "Assumption that the errors of kernels are correlated as estimated from measured runs.",
        RUNS,
        PROPAGATION,
        r"^Estimated$",
    ),
    Term(
        "Comonotonic",
        "Assumption that all errors go in the same direction together, so that nothing cancels and "
        "the sum has the largest possible standard deviation.",
        RUNS,
        PROPAGATION,
    ),
    Term(
        "Unknown",
        "No assumption about the correlation of errors; the bands are bounds that hold for any "
        "correlation.",
        RUNS,
        PROPAGATION,
        r"^Unknown$",
    ),
    Term(
        "Growth",
        "Growth factor: relative error of the run divided by the relative error of its kernels; "
        "1 means that nothing cancels.",
        RUNS,
        SUM,
    ),
    Term(
        "Composition gap",
        "Measured time of a run minus the sum of the times of its kernels: launches, "
        "synchronisation, overlap; it may be negative.",
        RUNS,
        CALIBRATION,
    ),
    Term(
        "Calibration",
        "Fitting a model of the composition gap, or a correction of kernel times, to measured "
        "runs.",
        RUNS,
        CORRECTION,
        r"\bcalibrat(?:ion|ed|e)\b",
    ),
    Term(
        "Partial pooling",
        "Estimating the value of a group from its own data and from the data of all groups; the "
        "less data the group has, the more the other groups count.",
        RUNS,
        CALIBRATION,
    ),
    Term(
        "Leave-model-out",
        "Evaluation in which each model is left out of the fit once and then predicted; "
        "leave-device-out does the same for devices.",
        RUNS,
        f"{CALIBRATION}#evaluate",
        r"\bleave-\w+(?:-and-\w+)?-out\b|\bheld[- ]out\b|\bleft out in turn\b",
    ),
    Term(
        "Band",
        "Range for the value of a single run; an interval is a range for a metric over many runs.",
        BANDS,
        CORRECTION,
    ),
    Term(
        "Conformal",
        "A band whose width comes from the errors on held-out cases; it has its nominal coverage "
        "if the held-out cases and the new case are exchangeable.",
        BANDS,
        CALIBRATION,
    ),
    Term(
        "Exchangeable",
        "Cases whose order carries no information, so that a new case is as likely as any earlier "
        "case to have the largest error; runs on a new device are not exchangeable with runs on "
        "known devices.",
        BANDS,
        CALIBRATION,
        r"\bexchangeab",
    ),
    Term(
        "PIT",
        "Probability integral transform: the share of the predicted distribution below the "
        "measured value; over many cases, these shares are evenly spread between 0 and 1 if the "
        "distributions are right.",
        BANDS,
        PROPAGATION,
    ),
    Term(
        "Score",
        "Interval score: width of a band plus a penalty for each measurement outside it; lower "
        "is better (Gneiting and Raftery 2007).",
        BANDS,
        PROPAGATION,
        r"\bScore\b|\binterval score\b",
    ),
    Term(
        "Pinball loss",
        "Score of a predicted quantile q: a value that is too low costs q times the distance, a "
        "value that is too high costs 1 − q times the distance; lower is better.",
        BANDS,
        CALIBRATION,
        r"\bpinball\b",
    ),
    Term(
        "CRPS",
        "Continuous ranked probability score: distance of a whole predicted distribution from "
        "the measured value; if the prediction is a single number, the score is the absolute "
        "error.",
        BANDS,
        f"{CALIBRATION}#evaluate",
    ),
    Term(
        "Log score",
        "Logarithm of the probability that a model gave to the observed outcome; higher is better.",
        BANDS,
        HALF_LIFE,
    ),
    Term(
        "Most confident 80 %",
        "The 80 % of runs with the narrowest bands; if the bands are informative, these runs have "
        "smaller errors than the others.",
        BANDS,
        f"{CALIBRATION}#evaluate",
        r"\bmost confident\b",
    ),
    Term(
        "Comparison",
        "Two alternatives under equal conditions, such as two devices that run the same model.",
        CHOICES,
        DECISIONS,
    ),
    Term(
        "P faster",
        "Probability that the first of two alternatives is the faster, given their predictions "
        "and the errors of the predictor on other rows.",
        CHOICES,
        f"{DECISIONS}#probabilities",
        r"\bp faster\b",
    ),
    Term(
        "P best",
        "Probability that no other alternative is faster.",
        CHOICES,
        f"{DECISIONS}#choosing-what-nobody-measured",
        r"\bp best\b",
    ),
    Term(
        "Expected regret",
        "Share of time that a choice is expected to lose: time of the chosen alternative divided "
        "by the time of the best, minus 1, averaged over the possible true times.",
        CHOICES,
        f"{DECISIONS}#choosing-what-nobody-measured",
        r"\bexpected regret\b",
    ),
    Term(
        "Called",
        "A comparison in which one alternative is better with at least the required probability, "
        "by default 90 %; all other comparisons are too close to call.",
        CHOICES,
        f"{DECISIONS}#probabilities",
        r"\bcalled:|\btoo close to call\b",
    ),
    Term(
        "Half-life",
        "Time, or number of releases, after which the error of a calibrated model has doubled.",
        TIME,
        EXPIRY,
        r"\bhalf-li(?:fe|ves)\b",
    ),
    Term(
        "Median survival",
        "Time, or number of releases, after which half of the series have expired.",
        TIME,
        HALF_LIFE,
    ),
    Term(
        "Expired",
        "A series expires at the first release at which its error exceeds its limit by more than "
        "noise explains.",
        TIME,
        HALF_LIFE,
        r"\bexpir(?:ed|es|y)\b",
    ),
    Term(
        "Possibly still valid",
        "Series whose error never exceeded its limit by more than noise explains, at any release.",
        TIME,
        HALF_LIFE,
    ),
    Term(
        "Series",
        "One kernel, or one input of one network, that is validated under each version.",
        TIME,
        HALF_LIFE,
        r"\bSeries\b",
    ),
    Term(
        "Step",
        "A lasting change of predicted / measured at one release.",
        TIME,
        HALF_LIFE,
    ),
    Term(
        "Drift",
        "Lasting change of an error over releases, in a few steps or in many small changes; a "
        "variogram shows how far errors drift apart as the number of releases between them grows.",
        TIME,
        HALF_LIFE,
        r"\bdrifts?\b|\bvariogram\b",
    ),
    Term(
        "Promise",
        "The error that a model is promised not to exceed; by default, in forecasts, twice the "
        "error at calibration.",
        TIME,
        HALF_LIFE,
        r"\bpromised?\b",
    ),
    Term(
        "Look",
        "One check of a new version against a history (`errcomp halflife check`); the false alarm "
        "rate is the probability of any false alarm in the first 1,000 looks.",
        TIME,
        HALF_LIFE,
        r"\blook \d|\blooks\b",
    ),
    Term(
        "As measured",
        "Computed from the errors as they are, without allowing for noise in the measurements.",
        TIME,
        HALF_LIFE,
    ),
)


@cache
def terms() -> tuple[Term, ...]:
    """Return all terms: those of this module, and every metric with its definition."""
    metrics = (
        Term(
            heading_of(figure.label),
            f"{figure.definition[0].upper()}{figure.definition[1:]}",
            METRICS,
            f"{METRIC}#all-figures",
            rf"(?<![\w-]){re.escape(figure.label.lower())}(?!\w)",
        )
        for figure in FIGURES.values()
    )
    names = list(dict.fromkeys(term.section for term in _CONCEPTS))
    return tuple(sorted([*_CONCEPTS, *metrics], key=lambda term: names.index(term.section)))


def term_of(header: str) -> Term | None:
    """Return the term that a column header names, or None.

    Examples
    --------
    >>> term_of("Growth").name, term_of("MAPE [95 %]").name, term_of("Device")
    ('Growth', 'MAPE', None)
    """
    name = re.sub(r" \[.*\]$", "", header)
    return next((term for term in terms() if term.name.lower() == name.lower()), None)


def terms_in(tables: Iterable[Table]) -> list[Term]:
    """Return the terms in titles, column headers, key columns and notes, sorted by name."""
    texts = set()
    for table in tables:
        texts.add(table.title)
        texts.update(note.text for note in table.remarks())
        texts.update(column.header for column in table.columns)
        keys = [column for column in table.columns if column.key and not column.right]
        texts.update(heading_of(key.cell(row).text) for key in keys for row in table.rows)
    found = [term for term in terms() if any(term.is_in(text) for text in texts)]
    return sorted(found, key=lambda term: term.name.lower())


def explained(tables: Iterable[Table]) -> Table:
    """Return a table whose notes explain the terms that other tables use."""
    notes = [Note(f"{term.name}: {term.text}", ITEM) for term in terms_in(tables)]
    return Table("Terms in these tables", (), (), notes)
