"""Frozen results, each with its sample size, its dropped rows and its definition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Annotated, Any, ClassVar, NamedTuple, NoReturn

from errcomp.codec import (
    Count,
    Document,
    Ends,
    Field,
    Names,
    Part,
    Undefined,
    interval,
    plain_keys,
    shape_of,
)

__all__ = [
    "Caveat",
    "Dropped",
    "Estimate",
    "Written",
    "format_change",
    "format_fraction",
    "format_number",
    "why_none",
    "written_change",
    "written_fraction",
]

#: A number, or a percentage, of at least this size is written with an exponent: more digits are
#: hard to count.
_LARGE_NUMBER, _LARGE_PERCENT = 9_999_999.5, 99_999.5
#: Values of `unit` that are not written after the number.
_WITHOUT_UNIT = ("ratio", "log", "correlation", "count", "measured")
#: A smaller number is written with an exponent: more zeros are hard to count.
_SMALL_NUMBER = 1e-4


class Written(NamedTuple):
    """A number as it is shown, split into the parts that a table aligns.

    Attributes
    ----------
    number : str
        ``"8.74"``; ``"n/a"`` if there is no value.
    unit : str
        With the space before it: ``" %"``.
    low, high : str
        Bounds of its interval; empty without an interval.
    """

    number: str
    unit: str = ""
    low: str = ""
    high: str = ""

    @property
    def text(self) -> str:
        """The parts together: ``8.74 % [5.6, 12.1]``."""
        interval = f" [{self.low}, {self.high}]" if self.low else ""
        return f"{self.number}{self.unit}{interval}"


def format_number(value: float, digits: int = 4) -> str:
    """Write a number with significant digits; only very large and small ones with an exponent.

    Examples
    --------
    >>> format_number(1234.5678), format_number(0.00012345), format_number(float("nan"))
    ('1235', '0.0001234', 'n/a')
    >>> format_number(2.5e9), format_number(float("inf")), format_number(-0.0)
    ('2.500e+09', '∞', '0')
    """
    if value == 0 or not math.isfinite(value):
        return _not_a_figure(value) or "0"
    if _has_exponent(value):
        return f"{value:.{digits - 1}e}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def format_fraction(value: float) -> str:
    """Write a fraction in per cent: two decimals below 100 %, fewer above.

    A value other than 0 is never written as ``0.00 %``, and 0 is written without a sign.

    Examples
    --------
    >>> format_fraction(0.0587), format_fraction(1.214), format_fraction(52.45)
    ('5.87 %', '121.4 %', '5245 %')
    >>> format_fraction(2e-7), format_fraction(-0.0), format_fraction(12345.6)
    ('<0.01 %', '0.00 %', '1.23e+06 %')
    """
    return written_fraction(value).text


def written_fraction(value: float) -> Written:
    """Return the text of `format_fraction` in its parts.

    Examples
    --------
    >>> written_fraction(0.0874)
    Written(number='8.74', unit=' %', low='', high='')
    """
    return Written(_percent(100 * value, 2), "" if math.isnan(value) else " %")


def format_change(
    value: float, low: float | None = None, high: float | None = None, *, unit: str = " %"
) -> str:
    """Write a signed fraction in per cent with one decimal, and its interval if it has one.

    Examples
    --------
    >>> format_change(0.0207), format_change(-0.0004), format_change(0.021, -0.0033, 0.05)
    ('+2.1 %', '>-0.1 %', '+2.1 % [-0.3, 5.0]')
    """
    return written_change(value, low, high, unit=unit).text


def written_change(
    value: float, low: float | None = None, high: float | None = None, *, unit: str = " %"
) -> Written:
    """Return the text of `format_change` in its parts.

    Examples
    --------
    >>> written_change(0.021, -0.0033, 0.05)
    Written(number='+2.1', unit=' %', low='-0.3', high='5.0')
    """
    text = _percent(100 * value, 1)
    if math.isnan(value):
        return Written(text)
    number = f"{'+' if value > 0 and not text.startswith('<') else ''}{text}"
    if low is None or high is None:
        return Written(number, unit)
    return Written(number, unit, _percent(100 * low, 1), _percent(100 * high, 1))


def _not_a_figure(value: float) -> str:
    """Return the text for a value that is not finite; empty for other values."""
    if math.isnan(value):
        return "n/a"
    return {math.inf: "∞", -math.inf: "-∞"}.get(value, "")


def _has_exponent(value: float) -> bool:
    return 0 < abs(value) < math.inf and not _SMALL_NUMBER <= abs(value) < _LARGE_NUMBER


def _percent(percent: float, most: int) -> str:
    """Write per cent with at most `most` decimals; a value other than 0 never becomes 0.00."""
    if most == 2 and 0.01 <= percent < 99.99:  # as nearly all are
        return f"{percent:.2f}"
    if not math.isfinite(percent):
        return _not_a_figure(percent)
    if abs(percent) >= _LARGE_PERCENT:
        return f"{percent:.2e}"
    decimals = min(most, _decimals(percent))
    text = f"{percent:.{decimals}f}"
    if float(text):
        return text
    least = f"{10.0**-decimals:.{decimals}f}"
    return text.lstrip("-") if not percent else f"<{least}" if percent > 0 else f">-{least}"


def _decimals(percent: float) -> int:
    """Return the number of decimals for the rounded size: 99.996 is shown as 100.0."""
    return 2 if round(abs(percent), 2) < 100 else 1 if round(abs(percent), 1) < 1000 else 0


def _percent_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """Write bounds with one decimal, or with as many as the value if one would mislead."""
    if 0.05 < low <= value <= high < 99.9:  # as nearly all are: fewer steps
        text_low, text_high = f"{low:.1f}", f"{high:.1f}"
        if text_low != text_high and float(text_low) <= round(value, 2) <= float(text_high):
            return text_low, text_high
    if _LARGE_PERCENT <= abs(value) < math.inf:
        return _exponent(low, 2), _exponent(high, 2)
    most = _decimals(value) if math.isfinite(value) else 2
    ends = [_percent(x, min(most, 1)) for x in (low, high)]
    shown = [_read(text) for text in (ends[0], _percent(value, most), ends[1])]
    vanished = any(end[0] in "<>" for end in ends) or (ends[0] == ends[1] and low < high)
    # An end with fewer decimals than the value can be rounded to its other side.
    if vanished or (low <= value <= high and shown != sorted(shown)):
        ends = [_percent(x, most) for x in (low, high)]
    beyond = [_beyond(x, _LARGE_PERCENT) for x in (low, high)]
    # Beyond ten times the measurement, no digit of a small error's bound is reliable.
    if value < 100 and 1000 <= high < math.inf:
        beyond[1] = ">999"
    return beyond[0] or ends[0], beyond[1] or ends[1]


def _read(text: str) -> float:
    return float(text.lstrip("<>").replace("∞", "inf").replace("n/a", "nan"))


def _number_interval(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Write a value and its bounds: all three numbers with an exponent, or none of them."""
    if _has_exponent(value):
        return format_number(value), _exponent(low, 3), _exponent(high, 3)
    # The nearer bound decides, so that it does not look equal to the value.
    width = 2 * min((side for side in (value - low, high - value) if side > 0), default=0.0)
    ends = [_beyond(x, _LARGE_NUMBER, _SMALL_NUMBER) or _as_exact(x, width) for x in (low, high)]
    return _as_exact(value, width), ends[0], ends[1]


