"""Formats of the values in tables: one form per kind of value."""

from __future__ import annotations

import math
import re
from typing import Any

from errcomp.report.model import Cell, Form
from errcomp.results import (
    Estimate,
    Written,
    format_number,
    written_change,
    written_fraction,
)

__all__ = [
    "Ends",
    "band",
    "change",
    "changes",
    "count",
    "estimate",
    "figure",
    "finite_percent",
    "fixed",
    "interval",
    "number",
    "number_or",
    "p_value",
    "percent",
    "printed",
    "probability",
    "share",
    "significant",
    "text",
    "words_or",
]

#: Text of a missing value.
_NONE = "–"
#: A number as published: ``8.74%``, ``218,432``, ``3.8×``.
_PRINTED = re.compile(
    r"(?P<number>[+\-−]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"(?P<unit> ?[%×])?"
)
#: A value and the bounds of its interval; None without an interval.
Ends = tuple[float, float | None, float | None]


def figure(written: Written, value: float) -> Cell:
    """Return the cell of a number; text without digits, and a negative zero, is not aligned.

    Examples
    --------
    >>> figure(Written("8.74", " %"), 0.0874).figure
    Written(number='8.74', unit=' %', low='', high='')
    >>> figure(Written("-0.0", " %"), -0.0003).figure is None
    True
    """
    if math.isnan(value):
        return Cell(written.text)
    return Cell(written.text, float(value), written if _aligns(written.number) else None)


def _aligns(number: str) -> bool:
    """Return whether siunitx can align a number; a negative zero would lose its sign."""
    if number[0].isdigit():
        return True
    if not number.lstrip("+-−")[0].isdigit():
        return False
    plain = number.replace(",", "").replace("−", "-")
    return plain[0] != "-" or float(plain) != 0


def _text(value: Any) -> Cell:
    return Cell("" if value is None else str(value))


def _estimate(value: Estimate | None) -> Cell:
    return Cell(_NONE) if value is None else figure(value.written(), value.value)


def _count(value: int | None) -> Cell:
    return Cell(_NONE) if value is None else figure(Written(f"{value:,}"), float(value))


def _percent(value: float | None) -> Cell:
    return Cell(_NONE) if value is None else figure(written_fraction(value), value)


def _share(value: float | None) -> Cell:
    return Cell(_NONE) if value is None else figure(Written(f"{100 * value:.0f}", " %"), value)


def _probability(value: float | None) -> Cell:
    """Write a probability in whole per cent; none is written as 0 or 100 %."""
    if value is None:
        return Cell(_NONE)
    if value <= 0.005 or value >= 0.995:
        return Cell("< 1 %" if value < 0.5 else "> 99 %", float(value))
    return _share(value)


def _change(value: float | None) -> Cell:
    return Cell(_NONE) if value is None else figure(written_change(value), value)


def changes(unit: str = " %") -> Form:
    """Return the form of a change and the bounds of its interval, all three fractions.

    Examples
    --------
    >>> changes().write((0.021, -0.0033, 0.05)).text, changes("").write((0.021, None, None)).text
    ('+2.1 % [-0.3, 5.0]', '+2.1')
    """

    def write(value: Estimate | Ends) -> Cell:
        middle, low, high = _ends(value)
        return figure(written_change(middle, low, high, unit=unit), middle)

    return Form(write, right=True)


def number_or(nothing: str) -> Form:
    """Return the form of a whole number that shows `nothing` for zero.

    Examples
    --------
    >>> number_or("·").write(0).text, number_or("·").write(3).text
    ('·', '3')
    """
    return Form(lambda value: _count(value) if value else Cell(nothing, 0.0), right=True)


def words_or(form: Form) -> Form:
    """Return a form that also accepts a text instead of a value.

    Examples
    --------
    >>> words_or(percent).write("now").text, words_or(percent).write(0.05).text
    ('now', '5.00 %')
    """

    def write(value: Any) -> Cell:
        return Cell(value) if isinstance(value, str) else form.write(value)

    return Form(write, right=form.right)


