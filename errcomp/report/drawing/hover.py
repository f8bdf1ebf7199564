"""Texts that an HTML page shows when the pointer is on a point of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Spots:
    """Points of a figure with their hover texts.

    Attributes
    ----------
    x, y : array, shape (n,)
        Data coordinates.
    texts : tuple of str
        One text per point: short lines separated by line breaks, the name first.
    """

    x: Floats
    y: Floats
    texts: tuple[str, ...]


_SPOTS: WeakKeyDictionary[Axes, list[Spots]] = WeakKeyDictionary()


def tell(
    ax: Axes, x: Sequence[float] | Floats, y: Sequence[float] | Floats, texts: Sequence[str]
) -> None:
    """Add hover texts to points of these axes, in data coordinates."""
    points = Spots(np.asarray(x, float), np.asarray(y, float), tuple(texts))
    _SPOTS.setdefault(ax, []).append(points)


def spots(ax: Axes) -> list[Spots]:
    """Return the hover texts of these axes."""
    return _SPOTS.get(ax, [])
