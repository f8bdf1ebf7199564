"""The report of a study of releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.halflife.view.fit import HALF_LIFE, steps_table
from errcomp.report import forms
from errcomp.report.model import Cell, Column, Form, Table
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from errcomp.halflife.fitting import ReleaseStudy
    from errcomp.halflife.panel import Clock, HalfLife
    from errcomp.halflife.results import GroupHalfLife

__all__ = ["study_tables"]

_NAMES = {
    "model": "whole model (operators × composition)",
    "composition": "composition term alone",
    "kernel": "operators (looked up)",
    "operators": "all operators of a network (looked up)",
    "run": "networks (looked up)",
}


class _Counts(NamedTuple):
    """How many series of a group expired, and when.

    Attributes
    ----------
    name : str
    n : int
        Number of series.
    looked_at : int
        Series for which a release of expiry can be determined.
    sure : list of str
        Versions at which series had clearly expired, in order.
    since : int
        Position of the first of these versions; the number of versions if there are none.
    change : float
        Median change of the error from the first to the last release, log scale.
    noisy : int
        Series with too much noise to say whether they expired.
    """

    name: str
    n: int
    looked_at: int
    sure: list[str]
    since: int
    change: float
    noisy: int


def study_tables(study: ReleaseStudy) -> list[Table]:
    """Return the half-lives by level, by class of operator and by network, and the steps."""
    first, last = study.modelled.versions[0], study.modelled.versions[-1]
    levels = [*study.modelled.groups, *study.looked_up.groups]
    order = list(_NAMES)
    levels.sort(key=lambda group: order.index(group.key["level"]))
    return [
        _table(
            f"Half-life by level: a model calibrated at {first}, validated at every release to "
            f"{last}",
            "Level",
            [(_NAMES[group.key["level"]], group) for group in levels],
            _notes(study),
        ),
        _few(
            f"Operators by class, with their times at {first} as predictions: how many have had an "
            "error above 10 %, which is twice a promised 5 %, and since when",
            "Operator",
            [(str(group.key["kernel_class"]), group) for group in study.classes.groups],
        ),
        _few(
            "The whole model by network: on which networks its error exceeds twice its error at "
            f"{first}",
            "Network",
            [(str(group.key["model"]), group) for group in study.networks.groups],
        ),
        steps_table(study.classes),
    ]


def _table(
    title: str, header: str, groups: Sequence[tuple[str, GroupHalfLife]], notes: Sequence[str]
) -> Table:
    columns = [
        Column(header, lambda row: row[0], key=True),
        Column("Series", lambda row: row[1].panel.n_series, forms.count),
        Column("Initial error", lambda row: row[1], _INITIAL),
        Column("Error at last", lambda row: _relative(row[1].trajectory.rms[-1]), forms.percent),
        Column("RMS doubled: releases", partial(_half_life, "trajectory", "releases"), HALF_LIFE),
        Column("RMS doubled: months", partial(_half_life, "trajectory", "months"), HALF_LIFE),
        Column("Median survival: months", partial(_half_life, "turnbull", "months"), HALF_LIFE),
        Column("Possibly still valid", lambda row: _unexpired(row[1]), forms.share),
    ]
    return Table(title, columns, groups, notes)


def _at_first(group: GroupHalfLife) -> Cell:
    if group.threshold.source == "given":
        return Cell("5 % promised", _relative(group.threshold.error))
    return forms.percent.write(_relative(group.trajectory.rms[0]))


def _half_life(method: str, clock: Clock, row: tuple[str, GroupHalfLife]) -> HalfLife | None:
    return row[1].estimate(method, clock)


def _unexpired(group: GroupHalfLife) -> float | None:
    expiry = group.expiry.get("releases")
    return None if expiry is None or not expiry.n else expiry.censored_share


def _few(title: str, header: str, groups: Sequence[tuple[str, GroupHalfLife]]) -> Table:
    """Show groups of few series: counts alone, without an estimate for similar series."""
    rows = [_counts(name, group) for name, group in groups]
    rows.sort(key=lambda row: (-len(row.sure) / row.n, row.since, -abs(row.change)))
    columns = [
        Column(header, lambda row: row.name, key=True),
        Column("Series", lambda row: row.n, forms.count),
        Column("Expired", lambda row: (len(row.sure), row.looked_at), _OF),
        Column("First expired at", lambda row: row.sure[0] if row.sure else "–"),
        Column("Last expired at", lambda row: row.sure[-1] if row.sure else "–"),
        Column(
            "Predicted / measured, first to last release",
            lambda row: _relative(row.change),
            forms.change,
        ),
        Column("Too noisy", lambda row: row.noisy, forms.number_or("–")),
    ]
    notes = [
        "Expired: the error exceeded the limit at some release by more than noise explains (95 % "
        "confidence for each series). First and last expired at: releases at which the first and "
        "the last of these series expired. Too noisy: noise hides whether the series expired. "
        "Predicted / measured: change of this ratio, median over the series; above 0, the measured "
        "time fell (a speed-up)."
    ]
    return Table(title, columns, rows, notes)


def _counts(name: str, group: GroupHalfLife) -> _Counts:
    panel, expiry = group.panel, group.expiry["releases"]
    start = panel.version[panel.starts[expiry.series]]
    sure = np.isfinite(expiry.right)
    at = np.sort(start[sure] + expiry.right[sure].astype(int)).tolist()
    ends = panel.error[panel.starts[1:] - 1] - panel.error[panel.starts[:-1]]
    return _Counts(
        name=name,
        n=panel.n_series,
        looked_at=expiry.n,
        sure=[panel.versions[position] for position in at],
        since=at[0] if at else len(panel.versions),
        change=float(np.median(ends)),
        noisy=len(expiry.too_noisy),
    )


def _written_of(counts: tuple[int, int]) -> Cell:
    n, of = counts
    return Cell(f"{n} of {of}", float(n)) if of else Cell("–")


_INITIAL = Form(_at_first, right=True)
#: ``3 of 8``; sorted by the first number.
_OF = Form(_written_of, right=True)


def _relative(log_error: float) -> float:
    return math.expm1(float(log_error))


def _notes(study: ReleaseStudy) -> list[str]:
    alike = "; ".join(
        f"{estimate.figure.split()[2]} {100 * estimate.value:+.2f} % "
        f"[{100 * (estimate.low or 0):+.2f}, {100 * (estimate.high or 0):+.2f}]"
        for estimate in study.alike
    )
    noise = study.modelled.noise
    return [
        "RMS doubled: time until the root mean square error over all series has doubled. Median "
        "survival: time until half of the series exceed twice their initial error. Possibly still "
        "valid: share of series that never clearly exceeded that limit (at a confidence of 95 %). "
        "[low, high]: 95 % interval for these releases. > x: beyond the end of the record; the "
        "interval starts at x.",
        "Initial error: for the whole model and its composition term, the error on held-out "
        f"networks. Looked up: the times measured at {study.modelled.versions[0]} are used as the "
        "prediction. This prediction starts without an error; its limit is twice a promised error "
        "of 5 %.",
        f"Difference between two processes of the first release (mean, 95 % interval): {alike}.",
        f"Noise of one comparison: {format_fraction(noise.sd)} (median).",
        "One CPU, one framework, small networks: other systems may differ. Times of profiled "
        "operators include the profiler's overhead, which increased in release 1.28; times "
        "of networks do not.",
    ]
