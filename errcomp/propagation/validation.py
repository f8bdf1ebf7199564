"""Coverage of the bands: held-out measured totals against bands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from errcomp.codec import Count, Coverage, Document, Each, Endless, Field, Meta, Share, Size
from errcomp.errors import InputError, renamed
from errcomp.metrics.bands import coverage_interval, interval_score
from errcomp.propagation.bounds import band as bounds_band
from errcomp.propagation.distribution import FromMoments
from errcomp.propagation.errors import ErrorModel
from errcomp.propagation.errors.components import Correlation, correlations
from errcomp.propagation.errors.fitting import fit_errors
from errcomp.propagation.errors.residuals import by_run
from errcomp.propagation.errors.tails import NORMAL_TAILS
from errcomp.propagation.outcome import LEVELS_SHOWN, caveats_of_model, other_devices
from errcomp.propagation.sums import total_moments
from errcomp.propagation.terms import Floats, Integers, Kind, check_levels
from errcomp.report.shown import Shown
from errcomp.results import Caveat
from errcomp.tables.backends import kernels_in_memory

if TYPE_CHECKING:
    from errcomp.report.model import Report
    from errcomp.tables import Kernels

__all__ = ["LEVELS_SHOWN", "Validation", "ValidationRow", "validate"]

#: Assumptions to compare by default.
COMPARED = ("estimated", "independent", "repeats", "classes", "comonotonic", "unknown")
#: Relative rounding error of a total.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class ValidationRow(Document):
    """Coverage, width and score of one assumption at one level.

    Attributes
    ----------
    assumption : str
        The assumption on the correlation.
    level : float
        Nominal coverage of the central band.
    coverage, coverage_low, coverage_high : float
        Share of totals inside, with its 95 % interval for clustered outcomes.
    n, n_clusters : int
        Totals, and their clusters: devices, or other held-out groups.
    mean_width : float
        Width of the band over the prediction, mean over the totals.
    interval_score : float
        Interval score over the prediction, mean over the totals; lower is better. (Over the
        measured total it would not be proper: it would favour bands that are too low.)
    """

    assumption: str
    level: Coverage
    coverage: Share
    coverage_low: Share
    coverage_high: Share
    n: Count
    n_clusters: Count
    mean_width: Annotated[Size, Endless]
    interval_score: Annotated[Size, Endless]


@dataclass(frozen=True, slots=True)
class Validation(Shown, Document):
    """Bands against measured totals, per assumption.

    Attributes
    ----------
    rows : tuple of ValidationRow
        One per assumption and level.
    pit : mapping of str to ndarray
        Per assumption (not for bounds), the probability integral transform of each total, in
        [0, 1]; uniform if the distributions are right.
    runs : tuple of str
        The evaluated totals, in the order of ``pit``.
    left_out : str
        Column whose groups were held out from the fits; "" with separate tables.
    total : str
        Kind of the measured totals.
    models : tuple of ErrorModel
        The error models, one per held-out group. Documents do not have them.
    cluster : str
        Column of the clusters: totals of a cluster are treated as correlated.
    not_judged : tuple of str
        Runs without a measured and a predicted total: a kernel was not measured, its prediction
        failed, or all are predicted to take no time.
    caveats : tuple of Caveat
        Caveats of the error model.
    source : str
        Name of the table.
    """

    SCHEMA: ClassVar = "errcomp.validation/1"
    COMMAND: ClassVar = "propagate validate"
    KEYS: ClassVar = (
        *("source", "left_out", "total", "rows", "pit", "runs", "cluster", "not_judged"),
        "caveats",
    )

    rows: Annotated[tuple[ValidationRow, ...], Meta(min_length=1)]
    pit: Mapping[str, Annotated[Floats, Each(Share)]]
    runs: tuple[str, ...]
    left_out: str
    total: str
    models: tuple[ErrorModel, ...] = ()
    cluster: str = "cluster"
    not_judged: tuple[str, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    source: str = ""

    def _agree(self, field: Field) -> None:
        """Refuse impossible coverages, and rows that lack a level."""
        from errcomp.propagation.agreement import check_validation

        check_validation(field, self)

    def view(self) -> Report:
        """Return the report of the validation.

        Examples
        --------
        >>> row = ValidationRow("estimated", 0.9, 0.88, 0.8, 0.95, 87, 8, 0.2, 0.3)
        >>> Validation((row,), {}, (), "device", "total", (), source="kernels.csv").view().title
        'Do the bands hold? kernels.csv'
        """
        from errcomp.propagation.view.validation import validation_view

        return validation_view(self)

    def row(self, assumption: str, level: float) -> ValidationRow:
        """Return the row of an assumption and a level.

        Raises
        ------
        InputError
            No such row.

        Examples
        --------
        >>> row = ValidationRow("estimated", 0.9, 0.88, 0.8, 0.95, 87, 8, 0.2, 0.3)
        >>> Validation((row,), {}, (), "device", "total", ()).row("estimated", 0.9).coverage
        0.88
        """
        for row in self.rows:
            if row.assumption == assumption and row.level == level:
                return row
        raise InputError(f"no row for assumption {assumption!r} at level {level}")


@dataclass(frozen=True, slots=True)
class _Judged:
    """Bands of one total under each assumption."""

    run: str
    cluster: str
    measured: float
    bands: dict[str, list[tuple[float, float]]]
    pit: dict[str, float]
    predicted: float


@renamed(assume="correlation")
def validate(
    kernels: Kernels | Any,
    *,
    leave_out: str = "device",
    errors: ErrorModel | None = None,
    correlation: str | Correlation | Sequence[str | Correlation] | None = None,
    kind: Kind = "log-ratio",
    levels: Sequence[float] = LEVELS_SHOWN,
    progress: Callable[[int, int], None] | None = None,
) -> Validation:
    r"""Compare bands with held-out measured totals.

    For each value of ``leave_out`` the error model (bias, spread, components, tails) is fitted to
    all other runs. The totals :math:`\sum_i c_i m_i` of the held-out runs are then compared with
    the bands of each assumption.

    Parameters
    ----------
    kernels : Kernels, dataframe or mapping of columns
        Predicted and measured kernels of several runs.
    leave_out : str
        Column whose values are held out in turn; each run must have one value.
    errors : ErrorModel, optional
        Errors from another table, or given. Nothing is held out; ``leave_out`` only names the
        clusters.
    correlation : str, Correlation or sequence of them, optional
        Assumptions to compare; see `correlation`. "unknown" gives bounds for any dependence, which
        take most of the time. By default all that need no further input ("estimated" needs fitted
        errors).
    kind : {"log-ratio", "relative", "absolute"}
        Scale of the errors.
    levels : sequence of float
        Nominal coverages.
    progress : callable, optional
        Called with the number of finished totals and of all totals.

    Returns
    -------
    Validation

    Raises
    ------
    InputError
        No run is measured; the column does not exist, differs within a run, or has only one value,
        so that there is nothing to fit to; an assumption is unknown or given twice; a level is not
        in (0, 1).

    Notes
    -----
    Coverage intervals respect the clusters (`coverage_interval`). With 8 devices they are wide: the
    true coverage may differ by ten points.

    Examples
    --------
    >>> kernels = {"run": ["r1", "r2", "r3"], "kernel": ["gemm"] * 3, "device": ["A", "B", "C"],
    ...            "predicted": [1.0, 1.0, 1.0], "measured": [1.1, 1.0, 0.9]}
    >>> found = validate(kernels, correlation="independent", levels=[0.9])
    >>> found.row("independent", 0.9).n
    3
    """
    kernels = kernels_in_memory(kernels)
    levels = check_levels(levels)
    if correlation is None:
        given = errors is not None and errors.components is None
        correlation = [name for name in COMPARED if not (given and name == "estimated")]
    wanted = correlations(correlation)
    measured, what = _measured_totals(kernels)
    cluster = _one_per_run(kernels, leave_out, measured)
    groups = list(dict.fromkeys(cluster.values()))
    if errors is None and len(groups) < 2:
        which = f"have the same {leave_out}, {groups[0]!r}" if groups[0] else f"lack a {leave_out}"
        raise InputError(
            f"all measured runs {which}, so holding it out leaves no run to fit to. Choose another "
            "column to hold out, or give --train and --test."
        )
    # The number of each row's group; -1 if the run has no measured total.
    number = {group: i for i, group in enumerate(groups)}
    of_run = {run: number[group] for run, group in cluster.items()}
    of_row = np.array([of_run.get(str(run), -1) for run in kernels.run])
    models: list[ErrorModel] = []
    judged: list[_Judged] = []
    for i, group in enumerate(groups):
        model = errors
        if model is None:
            rest = kernels.take((of_row >= 0) & (of_row != i))
            model = fit_errors(rest, kind=kind, level=None)
            models.append(model)
        for part in by_run(kernels.take(of_row == i)):
            judged.append(_judge(part, model, group, wanted, levels, measured))
            if progress is not None:
                progress(len(judged), len(cluster))
    names = [one.name for one in wanted]
    return Validation(
        rows=_rows(judged, names, levels),
        pit={name: np.array([j.pit[name] for j in judged]) for name in names if name != "unknown"},
        runs=tuple(j.run for j in judged),
        left_out="" if errors is not None else leave_out,
        total=what,
        models=tuple(models) if errors is None else (errors,),
        cluster=leave_out,
        not_judged=tuple(run for run in map(str, kernels.runs) if run not in cluster),
        # For a single given error model; with held-out groups there are many models.
        caveats=()
        if errors is None
        else (*caveats_of_model(errors), *other_devices(errors, kernels)),
        source=kernels.source,
    )


def _measured_totals(kernels: Kernels) -> tuple[dict[str, float], str]:
    """Return the sum of measured kernels per run, or end-to-end times if no kernel was measured."""
    table = kernels.totals()
    for values, word in (
        (table.measured, "sum of the measured kernels"),
        (table.run_measured, "measured end to end"),
    ):
        known = np.isfinite(values) & (values > 0) & (table.predicted > 0) & table.complete
        if known.any():
            runs, times = map(str, table.run[known]), map(float, values[known])
            return dict(zip(runs, times, strict=True)), word
    raise InputError(
        f"{kernels.prefix}no run has both a prediction and a measured total to compare bands with. "
        "Give the measured times of all kernels of a run (column 'measured'), or the measured "
        "time of the run itself (column 'run_measured')."
    )


def _one_per_run(kernels: Kernels, column: str, runs: Collection[str]) -> dict[str, str]:
    values = kernels.device if column == "device" else kernels.column(column)
    value_of: dict[str, str] = {}
    for run, value in dict.fromkeys(zip(kernels.run.tolist(), map(str, values), strict=True)):
        if str(run) not in runs:
            continue
        if value_of.setdefault(str(run), value) != value:
            raise InputError(
                f"{column} differs within run {run!r}: {value_of[str(run)]!r} and {value!r}. "
                "Choose a column with one value per run."
            )
    return value_of


def _judge(
    kernels: Kernels,
    model: ErrorModel,
    cluster: str,
    correlation: Sequence[Correlation],
    levels: Sequence[float],
    totals: Mapping[str, float],
) -> _Judged:
    run = str(kernels.run[0])
    measured = totals[run]
    bands: dict[str, list[tuple[float, float]]] = {}
    pit: dict[str, float] = {}
    for assumption in correlation:
        name = assumption.name
        terms = model.terms(kernels, assumption)
        if name == "unknown":
            bands[name] = [bounds_band(terms, level) for level in levels]
            continue
        total = FromMoments(
            total_moments(terms), model.tails if name == "estimated" else NORMAL_TAILS
        )
        bands[name] = [
            (total.quantile(0.5 - level / 2), total.quantile(0.5 + level / 2)) for level in levels
        ]
        pit[name] = total.cdf(measured)
    predicted = float(kernels.count @ kernels.predicted)
    return _Judged(run, cluster, measured, bands, pit, predicted)


def _rows(
    judged: Sequence[_Judged], correlation: Sequence[str], levels: Sequence[float]
) -> tuple[ValidationRow, ...]:
    measured = np.array([j.measured for j in judged])
    predicted = np.array([j.predicted for j in judged])
    cluster: Integers = np.unique([j.cluster for j in judged], return_inverse=True)[1]
    # The ends of a band of zero width are right up to rounding.
    slack = _ROUNDING * measured
    rows = []
    for name in correlation:
        for i, level in enumerate(levels):
            low, high = np.array([j.bands[name][i] for j in judged]).T
            inside = (low - slack <= measured) & (measured <= high + slack)
            score = interval_score(low=low, high=high, measured=measured, level=level)
            coverage, coverage_low, coverage_high = coverage_interval(inside, cluster)
            rows.append(
                ValidationRow(
                    assumption=name,
                    level=level,
                    coverage=coverage,
                    coverage_low=coverage_low,
                    coverage_high=coverage_high,
                    n=len(judged),
                    n_clusters=int(cluster.max()) + 1,
                    mean_width=float(np.mean((high - low) / predicted)),
                    interval_score=float(np.mean(score / predicted)),
                )
            )
    return tuple(rows)
