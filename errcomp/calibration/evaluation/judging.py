"""What held-out predictions of one estimator are worth: errors, bands, scores, abstention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

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

# The same score and interval as `errcomp.propagation.validate`.
from errcomp.metrics.bands import coverage_interval, interval_score
from errcomp.results import Estimate

#: Row names of the figures, and their names in `errcomp.metrics`.
_FIGURES = {
    "mean_ape": "mape",
    "median_ape": "median_ape",
    "p90_ape": "p90_ape",
    "max_ape": "max_ape",
    "bias": "bias",
}
#: Of the runs, in the goal for abstention.
_ANSWERED = 0.8
#: A group of at least so many runs is told apart when less than that share of it is covered.
_GROUP_RUNS, _GROUP_COVERAGE = 5, 0.6
_PIT_BINS = 10
_WORST = 5


@dataclass(frozen=True, slots=True)
class BandRow:
    """How the bands of one level did.

    Attributes
    ----------
    level : float
        Nominal coverage.
    n : int
        Runs that got a band; the others were refused one.
    unbounded : int
        Bands among them without an upper end.
    coverage, coverage_low, coverage_high : float
        Share of the runs inside, with a 95 % interval for outcomes that are alike in a cluster.
        NaN without bands.
    mean_width : float
        Width as a share of the prediction, mean over the runs; infinite if one is unbounded.
    interval_score : float
        As a share of the sum of kernels, mean over the runs; lower is better. That scale is the
        same for all estimators: over its own prediction one that is too high would gain.
    """

    level: float
    n: int
    unbounded: int
    coverage: float
    coverage_low: float
    coverage_high: float
    mean_width: float
    interval_score: float


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One held-out group.

    Attributes
    ----------
    group : str
    n : int
    mean_ape : float
    coverage : mapping of float to float
        By level the share of its runs inside; NaN without bands.
    interval : mapping of float to (float, float)
        95 % interval of that share, for runs that are alike on one device with one model: from 0
        to 1 where the group is one such cell.
    """

    group: str
    n: int
    mean_ape: float
    coverage: Mapping[float, float]
    interval: Mapping[float, tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        row: dict[str, Any] = {"group": self.group, "n": self.n, "mean_ape": self.mean_ape}
        for level, share in self.coverage.items():
            name = f"coverage_{100 * level:g}"
            low, high = map(_plain, self.interval[level])
            row |= {name: _plain(share), f"{name}_low": low, f"{name}_high": high}
        return row


@dataclass(frozen=True, slots=True)
class RunError:
    """A run with its measured and predicted time, and the error as a share of the former."""

    run: str
    group: str
    measured: float
    predicted: float
    ape: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationRow:
    """One estimator in one split.

    Attributes
    ----------
    split, estimator : str
    n, refused : int
        Runs judged, and runs that were not answered.
    uncalibrated : int
        Of the runs judged those whose band was not calibrated: too few groups were left for it.
    figures : mapping of str to Estimate
        ``mean_ape``, ``median_ape``, ``p90_ape``, ``max_ape`` and ``bias`` (predicted less
        measured); an interval where a tested one exists, else the reason in ``method``.
    bands : tuple of BandRow
        One per level.
    crps : float
        As a share of the sum of kernels, mean over the runs; lower is better. NaN without
        quantiles.
    pit : ndarray, shape (n,)
        NaN without quantiles.
    groups : tuple of GroupRow
        One per held-out group.
    against : tuple of Difference
        Paired with the baselines on the same runs.
    verdict : str
        Which baselines it beats.
    abstention : Abstention or None
        Error against the share answered, surest first; None without bands.
    answered : Estimate
        Mean APE of the 80 % (or, of equal widths, more) of the runs with the narrowest bands.
    worst : tuple of RunError
        The five largest errors.
    """

    split: str
    estimator: str
    n: int
    refused: int
    uncalibrated: int
    figures: Mapping[str, Estimate]
    bands: tuple[BandRow, ...]
    crps: float
    pit: Floats
    groups: tuple[GroupRow, ...]
    against: tuple[Difference, ...]
    verdict: str
    abstention: Abstention | None
    answered: Estimate
    worst: tuple[RunError, ...]

    @property
    def beats_sum(self) -> bool | None:
        """Whether it beats the sum of kernels; None where chance may explain the difference."""
        against_sum = next((d for d in self.against if d.against == "sum"), None)
        if against_sum is None or against_sum.outcome == "better":
            return None if against_sum is None else True
        return False if against_sum.difference.value >= 0 else None

    @property
    def weak_groups(self) -> tuple[GroupRow, ...]:
        """Groups of five or more runs of which the 90 % bands cover less than 60 %."""
        return tuple(
            g for g in self.groups if g.n >= _GROUP_RUNS and g.coverage[0.9] < _GROUP_COVERAGE
        )

    @property
    def pit_histogram(self) -> tuple[int, ...]:
        """Runs in each tenth of (0, 1)."""
        known = self.pit[np.isfinite(self.pit)]
        return tuple(np.histogram(known, bins=_PIT_BINS, range=(0, 1))[0].tolist())

    def band(self, level: float) -> BandRow:
        """Return the row of a level."""
        return self.bands[LEVELS.index(level)]

    def to_dict(self) -> dict[str, Any]:
        """Return one row for JSON: fractions; None where there is no value."""
        row: dict[str, Any] = {
            "split": self.split,
            "estimator": self.estimator,
            "n": self.n,
            "refused": self.refused,
            "uncalibrated": self.uncalibrated,
            "groups": len(self.groups),
        }
        for name, figure in self.figures.items():
            row |= {name: figure.value, f"{name}_low": figure.low, f"{name}_high": figure.high}
            row[f"{name}_method"] = figure.method
        for band in self.bands:
            percent = f"{100 * band.level:g}"
            row[f"coverage_{percent}"] = _plain(band.coverage)
            row[f"coverage_{percent}_low"] = _plain(band.coverage_low)
            row[f"coverage_{percent}_high"] = _plain(band.coverage_high)
            row[f"mean_width_{percent}"] = _plain(band.mean_width)
            row[f"interval_score_{percent}"] = _plain(band.interval_score)
            row[f"bands_{percent}"] = band.n
            row[f"unbounded_{percent}"] = band.unbounded
        row["crps"] = _plain(self.crps)
        row["pit_histogram"] = list(self.pit_histogram)
        row["pit"] = [_plain(value) for value in self.pit.tolist()]
        row["beats_sum"], row["verdict"] = self.beats_sum, self.verdict
        row["answered_share"] = self.answered.n / self.n
        row["answered_mean_ape"] = _plain(self.answered.value)
        row["answered_mean_ape_low"] = self.answered.low
        row["answered_mean_ape_high"] = self.answered.high
        row["abstention_area"] = None if self.abstention is None else self.abstention.area
        row["abstention"] = [] if self.abstention is None else _steps(self.abstention)
        curve = [] if self.abstention is None else self.abstention.mean_error.tolist()
        row["abstention_curve"] = curve
        row["by_group"] = [group.to_dict() for group in self.groups]
        row["weak_groups"] = [group.group for group in self.weak_groups]
        row["worst"] = [run.to_dict() for run in self.worst]
        return row


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
) -> EvaluationRow:
    """Judge held-out predictions of one estimator, and compare them with others on the same runs.

    Parameters
    ----------
    held : HeldOut
    split, estimator : str
    others : mapping of str to HeldOut
        Baselines by name.
    refused : int
        Runs that it did not answer.
    seed : int
        Of the bootstrap behind intervals.
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
        *(coverage_interval(inside, code, confidence=confidence) for code in codes), strict=True
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
    score = interval_score(low=low, high=high, observed=part.measured, level=level)
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
    """Return the curve, and the mean error of the 80 % with the narrowest bands."""
    given = ~np.isnan(held.width)
    if not given.any():
        none = Estimate("answered_mean_ape", math.nan, method="no bands to order the runs by")
        return None, none
    part = held.take(given)
    width = part.width
    # Refused bands are the least sure: the share is of all runs.
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
