"""A study of releases as tables for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.report import forms
from errcomp.report.model import Column, Table
from errcomp.report.tables.halflife import steps_table, written
from errcomp.results import format_change, format_fraction

if TYPE_CHECKING:
    from errcomp.halflife.results import GroupHalfLife
    from errcomp.halflife.study import ReleaseStudy

__all__ = ["study_tables"]

_NAMES = {
    "model": "whole model (operators × composition)",
    "composition": "composition term alone",
    "kernel": "operators, each as it was",
    "operators": "operators of a network together",
    "run": "networks, each as it was",
}


def study_tables(study: ReleaseStudy) -> list[Table]:
    """Return the half-lives by level, by class of operator and by network, and the steps."""
    first, last = study.modelled.versions[0], study.modelled.versions[-1]
    levels = [*study.modelled.groups, *study.looked_up.groups]
    order = list(_NAMES)
    levels.sort(key=lambda group: order.index(group.key["level"]))
    return [
        _table(
            f"A model calibrated at {first}, judged at every release to {last}: half-life by level",
            "Level",
            [(_NAMES[group.key["level"]], group) for group in levels],
            _notes(study),
        ),
        _few(
            "Operators by class, as they were: which are as wrong as 5 % doubled, and since when",
            "Operator",
            [(str(group.key["kernel_class"]), group) for group in study.classes.groups],
        ),
        _few(
            "The whole model by network: where its error is beyond twice that at first",
            "Network",
            [(str(group.key["model"]), group) for group in study.networks.groups],
        ),
        steps_table(study.classes),
    ]


def _table(
    title: str, header: str, groups: Sequence[tuple[str, GroupHalfLife]], notes: Sequence[str]
) -> Table:
    rows = [_row(name, group) for name, group in groups]
    columns = [
        Column(header, lambda row: row["name"], key=True),
        Column("Series", lambda row: row["n"], forms.count),
        Column("Error at first", lambda row: row["first"], form=forms.as_written),
        Column("Error at last", lambda row: row["last"], form=forms.as_written),
        Column("RMS doubled: releases", lambda row: row["releases"], form=forms.as_written),
        Column("months", lambda row: row["months"], form=forms.as_written),
        Column("Half expired: months", lambda row: row["half"], form=forms.as_written),
        Column("Not surely expired", lambda row: row["censored"], form=forms.as_written),
    ]
    return Table(title, columns, rows, notes)


def _few(title: str, header: str, groups: Sequence[tuple[str, GroupHalfLife]]) -> Table:
    """Show groups of few series: what each of them did, without a figure for others like them."""
    rows = [_counts(name, group) for name, group in groups]
    rows.sort(key=lambda row: (-row["share"], row["since"], -row["size"]))
    columns = [
        Column(header, lambda row: row["name"], key=True),
        Column("Series", lambda row: row["n"], forms.count),
        Column("Expired", lambda row: row["expired"], form=forms.as_written),
        Column("First at", lambda row: row["first"]),
        Column("Last at", lambda row: row["last"]),
        Column(
            "Predicted / measured, first to last release",
            lambda row: row["change"],
            form=forms.as_written,
        ),
        Column("Too noisy", lambda row: row["noisy"], form=forms.as_written),
    ]
    notes = [
        "Expired: surely beyond the limit at some release, at 95 % for each series; the releases "
        "named are those at which it was sure for the first and the last of them. Too noisy: noise "
        "leaves every release open. Predicted / measured: its change, median over the series; "
        "above 0 the measured time fell (faster)."
    ]
    return Table(title, columns, rows, notes)


def _counts(name: str, group: GroupHalfLife) -> dict[str, Any]:
    panel, expiry = group.panel, group.expiry["releases"]
    start = panel.version[panel.starts[expiry.series]]
    sure = np.isfinite(expiry.right)
    at = np.sort(start[sure] + expiry.right[sure].astype(int)).tolist()
    ends = panel.error[panel.starts[1:] - 1] - panel.error[panel.starts[:-1]]
    change = float(np.median(ends))
    return {
        "name": name,
        "n": panel.n_series,
        "share": len(at) / panel.n_series,
        "since": at[0] if at else len(panel.versions),
        "size": abs(change),
        "expired": f"{len(at)} of {expiry.n}" if expiry.n else "–",
        "first": panel.versions[at[0]] if at else "–",
        "last": panel.versions[at[-1]] if at else "–",
        "change": format_change(_relative(change)),
        "noisy": str(len(expiry.too_noisy) or "–"),
    }


def _row(name: str, group: GroupHalfLife) -> dict[str, Any]:
    expiry = group.expiry.get("releases")
    rms = group.trajectory.rms
    source = group.threshold.source
    return {
        "name": name,
        "n": group.panel.n_series,
        "first": "5 % promised" if source == "given" else format_fraction(_relative(rms[0])),
        "last": format_fraction(_relative(rms[-1])),
        "releases": written(group.estimate("trajectory", "releases")),
        "months": written(group.estimate("trajectory", "months")),
        "half": written(group.estimate("turnbull", "months")),
        "censored": "–"
        if expiry is None or not expiry.n
        else f"{100 * expiry.censored_share:.0f} %",
    }


def _relative(log_error: float) -> float:
    return math.expm1(float(log_error))


def _notes(study: ReleaseStudy) -> list[str]:
    alike = "; ".join(
        f"{one.figure.split()[2]} {100 * one.value:+.2f} % [{100 * (one.low or 0):+.2f}, "
        f"{100 * (one.high or 0):+.2f}]"
        for one in study.alike
    )
    noise = study.modelled.noise
    return [
        "RMS doubled: until the root mean square error over all series has doubled. Half expired: "
        "until half of the series are beyond twice the error. Not surely expired: not beyond it by "
        "more than noise explains (95 %) at any release. [low, high]: 95 % interval, given "
        "these releases; > x: more than x, "
        "where the interval begins; not doubled, or less than half expired, in the record.",
        "The whole model and its composition term start with the error they have on networks that "
        "they were not fitted to; operators and networks that are looked up start with none, and "
        "are held to what 5 % would promise.",
        f"Two processes of the first release differ by (mean, 95 % interval): {alike}.",
        f"Noise of one comparison: {format_fraction(noise.sd)} (median).",
        "One CPU, one framework, small networks: how long models hold elsewhere is not in it. "
        "Profiled operators hold the profiler's own time, which grew from 1.28 on; un-profiled "
        "networks do not.",
    ]
