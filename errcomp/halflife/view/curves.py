"""Figures over time: survival since calibration, drift by lag, and the forecast."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError
from errcomp.halflife.view import parts
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.hover import tell

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from errcomp.halflife.drift.variogram import Variogram
    from errcomp.halflife.estimators.expiry import Expiry
    from errcomp.halflife.estimators.turnbull import Turnbull
    from errcomp.halflife.forecast import HalfLifeForecast
    from errcomp.halflife.panel import Clock, HalfLife
    from errcomp.halflife.results import GroupHalfLife

    Floats = NDArray[np.float64]

#: Most times at which the band is computed.
_MOST_TIMES = 40
_TICKS = 8


def draw_survival(
    group: GroupHalfLife,
    clock: Clock = "releases",
    *,
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of series still within twice the calibrated error, by time since calibration.

    The line is Turnbull's estimate for errors as measured. These may show more expired series than
    are certain, given the noise; the note counts both. Where the line falls between two
    validations, a box shows the range in which it may fall. On the clock of releases, a series
    validated at every release falls at one release. Ticks are series that were last validated there
    and had not expired as measured. The band is pointwise at its level; it goes from the earliest
    to the latest expiries that noise of the measurement allows, as does the interval of the
    half-life. The dotted line is the distribution with the best held-out score. The numbers below
    the axis count the series at risk: still validated, and not expired.

    Misleads at the right end, where a few series decide, and where series are no longer validated
    because they have drifted.

    Parameters
    ----------
    group : GroupHalfLife
        From `errcomp.half_life`, of two series or more.
    clock : {"releases", "months"}
    note : str
        What the series are, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        There is no threshold, fewer than two series can be evaluated, or versions have no dates
        and the clock is months.
    MissingExtraError
        Matplotlib is not installed.

    References
    ----------
    Turnbull (1976), doi:10.1111/j.2517-6161.1976.tb01597.x.

    Examples
    --------
    >>> import errcomp as ec
    >>> found = ec.half_life(
    ...     {
    ...         "version": ["1", "2", "3", "4"] * 3,
    ...         "op": ["Gelu"] * 4 + ["Conv"] * 4 + ["Add"] * 4,
    ...         "measured": [4.0, 4.1, 5.0, 5.1, 2.0, 2.1, 2.0, 3.0, 1.0, 1.03, 1.0, 1.01],
    ...     }
    ... )
    >>> axes = draw_survival(found.groups[0])
    >>> axes.get_title(loc="left")
    'Series whose error has not doubled, n=3'
    """
    expiry = _expiry(group, clock)
    from errcomp.halflife.estimators.turnbull import turnbull

    left, right = expiry.intervals("face")
    curve = turnbull(left, right, clusters=expiry.cluster)
    median = group.estimate("turnbull", clock)
    notes = [*parts.group_notes(group, note), *_survival_notes(expiry, curve, median)]
    ax = _style.canvas(ax, parts.height_for(notes))
    last = float(expiry.last_seen.max())
    ax.set_xlim(0, 1.02 * last)
    ax.set_ylim(0, 104)
    # On the clock of releases, a series that expired in (2, 3] expired at release 3.
    later = 1.0 if clock == "releases" else 0.0
    handles: list[Artist] = [
        *_band(ax, group, expiry, last, later),
        *_share(ax, curve, last, later),
    ]
    handles += _censored(ax, curve, expiry)
    law = _best_law(group, clock)
    below: list[Artist] = []
    if law is not None:
        below += _fitted_law(ax, law, expiry, last)
    ax.axhline(50, color=_style.MUTED, lw=0.9, ls=(0, (4, 2)), zorder=1, label="half")
    below += parts.mark_half_life(ax, median, 50.0)
    _ticks(ax, expiry, last)
    ax.set_yticks(range(0, 101, 25), [f"{y} %" for y in range(0, 101, 25)])
    ax.grid(axis="y", color=_style.GRID)
    _style.name_axes(
        ax,
        x=f"{clock} since calibration; below: series still observed and not doubled",
        y="series whose error has not doubled",
    )
    parts.entitle(
        ax, f"Series whose error has not doubled, {_counted(curve)}", notes, handles, below
    )
    return ax


