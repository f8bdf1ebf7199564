"""What comes out: frozen results that carry their n, their drops and their definition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
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

#: From here on a number, or a percentage, is written with an exponent: nobody counts more digits.
_LARGE_NUMBER, _LARGE_PERCENT = 9_999_999.5, 99_999.5
#: What an estimate can be in that is no unit to write behind a number.
_WITHOUT_UNIT = ("ratio", "log", "correlation", "count", "measured")
#: A number below this is written with an exponent: nobody counts more zeros.
_SMALL_NUMBER = 1e-4


class Written(NamedTuple):
    """A number as people read it, in the parts that a paper aligns.

    Attributes
    ----------
    number : str
        ``"8.74"``; ``"n/a"`` where there is none.
    unit : str
        With the space before it: ``" %"``.
    low, high : str
        Ends of its interval; empty where it has none.
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
    """Write a number with significant digits, without exponent where people would not use one.

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
    """Write a fraction as percent: two decimals below 100 %, fewer above.

    What is not nothing is not written as nothing, and what is nothing has no sign.

    Examples
    --------
    >>> format_fraction(0.0587), format_fraction(1.214), format_fraction(52.45)
    ('5.87 %', '121.4 %', '5245 %')
    >>> format_fraction(2e-7), format_fraction(-0.0), format_fraction(12345.6)
    ('<0.01 %', '0.00 %', '1.23e+06 %')
    """
    return written_fraction(value).text


def written_fraction(value: float) -> Written:
    """Return the parts of what `format_fraction` writes."""
    return Written(_percent(100 * value, 2), "" if math.isnan(value) else " %")


def format_change(
    value: float, low: float | None = None, high: float | None = None, *, unit: str = " %"
) -> str:
    """Write a signed fraction as percent with one decimal, and its interval where it has one.

    Examples
    --------
    >>> format_change(0.0207), format_change(-0.0004), format_change(0.021, -0.0033, 0.05)
    ('+2.1 %', '>-0.1 %', '+2.1 % [-0.3, 5.0]')
    """
    return written_change(value, low, high, unit=unit).text


def written_change(
    value: float, low: float | None = None, high: float | None = None, *, unit: str = " %"
) -> Written:
    """Return the parts of what `format_change` writes."""
    text = _percent(100 * value, 1)
    if math.isnan(value):
        return Written(text)
    number = f"{'+' if value > 0 and not text.startswith('<') else ''}{text}"
    if low is None or high is None:
        return Written(number, unit)
    return Written(number, unit, _percent(100 * low, 1), _percent(100 * high, 1))


def _not_a_figure(value: float) -> str:
    """Return what people read for a value without digits; nothing for others."""
    if math.isnan(value):
        return "n/a"
    return {math.inf: "∞", -math.inf: "-∞"}.get(value, "")


def _has_exponent(value: float) -> bool:
    return 0 < abs(value) < math.inf and not _SMALL_NUMBER <= abs(value) < _LARGE_NUMBER


def _percent(percent: float, most: int) -> str:
    """Write percent with at most so many decimals; what is not nothing is not shown as nothing."""
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
    """Return decimals by the size that is shown: 99.996 is shown as 100.0."""
    return 2 if round(abs(percent), 2) < 100 else 1 if round(abs(percent), 1) < 1000 else 0


def _percent_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """Write bounds with one decimal; with those of the value where one hides what they say."""
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
    # Beyond ten times the measurement a bound of a small error has no true digit.
    if value < 100 and 1000 <= high < math.inf:
        beyond[1] = ">999"
    return beyond[0] or ends[0], beyond[1] or ends[1]


def _read(text: str) -> float:
    return float(text.lstrip("<>").replace("∞", "inf").replace("n/a", "nan"))


def _number_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """Write bounds in the form of the value: all three with an exponent, or none."""
    if _has_exponent(value):
        return _exponent(low, 3), _exponent(high, 3)
    texts = [_beyond(x, _LARGE_NUMBER, _SMALL_NUMBER) or format_number(x) for x in (low, high)]
    return texts[0], texts[1]


def _exponent(value: float, decimals: int) -> str:
    return _not_a_figure(value) or (f"{value:.{decimals}e}" if value else "0")


def _beyond(value: float, largest: float, smallest: float = 0.0) -> str:
    """Say of a bound that digits without an exponent cannot show where it lies; else nothing."""
    if value == 0 or not math.isfinite(value) or smallest <= abs(value) < largest:
        return ""
    sign, above, below = ("", ">", "<") if value > 0 else ("-", "<", ">")
    if abs(value) >= largest:
        return f"{above}{sign}{int(largest)}"
    return f"{below}{sign}{smallest:g}"


@dataclass(frozen=True, slots=True)
class Dropped(Document):
    """Rows that were left out of a result, and why.

    Attributes
    ----------
    reason : str
        One phrase, e.g. ``"measured is zero"``.
    n : int
        How many rows.
    rows : tuple of int
        The first three, as the user counts them.
    """

    reason: str
    n: Count
    rows: tuple[Count, ...] = ()


@dataclass(frozen=True, slots=True)
class Caveat(Document):
    """Something a reader must know before using a figure.

    Attributes
    ----------
    code : str
        Stable name of the check that found it, e.g. ``"few-configurations"``.
    message : str
        One sentence that a reader understands, with the numbers in it.
    evidence : mapping
        The numbers behind it; fractions, not percent.
    """

    code: str
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


#: The value of a figure, which may be undefined.
VALUE = shape_of(Annotated[float, Undefined])


@dataclass(frozen=True, slots=True, eq=False)
class Estimate(Document):
    """A figure with everything needed to read it.

    Attributes
    ----------
    figure : str
        Name of the figure, e.g. ``"mape"``.
    value : float
        The point value. Fractions are fractions: 0.0587 is 5.87 %.
    low, high : float or None
        Interval bounds; None where no tested interval exists.
    level : float or None
        Nominal coverage of the interval.
    method : str
        How the interval was made, or why there is none.
    n : int
        Pairs behind the figure.
    unit : str
        ``"fraction"``, ``"ratio"``, ``"log"``, ``"count"`` or a unit of time, energy, …
    definition : str
        Formula in words: denominator and aggregation.
    dropped : tuple of Dropped
        Rows left out, with reasons.
    caveats : tuple of Caveat
        What a reader must know.
    seed : int or None
        Seed behind the interval, where randomness was used.

    Notes
    -----
    Comparing two uncertain values with ``<`` or ``max()`` hides their intervals, so it raises
    TypeError. Compare ``.value`` if that is what you mean.

    Examples
    --------
    >>> e = Estimate("mape", 0.0874, low=0.056, high=0.121, level=0.95, method="bootstrap-t", n=16)
    >>> print(e)
    8.74 % [5.6, 12.1], n=16
    >>> e
    Estimate(mape 8.74 % [5.6, 12.1], n=16)
    >>> e > e
    Traceback (most recent call last):
        ...
    TypeError: mape is uncertain: compare .value, or the intervals (.low, .high), not the estimates
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
            f"{self.figure} is uncertain: compare .value, or the intervals (.low, .high), "
            "not the estimates"
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.format()}, n={self.n}"

    def __repr__(self) -> str:
        return f"Estimate({self.figure} {self})"

    def format(self) -> str:
        """Write the value and its interval as people do, without n."""
        return self.written().text

    def written(self) -> Written:
        """Return the parts of what `format` writes."""
        none = math.isnan(self.value)
        if self.unit == "fraction":
            number, unit = _percent(100 * self.value, 2), "" if none else " %"
        else:
            number = format_number(self.value)
            unit = "" if none or self.unit in _WITHOUT_UNIT else f" {self.unit}"
        if self.low is None or self.high is None:
            return Written(number, unit)
        if self.unit == "fraction":
            return Written(
                number,
                unit,
                *_percent_interval(*(100 * x for x in (self.value, self.low, self.high))),
            )
        return Written(number, unit, *_number_interval(self.value, self.low, self.high))

    def to_row(self, name: str = "") -> dict[str, Any]:
        """Return the columns ``<figure>``, ``<figure>_low``, ``<figure>_high`` for a table."""
        name = name or self.figure
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    @classmethod
    def from_row(cls, field: Field, name: str, **known: Any) -> Estimate:
        """Make an estimate of these columns of a row in a document, and of what else is known.

        ``level`` and ``seed`` are those of an interval: without one there are none.
        """
        value = VALUE.read(field.at(name))
        low, high = interval(field, f"{name}_low", f"{name}_high")
        if low is None:
            known |= {"level": None, "seed": None}
        return cls(known.pop("figure", name), value, low, high, **known)


