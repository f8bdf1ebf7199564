"""Is the measured side of a table fit to evaluate a predictor by, and which error is whose?

Copies, rows with equal keys that differ by more than noise, impossible values, drift, and the
floor of MAPE: the error that a perfect predictor would show against these measurements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from errcomp.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from errcomp.measurements.attribution import budget as budget
    from errcomp.measurements.finding.copies import Found
    from errcomp.measurements.finding.hidden import Hidden
    from errcomp.measurements.finding.plausible import Broken
    from errcomp.measurements.leaking import leakage as leakage
    from errcomp.measurements.noise import Repeats
    from errcomp.measurements.results import (
        Copies,
        Floor,
        FloorOf,
        HiddenKey,
        ImpossibleRows,
        MeasurementCheck,
        RepeatSpread,
    )
    from errcomp.tables.memory.measurements import Measurements

__all__ = ["budget", "check", "leakage"]

#: Public name to the module that has it, imported at first use.
_LAZY = {
    "budget": "errcomp.measurements.attribution",
    "leakage": "errcomp.measurements.leaking",
}
_TABLE = re.compile(r"\.(csv|tsv|parquet|xlsx|jsonl|ndjson)(\.\w+)?$")
#: Configurations whose repeats the figure shows.
_DRAWN = 400


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def check(
    table: Any,
    *,
    measured: str | Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    unit: str | None = None,
) -> MeasurementCheck:
    r"""Check whether measurements are fit to evaluate a predictor by.

    Parameters
    ----------
    table : path, dataframe, mapping of columns or name of a built-in table
        One row for each measurement.
    measured : str or sequence of str, optional
        Column of measured values; several say more about copies, and the first is checked. By
        default the column ``measured``, or the one whose name says it.
    keys : sequence of str, optional
        Columns that identify a configuration. By default every column but quantities, identifiers,
        dates, repetitions, and texts of ``key=value`` parts, which are taken apart.
    by : str or sequence of str
        Keys whose values get a floor each.
    unit : str, optional
        Unit of the measurements, e.g. ``"ms"``; needed for limits of devices.

    Returns
    -------
    MeasurementCheck

    Raises
    ------
    InputError
        The table cannot be read, a column is missing, or no row has a measurement.

    Notes
    -----
    The floor of MAPE is :math:`E|e^{-\varepsilon} - 1|` of the noise :math:`\varepsilon` of the
    logarithm of a measurement, from repeats with equal keys and equal values of the columns that
    explain differences; copies and groups that differ by more than noise are left out
    (``with_hidden`` keeps the latter).

    Examples
    --------
    >>> import numpy as np
    >>> from errcomp.measurements import check
    >>> rng = np.random.default_rng(0)
    >>> batch = np.repeat(np.arange(1, 101), 3)
    >>> found = check({"batch": batch, "ms": batch * np.exp(0.02 * rng.normal(size=300))},
    ...               measured="ms")
    >>> found.copies.n, len(found.hidden_keys), round(found.floor.mape, 3)
    (0, 0, 0.016)
    """
    import numpy as np

    from errcomp.measurements.finding.drift import find_drift, places
    from errcomp.measurements.finding.patterns import patterns
    from errcomp.measurements.finding.plausible import implausible
    from errcomp.measurements.floor import sd_of_floor
    from errcomp.measurements.results import DriftRow, ExplainingColumn, LeftOutColumn
    from errcomp.measurements.results import MeasurementCheck as Check

    rows = read_measurements(table, measured=measured, keys=keys, unit=unit)
    grouped = tuple(dict.fromkeys((by,) if isinstance(by, str) else by))
    for name in grouped:
        if name not in rows.keys:
            raise InputError(
                f"cannot group by {name!r}: it is not a key of the table. Keys: "
                f"{', '.join(rows.keys)}"
            )
    broken = implausible(rows)
    use, once, copies, hidden = findings(rows)
    floor, floors = _floors(rows, once, hidden, grouped)
    sd = sd_of_floor(floor.mape) if floor.method == "repeats" else None
    broken += patterns(rows, once, sd)
    drift = find_drift(hidden.repeats, [p for p in rows.parts if p.kind in ("time", "repeat")])
    if drift is None:
        usual = usual_repeats(rows, once, hidden)
        drift = find_drift(usual, places(rows, usual)) or []
    kinds = [LeftOutColumn(part.name, part.kind) for part in rows.parts]
    kinds += [LeftOutColumn(name, "quantity") for name in rows.others]
    sizes = np.bincount(rows.group[use], minlength=1)
    return Check(
        source=rows.source,
        measured=rows.measured,
        unit=rows.unit,
        n=rows.n,
        key_columns=tuple(rows.keys),
        left_out=tuple(kinds),
        configurations=int((sizes > 0).sum()),
        repeated=int(sizes[sizes > 1].sum()),
        copies=_copies(rows, copies),
        hidden_keys=_hidden(rows, hidden),
        explained=tuple(
            ExplainingColumn(one.part.name, min(one.share, 1.0), one.p)
            for one in hidden.explanations
        ),
        impossible=_impossible(rows, [one for one in broken if one.certain]),
        doubtful=_impossible(rows, [one for one in broken if not one.certain]),
        floor=floor,
        floors=floors,
        drift=tuple(
            DriftRow(
                one.part.name,
                one.kind,
                one.change,
                one.low,
                one.high,
                None if one.at is None else str(one.at),
                one.p,
            )
            for one in drift
        ),
        spread=_spread(hidden),
        measure_next=_next(rows, use) if floor.method != "repeats" else (),
        dropped=rows.dropped,
    )


class Findings(NamedTuple):
    """What a table of measurements shows.

    Attributes
    ----------
    use : ndarray of bool, shape (n,)
        Positive, finite measurements, each once, however many tools predict it.
    once : ndarray of bool, shape (n,)
        The same without copies.
    copies : list of Found
    hidden : Hidden
    """

    use: NDArray[np.bool_]
    once: NDArray[np.bool_]
    copies: Sequence[Found]
    hidden: Hidden


def findings(rows: Measurements) -> Findings:
    """Find copies, and rows with equal keys that differ by more than noise."""
    import numpy as np

    from errcomp.measurements.finding.copies import find_copies
    from errcomp.measurements.finding.hidden import find_hidden
    from errcomp.tables.memory.measurements import once_for_each_tool

    value = rows.values[:, 0]
    fine = (value > 0) & np.isfinite(value)
    use = fine & once_for_each_tool(rows)
    copies = find_copies(rows, fine, use)
    once = use.copy()
    for found in copies:
        for members in found.members:
            once[members[1:]] = False
    return Findings(use, once, copies, find_hidden(rows, once))


def read_measurements(
    table: Any,
    *,
    measured: str | Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    unit: str | None = None,
) -> Measurements:
    """Return the measurements of whatever a user calls a table.

    Raises
    ------
    InputError
        There is no such table, or it cannot be used.
    """
    from errcomp.tables.memory.measurements import measurements_of

    if not isinstance(table, str | PathLike):
        frame, offset, source = table, None, ""
    else:
        frame, offset = read_file(Path(fspath(table)))
        source = fspath(table)
    names = _guessed(frame, source) if measured is None else measured
    return measurements_of(
        frame, measured=names, keys=keys, unit=unit, source=source, line_offset=offset
    )


def read_file(path: Path) -> tuple[Any, int | None]:
    """Return the table in a file, or a built-in one, and where its first row stands."""
    from errcomp import datasets
    from errcomp.errors import did_you_mean
    from errcomp.readers import read
    from errcomp.readers.plain import NAMES, read_frame
    from errcomp.readers.rows import is_output

    if path.exists():
        # A table is read as it is, even where a reader knows its columns.
        if not _TABLE.search(path.name.lower()) and is_output(path, {}):
            return _times(read(path).rows), None
        return read_frame(path, {}, NAMES, ())
    if str(path) in datasets.names():
        tables = datasets.tables(str(path))
        if len(tables) > 1:
            raise InputError(
                f"{path} holds {len(tables)} tables, but one table of measurements is needed. "
                f"Write them to a folder and name a file: errcomp datasets export {path} -o FOLDER"
            )
        return next(iter(tables.values())), None
    raise InputError(
        f"{path}: no such file, and no built-in table of that name. "
        f"{did_you_mean(str(path), datasets.names())}Built-in: {', '.join(datasets.names())}"
    )


def _times(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the times in the output of a tool: rates and sizes of the same runs repeat them."""
    import polars as pl

    times = rows.filter(pl.col("quantity") == "time")
    kept = times if times["measured"].count() else rows
    return kept.select(pl.exclude("predicted", "reference"))


