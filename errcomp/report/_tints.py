"""Tints of colours, and which of them can be read on which (contrast after WCAG 2.1)."""

from __future__ import annotations

import math

import numpy as np

from errcomp.propagation.terms import Floats

__all__ = ["blend", "interval", "legible", "on"]

#: Contrast of text against its ground (WCAG 2.1, 1.4.3).
_OF_TEXT = 4.5
#: Text on a tint, the first if it is as easy to read as the second.
_ON_TINTS = ("#000000", "#ffffff")


def interval(colour: str) -> str:
    """Return the tint of an interval behind a mark of this colour: paler, but not too pale to see.

    Examples
    --------
    >>> interval("#0072b2")
    '#4095c5'
    """
    return blend(colour, 0.75)


def on(ground: str) -> str:
    """Return black or white, whichever can be read better on a ground.

    Examples
    --------
    >>> on("#0072b2"), on("#80b9d9")
    ('#ffffff', '#000000')
    """
    dark = _luminance(np.array([int(ground[i : i + 2], 16) for i in (1, 3, 5)]) / 255)
    return _ON_TINTS[0] if (dark + 0.05) / 0.05 >= 1.05 / (dark + 0.05) else _ON_TINTS[1]


def _luminance(parts: Floats) -> float:
    """Return the relative luminance (WCAG 2.1) of red, green and blue, each from 0 to 1."""
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def legible(colour: str) -> str:
    """Return a colour in which text can be read on white: itself, or as much darker as it takes.

    Its contrast is (1 + 0.05) / (L + 0.05), L its relative luminance (WCAG 2.1), and at least 4.5.

    Examples
    --------
    >>> legible("#0072b2"), legible("#d55e00")
    ('#0072b2', '#c25600')
    """
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    for share in np.linspace(1.0, 0.0, 101):
        rounded = np.floor(255 * share * parts + 0.5) / 255
        if 1.05 / (_luminance(rounded) + 0.05) >= _OF_TEXT:
            break
    return "#" + "".join(f"{round(255 * part):02x}" for part in rounded)


def blend(colour: str, share: float) -> str:
    """Return a colour mixed with white, opaque: 1 is the colour, 0 is white.

    Examples
    --------
    >>> blend("#0072b2", 0.5)
    '#80b9d9'
    """
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{math.floor(255 - share * (255 - part) + 0.5):02x}" for part in parts)
