"""Which sums over rows a figure and its interval need."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from errcomp.errors import InputError, offer
from errcomp.metrics._registry import FIGURES, figure
from errcomp.tables.frames import Sum

__all__ = ["FORMS", "FromSums", "sums_for", "within"]


class FromSums(NamedTuple):
    """A figure as (shift + sum x / sum y)^root - shift, or as exp(mean x) if not ``log``.

    Attributes
    ----------
    x : tuple of str
        Terms whose product is x (see `errcomp.tables.frames.term_names`).
    weighted : bool
        Whether y is the measurement; otherwise it is 1.
    root, log
        As in `errcomp.metrics.intervals._smooth`, whose intervals these sums give.
    largest : float
        The figure cannot be larger.
    shift : float
        1 for the means of signed errors, which are studentised as means of ratios: sums of errors
        lose no digits, sums of ratios would.
    """

    x: tuple[str, ...]
    weighted: bool = False
    root: float = 1.0
    shift: float = 0.0
    log: bool = True
    largest: float = math.inf


FORMS: dict[str, FromSums] = {
    "mape": FromSums(("ape",)),
    "smape": FromSums(("symmetric",), largest=2.0),
    "bias": FromSums(("signed_ape",), shift=1.0),
    "wape": FromSums(("error",), weighted=True),
    "total_error": FromSums(("signed",), weighted=True, shift=1.0),
    "mae": FromSums(("error",)),
    "rmse": FromSums(("error", "error"), root=0.5),
    "rmspe": FromSums(("ape", "ape"), root=0.5),
    "rmsle": FromSums(("log_ratio", "log_ratio"), root=0.5),
    "gmape": FromSums(("log_ape",), log=False),
    "gm_ratio": FromSums(("log_ratio",), log=False),
}


def sums_for(figures: Iterable[str], *, intervals: bool) -> list[Sum]:
    """Return the sums that these figures need, each once.

    Raises
    ------
    InputError
        A figure cannot be made from sums over rows; the message says what can be instead.
    """
    return list(dict.fromkeys(one for name in figures for one in _sums_of(name, intervals)))


def within(name: str) -> Sum:
    """Return the sum that counts pairs within the limit of a share."""
    limit: float = getattr(figure(name).function, "keywords", {})["threshold"]
    # What 10 % is in binary must not decide whether 10 % is within 10 %, as in `share_within`.
    return Sum(("ape",), "within", limit + 4 * np.finfo(np.float64).eps * (1 + limit))


def _sums_of(name: str, intervals: bool) -> list[Sum]:
    spec = figure(name)
    if spec.kind == "share":
        return [within(name)]
    if spec.kind == "maximum":
        return [Sum(("ape",), "max")]
    if name.endswith("_approx"):
        return []  # read off a histogram
    if name not in FORMS:
        if f"{name}_approx" in FIGURES:
            raise InputError(
                f"{name} needs every pair in one place, and these rows stay in their engine. Ask "
                f"for {name}_approx, which is within 0.5 % of it, or collect the table first."
            )
        able = [one for one in FIGURES if one in FORMS or FIGURES[one].kind in ("share", "maximum")]
        able += [one for one in FIGURES if one.endswith("_approx")]
        raise InputError(
            f"{name} needs every pair in one place, and these rows stay in their engine. "
            f"{offer('Figures from sums over rows', able, wanted=name)}. Or collect the rows first."
        )
    form = FORMS[name]
    sums = [Sum(form.x)]
    if form.x[0].startswith("log_"):  # which not every pair has
        sums.append(Sum((form.x[0],), "count"))
    if intervals:
        sums.append(Sum((*form.x, *form.x)))
    if form.weighted:
        sums.append(Sum(("m",)))
        if intervals:
            sums += [Sum((*form.x, "m")), Sum(("m", "m"))]
    return sums