@dataclass(frozen=True)
class FlatEstimate(Part):
    """An estimate whose value and ends stand among the keys of a row, with its method.

    Attributes
    ----------
    name : str
        The field, and the figure.
    level : float
        Of its interval.
    method : str
        The key of its method.
    """

    name: str
    figure: str
    level: float
    method: str = "method"

    def write(self, row: Any) -> Mapping[str, Any]:
        """Return the columns of the estimate."""
        estimate: Estimate = getattr(row, self.name)
        return plain_keys({**estimate.to_row(self.figure), self.method: estimate.method})

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the estimate."""
        method = shape_of(str).read(field.at(self.method))
        known = {"level": self.level, "method": method, "n": field.at("n").value}
        return {self.name: Estimate.from_row(field, self.figure, **known)}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return those of the columns."""
        number = VALUE.schema(names)
        columns = dict.fromkeys((self.figure, f"{self.figure}_low", f"{self.figure}_high"), number)
        return {**columns, self.method: {"type": "string"}}


def why_none(value: float, low: float | None, method: str) -> bool:
    """Say whether a method tells why these pairs have no value, or no valid interval.

    Examples
    --------
    >>> why_none(0.1, None, "no interval: 2 models say too little about others")
    True
    >>> why_none(0.1, None, "no interval for a maximum")
    False
    """
    return value != value or (
        low is None and method.startswith(("no interval:", "no interval from"))
    )
