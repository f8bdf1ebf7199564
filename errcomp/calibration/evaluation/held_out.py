"""Predictions of held-out runs, their measurements, and comparisons of their errors.

Intervals of differences respect clusters: runs of one model, or device, have correlated errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import LEVELS, QUANTILES, Design, Floats, Names, Task
from errcomp.calibration.evaluation.splits import Split, SplitName
from errcomp.calibration.features import KERNEL_LAUNCHES, names_per_run
from errcomp.calibration.features import design as design_of
from errcomp.calibration.predictions import Predictions
from errcomp.calibration.preparing import runs_at, usable_runs
from errcomp.codec import (
    Count,
    Derived,
    Document,
    Field,
    Part,
    Positive,
    Rows,
    Undefined,
    key,
    plain_keys,
    words,
)
from errcomp.codec import Names as Schemas
from errcomp.errors import ErrcompError, InputError, describe_names
from errcomp.metrics.intervals import estimate_of
from errcomp.metrics.intervals._kinds import Request
from errcomp.metrics.intervals._smooth import Cells, Single, spreads_of
from errcomp.metrics.intervals.dependence import dependence
from errcomp.results import Estimate, FlatEstimate
from errcomp.system.processes import map_jobs
from errcomp.tables import Kernels

#: Predicts held-out runs.
Predict = Callable[[Kernels], Predictions]
#: Fits everything to the given runs; returns the functions that predict, by estimator.
Make = Callable[[Kernels], Mapping[str, Predict]]


#: Launches with this share of the kernels' time are noted, as hiding them or not is an error.
_LAUNCHES_FROM = 0.05
_PERCENT = {level: f"{100 * level:g}" for level in LEVELS}
_LEVEL = 0.95
_SPLIT = key("split", "split", SplitName)
_RUNS = Rows(
    "runs",
    {
        **{name: (name, str, words) for name in ("run", "group", "device", "model")},
        **{name: (name, Positive, np.array) for name in ("measured", "total", "predicted")},
        "calibrated": ("calibrated", bool, np.array),
        **{
            f"{end}_{percent}": (f"{end}_{percent}", Annotated[float, Undefined], np.array)
            for percent in _PERCENT.values()
            for end in ("low", "high")
        },
    },
    fewest=1,
)


class _Runs(Part):
    """One row per run, without the quantiles; null where a band has no end."""

    def write(self, held: HeldOut) -> Mapping[str, Any]:
        ends = {
            f"{end}_{percent}": getattr(held, end)[:, i]
            for i, percent in enumerate(_PERCENT.values())
            for end in ("low", "high")
        }
        arrays = {field.name: getattr(held, field.name) for field in fields(held)}
        return _RUNS.write(SimpleNamespace(**arrays, **ends))

    def read(self, field: Field) -> Mapping[str, Any]:
        columns = dict(_RUNS.read(field))
        low, high = (
            np.array([columns.pop(f"{end}_{percent}") for percent in _PERCENT.values()]).T
            for end in ("low", "high")
        )
        # A refused band has no ends; any other has at least a lower end.
        high = np.where(np.isnan(high) & ~np.isnan(low), np.inf, high)
        quantiles = np.full((len(low), len(QUANTILES)), np.nan)
        return {**columns, "low": low, "high": high, "quantiles": quantiles}

    def schema(self, names: Schemas) -> dict[str, dict[str, Any]]:
        return _RUNS.schema(names)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut(Document):
    """Held-out predictions of one estimator in one split; arrays of shape (n,).

    Attributes
    ----------
    run, group, device, model : ndarray of str
        `group` is the group that was held out with the run.
    measured, total, predicted : ndarray
        Measured end-to-end time, sum of kernels, predicted median.
    low, high : ndarray, shape (n, len(LEVELS))
        NaN where a band was refused.
    quantiles : ndarray, shape (n, len(QUANTILES))
    calibrated : ndarray of bool
        Whether the band was calibrated.
    """

    KEYS: ClassVar = (_Runs(),)

    run: Names
    group: Names
    device: Names
    model: Names
    measured: Floats
    total: Floats
    predicted: Floats
    low: Floats
    high: Floats
    quantiles: Floats
    calibrated: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.run)

    @property
    def ape(self) -> Floats:
        """Absolute error of each run, as a share of its measurement."""
        return np.abs(self.predicted / self.measured - 1)

    @property
    def width(self) -> Floats:
        """Width of the 90 % band of each run, as a share of its prediction."""
        at = LEVELS.index(0.9)
        return (self.high[:, at] - self.low[:, at]) / self.predicted

    @property
    def cell(self) -> Names:
        """Device and model of each run; its name where neither is known."""
        known = zip(self.run, self.device, self.model, strict=True)
        return np.array([f"{d} / {m}" if d or m else r for r, d, m in known], dtype=object)

    def take(self, index: NDArray[Any]) -> Self:
        """Return the runs at these positions, or under this mask.

        Examples
        --------
        >>> names, ones = np.array(["a", "b"], dtype=object), np.ones(2)
        >>> bands = np.empty((2, 0))
        >>> held = HeldOut(names, names, names, names, 2 * ones, ones, 3 * ones, bands, bands,
        ...                bands, ones > 0)
        >>> len(held.take(held.run == "a"))
        1
        """
        return type(self)(*(getattr(self, field.name)[index] for field in fields(self)))

    def naive(self) -> Self:
        """Return the same runs with the sum of their kernels as the prediction, without bands.

        Examples
        --------
        >>> names, ones = np.array(["a", "b"], dtype=object), np.ones(2)
        >>> bands = np.empty((2, 0))
        >>> held = HeldOut(names, names, names, names, 2 * ones, ones, 3 * ones, bands, bands,
        ...                bands, ones > 0)
        >>> held.naive().predicted.tolist()
        [1.0, 1.0]
        """
        without = {
            name: np.full_like(getattr(self, name), np.nan) for name in ("low", "high", "quantiles")
        }
        without["calibrated"] = np.zeros(len(self), dtype=bool)
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self)(**{**values, **without, "predicted": self.total})


@dataclass(frozen=True, slots=True)
class Refused(Document):
    """Runs that an estimator did not predict, and why.

    Attributes
    ----------
    split, estimator, held_out : str
        `estimator` is empty if nothing could be fitted.
    n : int
        Runs held out.
    reason : str
    """

    KEYS: ClassVar = (_SPLIT, "estimator", "held_out", "n", "reason")

    split: str
    estimator: str
    held_out: str
    n: Count
    reason: str


def judged_runs(kernels: Kernels, task: Task) -> tuple[Kernels, Design, tuple[str, ...]]:
    """Return the runs with a sum of kernels and a measurement, as kernels and as a design.

    The design has no features; it gives device and model of each run. The third value is the names
    of the other runs.

    Raises
    ------
    InputError
        No run has both.
    """
    used, unused = usable_runs(kernels, task)
    table = used.totals()
    keys = {name: names_per_run(used, name) for name in ("device", "model", "mode")}
    design = Design(
        run=table.run,
        total=table.measured if task == "composition" else table.predicted,
        measured=table.run_measured,
        x=np.empty((len(table), 0)),
        names=(),
        unit=table.unit,
        task=task,
        **keys,
    )
    return used, design, tuple(map(str, unused))


def known_of(kernels: Kernels, task: Task) -> dict[str, str]:
    """Return by run the anomalies of its kernels: too slow, many launches, beyond memory."""
    runs = design_of(usable_runs(kernels, task)[0], task=task)
    slow = runs.x[:, runs.names.index("slow_kernels")]
    launches = runs.x[:, [runs.names.index(n) for n in KERNEL_LAUNCHES]].sum(axis=1)
    memory = runs.x[:, runs.names.index("memory_share")]
    known = {}
    for i, run in enumerate(runs.run.tolist()):
        words = []
        if slow[i] < 0:
            words.append(
                f"kernels {100 * math.expm1(-slow[i]):.0f} % slower than other runs suggest"
            )
        if launches[i] > _LAUNCHES_FROM:
            words.append(f"launches: {100 * launches[i]:.1f} % of kernel time")
        if memory[i] > 1:
            words.append("outputs exceed device memory")
        if words:
            known[run] = "; ".join(words)
    return known


def hide_truth(kernels: Kernels, task: Task) -> Kernels:
    """Return the kernels without the measured time of their runs.

    For a prediction also without the measured time of the kernels.
    """
    part = kernels.take(np.arange(kernels.n))
    part.run_measured = np.full(part.n, np.nan)
    if task == "prediction":
        part.measured = np.full(part.n, np.nan)
    return part


def held_out(
    make: Make,
    kernels: Kernels,
    design: Design,
    name: str,
    parts: Sequence[Split],
    *,
    estimators: Sequence[str] | None,
    n_jobs: int | None,
    progress: Callable[[], None],
) -> tuple[dict[str, HeldOut], list[Refused]]:
    """Fit without each group and predict it; return predictions by estimator, and refusals."""
    by_estimator: dict[str, list[HeldOut]] = {}
    refused: list[Refused] = []
    fold = partial(_fold, make, kernels, design, name, estimators)
    for pieces, missing in map_jobs(fold, parts, n_jobs=n_jobs):
        for estimator, piece in pieces.items():
            by_estimator.setdefault(estimator, []).append(piece)
        refused += missing
        progress()
    return {estimator: _joined(pieces) for estimator, pieces in by_estimator.items()}, refused


def _fold(
    make: Make,
    kernels: Kernels,
    design: Design,
    name: str,
    estimators: Sequence[str] | None,
    part: Split,
) -> tuple[dict[str, HeldOut], list[Refused]]:
    """Fit without one group and predict it."""
    by_estimator: dict[str, HeldOut] = {}
    refuse = partial(Refused, name, held_out=part.held_out, n=len(part.test))
    try:
        if not len(part.train):
            raise InputError(
                "every other run has the held-out device or model, so no run is left to fit to"
            )
        predictors = make(runs_at(kernels, part.train))
    except ErrcompError as error:
        return by_estimator, [refuse(estimator="", reason=str(error))]
    refused = []
    test = hide_truth(runs_at(kernels, part.test), design.task)
    for estimator in _chosen(predictors, estimators):
        try:
            predictions = predictors[estimator](test)
        except ErrcompError as error:
            refused.append(refuse(estimator=estimator, reason=str(error)))
            continue
        truth = design.take(part.test)
        by_estimator[estimator] = _matched(predictions, truth, part.held_out, estimator)
    return by_estimator, refused


def _chosen(predictors: Mapping[str, Predict], wanted: Sequence[str] | None) -> Sequence[str]:
    missing = [name for name in wanted or () if name not in predictors]
    if missing:
        raise InputError(
            f"not among the fitted estimators: {describe_names(missing)}. Fitted: "
            f"{describe_names(list(predictors))}"
        )
    return list(predictors) if wanted is None else wanted


def _matched(predictions: Predictions, truth: Design, group: str, estimator: str) -> HeldOut:
    """Match predictions with the truth by the names of the runs."""
    position = {run: i for i, run in enumerate(predictions.run.tolist())}
    answered = [run for run in truth.run.tolist() if run in position]
    fine = len(answered) == len(truth) == len(predictions)
    order = np.array([position[run] for run in answered], dtype=np.int64)
    predicted = predictions.predicted[order]
    bad = ~(np.isfinite(predicted) & (predicted > 0))
    unusable = [str(run) for run in np.array(answered, dtype=object)[bad]]
    if not fine or unusable:
        raise InputError(
            f"{estimator}, {group} held out: each run needs one prediction above 0, got "
            f"{len(predictions)} predictions for {len(truth)} runs"
            + (f", with unusable values for {describe_names(unusable)}" if unusable else "")
        )
    bands = (predictions.low, predictions.high, predictions.quantiles)
    shapes = [values.shape[1:] for values in bands]
    if shapes != [(len(LEVELS),), (len(LEVELS),), (len(QUANTILES),)]:
        raise InputError(
            f"{estimator}: low and high must have one column per level {LEVELS}, and quantiles one "
            f"column for each of the {len(QUANTILES)} probabilities in QUANTILES, got columns of "
            f"shape {shapes[0]}, {shapes[1]} and {shapes[2]}"
        )
    return HeldOut(
        run=truth.run,
        group=np.full(len(truth), group, dtype=object),
        device=truth.device,
        model=truth.model,
        measured=truth.measured,
        total=truth.total,
        predicted=predicted,
        low=predictions.low[order],
        high=predictions.high[order],
        quantiles=predictions.quantiles[order],
        calibrated=predictions.calibrated[order],
    )


def _joined(pieces: Sequence[HeldOut]) -> HeldOut:
    return HeldOut(
        *(np.concatenate([getattr(p, field.name) for p in pieces]) for field in fields(HeldOut))
    )


#: Fewest clusters for the interval of a difference.
_FEWEST_CLUSTERS = 5

#: Clusters of runs. Where device and model are both new, errors are correlated within either, so
#: both keys count. Vendors are too few to be clusters.
_CLUSTERS = {
    "leave-model-out": ("model",),
    "leave-device-out": ("device",),
    "leave-model-and-device-out": ("device", "model"),
    "leave-vendor-out": ("device",),
    "random": ("cell",),
}


@dataclass(frozen=True, slots=True)
class Difference(Document):
    """Mean error of an estimator in a split minus that of another estimator, or another split.

    Attributes
    ----------
    split, estimator : str
    against : str
        The other estimator, or the other split.
    n : int
        Runs that both predicted.
    mean_ape, mean_ape_against : float
        MAPE of each on these runs.
    difference : Estimate
        The first minus the second, a fraction: -0.01 is one point less.
    """

    KEYS: ClassVar = (
        *(_SPLIT, "estimator", "against", "n", "mean_ape", "mean_ape_against"),
        FlatEstimate("difference", "mean_ape_difference", _LEVEL),
        Derived("outcome", str, lambda difference: difference.outcome),
    )

    split: str
    estimator: str
    against: str
    n: Count
    mean_ape: float
    mean_ape_against: float
    difference: Estimate

    @property
    def outcome(self) -> Literal["better", "worse", "undecided"]:
        """Whether the interval of the difference is below 0, above 0, or neither."""
        if self.difference.low is None or self.difference.high is None:
            return "undecided"
        if self.difference.high < 0:
            return "better"
        return "worse" if self.difference.low > 0 else "undecided"


class _Cost(Part):
    """The effect of holding out a whole vendor; its two errors are stored elsewhere."""

    def write(self, transfer: VendorTransfer) -> Mapping[str, Any]:
        return plain_keys(transfer.cost.difference.to_row("cost_mean_ape_difference"))

    def read(self, field: Field) -> Mapping[str, Any]:
        n, unseen = field.at("n_unseen").value, field.at("unseen").value
        name = "mean_ape_difference"
        known = {"figure": name, "level": _LEVEL, "method": "", "n": n}
        effect = Estimate.from_row(field, f"cost_{name}", **known)
        cost = Difference(
            split="leave-vendor-out",
            estimator=field.at("estimator").value,
            against="leave-device-out",
            n=n,
            mean_ape=unseen,
            mean_ape_against=unseen - effect.value,
            difference=effect,
        )
        return {"cost": cost}

    def schema(self, names: Schemas) -> dict[str, dict[str, Any]]:
        number = {"type": ["number", "null"]}
        return {f"cost_mean_ape_difference{end}": number for end in ("", "_low", "_high")}


@dataclass(frozen=True, slots=True)
class VendorTransfer(Document):
    """The cost of holding out all devices of a vendor.

    Attributes
    ----------
    estimator, vendor : str
    n_unseen, n_seen : int
        Runs of the vendor, and of all others.
    unseen : float
        Mean APE on the vendor's runs, with all its devices held out.
    seen : float
        Mean APE on the runs of the other vendors, with each device held out alone.
    gap : float
        ``unseen - seen``. Vendors also differ in difficulty, so it is not an effect. There are too
        few vendors for an interval.
    cost : Difference
        The effect: the vendor's runs with all its devices held out, against the same runs with
        only their own device held out.
    """

    KEYS: ClassVar = (
        *("estimator", "vendor", "n_unseen", "n_seen", "unseen", "seen", "gap"),
        _Cost(),
    )

    estimator: str
    vendor: str
    n_unseen: Count
    n_seen: Count
    unseen: float
    seen: float
    gap: float
    cost: Difference


def clusters_of(split: str, held: HeldOut) -> dict[str, Names]:
    """Return the clusters of the runs by the name of their key, the coarser first."""
    return {name: getattr(held, name) for name in _CLUSTERS[split]}


def figure_of(name: str, held: HeldOut, clusters: Mapping[str, Names], seed: int) -> Estimate:
    """Compute a metric of the errors, with its interval over the clusters."""
    ask = Request("default", 0.95, 9999, seed, dependence(dict(clusters), given=True))
    estimate = estimate_of(name, predicted=held.predicted, measured=held.measured, ask=ask)
    return replace(estimate, caveats=())


def mean_in_clusters(
    values: Floats, clusters: Mapping[str, Names], *, figure: str, level: float = 0.95
) -> Estimate:
    r"""Mean of signed values, with correlated values within a cluster.

    .. math:: \bar d \pm t_\nu \, s

    with the cluster-robust standard error s and its degrees of freedom, two-way where two keys
    cross; see `errcomp.metrics.intervals._smooth.of_clusters`.
    """
    from scipy.special import stdtrit

    n, mean = len(values), float(values.mean())
    definition = "mean over the runs"
    drawn = dependence(dict(clusters), given=True)
    if drawn.reason or (drawn.units or n) < _FEWEST_CLUSTERS:
        words = drawn.words or f"{n} runs"
        reason = drawn.reason or f"no interval from {words}: at least 5 are needed"
        return Estimate(figure, mean, method=reason, n=n, definition=definition)
    r, ones = values - mean, np.ones(n)
    spread = spreads_of(Cells(r, ones, ones, Single(float(r @ r), n, float(n))), drawn)[-1]
    room = spread.error * float(stdtrit(spread.freedom, (1 + level) / 2))
    method = f"Student t, {drawn.words or f'{n} runs'}"
    return Estimate(figure, mean, mean - room, mean + room, level, method, n, definition=definition)


def difference(
    held: HeldOut, other: HeldOut, *, split: str, estimator: str, against: str
) -> Difference | None:
    """Compare two sets of predictions on their common runs; None without such runs."""
    position = {run: i for i, run in enumerate(other.run.tolist())}
    both = np.array([run in position for run in held.run.tolist()], dtype=bool)
    if not both.any():
        return None
    left = held.take(both)
    right = other.take(np.array([position[run] for run in left.run.tolist()], dtype=np.int64))
    gap = mean_in_clusters(
        left.ape - right.ape, clusters_of(split, left), figure="mean_ape_difference"
    )
    means = float(left.ape.mean()), float(right.ape.mean())
    return Difference(split, estimator, against, len(left), *means, gap)


def verdict(differences: Sequence[Difference]) -> str:
    """Name the baselines that were beaten, possibly beaten, and not beaten."""
    parts = []
    for phrase, each, chosen in (
        (
            "beats {}",
            "{} (MAPE {} percentage points lower)",
            [d for d in differences if d.outcome == "better"],
        ),
        (
            "may beat {}",
            "{} (MAPE {} percentage points lower, not significant)",
            [d for d in differences if d.outcome == "undecided" and d.difference.value < 0],
        ),
        (
            "does not beat {}",
            "{} (MAPE {} percentage points higher)",
            [d for d in differences if d.outcome != "better" and d.difference.value >= 0],
        ),
    ):
        names = ", ".join(each.format(d.against, _points(d.difference.value)) for d in chosen)
        if names:
            parts.append(phrase.format(names))
    return "; ".join(parts)


def _points(value: float) -> str:
    """Write the size of a difference in points, with the digit of its intervals."""
    points = 100 * abs(value)
    return f"{points:.1f}" if points >= 0.05 or not points else "less than 0.1"


def vendor_transfers(
    estimator: str, unseen: HeldOut, by_device: HeldOut
) -> tuple[VendorTransfer, ...]:
    """Compare, for each vendor, its runs with all its devices held out or only their own."""
    transfers = []
    of_run = dict(zip(unseen.run.tolist(), unseen.group.tolist(), strict=True))
    vendor = np.array([of_run.get(run, "") for run in by_device.run.tolist()], dtype=object)
    for name in dict.fromkeys(unseen.group.tolist()):
        part = unseen.take(unseen.group == name)
        others = by_device.take((vendor != name) & (vendor != ""))
        cost = difference(
            part,
            by_device,
            split="leave-vendor-out",
            estimator=estimator,
            against="leave-device-out",
        )
        if cost is None or not len(others):
            continue
        missed, seen = float(part.ape.mean()), float(others.ape.mean())
        transfers.append(
            VendorTransfer(
                estimator, str(name), len(part), len(others), missed, seen, missed - seen, cost
            )
        )
    return tuple(transfers)
