r"""How often one of several rules would give a printed figure that has nothing to do with them.

The null hypothesis: the printed figure is unrelated to all rules but the stated one, and as near to
the figure of that rule as the real one is. An unrelated figure is not far from the data: somebody
who ran other cases with the same tool prints a figure near the same mean. So its law is flat over a
window around the figure :math:`c` of the stated rule that holds the printed figure,

.. math:: [c / f, c f], \qquad f \in \{1.02, 1.05, 1.1, 1.2, 1.5, 2\}

The chance is the share of the figures in this window, written with as many decimals as printed,
that some other rule gives. The figure of the stated rule itself is not counted. The window with the
largest chance bounds every law that is symmetric on the scale of factors and falls off on both
sides up to a factor of 2. If the printed figure is further away, or there is no stated rule, the
window is a factor of 2 around the printed figure.

For a range, both ends are drawn independently of each other, and a rule must give both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

__all__ = ["chance"]

_FACTORS = (1.02, 1.05, 1.1, 1.2, 1.5, 2.0)
_Units = tuple[int, ...]


def chance(
    printed: Sequence[float],
    others: Iterable[Sequence[float]],
    units: Sequence[float],
    stated: Sequence[float] | None = None,
) -> float:
    """Return the chance that one of the other rules gives an unrelated figure.

    Parameters
    ----------
    printed : sequence of float
        The printed figure, or the two ends of a range.
    others : iterable of sequences of float
        What each rule but the stated one gives.
    units : sequence of float
        One unit of the last printed digit, for each end.
    stated : sequence of float, optional
        What the stated rule gives.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    Of the whole numbers from 6 to 24 other than 12, one rule gives one:

    >>> chance([20], [[20]], [1], stated=[12]) == 1 / 18
    True

    A single rule that gives a coarse figure proves little, one that gives a fine figure much:

    >>> chance([0.09], [[0.0874]], [0.01], stated=[0.06]) > 0.1
    True
    >>> chance([0.0874], [[0.0874]], [0.0001], stated=[0.06]) < 0.003
    True
    """
    target = _in_units(printed, units)
    centre = None if stated is None else _in_units(stated, units)
    hits = {_in_units(values, units) for values in others} - {centre}
    windows = [] if centre is None else [_window(centre, factor) for factor in _FACTORS]
    holding = [window for window in windows if _inside(target, window) and target != centre]
    found = 0.0
    for window in holding or [_window(target, _FACTORS[-1])]:
        size = math.prod(high - low + 1 for low, high in window)
        size -= centre is not None and _inside(centre, window)
        found = max(found, sum(_inside(hit, window) for hit in hits) / size)
    return found


def _in_units(values: Sequence[float], units: Sequence[float]) -> _Units:
    return tuple(round(value / unit) for value, unit in zip(values, units, strict=True))


def _window(centre: _Units, factor: float) -> list[tuple[int, int]]:
    ends = [sorted((value / factor, value * factor)) for value in centre]
    return [(math.ceil(low - 1e-9), math.floor(high + 1e-9)) for low, high in ends]


def _inside(values: _Units, window: Sequence[tuple[int, int]]) -> bool:
    return all(low <= value <= high for value, (low, high) in zip(values, window, strict=True))
