"""Figures of results that are rows of values with intervals, and of forecasts.

Axes in, axes out, as in `errcomp.report.figures`: `summary` error figures by group; `contrasts`
what a factor does to the error; `shifts` how far each series moved in a check; `forecast` how
likely a promise still holds; `predictions` the bands of runs; `matches` what reproduces a
published figure; `cells` printed figures against recomputed ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.metrics import figure as figure_named
from errcomp.report import _style, _text
from errcomp.report._forecast import forecast
from errcomp.report._forest import Row, forest
from errcomp.report._hover import tell
from errcomp.results import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.calibration.predictions import Predictions
    from errcomp.claims.replicate import Replication
    from errcomp.claims.search import SearchResult
    from errcomp.drivers import DriversResult
    from errcomp.halflife.gate.checking import Checked
    from errcomp.summary import Summary

__all__ = ["cells", "contrasts", "forecast", "matches", "predictions", "shifts", "summary"]

_BAND = 0.9
#: Figures with a sign, and where they have none.
_NEUTRAL = {"bias": 0.0, "total_error": 0.0, "gm_ratio": 1.0}
#: Values whose largest is so many times their median need a logarithmic axis.
_WIDE = 12.0
#: Characters of what reproduces a figure, beside its row.
_DESCRIBED = 64
#: Expected matches of an unrelated figure from which on a coincidence explains a match.
_RARE = 0.05


def summary(found: Summary, figure: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw one error figure of each group with its interval, the largest first.

    Parameters
    ----------
    found : Summary
    figure : str, optional
        The first that was computed by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        The figure was not computed.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> from errcomp import summarize
    >>> found = summarize({"predicted": [11.0, 21.0, 52.0], "measured": [10.0, 20.0, 40.0],
    ...                    "device": ["A", "A", "B"]}, by="device")
    >>> [label.get_text() for label in summary(found).get_yticklabels()]
    ['B  n=1', 'A  n=2', 'all pairs  n=3']
    """
    known = list(found.pooled.figures)
    name = known[0] if figure is None else figure
    if name not in known:
        raise InputError(f"{name} was not computed. Computed: {describe_names(known)}")
    spec = figure_named(name)
    scale = 100.0 if spec.unit == "fraction" else 1.0
    groups = sorted(
        found.rows if found.by else (),
        key=lambda row: -np.nan_to_num(row.figures[name].value, nan=-math.inf),
    )
    rows = []
    for row, label in [
        *((row, ", ".join(map(str, row.key.values()))) for row in groups),
        (found.pooled, "all pairs"),
    ]:
        one = row.figures[name]
        ends = [None if end is None else scale * end for end in (one.low, one.high)]
        text = one.format().replace("-", "−")
        rows.append(Row(label, scale * one.value, ends[0], ends[1], text, row.n))
    levels = {row.figures[name].level for row in (*found.rows, found.pooled)} - {None}
    said = [f"{100 * level:g} % interval" for level in levels if level is not None]
    by = [f"by {' and '.join(map(_text.shorten, found.by))}, largest first"] if found.by else []
    neutral = _NEUTRAL.get(name)
    return forest(
        ax,
        rows,
        title=f"{_sentence(spec.label)}, n={_text.count(found.pooled.n, 'pair')}",
        notes=[*by, *said],
        x=_axis(spec.label, spec.unit, found.pooled.figures[name].unit),
        beside=spec.label,
        reference=None if neutral is None else (neutral, "neither too high nor too low"),
        log=neutral is None and _far_apart([row.value for row in rows]),
    )


def _axis(label: str, kind: str, unit: str | None) -> str:
    """Name the axis of a figure, with its unit where it has one."""
    if kind == "measured":
        return _text.with_unit(label, None if unit == kind else unit)
    return f"{label} (%)" if kind == "fraction" else label


def _far_apart(values: Sequence[float]) -> bool:
    """Return whether the largest of values that are all positive would hide the others."""
    finite = [value for value in values if math.isfinite(value)]
    return min(finite, default=0.0) > 0 and max(finite) > _WIDE * float(np.median(finite))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def contrasts(found: DriversResult, ax: Axes | None = None) -> Axes:
    """Draw what each factor does to the error: how many times it is at one level that of another.

    Hollow rows may be chance: their interval holds 1, or they have none.

    Parameters
    ----------
    found : DriversResult
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        Nothing could be compared.
    MissingExtraError
        Matplotlib is not installed.
    """
    if not found.contrasts:
        raise InputError("no two configurations differ in one factor only: nothing to draw")
    rows = [
        Row(
            one.name,
            one.effect.value,
            one.effect.low,
            one.effect.high,
            one.effect.format(),
            one.n_pairs,
            strong=one.effect.low is not None
            and one.effect.high is not None
            and not one.effect.low <= 1 <= one.effect.high,
        )
        for one in found.contrasts
    ]
    return forest(
        ax,
        rows,
        title=f"What moves the error, {_text.count(len(rows), 'contrast')}",
        notes=[
            "the level named first over the other; ×2: double over single",
            "n: matched configurations; hollow: may be chance",
        ],
        x="error, times that of the other level",
        beside="times",
        reference=(1.0, "no effect"),
        log=True,
    )