def _as_exact(value: float, width: float) -> str:
    """Write a number with as many decimals as the width of its interval has with two digits.

    The number itself has at least two digits and, as without an interval, at most four.
    """
    if not (value and math.isfinite(value) and 0 < width < math.inf):
        return format_number(value)
    of_width, of_value = (1 - int(f"{x:.1e}".partition("e")[2]) for x in (width, value))
    return f"{value:.{max(min(max(of_width, of_value), of_value + 2), 0)}f}"


def _exponent(value: float, decimals: int) -> str:
    return _not_a_figure(value) or (f"{value:.{decimals}e}" if value else "0")


def _beyond(value: float, largest: float, smallest: float = 0.0) -> str:
    """Write a bound beyond these sizes as ``>largest`` or ``<smallest``; empty for others."""
    if value == 0 or not math.isfinite(value) or smallest <= abs(value) < largest:
        return ""
    sign, above, below = ("", ">", "<") if value > 0 else ("-", "<", ">")
    if abs(value) >= largest:
        return f"{above}{sign}{int(largest)}"
    return f"{below}{sign}{smallest:g}"


@dataclass(frozen=True, slots=True)
class Dropped(Document):
    """Rows that were left out of a result, with the reason.

    Attributes
    ----------
    reason : str
        A phrase, e.g. ``"measured is zero"``.
    n : int
        Number of rows.
    rows : tuple of int
        The first three row numbers, as the user counts them.
    """

    reason: str
    n: Count
    rows: tuple[Count, ...] = ()


