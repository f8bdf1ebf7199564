"""What a reader is told at a point of a figure, on a page where figures respond."""

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
    """Points of one kind in a figure, each with its text.

    Attributes
    ----------
    x, y : array, shape (n,)
        In the units of the data.
    texts : tuple of str
        One for each point, short lines separated by line breaks, the name first.
    """

    x: Floats
    y: Floats
    texts: tuple[str, ...]


_TOLD: WeakKeyDictionary[Axes, list[Spots]] = WeakKeyDictionary()


def tell(
    ax: Axes, x: Sequence[float] | Floats, y: Sequence[float] | Floats, texts: Sequence[str]
) -> None:
    """Say what a reader is told at these points, in units of the data."""
    _TOLD.setdefault(ax, []).append(Spots(np.asarray(x, float), np.asarray(y, float), tuple(texts)))


def spots(ax: Axes) -> list[Spots]:
    """Return what was told of these axes."""
    return _TOLD.get(ax, [])
