"""Evaluates held-out predictions of an estimator: errors, bands, scores, abstention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from errcomp.calibration.design import LEVELS, QUANTILES, Floats, Names
from errcomp.calibration.evaluation.held_out import (
    Difference,
    HeldOut,
    clusters_of,
    difference,
    figure_of,
    verdict,
)
from errcomp.calibration.evaluation.scoring import (
    ROUNDING,
    Abstention,
    abstention_curve,
    answered,
    crps_from_quantiles,
    pit_from_quantiles,
)
from errcomp.calibration.evaluation.splits import SplitName
from errcomp.codec import (
    Count,
    Derived,
    Document,
    Each,
    Field,
    Meta,
    Part,
    Positive,
    Shape,
    Share,
    Undefined,
    closed,
    if_known,
    key,
    plain_keys,
    shape_of,
)
from errcomp.codec import Names as Schemas
from errcomp.metrics import figure

# The same score and interval as `errcomp.propagation.validate`.
from errcomp.metrics.bands import coverage_interval, interval_score
from errcomp.results import VALUE, Estimate, FlatEstimate

#: All runs, or those without firm evidence against them.
JudgedRuns = Literal["all", "not flagged"]
#: Names of the metrics in rows, and in `errcomp.metrics`.
_FIGURES = {
    "mean_ape": "mape",
    "median_ape": "median_ape",
    "p90_ape": "p90_ape",
    "max_ape": "max_ape",
    "bias": "bias",
}
PERCENT = {level: f"{100 * level:g}" for level in LEVELS}
#: Level of all intervals here.
_LEVEL = 0.95
_FIGURE_PARTS = tuple(FlatEstimate(name, name, _LEVEL, f"{name}_method") for name in _FIGURES)
_SHARE = shape_of(Annotated[Share, Undefined])
_ANSWERED_SHARE, _AREA, _COUNT = shape_of(Share), shape_of(float), shape_of(Count)
_NUMBERS = shape_of(Annotated[Floats, Each(float)])
#: Keys of the bands of a level, the fields of `BandRow` and their shapes.
_BAND: Mapping[str, tuple[str, Shape]] = {
    "coverage_{}": ("coverage", _SHARE),
    "coverage_{}_low": ("coverage_low", _SHARE),
    "coverage_{}_high": ("coverage_high", _SHARE),
    "mean_width_{}": ("mean_width", VALUE),
    "interval_score_{}": ("interval_score", VALUE),
    "bands_{}": ("n", _COUNT),
    "unbounded_{}": ("unbounded", _COUNT),
}
#: Share of the runs in the goal for abstention.
_ANSWERED = 0.8
#: A group with at least this number of runs is named when less than this share is covered.
_GROUP_RUNS, _GROUP_COVERAGE = 5, 0.6
_PIT_BINS = 10
_WORST = 5


@dataclass(frozen=True, slots=True)
class BandRow:
    """Coverage, width and score of the bands of one level.

    Attributes
    ----------
    level : float
        Nominal coverage.
    n : int
        Runs with a band; the bands of the others were refused.
    unbounded : int
        Bands among them without an upper end.
    coverage, coverage_low, coverage_high : float
        Share of the runs inside, with a 95 % interval for correlated runs of a cluster. NaN
        without bands.
    mean_width : float
        Width as a share of the prediction, mean over the runs; infinite if one is unbounded.
    interval_score : float
        As a share of the sum of kernels, mean over the runs; lower is better. The sum is the same
        for all estimators: dividing by its own prediction would favour one that predicts too much.
    """

    level: float
    n: int
    unbounded: int
    coverage: float
    coverage_low: float
    coverage_high: float
    mean_width: float
    interval_score: float


class _Coverage(Part):
    """By level, the share of a group's runs inside, with its interval."""

    def write(self, group: GroupRow) -> Mapping[str, Any]:
        columns: dict[str, Any] = {}
        for level, share in group.coverage.items():
            name = f"coverage_{PERCENT[level]}"
            low, high = group.interval[level]
            columns |= {name: share, f"{name}_low": low, f"{name}_high": high}
        return plain_keys(columns)

    def read(self, field: Field) -> Mapping[str, Any]:
        def share(name: str) -> float:
            value: float = _SHARE.read(field.at(name))
            return value

        names = {level: f"coverage_{percent}" for level, percent in PERCENT.items()}
        return {
            "coverage": {level: share(name) for level, name in names.items()},
            "interval": {
                level: (share(f"{name}_low"), share(f"{name}_high"))
                for level, name in names.items()
            },
        }

    def schema(self, names: Schemas) -> dict[str, dict[str, Any]]:
        return {
            f"coverage_{percent}{end}": _SHARE.schema(names)
            for percent in PERCENT.values()
            for end in ("", "_low", "_high")
        }


