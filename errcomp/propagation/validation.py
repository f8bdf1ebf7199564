"""Whether the bands hold: measured totals against bands made without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError
from errcomp.propagation.assumptions import correlation
from errcomp.propagation.bounds import band as bounds_band
from errcomp.propagation.distribution import FromMoments
from errcomp.propagation.errormodel import ErrorModel
from errcomp.propagation.fitting import fit_errors
from errcomp.propagation.scores import coverage_interval, interval_score
from errcomp.propagation.sums import total_moments
from errcomp.propagation.tails import NORMAL_TAILS
from errcomp.propagation.terms import Floats, Integers, Kind

if TYPE_CHECKING:
    from errcomp.tables import Kernels

__all__ = ["LEVELS_SHOWN", "Validation", "ValidationRow", "validate"]

LEVELS_SHOWN = (0.5, 0.8, 0.9, 0.95)
#: Assumptions compared unless others are asked for.
COMPARED = ("estimated", "independent", "repeats", "classes", "comonotonic", "unknown")


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """How one assumption did at one level.

    Attributes
    ----------
    assumption : str
        What was assumed of the correlation.
    level : float
        Nominal coverage of the central band.
    coverage, coverage_low, coverage_high : float
        Share of totals inside, with its 95 % interval for clustered outcomes.
    n, n_clusters : int
        Totals, and devices (or whatever was left out) they are on.
    mean_width : float
        Width of the band over the corrected prediction, mean over the totals.
    interval_score : float
        Interval score over the measured total, mean over the totals; lower is better.
    """

    assumption: str
    level: float
    coverage: float
    coverage_low: float
    coverage_high: float
    n: int
    n_clusters: int
    mean_width: float
    interval_score: float


@dataclass(frozen=True, slots=True)
class Validation:
    """Bands against measured totals, per assumption.

    Attributes
    ----------
    rows : tuple of ValidationRow
        One per assumption and level.
    pit : mapping of str to ndarray
        Per assumption (not for bounds) where each total stands in its distribution, in [0, 1];
        uniform if the distributions are right.
    runs : tuple of str
        The totals judged, in the order of ``pit``.
    left_out : str
        What was left out when the error model was fitted; "" with separate tables.
    total : str
        What the measured totals are.
    models : tuple of ErrorModel
        The error models, one per group left out.
    """

    rows: tuple[ValidationRow, ...]
    pit: dict[str, Floats]
    runs: tuple[str, ...]
    left_out: str
    total: str
    models: tuple[ErrorModel, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "left_out": self.left_out,
            "total": self.total,
            "rows": [asdict(row) for row in self.rows],
            "pit": {name: values.tolist() for name, values in self.pit.items()},
            "runs": list(self.runs),
        }

    def row(self, assumption: str, level: float) -> ValidationRow:
        """Return the row of an assumption and a level.

        Raises
        ------
        InputError
            There is none.
        """
        for row in self.rows:
            if row.assumption == assumption and row.level == level:
                return row
        raise InputError(f"no row for {assumption!r} at level {level}")


@dataclass(frozen=True, slots=True)
class _Judged:
    """Bands of one total under each assumption."""

    run: str
    cluster: str
    measured: float
    bands: dict[str, list[tuple[float, float]]]
    pit: dict[str, float]
    corrected: float


def validate(
    kernels: Kernels,
    *,
    leave_out: str = "device",
    errors: ErrorModel | None = None,
    assume: Sequence[str] = COMPARED,
    kind: Kind = "log-ratio",
    levels: Sequence[float] = LEVELS_SHOWN,
    progress: Callable[[int, int], None] | None = None,
) -> Validation:
    r"""Compare bands with measured totals that had no part in making them.

    For each value of ``leave_out`` the error model (bias, spread, components, tails) is fitted to
    all other runs; the totals :math:`\sum_i c_i m_i` of the runs left out are then held against
    the bands of each assumption.

    Parameters
    ----------
    kernels : Kernels
        Predicted and measured kernels of several runs.
    leave_out : str
        Column whose values are left out one by one, the same within each run.
    errors : ErrorModel, optional
        Fitted elsewhere (or given): nothing is left out, ``leave_out`` only names the clusters.
    assume : sequence of str
        Assumptions to compare; see `correlation`. "unknown" gives bounds for any dependence.
    kind : {"log-ratio", "relative", "absolute"}
        Scale of the errors.
    levels : sequence of float
        Nominal coverages.
    progress : callable, optional
        Called with the number of totals done and of all.

    Returns
    -------
    Validation

    Raises
    ------
    InputError
        No run is measured, the column does not exist or differs within a run, or it has one value
        only, so that nothing is left to fit to.

    Notes
    -----
    Coverage intervals respect the clusters (`coverage_interval`). With 8 devices they are wide: a
    coverage that looks right may be off by ten points.
    """
    totals = _measured_totals(kernels)
    cluster = _one_per_run(kernels, leave_out, totals.run)
    groups = list(dict.fromkeys(cluster.values()))
    if errors is None and len(groups) < 2:
        raise InputError(
            f"{leave_out} has the one value {groups[0]!r} in all measured runs: left out, nothing "
            "remains to fit to. Leave out another column, or give --train and --test."
        )
    models: list[ErrorModel] = []
    judged: list[_Judged] = []
    for group in groups:
        inside = np.array([cluster.get(str(run)) == group for run in kernels.run])
        if errors is None:
            known = np.array([str(run) in cluster for run in kernels.run])
            model = fit_errors(kernels.take(known & ~inside), kind=kind, confidence=None)
        else:
            model = errors
        models.append(model)
        part = kernels.take(inside)
        for run in part.runs:
            judged.append(_judge(part.take(part.run == run), model, group, assume, levels, totals))
            if progress is not None:
                progress(len(judged), len(cluster))
    return Validation(
        rows=_rows(judged, assume, levels),
        pit={a: np.array([j.pit[a] for j in judged]) for a in assume if a != "unknown"},
        runs=tuple(j.run for j in judged),
        left_out="" if errors is not None else leave_out,
        total=totals.word,
        models=tuple(models) if errors is None else (errors,),
    )


@dataclass(frozen=True, slots=True)
class _Totals:
    run: tuple[str, ...]
    measured: dict[str, float]
    word: str


def _measured_totals(kernels: Kernels) -> _Totals:
    """Sum of measured kernels per run; end to end where no kernel was measured."""
    table = kernels.totals()
    for values, word in (
        (table.measured, "sum of the measured kernels"),
        (table.run_measured, "measured end to end"),
    ):
        known = np.isfinite(values) & np.isfinite(table.predicted) & table.complete & (values > 0)
        if known.any():
            runs = tuple(str(run) for run in table.run[known])
            return _Totals(runs, dict(zip(runs, map(float, values[known]), strict=True)), word)
    raise InputError(
        f"{kernels.source + ': ' if kernels.source else ''}no run has a measured total to hold a "
        "band against: neither all of its kernels (measured) nor the run (run_measured)"
    )


def _one_per_run(kernels: Kernels, column: str, runs: Sequence[str]) -> dict[str, str]:
    values = kernels.device if column == "device" else kernels.column(column)
    found: dict[str, str] = {}
    wanted = set(runs)
    for run, value in dict.fromkeys(zip(kernels.run.tolist(), map(str, values), strict=True)):
        if str(run) not in wanted:
            continue
        if found.setdefault(str(run), value) != value:
            raise InputError(
                f"{column} is not the same in all kernels of run {run!r}: {found[str(run)]!r} and "
                f"{value!r}. Leave out a column that names whole runs."
            )
    return found


def _judge(
    kernels: Kernels,
    model: ErrorModel,
    cluster: str,
    assume: Sequence[str],
    levels: Sequence[float],
    totals: _Totals,
) -> _Judged:
    run = str(kernels.run[0])
    measured = totals.measured[run]
    bands: dict[str, list[tuple[float, float]]] = {}
    pit: dict[str, float] = {}
    corrected = 0.0
    for name in assume:
        terms = model.terms(kernels, correlation(name))
        if name == "unknown":
            bands[name] = [bounds_band(terms, level) for level in levels]
            continue
        tails = model.tails if name == "estimated" else NORMAL_TAILS
        total = FromMoments(total_moments(terms), tails)
        bands[name] = [
            (total.quantile(0.5 - level / 2), total.quantile(0.5 + level / 2)) for level in levels
        ]
        pit[name] = total.cdf(measured)
        corrected = corrected or total.quantile(0.5)
    return _Judged(run, cluster, measured, bands, pit, corrected or measured)


def _rows(
    judged: Sequence[_Judged], assume: Sequence[str], levels: Sequence[float]
) -> tuple[ValidationRow, ...]:
    measured = np.array([j.measured for j in judged])
    corrected = np.array([j.corrected for j in judged])
    cluster: Integers = np.unique([j.cluster for j in judged], return_inverse=True)[1]
    rows = []
    for name in assume:
        for i, level in enumerate(levels):
            low, high = np.array([j.bands[name][i] for j in judged]).T
            inside = (low <= measured) & (measured <= high)
            rows.append(
                ValidationRow(
                    name,
                    level,
                    *coverage_interval(inside, cluster),
                    len(judged),
                    int(cluster.max()) + 1,
                    float(np.mean((high - low) / corrected)),
                    float(
                        np.mean(
                            interval_score(low=low, high=high, observed=measured, level=level)
                            / measured
                        )
                    ),
                )
            )
    return tuple(rows)