@dataclass(frozen=True, slots=True)
class Caveat(Document):
    """Something a reader must know before using a metric.

    Attributes
    ----------
    code : str
        Stable name of the check that found it, e.g. ``"few-configurations"``.
    message : str
        One plain sentence that contains the numbers.
    evidence : mapping
        The numbers as a mapping; fractions, not per cent.
    """

    code: str
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


#: The value of a metric, which may be undefined.
VALUE = shape_of(Annotated[float, Undefined])
_TEXT = shape_of(str)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate(Document):
    """A metric's value with everything needed to read it.

    Attributes
    ----------
    figure : str
        Name of the metric, e.g. ``"mape"``.
    value : float
        The point estimate; a fraction, not per cent: 0.0587 is 5.87 %.
    low, high : float or None
        Interval bounds; None where no tested interval exists.
    level : float or None
        Nominal coverage of the interval.
    method : str
        How the interval was made, or why there is none.
    n : int
        Number of pairs it was computed from.
    unit : str
        ``"fraction"``, ``"ratio"``, ``"log"``, ``"count"`` or a unit of time, energy, …
    definition : str
        Formula in words: denominator and aggregation.
    dropped : tuple of Dropped
        Rows that were left out, with reasons.
    caveats : tuple of Caveat
        What a reader must know before using it.
    seed : int or None
        Seed of the interval, if it was computed with random numbers.

    Notes
    -----
    Comparing two uncertain values with ``<`` or ``max()`` hides their intervals, so it raises
    TypeError. To compare the point estimates, use ``.value``.

    Examples
    --------
    >>> e = Estimate("mape", 0.0874, low=0.056, high=0.121, level=0.95, method="bootstrap-t", n=16)
    >>> print(e)
    8.74 % [5.6, 12.1], n=16
    >>> e
    Estimate(mape 8.74 % [5.6, 12.1], n=16)
    >>> e == e, e == "8.74 %"
    (True, False)
    >>> e == 0.0874
    Traceback (most recent call last):
        ...
    TypeError: mape has an interval: compare .value, or the ends of the interval (.low, .high), \
and not the estimates themselves
    """

    KEYS: ClassVar = (
        *("figure", "value", Ends(), "level", "method", "n", "unit", "definition", "dropped"),
        *("caveats", "seed"),
    )

    figure: str
    value: Annotated[float, Undefined]
    low: float | None = None
    high: float | None = None
    level: float | None = None
    method: str = "none"
    n: Count = 0
    unit: str = "fraction"
    definition: str = ""
    dropped: tuple[Dropped, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    seed: Count | None = None

    def _refuse(self, _: object) -> NoReturn:
        raise TypeError(
            f"{self.figure} has an interval: compare .value, or the ends of the interval (.low, "
            ".high), and not the estimates themselves"
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Real):
            self._refuse(other)
        return self is other

    __hash__ = object.__hash__

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.format()}, n={self.n:,}"

    def __repr__(self) -> str:
        return f"Estimate({self.figure} {self})"

    def format(self) -> str:
        """Write the value and its interval, without n.

        Examples
        --------
        >>> Estimate("mape", 0.0874, low=0.056, high=0.121, n=16).format()
        '8.74 % [5.6, 12.1]'
        """
        return self.written().text

    def written(self) -> Written:
        """Return the text of `format` in its parts.

        Examples
        --------
        >>> Estimate("mape", 0.0874, low=0.056, high=0.121).written()
        Written(number='8.74', unit=' %', low='5.6', high='12.1')
        """
        value, low, high = self.value, self.low, self.high
        none = math.isnan(value)
        if self.unit == "fraction":
            number, unit = _percent(100 * value, 2), "" if none else " %"
            if low is None or high is None:
                return Written(number, unit)
            return Written(number, unit, *_percent_interval(100 * value, 100 * low, 100 * high))
        unit = "" if none or self.unit in _WITHOUT_UNIT else f" {self.unit}"
        if low is None or high is None:
            return Written(format_number(value), unit)
        number, *ends = _number_interval(value, low, high)
        return Written(number, unit, *ends)

    def to_row(self, name: str = "") -> dict[str, Any]:
        """Return the columns ``<figure>``, ``<figure>_low``, ``<figure>_high`` for a table.

        Examples
        --------
        >>> Estimate("mape", 0.0874, low=0.056, high=0.121).to_row()
        {'mape': 0.0874, 'mape_low': 0.056, 'mape_high': 0.121}
        """
        name = name or self.figure
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    @classmethod
    def from_row(cls, field: Field, name: str, **known: Any) -> Estimate:
        """Make an estimate from the columns of a row in a document and from the fields given.

        ``level`` and ``seed`` belong to an interval; without an interval they are None.

        Examples
        --------
        >>> row = Field({"mape": 0.0874, "mape_low": 0.056, "mape_high": 0.121}, "rows[0]", {})
        >>> Estimate.from_row(row, "mape", n=16)
        Estimate(mape 8.74 % [5.6, 12.1], n=16)
        """
        value = VALUE.read(field.at(name))
        low, high = interval(field, f"{name}_low", f"{name}_high")
        if low is None:
            known |= {"level": None, "seed": None}
        return cls(known.pop("figure", name), value, low, high, **known)


