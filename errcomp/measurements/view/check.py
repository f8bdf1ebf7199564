"""Report of a check of measurements: the answer, and what a maintainer can act on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import Column, Figure, Report, Table, Verdict, key_text
from errcomp.results import format_change, format_fraction, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.measurements.results import (
        ExplainingColumn,
        Floor,
        HiddenKey,
        MeasurementCheck,
    )

#: Rows of the tables of findings.
_SHOWN = 10
#: Fewest rows that can form clusters.
_FEWEST = 4
#: Keys of a configuration that a table shows.
_KEYS = 5
_TITLE = "Measurements"
_SPREAD = (
    "Largest over smallest measurement of each configuration with repeats, by its size. Copies are "
    "left out."
)
_MAP = "Each point is a copy: its row, against the row that states its value first."


def check_view(found: MeasurementCheck) -> Report:
    """Return the report of a check."""
    figures = _figures(found)
    return Report(
        title=_TITLE,
        line=_line(found),
        verdicts=_verdicts(found),
        tables=[
            _summary(found),
            *_explained(found),
            *_hidden(found),
            *_copies(found),
            *_impossible(found),
            *_floors(found),
            *_drift(found),
        ],
        figures=figures,
        method=_method(found),
        draw=figures[0].draw if figures else None,
    )


def _figures(found: MeasurementCheck) -> list[Figure]:
    figures = []
    if found.spread:
        figures.append(Figure("repeats", _SPREAD, partial(_draw, "spread", found)))
    if found.copies.sets:
        figures.append(Figure("copies", _MAP, partial(_draw, "copies_map", found)))
    return figures


def _line(found: MeasurementCheck) -> list[str]:
    floor = "floor unknown"
    if not math.isnan(found.floor.mape):
        floor = f"floor {format_fraction(found.floor.mape)}"
    return [f"copies {found.copies.n:,}", floor, f"n={found.n:,}"]


def _verdicts(found: MeasurementCheck) -> list[Verdict]:
    floor = found.floor
    verdicts = []
    if floor.method == "repeats":
        text = f"a perfect predictor would show a MAPE of {_floor_text(floor)} here"
        verdicts.append(Verdict("Floor", text, "plain"))
    elif floor.method == "neighbours":
        text = f"a perfect predictor would show a MAPE of at most about {_floor_text(floor)} here"
        verdicts.append(Verdict("Floor", text, "doubt"))
    else:
        verdicts.append(Verdict("Floor unknown", "no configuration was measured twice", "doubt"))
    bad = [
        f"{what}: {n:,}"
        for what, n in (
            ("copies", found.copies.n),
            ("impossible values", _n_impossible(found)),
            ("configurations with equal keys and different values", len(found.hidden_keys)),
        )
        if n
    ]
    if bad:
        verdicts.append(Verdict("Look at", "; ".join(bad), "bad"))
    return verdicts


def _n_impossible(found: MeasurementCheck) -> int:
    return len({row for one in found.impossible for row in one.rows})


def _floor_text(floor: Floor) -> str:
    if math.isnan(floor.mape):
        return "unknown"
    if math.isnan(floor.low):
        return format_fraction(floor.mape)
    return forms.estimate.write(_estimate(floor)).text


def _estimate(floor: Floor) -> Any:
    from errcomp.results import Estimate

    known = not math.isnan(floor.low)
    low, high = (floor.low, floor.high) if known else (None, None)
    return Estimate("floor", floor.mape, low, high, 0.95 if known else None, n=floor.n)


def _summary(found: MeasurementCheck) -> Table:
    floor = found.floor
    rows: list[tuple[str, str]] = [
        ("Rows", f"{found.n:,} with {found.measured[0]}"),
        ("Configurations", f"{found.configurations:,}; {found.repeated:,} rows repeat one"),
        ("Copies", _copies_text(found)),
        ("Equal keys, other values", _hidden_text(found)),
        ("Impossible values", f"{_n_impossible(found):,}"),
        ("Floor of MAPE [95 %]", _floor_text(floor)),
    ]
    columns = [
        Column("", lambda row: row[0], key=True),
        Column(found.source or "Table", lambda row: row[1]),
    ]
    return Table(_TITLE, columns, rows, _notes(found))


def _copies_text(found: MeasurementCheck) -> str:
    copies = found.copies
    if not copies.n:
        return "0"
    chance = f", about {copies.by_chance:.0f} by chance" if copies.by_chance >= 0.5 else ""
    return f"{copies.n:,} rows in {count(len(copies.sets), 'set')}{chance}"


def _hidden_text(found: MeasurementCheck) -> str:
    if not found.hidden_keys:
        return "none beyond noise"
    rows = sum(row.n for row in found.hidden_keys)
    largest = format_number(found.hidden_keys[0].ratio, 3)
    return f"{count(len(found.hidden_keys), 'configuration')} ({rows:,} rows), up to × {largest}"


def _notes(found: MeasurementCheck) -> list[str]:
    floor = found.floor
    notes = []
    if floor.method == "repeats":
        notes.append(
            f"Floor: the MAPE of a perfect predictor, from {count(floor.groups, 'configuration')} "
            f"with {floor.n:,} repeats; copies of rows are left out."
        )
        if floor.with_hidden > floor.mape:
            more = format_fraction(floor.with_hidden)
            notes.append(f"Floor including the rows that differ by more than noise: {more}.")
    elif floor.method == "neighbours":
        notes.append(
            "Floor: an upper bound, because no configuration was measured twice. It comes from "
            f"comparing {floor.n:,} values with their neighbours along {floor.along}, and assumes "
            "that time is smooth between neighbours."
        )
    if found.measure_next:
        notes += [f"Measure again next: {_keys_text(keys)}" for keys in found.measure_next]
    if found.left_out:
        notes.append(
            "Columns not used as keys, and what they hold: "
            + ", ".join(f"{one.column} ({one.kind})" for one in found.left_out)
        )
    notes += [f"{count(one.n, 'row')} not used: {one.reason}" for one in found.dropped]
    return notes


def _explained(found: MeasurementCheck) -> list[Table]:
    if not found.explained:
        return []

    def groups(column: str) -> list[HiddenKey]:
        return [row for row in found.hidden_keys if row.explained_by == column]

    def largest(row: ExplainingColumn) -> float | None:
        return max((one.ratio for one in groups(row.column)), default=None)

    columns = [
        Column("Column", lambda row: row.column, key=True),
        Column("Explains", lambda row: row.share, forms.share),
        Column("Configurations", lambda row: len(groups(row.column)), forms.count),
        Column("Rows", lambda row: sum(one.n for one in groups(row.column)), forms.count),
        Column("Ratio up to", largest, forms.significant(3)),
    ]
    notes = [
        "Rows with equal keys differ in these columns. Add those that are settings to the keys, "
        "but not dates or numbers of repetitions. Explains: share of the variance (of logarithms) "
        "within equal keys that the column explains."
    ]
    times = {one.column for one in found.left_out if one.kind in ("time", "repeat")}
    if named := [row.column for row in found.explained if row.column in times]:
        notes.append(
            "Columns with dates or numbers of repetitions are treated as causes of noise, not as "
            f"keys: {_names_text(named)}"
        )
    return [Table("Keys that the table hides", columns, found.explained, notes)]


def _hidden(found: MeasurementCheck) -> list[Table]:
    rows = [row for row in found.hidden_keys if row.explained_by is None]
    if not rows:
        return []
    # Of long lists, those whose values say most come first.
    shown = sorted(rows, key=lambda row: not row.clusters)[:_SHOWN]
    columns = [
        Column("Keys", lambda row: _keys_text(row.of), key=True),
        Column("Ratio", lambda row: row.ratio, forms.significant(3)),
        Column("n", lambda row: row.n, forms.count),
        *([Column("Clusters", _clusters_text)] if any(row.clusters for row in shown) else []),
        Column("Rows", lambda row: _rows_text(row.rows)),
    ]
    notes = [
        "Ratio: largest over smallest measurement. These rows differ by more than the noise of "
        "other rows, and no column of the table says why.",
        *_settings(rows),
    ]
    title = "Equal keys, other values"
    return [Table(title, columns, shown, notes + _more(len(rows)))]


def _clusters_text(row: HiddenKey) -> str:
    texts = [f"{len(one.rows)} × {format_number(one.value, 3)}" for one in row.clusters or ()]
    return ", ".join(texts) or "none"


def _settings(rows: list[HiddenKey]) -> list[str]:
    """Say in how many configurations the values form clusters."""
    clustered = [row.clusters for row in rows if row.clusters]
    if not clustered:
        return []
    beside = sum(sum(sizes) - max(sizes) for sizes in ([len(c.rows) for c in s] for s in clustered))
    of = count(sum(row.n >= _FEWEST for row in rows), "such configuration")
    return [
        f"In {len(clustered):,} of {of} with {_FEWEST} rows or more, the values form clusters "
        "(rows × mean), as under several settings of the system; they come first. "
        f"{count(beside, 'row')} {'is' if beside == 1 else 'are'} outside the largest cluster."
    ]


def _copies(found: MeasurementCheck) -> list[Table]:
    sets = found.copies.sets
    if not sets:
        return []
    kinds = list(dict.fromkeys(one.kind for one in sets))
    rows = []
    for kind in kinds:
        some = [one for one in sets if one.kind == kind]
        differs = dict.fromkeys(name for one in some for name in one.differs)
        rows.append((kind, len(some), sum(len(one.rows) for one in some), list(differs), some[0]))
    columns = [
        Column("Kind", lambda row: row[0], key=True),
        Column("Sets", lambda row: row[1], forms.count),
        Column("Rows", lambda row: row[2], forms.count),
        Column("First", lambda row: _rows_text(row[4].rows)),
        Column("Differ in", lambda row: _names_text(row[3])),
    ]
    legend = {
        "equal": "equal: equal keys and the same value (to 1e-6).",
        "near": "near: equal keys, and values within 0.1 %.",
        "carried over": "carried over: other keys, but the same digits.",
        "default": "default: one value at five or more configurations.",
        "scaled": "scaled: the values of other rows times one factor.",
    }
    notes = [" ".join(legend[kind] for kind in kinds), "Every row: --json, or -o FILE.csv."]
    return [Table("Copies", columns, rows, notes)]


def _impossible(found: MeasurementCheck) -> list[Table]:
    tables = []
    for title, rows in (
        ("Impossible values", found.impossible),
        ("Doubtful values", found.doubtful),
    ):
        if rows:
            columns = [
                Column("Rule", lambda row: row.rule, key=True),
                Column("Broken in", lambda row: row.n, forms.count),
                Column("Rows", lambda row: _rows_text(row.rows)),
                Column("First", lambda row: row.seen),
            ]
            tables.append(Table(title, columns, rows))
    return tables


def _floors(found: MeasurementCheck) -> list[Table]:
    if not found.floors:
        return []
    names = list(found.floors[0].of)
    columns = [
        *[Column(name, partial(_key, name), key=True) for name in names],
        Column("Floor of MAPE [95 %]", lambda row: _estimate(row.floor), forms.estimate),
        Column("From", lambda row: row.floor.method),
        Column("Configurations", lambda row: row.floor.groups, forms.count),
        Column("n", lambda row: row.floor.n, forms.count),
    ]
    return [Table("Floor by group", columns, found.floors)]


def _key(name: str, row: Any) -> str:
    return key_text(row.of.get(name))


def _drift(found: MeasurementCheck) -> list[Table]:
    if not found.drift:
        return []
    columns = [
        Column("Column", lambda row: row.column, key=True),
        Column("Kind", lambda row: row.kind),
        Column("From", lambda row: row.at or "first to last"),
        Column("Change [95 %]", lambda row: format_change(row.change, row.low, row.high)),
        Column("p", lambda row: row.p, forms.p_value),
    ]
    notes = [
        "Change: change of the measured time in repeats of the same configuration, from low to "
        "high values of the column."
    ]
    if {row.column for row in found.drift} - {one.column for one in found.left_out}:
        notes.append(
            "No column holds the time of a measurement. If repeats stand in their order, this is "
            "warm-up, or throttling."
        )
    return [Table("Drift", columns, found.drift, notes)]


def _method(found: MeasurementCheck) -> list[tuple[str, str]]:
    return [
        ("Keys", ", ".join(found.key_columns) or "none"),
        ("Copies", "agreements beyond what chance explains (docs/measurements.md)"),
        ("Equal keys", "variance of each group against that of the others, 5 % false ones"),
        ("Floor", "mean absolute difference of repeats, jackknife over configurations"),
    ]


def _rows_text(rows: tuple[int, ...]) -> str:
    shown = ", ".join(str(row) for row in rows[:3])
    return shown + (f" (+{len(rows) - 3})" if len(rows) > 3 else "")


def _names_text(names: list[str]) -> str:
    if not names:
        return "nothing"
    return ", ".join(names[:3]) + (f" (+{len(names) - 3})" if len(names) > 3 else "")


def _keys_text(keys: Mapping[str, Any]) -> str:
    """Write the first keys: those of a long row are in --json."""
    texts = [f"{name}={key_text(value)}" for name, value in keys.items()]
    return ", ".join(texts[:_KEYS]) + (
        f" (and {len(texts) - _KEYS} more keys)" if len(texts) > _KEYS else ""
    )


def _more(n: int) -> list[str]:
    return [f"{count(n - _SHOWN, 'configuration')} more: --json"] if n > _SHOWN else []


def _draw(name: str, found: MeasurementCheck, ax: Axes | None = None) -> Axes:
    """Draw a figure; they are imported only when needed."""
    from errcomp.measurements.view import figures

    drawn: Axes = getattr(figures, name)(found, ax)
    return drawn