def _expiry(group: GroupHalfLife, clock: Clock) -> Expiry:
    if clock not in ("releases", "months"):
        raise InputError(f"clock must be 'releases' or 'months', got {clock!r}.")
    if group.threshold.value is None:
        raise InputError(
            "survival cannot be drawn: the error at calibration is unknown, so the time until it "
            f"doubles is not defined ({group.threshold.refused.rstrip('.')}). Give the promised "
            "error (error=)."
        )
    if clock not in group.expiry:
        raise InputError(
            "survival in months cannot be drawn: versions have no dates. Add dates, or use "
            'clock="releases".'
        )
    expiry = group.expiry[clock]
    if expiry.n < 2:
        why = "; ".join(f"{dropped.n} left out: {dropped.reason}" for dropped in expiry.dropped)
        raise InputError(
            f"survival needs two or more series that can be evaluated, got {expiry.n} of "
            f"{expiry.n_panel}{f' ({why})' if why else ''}. Draw the errors instead, or group by "
            "fewer keys."
        )
    return expiry


def _counted(curve: Turnbull) -> str:
    text = f"n={curve.n:,}"
    if curve.n_clusters == curve.n:
        return text
    return f"{text} in {_text.count(curve.n_clusters, 'cluster')}"


def _share(ax: Axes, curve: Turnbull, last: float, later: float) -> list[Artist]:
    """Draw the curve, and boxes for the ranges in which it falls."""
    x, y = [0.0], [100.0]
    boxes: Artist | None = None
    for left, right, mass in zip(curve.left, curve.right, curve.mass, strict=True):
        if math.isinf(right):
            continue
        start = min(left + later, right)
        before, after = y[-1], y[-1] - 100 * float(mass)
        x += [start, right]
        y += [before, after]
        if right > start:
            boxes = ax.fill_between([start, right], after, before, lw=0.6, zorder=3,
                                    facecolor=_style.blend(_style.BLUE, 0.35),
                                    edgecolor=_style.BLUE, label="falls within")  # fmt: skip
    x.append(max(last, x[-1]))
    y.append(y[-1])
    [line] = ax.plot(x, y, color=_style.BLUE, lw=2.0, zorder=5, label="share of the series")
    texts = [f"{time:.3g} since calibration\n{share:.3g} % not doubled"
            for time, share in zip(x, y, strict=True)]  # fmt: skip
    tell(ax, x, y, texts)
    return [line, boxes] if boxes is not None else [line]


def _band(
    ax: Axes, group: GroupHalfLife, expiry: Expiry, last: float, later: float
) -> list[Artist]:
    """Draw pointwise bounds: of the earliest and of the latest expiries that noise allows."""
    from errcomp.halflife.estimators.turnbull import turnbull

    early, late = (
        turnbull(*expiry.intervals(view), clusters=expiry.cluster) for view in ("early", "late")
    )
    if early.n_clusters < 2:
        return []
    level = group.estimates[0].level
    times, all_of_them = _times(early, late, last)
    # At calibration no series has expired, by definition.
    low = 100 * np.array([1.0, *(early.surviving(time, level).low for time in times[1:])])
    high = 100 * np.array([1.0, *(late.surviving(time, level).high for time in times[1:])])
    # A share does not rise: an upper bound holds for all later times, a lower bound for all earlier
    # ones. On the clock of releases nothing happens between two releases.
    upper = np.repeat(high, 2)[:-1]
    lower = np.repeat(low if later and all_of_them else np.append(low[1:], low[-1]), 2)[:-1]
    band = ax.fill_between(np.repeat(times, 2)[1:], lower, upper, facecolor="#dcdcdc", lw=0.5,
                           zorder=1, edgecolor=_style.FAINT,
                           label=f"{100 * level:g} % band")  # fmt: skip
    return [band]