def _guessed(frame: Any, source: str) -> str:
    """Return the column of measurements that its name shows."""
    from errcomp.tables.frames import holds_numbers, to_eager
    from errcomp.tables.guessing import AmbiguousColumnsError, guess

    numeric = holds_numbers(to_eager(frame))
    if numeric.get("measured"):
        return "measured"
    try:
        found = guess(numeric).columns.get("measured")
        choices = [name for name, yes in numeric.items() if yes]
    except AmbiguousColumnsError as error:
        found, choices = None, list(dict.fromkeys(side[1] for side in error.choices))
    if found is not None:
        return found
    raise InputError(
        f"{source + ': ' if source else ''}name the column of measurements: --measured COLUMN. "
        f"Columns of numbers: {', '.join(choices)}"
    )


def _copies(table: Measurements, found: Sequence[Found]) -> Copies:
    from errcomp.measurements.results import Copies, CopySet

    sets = []
    rows: set[int] = set()
    extra: set[int] = set()
    for one in found:
        for members in one.members:
            lines = [int(row) for row in table.rows[members]]
            rows.update(lines)
            extra.update(lines[1:])
            sets.append(CopySet(one.kind, tuple(lines), tuple(_differs(table, members))))
    chance = sum(one.by_chance for one in found)
    return Copies(len(rows), len(extra), chance, tuple(sorted(rows)), tuple(sets))


