"""Printed figures: which numbers a printed figure can stand for."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from errcomp.errors import InputError
from errcomp.results import Written

_NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_UNIT = r"\s*(?P<{0}>%|×|x)?\s*"
_VALUE = re.compile(rf"[~≈]?\s*(?P<a>{_NUMBER}){_UNIT.format('unit')}")
_BOUND = re.compile(rf"(?P<sign><=|>=|[<>≤≥])\s*(?P<a>{_NUMBER}){_UNIT.format('unit')}")
_RANGE = re.compile(
    rf"(?P<a>{_NUMBER}){_UNIT.format('first')}(?:–|-|to)\s*(?P<b>{_NUMBER}){_UNIT.format('unit')}"
)


_SIGN = re.compile(r"\s*%")
_FACTORS = ("×", "x")
_POWER = re.compile(r"[eE]([+-]?\d+)")
_LARGEST_POWER = 300
#: Well above the rounding error of a sum, but at most a share of the figure's width.
_ROUNDING, _SHARE_OF_WIDTH = 1e-12, 1e-3


@dataclass(frozen=True, slots=True)
class Printed:
    """A published figure and the interval of numbers that would be printed like it.

    Compare a number with a figure only by `contains`, `lies_below` and `lies_above`: they know
    which end belongs to the figure, and do not let the last bit of a sum decide.

    Attributes
    ----------
    text : str
        As printed.
    value : float or None
        The number itself, as a fraction; None for a bound or a range.
    low, high : float
        Fractions. The interval is half-open, ``[low, high)``, except that a range and a bound
        written with ≤ or ≥ include the end they print.
    kind : {"value", "bound", "range"}
        The form that was printed.
    decimals : int
        Decimals behind the point as printed (of the per cent where a % sign was printed).
    percent : bool
        Whether a % sign was printed.
    closed : bool
        Whether ``high`` belongs to the interval.
    """

    text: str
    value: float | None
    low: float
    high: float
    kind: Literal["value", "bound", "range"]
    decimals: int
    percent: bool
    closed: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end as printed, whether or not they belong to the interval.

        Examples
        --------
        >>> parse_printed(">5%").ends
        (0.05, inf)
        """
        return _ends(self.low, self.high)[0]

    @property
    def number(self) -> float:
        """Number to sort by: the number itself, the bound, the lower end of a range.

        Examples
        --------
        >>> [parse_printed(text).number for text in ("2.3%", "<5%", "5–10%")]
        [0.023, 0.05, 0.05]
        """
        if self.value is not None:
            return self.value
        # The figure that an upper bound states is its upper end: the lower one is zero.
        return self.ends[self.kind == "bound" and self.low <= 0]

    def contains(self, value: float) -> bool:
        """Say whether this number, a fraction, would be printed like the figure or is in its range.

        Examples
        --------
        >>> parse_printed("2.3%").contains(0.02349), parse_printed("2.3%").contains(0.0235)
        (True, False)
        """
        at = self._snapped(value)
        return not (at < self.low or self._exceeded_by(at))

    def lies_below(self, value: float) -> bool:
        """Say whether this number is larger than all numbers that would be printed like the figure.

        Examples
        --------
        >>> parse_printed("<5%").lies_below(0.05), parse_printed("≤5%").lies_below(0.05)
        (True, False)
        """
        return self._exceeded_by(self._snapped(value))

    def lies_above(self, value: float) -> bool:
        """Say whether this number is smaller than all numbers printed like the figure.

        Examples
        --------
        >>> parse_printed(">5%").lies_above(0.05), parse_printed("≥5%").lies_above(0.05)
        (True, False)
        """
        return self._snapped(value) < self.low

    def complement(self) -> Printed:
        """Return the difference to 100 %: of an accuracy, the error. The printed text stays.

        An end belongs to the complement if it belongs to the figure: an accuracy of more than
        95 % is an error below 5 %. An error is never negative, so the complement of a lower bound
        begins at 0.

        Examples
        --------
        >>> parse_printed("97.6%").complement().ends
        (0.0235, 0.0245)
        >>> error = parse_printed("≥95%").complement()
        >>> error.ends, error.contains(0.05)
        ((0.0, 0.05), True)
        """
        # Through whole multiples of the printed digit, so that 1 - 0.9765 is 0.0235 exactly.
        digits = self.decimals + 3
        low, high = (round(1 - end, digits) for end in reversed(self.ends))
        if self.kind == "bound":
            low = max(low, 0.0)
        if not self.contains(self.high) and math.isfinite(self.high):
            low = math.nextafter(low, math.inf)
        value = None if self.value is None else round(1 - self.value, digits)
        return replace(self, value=value, low=low, high=high, closed=self.contains(self.ends[0]))

    def _exceeded_by(self, at: float) -> bool:
        return at > self.high or (at == self.high and not self.closed)

    def _snapped(self, value: float) -> float:
        """Return the end from which a value differs by rounding only, else the value."""
        (low, high), slack = _ends(self.low, self.high)
        if abs(value - low) <= slack:
            return low
        return high if abs(value - high) <= slack else value


