"""How values of each kind are written in a table: one form per kind of value."""

from __future__ import annotations

import math
import re
from typing import Any

from errcomp.report.model import Cell, Form
from errcomp.results import Estimate, Written, format_change, format_fraction, format_number

__all__ = [
    "as_written",
    "band",
    "change",
    "count",
    "estimate",
    "finite_percent",
    "fixed",
    "number",
    "p_value",
    "percent",
    "significant",
    "text",
]

#: What stands where there is no figure.
_NONE = "–"
_NUMBER = r"[+\-−]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
#: ``8.74 % [5.6, 12.1]‡``: number, unit, interval, signs that a note explains.
_FIGURE = re.compile(
    rf"(?P<number>{_NUMBER})(?P<unit> ?[%×]| [A-Za-zµμ°][A-Za-zµμ°/²³·]*)?"
    r"(?: \[(?P<low>[^\[\]]+?), (?P<high>[^\[\]]+)\])?(?P<marks>[†‡*]*)"
)


def _figure(written: Written, value: float) -> Cell:
    """Return the cell of a number; what has no digits is a word."""
    if math.isnan(value):
        return Cell(written.text)
    digits = written.number.lstrip("+-")[0].isdigit()
    return Cell(written.text, value, written if digits else None)


def _text(value: Any) -> Cell:
    return Cell("" if value is None else str(value))


def _estimate(value: Estimate | None) -> Cell:
    return Cell(_NONE) if value is None else _figure(value.written(), value.value)


def _count(value: int | None) -> Cell:
    return Cell(_NONE) if value is None else _figure(Written(f"{value:,}"), float(value))


def _percent(value: float | None) -> Cell:
    if value is None:
        return Cell(_NONE)
    number, sign, _ = format_fraction(value).partition(" %")
    return _figure(Written(number, sign), value)


def _change(value: float | None) -> Cell:
    if value is None:
        return Cell(_NONE)
    number, sign, _ = format_change(value).partition(" %")
    return _figure(Written(number, sign), value)


def significant(digits: int, unit: str = "") -> Form:
    """Return the form of numbers with so many significant digits, in a unit.

    Examples
    --------
    >>> significant(3, "ms").write(12.345).text, number.write(None).text
    ('12.3 ms', '–')
    """

    def write(value: float | None) -> Cell:
        if value is None:
            return Cell(_NONE)
        behind = f" {unit}" if unit and not math.isnan(value) else ""
        return _figure(Written(format_number(value, digits), behind), value)

    return Form(write, right=True)


def fixed(decimals: int) -> Form:
    """Return the form of numbers with so many decimals.

    Examples
    --------
    >>> fixed(2).write(0.5).text
    '0.50'
    """
    return Form(lambda value: _figure(Written(f"{value:.{decimals}f}"), value), right=True)


def _finite_percent(value: float) -> Cell:
    return _percent(value if math.isfinite(value) else None)


def _band(value: tuple[float, float]) -> Cell:
    low, high = value
    return Cell(f"{format_number(low)} … {format_number(high)}", low)


def _p_value(value: float | None) -> Cell:
    if value is None:
        return Cell("—")
    small = value < 0.001
    text = "< 0.001" if small else f"{value:.2g}"
    return Cell(text, value, None if small else Written(text))


def _as_written(value: str) -> Cell:
    """Take a figure apart that is text already; a negative zero would lose its sign in a paper."""
    found = _FIGURE.fullmatch(value.strip())
    sort = _first_number(value)
    if found is None:
        return Cell(value, sort)
    number = found["number"]
    if number[0] in "-−" and float(number.replace(",", "").replace("−", "-")) == 0:
        return Cell(value, sort)
    parts = Written(number, found["unit"] or "", found["low"] or "", found["high"] or "")
    return Cell(value, sort, parts, found["marks"])


def _first_number(text: str) -> float | None:
    found = re.search(r"[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", text)
    return None if found is None else float(found[0].replace(",", "").replace("−", "-"))


#: Text as it is.
text = Form(_text)
#: An `Estimate` with its interval.
estimate = Form(_estimate, right=True)
#: A whole number.
count = Form(_count, right=True)
#: A number with four significant digits.
number = significant(4)
#: A fraction, in percent.
percent = Form(_percent, right=True)
#: A change, a signed fraction in percent.
change = Form(_change, right=True)
#: The same, where what is not finite is nothing.
finite_percent = Form(_finite_percent, right=True)
#: Two ends; sorted by the lower one.
band = Form(_band, right=True)
#: A p-value.
p_value = Form(_p_value, right=True)
#: A figure that is text already.
as_written = Form(_as_written, right=True)