def _times(early: Turnbull, late: Turnbull, last: float) -> tuple[Floats, bool]:
    """Return times at which shares may change, thinned if many, and whether they are complete."""
    ends = np.concatenate([early.left, early.right, late.left, late.right, [0.0, last]])
    times = np.unique(ends[ends <= last])
    if len(times) <= _MOST_TIMES:
        return times, True
    positions = np.linspace(0, len(times) - 1, _MOST_TIMES).astype(np.int64)
    return times[positions], False


def _censored(ax: Axes, curve: Turnbull, expiry: Expiry) -> list[Artist]:
    """Mark the last validations of series that had not expired."""
    seen = expiry.last_seen[np.isinf(expiry.guess)]
    if not len(seen):
        return []
    at = np.unique(seen)
    least, most = curve.survival(at)
    return list(
        ax.plot(at, 50 * (least + most), ls="", marker="|", ms=9, mew=1.4, color=_style.INK,
                zorder=6, clip_on=False, label=f"last seen, not doubled ({len(seen):,})")
    )  # fmt: skip


def _best_law(group: GroupHalfLife, clock: Clock) -> HalfLife | None:
    """Return the estimate of the distribution with the best held-out score."""
    from errcomp.halflife.estimators.parametric import LAWS

    fitted = [group.estimate(law, clock) for law in LAWS]
    scored = [
        fit for fit in fitted if fit is not None and fit.details.get("held_out_score") is not None
    ]
    return max(scored, key=lambda fit: float(fit.details["held_out_score"]), default=None)


def _fitted_law(ax: Axes, best: HalfLife, expiry: Expiry, last: float) -> list[Artist]:
    from errcomp.halflife.estimators.parametric import LAWS, fit_law

    [law] = [name for name in LAWS if name == best.method]
    fit = fit_law(*expiry.intervals("face"), law)
    if fit.refused:
        return []
    times = np.linspace(0, last, 200)
    return list(
        ax.plot(times, 100 * fit.survival(times), color=_style.ORANGE, lw=1.6, ls=(0, (1, 1.4)),
                zorder=4, label=f"{law.replace('weibull', 'Weibull')} distribution (best fit)")
    )  # fmt: skip


def _ticks(ax: Axes, expiry: Expiry, last: float) -> None:
    """Label times with the number of series still at risk of expiring."""
    from matplotlib.ticker import MaxNLocator

    places = MaxNLocator(_TICKS, integer=True).tick_values(0, last)
    at = [float(time) for time in places if 0 <= time <= last]
    until = np.minimum(expiry.guess, expiry.last_seen)
    ax.set_xticks(at, [f"{time:g}\n{int((until >= time).sum()):,}" for time in at])


def _survival_notes(expiry: Expiry, curve: Turnbull, median: HalfLife | None) -> list[str]:
    notes = [
        f"doubled: error of {_text.share(math.expm1(expiry.threshold))} or more; {curve.n_events} "
        f"of {curve.n} series as measured, {int(np.isfinite(expiry.right).sum())} of them by more "
        f"than noise explains ({100 * expiry.level:g} % confidence)"
    ]
    if median is not None:
        text = parts.half_life_text(median)
        notes.append(f"median survival (error doubled in half of the series): {text}")
    if curve.n_clusters < 2:
        notes.append("no band: all series are in one cluster, so they are not independent")
    return notes + [
        f"left out: {dropped.n} of {expiry.n_panel} series ({dropped.reason})"
        for dropped in expiry.dropped
    ]


#: Factors: room of the vertical axis beyond the points, and how far off a line is still shown.
_ROOM, _FARTHEST = 1.6, 30.0