def tolerance(figure: Printed) -> float:
    """Distance from an end of the figure within which a value counts as equal to it.

    It is well above the rounding error of a sum and well below the width of the figure. Means of
    rounded errors often lie exactly on an end, and the same sum in another order differs in its
    last bit.

    Examples
    --------
    >>> tolerance(parse_printed("2.3%"))
    1e-12
    """
    return _ends(figure.low, figure.high)[1]


@lru_cache(maxsize=1000)
def _ends(low: float, high: float) -> tuple[tuple[float, float], float]:
    """Return both ends as printed and the tolerance: many values are compared with one figure."""
    size = max(1.0, *(abs(end) for end in (low, high) if math.isfinite(end)))
    width = high - low
    slack = min(_ROUNDING * size, _SHARE_OF_WIDTH * width if width > 0 else math.inf)
    return (_as_printed(low), _as_printed(high)), slack


def _as_printed(end: float) -> float:
    """Return the printed number: an interval that excludes it starts one bit above."""
    return float(f"{end:.15g}") if abs(end) > sys.float_info.min else 0.0


def parse_printed(text: str | float) -> Printed:
    """Read a printed figure: ``2.3%``, ``~15%``, ``<5%``, ``≤5%``, ``5–10%``, ``2–4×``, ``0.97``.

    Definition: a value stands for every number that rounds to it at the decimals printed, so
    ``2.3%`` is [2.25 %, 2.35 %). A tie counts as rounded up. An upper bound starts at 0, because an
    error magnitude cannot be negative; a lower bound ends at infinity. A range has the ends it
    prints, both included. A tilde changes nothing: how near "about" means is not known.

    A number without a % sign is a fraction, as everywhere in errcomp: 0.023 is 2.3 %, and 2.3
    is 230 %. A factor (``3.8×``) is the number itself.

    Parameters
    ----------
    text : str or float
        One figure without words. A float has the digits that Python prints.

    Returns
    -------
    Printed
        Fractions.

    Raises
    ------
    InputError
        The text is not one figure, is not finite, or a range whose ends are in the wrong order.

    Examples
    --------
    >>> p = parse_printed("2.3%")
    >>> p.value, p.low, p.high, p.kind, p.decimals
    (0.023, 0.0225, 0.0235, 'value', 1)
    >>> p = parse_printed("<5%")
    >>> p.value, p.low, p.high, p.kind
    (None, 0.0, 0.05, 'bound')
    >>> p = parse_printed("5–10%")
    >>> p.low, p.high, p.contains(0.10)
    (0.05, 0.1, True)
    >>> parse_printed(0.97).high
    0.975
    """
    written = text.strip() if isinstance(text, str) else repr(float(text))
    if not written.isascii() and any(c.isdigit() and not c.isascii() for c in written):
        raise _unreadable(text)
    if any(abs(int(power)) > _LARGEST_POWER for power in _POWER.findall(written)):
        raise InputError(
            f"the exponent of the figure {text!r} is out of range. Write the number "
            "without an exponent."
        )
    if match := _VALUE.fullmatch(written):
        return _value(written, match)
    if match := _BOUND.fullmatch(written):
        return _bound(written, match)
    if match := _RANGE.fullmatch(written):
        return _range(written, match)
    raise _unreadable(text)