def significant(digits: int, unit: str = "") -> Form:
    """Return the form of numbers with a number of significant digits, and a unit.

    Examples
    --------
    >>> significant(3, "ms").write(12.345).text, number.write(None).text
    ('12.3 ms', '–')
    """

    def write(value: float | None) -> Cell:
        if value is None:
            return Cell(_NONE)
        behind = f" {unit}" if unit and not math.isnan(value) else ""
        return figure(Written(format_number(value, digits), behind), value)

    return Form(write, right=True)


def fixed(decimals: int) -> Form:
    """Return the form of numbers with a fixed number of decimals.

    Examples
    --------
    >>> fixed(2).write(0.5).text
    '0.50'
    """

    def write(value: float | None) -> Cell:
        if value is None:
            return Cell(_NONE)
        return figure(Written(f"{value:.{decimals}f}"), value)

    return Form(write, right=True)


def interval(
    decimals: int,
    *,
    scale: float = 1.0,
    signed: bool = False,
    ends_signed: bool = False,
    unit: str = "",
) -> Form:
    """Return the form of a value and the bounds of its interval, if it has one.

    Examples
    --------
    >>> interval(0, scale=100).write((0.96, 0.9, 0.992)).text
    '96 [90, 99]'
    >>> interval(3, signed=True).write((0.1, None, None)).text
    '+0.100'
    >>> interval(1).write((2.0, 1.5, float("inf"))).text
    '2.0 [1.5, ∞]'
    >>> interval(1).write((float("inf"), float("-inf"), float("inf"))).text
    '∞ [-∞, ∞]'
    """

    def shown(value: float, sign: bool) -> str:
        return f"{scale * value:{'+' if sign else ''}.{decimals}f}".replace("inf", "∞")

    def write(value: Estimate | Ends | None) -> Cell:
        if value is None:
            return Cell(_NONE)
        middle, low, high = _ends(value)
        ends = () if low is None or high is None else (low, high)
        texts = [shown(end, ends_signed) for end in ends]
        return figure(Written(shown(middle, signed), unit, *texts), middle)

    return Form(write, right=True)


def _ends(value: Estimate | Ends) -> Ends:
    return (value.value, value.low, value.high) if isinstance(value, Estimate) else value


def _finite_percent(value: float | None) -> Cell:
    return _percent(value if value is not None and math.isfinite(value) else None)


def _band(value: tuple[float, float]) -> Cell:
    low, high = value
    return Cell(f"{format_number(low)} … {format_number(high)}", float(low))


def _p_value(value: float | None) -> Cell:
    if value is None:
        return Cell("—")
    small = value < 0.001
    text = "< 0.001" if small else f"{value:.2g}"
    return Cell(text, float(value), None if small else Written(text))


def _printed(value: tuple[str, float | None]) -> Cell:
    """Write a published number: the text as printed, and the number that it was read as."""
    shown, number = value
    match = _PRINTED.fullmatch(shown.strip())
    if match is None or not _aligns(match["number"]):
        return Cell(shown, number)
    return Cell(shown, number, Written(match["number"], match["unit"] or ""))


#: Text, unchanged.
text = Form(_text)
#: An `Estimate` with its interval.
estimate = Form(_estimate, right=True)
#: A whole number.
count = Form(_count, right=True)
#: A number with four significant digits.
number = significant(4)
#: A fraction, in per cent.
percent = Form(_percent, right=True)
#: A fraction, in whole per cent.
share = Form(_share, right=True)
#: A probability, in whole per cent.
probability = Form(_probability, right=True)
#: A change: a signed fraction, in per cent.
change = Form(_change, right=True)
#: A fraction, in per cent; values that are not finite are shown as missing.
finite_percent = Form(_finite_percent, right=True)
#: The two bounds of a band; sorted by the lower one.
band = Form(_band, right=True)
#: A p-value.
p_value = Form(_p_value, right=True)
#: A published number: its text as printed, and its value.
printed = Form(_printed, right=True)