def draw_variogram(group: GroupHalfLife, *, note: str = "", ax: Axes | None = None) -> Axes:
    r"""Draw how far errors move apart, by the number of releases between two versions.

    .. math:: \sqrt{V(h)} = \sqrt{\operatorname{mean}(\Delta e_h^2) - \text{noise}}

    shown as :math:`e^{\sqrt V} - 1`, on logarithmic scales, on which a power law is a straight
    line. Vertical lines are pointwise intervals of V; those that reach an edge continue beyond it.
    A triangle at the lower edge is a lag at which noise explains the whole difference. Open
    diamonds are the median :math:`|\Delta e|`, noise included; it is far below the line where a few
    large steps cause the drift. A dotted line shows the noise of a difference if it is known;
    otherwise noise counts as drift. A model whose drift reaches √3 times the calibrated error has
    twice the error, as :math:`\sqrt{e_0^2 + 3 e_0^2} = 2 e_0`; the half-life is marked there. The
    numbers below the axis count the series with such pairs.

    Misleads where the drift changes its kind over time: see the errors by release.

    Parameters
    ----------
    group : GroupHalfLife
        From `errcomp.half_life`.
    note : str
        Written below the title, e.g. which predictions the errors belong to.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        The group has no variogram, or all of its errors are equal.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> import errcomp as ec
    >>> found = ec.half_life(
    ...     {"version": ["1.0", "1.1", "1.2", "1.3"], "measured": [4.0, 4.1, 4.0, 5.0]}
    ... )
    >>> axes = draw_variogram(found.groups[0])
    >>> axes.get_title(loc="left")
    'Drift by lag, n=1 series'
    """
    drift = group.variogram
    positive = np.array([]) if drift is None else np.append(drift.v, drift.median**2)
    positive = np.sqrt(positive[positive > 0])
    if drift is None or not len(positive):
        raise InputError(
            "the variogram cannot be drawn: no error changed between versions. Draw the errors "
            "instead, or add versions."
        )
    estimate = group.estimate("variogram", drift.unit)
    notes = [*parts.group_notes(group, note), *_variogram_notes(group, drift, estimate)]
    ax = _style.canvas(ax, parts.height_for(notes))
    target = math.sqrt(3) * group.threshold.error
    _limits(ax, drift, positive, target)
    handles = _points(ax, drift)
    below: list[Artist] = _power_law(ax, drift)
    levels: list[tuple[str, float, str, Any]] = [
        ("doubles", target, _style.ORANGE, "-"),
        ("noise", _noise(drift), _style.MUTED, (0, (1, 1.5))),
    ]
    bottom, top = ax.get_ylim()
    shown = [level for level in levels if bottom <= parts.percent_of(level[1]) <= top]
    if levels[0] in shown:
        below += parts.mark_half_life(ax, estimate, parts.percent_of(target))
    parts.mark_levels(ax, shown)
    ax.grid(axis="y", color=_style.GRID)
    _style.name_axes(
        ax,
        x=f"lag between two versions in {drift.unit}; below: number of series",
        y="drift of predicted / measured (RMS)",
    )
    title = f"Drift by lag, {parts.series_and_clusters(group.panel)}"
    parts.entitle(ax, title, notes, handles, below)
    return ax


def _noise(drift: Variogram) -> float:
    """Return the standard deviation of the noise of a difference of two errors."""
    return math.sqrt(2 * drift.noise)