def shifts(found: Checked, ax: Axes | None = None) -> Axes:
    """Draw how far the error of each series moved at the version checked, the largest first.

    Filled rows are those whose error grew; hollow ones moved without that, or did not move.

    Parameters
    ----------
    found : Checked
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No series has a value before and after.
    MissingExtraError
        Matplotlib is not installed.
    """
    result = found.result
    at = np.flatnonzero(np.isfinite(result.shift))
    if not len(at):
        raise InputError(f"no series was validated both before {result.version} and with it")
    at = at[np.argsort(-np.abs(result.shift[at]), kind="stable")]
    grew = set(result.blamed().tolist())
    rows = []
    for i in map(int, at):
        low, value, high = (100 * math.expm1(x[i]) for x in (result.low, result.shift, result.high))
        known = math.isfinite(low)
        rows.append(
            Row(
                result.names[i],
                value,
                low if known else None,
                high if known else None,
                _text.signed(value / 100, _text.exact),
                int(result.n_baseline[i]),
                strong=i in grew,
            )
        )
    return forest(
        ax,
        rows,
        title=f"How errors moved at {_text.shorten(result.version)}, "
        f"n={_text.count(len(rows), 'series')}",
        notes=[
            "change of predicted / measured with 95 % interval, each by itself",
            "filled: the error grew; n: versions in its baseline",
        ],
        x="change of predicted / measured (%)",
        beside="change",
        reference=(0.0, "as before"),
    )


def predictions(found: Predictions, ax: Axes | None = None) -> Axes:
    """Draw the 90 % band of each run around its prediction, the widest first.

    Hollow rows have a band that was not calibrated.

    Parameters
    ----------
    found : Predictions
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    """
    low, high = found.band(_BAND)
    below, above = 100 * (low / found.predicted - 1), 100 * (high / found.predicted - 1)
    order = np.argsort(-(above - below), kind="stable")
    unit = f" {found.unit}" if found.unit else ""
    said = "" if found.unit else ", times without a unit"
    rows = [
        Row(
            str(found.run[i]),
            0.0,
            float(below[i]),
            float(above[i]),
            f"{format_number(float(found.predicted[i]))}{unit} [{format_number(float(low[i]))}, "
            f"{format_number(float(high[i]))}]",
            strong=bool(found.calibrated[i]),
        )
        for i in map(int, order)
    ]
    return forest(
        ax,
        rows,
        title=f"Predicted times, n={_text.count(len(rows), 'run')}",
        notes=[f"by {found.estimator}{said}; {100 * _BAND:g} % band; hollow: not calibrated"],
        x="band around the prediction (%)",
        beside="predicted",
        reference=(0.0, "predicted"),
    )


def matches(found: SearchResult, ax: Axes | None = None) -> Axes:
    """Draw how many matches as simple as each an unrelated figure would have by chance.

    Parameters
    ----------
    found : SearchResult
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        Nothing reproduces the figure.
    MissingExtraError
        Matplotlib is not installed.
    """
    if not found.matches:
        raise InputError(f"nothing to draw: {found.conclusion}")
    rows = [
        Row(
            f"{rank}",
            one.expected_by_chance,
            None,
            None,
            _text.shorten(one.description, _DESCRIBED),
            strong=one.expected_by_chance < _RARE,
        )
        for rank, one in enumerate(found.matches, 1)
    ]
    published = ", ".join(f"{t} {f.text}".strip() for t, f in found.figures.items())
    return forest(
        ax,
        rows,
        title=f"What reproduces {published}",
        notes=["filled: chance does not explain it"],
        x="matches expected by chance",
        beside="subset and rule",
        reference=(_RARE, "below: more than a coincidence"),
        log=True,
    )


def cells(found: Replication, ax: Axes | None = None) -> Axes:
    """Draw by table how many printed cells were reproduced, and how.

    Parameters
    ----------
    found : Replication
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    """
    from matplotlib.patches import Patch

    counts = {name: row for name, row in found.counts().items() if name != "all"}
    statuses = list(next(iter(counts.values())))
    looks: list[dict[str, Any]] = [  # hatched, for print in grey tells no orange from blue
        {"facecolor": _style.BLUE, "edgecolor": _style.MUTED},
        {"facecolor": _style.blend(_style.BLUE, 0.4), "edgecolor": _style.MUTED},
        {"facecolor": _style.ORANGE, "edgecolor": "white", "hatch": "////"},
        {"facecolor": "white", "edgecolor": _style.MUTED},
    ]
    ax = _style.canvas(ax, 1.7 + 0.3 * len(counts))
    for y, (name, row) in enumerate(counts.items()):
        start = 0
        for status, look in zip(statuses, looks, strict=True):
            n = row[status]
            ax.barh(y, n, left=start, height=0.6, lw=0.6, **look)
            if n:
                tell(ax, [start + n / 2], [float(y)], [f"{name}\n{n} {status}"])
            start += n
        _style.beside(ax, y, f"n={start}")
    _style.names_on_y(ax, list(counts))
    ax.grid(axis="x", color=_style.GRID)
    _style.name_axes(ax, x="printed cells")
    key = [
        Patch(lw=0.6, label=status, **look) for status, look in zip(statuses, looks, strict=True)
    ]
    total = sum(sum(row.values()) for row in counts.values())
    _style.heading(
        ax, f"Which printed figures come out again, n={_text.count(total, 'cell')}",
        room=_style.keys(ax, [key]),
    )  # fmt: skip
    return ax
