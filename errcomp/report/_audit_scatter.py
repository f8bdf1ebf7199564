"""Picture of every pair: predicted against measured, with bands of near enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, NotDefinedError
from errcomp.metrics import share_within
from errcomp.report import _audit_parts as parts
from errcomp.report import _style, _text
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.tables import Pairs

__all__ = ["fractions", "predicted_against_measured"]


def predicted_against_measured(
    pairs: Any, ax: Axes | None = None, within: Sequence[float] = (0.1, 0.25)
) -> Axes:
    r"""Draw every prediction against its measurement, on logarithmic scales.

    On the dashed line a prediction is right. A band holds the pairs whose absolute percentage
    error is at most w,

    .. math:: (1 - w)\, m \le p \le (1 + w)\, m

    relative to the measurement, as the error itself is; on the logarithmic scale it is therefore
    wider below the line than above. The share of the pairs inside is written below the title.
    Tools look apart where there are several, else devices: those with the most pairs have colours
    and markers of their own, from the eighth on they share one. Predictions that are not positive
    have no place on the scale and are counted.

    Misleads over many orders of magnitude, where an error of 20 % is hardly seen: `ecdf` and
    `by_group` show errors themselves.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.
    within : sequence of float
        Half-widths of the bands, fractions above 0.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        There is no pair, or ``within`` holds no fractions above 0.
    NotDefinedError
        No prediction is positive.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> axes = predicted_against_measured({"predicted": [11.0, 70.0], "measured": [10.0, 100.0]})
    >>> axes.get_title(loc="left")
    'Predicted against measured, n=2 pairs'
    """
    table = parts.checked(pairs)
    widths = fractions("within", within)
    shown = table.predicted > 0
    if not shown.any():
        raise NotDefinedError(
            f"no prediction of {_text.count(table.n, 'pair')} is positive: none has a place on a "
            "logarithmic scale. Draw their errors instead (ecdf, by_group)."
        )
    ax = _style.canvas(ax, 4.7)
    values = np.concatenate([table.predicted[shown], table.measured[shown]])
    room = max(1.15, float(values.max() / values.min()) ** 0.03)
    ends = (float(values.min()) / room, float(values.max()) * room)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_box_aspect(1)
    ax.set_anchor("W")
    parts.log_ticks(ax.xaxis, apart=0.12)
    parts.log_ticks(ax.yaxis, apart=0.08)
    _bands(ax, widths)
    dense = table.n > parts.DENSE
    key, looks = parts.looks(table)
    for look in sorted(looks, key=lambda look: -len(look.index)):  # the few are not hidden
        index = look.index[shown[look.index]]
        parts.dots(ax, table.measured[index], table.predicted[index], look, dense=dense)
    _legend(ax, table, key, looks)
    index = np.flatnonzero(shown)
    parts.tell_pairs(ax, table, index, table.measured[index], table.predicted[index])
    ax.grid(color=_style.GRID)
    names = (_text.with_unit(name, table.unit) for name in ("measured", "predicted"))
    _style.name_axes(ax, *names)
    _style.heading(
        ax,
        f"Predicted against measured{parts.of_table(table)}, n={_text.count(table.n, 'pair')}",
        _notes(table, widths, int((~shown).sum())),
        room=2,
    )
    return ax


def fractions(name: str, values: Sequence[float]) -> list[float]:
    """Return fractions above 0, ascending.

    Raises
    ------
    InputError
        One is none.
    """
    given = list(values) if isinstance(values, Sequence | np.ndarray) else [values]
    for value in given:
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise InputError(
                f"{name} must hold fractions above 0, got {value!r}. 0.1 stands for 10 %."
            )
    return sorted({float(value) for value in given})


def _bands(ax: Axes, widths: Sequence[float]) -> None:
    low, high = ax.get_xlim()
    for rank, width in enumerate(reversed(widths)):
        tint = _style.blend(_style.INK, 0.04 + 0.12 * (rank + 1) / len(widths))
        # A band of 100 % or more has no lower edge on this scale.
        below = max(1 - width, 1e-3 * low / high)
        ax.fill_between([low, high], [below * low, below * high],
                        [(1 + width) * low, (1 + width) * high], facecolor=tint, lw=0.5,
                        edgecolor=_style.FAINT, zorder=1 + 0.01 * rank)  # fmt: skip
    ax.plot([low, high], [low, high], color=_style.INK, lw=0.9, ls=(0, (4, 2)), zorder=3)


def _legend(ax: Axes, table: Pairs, key: str, looks: Sequence[parts.Look]) -> None:
    """Name the groups beside the axes, with the pairs and the error of each."""
    from matplotlib.lines import Line2D

    errors = parts.errors_of(table)
    texts = _text.fitting([look.name or "pairs" for look in looks], 20)
    handles = [
        Line2D([], [], ls="", marker=look.marker, ms=5.5, color=look.colour,
               mfc=_style.blend(look.colour, 0.55),
               label=f"{text}\nn={len(look.index):,}, MAPE "
                     f"{format_fraction(float(errors[look.index].mean()))}")
        for text, look in zip(texts, looks, strict=True)
    ]  # fmt: skip
    legend = ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0,
        frameon=False, fontsize=_style.SMALL, labelcolor=_style.INK, handlelength=1.0,
        labelspacing=0.8, title=key or None, title_fontsize=_style.SMALL, alignment="left",
    )  # fmt: skip
    legend.get_title().set_color(_style.MUTED)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _notes(table: Pairs, widths: Sequence[float], missing: int) -> list[str]:
    told = [
        f"±{100 * width:g} %{'' if i else ' of measured'} ({_text.share(_share(table, width))}"
        f"{'' if i else ' of the pairs'})"
        for i, width in enumerate(widths)
    ]
    notes = [f"shaded: {', '.join(told)}"] if told else []
    if missing:
        notes.append(f"{_text.count(missing, 'prediction')} of 0 or less not drawn")
    return notes


def _share(table: Pairs, width: float) -> float:
    return share_within(predicted=table.predicted, measured=table.measured, threshold=width)