def _limits(ax: Axes, drift: Variogram, positive: Floats, target: float) -> None:
    """Set logarithmic scales around the points, and the line of doubled errors if it is near."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    low, high = float(positive.min()), float(positive.max())
    lines = [target, _noise(drift)]
    ends = [low, high, *(line for line in lines if low / _FARTHEST < line < high * _FARTHEST)]
    # Bounds of few releases may be far off: they widen the axis by a factor of 3 at most.
    bounds = np.sqrt(np.append(drift.low, drift.high))
    near = bounds[(bounds > low / 3) & (bounds < 3 * high)]
    ends += near.tolist()
    ax.set_ylim(parts.percent_of(min(ends)) / _ROOM, parts.percent_of(max(ends)) * _ROOM)
    parts.percent_axis(ax.yaxis, ax.get_ylim()[1], ax.get_ylim()[0])
    first, last = float(drift.lag.min()), float(drift.lag.max())
    room = max(1.25, (last / first) ** 0.06)
    ax.set_xlim(first / room, last * room)
    texts = [f"{lag:.2g}\n{n:,}" for lag, n in zip(drift.lag.tolist(), drift.n_series, strict=True)]
    gaps = np.diff(np.log(drift.lag))
    narrowest = gaps.min() / gaps.mean() if len(gaps) else 1.0
    every = parts.thinned(texts, parts.pixels(ax, "width") * narrowest)
    ax.set_xticks(drift.lag[::every], texts[::every])
    ax.set_xticks(drift.lag, [""] * len(texts), minor=True)


def _points(ax: Axes, drift: Variogram) -> list[Artist]:
    bottom, _ = ax.get_ylim()
    above = drift.v > 0
    size = parts.percent(np.sqrt(np.maximum(drift.v, 0.0)))
    noise = "noise subtracted" if drift.noise else "with noise"
    [line] = ax.plot(drift.lag[above], size[above], color=_style.BLUE, marker="o", ms=5, lw=1.2,
                     zorder=5, label=f"drift, {noise}")  # fmt: skip
    seen = drift.lag[above], size[above]
    texts = [
        f"lag {lag:.3g} {drift.unit}\ndrift {value:.3g} %, n={n:,} series"
        for lag, value, n in zip(*seen, drift.n_series[above], strict=True)
    ]
    tell(ax, *seen, texts)
    low = np.maximum(parts.percent(np.sqrt(drift.low)), bottom)
    # Missing bounds are drawn beyond every scale.
    high = parts.percent(np.sqrt(np.minimum(drift.high, 100.0)))
    bars = ax.vlines(drift.lag, low, high, color=_style.BLUE, lw=0.9, zorder=3,
                     label=f"{100 * drift.level:g} % interval")  # fmt: skip
    handles: list[Artist] = [line, bars]
    if not above.all():
        handles += ax.plot(drift.lag[~above], np.full((~above).sum(), bottom), ls="", marker="v",
                           ms=7, mfc="white", color=_style.BLUE, clip_on=False, zorder=6,
                           label="less than noise")  # fmt: skip
    some = drift.median > 0
    if some.any():
        handles += ax.plot(drift.lag[some], parts.percent(drift.median[some]), ls="", marker="D",
                           ms=5, mfc="white", color=_style.INK, zorder=4,
                           label="median change, with noise")  # fmt: skip
    return handles


def _power_law(ax: Axes, drift: Variogram) -> list[Artist]:
    if drift.scale is None or drift.beta is None:
        return []
    lag = np.geomspace(*ax.get_xlim(), 100)
    size = parts.percent(np.sqrt(drift.scale * lag**drift.beta))
    return list(
        ax.plot(lag, size, color=_style.ORANGE, lw=1.6, ls=(0, (4, 2)), zorder=4,
                label=f"power law, drift ~ lag^{drift.beta / 2:.2g}")
    )  # fmt: skip


def _variogram_notes(
    group: GroupHalfLife, drift: Variogram, estimate: HalfLife | None
) -> list[str]:
    notes = []
    if estimate is None:
        notes.append(f"half-life cannot be determined: {group.threshold.refused}")
    else:
        notes.append(f"half-life, if drift continues: {parts.half_life_text(estimate)}")
        calibrated = _text.share(math.expm1(group.threshold.error))
        notes.append(
            "doubles: drift that doubles the error, √3 times the error at calibration "
            f"({calibrated})"
        )
    if drift.noise == 0:
        notes.append("the noise is unknown and counts as drift")
    else:
        notes.append(
            "noise: scatter of the difference between two versions, root mean square over series"
        )
    return notes


#: More groups than this are counted instead of drawn; characters of a group's name.
_MOST, _BESIDE = 12, 24
#: Distance of points of one time, as a share of the longest.
_DODGE = 0.006


class _Curve(NamedTuple):
    """The forecast of one group: times ahead, probabilities and their bounds in per cent."""

    name: str
    n: int
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def forecast(result: HalfLifeForecast, ax: Axes | None = None) -> Axes:
    """Draw how likely each group is within its promise, by months or releases from now.

    Each group is drawn by the method that answers for it; vertical lines are intervals. A group
    without an answer is left out and counted. If there are many groups, those with the lowest
    probabilities are drawn.

    Parameters
    ----------
    result : HalfLifeForecast
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No group has an answer.
    MissingExtraError
        Matplotlib is not installed.
    """
    clock = result.clocks[-1]
    curves = _curves(result, clock)
    if not curves:
        raise InputError("no group has a forecast to draw: the notes below the table say why")
    shown = curves
    if len(curves) > _MOST:
        shown = sorted(curves, key=lambda curve: curve.y[-1])[:_MOST]
    names = [curve.name for curve in shown]
    ends = [(float(curve.x[-1]), float(curve.y[-1])) for curve in shown]
    ax = _style.canvas(ax, 3.6)
    tints = _style.colours(names)
    longest = max(x for x, _ in ends) or 1.0
    for i, (curve, tint, mark) in enumerate(zip(shown, tints, _style.markers(names), strict=True)):
        # Side by side, so that intervals do not hide each other.
        x = curve.x + _DODGE * longest * (i - (len(shown) - 1) / 2)
        ax.plot(x, curve.y, marker=mark, color=tint, lw=1.4, ms=5, zorder=3)
        ax.vlines(x, curve.low, curve.high, color=tint, lw=0.9, zorder=2)
        name = _text.shorten(curve.name)
        points = zip(curve.x, curve.y, curve.low, curve.high, strict=True)
        tell(ax, x, curve.y, [f"{name}\n{ahead:g} {clock} ahead: {y:.0f} % [{low:.0f}, {high:.0f}]"
                              for ahead, y, low, high in points])  # fmt: skip
    ax.set_ylim(-2, 102)
    ax.grid(axis="y", color=_style.GRID)
    line = ax.axhline(100 * result.below, color=_style.INK, lw=1.0, ls=(0, (4, 2)))
    line.set_label(f"requested probability: {100 * result.below:g} %")
    _style.name_axes(ax, x=f"{clock} from now", y="series within the promise (%)")
    fitting = zip(_text.fitting(names, _BESIDE), shown, strict=True)
    labels = [f"{name} n={curve.n:,}" for name, curve in fitting]
    _style.side_labels(ax, [x for x, _ in ends], [y for _, y in ends], labels, tints)
    notes = [f"vertical: {100 * result.level:g} % intervals"]
    if left_out := len(result.groups) - len(curves):
        notes.append(f"not drawn: {_text.count(left_out, 'group')} without a forecast")
    if more := len(curves) - len(shown):
        notes.append(f"not drawn: {_text.count(more, 'group')} with a higher probability")
    title = f"Does the promise hold? n={_text.count(len(curves), 'group')}"
    parts.entitle(ax, title, notes, [line])
    return ax


def _curves(result: HalfLifeForecast, clock: Clock) -> list[_Curve]:
    """Return the curve of each group with an answer, by the method that gives it."""
    curves = []
    names = parts.names_of(result.groups)
    for group, name in zip(result.groups, names, strict=True):
        method = group.method(clock)
        for answer in group.answers:
            forecast = answer.forecast
            if forecast is None or (answer.method, answer.unit) != (method, clock):
                continue
            finite = np.isfinite(forecast.probability)
            y, low, high = (
                100 * np.asarray(values)[finite]
                for values in (forecast.probability, forecast.low, forecast.high)
            )
            x = np.asarray(forecast.ahead)[finite]
            curves.append(_Curve(name or "all series", group.n_series, x, y, low, high))
    return curves
