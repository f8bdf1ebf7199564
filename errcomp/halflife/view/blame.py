"""The report of which parts made wholes slower or faster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from errcomp.errors import InputError
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import Column, Figure, Note, Report, Table, Verdict, item
from errcomp.results import format_change

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.halflife.steps.blame import Blame, Event, Part

__all__ = ["blame_view", "contributions", "sentence"]

#: Events and parts in the text; the document has all.
_EVENTS, _PARTS = 5, 3
_ROWS = 20
#: A change of a whole, and of parts, at this p-value is clear.
_CLEAR = 0.05
#: Where parts add up to less than this share of a whole, the sentence says so.
_MOST = 0.8


def blame_view(found: Blame) -> Report:
    """Return a sentence for each of the largest events, and what each part contributes."""
    events = found.events[:_EVENTS]
    tables = [_parts(found, events)]
    if found.n_wholes > 1 and len(found.events) > 1:
        tables.append(_versions(found))
    draw = partial(contributions, found)
    return Report(
        title="What changed, and why?",
        line=[
            f"level {found.whole}, n={found.n_wholes:,} series",
            f"parts of level {found.part}",
            f"{found.versions[0]} to {found.versions[-1]}",
        ],
        verdicts=[Verdict(*sentence(event)) for event in events] or [_NOTHING],
        tables=tables,
        method=[("False-alarm rate of the search", f"{100 * found.alpha:g} % of series")],
        notes=list(found.notes),
        figures=[
            Figure("points", "What the parts contribute to the largest change.", draw),
        ]
        if found.events
        else [],
        draw=draw,
    )


_NOTHING = Verdict("No change found", "— neither a whole nor a part of it has a step.", "plain")


def sentence(event: Event) -> tuple[str, str]:
    """Say what happened to a whole and which parts did it: the head, and the rest.

    Examples
    --------
    >>> from errcomp.halflife.steps.blame import Event, Part
    >>> gelu = Part("Gelu", "both", 1, 1.0, 1.2, 0.02, 0.01, 0.03, 0.001)
    >>> conv = Part("Conv", "both", 4, 6.0, 5.5, -0.05, -0.06, -0.04, 0.001)
    >>> rest = Part("rest", "both", 0, 3.0, 3.0, 0.0, -0.01, 0.01, 0.9)
    >>> event = Event("net", "1.6", "1.5", 6, 6, 10.0, 9.7, -0.03, -0.04, -0.02, 0.001, None, 0.7,
    ...               (conv, gelu), rest)
    >>> head, text = sentence(event)
    >>> print(head)
    net has taken 3.0 % less time since 1.6:
    >>> print(text.partition("; time outside")[0])
    Conv (-8.3 %) takes off 5.0 points; Gelu (+20.0 %) adds 2.0 points
    >>> print("Time outside" + text.partition("; time outside")[2])
    Time outside the parts: 0.0 points. The parts make up 70 % of the time of net.
    """
    percent = format_change(abs(event.change)).lstrip("+")
    clear = [part for part in event.parts if part.p <= _CLEAR or math.isnan(part.p)][:_PARTS]
    if event.p <= _CLEAR or (math.isnan(event.p) and event.change):
        way = "less time" if event.change < 0 else "longer"
        head = f"{event.whole} has taken {percent} {way} since {event.version}:"
    else:
        small = abs(event.change) < 0.0005
        change = "by less than 0.1 %" if small else format_change(event.change)
        head = (
            f"The time of {event.whole} has not changed significantly since {event.version} "
            f"({change})"
        )
        head += ", but these parts have:" if clear else ":"
    said = [_told(part) for part in clear]
    others = [part for part in event.parts if part not in clear]
    unclear = not any(part.p <= _CLEAR for part in others)
    if others:
        total = sum(part.points for part in others)
        none = "none" if len(others) > 1 else "not"
        noun = "other part" if clear else "part"
        clarity = f", {none} significant" if unclear else ""
        said.append(f"{count(len(others), noun)}{clarity}: {_points(total)} points")
    said.append(f"time outside the parts: {_points(event.rest.points)} points")
    text = "; ".join(said) + "."
    if event.listed < _MOST:
        text += f" The parts make up {100 * event.listed:.0f} % of the time of {event.whole}."
    if event.stack:
        text += f" Also changed at that version: {', '.join(event.stack)}."
    return head, text


def _told(part: Part) -> str:
    verb = "takes off" if part.points < 0 else "adds"
    what = {
        "both": format_change(part.change) if part.listed == "both" else "",
        "before": "no longer listed",
        "after": "newly listed",
    }[part.listed]
    return f"{part.name} ({what}) {verb} {100 * abs(part.points):.1f} points"


def _points(share: float) -> str:
    text = f"{100 * share:+.1f}"
    return text if float(text) else "0.0"


class _Row(NamedTuple):
    event: Event
    part: Part


def _parts(found: Blame, events: Sequence[Event]) -> Table:
    rows = []
    for event in events:
        clear = [part for part in event.parts if part.p <= _CLEAR or math.isnan(part.p)]
        rows += [_Row(event, part) for part in [*clear[: 2 * _PARTS], event.rest]]
    unit = f" ({found.unit})" if found.unit else ""

    def points(row: _Row) -> forms.Ends:
        ends = (row.part.low, row.part.high)
        known = all(map(math.isfinite, ends))
        return (row.part.points, *(ends if known else (None, None)))

    columns = [
        Column(found.whole.capitalize(), lambda row: row.event.whole, key=True),
        Column("Since", lambda row: row.event.version, key=True),
        Column("Part", lambda row: _named(row.part)),
        Column(f"Before{unit}", lambda row: row.part.before, forms.significant(3)),
        Column(f"After{unit}", lambda row: row.part.after, forms.significant(3)),
        Column("Change", lambda row: _known(row.part.change), forms.change),
        Column("Points", points, forms.changes("")),
    ]
    told = [f"{head} {text}" for head, text in map(sentence, events)]
    notes: list[Note | str] = [
        # A page has them above.
        *(item(text, "text") for text in told or [f"{_NOTHING.head} {_NOTHING.text}"]),
        f"Points: change of the part's time in per cent of the time of its {found.whole} before "
        "the change, with a 95 % interval. rest: time outside the parts. Before: mean of the times "
        "measured from the previous change to this one. After: mean of those from this change to "
        "the next.",
    ]
    if any(event.rest.before < 0 or event.rest.after < 0 for event in events):
        notes.append(
            f"The parts add up to more than their {found.whole} at some versions: they overlap in "
            "time, or a profiler slows them."
        )
    if more := len(found.events) - len(events):
        notes.append(f"{count(more, 'smaller event')}: --json lists all.")
    notes += [item(text, "text") for text in found.notes]
    return Table("What the parts contribute", columns, rows, notes)


def _named(part: Part) -> str:
    more = {"both": "", "before": ", no longer listed", "after": ", newly listed"}[part.listed]
    number = f" ({part.n})" if part.n > 1 else ""
    return f"{part.name}{number}{more}"


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


class _Version(NamedTuple):
    version: str
    events: list[Event]

    @property
    def clear(self) -> list[Event]:
        """Events of wholes that clearly changed."""
        return [event for event in self.events if event.p <= _CLEAR]

    @property
    def change(self) -> float | None:
        """Geometric mean of their changes."""
        if not self.clear:
            return None
        logs = [math.log(event.after / event.before) for event in self.clear]
        return math.expm1(math.fsum(logs) / len(logs))

    @property
    def part(self) -> str:
        """The part that contributes most over all wholes, and in how many it does."""
        points: dict[str, list[float]] = {}
        for event in self.events:
            for part in event.parts:
                if part.p <= _CLEAR and part.listed == "both":
                    points.setdefault(part.name, []).append(part.points)
        if not points:
            return "–"
        name = max(points, key=lambda name: abs(math.fsum(points[name])))
        mean = math.fsum(points[name]) / len(points[name])
        return f"{name}: {_points(mean)} points in {len(points[name])}"


def _versions(found: Blame) -> Table:
    grouped: dict[str, list[Event]] = {}
    for event in found.events:
        grouped.setdefault(event.version, []).append(event)
    order = sorted(grouped, key=found.versions.index)
    rows = [_Version(version, grouped[version]) for version in order]
    columns = [
        Column("Since", lambda row: row.version, key=True),
        Column("Last before", lambda row: row.events[0].last_version),
        Column("With an event", lambda row: len(row.events), forms.count),
        Column("Clearly changed", lambda row: len(row.clear), forms.count),
        Column("Mean change of these", lambda row: row.change, forms.change),
        Column("Largest part", lambda row: row.part),
    ]
    shown = sorted(rows, key=lambda row: -len(row.clear))[:_ROWS]
    shown.sort(key=lambda row: found.versions.index(row.version))
    notes: list[Note | str] = [
        f"With an event: number of series of level {found.whole} in which the series itself or one "
        "of its parts has a step at this version. Largest part: the part that contributes most "
        "over all these series (only parts listed both before and after count), its mean change "
        "in points, and the number of series in which it clearly changed.",
    ]
    if len(rows) > len(shown):
        notes.append(f"{len(shown)} of {len(rows)} versions are shown; --json lists all.")
    return Table("By version", columns, shown, notes)


def contributions(found: Blame, ax: Axes | None = None) -> Axes:
    """Draw what each part contributes to the largest change of a whole, in points.

    Parameters
    ----------
    found : Blame
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        Nothing has changed.
    MissingExtraError
        Matplotlib is not installed.
    """
    from errcomp.report.drawing.forest import Row, forest
    from errcomp.report.drawing.words import shorten

    if not found.events:
        raise InputError(
            "neither the runs nor their parts have a step (a lasting change), so there is "
            "nothing to draw."
        )
    event = found.events[0]

    def row(name: str, value: float, low: float, high: float, *, strong: bool) -> Row:
        known = math.isfinite(low)
        return Row(
            name,
            100 * value,
            100 * low if known else None,
            100 * high if known else None,
            _points(value),
            strong=strong,
        )

    clear = event.p <= _CLEAR
    rows = [row(event.whole, event.change, event.low, event.high, strong=clear)]
    for part in [*event.parts, event.rest]:
        clear = part.p <= _CLEAR
        rows.append(row(_named(part), part.points, part.low, part.high, strong=clear))
    return forest(
        ax,
        rows,
        title=f"What changed in {shorten(event.whole)} at {shorten(event.version)}?",
        notes=[
            f"change in per cent of the time at {shorten(event.last_version)} and before, with "
            "95 % intervals",
            "first row: the whole; the others add up to it; filled: clearly changed",
        ],
        x="points (%)",
        beside="points",
        reference=(0.0, "unchanged"),
    )