def _differs(table: Measurements, members: NDArray[np.int64]) -> list[str]:
    codes = {**table.keys, **{part.name: part.codes for part in table.parts}}
    return [name for name, values in codes.items() if len(set(values[members].tolist())) > 1]


def _hidden(table: Measurements, hidden: Hidden) -> tuple[HiddenKey, ...]:
    import numpy as np

    from errcomp.measurements.results import Cluster, HiddenKey

    def cluster(rows: NDArray[np.int64]) -> Cluster:
        logs = np.log(table.values[rows, 0])
        return Cluster(math.exp(float(logs.mean())), tuple(table.rows[rows].tolist()))

    varied = [name for name, codes in table.keys.items() if codes.max(initial=0) > codes.min()]
    parts = [one.part for one in hidden.explanations if one.is_key]
    found = []
    for group in hidden.groups:
        first = int(group.rows[0])
        keys = {name: value for name, value in table.key(first).items() if name in varied}
        if group.part is None:
            values = {part.name: part.values[int(part.codes[first])] for part in parts}
            keys |= {name: value for name, value in values.items() if value is not None}
        found.append(
            HiddenKey(
                keys,
                len(group.rows),
                group.ratio,
                None if group.part is None else group.part.name,
                group.p,
                tuple(sorted(int(row) for row in table.rows[group.rows])),
                tuple(map(cluster, group.clusters)) if group.part is None else None,
            )
        )
    return tuple(found)


