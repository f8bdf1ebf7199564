"""Parts that the figures of half-life share: axes in per cent, axes of versions, intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.results import format_number

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from errcomp.halflife.forecast import GroupForecast
    from errcomp.halflife.panel import Clock, HalfLife, Panel
    from errcomp.halflife.results import GroupHalfLife

#: Pixels that a character of a small label takes in a figure 640 wide, and those between two.
_CHARACTER, _BETWEEN = 100 / 72 * _style.CHARACTER, 18.0
_VERSION_WIDTH = 12
_NOTE_WIDTH = 74
#: Pixels between two ticks of an axis in per cent, and where they may be within a power of ten.
_APART = 24.0
_DIGITS = (1.0, 2.0, 5.0)


def percent(error: ArrayLike) -> NDArray[np.float64]:
    """Return errors on the log scale in per cent: log 1.1 is 10."""
    return np.asarray(100 * np.expm1(error), dtype=np.float64)


def percent_of(error: float) -> float:
    """Return one error on the log scale in per cent."""
    return 100 * math.expm1(error)


def mark_levels(ax: Axes, levels: Sequence[tuple[str, float, str, Any]]) -> None:
    """Draw errors across the axes, named at the right: name, error (log scale), colour, dashes.

    The limits must be final.
    """
    heights = [percent_of(error) for _, error, _, _ in levels]
    for (name, _, tint, dashes), height in zip(levels, heights, strict=True):
        ax.axhline(height, color=tint, lw=1.1, ls=dashes, zorder=2, label=name)
    texts = [f"{name} {_text.share(math.expm1(error))}" for name, error, _, _ in levels]
    right = ax.get_xlim()[1]
    _style.side_labels(
        ax, [right] * len(levels), heights, texts, [tint for _, _, tint, _ in levels]
    )


def series_and_clusters(panel: Panel) -> str:
    """Count the series and, where some share a cluster, the clusters."""
    clusters = len(np.unique(panel.clusters))
    text = "n=1 series" if panel.n_series == 1 else f"n={panel.n_series:,} series"
    if clusters == panel.n_series:
        return text
    return f"{text} in {_text.count(clusters, 'cluster')}"


def group_notes(group: GroupHalfLife, note: str) -> list[str]:
    """Name the group that is drawn, and add the caller's note."""
    of = ", ".join(f"{key} {_text.shorten(str(value))}" for key, value in group.key.items())
    return [" · ".join(text for text in (of, note) if text)] if of or note else []


def names_of(groups: Iterable[GroupHalfLife | GroupForecast]) -> list[str]:
    """Return the name of each group: the values of its keys."""
    return [", ".join(map(str, group.key.values())) for group in groups]


def entitle(ax: Axes, title: str, notes: Sequence[str], *keys: Sequence[Artist]) -> None:
    """Put title, notes and the rows of a key above axes; empty rows are left out."""
    rows = [row for row in keys if row]
    _style.heading(ax, title, notes, room=_style.keys(ax, rows) if rows else 0.0)


def height_for(notes: Sequence[str]) -> float:
    """Return the height of a figure, in inches, with room for the notes below its title."""
    return 4.0 + 0.15 * sum(len(wrap(note, _NOTE_WIDTH)) for note in notes)


def half_life_text(fit: HalfLife) -> str:
    """Write a half-life with its interval and its unit, or the reason for not having one."""
    if fit.half_life is None or fit.low is None or fit.high is None:
        return f"cannot be determined: {fit.refused}"
    if math.isinf(fit.half_life):
        least = f"at least {timed(fit.low, fit.unit)}" if fit.low > 0 else "without a lower bound"
        return f"longer than the record, {least}"
    high = "∞" if math.isinf(fit.high) else number(fit.high)
    # No line may break within the brackets.
    return f"{timed(fit.half_life, fit.unit)} [{number(fit.low)},\N{NO-BREAK SPACE}{high}]"


def timed(value: float, clock: Clock) -> str:
    """Write a time with its unit.

    Examples
    --------
    >>> timed(1.0, "releases"), timed(3.84, "months")
    ('1 release', '3.8 months')
    """
    text = number(value)
    return f"{text} {clock.removesuffix('s') if text == '1' else clock}"


def number(value: float) -> str:
    """Write a time without its unit: two digits, but every digit of a count from 100 to 1000.

    Examples
    --------
    >>> number(3.84), number(132.0), number(2668.0)
    ('3.8', '132', '2,700')
    """
    if value < 100:
        return format_number(value, 2)
    return f"{value if value < 1000 else float(f'{value:.2g}'):,.0f}"


