"""What comes out: frozen results that carry their n, their drops and their definition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

__all__ = ["Caveat", "Dropped", "Estimate", "format_fraction", "format_number"]


def format_number(value: float, digits: int = 4) -> str:
    """Write a number with significant digits, without exponent where people would not use one.

    Examples
    --------
    >>> format_number(1234.5678), format_number(0.00012345), format_number(float("nan"))
    ('1235', '0.0001234', 'n/a')
    """
    if math.isnan(value):
        return "n/a"
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def format_fraction(value: float) -> str:
    """Write a fraction as percent: two decimals below 100 %, fewer above.

    Examples
    --------
    >>> format_fraction(0.0587), format_fraction(1.214), format_fraction(52.45)
    ('5.87 %', '121.4 %', '5245 %')
    """
    if math.isnan(value):
        return "n/a"
    percent = 100 * value
    decimals = 2 if abs(percent) < 100 else 1 if abs(percent) < 1000 else 0
    return f"{percent:.{decimals}f} %"


def _percent(fraction: float) -> str:
    percent = 100 * fraction
    if abs(percent) < 1e5:
        return f"{percent:.1f}"
    return f"{percent:.1e}"


@dataclass(frozen=True, slots=True)
class Dropped:
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
    n: int
    rows: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"reason": self.reason, "n": self.n, "rows": list(self.rows)}


@dataclass(frozen=True, slots=True)
class Caveat:
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"code": self.code, "message": self.message, "evidence": dict(self.evidence)}


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
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
    >>> e > e
    Traceback (most recent call last):
        ...
    TypeError: mape is uncertain: compare .value, or the intervals (.low, .high), not the estimates
    """

    figure: str
    value: float
    low: float | None = None
    high: float | None = None
    level: float | None = None
    method: str = "none"
    n: int = 0
    unit: str = "fraction"
    definition: str = ""
    dropped: tuple[Dropped, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    seed: int | None = None

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

    def format(self) -> str:
        """Write the value and its interval as people do, without n."""
        if self.unit == "fraction":
            text = format_fraction(self.value)
            if self.low is not None and self.high is not None:
                # Beyond ten times the measurement a bound of a small error has no true digit.
                unknown = self.high >= 10 > 10 * self.value
                high = ">999" if unknown else _percent(self.high)
                text += f" [{_percent(self.low)}, {high}]"
            return text
        text = format_number(self.value)
        if self.unit not in ("ratio", "log", "correlation", "count", "measured"):
            text += f" {self.unit}"
        if self.low is not None and self.high is not None:
            text += f" [{format_number(self.low)}, {format_number(self.high)}]"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: fractions, not percent; NaN becomes None."""
        return {
            "figure": self.figure,
            "value": None if math.isnan(self.value) else self.value,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "method": self.method,
            "n": self.n,
            "unit": self.unit,
            "definition": self.definition,
            "dropped": [d.to_dict() for d in self.dropped],
            "caveats": [c.to_dict() for c in self.caveats],
            "seed": self.seed,
        }

    def to_row(self) -> dict[str, Any]:
        """Return the columns ``<figure>``, ``<figure>_low``, ``<figure>_high`` for a table."""
        return {
            self.figure: self.value,
            f"{self.figure}_low": self.low,
            f"{self.figure}_high": self.high,
        }