def in_percent(text: str) -> str:
    """Write a printed error or share as all results do: in per cent, a space before the sign.

    A figure without a % sign is a fraction, as in `parse_printed`; a factor stays a factor.

    Parameters
    ----------
    text : str
        As printed; may be empty.

    Returns
    -------
    str

    Examples
    --------
    >>> in_percent("2.3%"), in_percent("0.050"), in_percent("<0.05"), in_percent("2–4×")
    ('2.3 %', '5.0 %', '<5 %', '2–4×')
    """
    if "%" in text:
        return _SIGN.sub(" %", text)
    if not text or text.rstrip().endswith(_FACTORS):
        return text
    return f"{re.sub(_NUMBER, _hundredfold, text.strip())} %"


def _hundredfold(match: re.Match[str]) -> str:
    return f"{Decimal(match[0]).scaleb(2):f}"


def _unreadable(text: str | float) -> InputError:
    return InputError(
        f"cannot read the figure {text!r}. Write a number as it was printed, without words: "
        '"2.3%", "<5%", "5–10%", or a fraction such as 0.023.'
    )


def _value(text: str, match: re.Match[str]) -> Printed:
    number, scale = Decimal(match["a"]), _scale(match)
    decimals = _decimals(number)
    half = Decimal(1).scaleb(-decimals) / 2
    return Printed(
        text,
        float(number * scale),
        float((number - half) * scale),
        float((number + half) * scale),
        "value",
        decimals,
        match["unit"] == "%",
    )


def _bound(text: str, match: re.Match[str]) -> Printed:
    number, sign = Decimal(match["a"]), match["sign"]
    edge = float(number * _scale(match))
    below = sign in ("<", "<=", "≤")
    low, high = (0.0, edge) if below else (edge, math.inf)
    # "more than 5 %" excludes 5 % itself; the smallest number above it begins the interval.
    if sign == ">":
        low = math.nextafter(edge, math.inf)
    return Printed(
        text,
        None,
        low,
        high,
        "bound",
        _decimals(number),
        match["unit"] == "%",
        closed=sign in ("<=", "≤"),
    )


def _range(text: str, match: re.Match[str]) -> Printed:
    a, b = Decimal(match["a"]), Decimal(match["b"])
    if a > b:
        raise InputError(
            f"the range {text!r} begins with its larger end. Write the smaller end first."
        )
    if match["first"] not in (None, match["unit"]):
        raise InputError(
            f"the ends of the range {text!r} have different units. Write both in the same unit."
        )
    scale = _scale(match)
    return Printed(
        text,
        None,
        float(a * scale),
        float(b * scale),
        "range",
        max(_decimals(a), _decimals(b)),
        match["unit"] == "%",
        closed=True,
    )


def _scale(match: re.Match[str]) -> Decimal:
    return Decimal("0.01") if match["unit"] == "%" else Decimal(1)


def _decimals(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def written(value: float, unit: str, decimals: int) -> Written:
    """Return the parts of a number with one decimal more than the printed figure has.

    Examples
    --------
    >>> written(0.05872, "fraction", 2).text, written(3.0, "count", 0).text
    ('5.872 %', '3')
    """
    if unit == "fraction":
        return Written(f"{100 * value:.{decimals + 1}f}", " %")
    if unit in ("count", "cycles") and value == int(value):
        return Written(str(int(value)))
    suffix = "" if unit in ("ratio", "count", "text") else f" {unit}"
    return Written(f"{value:.{decimals + 1}f}", suffix)