@dataclass(frozen=True, slots=True)
class GroupRow(Document):
    """One held-out group.

    Attributes
    ----------
    group : str
    n : int
    mean_ape : float
    coverage : mapping of float to float
        By level, the share of its runs inside; NaN without bands.
    interval : mapping of float to (float, float)
        95 % interval of that share, for correlated runs of one model on one device: from 0 to 1
        if the group has only one such cell.
    """

    KEYS: ClassVar = ("group", "n", "mean_ape", _Coverage())

    group: str
    n: Count
    mean_ape: float
    coverage: Mapping[float, float]
    interval: Mapping[float, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class RunError(Document):
    """A run with its measured and predicted time, and the error as a share of the measured."""

    run: str
    group: str
    measured: Positive
    predicted: float
    ape: float


class _Figures(Part):
    """Each metric with its interval and its method."""

    def write(self, row: EvaluationRow) -> Mapping[str, Any]:
        columns: dict[str, Any] = {}
        for part in _FIGURE_PARTS:
            columns |= part.write(SimpleNamespace(**row.figures))
        return columns

    def read(self, field: Field) -> Mapping[str, Any]:
        figures = {}
        for part in _FIGURE_PARTS:
            spec = figure(_FIGURES[part.name])
            (estimate,) = part.read(field).values()
            told = {"figure": spec.name, "unit": spec.unit, "definition": spec.definition}
            figures[part.name] = replace(estimate, **told)
        return {"figures": figures}

    def schema(self, names: Schemas) -> dict[str, dict[str, Any]]:
        return {key: s for part in _FIGURE_PARTS for key, s in part.schema(names).items()}


class _Bands(Part):
    """By level, the results of the bands."""

    def write(self, row: EvaluationRow) -> Mapping[str, Any]:
        return plain_keys(
            {
                key.format(PERCENT[band.level]): getattr(band, name)
                for band in row.bands
                for key, (name, _) in _BAND.items()
            }
        )

    def read(self, field: Field) -> Mapping[str, Any]:
        bands = []
        for level, percent in PERCENT.items():
            values = {
                name: shape.read(field.at(key.format(percent)))
                for key, (name, shape) in _BAND.items()
            }
            # With unbounded bands the mean is infinite; without bands there is no mean.
            for name in ("mean_width", "interval_score"):
                if math.isnan(values[name]) and values["unbounded"]:
                    values[name] = math.inf
            bands.append(BandRow(level, **values))
        return {"bands": tuple(bands)}

    def schema(self, names: Schemas) -> dict[str, dict[str, Any]]:
        return {
            key.format(percent): shape.schema(names)
            for percent in PERCENT.values()
            for key, (_, shape) in _BAND.items()
        }


class _Abstention(Part):
    """The error by the share answered: at some shares, at every share, and its area."""

    def write(self, row: EvaluationRow) -> Mapping[str, Any]:
        curve, n = row.abstention, row.answered.n
        columns: dict[str, Any] = {
            "answered_share": n / row.n,
            **row.answered.to_row("answered_mean_ape"),
            "abstention_area": None if curve is None else curve.area,
            "abstention": [] if curve is None else _steps(curve),
            "abstention_curve": [] if curve is None else curve.mean_error.tolist(),
        }
        return plain_keys(columns)

    def read(self, field: Field) -> Mapping[str, Any]:
        errors = _NUMBERS.read(field.at("abstention_curve"))
        curve = None
        if len(errors):
            share = np.arange(1, len(errors) + 1) / len(errors)
            area = _AREA.read(field.at("abstention_area"))
            curve = Abstention(share, errors, area)
        n = round(_ANSWERED_SHARE.read(field.at("answered_share")) * field.at("n").value)
        known = {"figure": "mape", "level": _LEVEL, "n": n}
        answered = Estimate.from_row(field, "answered_mean_ape", **known)
        return {"abstention": curve, "answered": answered}

    def schema(self, names: Schemas) -> dict[str, dict[str, Any]]:
        number = VALUE.schema(names)
        step = closed({"share": {"type": "number"}, "mean_ape": {"type": "number"}})
        ends = ("", "_low", "_high")
        return {
            "answered_share": _ANSWERED_SHARE.schema(names),
            **{f"answered_mean_ape{end}": number for end in ends},
            "abstention_area": number,
            "abstention": {"type": "array", "items": step},
            "abstention_curve": _NUMBERS.schema(names),
        }


class _Against(Part):
    """The comparisons of this row; the document lists those of all rows together."""

    def write(self, row: EvaluationRow) -> Mapping[str, Any]:
        return {}

    def read(self, field: Field) -> Mapping[str, Any]:
        place = Field(field.document, "", field.document).at("against_baselines")
        every = shape_of(tuple[Difference, ...]).read(place)
        mine = (field.at("split").value, field.at("estimator").value)
        if field.has("runs_judged") and field.at("runs_judged").value != "all":
            return {"against": ()}
        return {"against": tuple(d for d in every if (d.split, d.estimator) == mine)}

    def schema(self, names: Schemas) -> dict[str, dict[str, Any]]:
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationRow(Document):
    """One estimator in one split.

    Attributes
    ----------
    split, estimator : str
    runs_judged : str or None
        ``all``, or ``not flagged``: without the runs that `errcomp.calibration.check_runs` has firm
        evidence against. None in documents of earlier versions: all.
    n, refused : int
        Runs evaluated, and runs that were not predicted.
    uncalibrated : int
        Evaluated runs whose band was not calibrated, because too few groups were left for it.
    figures : mapping of str to Estimate
        ``mean_ape``, ``median_ape``, ``p90_ape``, ``max_ape`` and ``bias`` (predicted minus
        measured). With an interval where a tested method exists; else ``method`` has the reason.
    bands : tuple of BandRow
        One per level.
    crps : float
        As a share of the sum of kernels, mean over the runs; lower is better. NaN without
        quantiles.
    pit : ndarray, shape (n,)
        Probability integral transform of each run; NaN without quantiles.
    groups : tuple of GroupRow
        One per held-out group.
    against : tuple of Difference
        Comparisons with the baselines on the same runs.
    verdict : str
        Which baselines it beats.
    abstention : Abstention or None
        Error against the share answered, most confident first; None without bands.
    answered : Estimate
        Mean APE of the 80 % (or, of equal widths, more) of the runs with the narrowest bands.
    worst : tuple of RunError
        The five largest errors.
    """

    KEYS: ClassVar = (
        *(
            key("split", "split", SplitName),
            "estimator",
            if_known("runs_judged"),
            "n",
            "refused",
            "uncalibrated",
        ),
        Derived("groups", Count, lambda row: len(row.groups)),
        *(_Figures(), _Bands(), "crps"),
        Derived("pit_histogram", tuple[Count, ...], lambda row: row.pit_histogram),
        "pit",
        Derived("beats_sum", bool | None, lambda row: row.beats_sum),
        *("verdict", _Abstention(), key("by_group", "groups")),
        Derived("weak_groups", tuple[str, ...], lambda row: [g.group for g in row.weak_groups]),
        *("worst", _Against()),
    )

    split: str
    estimator: str
    n: Annotated[int, Meta(ge=1)]
    refused: Count
    uncalibrated: Count
    figures: Mapping[str, Estimate]
    bands: tuple[BandRow, ...]
    crps: Annotated[float, Undefined]
    pit: Annotated[Floats, Each(Annotated[Share, Undefined])]
    groups: tuple[GroupRow, ...]
    against: tuple[Difference, ...]
    verdict: str
    abstention: Abstention | None
    answered: Estimate
    worst: tuple[RunError, ...]
    runs_judged: JudgedRuns | None = None

    @property
    def beats_sum(self) -> bool | None:
        """Whether it beats the sum of kernels; None if the difference is not significant."""
        against_sum = next((d for d in self.against if d.against == "sum"), None)
        if against_sum is None or against_sum.outcome == "better":
            return None if against_sum is None else True
        return False if against_sum.difference.value >= 0 else None

    @property
    def weak_groups(self) -> tuple[GroupRow, ...]:
        """Groups of five or more runs, less than 60 % of them inside their 90 % bands."""
        return tuple(
            g for g in self.groups if g.n >= _GROUP_RUNS and g.coverage[0.9] < _GROUP_COVERAGE
        )

    @property
    def pit_histogram(self) -> tuple[int, ...]:
        """Runs in each tenth of (0, 1)."""
        known = self.pit[np.isfinite(self.pit)]
        return tuple(np.histogram(known, bins=_PIT_BINS, range=(0, 1))[0].tolist())

    def band(self, level: float) -> BandRow:
        """Return the row of a level.

        Examples
        --------
        >>> from errcomp.calibration import evaluate_composition
        >>> from errcomp.tables import Kernels
        >>> times = [1.0 + i for i in range(12)]
        >>> runs = Kernels({"run": list("abcdefghijkl"), "kernel": ["gemm"] * 12,
        ...                 "device": list("ABC") * 4, "measured": times,
        ...                 "run_measured": [1.1 * time for time in times]}, unit="ms")
        >>> found = evaluate_composition(runs, estimators=(), splits=["leave-device-out"])
        >>> found.row("leave-device-out", "sum").band(0.9).level
        0.9
        """
        return self.bands[LEVELS.index(level)]


def _steps(curve: Abstention) -> list[dict[str, float]]:
    shares = (round(0.05 * i, 2) for i in range(2, 21))
    return [{"share": share, "mean_ape": curve.at(share)} for share in shares]


def judge(
    held: HeldOut,
    *,
    split: str,
    estimator: str,
    others: Mapping[str, HeldOut],
    refused: int,
    seed: int,
    runs_judged: JudgedRuns = "all",
) -> EvaluationRow:
    """Evaluate held-out predictions of an estimator and compare them on the same runs.

    Parameters
    ----------
    held : HeldOut
    split, estimator : str
    others : mapping of str to HeldOut
        Baselines by name.
    refused : int
        Runs that it did not predict.
    seed : int
        Seed of the bootstrap of intervals.
    runs_judged : {"all", "not flagged"}
        Which runs these are.
    """
    clusters = clusters_of(split, held)
    against = tuple(
        gap
        for name, other in others.items()
        if (gap := difference(held, other, split=split, estimator=estimator, against=name))
    )
    curve, sure = _abstention(held, clusters, seed)
    scored = np.isfinite(held.quantiles).all(axis=1)
    quantiles, measured = held.quantiles[scored], held.measured[scored]
    pit = np.full(len(held), np.nan)
    pit[scored] = pit_from_quantiles(quantiles, measured, QUANTILES)
    crps = crps_from_quantiles(quantiles, measured, QUANTILES) / held.total[scored]
    return EvaluationRow(
        split=split,
        estimator=estimator,
        n=len(held),
        refused=refused,
        uncalibrated=int((~held.calibrated).sum()),
        figures={row: figure_of(name, held, clusters, seed) for row, name in _FIGURES.items()},
        bands=tuple(_band(held, i, clusters) for i in range(len(LEVELS))),
        crps=float(crps.mean()) if len(crps) else math.nan,
        pit=pit,
        groups=_groups(held),
        against=against,
        verdict=verdict(against),
        abstention=curve,
        answered=sure,
        worst=_worst(held),
        runs_judged=runs_judged,
    )


def covered(
    held: HeldOut, at: int, clusters: Mapping[str, Names], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the share inside the bands of a level, with the widest interval over clusterings."""
    low, high = held.low[:, at], held.high[:, at]
    given = ~np.isnan(high - low)
    if not given.any():
        return math.nan, math.nan, math.nan
    inside = ((low <= held.measured) & (held.measured <= high))[given]
    codes = [
        np.unique(labels[given].astype(str), return_inverse=True)[1] for labels in clusters.values()
    ]
    shares, lows, highs = zip(
        *(coverage_interval(inside, code, level=confidence) for code in codes), strict=True
    )
    return shares[0], min(lows), max(highs)


def _band(held: HeldOut, at: int, clusters: Mapping[str, Names]) -> BandRow:
    level = LEVELS[at]
    given = ~np.isnan(held.high[:, at] - held.low[:, at])
    n = int(given.sum())
    if n == 0:
        return BandRow(level, 0, 0, *([math.nan] * 5))
    part = held.take(given)
    low, high = part.low[:, at], part.high[:, at]
    score = interval_score(low=low, high=high, measured=part.measured, level=level)
    return BandRow(
        level,
        n,
        int(np.isinf(high).sum()),
        *covered(held, at, clusters),
        mean_width=float(np.mean((high - low) / part.predicted)),
        interval_score=float(np.mean(score / part.total)),
    )


def _groups(held: HeldOut) -> tuple[GroupRow, ...]:
    rows = []
    for name in dict.fromkeys(held.group.tolist()):
        part = held.take(held.group == name)
        cells = {"cell": part.cell}
        shares = {level: covered(part, at, cells) for at, level in enumerate(LEVELS)}
        rows.append(
            GroupRow(
                str(name),
                len(part),
                float(part.ape.mean()),
                coverage={level: values[0] for level, values in shares.items()},
                interval={level: values[1:] for level, values in shares.items()},
            )
        )
    return tuple(rows)


def _abstention(
    held: HeldOut, clusters: Mapping[str, Names], seed: int
) -> tuple[Abstention | None, Estimate]:
    """Return the abstention curve, and the mean error of the 80 % with the narrowest bands."""
    given = ~np.isnan(held.width)
    if not given.any():
        none = Estimate(
            "answered_mean_ape", math.nan, method="no bands, so runs cannot be sorted by band width"
        )
        return None, none
    part = held.take(given)
    width = part.width
    # Refused bands count as the widest: the share is of all runs.
    wanted = min(answered(len(held), _ANSWERED), len(part))
    sure = width <= np.sort(width)[wanted - 1] * (1 + ROUNDING)
    labels = {key: values[given][sure] for key, values in clusters.items()}
    estimate = figure_of("mape", part.take(sure), labels, seed)
    return abstention_curve(part.ape, width), estimate


def _worst(held: HeldOut) -> tuple[RunError, ...]:
    at = np.argsort(-held.ape, kind="stable")[:_WORST]
    columns = (held.run, held.group, held.measured, held.predicted, held.ape)
    rows = zip(*(values[at].tolist() for values in columns), strict=True)
    return tuple(RunError(str(run), str(group), *times) for run, group, *times in rows)
