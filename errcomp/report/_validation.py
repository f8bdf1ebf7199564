"""Pictures of whether bands hold: calibration and PIT histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError, NotDefinedError, describe_names
from errcomp.report import _style, _text
from errcomp.report._hover import tell
from errcomp.report._promised import promised

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.propagation.validation import Validation

__all__ = ["calibration", "pit"]

_BINS = 10
#: Characters of a name beside the axes.
_BESIDE = 24
#: Probability of the interval of a bin's count.
_BIN_LEVEL = 0.9


def calibration(validation: Validation, ax: Axes | None = None) -> Axes:
    r"""Draw the share of totals inside their bands against the share that should be.

    On the diagonal bands hold what they promise; below it they are too narrow, above it wider than
    need be. Vertical lines are the 95 % intervals of `coverage_interval`: totals of one device err
    alike, so few devices make them wide. Points of one level stand side by side so that their
    intervals can be seen. Bounds for any dependence promise "at least" and belong above.

    Misleads where the best line is taken for the best assumption: of those that hold, prefer the
    one with the lower interval score.

    Parameters
    ----------
    validation : Validation
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    NotDefinedError
        No assumption was validated.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> from errcomp.propagation.validation import Validation, ValidationRow
    >>> rows = [ValidationRow("estimated", level, level, level - 0.1, level + 0.05, 87, 8, 0.2, 0.3)
    ...         for level in (0.5, 0.9)]
    >>> axes = calibration(Validation(tuple(rows), {}, (), "device", "total", ()))
    >>> [line.get_ydata().tolist() for line in axes.lines if line.get_label() == "estimated"]
    [[50.0, 90.0]]
    """
    if not validation.rows:
        raise NotDefinedError("there is no calibration to draw: no assumption was validated")
    names = list(dict.fromkeys(row.assumption for row in validation.rows))
    levels = sorted({row.level for row in validation.rows})
    ax, room = promised(ax, levels, max(4.2, 1.6 + 0.19 * len(names)))
    tints, marks = _style.colours(names), _style.markers(names)
    offsets = room * (np.arange(len(names)) - (len(names) - 1) / 2) / max(len(names), 2)
    ends = []
    for i, name in enumerate(names):
        rows = sorted((r for r in validation.rows if r.assumption == name), key=lambda r: r.level)
        x = [100 * row.level + float(offsets[i]) for row in rows]
        y = [100 * row.coverage for row in rows]
        ax.plot(x, y, color=tints[i], marker=marks[i], ms=5, lw=1.0, zorder=4, label=name)
        low = [100 * row.coverage_low for row in rows]
        high = [100 * row.coverage_high for row in rows]
        ax.vlines(x, low, high, color=tints[i], lw=0.9, zorder=3)
        tell(
            ax,
            x,
            y,
            [
                f"{name}, {100 * row.level:g} % band\n{_text.share(row.coverage)} inside "
                f"[{_text.share(row.coverage_low)}, {_text.share(row.coverage_high)}], n={row.n:,}"
                for row in rows
            ],
        )
        ends.append((x[-1], y[-1], name + (" (bounds)" if name == "unknown" else "")))
    _style.side_labels(
        ax,
        [e[0] for e in ends],
        [e[1] for e in ends],
        _text.fitting([e[2] for e in ends], _BESIDE),
        tints,
    )
    _style.name_axes(ax, x="probability of the band", y="totals inside")
    row = validation.rows[0]
    word = validation.left_out or "cluster"
    how = f"each {word} left out in turn" if validation.left_out else "errors from elsewhere"
    _style.heading(
        ax,
        f"Do bands hold? n={_text.count(row.n, 'total')}, {_text.count(row.n_clusters, word)}",
        [how, "thick black bars: as promised; vertical: 95 % interval"],
        room=2,
    )
    return ax


def pit(validation: Validation, assumption: str, ax: Axes | None = None) -> Axes:
    r"""Draw where measured totals fall in their distributions (probability integral transform).

    Counts of :math:`u_i = F_i(y_i)` in ten bins. With the right distributions u is uniform: each
    bin holds n/10 on average, and with probability 90 % a number within the grey band, the central
    interval of the binomial distribution with n and 1/10. High at both ends: bands are too narrow.
    High in the middle: too wide. Leaning to one side: biased.

    Misleads where totals are alike, as those of one device are: they fall into the same bins, and
    bins leave the grey band more often than it says.

    Parameters
    ----------
    validation : Validation
    assumption : str
        One with a distribution; bounds have none.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        There is no such assumption, or it has no distribution.
    MissingExtraError
        Matplotlib is not installed.

    References
    ----------
    Dawid (1984), "Statistical Theory: The Prequential Approach", JRSS A 147(2), 278-292,
    doi:10.2307/2981683.

    Examples
    --------
    >>> import numpy as np
    >>> from errcomp.propagation.validation import Validation
    >>> found = Validation((), {"estimated": np.array([0.05, 0.55, 1.0])}, (), "device", "", ())
    >>> [int(bar.get_height()) for bar in pit(found, "estimated").patches]
    [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]
    """
    from scipy import stats

    if assumption not in validation.pit:
        validated = assumption in {row.assumption for row in validation.rows}
        why = "bounds have no distribution" if validated else "it was not validated"
        raise InputError(
            f"no PIT of {assumption!r}: {why}. There is: "
            f"{describe_names(list(validation.pit), wanted=str(assumption))}"
        )
    values = np.asarray(validation.pit[assumption], dtype=float)
    if not len(values) or not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"PIT values of {assumption!r} must be in [0, 1] and at least one")
    n = len(values)
    counts, edges = np.histogram(values, bins=_BINS, range=(0.0, 1.0))
    tail = (1 - _BIN_LEVEL) / 2
    low, high = (float(stats.binom.ppf(q, n, 1 / _BINS)) for q in (tail, 1 - tail))
    ax = _style.canvas(ax, 3.4)
    from matplotlib.ticker import MaxNLocator

    ax.fill_between([0, 1], low, high, facecolor=_style.blend(_style.INK, 0.14),
                    edgecolor=_style.MUTED, lw=0.8, zorder=1)  # fmt: skip
    ax.hlines([low, high], 0, 1, color=_style.MUTED, lw=0.8, zorder=3)
    tint = _style.colours([assumption])[0]
    ax.bar(edges[:-1], counts, width=0.1, align="edge", color=tint, edgecolor="white", zorder=2)
    ax.axhline(n / _BINS, color=_style.INK, lw=1.0, ls=(0, (4, 2)), zorder=4)
    tell(
        ax,
        edges[:-1] + 0.05,
        counts,
        [
            f"{low_edge:.1f} to {low_edge + 0.1:.1f} of its distribution\n"
            f"{_text.count(int(found), 'total')} of {n:,}"
            for low_edge, found in zip(edges[:-1], counts, strict=True)
        ],
    )
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.08 * max(float(counts.max()), float(high)))
    _style.beside(
        ax, n / _BINS, f"uniform, and\n{_BIN_LEVEL:.0%} interval\nof a bin".replace("%", " %")
    )
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    _style.name_axes(
        ax, x="measured total in its distribution (0: below all of it, 1: above)", y="totals"
    )
    _style.heading(
        ax,
        f"PIT histogram of n={_text.count(n, 'total')}, assumption: {_text.shorten(assumption)}",
        ["flat: bands hold; high at the ends: too narrow; in the middle: too wide"],
        room=2,
    )
    return ax