def span_text(low: int, high: int) -> str:
    """Write a range of counts.

    Examples
    --------
    >>> span_text(3, 12), span_text(5, 5)
    ('3 to 12', '5')
    """
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def mark_half_life(
    ax: Axes, fit: HalfLife | None, height: float, *, start: float = 0.0
) -> list[Artist]:
    """Mark a half-life and its interval at a height, and return its entries for the key.

    An end of the interval that lies beyond the axes is an arrow. The limits must be final.
    """
    if fit is None or fit.half_life is None or fit.low is None or fit.high is None:
        return []
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"color": _style.INK, "clip_on": False}
    left, right = ax.get_xlim()
    ends = [start + fit.low, start + fit.high]
    low, high = (float(np.clip(end, left, right)) for end in ends)
    ax.plot([low, high], [height] * 2, lw=2.4, label="half-life", zorder=3.5, **style)
    for end, inside, arrow in ((low, ends[0] >= left, "<"), (high, ends[1] <= right, ">")):
        ax.plot([end], [height], ls="", marker="|" if inside else arrow, mew=1.6,
                ms=8 if inside else 6, zorder=3.5, **style)  # fmt: skip
    point: dict[str, Any] = {"marker": "D", "ms": 6.5, "mfc": "white", "mew": 1.6}
    shown = left <= start + fit.half_life <= right
    if shown:
        ax.plot([start + fit.half_life], [height], ls="", zorder=6, **point, **style)
    level = f"{100 * fit.level:g} %"
    name = f"half-life, {level} interval" if shown else f"{level} interval of the half-life"
    return [Line2D([], [], color=_style.INK, lw=2.4, label=name, **(point if shown else {}))]


def thinned(labels: Sequence[str], pixels: float) -> int:
    """Return k such that every k-th of evenly spaced labels fits into a number of pixels.

    Examples
    --------
    >>> thinned(["1.0"] * 10, 500.0), thinned(["2023-05-24"] * 30, 500.0)
    (1, 5)
    """
    widest = max(len(line) for label in labels for line in label.split("\n"))
    room = pixels / max(len(labels) - 1, 1)
    return max(1, math.ceil((widest * _CHARACTER + _BETWEEN) / room))


def room_of_names(names: Sequence[str]) -> float:
    """Return the pixels that names of rows take beside the axes."""
    return _CHARACTER * max(map(len, _text.fitting(names)))


def release_ticks(
    ax: Axes,
    panel: Panel,
    versions: Sequence[int],
    at: Sequence[int] | None = None,
    *,
    beside: float = 0.0,
) -> str:
    """Name versions at their positions, with months below where known; return the axis' name.

    Every k-th version is named where not all names fit. ``at`` are places on the axis, the
    positions themselves by default; ``beside`` are pixels taken by labels beside the axes.
    """
    names = _text.fitting([panel.versions[i] for i in versions], _VERSION_WIDTH)
    months = panel.months[list(versions)]
    dated = bool(np.isfinite(months).all())
    if dated:
        names = [f"{name}\n{month:.0f}" for name, month in zip(names, months, strict=True)]
    every = thinned(names, max(pixels(ax, "width") - beside, 1.0))
    places = list(versions if at is None else at)
    ax.set_xticks(places[::every], names[::every])
    ax.set_xticks(places, minor=True)
    for label in ax.get_xticklabels():
        label.set_parse_math(False)
    ax.tick_params(axis="x", which="minor", length=2, color=_style.MUTED)
    first = _text.shorten(panel.versions[0], _VERSION_WIDTH)
    return f"version; below: months since {first}" if dated else "version, in order"


def pixels(ax: Axes, side: Literal["width", "height"]) -> float:
    """Return about how long the axes are, in pixels of a figure 640 wide."""
    figure = ax.get_figure()
    assert figure is not None  # axes without a figure were refused
    share = getattr(ax.get_position(), side)
    return float(0.93 * share * getattr(figure.bbox, side) * 100 / figure.dpi)


def percent_axis(axis: Axis, largest: float, smallest: float) -> None:
    """Put ticks at 1, 2 and 5 times powers of ten where they have room, and at 0.

    For logarithmic axes, and axes that are linear up to a value and logarithmic beyond. The limits
    must be final.
    """
    decades = range(math.floor(math.log10(smallest)), math.ceil(math.log10(largest)) + 1)
    wanted = [0.0, *(digit * 10.0**decade for decade in decades for digit in _DIGITS)]
    height = pixels(axis.axes, "height")
    low, high = axis.get_transform().transform(np.asarray(axis.get_view_interval()))
    ticks: list[float] = []
    last = -math.inf
    for value in wanted if axis.get_scale() == "symlog" else wanted[1:]:
        at = axis.get_transform().transform(np.array([value]))[0]
        place = height * float((at - low) / (high - low))
        if -1e-6 <= place <= height + 1e-6 and place - last >= _APART:
            ticks.append(value)
            last = place
    axis.set_ticks(ticks, [f"{value:.6g} %" for value in ticks])
    axis.set_ticks([], minor=True)