@dataclass(frozen=True)
class FlatEstimate(Part):
    """An estimate whose value, bounds and method are keys of the row itself.

    Attributes
    ----------
    name : str
        The field of the result.
    level : float
        Nominal coverage of its interval.
    method, n : str
        The keys that hold its method and its number of cases.
    """

    name: str
    figure: str
    level: float
    method: str = "method"
    n: str = "n"

    def write(self, row: Any) -> Mapping[str, Any]:
        """Return the estimate's keys and values."""
        estimate: Estimate = getattr(row, self.name)
        return plain_keys({**estimate.to_row(self.figure), self.method: estimate.method})

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the estimate."""
        method = _TEXT.read(field.at(self.method))
        known = {"level": self.level, "method": method, "n": field.at(self.n).value}
        return {self.name: Estimate.from_row(field, self.figure, **known)}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return the schemas of the estimate's keys."""
        number = VALUE.schema(names)
        columns = dict.fromkeys((self.figure, f"{self.figure}_low", f"{self.figure}_high"), number)
        return {**columns, self.method: {"type": "string"}}


def why_none(value: float, low: float | None, method: str) -> bool:
    """Say whether ``method`` gives the reason why there is no value, or no valid interval.

    Examples
    --------
    >>> why_none(0.1, None, "no interval: 2 models are too few to represent others")
    True
    >>> why_none(0.1, None, "no interval for a maximum")
    False
    """
    return value != value or (
        low is None and method.startswith(("no interval:", "no interval from"))
    )
