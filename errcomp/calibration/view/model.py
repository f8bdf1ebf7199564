"""Calibrated models as documents and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from errcomp.report import forms
from errcomp.report.model import Cell, Column, Form, Note, Report, Table, item, report_of
from errcomp.results import format_number

if TYPE_CHECKING:
    from errcomp.calibration.estimators.bayesian.hierarchical import LaunchOverhead
    from errcomp.calibration.fitted import CompositionModel

__all__ = [
    "LAUNCH_WORDS",
    "REGIMES",
    "SHOWN",
    "counted",
    "fit_tables",
    "in_words",
    "model_document",
    "model_tables",
    "overheads",
    "unused_notes",
]

#: The level of the bands that are shown.
SHOWN = 0.9
#: Runs of a band in words, and the groups held out to calibrate it.
REGIMES = {
    "device": ("a run on a known device", "model"),
    "global": ("a run on a new device", "device"),
}
#: Features of launches in words.
LAUNCH_WORDS = {
    "launch_idle": "Kernels without work",
    "launch_work": "Inference",
    "launch_work_training": "Training",
    "run_start": "Run, once",
}


def counted(n: int, word: str) -> str:
    """Count things.

    Examples
    --------
    >>> counted(1, "run"), counted(2, "run")
    ('1 run', '2 runs')
    """
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def in_words(text: str, group: str) -> str:
    """Name the groups of a note.

    Examples
    --------
    >>> in_words("runs of new groups like these 4", "model")
    'runs of new models like these 4'
    """
    return text.replace("group", group)


def model_document(model: CompositionModel) -> dict[str, Any]:
    """Return the document of a fitted model; its rows are the bands of each estimator."""
    from errcomp.calibration.features import FEATURES

    training, unknown = model.training, (None, None)
    ranges = training.ranges
    return {
        "task": model.preparation.state.task,
        "unit": model.unit,
        "created": model.created or None,
        "versions": dict(model.versions),
        "fingerprint": model.fingerprint,
        "runs": len(training),
        "devices": list(training.devices),
        "models": list(training.models),
        "modes": list(training.modes),
        "estimators": list(model.estimators),
        "weights": {regime: dict(weights) for regime, weights in model.weights.items()},
        "features": [
            {
                "name": feature.name,
                "unit": feature.unit,
                "meaning": feature.meaning,
                "low": ranges.get(feature.name, unknown)[0],
                "high": ranges.get(feature.name, unknown)[1],
            }
            for feature in FEATURES
        ],
        "rows": [
            _band_row(model, estimator, regime)
            for estimator in model.estimators
            for regime in REGIMES
        ],
        "overhead": [
            {
                "device": cost.device or None,
                "launches": kind,
                "median_us": cost.median,
                "low_90_us": cost.low,
                "high_90_us": cost.high,
            }
            for kind, cost in overheads(model)
        ],
        "adapted": [
            {"device": device, "runs": len(runs), "in_fit": runs.regime == "device"}
            for device, runs in model.adapted.items()
        ],
    }


def overheads(model: CompositionModel) -> list[tuple[str, LaunchOverhead]]:
    """Return the launch costs of the physical model, each with its feature."""
    from errcomp.calibration.estimators import columns_of
    from errcomp.calibration.estimators.bayesian.hierarchical import HierarchicalModel
    from errcomp.calibration.features import FEATURES

    physical = model.members.get(model.explaining or "")
    if model.explaining is None or not isinstance(physical, HierarchicalModel):
        return []
    columns = columns_of(model.explaining, model.preparation.task)
    of_column = {
        physical.columns.names[c]: FEATURES[columns[c]].name for c in physical.columns.launch
    }
    state = model.preparation.state
    # Kernels that were not measured have the common floor.
    of = state.floors if state.task == "composition" else {}
    floors_us = {name: 1e6 * of.get(name, state.floor) for name in physical.devices}
    floors_us[""] = 1e6 * state.floor
    return [(of_column[cost.column], cost) for cost in physical.launch_overhead(floors_us)]


def _band_row(model: CompositionModel, estimator: str, regime: str) -> dict[str, Any]:
    bands = model.bands.get((estimator, regime))
    group = REGIMES[regime][1]
    row = {"estimator": estimator, "fallback": regime, "left_out": group, "calibrated": False}
    if bands is None:
        note = f"too few {group}s to hold out, so the band is the estimator's own"
        return {**row, "notes": [note], "levels": []}
    at = bands.levels.index(SHOWN)
    shown = bands.info_[at]
    return {
        **row,
        "calibrated": True,
        "method": shown.method,
        "n": shown.n,
        "groups": shown.groups,
        "groups_needed": shown.groups_needed,
        "factor_90": shown.factor,
        "guarantee": in_words(shown.guarantee, group),
        "factor_90_by_mode": {mode: info[at].factor for mode, info in bands.categories_.items()},
        "notes": [in_words(note, group) for note in bands.notes],
        "levels": [info.to_dict() for info in bands.info_],
    }


def model_view(model: CompositionModel) -> Report:
    """Return the report of a fitted model."""
    line = (model.estimators[-1], f"{len(model.training)} runs")
    return replace(report_of(*model_tables(model.to_dict())), line=line)


def fit_tables(document: Mapping[str, Any]) -> list[Table]:
    """Show a fit: its data, the basis of its bands, and how sampling went."""
    title = f"Model fitted to {document['source'] or 'the table'} (task: {document['task']})"
    return [_facts(document, title, stored=False), *_details(document)]


def model_tables(document: Mapping[str, Any]) -> list[Table]:
    """Show a stored model in full."""
    title = f"Model file {document['model']}" if "model" in document else "Fitted model"
    return [_facts(document, title, stored=True), *_details(document), _features(document)]


def _details(document: Mapping[str, Any]) -> list[Table]:
    tables = [_bands(document)]
    if document["overhead"]:
        tables.append(_overhead(document))
    return tables


def _facts(document: Mapping[str, Any], title: str, *, stored: bool) -> Table:
    """Show the facts about a model, one per line."""
    facts = {
        "task": document["task"],
        "runs": str(document["runs"]),
        "devices": _names(document["devices"]),
        "models": _names(document["models"]),
        "modes": _names(document["modes"]),
        "estimators": ", ".join(document["estimators"]) + " (the last is the default)",
        "stack": "; ".join(
            f"{REGIMES[regime][0]}: "
            + ", ".join(f"{name} {100 * share:.0f} %" for name, share in weights.items())
            for regime, weights in document["weights"].items()
        ),
    }
    if stored:
        facts |= {
            "unit in the fit": str(document["unit"]),
            "fitted": document["created"],
            "libraries installed": ", ".join(f"{k} {v}" for k, v in document["versions"].items()),
            "table": document["fingerprint"],
        }
    if document.get("adapted"):
        each = [f"{one['device']} ({counted(one['runs'], 'run')})" for one in document["adapted"]]
        facts["adapted to"] = ", ".join(each)
    rows = [{"name": name, "value": value} for name, value in facts.items() if value]
    columns = [Column("", lambda row: row["name"]), Column("", lambda row: row["value"])]
    return Table(
        title, columns, rows, [*unused_notes(document.get("unused", {})), *_sampling(document)]
    )


def unused_notes(unused: Mapping[str, str]) -> list[str]:
    """Return notes on the runs that could not be used, by reason."""
    from errcomp.errors import describe_names

    by_reason: dict[str, list[str]] = {}
    for run, reason in unused.items():
        by_reason.setdefault(reason, []).append(run)
    return [
        f"Not used: {counted(len(runs), 'run')} ({describe_names(runs)}): {reason}."
        for reason, runs in by_reason.items()
    ]


def _names(names: Sequence[str]) -> str:
    from errcomp.errors import describe_names

    return f"{len(names)}: {describe_names([name or '(unknown)' for name in names])}"


def _sampling(document: Mapping[str, Any]) -> list[Note | str]:
    """Return notes on the sampling of the Bayesian fit."""
    checks = document.get("diagnostics")
    if not checks:
        return []
    ess = min(checks["min_ess_bulk"], checks["min_ess_tail"])
    cut = " (others were interrupted)" if checks["interrupted"] else ""
    return [
        f"Sampling: {checks['chains']} chains of {checks['draws']} draws{cut}, R-hat at most "
        f"{checks['max_rhat']:.4f}, effective sample size at least {ess:.0f}, "
        f"{counted(checks['divergences'], 'divergence')}, BFMI at least {checks['min_bfmi']:.2f}.",
        *(item(f"{text.rstrip('.')}.") for text in (*checks["problems"], *checks["caveats"])),
    ]


def _bands(document: Mapping[str, Any]) -> Table:
    columns = [
        Column("Estimator", lambda row: row["estimator"], key=True),
        Column("Band for", lambda row: REGIMES[row["fallback"]][0]),
        Column("Calibrated on", _calibrated),
        Column("Method", lambda row: row.get("method", "–")),
        Column("Factor (90 %)", lambda row: row, _FACTOR),
    ]
    last = document["estimators"][-1]
    notes: list[Note | str] = [
        "Factor: the width of the estimator's own band was multiplied by this factor to cover "
        "held-out groups; above 1, the band became wider.",
    ]
    of_last = dict.fromkeys(
        note for row in document["rows"] if row["estimator"] == last for note in row["notes"]
    )
    notes += [item(f"{last}: {note}.") for note in of_last]
    return Table("Basis of the bands", columns, document["rows"], notes)


def _calibrated(row: Mapping[str, Any]) -> str:
    if not row["calibrated"]:
        return "nothing: too few groups"
    return f"{counted(row['n'], 'run')}, {counted(row['groups'], row['left_out'])} held out in turn"


def _factor(row: Mapping[str, Any]) -> Cell:
    """Return the cell of a factor, with the factors of modes that have their own."""
    if not row["calibrated"]:
        return Cell("–")
    cell = forms.significant(2).write(row["factor_90"])
    own = [f", {mode} {format_number(f, 2)}" for mode, f in row["factor_90_by_mode"].items()]
    return Cell(f"{cell.text}{''.join(own)}", cell.value) if own else cell


_FACTOR = Form(_factor, right=True)


def _overhead(document: Mapping[str, Any]) -> Table:
    """Show launch costs, one device per line, one column per kind of launch."""
    of: dict[str, dict[str, Any]] = {}
    for row in document["overhead"]:
        of.setdefault(row["device"] or "(a new device)", {})[row["launches"]] = row
    kinds = dict.fromkeys(row["launches"] for row in document["overhead"])
    columns = [
        Column("Device", lambda row: row["device"], key=True),
        *(_cost(kind) for kind in kinds),
    ]
    notes = [
        "Time to launch a kernel that is measured alone; a run hides this time behind other work. "
        "Below 0: the run adds this time between kernels. Run, once: time that the run adds for "
        "its start and end. Values are posterior medians, with 90 % intervals, which are wide "
        "where the runs contain little information.",
    ]
    rows = [{"device": device, "costs": costs} for device, costs in of.items()]
    return Table("Overhead per launch in µs", columns, rows, notes)


def _cost(kind: str) -> Column:
    def cost(row: Mapping[str, Any]) -> forms.Ends:
        entry = row["costs"][kind]
        return entry["median_us"], entry["low_90_us"], entry["high_90_us"]

    return Column(LAUNCH_WORDS.get(kind, kind), cost, forms.interval(1))


def _of_feature(value: tuple[float | None, str]) -> Cell:
    """Return the cell of a value of a feature in its unit."""
    from errcomp.calibration.features import Feature

    number, unit = value
    return Cell("–") if number is None else forms.figure(*Feature("", unit, "").written(number))


#: A logarithm is converted back.
_OF_FEATURE = Form(_of_feature, right=True)


def _features(document: Mapping[str, Any]) -> Table:
    columns = [
        Column("Feature", lambda row: row["name"], key=True),
        Column("From", lambda row: (row["low"], row["unit"]), _OF_FEATURE),
        Column("To", lambda row: (row["high"], row["unit"]), _OF_FEATURE),
        Column("Meaning", lambda row: row["meaning"]),
    ]
    notes = [
        "From, to: range of the feature over the runs of the fit; a run outside this range is "
        "predicted with a warning. Total: sum of kernel times. Launch floor: time to launch a "
        "kernel, from the shortest measured kernels (7 µs if none was measured). Unit ln: natural "
        "logarithm of the ratio that is given as meaning."
    ]
    return Table("Features of a run", columns, document["features"], notes)