def _spread(hidden: Hidden) -> tuple[RepeatSpread, ...]:
    """Return the spread of repeats of some configurations, the largest of them included."""
    import numpy as np

    from errcomp.measurements.noise import MOST_LOG
    from errcomp.measurements.results import RepeatSpread

    repeats = hidden.repeats
    order = np.argsort(-repeats.range, kind="stable") if repeats.n else np.empty(0, dtype=int)
    if len(order) > _DRAWN:
        half = _DRAWN // 2
        order = np.r_[order[:half], order[half :: -(-(len(order) - half) // half)]]
    return tuple(
        RepeatSpread(
            math.exp(float(repeats.mean[i])),
            math.exp(min(float(repeats.range[i]), MOST_LOG)),
            int(repeats.count[i]),
        )
        for i in sorted(order.tolist())
    )


def _impossible(table: Measurements, broken: Sequence[Broken]) -> tuple[ImpossibleRows, ...]:
    from errcomp.measurements.results import ImpossibleRows

    return tuple(
        ImpossibleRows(
            one.rule,
            one.columns,
            len(one.rows),
            tuple(int(row) for row in table.rows[one.rows]),
            one.seen,
        )
        for one in broken
    )


def _floors(
    table: Measurements, once: NDArray[np.bool_], hidden: Hidden, by: Sequence[str]
) -> tuple[Floor, tuple[FloorOf, ...]]:
    """Return the floor of the table, and of each group."""
    import numpy as np

    from errcomp.measurements.results import FloorOf
    from errcomp.tables.memory.measurements import numbered

    whole = _floor(table, once, hidden)
    if not by:
        return whole, ()
    codes = numbered([table.keys[name] for name in by], table.n)
    floors = []
    for code in np.unique(codes[once]).tolist():
        some = once & (codes == code)
        first = int(np.argmax(some))
        keys = {name: table.frame[name][first] for name in by}
        floors.append(FloorOf(keys, _floor(table, some, hidden)))
    return whole, tuple(floors)


def _floor(table: Measurements, use: NDArray[np.bool_], hidden: Hidden) -> Floor:
    """Return the floor of MAPE of the rows in use: from repeats, else from neighbours."""
    from errcomp.measurements.floor import absolute_to_mape
    from errcomp.measurements.neighbours import neighbours_of
    from errcomp.measurements.results import Floor

    floor = floor_of(table, use, hidden)
    near = neighbours_of(table, use) if floor.method == "none" else None
    if near is None:
        return floor
    return Floor(
        absolute_to_mape(near.absolute),
        math.nan,
        math.nan,
        "neighbours",
        len(set(near.line.tolist())),
        len(near.error),
        math.nan,
        near.along,
    )


def usual_repeats(table: Measurements, use: NDArray[np.bool_], hidden: Hidden) -> Repeats:
    """Return the repeats among the rows in use that differ by noise only."""
    import numpy as np

    flagged = np.zeros(table.n, dtype=bool)
    flagged[hidden.unexplained] = True
    return _repeats(table, use & ~flagged, hidden)


def _repeats(table: Measurements, use: NDArray[np.bool_], hidden: Hidden) -> Repeats:
    import numpy as np

    from errcomp.measurements.noise import repeats_of
    from errcomp.tables.memory.measurements import numbered

    logs = np.log(np.where(use, table.values[:, 0], 1.0))
    codes = [one.part.codes for one in hidden.explanations if one.is_key]
    return repeats_of(numbered([table.group, *codes], table.n), logs, use)


def floor_of(table: Measurements, use: NDArray[np.bool_], hidden: Hidden) -> Floor:
    """Return the floor of MAPE of the rows in use from repeats, if there are any."""
    import numpy as np

    from errcomp.measurements.floor import floor_of_repeats
    from errcomp.measurements.results import Floor

    every, usual = _repeats(table, use, hidden), usual_repeats(table, use, hidden)
    if not usual.n or not np.any(usual.difference > 0):
        return Floor(math.nan, math.nan, math.nan, "none", 0, 0, math.nan, None)
    found = floor_of_repeats(usual)
    whole = floor_of_repeats(every) if every.n > usual.n else found
    return Floor(
        found.mape,
        found.low,
        found.high,
        "repeats",
        usual.n,
        len(usual.rows),
        whole.mape,
        None,
    )


def _next(table: Measurements, use: NDArray[np.bool_]) -> tuple[dict[str, Any], ...]:
    """Return two configurations whose repeats say most: one of middle and one of large size."""
    import numpy as np

    at = np.flatnonzero(use)
    if not len(at):
        return ()
    order = at[np.argsort(table.values[at, 0], kind="stable")]
    chosen = dict.fromkeys([int(order[len(order) // 2]), int(order[int(0.9 * (len(order) - 1))])])
    return tuple(table.key(row) for row in chosen)
